//! Devices that get everything in the order of the disk.

use super::devices::{device, look_at, made_whole, shape};
use super::heal::{block, place};
use super::reshape::open_all;
use super::resilver::GONE;
use super::{Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::{Offline, Pool, RebuildStatus};
use ondisk::dsl::{ScanFunc, ScanState};
use ondisk::{Feature, RebuildState};
use sim::{Disks, Model};
use std::time::Duration;
use tunables::Tunable;
use units::Kind;
use vdev::{AuxKind, Layout};

const SIZE: usize = 8 << 20;
const DISK: u64 = 96 << 20;

fn rig(layout: Layout, count: usize) -> Rig {
    let rig = Rig::new(layout, count, DISK);
    ["new", "other"].iter().for_each(|name| drop(rig.disks.add(format!("/sim/{name}"), DISK, Model::NVME)));
    rig
}

async fn prepare(rig: &Rig) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE as u64).await;
    fill(&pool, VOLUME, 1).await;
    pool.sync().await.unwrap();
    pool
}

/// In small pieces, one at a time, so that something can happen in between.
fn slowly(pool: &Pool) {
    pool.0.tunables.set(Tunable::RebuildMaxSegment, 64 << 10).unwrap();
    pool.0.tunables.set(Tunable::RebuildVdevLimit, 1 << 20).unwrap();
}

fn only(pool: &Pool) -> RebuildStatus {
    let all = pool.rebuilds();
    assert_eq!(all.len(), 1);
    all[0]
}

async fn until(pool: &Pool, is_so: impl Fn(&RebuildStatus) -> bool) -> RebuildStatus {
    for _ in 0..1_000_000 {
        let status = only(pool);
        if is_so(&status) {
            return status;
        }
        world::sleep(Duration::from_micros(50)).await;
    }
    panic!("{:?} {:?}", only(pool), pool.problems());
}

async fn check(pool: &Pool, seed: u64) {
    assert!(read_all(pool, VOLUME).await.unwrap() == noise(seed, SIZE), "what was written last is there");
    verify(pool).await;
}

fn count(pool: &Pool) -> Option<u64> {
    pool.dsl().features().count(Feature::DeviceRebuild.guid())
}

/// Waits for the scrub that follows.
async fn scrubbed(pool: &Pool) {
    for _ in 0..10_000 {
        let scan = pool.scan_status().filter(|scan| scan.state == ScanState::Finished);
        if let Some(scan) = scan.filter(|scan| scan.func == ScanFunc::Scrub && !pool.is_resilvering()) {
            assert_eq!((scan.repaired, scan.errors), (0, 0));
            return;
        }
        world::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?} {:?} {:?}", only(pool), pool.scan_status(), pool.problems());
}

#[test]
fn a_device_is_attached_and_one_is_replaced_in_the_order_of_the_disk_and_a_scrub_follows() {
    let rig = rig(Layout::Stripe, 1);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = prepare(&own).await;
        pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), false, 12).await.unwrap();
        assert!(pool.is_rebuilding() && count(&pool) == Some(1));
        let takes_turns = || pool.tree().tops().iter().any(|top| top.is_copying());
        assert!(takes_turns());
        fill(&pool, VOLUME, 2).await;
        scrubbed(&pool).await;
        assert!(!takes_turns(), "writes have nothing to wait for any more");
        let status = only(&pool).phys;
        assert_eq!((status.state, status.errors, count(&pool)), (RebuildState::Complete, 0, Some(0)));
        let allocated = pool.report().allocated;
        assert!(status.bytes_rebuilt >= SIZE as u64 && status.bytes_rebuilt < 2 * allocated, "{status:?}");
        assert!(pool.tree().spec().leaves().all(|leaf| !leaf.other.has("rebuild_txg")));
        pool.attach_sequentially(device(&pool, "disk0"), look_at("other"), true, 12).await.unwrap();
        assert_eq!(shape(&pool), "mirror(replacing(disk0 other) new)");
        fill(&pool, VOLUME, 3).await;
        scrubbed(&pool).await;
        assert_eq!(shape(&pool), "mirror(other new)");
        pool.export().await.unwrap();
        drop(pool);
        for gone in ["new", "other"] {
            own.disks.get(format!("/sim/{gone}")).unwrap().set_fault(GONE);
            let pool = open_all(true).await;
            check(&pool, 3).await;
            pool.close().await.unwrap();
            own.disks.get(format!("/sim/{gone}")).unwrap().set_fault(Default::default());
        }
    });
}

