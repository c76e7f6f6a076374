//! Devices that are elsewhere when the pool is opened: each is found by its label, whatever is at its former path.

use super::devices::{device, look_at, made_whole, shape};
use super::reshape::{group, open_all};
use super::{Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::{Offline, Pool};
use sim::Model;
use units::Guid;
use vdev::{AuxKind, Bias, Health, Layout, VdevStatus};

const DISK: u64 = 96 << 20;
const SIZE: usize = 2 << 20;

/// The bytes of one device are at the path of the other; at its own there is nothing.
fn relocate(rig: &Rig, from: &str, to: &str) {
    let [from, to] = [from, to].map(|name| format!("/sim/{name}"));
    let bytes = rig.disks.get(&from).unwrap().peek(0, DISK as usize);
    rig.disks.add(&to, DISK, Model::NVME).poke(0, &bytes);
    rig.disks.remove(&from);
}

fn bytes_of(rig: &Rig, name: &str) -> Vec<u8> {
    rig.disks.get(format!("/sim/{name}")).unwrap().peek(0, DISK as usize)
}

fn guid(pool: &Pool, kind: AuxKind) -> Guid {
    pool.tree().aux(kind)[0].spec.guid
}

/// The path that is shown, the one that is in use, and how the device is.
fn beside(pool: &Pool, kind: AuxKind) -> (String, String, Health) {
    let status = pool.tree().status();
    let shown: &VdevStatus = match kind {
        AuxKind::Spare => &status.spares[0],
        AuxKind::Cache => &status.caches[0],
    };
    let leaf = pool.tree().aux(kind)[0].leaf.device().path;
    (shown.path.clone().unwrap(), leaf.display().to_string(), shown.health)
}

fn online(path: &str) -> (String, String, Health) {
    (path.into(), path.into(), Health::ONLINE)
}

/// Spares and cache devices were used where they are and shown where they had been; a spare that went back after that got
/// its labels at the former path, on whatever was there.
#[test]
fn what_has_moved_is_found_by_its_label_and_what_is_in_its_place_stays_as_it_is() {
    let rig = Rig::new(Layout::Mirror, 2, DISK);
    for name in ["log", "spare", "cache"] {
        rig.disks.add(format!("/sim/{name}"), DISK, Model::NVME);
    }
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        pool.add_vdevs(&[group(Bias::Log, Layout::Stripe, &["log"])], 0).await.unwrap();
        pool.add_side_devices(AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        pool.add_side_devices(AuxKind::Cache, &[look_at("cache")]).await.unwrap();
        fill(&pool, VOLUME, 1).await;
        let guids = [AuxKind::Spare, AuxKind::Cache].map(|kind| guid(&pool, kind));
        pool.export().await.unwrap();
        drop(pool);

        for name in ["log", "spare", "cache", "disk1"] {
            relocate(&own, name, &format!("moved-{name}"));
            own.disks.add(format!("/sim/{name}"), DISK, Model::NVME).poke(0, &noise(7, DISK as usize));
        }
        let pool = open_all(false).await;
        assert_eq!([AuxKind::Spare, AuxKind::Cache].map(|kind| guid(&pool, kind)), guids);
        assert_eq!(beside(&pool, AuxKind::Spare), online("/sim/moved-spare"));
        assert_eq!(beside(&pool, AuxKind::Cache), online("/sim/moved-cache"));
        assert_eq!(shape(&pool), "mirror(disk0 moved-disk1) moved-log");
        assert_eq!(pool.tree().health(), Health::ONLINE);

        // The spare serves, and goes back to where it is.
        pool.offline(device(&pool, "moved-disk1"), Offline::FaultedTemporary).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        until(&pool, "mirror(disk0 spare(moved-disk1 moved-spare)) moved-log").await;
        pool.clear(Some(device(&pool, "moved-disk1"))).await.unwrap();
        pool.online(device(&pool, "moved-disk1")).await.unwrap();
        until(&pool, "mirror(disk0 moved-disk1) moved-log").await;
        assert_eq!(beside(&pool, AuxKind::Spare), online("/sim/moved-spare"));
        pool.export().await.unwrap();
        drop(pool);

        // With all else at the former paths out of the way, the lists alone say where they are now.
        let disks = ["disk0", "moved-disk1", "moved-log"];
        let found = crate::scan(disks.map(|name| vdev::Device::whole(format!("/sim/{name}"))).into()).await;
        let options = crate::OpenOptions {
            read_only: false,
            name: None,
            host: super::host(),
            force: false,
            missing_log: false,
            copy_over: false,
            cache: super::cache(),
            hub: Default::default(),
            tunables: Default::default(),
        };
        let pool = crate::open(&found[0], options).await.unwrap();
        assert_eq!(beside(&pool, AuxKind::Spare), online("/sim/moved-spare"));
        assert_eq!(beside(&pool, AuxKind::Cache), online("/sim/moved-cache"));
        pool.remove_side_device(AuxKind::Cache, guids[1]).await.unwrap();
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE));
        verify(&pool).await;
        pool.export().await.unwrap();
        for name in ["log", "spare", "cache", "disk1"] {
            assert!(bytes_of(&own, name) == noise(7, DISK as usize), "{name} is not the pool's");
        }
        let disk = vdev::Device::whole("/sim/moved-cache").open(world::OpenMode::ReadOnly).await.unwrap();
        assert!(
            vdev::label::read::read_labels(&disk).await.is_empty(),
            "a cache device leaves without labels"
        );
    });
}

