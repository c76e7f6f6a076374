//! Devices that are taken out of use, join groups, take the place of others and leave.

use super::reshape::{open_all, open_all_tuned};
use super::resilver::GONE;
use super::{Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::{Offline, OpenOptions, Pool};
use sim::{Fault, Model};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use units::{Guid, Kind};
use vdev::{Layout, NewLeaf, Spec, State, VdevType};

const SIZE: usize = 2 << 20;
const DISK: u64 = 96 << 20;

pub(super) fn rig(layout: Layout, count: usize, extra: &[&str]) -> Rig {
    let rig = Rig::new(layout, count, DISK);
    extra.iter().for_each(|name| drop(rig.disks.add(format!("/sim/{name}"), DISK, Model::NVME)));
    rig
}

pub(super) fn look_at(name: &str) -> NewLeaf {
    NewLeaf::look_at(Path::new(&format!("/sim/{name}"))).unwrap()
}

/// The device by the end of its path.
pub(super) fn device(pool: &Pool, name: &str) -> Guid {
    let spec = pool.tree().spec();
    let is_it = |s: &&Spec| s.path.as_deref() == Some(&format!("/sim/{name}"));
    spec.leaves().find(is_it).unwrap_or_else(|| panic!("{name} is not in {spec:?}")).guid
}

/// `mirror(disk0 disk1)`
pub(super) fn shape(pool: &Pool) -> String {
    fn of(spec: &Spec) -> String {
        if let Some(path) = &spec.path {
            return path.trim_start_matches("/sim/").to_string();
        }
        let children: Vec<String> = spec.children.iter().map(of).collect();
        format!("{}({})", spec.vdev_type, children.join(" "))
    }
    let children: Vec<String> = pool.tree().spec().children.iter().map(of).collect();
    children.join(" ")
}

/// Whether a device that is there misses anything.
fn is_behind(pool: &Pool) -> bool {
    pool.tree().leaves().iter().any(|l| l.is_usable() && l.missing().is_any())
}

/// Waits for the resilver, and for what it lets go.
pub(super) async fn made_whole(pool: &Pool) {
    for _ in 0..1000 {
        if !is_behind(pool) && !pool.is_resilvering() {
            return;
        }
        world::sleep(Duration::from_millis(500)).await;
    }
    panic!("{:?} {:?} {:?}", pool.scan_status(), pool.problems(), pool.tree().status());
}

pub(super) async fn check(pool: &Pool, seed: u64) {
    assert!(
        read_all(pool, VOLUME).await.unwrap() == noise(seed, SIZE),
        "the volume has what was written last"
    );
    verify(pool).await;
}

pub(super) async fn prepare(rig: &Rig) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE as u64).await;
    fill(&pool, VOLUME, 1).await;
    pool
}

pub(super) async fn reopened(pool: Pool) -> Pool {
    pool.export().await.unwrap();
    drop(pool);
    open_all(false).await
}

pub(super) fn gone(rig: &Rig, name: &str) {
    rig.disks.get(format!("/sim/{name}")).unwrap().set_fault(GONE);
}

pub(super) fn back(rig: &Rig, name: &str) {
    rig.disks.get(format!("/sim/{name}")).unwrap().set_fault(Fault::default());
}

#[test]
fn a_device_is_attached_and_then_the_first_one_is_not_needed_any_more() {
    let rig = rig(Layout::Stripe, 1, &["new"]);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = prepare(&own).await;
        pool.attach(device(&pool, "disk0"), look_at("new"), false, 12).await.unwrap();
        assert_eq!(shape(&pool), "mirror(disk0 new)");
        let refused = pool.detach(device(&pool, "disk0")).await.unwrap_err();
        assert_eq!(refused.to_string(), "detach: busy: no valid replicas");
        made_whole(&pool).await;
        let repaired = pool.scan_status().unwrap().repaired;
        assert!(repaired >= SIZE as u64 && repaired < 3 * SIZE as u64, "only what is allocated: {repaired}");
        fill(&pool, VOLUME, 2).await;
        let pool = reopened(pool).await;
        assert_eq!(shape(&pool), "mirror(disk0 new)");
        gone(&own, "disk0");
        check(&pool, 2).await;
        fill(&pool, VOLUME, 3).await;
        pool.sync().await.unwrap();
        pool.detach(device(&pool, "disk0")).await.unwrap();
        assert_eq!((shape(&pool), pool.tree().health().state), ("new".into(), State::Online));
        let pool = reopened(pool).await;
        check(&pool, 3).await;
        assert_eq!(pool.tree().spec().children[0].vdev_type, VdevType::File);
        pool.export().await.unwrap();
    });
}