/// The position is kept at an export, and a crash costs no more than what was done since it was kept.
#[test]
fn a_rebuild_goes_on_where_it_was_after_an_export_and_after_a_power_cut() {
    let rig = rig(Layout::Mirror, 2);
    let own = rig.clone();
    let (half, disks): (RebuildStatus, Disks) = rig.run(2, async move {
        let pool = prepare(&own).await;
        slowly(&pool);
        pool.attach_sequentially(device(&pool, "disk1"), look_at("new"), true, 12).await.unwrap();
        until(&pool, |status| status.phys.bytes_scanned >= 2 << 20).await;
        pool.export().await.unwrap();
        let half = only(&pool);
        drop(pool);
        assert_eq!(half.phys.state, RebuildState::Active);
        (half, own.disks.clone())
    });
    let cut = sim::run_until_cut(&rig.disks, 3, sim::Config::default(), async move {
        let pool = open_all(false).await;
        slowly(&pool);
        let goes_on = until(&pool, |status| status.pass_scanned > 0).await;
        assert!(goes_on.phys.bytes_scanned >= half.phys.bytes_scanned, "{goes_on:?} {half:?}");
        assert!(count(&pool) == Some(1));
        disks.cut_now();
        world::sleep(Duration::from_secs(1)).await;
    });
    assert!(cut.is_none());
    rig.disks.power_cut(3);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = open_all(false).await;
        scrubbed(&pool).await;
        assert_eq!(shape(&pool), "mirror(disk0 new)");
        let status = only(&pool).phys;
        assert_eq!((status.state, status.start_time), (RebuildState::Complete, half.phys.start_time));
        let in_all = status.bytes_scanned;
        assert!(
            in_all < 2 * SIZE as u64 + (2 << 20),
            "nothing was copied twice but what came last: {in_all}"
        );
        own.disks.get("/sim/disk0").unwrap().set_fault(GONE);
        check(&pool, 1).await;
        pool.export().await.unwrap();
    });
}

/// It verifies what was copied unseen, and no later moment asks for it.
#[test]
fn the_scrub_after_a_rebuild_is_not_lost_when_the_pool_is_closed_or_loses_its_power_as_the_rebuild_ends() {
    for (seed, micros) in [0, 20, 100, 500, 2_000, 10_000].into_iter().enumerate() {
        for is_cut in [false, true] {
            let rig = rig(Layout::Mirror, 2);
            let own = rig.clone();
            let _ = sim::run_until_cut(&rig.disks, 40 + seed as u64, sim::Config::default(), async move {
                let pool = prepare(&own).await;
                pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), false, 12).await.unwrap();
                until(&pool, |status| status.phys.state == RebuildState::Complete).await;
                world::sleep(Duration::from_micros(micros)).await;
                match is_cut {
                    true => own.disks.cut_now(),
                    false => pool.export().await.unwrap(),
                }
            });
            rig.disks.power_cut(seed as u64);
            rig.run(60 + seed as u64, async move {
                let pool = open_all(false).await;
                scrubbed(&pool).await;
                assert_eq!((shape(&pool).as_str(), count(&pool)), ("mirror(disk0 disk1 new)", Some(0)));
                check(&pool, 1).await;
                pool.export().await.unwrap();
            });
        }
    }
}

#[test]
fn what_cannot_be_rebuilt_and_what_would_be_in_the_way_is_refused_in_a_line() {
    let raidz = rig(Layout::Raidz { parity: 1 }, 3);
    let own = raidz.clone();
    raidz.run(5, async move {
        let pool = prepare(&own).await;
        let refused = pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), true, 12).await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "only mirror and dRAID vdevs support sequential reconstruction"
        );
        pool.export().await.unwrap();
    });
    let plain = rig(Layout::Mirror, 2);
    let own = plain.clone();
    plain.run(6, async move {
        let pool = own.create_with(|feature| feature != Feature::DeviceRebuild).await;
        let refused = pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), false, 12).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("zpool set feature@device_rebuild=enabled tank"), "{refused}");
        pool.export().await.unwrap();
    });
    let mirror = rig(Layout::Mirror, 2);
    let own = mirror.clone();
    mirror.run(7, async move {
        let pool = prepare(&own).await;
        slowly(&pool);
        pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), false, 12).await.unwrap();
        let attach = pool.attach(device(&pool, "disk0"), look_at("other"), false, 12).await.unwrap_err();
        let (scrub, resilver) = (pool.scrub().await.unwrap_err(), pool.resilver().await.unwrap_err());
        let split = pool.plan_split(&[]).unwrap_err();
        for e in [attach, scrub, resilver, split] {
            assert_eq!(e.kind(), Kind::Busy);
            assert!(e.to_string().ends_with("currently sequentially resilvering"), "{e}");
        }
        // Another one to be rebuilt begins it anew, for both.
        pool.attach_sequentially(device(&pool, "disk0"), look_at("other"), false, 12).await.unwrap();
        assert_eq!(count(&pool), Some(1));
        scrubbed(&pool).await;
        assert_eq!((shape(&pool).as_str(), count(&pool)), ("mirror(disk0 disk1 new other)", Some(0)));
        pool.export().await.unwrap();
    });
}

