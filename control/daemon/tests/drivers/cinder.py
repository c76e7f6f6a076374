"""Cinder's drivers for such appliances, unmodified, through the life of volumes: `cinder.py WHEEL ADDRESS PASSWORD`.

The pool `tank` is there, with room for some GiB, and nothing else.
"""

import datetime
import sys

import openstack
from openstack import GI, Configuration, equal, expect

WHEEL, ADDRESS, PASSWORD = sys.argv[1:]
POOL, PROJECT, CACHE = "tank", "cinder", "os-cinder-cache"
NODES = {
    "nodes": [{"iqn": "iqn.2010-10.org.openstack:node1", "user": "", "password": ""}],
    "others": [{"iqn": "iqn.2010-10.org.openstack:node2", "user": "", "password": ""}],
}


class Host:
    """What every iSCSI driver of Cinder inherits."""

    def __init__(self, *_, configuration=None, **__):
        self.configuration = configuration
        self.images = []

    def copy_image_to_volume(self, context, volume, service, image):
        """Cinder attaches the volume to itself, writes, and lets go."""
        connection = self.initialize_connection(volume, connector(1))
        equal(connection["data"]["target_lun"] >= 0, True)
        self.terminate_connection(volume, connector(1))
        self.images.append(image)


def host():
    openstack.libraries()
    openstack.module("cinder")
    openstack.exceptions(
        "cinder.exception",
        "VolumeBackendAPIException VolumeNotFound SnapshotNotFound SnapshotIsBusy InvalidInput VolumeDriverException "
        "InvalidConfigurationValue ManageExistingAlreadyManaged ManageExistingInvalidReference",
    )
    openstack.module("cinder.i18n", _=str)
    openstack.module("cinder.interface", volumedriver=openstack.identity)
    openstack.module(
        "cinder.utils", trace=openstack.identity, synchronized=lambda *_, **__: openstack.identity
    )
    openstack.module("cinder.volume.configuration", SHARED_CONF_GROUP="backend")
    openstack.module("cinder.volume.driver", ISCSIDriver=Host)
    openstack.module("cinder.volume.drivers.san.san", san_opts=[])
    openstack.module("cinder.volume.volume_types")
    openstack.module(
        "cinder.volume.volume_utils",
        resolve_hostname=openstack.identity,
        extract_id_from_volume_name=lambda name: name.removeprefix("volume-"),
        paginate_entries_list=lambda entries, *_: entries,
    )
    openstack.package_of(WHEEL, "cinder.volume.drivers.zfssa")
    openstack.lead(ADDRESS)


host()
from cinder import exception  # noqa: E402
from cinder.volume.drivers.zfssa import zfssaiscsi, zfssarest  # noqa: E402

FAILED = exception.VolumeBackendAPIException


def connector(node):
    return {"initiator": f"iqn.2010-10.org.openstack:node{node}"}


def volume(id, size=1):
    return {"id": id, "name": f"volume-{id}", "size": size, "status": "available"}


def start():
    driver = zfssaiscsi.ZFSSAISCSIDriver(
        configuration=Configuration(
            san_ip="127.0.0.1", san_login="root", san_password=PASSWORD, zfssa_pool=POOL, zfssa_project=PROJECT,
            zfssa_initiator_config=str(NODES), zfssa_target_portal="127.0.0.1:3260", zfssa_target_interfaces="",
            zfssa_target_group="tgt", zfssa_lun_sparse=True, zfssa_lun_compression="off",
        )
    )
    driver.do_setup(None)
    # Once more, with everything there.
    driver.do_setup(None)
    driver.check_for_setup_error()
    stats = driver.get_volume_stats(refresh=True)
    equal(stats["zfssa_poolprofile"], "stripe")
    assert 0 < stats["free_capacity_gb"] <= stats["total_capacity_gb"]
    return driver


def lun(driver, one, project=PROJECT):
    return driver.zfssa.get_lun(POOL, project, one["name"])


def is_gone(driver, one):
    expect(exception.VolumeNotFound, lun, driver, one)