#[test]
fn a_device_of_each_layout_is_replaced_while_it_is_used() {
    for rig in Rig::all() {
        rig.disks.add("/sim/new", DISK, Model::NVME);
        let own = rig.clone();
        rig.run(2, async move {
            let pool = prepare(&own).await;
            pool.attach(device(&pool, "disk0"), look_at("new"), true, 12).await.unwrap();
            assert!(shape(&pool).contains("replacing(disk0 new)"), "{}", shape(&pool));
            fill(&pool, VOLUME, 2).await;
            made_whole(&pool).await;
            assert!(!shape(&pool).contains("replacing"), "the old one has left: {}", shape(&pool));
            check(&pool, 2).await;
            let pool = reopened(pool).await;
            assert_eq!(pool.tree().health().state, State::Online);
            // The new one has all it should: as many others as the layout bears may go.
            (1..=own.redundancy()).for_each(|i| gone(&own, &format!("disk{i}")));
            check(&pool, 2).await;
            pool.export().await.unwrap();
        });
    }
}

/// The disk of the same name is another one now.
#[test]
fn a_dead_device_is_replaced_by_a_new_one_in_its_place() {
    let rig = rig(Layout::Raidz { parity: 1 }, 3, &[]);
    let own = rig.clone();
    rig.run(3, async move { prepare(&own).await.export().await.unwrap() });
    rig.disks.remove("/sim/disk1");
    rig.disks.add("/sim/disk1", DISK, Model::NVME);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = own.open(false).await.unwrap();
        assert_eq!(pool.tree().health().state, State::Degraded);
        pool.attach(device(&pool, "disk1"), look_at("disk1"), true, 12).await.unwrap();
        assert_eq!(shape(&pool), "raidz(disk0 replacing(disk1/old disk1) disk2)");
        made_whole(&pool).await;
        assert_eq!(shape(&pool), "raidz(disk0 disk1 disk2)");
        gone(&own, "disk2");
        check(&pool, 1).await;
        back(&own, "disk2");
        pool.export().await.unwrap();
    });
}

#[test]
fn a_replacement_is_called_off() {
    let rig = rig(Layout::Raidz { parity: 1 }, 3, &["new"]);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = prepare(&own).await;
        pool.attach(device(&pool, "disk1"), look_at("new"), true, 12).await.unwrap();
        pool.detach(device(&pool, "new")).await.unwrap();
        assert_eq!(shape(&pool), "raidz(disk0 disk1 disk2)");
        let labels = vdev::Device::whole("/sim/new").open(world::OpenMode::ReadOnly).await.unwrap();
        assert!(vdev::label::read::read_labels(&labels).await.is_empty(), "it is free again");
        let pool = reopened(pool).await;
        check(&pool, 1).await;
        pool.export().await.unwrap();
    });
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_no_trace() {
    let rig = rig(Layout::Mirror, 2, &["new"]);
    rig.disks.add("/sim/small", DISK / 2, Model::NVME);
    let own = rig.clone();
    rig.run(6, async move {
        let pool = prepare(&own).await;
        let txg = pool.uberblock().txg;
        let old = device(&pool, "disk0");
        let refused = |e: units::Error| e.to_string();
        let e = pool.attach(old, look_at("small"), true, 12).await.map_err(refused).unwrap_err();
        assert_eq!(e, "device is too small");
        let e = pool.attach(old, look_at("new"), true, 13).await.map_err(refused).unwrap_err();
        assert!(e.starts_with("The new device cannot have a higher alignment requirement"), "{e}");
        let group = pool.tree().spec().children[0].guid;
        assert!(pool.attach(group, look_at("new"), false, 12).await.is_err());
        assert_eq!(pool.attach(Guid(5), look_at("new"), false, 12).await.unwrap_err().kind(), Kind::NotFound);
        assert_eq!(pool.detach(Guid(5)).await.unwrap_err().kind(), Kind::NotFound);
        assert!(pool.offline(group, Offline::Lasting).await.is_err());
        assert_eq!((shape(&pool), pool.uberblock().txg), ("mirror(disk0 disk1)".into(), txg));
        pool.export().await.unwrap();
    });
}

