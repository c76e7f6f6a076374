"""The smallest part of OpenStack that drivers for such appliances import, so that they run as they come, without it.

What is here stands in for libraries and for the host of the drivers; no part of a driver is replaced. Port 215, which they
do not let one choose, leads to the port that the test says.
"""

import base64
import contextlib
import http.client
import io
import json
import logging
import socket
import sys
import types
import urllib.error
import urllib.request

GI = 1 << 30


def module(name, **members):
    """A module of this name; packages above it are made where they are not there."""
    parent, _, leaf = name.rpartition(".")
    if parent and parent not in sys.modules:
        module(parent)
    made = types.ModuleType(name)
    made.__path__ = []
    made.__dict__.update(members)
    sys.modules[name] = made
    if parent:
        setattr(sys.modules[parent], leaf, made)
    return made


def package_of(wheel, name):
    """The modules of a package come out of the wheel; what is above it is not read."""
    module(name).__path__ = [f"{wheel}/{name.replace('.', '/')}"]


def exceptions(name, words):
    class Failure(Exception):
        def __init__(self, *args, **facts):
            self.msg = " ".join(map(str, args)) + " ".join(f"{k}={v}" for k, v in facts.items())
            super().__init__(self.msg)

    return module(name, **{word: type(word, (Failure,), {}) for word in words.split()})


class Option:
    def __init__(self, name, default=None, **_):
        self.name, self.default = name, default


class Configuration:
    """The values of a test; of what it does not say, the defaults of the driver's options."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def append_config_values(self, options):
        for option in options:
            self.__dict__.setdefault(option.name, option.default)

    def safe_get(self, name):
        return getattr(self, name, None)


@contextlib.contextmanager
def raise_again():
    yield
    raise sys.exc_info()[1]


def lead(address):
    """Whoever connects to port 215 gets to this address."""
    host, _, port = address.rpartition(":")
    connect = socket.create_connection

    def connect_there(to, *args, **kwargs):
        return connect((host, int(port)) if to[1] == 215 else to, *args, **kwargs)

    socket.create_connection = connect_there


def identity(it):
    return it


def libraries():
    module("oslo_log", log=types.SimpleNamespace(getLogger=logging.getLogger))
    option = types.SimpleNamespace(
        StrOpt=Option, BoolOpt=Option, IntOpt=Option, HostAddressOpt=Option,
        CONF=types.SimpleNamespace(register_opts=lambda *_, **__: None, volume_name_template="volume-%s"),
    )
    module("oslo_config", cfg=option)
    text = types.SimpleNamespace(encode_as_text=lambda text: base64.b64encode(text.encode()).decode())
    module("oslo_serialization", base64=text, jsonutils=json)
    module(
        "oslo_utils",
        units=types.SimpleNamespace(Gi=GI),
        strutils=types.SimpleNamespace(mask_password=identity),
        excutils=types.SimpleNamespace(save_and_reraise_exception=raise_again),
    )
    module("oslo_service", loopingcall=types.SimpleNamespace())
    module("six", text_type=str, StringIO=io.StringIO)
    module("six.moves", http_client=http.client, urllib=urllib)
    module("taskflow.engines")
    module("taskflow.patterns", linear_flow=types.SimpleNamespace())
    module("taskflow.task", Task=object)


def expect(failure, work, *args, **kwargs):
    """It fails, with this exception."""
    try:
        work(*args, **kwargs)
    except failure as e:
        return str(e)
    raise AssertionError(f"{work} did not fail with {failure.__name__}")


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"
