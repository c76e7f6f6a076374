"""Manila's driver for such appliances, unmodified, through the life of shares: `manila.py WHEEL ADDRESS PASSWORD`.

Its transport was written for Python 2 and is not usable with 3: what it imports for HTTP is given the manners of 2 here. The
pool `tank` is there, with room for some GiB, and nothing else.
"""

import base64
import sys
import types
import urllib.request

import openstack
from openstack import GI, Configuration, equal, expect

WHEEL, ADDRESS, PASSWORD = sys.argv[1:]
POOL, PROJECT = "tank", "manila"


class Host:
    """What every driver of Manila inherits."""

    def __init__(self, _, configuration=None):
        self.configuration = configuration

    def _update_share_stats(self, data):
        self.stats = data


class Answer:
    """Of bodies Python 2 made no difference between text and bytes."""

    def __init__(self, answer):
        self.answer, self.getcode = answer, answer.getcode

    def read(self):
        return self.answer.read().decode()

    def info(self):
        return types.SimpleNamespace(getheader=self.answer.info().get)


def host():
    openstack.libraries()
    openstack.module("manila")
    openstack.exceptions(
        "manila.exception",
        "ShareBackendException InvalidInput InvalidShareAccess InvalidParameterValue ShareSnapshotIsBusy "
        "ManageInvalidShare UnmanageInvalidShare ShareResourceNotFound ShareShrinkingPossibleDataLoss ShareExtendingError",
    )
    openstack.module("manila.i18n", _=str)
    openstack.module("manila.share.driver", ShareDriver=Host)
    openstack.package_of(WHEEL, "manila.share.drivers.zfssa")
    openstack.lead(ADDRESS)


host()
from manila import exception  # noqa: E402
from manila.share.drivers.zfssa import restclient, zfssashare  # noqa: E402

restclient.urlrequest = types.SimpleNamespace(
    Request=lambda url, body, headers: urllib.request.Request(url, body.encode() if body else None, headers),
    urlopen=lambda request, timeout: Answer(urllib.request.urlopen(request, timeout=timeout)),
)
zfssashare.base64 = types.SimpleNamespace(encodebytes=lambda text: base64.b64encode(text).decode() + "\n")

FAILED = exception.ShareBackendException
EXPORT = [{"path": f"/export/{PROJECT}"}]


def share(id, size=1):
    return {"id": id, "size": size, "share_proto": "NFS", "export_locations": EXPORT}


def start():
    driver = zfssashare.ZFSSAShareDriver(
        configuration=Configuration(
            zfssa_host="127.0.0.1", zfssa_data_ip="127.0.0.1", zfssa_auth_user="root",
            zfssa_auth_password=PASSWORD, zfssa_pool=POOL, zfssa_project=PROJECT,
        )
    )
    # There is no NFS server to switch on, and it is said. All that is before that was done.
    assert "nfs" in expect(FAILED, driver.do_setup, None)
    driver.zfssa.create_schema(
        {"property": "manila_managed", "description": "Managed by Manila", "type": "Boolean"}
    )
    driver.check_for_setup_error()
    driver._update_share_stats()
    assert 0 < driver.stats["free_capacity_gb"] <= driver.stats["total_capacity_gb"]
    return driver


def details(driver, one):
    return driver.zfssa.get_share(POOL, PROJECT, one["id"])


def lived(driver):
    one = share("one")
    equal(driver.create_share(None, one), f"127.0.0.1:/export/{PROJECT}/one")
    found = details(driver, one)
    equal((found["quota"], found["reservation"], found["root_permissions"]), (GI, GI, "777"))
    equal((found["mountpoint"], found["rstchown"]), (f"/export/{PROJECT}/one", True))
    equal(found["custom:manila_managed"], True)
    driver.ensure_share(None, one)
    driver.extend_share(one, 2)
    equal(details(driver, one)["quota"], 2 * GI)
    driver.shrink_share(dict(one, size=2), 1)
    equal(details(driver, one)["reservation"], GI)
    for address, kept in [("192.0.2.1", "sec=sys,rw=@192.0.2.1/32"), ("198.51.100.0/24", None)]:
        access = {"access_type": "ip", "access_to": address}
        driver.allow_access(None, one, access)
        driver.allow_access(None, one, access)
        equal(kept is None or details(driver, one)["sharenfs"] == kept, True)
    for address in ["192.0.2.1", "198.51.100.0/24"]:
        driver.deny_access(None, one, {"access_type": "ip", "access_to": address})
    equal(details(driver, one)["sharenfs"], "sec=sys")
    return one


def cloned(driver, one):
    snapshot, clone = {"id": "snapshot", "share_id": one["id"]}, share("clone", 2)
    driver.create_snapshot(None, snapshot)
    driver.create_share_from_snapshot(None, clone, snapshot)
    found = details(driver, clone)
    equal((found["quota"], found["root_permissions"]), (2 * GI, "777"))
    equal((found["origin"]["share"], found["origin"]["snapshot"]), ("one", "snapshot"))
    expect(exception.ShareSnapshotIsBusy, driver.delete_snapshot, None, snapshot)
    driver.delete_share(None, clone)
    expect(FAILED, details, driver, clone)
    driver.delete_snapshot(None, snapshot)


def taken_over(driver, one):
    driver.unmanage(one)
    expect(exception.UnmanageInvalidShare, driver.unmanage, one)
    mine = share("mine")
    equal(driver.manage_existing(mine, {"zfssa_name": one["id"]})["size"], 1)
    expect(FAILED, details, driver, one)
    equal(details(driver, mine)["custom:manila_managed"], True)
    driver.delete_share(None, mine)
    expect(FAILED, details, driver, mine)


driver = start()
one = lived(driver)
cloned(driver, one)
taken_over(driver, one)
print("all calls were answered")