def exported(driver):
    """The number that an initiator is told is that of its own group, and only its own groups get the LUN."""
    one, other = volume("exported"), volume("other")
    driver.create_volume(other)
    driver.create_volume(one)
    equal(lun(driver, one)["initiatorgroup"], [])
    first = driver.initialize_connection(one, connector(1))["data"]
    equal(lun(driver, one)["initiatorgroup"], ["nodes"])
    # As during a live migration.
    second = driver.initialize_connection(one, connector(2))["data"]
    found = lun(driver, one)
    equal(found["initiatorgroup"], ["nodes", "others"])
    equal(found["number"], [first["target_lun"], second["target_lun"]])
    another = driver.initialize_connection(other, connector(1))["data"]
    assert another["target_lun"] != first["target_lun"]
    driver.terminate_connection(one, connector(1))
    equal(lun(driver, one)["initiatorgroup"], ["others"])
    driver.terminate_connection(one, None)
    equal(lun(driver, one)["initiatorgroup"], [])
    expect(FAILED, driver.initialize_connection, one, {"initiator": "iqn.2010-10.org.openstack:stranger"})
    driver.extend_volume(one, 2)
    equal(lun(driver, one)["size"], 2 * GI)
    driver.delete_volume(one)
    driver.delete_volume(one)
    driver.delete_volume(other)
    is_gone(driver, one)


def with_snapshots(driver):
    one, restored = volume("one"), volume("restored", 2)
    snapshot = {"name": "snapshot-1", "volume_name": one["name"]}
    driver.create_volume(one)
    driver.create_snapshot(snapshot)
    driver.create_volume_from_snapshot(restored, snapshot)
    found = lun(driver, restored)
    equal(found["size"], 2 * GI)
    equal((found["origin"]["share"], found["origin"]["snapshot"]), (one["name"], "snapshot-1"))
    equal((found["origin"]["pool"], found["origin"]["project"]), (POOL, PROJECT))
    equal(found["cinder_managed"], True)
    expect(exception.SnapshotIsBusy, driver.delete_snapshot, snapshot)
    expect(FAILED, driver.delete_volume, one)
    expect(exception.InvalidInput, driver.create_volume_from_snapshot, volume("small", 0), snapshot)
    driver.delete_volume(restored)
    is_gone(driver, restored)
    driver.delete_snapshot(snapshot)
    driver.delete_snapshot(snapshot)
    driver.delete_volume(one)
    is_gone(driver, one)


def cloned(driver):
    """It deletes a clone by deleting the snapshot that it made for it."""
    one, clone = volume("source"), volume("clone")
    driver.create_volume(one)
    driver.create_cloned_volume(clone, one)
    equal(lun(driver, clone)["nodestroy"], True)
    expect(FAILED, driver.delete_volume, one)
    # The snapshot does not go while the clone is protected.
    held = (POOL, PROJECT, one["name"], "tmp-snapshot-clone")
    expect(FAILED, driver.zfssa.delete_snapshot, *held)
    driver.delete_volume(clone)
    is_gone(driver, clone)
    expect(exception.SnapshotNotFound, driver.zfssa.get_lun_snapshot, *held)
    driver.delete_volume(one)
    is_gone(driver, one)


def thick_and_thin(driver):
    """A clone reserves its size if it is told so, as a new LUN does."""
    api = driver.zfssa
    api.create_lun(POOL, PROJECT, "thick", "64m", "tgt", {"sparse": False})
    api.create_snapshot(POOL, PROJECT, "thick", "s")
    for name, sparse in [("thin-clone", True), ("thick-clone", False)]:
        specs = {"sparse": sparse, "volblocksize": "8k", "compression": "lz4"}
        api.clone_snapshot(POOL, PROJECT, "thick", "s", PROJECT, name, specs)
        made = json_of(api, name)
        equal((made["sparse"], made["compression"]), (sparse, "lz4"))
        equal(made["reservation"] == 0 or made["space_unused_res"] > 0, True)
        api.set_lun_props(POOL, PROJECT, name, sparse=not sparse)
        equal(json_of(api, name)["sparse"], not sparse)
        api.set_lun_props(POOL, PROJECT, name, nodestroy=False)
        api.delete_lun(POOL, PROJECT, name)
    api.delete_snapshot(POOL, PROJECT, "thick", "s")
    api.delete_lun(POOL, PROJECT, "thick")


def json_of(api, name):
    import json

    answer = api.rclient.get(f"/api/storage/v1/pools/{POOL}/projects/{PROJECT}/luns/{name}")
    return json.loads(answer.data)["lun"]