#[test]
fn a_device_that_is_offline_stays_so_and_gets_only_what_it_missed() {
    let rig = rig(Layout::Raidz { parity: 1 }, 3, &[]);
    let own = rig.clone();
    rig.run(7, async move {
        let pool = prepare(&own).await;
        pool.sync().await.unwrap();
        let one = device(&pool, "disk1");
        pool.offline(one, Offline::Lasting).await.unwrap();
        let refused = pool.offline(device(&pool, "disk0"), Offline::Temporary).await.unwrap_err();
        assert_eq!(refused.to_string(), "offline: busy: no valid replicas");
        let other = crate::Content::Volume { size: 256 << 10, block_size: super::BLOCK };
        pool.create_dataset("tank/w", other, Vec::new()).await.unwrap();
        fill(&pool, "tank/w", 9).await;
        let pool = reopened(pool).await;
        let (_, leaf) = pool.tree().find_leaf(one).unwrap();
        assert_eq!(leaf.health().state, State::Offline);
        assert_eq!(pool.online(one).await.unwrap(), vdev::Health::ONLINE);
        made_whole(&pool).await;
        let repaired = pool.scan_status().unwrap().repaired;
        assert!(repaired > 0 && repaired < SIZE as u64 / 2, "{repaired}");
        gone(&own, "disk0");
        check(&pool, 1).await;
        assert!(read_all(&pool, "tank/w").await.unwrap() == noise(9, 256 << 10));
        back(&own, "disk0");
        pool.export().await.unwrap();
    });
}

#[test]
fn a_device_that_is_offline_for_the_time_being_is_back_after_an_import() {
    let rig = rig(Layout::Mirror, 2, &[]);
    let own = rig.clone();
    rig.run(8, async move {
        let pool = prepare(&own).await;
        pool.offline(device(&pool, "disk0"), Offline::Temporary).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        let pool = reopened(pool).await;
        made_whole(&pool).await;
        assert_eq!(pool.tree().health().state, State::Online);
        gone(&own, "disk1");
        check(&pool, 2).await;
        back(&own, "disk1");
        pool.export().await.unwrap();
    });
}

#[test]
fn a_fault_that_an_administrator_declared_lasts_until_it_is_cleared() {
    let rig = rig(Layout::Mirror, 2, &[]);
    let own = rig.clone();
    rig.run(9, async move {
        let pool = prepare(&own).await;
        let one = device(&pool, "disk0");
        pool.offline(one, Offline::Faulted).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        let pool = reopened(pool).await;
        assert_eq!(pool.tree().find_leaf(one).unwrap().1.health().state, State::Faulted);
        assert_eq!(pool.online(one).await.unwrap().state, State::Faulted, "only clearing helps");
        pool.clear(Some(one)).await.unwrap();
        made_whole(&pool).await;
        gone(&own, "disk1");
        check(&pool, 2).await;
        back(&own, "disk1");
        let pool = reopened(pool).await;
        made_whole(&pool).await;
        assert_eq!(pool.tree().health().state, State::Online, "it is forgotten");
        // The only good copy is marked, and used on.
        pool.offline(one, Offline::Temporary).await.unwrap();
        let two = device(&pool, "disk1");
        pool.offline(two, Offline::FaultedTemporary).await.unwrap();
        assert_eq!(pool.tree().find_leaf(two).unwrap().1.health().state, State::Degraded);
        check(&pool, 2).await;
        pool.export().await.unwrap();
    });
}

/// It was ONLINE when its errors were cleared, and OFFLINE again after the next import: the mark had stayed. What was split
/// off with it could not be opened.
#[test]
fn a_device_that_was_offline_when_it_was_faulted_is_offline_again() {
    for how in [Offline::Faulted, Offline::FaultedTemporary] {
        let rig = rig(Layout::Mirror, 2, &[]);
        let own = rig.clone();
        rig.run(15, async move {
            let pool = prepare(&own).await;
            let one = device(&pool, "disk0");
            let state = |pool: &Pool| pool.tree().find_leaf(one).unwrap().1.health().state;
            pool.offline(one, Offline::Lasting).await.unwrap();
            pool.offline(one, how).await.unwrap();
            assert_eq!(state(&pool), State::Faulted);
            pool.clear(None).await.unwrap();
            assert_eq!(state(&pool), State::Offline);
            fill(&pool, VOLUME, 2).await;
            let pool = reopened(pool).await;
            assert_eq!(state(&pool), State::Offline);
            pool.online(one).await.unwrap();
            made_whole(&pool).await;
            let pool = reopened(pool).await;
            assert_eq!(pool.tree().health().state, State::Online);
            gone(&own, "disk1");
            check(&pool, 2).await;
            back(&own, "disk1");
            pool.export().await.unwrap();
        });
    }
}