#[test]
fn a_rebuild_is_canceled_when_its_device_leaves_and_a_resilver_does_what_a_failed_one_left() {
    let rig = rig(Layout::Mirror, 2);
    let own = rig.clone();
    rig.run(8, async move {
        let pool = prepare(&own).await;
        slowly(&pool);
        pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), true, 12).await.unwrap();
        pool.detach(device(&pool, "new")).await.unwrap();
        until(&pool, |status| status.phys.state == RebuildState::Canceled).await;
        assert_eq!((shape(&pool).as_str(), count(&pool)), ("mirror(disk0 disk1)", Some(0)));
        pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), true, 12).await.unwrap();
        until(&pool, |status| status.phys.bytes_scanned > 1 << 20).await;
        own.disks.get("/sim/new").unwrap().set_fault(GONE);
        until(&pool, |status| status.phys.state == RebuildState::Canceled).await;
        own.disks.get("/sim/new").unwrap().set_fault(Default::default());
        pool.clear(None).await.unwrap();
        made_whole(&pool).await;
        assert_eq!(pool.scan_status().unwrap().func, ScanFunc::Resilver);
        assert_eq!(shape(&pool), "mirror(new disk1)");
        check(&pool, 1).await;
        pool.export().await.unwrap();
    });
}

/// Of what was copied to it before it left it has nothing, here since that is wiped. The rebuild ends well for the others.
#[test]
fn a_spare_that_leaves_in_the_midst_of_a_rebuild_and_comes_back_is_given_everything() {
    let rig = rig(Layout::Mirror, 2);
    rig.disks.add("/sim/spare", DISK, Model::NVME);
    let own = rig.clone();
    rig.run(9, async move {
        let pool = prepare(&own).await;
        slowly(&pool);
        pool.add_side_devices(AuxKind::Spare, &[look_at("spare")]).await.unwrap();
        pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), false, 12).await.unwrap();
        pool.offline(device(&pool, "disk1"), Offline::Faulted).await.unwrap();
        let with_spare = |pool: &Pool| shape(pool).contains("spare(disk1 spare)");
        while !with_spare(&pool) {
            pool.sync().await.unwrap();
        }
        // Begins anew, and for the spare as well.
        pool.attach_sequentially(device(&pool, "disk0"), look_at("other"), false, 12).await.unwrap();
        until(&pool, |status| status.phys.bytes_scanned > 4 << 20).await;
        pool.detach(device(&pool, "spare")).await.unwrap();
        own.disks.get("/sim/spare").unwrap().poke(4 << 20, &noise(9, 80 << 20));
        while !with_spare(&pool) {
            pool.sync().await.unwrap();
        }
        assert_eq!(only(&pool).phys.state, RebuildState::Active, "it goes on");
        until(&pool, |status| status.phys.state == RebuildState::Complete).await;
        made_whole(&pool).await;
        for gone in ["disk0", "new", "other"] {
            own.disks.get(format!("/sim/{gone}")).unwrap().set_fault(GONE);
        }
        check(&pool, 1).await;
        pool.export().await.unwrap();
    });
}

/// Nothing is verified on the way: of a block that is bad on one side, the device that is being replaced has the good copy,
/// and copied from the other one it would have been lost with it.
#[test]
fn the_new_device_gets_what_the_one_had_that_it_replaces_and_a_sector_that_cannot_be_read_from_elsewhere() {
    let rig = rig(Layout::Mirror, 2);
    let own = rig.clone();
    rig.run(9, async move {
        let pool = prepare(&own).await;
        let (_, bp) = block(&pool, 5).await;
        own.disks.get("/sim/disk0").unwrap().poke(place(&bp), &[7; 4096]);
        let (_, unreadable) = block(&pool, 100).await;
        let at = place(&unreadable) / 512;
        own.disks.get("/sim/disk1").unwrap().break_sectors(at..at + 8);
        pool.0.tunables.set(Tunable::RebuildScrubEnabled, 0).unwrap();
        pool.attach_sequentially(device(&pool, "disk1"), look_at("new"), true, 12).await.unwrap();
        made_whole(&pool).await;
        assert_eq!(shape(&pool), "mirror(disk0 new)");
        assert!(pool.scan_status().is_none(), "no scrub where none is wanted");
        let new = own.disks.get("/sim/new").unwrap();
        let there = |bp| new.peek(place(bp), 4096);
        assert!(there(&bp) == noise(1, SIZE)[5 * 8192..5 * 8192 + 4096] && there(&unreadable) != [0; 4096]);
        pool.scrub().await.unwrap();
        pool.scrub_wait().await;
        assert_eq!(pool.scan_status().unwrap().errors, 0);
        check(&pool, 1).await;
        pool.export().await.unwrap();
    });
}

#[test]
fn writes_that_come_while_it_is_copied_are_never_put_back() {
    for seed in 0..6 {
        let rig = rig(Layout::Mirror, 2);
        let own = rig.clone();
        rig.run(20 + seed, async move {
            let pool = prepare(&own).await;
            slowly(&pool);
            pool.attach_sequentially(device(&pool, "disk0"), look_at("new"), true, 12).await.unwrap();
            let mut round = 1;
            while pool.is_rebuilding() {
                round += 1;
                fill(&pool, VOLUME, round).await;
            }
            assert!(round > 2, "it was written to meanwhile");
            scrubbed(&pool).await;
            own.disks.get("/sim/disk1").unwrap().set_fault(GONE);
            check(&pool, round).await;
            pool.export().await.unwrap();
        });
    }
}