def from_images(driver):
    """Images are kept once and cloned; the last clone takes the cached volume with it."""
    image = {"id": "image1", "size": 512 << 20, "updated_at": datetime.datetime(2026, 11, 22, 10, 0)}
    first, second = volume("boot1"), volume("boot2", 2)
    for one in (first, second):
        equal(driver.clone_image(None, one, None, image, None), (None, True))
    equal(driver.images, ["image1"])
    equal(lun(driver, second)["size"], 2 * GI)
    cached = {"name": "os-cache-vol-image1"}
    kept = lun(driver, cached, CACHE)
    equal((kept["image_id"], kept["updated_at"]), ("image1", "2026-11-22T10:00:00"))
    driver.delete_volume(first)
    lun(driver, cached, CACHE)
    driver.delete_volume(second)
    expect(exception.VolumeNotFound, lun, driver, cached, CACHE)


def taken_over(driver):
    one, renamed = volume("theirs"), volume("mine")
    driver.create_volume(one)
    driver.unmanage(one)
    reference = {"source-name": f"unmanaged-{one['name']}"}
    listed = driver.get_manageable_volumes([], None, 10, 0, None, None)
    equal([(v["reference"], v["safe_to_manage"]) for v in listed], [(reference, True)])
    equal(driver.manage_existing_get_size(renamed, reference), 1)
    driver.manage_existing(renamed, reference)
    expect(exception.ManageExistingInvalidReference, driver.manage_existing, renamed, reference)
    listed = driver.get_manageable_volumes([renamed], None, 10, 0, None, None)
    equal([v["reason_not_safe"] for v in listed], ["already managed"])
    # Elsewhere it is copied by Cinder itself: there is no replication.
    capabilities = dict(driver.get_volume_stats(), vendor_name="Oracle", storage_protocol="iSCSI")
    capabilities["location_info"] = capabilities["location_info"] + "192.0.2.1"
    host = {"host": "other", "capabilities": capabilities}
    equal(driver.migrate_volume(None, renamed, host), (False, None))
    original = volume("original")
    equal(driver.update_migrated_volume(None, original, renamed, "available"), {"_name_id": None})
    driver.delete_volume(original)
    is_gone(driver, original)


def of_plain_volumes(driver):
    """A volume that is no LUN yet, made by `zfs create -V`, is listed like one."""
    names = [lun["name"] for lun in driver.zfssa.get_all_luns(POOL, "plain")]
    equal(names, ["volume"])


def file_systems():
    """The API class of the NFS driver; the driver itself needs an NFS server and WebDAV."""
    import base64

    api = zfssarest.ZFSSANfsApi()
    api.set_host("127.0.0.1")
    api.login(base64.b64encode(f"root:{PASSWORD}".encode()).decode())
    api.create_project(POOL, "NFSProject", compression="off", logbias="latency")
    place = (POOL, "NFSProject", "share")
    said = {"sharenfs": "rw", "root_permissions": "777", "compression": "off", "logbias": "latency"}
    expect(FAILED, api.create_share, *place, dict(said, sharedav="rw"))
    api.create_share(*place, dict(said, sharedav="off"))
    api.create_share(*place, dict(said, compression="lz4"))
    api.verify_share(*place)
    share = api.get_share(*place)
    equal((share["compression"], share["encryption"], share["logbias"]), ("lz4", "off", "latency"))
    equal((share["root_permissions"], share["sharenfs"]), ("777", "rw"))
    assert share["mountpoint"] and share["space_available"] > 0 and share["space_total"] >= 0
    api.create_snapshot(*place, "s")
    api.delete_snapshot(*place, "s")
    expect(FAILED, api.verify_service, "nfs")
    expect(FAILED, api.enable_service, "http")
    api.verify_service("iscsi")
    assert api.get_asn()
    api.logout()


driver = start()
exported(driver)
with_snapshots(driver)
cloned(driver)
thick_and_thin(driver)
from_images(driver)
taken_over(driver)
of_plain_volumes(driver)
equal(driver.zfssa.get_all_luns(POOL, PROJECT), [])
equal(driver.zfssa.get_all_luns(POOL, CACHE), [])
driver.zfssa.logout()
file_systems()
print("all calls were answered")