/// Waits until the pool knows that a device was pulled.
async fn noticed(pool: &Pool, guid: Guid) {
    for _ in 0..100 {
        if pool.tree().find_leaf(guid).unwrap().1.health().state == State::Removed {
            return;
        }
        world::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", pool.tree().status());
}

/// It was FAULTED for too many errors, which 'zpool online' does not take back, though it was only pulled.
#[test]
fn a_device_that_was_pulled_is_removed_until_it_is_brought_online() {
    let rig = rig(Layout::Mirror, 2, &[]);
    let own = rig.clone();
    rig.run(14, async move {
        let pool = prepare(&own).await;
        let one = device(&pool, "disk0");
        let state = |pool: &Pool| pool.tree().find_leaf(one).unwrap().1.health().state;
        gone(&own, "disk0");
        fill(&pool, VOLUME, 2).await;
        noticed(&pool, one).await;
        assert_eq!(pool.online(one).await.unwrap().state, State::CannotOpen, "it is still not there");
        pool.clear(Some(one)).await.unwrap_err();
        back(&own, "disk0");
        assert_eq!(pool.online(one).await.unwrap().state, State::Online);
        made_whole(&pool).await;
        // An import tries it: then it is one that cannot be opened.
        gone(&own, "disk0");
        fill(&pool, VOLUME, 1).await;
        noticed(&pool, one).await;
        fill(&pool, VOLUME, 3).await;
        let pool = reopened(pool).await;
        assert_eq!(state(&pool), State::CannotOpen);
        check(&pool, 3).await;
        back(&own, "disk0");
        let pool = reopened(pool).await;
        made_whole(&pool).await;
        assert_eq!(pool.tree().health().state, State::Online);
        gone(&own, "disk1");
        check(&pool, 3).await;
        pool.export().await.unwrap();
    });
}

/// The pool remembers what it was doing at each moment, and comes up with the old group or the new one.
#[test]
fn a_replacement_survives_a_power_cut_at_any_flush() {
    let mut came_up = std::collections::BTreeSet::new();
    for n in 1..60 {
        let rig = rig(Layout::Mirror, 2, &["new"]);
        let own = rig.clone();
        rig.run(10, async move { prepare(&own).await.export().await.unwrap() });
        rig.disks.cut_at_flush(n);
        let cut = sim::run_until_cut(&rig.disks, n, sim::Config::default(), async move {
            let pool = open_all(false).await;
            pool.attach(device(&pool, "disk0"), look_at("new"), true, 12).await.unwrap();
            made_whole(&pool).await;
            pool.detach(device(&pool, "disk1")).await.unwrap();
            pool.export().await.unwrap();
        });
        rig.disks.power_cut(n);
        assert!(cut.is_none(), "the power goes first");
        came_up.insert(rig.run(100 + n, async move {
            let pool = open_all(false).await;
            made_whole(&pool).await;
            for _ in 0..20 {
                world::sleep(Duration::from_secs(u64::from(shape(&pool).contains("replacing")))).await;
            }
            let shape = shape(&pool);
            assert!(
                ["mirror(disk0 disk1)", "mirror(new disk1)", "new"].contains(&shape.as_str()),
                "{n}: {shape}"
            );
            check(&pool, 1).await;
            pool.export().await.unwrap();
            shape
        }));
    }
    assert!(came_up.len() > 1, "before it had joined, and after it had replaced the other: {came_up:?}");
}

/// An intent log is written past the group in which a device has just joined.
#[test]
fn what_is_written_while_a_device_joins_is_on_it() {
    let rig = rig(Layout::Stripe, 1, &["new"]);
    let own = rig.clone();
    rig.run(12, async move {
        let pool = prepare(&own).await;
        let writer = pool.clone();
        let writing = world::spawn(async move {
            for seed in 2..8 {
                fill(&writer, VOLUME, seed).await;
            }
        });
        pool.attach(device(&pool, "disk0"), look_at("new"), false, 12).await.unwrap();
        writing.await;
        made_whole(&pool).await;
        gone(&own, "disk0");
        check(&pool, 7).await;
        back(&own, "disk0");
        pool.export().await.unwrap();
    });
}

/// A disk dies: the spare is in its place, and goes back when another disk has taken it for good.
#[test]
fn a_spare_takes_the_place_of_a_dead_device_and_goes_back() {
    let rig = rig(Layout::Raidz { parity: 1 }, 3, &["spare", "new"]);
    let own = rig.clone();
    rig.run(13, async move {
        let pool = prepare(&own).await;
        pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        gone(&own, "disk1");
        fill(&pool, VOLUME, 2).await;
        settled(&pool, "raidz(disk0 spare(disk1 spare) disk2)").await;
        let pool = reopened(pool).await;
        settled(&pool, "raidz(disk0 spare(disk1 spare) disk2)").await;
        // `zpool status` said AVAIL of it, and it could be taken out of the list of spares.
        let spare = pool.tree().status().spares.remove(0);
        assert_eq!(spare.health.aux, vdev::Aux::Spared);
        let refused = pool.remove_side_device(vdev::AuxKind::Spare, spare.guid).await;
        assert_eq!(refused.unwrap_err().kind(), Kind::Busy);
        gone(&own, "disk2");
        check(&pool, 2).await;
        back(&own, "disk2");
        let pool = reopened(pool).await;
        made_whole(&pool).await;
        pool.attach(device(&pool, "disk1"), look_at("new"), true, 12).await.unwrap();
        settled(&pool, "raidz(disk0 new disk2)").await;
        assert_eq!(pool.tree().status().spares[0].health, vdev::Health::ONLINE);
        fill(&pool, VOLUME, 3).await;
        // It is a spare again, and serves the next one.
        gone(&own, "disk0");
        fill(&pool, VOLUME, 4).await;
        settled(&pool, "raidz(spare(disk0 spare) new disk2)").await;
        pool.detach(device(&pool, "disk0")).await.unwrap();
        settled(&pool, "raidz(spare new disk2)").await;
        assert!(pool.tree().aux(vdev::AuxKind::Spare).is_empty(), "it is an ordinary device now");
        let pool = reopened(pool).await;
        check(&pool, 4).await;
        assert!(pool.tree().aux(vdev::AuxKind::Spare).is_empty());
        pool.export().await.unwrap();
    });
}

/// A spare that had been chosen for a disk came in the moment in which the disk's replacement began, and a replacement of
/// two disks, one of them with a spare, was never known to end.
#[test]
fn a_spare_does_not_join_a_replacement_that_began_since_it_was_chosen() {
    let rig = rig(Layout::Raidz { parity: 1 }, 3, &["spare", "new"]);
    let own = rig.clone();
    rig.run(15, async move {
        let pool = prepare(&own).await;
        pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        let (old, spare) = (device(&pool, "disk1"), pool.tree().aux(vdev::AuxKind::Spare).remove(0).spec);
        pool.attach(old, look_at("new"), true, 12).await.unwrap();
        assert_eq!(shape(&pool), "raidz(disk0 replacing(disk1 new) disk2)");
        pool.spare_in(old, spare).await.unwrap();
        assert!(!shape(&pool).contains("spare"), "{}", shape(&pool));
        settled(&pool, "raidz(disk0 new disk2)").await;
        check(&pool, 1).await;
        pool.export().await.unwrap();
    });
}

/// When a pool is opened nothing is known yet of what its devices miss: a stale disk was believed beside its spare, and
/// with a second one that had missed a txg a block of the configuration was "lost", though the other two disks had it.
#[test]
fn a_pool_opens_with_a_spare_beside_a_stale_disk_and_another_one_that_is_behind() {
    for seed in 0..6 {
        let rig = rig(Layout::Raidz { parity: 1 }, 3, &["spare"]);
        let own = rig.clone();
        rig.run(20 + seed, async move {
            let pool = prepare(&own).await;
            pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
            pool.offline(device(&pool, "disk0"), Offline::Faulted).await.unwrap();
            settled(&pool, "raidz(spare(disk0 spare) disk1 disk2)").await;
            gone(&own, "disk1");
            fill(&pool, VOLUME, 2).await;
            pool.sync().await.unwrap();
        });
        back(&rig, "disk1");
        rig.disks.power_cut(seed);
        let own = rig.clone();
        rig.run(40 + seed, async move {
            let pool = open_all(false).await;
            made_whole(&pool).await;
            gone(&own, "disk2");
            check(&pool, 2).await;
            back(&own, "disk2");
            pool.export().await.unwrap();
        });
    }
}

/// What a device missed is known of it before the first block is read, when a pool is opened: it was asked, returned old
/// bytes, and was blamed for them.
#[test]
fn a_device_that_is_behind_is_not_blamed_for_it_when_the_pool_is_opened() {
    for seed in 0..6 {
        let rig = rig(Layout::Mirror, 2, &[]);
        let own = rig.clone();
        rig.run(60 + seed, async move {
            let pool = prepare(&own).await;
            pool.sync().await.unwrap();
            gone(&own, "disk1");
            for round in 2..5 {
                fill(&pool, VOLUME, round).await;
                pool.sync().await.unwrap();
            }
        });
        back(&rig, "disk1");
        rig.disks.power_cut(seed);
        rig.run(80 + seed, async move {
            let pool = open_all(true).await;
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(4, SIZE));
            let errors: Vec<u64> = pool.tree().leaves().iter().map(|leaf| leaf.errors().checksum).collect();
            assert_eq!(errors, [0, 0]);
            pool.close().await.unwrap();
        });
    }
}