/// The power went after the txg in which a spare left its group, and before it was labelled as a spare.
#[test]
fn a_spare_that_still_has_the_labels_of_a_member_is_given_back_when_the_pool_is_opened() {
    let rig = Rig::new(Layout::Mirror, 2, DISK);
    rig.disks.add("/sim/spare", DISK, Model::NVME);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        pool.add_side_devices(AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        pool.offline(device(&pool, "disk1"), Offline::FaultedTemporary).await.unwrap();
        until(&pool, "mirror(disk0 spare(disk1 spare))").await;
        made_whole(&pool).await;
        pool.sync().await.unwrap();
        let of_member = bytes_of(&own, "spare");
        pool.clear(Some(device(&pool, "disk1"))).await.unwrap();
        pool.online(device(&pool, "disk1")).await.unwrap();
        until(&pool, "mirror(disk0 disk1)").await;
        pool.export().await.unwrap();
        drop(pool);
        let state = || async {
            let disk = vdev::Device::whole("/sim/spare").open(world::OpenMode::ReadOnly).await.unwrap();
            vdev::label::read::read_labels(&disk).await.owner().unwrap().state
        };
        assert_eq!(state().await, ondisk::PoolState::Spare);
        own.disks.get("/sim/spare").unwrap().poke(0, &of_member);
        let pool = open_all(true).await;
        pool.close().await.unwrap();
        drop(pool);
        assert_eq!(state().await, ondisk::PoolState::Active, "reading only writes nothing");
        let pool = open_all(false).await;
        assert_eq!(state().await, ondisk::PoolState::Spare);
        assert_eq!(beside(&pool, AuxKind::Spare), online("/sim/spare"));
        pool.offline(device(&pool, "disk0"), Offline::FaultedTemporary).await.unwrap();
        until(&pool, "mirror(spare(disk0 spare) disk1)").await;
        pool.export().await.unwrap();
    });
}

/// The same labels at two places: the one that the pool knew is used, and an older copy of a spare in use is not.
#[test]
fn of_two_names_the_one_that_the_pool_knew_is_used() {
    let rig = Rig::new(Layout::Mirror, 2, DISK);
    for name in ["spare", "cache"] {
        rig.disks.add(format!("/sim/{name}"), DISK, Model::NVME);
    }
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        pool.add_side_devices(AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        pool.add_side_devices(AuxKind::Cache, &[look_at("cache")]).await.unwrap();
        for (name, copy) in
            [("spare", "a-copy"), ("spare", "z-copy"), ("cache", "b-copy"), ("cache", "y-copy")]
        {
            own.disks.add(format!("/sim/{copy}"), DISK, Model::NVME).poke(0, &bytes_of(&own, name));
        }
        pool.export().await.unwrap();
        drop(pool);
        let pool = open_all(false).await;
        assert_eq!(beside(&pool, AuxKind::Spare), online("/sim/spare"));
        assert_eq!(beside(&pool, AuxKind::Cache), online("/sim/cache"));

        pool.offline(device(&pool, "disk1"), Offline::Faulted).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        until(&pool, "mirror(disk0 spare(disk1 spare))").await;
        pool.export().await.unwrap();
        drop(pool);
        let pool = open_all(false).await;
        made_whole(&pool).await;
        assert_eq!(shape(&pool), "mirror(disk0 spare(disk1 spare))");
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

async fn until(pool: &Pool, expected: &str) {
    for _ in 0..300 {
        if shape(pool) == expected {
            return made_whole(pool).await;
        }
        world::sleep(std::time::Duration::from_secs(1)).await;
    }
    panic!("{} instead of {expected}: {:?}", shape(pool), pool.problems());
}