/// Each half of a mirror took writes without the other one: the newer half was copied over the older, and nothing was said.
#[test]
fn a_half_that_went_on_alone_is_told_from_one_that_is_behind() {
    for alone in [false, true] {
        let rig = rig(Layout::Mirror, 2, &[]);
        let own = rig.clone();
        rig.run(100, async move {
            let pool = prepare(&own).await;
            pool.export().await.unwrap();
        });
        for (rounds, missing) in [(4, "disk1"), (9, "disk0")].into_iter().take(1 + usize::from(alone)) {
            gone(&rig, missing);
            rig.run(100 + rounds, async move {
                let pool = open_all(false).await;
                for round in 0..rounds {
                    fill(&pool, VOLUME, round).await;
                    pool.sync().await.unwrap();
                }
                pool.export().await.unwrap();
            });
            back(&rig, missing);
        }
        rig.run(120, async move {
            let found = crate::scan_dirs(&[Path::new("/sim")]).await.unwrap();
            let opened = crate::open(&found[0], super::plainly()).await;
            if !alone {
                let pool = opened.expect("it is behind, no more");
                check(&pool, 3).await;
                return;
            }
            let refused = opened.unwrap_err();
            let Some(crate::Estranged { newest, others }) = super::forked::estranged(&refused) else {
                panic!("{refused}")
            };
            let paths: Vec<&Path> = others.iter().map(|stranger| stranger.path.as_path()).collect();
            assert_eq!(
                (newest.as_path(), &paths[..]),
                (Path::new("/sim/disk1"), &[Path::new("/sim/disk0")][..])
            );
            assert!(others[0].since < others[0].newest, "{others:?}");
            let reading = OpenOptions { read_only: true, ..super::plainly() };
            let pool = crate::open(&found[0], reading).await.expect("for reading it is no matter");
            check(&pool, 8).await;
            pool.close().await.unwrap();
        });
    }
}

/// A disk that was only unplugged comes back: it gets what it missed, and the spare is free again.
#[test]
fn a_spare_goes_back_when_the_device_returns() {
    let rig = rig(Layout::Mirror, 2, &["spare"]);
    let own = rig.clone();
    rig.run(14, async move {
        let pool = prepare(&own).await;
        pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        pool.offline(device(&pool, "disk1"), Offline::FaultedTemporary).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        settled(&pool, "mirror(disk0 spare(disk1 spare))").await;
        pool.clear(Some(device(&pool, "disk1"))).await.unwrap();
        pool.online(device(&pool, "disk1")).await.unwrap();
        settled(&pool, "mirror(disk0 disk1)").await;
        gone(&own, "disk0");
        check(&pool, 2).await;
        back(&own, "disk0");
        pool.export().await.unwrap();
    });
}

/// Its labels went on to say that it was in the pool, so that the pool was found twice once it had another guid: `zdb` of
/// OpenZFS could not open it by its name.
#[test]
fn a_spare_that_is_faulted_by_hand_goes_back_as_a_spare() {
    let rig = rig(Layout::Raidz { parity: 1 }, 3, &["spare"]);
    let own = rig.clone();
    rig.run(15, async move {
        let pool = prepare(&own).await;
        pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        pool.offline(device(&pool, "disk1"), Offline::FaultedTemporary).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        settled(&pool, "raidz(disk0 spare(disk1 spare) disk2)").await;
        pool.clear(Some(device(&pool, "disk1"))).await.unwrap();
        pool.offline(device(&pool, "spare"), Offline::FaultedTemporary).await.unwrap();
        pool.online(device(&pool, "disk1")).await.unwrap();
        settled(&pool, "raidz(disk0 disk1 disk2)").await;
        pool.reguid(units::Guid(77)).await.unwrap();
        pool.export().await.unwrap();
        let all =
            ["disk0", "disk1", "disk2", "spare"].map(|name| vdev::Device::whole(format!("/sim/{name}")));
        let found = crate::scan(all.to_vec()).await;
        assert_eq!(found.iter().map(|found| found.config.guid).collect::<Vec<_>>(), [units::Guid(77)]);
    });
}

/// It was away when it left its group, so that its labels still name it as a member. With another guid of the pool they
/// would be another pool's for good.
#[test]
fn a_spare_that_was_away_when_it_left_is_given_back_before_the_pool_gets_another_guid() {
    enum Way {
        Reguid,
        Remove,
        Reopen,
    }
    for way in [Way::Reguid, Way::Remove, Way::Reopen] {
        let rig = rig(Layout::Raidz { parity: 1 }, 3, &["spare"]);
        let own = rig.clone();
        rig.run(16, async move {
            let pool = prepare(&own).await;
            pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
            let spare = pool.tree().aux(vdev::AuxKind::Spare)[0].spec.guid;
            pool.offline(device(&pool, "disk1"), Offline::FaultedTemporary).await.unwrap();
            fill(&pool, VOLUME, 2).await;
            settled(&pool, "raidz(disk0 spare(disk1 spare) disk2)").await;
            gone(&own, "spare");
            pool.clear(Some(device(&pool, "disk1"))).await.unwrap();
            pool.online(device(&pool, "disk1")).await.unwrap();
            settled(&pool, "raidz(disk0 disk1 disk2)").await;
            let refused = pool.reguid(Guid(77)).await.unwrap_err();
            assert!(refused.to_string().contains("the spare '/sim/spare'"), "{refused}");
            back(&own, "spare");
            match way {
                Way::Reguid => {}
                Way::Remove => pool.remove_side_device(vdev::AuxKind::Spare, spare).await.unwrap(),
                Way::Reopen => {
                    pool.reopen().await.unwrap();
                    let spare = pool.tree().aux(vdev::AuxKind::Spare)[0].leaf.clone();
                    let owner = spare.read_labels().await.unwrap().owner().unwrap();
                    assert_eq!(owner.state, ondisk::PoolState::Spare);
                }
            }
            pool.reguid(Guid(77)).await.unwrap();
            pool.export().await.unwrap();
            let all = ["disk0", "disk1", "disk2", "spare"];
            let all = all.map(|name| vdev::Device::whole(format!("/sim/{name}")));
            let found = crate::scan(all.to_vec()).await;
            assert_eq!(found.iter().map(|found| found.config.guid).collect::<Vec<_>>(), [Guid(77)]);
        });
    }
}

/// The resilver under way had given the spare a part, and went on without it: at its end the spare counted as whole. What it
/// was given is wiped here, so that it shows; the power may go before the pool says anew how far the resilver is.
#[test]
fn a_spare_that_leaves_in_the_midst_of_a_resilver_and_comes_back_is_given_everything() {
    const LARGE: usize = 32 << 20;
    const ALL_IN_USE: &str = "mirror(disk0 spare(disk1 spare))";
    for case in 0..6 {
        let (ms, is_cut) = (2 + case / 2, case % 2 == 1);
        let rig = rig(Layout::Mirror, 2, &["spare"]);
        let own = rig.clone();
        let tunables: Arc<tunables::Tunables> = Default::default();
        tunables.set(tunables::Tunable::ScanCheckpointInterval, 0).unwrap();
        let (same, seldom) = (tunables.clone(), tunables.clone());
        let ended = sim::run_until_cut(&rig.disks, case, sim::Config::default(), async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, LARGE as u64).await;
            fill(&pool, VOLUME, 1).await;
            pool.export().await.unwrap();
            let pool = open_all_tuned(false, same).await;
            pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
            pool.offline(device(&pool, "disk1"), Offline::Faulted).await.unwrap();
            let begun = |pool: &Pool| shape(pool) == ALL_IN_USE && pool.scan_status().is_some();
            while !begun(&pool) {
                world::sleep(Duration::from_micros(100)).await;
            }
            world::sleep(Duration::from_millis(ms)).await;
            seldom.set(tunables::Tunable::ScanCheckpointInterval, 7200).unwrap();
            pool.detach(device(&pool, "spare")).await.unwrap();
            own.disks.get("/sim/spare").unwrap().poke(4 << 20, &noise(9, 80 << 20));
            while shape(&pool) != ALL_IN_USE {
                pool.sync().await.unwrap();
            }
            if is_cut {
                own.disks.cut_now();
                world::sleep(Duration::from_secs(1)).await;
            }
            settled(&pool, ALL_IN_USE).await;
            pool.export().await.unwrap();
        });
        assert_eq!(ended.is_none(), is_cut, "case {case}");
        if is_cut {
            rig.disks.power_cut(case);
            rig.run(case, async move {
                let pool = open_all_tuned(false, tunables).await;
                settled(&pool, ALL_IN_USE).await;
                pool.export().await.unwrap();
            });
        }
        gone(&rig, "disk0");
        rig.run(case, async move {
            let pool = open_all(false).await;
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, LARGE), "case {case}");
            pool.export().await.unwrap();
        });
    }
}

pub(super) async fn settled(pool: &Pool, expected: &str) {
    for _ in 0..300 {
        if shape(pool) == expected && !is_behind(pool) && !pool.is_resilvering() {
            return;
        }
        world::sleep(Duration::from_secs(1)).await;
    }
    panic!("{} instead of {expected}: {:?} {:?}", shape(pool), pool.scan_status(), pool.problems());
}

/// What stands in for a device that is well may miss what that one has: a scrub that comes to its end has given it all.
#[test]
fn a_scrub_makes_good_what_a_device_missed_beside_another_that_has_it() {
    for (layout, count) in
        [(Layout::Raidz { parity: 1 }, 3), (Layout::Raidz { parity: 2 }, 4), (Layout::Mirror, 2)]
    {
        let rig = rig(layout, count, &["spare"]);
        let own = rig.clone();
        rig.run(50 + count as u64, async move {
            let pool = prepare(&own).await;
            pool.add_side_devices(vdev::AuxKind::Spare, &[look_at("spare")]).await.unwrap();
            pool.spare_in(device(&pool, "disk0"), pool.tree().aux(vdev::AuxKind::Spare).remove(0).spec)
                .await
                .unwrap();
            made_whole(&pool).await;
            assert!(shape(&pool).contains("spare(disk0 spare)"), "{}", shape(&pool));
            let (_, leaf) = pool.tree().find_leaf(device(&pool, "spare")).unwrap();
            leaf.missing().add(units::Txg(1)..=pool.uberblock().txg);
            let rot = noise(9, 80 << 20);
            own.disks.get("/sim/spare").unwrap().poke(4 << 20, &rot);
            // Nothing is read before: the txg that repairs what was read would start a resilver.
            pool.scrub().await.unwrap();
            pool.scrub_wait().await;
            let scan = pool.scan_status().unwrap();
            assert_eq!((scan.func, scan.errors), (ondisk::dsl::ScanFunc::Scrub, 0), "{scan:?}");
            assert!(!is_behind(&pool) && scan.repaired > 0, "{scan:?}");
            assert_eq!(verify(&pool).await.repairable, 0);
            check(&pool, 1).await;
            pool.export().await.unwrap();
        });
    }
}

/// The parts of a gang may be on other devices than its header.
#[test]
fn a_gang_may_be_missed_by_any_device() {
    let rig = rig(Layout::Stripe, 2, &[]);
    rig.clone().run(60, async move {
        let pool = rig.create().await;
        let root = pool.uberblock().root;
        let mut block = root.as_plain().unwrap().clone();
        block.dvas =
            [ondisk::Dva { vdev: units::VdevId(0), ..block.dvas[0] }, ondisk::Dva::EMPTY, ondisk::Dva::EMPTY];
        pool.tree().leaves()[1].missing().add(units::Txg(1)..=pool.uberblock().txg);
        assert!(!pool.is_missed(&ondisk::BlockPointer::Plain(block.clone())));
        block.dvas[0].gang = true;
        assert!(pool.is_missed(&ondisk::BlockPointer::Plain(block)));
        pool.tree().leaves()[1].missing().remove_to(pool.uberblock().txg);
        pool.export().await.unwrap();
    });
}
