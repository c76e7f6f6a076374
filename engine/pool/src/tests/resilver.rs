//! Devices that missed writes: what they have is not believed, and is made good.

use super::devices::device;
use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::{Content, Offline, Pool};
use dsl::props::{Limits, Types, When, parse_setting};
use ondisk::dsl::{ScanFunc, ScanState};
use sim::Fault;
use std::time::Duration;
use vdev::{Layout, State};

const SIZE: usize = 2 << 20;
const LARGE: usize = 32 << 20;
/// Its blocks have no checksum, so that nothing tells old ones from new.
const BARE: &str = "tank/bare";

pub(super) const GONE: Fault = Fault {
    gone: true,
    read_errors_ppm: 0,
    write_errors_ppm: 0,
    flush_errors_ppm: 0,
    forgets: false,
    rot_ppm: 0,
    lost_writes_ppm: 0,
    misdirected_writes_ppm: 0,
    full: false,
    ignores_flushes: false,
    delay: Duration::ZERO,
};

fn redundant() -> impl Iterator<Item = Rig> {
    Rig::all().into_iter().filter(|r| r.redundancy() > 0)
}

async fn prepare(rig: &Rig) {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE as u64).await;
    let off = parse_setting("checksum", "off", Types::VOLUME, When::Create, &Limits::default()).unwrap();
    let content = Content::Volume { size: SIZE as u64, block_size: BLOCK };
    pool.create_dataset(BARE, content, vec![off]).await.unwrap();
    work(&pool, 1).await;
    pool.export().await.unwrap();
}

async fn work(pool: &Pool, seed: u64) {
    fill(pool, VOLUME, seed).await;
    fill(pool, BARE, seed + 100).await;
}

async fn check(pool: &Pool, seed: u64) {
    assert!(read_all(pool, BARE).await.unwrap() == noise(seed + 100, SIZE), "nothing old is believed");
    assert!(read_all(pool, VOLUME).await.unwrap() == noise(seed, SIZE));
}

fn set_fault(rig: &Rig, i: usize, fault: Fault) {
    rig.disks.get(rig.path(i)).unwrap().set_fault(fault);
}

fn is_behind(pool: &Pool) -> bool {
    pool.tree().leaves().iter().any(|l| l.missing().is_any())
}

/// Waits for a resilver to end well.
async fn made_whole(pool: &Pool) {
    for _ in 0..100 {
        if !is_behind(pool) {
            break;
        }
        world::sleep(Duration::from_secs(10)).await;
    }
    let scan = pool.scan_status().unwrap();
    assert_eq!(
        (scan.func, scan.state, scan.errors),
        (ScanFunc::Resilver, ScanState::Finished, 0),
        "{scan:?}"
    );
    assert!(!is_behind(pool), "{:?}", pool.problems());
}

/// The devices that came back can now do without as many of the others as the layout allows.
async fn only_with(rig: &Rig, back: usize, seed: u64) {
    (0..rig.redundancy()).for_each(|i| set_fault(rig, back + 1 + i, GONE));
    let pool = rig.open(false).await.unwrap();
    check(&pool, seed).await;
    verify(&pool).await;
    pool.export().await.unwrap();
}

#[test]
fn a_device_that_was_away_is_not_believed_and_is_made_whole() {
    for rig in redundant() {
        let own = rig.clone();
        rig.run(1, async move { prepare(&own).await });
        set_fault(&rig, 0, GONE);
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.open(false).await.unwrap();
            assert_eq!(pool.report().health.state, State::Degraded);
            work(&pool, 2).await;
            pool.export().await.unwrap();
        });
        set_fault(&rig, 0, Fault::default());
        let own = rig.clone();
        rig.run(3, async move {
            let pool = own.open(true).await.unwrap();
            assert!(is_behind(&pool));
            check(&pool, 2).await;
            pool.close().await.unwrap();
            drop(pool);
            let pool = own.open(false).await.unwrap();
            check(&pool, 2).await;
            made_whole(&pool).await;
            let repaired = pool.scan_status().unwrap().repaired;
            assert!(repaired >= 2 * SIZE as u64 / own.width() && repaired < 5 * SIZE as u64, "{repaired}");
            assert!(pool.report().vdevs.children[0].children[0].errors == vdev::Errors::default());
            verify(&pool).await;
            pool.export().await.unwrap();
        });
        let own = rig.clone();
        rig.run(4, async move { only_with(&own, 0, 2).await });
    }
}

/// What a resilver has met in a volume is written again some time after. Overwritten meanwhile, it is a snapshot's.
#[test]
fn what_a_snapshot_took_over_between_the_look_of_a_resilver_and_its_repair_is_made_good() {
    const SIZE: usize = 8 << 20;
    for seed in 0..16 {
        let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE as u64).await;
            fill(&pool, VOLUME, 1).await;
            pool.offline(device(&pool, "disk1"), Offline::Lasting).await.unwrap();
            fill(&pool, VOLUME, 2).await;
            pool.sync().await.unwrap();
            pool.online(device(&pool, "disk1")).await.unwrap();
            world::sleep(Duration::from_micros(500 * seed)).await;
            pool.snapshot(vec![format!("{VOLUME}@then")], Vec::new()).await.unwrap();
            fill(&pool, VOLUME, 3).await;
            for _ in 0..1000 {
                if !is_behind(&pool) {
                    break;
                }
                world::sleep(Duration::from_secs(1)).await;
            }
            assert!(!is_behind(&pool), "{:?}", pool.problems());
            pool.export().await.unwrap();
        });
        set_fault(&rig, 0, GONE);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.open(false).await.unwrap();
            let then = read_all(&pool, &format!("{VOLUME}@then")).await;
            assert!(then.unwrap() == noise(2, SIZE), "seed {seed}");
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(3, SIZE), "seed {seed}");
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

/// Its dnodes change one after the other: a head may name a snapshot whose dnode is not there yet. Met so, the head counted
/// as gone, and nothing of it was made good.
#[test]
fn what_a_resilver_is_to_walk_is_not_decided_while_the_mos_is_being_written() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        pool.offline(device(&pool, "disk1"), Offline::Lasting).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        pool.sync().await.unwrap();
        let writing = pool.0.mos_writing.begin();
        pool.online(device(&pool, "disk1")).await.unwrap();
        for _ in 0..100 {
            world::sleep(Duration::from_millis(100)).await;
            pool.sync().await.unwrap();
        }
        let scan = pool.scan_status().unwrap();
        assert_eq!((scan.func, scan.state), (ScanFunc::Resilver, ScanState::Scanning), "{scan:?}");
        drop(writing);
        made_whole(&pool).await;
        pool.export().await.unwrap();
    });
    set_fault(&rig, 0, GONE);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.open(false).await.unwrap();
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, SIZE));
        pool.export().await.unwrap();
    });
}

/// The pool remembers: neither a device that carries the newest uberblock nor one whose resilver was broken off is taken
/// for whole.
#[test]
fn what_a_device_missed_is_remembered_until_it_is_made_good() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move { prepare(&own).await });
    set_fault(&rig, 0, GONE);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.open(false).await.unwrap();
        work(&pool, 2).await;
        pool.export().await.unwrap();
    });
    set_fault(&rig, 0, Fault::default());
    let mut cuts = 0;
    for round in 0..6 {
        let own = rig.clone();
        rig.disks.cut_at_flush(2 + 2 * round);
        let cut = sim::run_until_cut(&rig.disks, 3 + round, sim::Config::default(), async move {
            let pool = own.open(false).await.unwrap();
            made_whole(&pool).await;
        });
        rig.disks.power_cut(round);
        if cut.is_some() {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 1, "the power went before the resilver was done");
    let own = rig.clone();
    rig.run(9, async move {
        let pool = own.open(false).await.unwrap();
        check(&pool, 2).await;
        made_whole(&pool).await;
        pool.export().await.unwrap();
    });
    let own = rig.clone();
    rig.run(10, async move { only_with(&own, 0, 2).await });
}

/// A device stops to take writes at any moment of a txg, and then the power goes: whatever it missed is made good.
#[test]
fn a_device_that_stops_to_write_and_comes_back_after_a_power_cut_is_made_whole() {
    for n in [1, 7, 40, 60, 75, 90] {
        let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
        let own = rig.clone();
        rig.run(1, async move { prepare(&own).await });
        let stuck = Fault { write_errors_ppm: 1_000_000, flush_errors_ppm: 1_000_000, ..Fault::default() };
        rig.disks.get(rig.path(1)).unwrap().fault_at_write(n, stuck);
        let own = rig.clone();
        let cut = sim::run_until_cut(&rig.disks, 2, sim::Config::default(), async move {
            let pool = own.open(false).await.unwrap();
            work(&pool, 2).await;
            own.disks.cut_now();
            pool.sync().await.unwrap();
            std::future::pending::<()>().await;
        });
        assert!(cut.is_none());
        rig.disks.power_cut(n);
        set_fault(&rig, 1, Fault::default());
        let own = rig.clone();
        rig.run(3, async move {
            let pool = own.open(false).await.unwrap();
            check(&pool, 2).await;
            made_whole(&pool).await;
            pool.export().await.unwrap();
            drop(pool);
            set_fault(&own, 0, GONE);
            let pool = own.open(false).await.unwrap();
            check(&pool, 2).await;
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_scrub_makes_good_what_a_device_missed() {
    let rig = Rig::new(Layout::Raidz { parity: 2 }, 4, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        prepare(&own).await;
        let pool = own.open(false).await.unwrap();
        let leaf = pool.tree().leaves()[1].clone();
        leaf.missing().add(units::Txg(1)..=pool.uberblock().txg);
        own.spoil(1, 4 << 20, 80 << 20, 3);
        // Nothing is read before: the txg that repairs what was read would start a resilver.
        pool.scrub().await.unwrap();
        pool.scrub_wait().await;
        let scan = pool.scan_status().unwrap();
        assert_eq!(
            (scan.func, scan.state, scan.errors),
            (ScanFunc::Scrub, ScanState::Finished, 0),
            "{scan:?}"
        );
        assert!(!is_behind(&pool));
        check(&pool, 1).await;
        assert_eq!(verify(&pool).await.repairable, 0);
        pool.export().await.unwrap();
    });
}

/// Nothing is written afterwards: no txg looks whether a device misses something.
#[test]
fn what_a_device_missed_is_made_good_in_an_idle_pool_whatever_was_before() {
    for before in
        ["nothing", "a scrub pauses", "a scrub was stopped", "a scrub is done", "a resilver is done"]
    {
        let rig = Rig::new(Layout::Mirror, 2, 160 << 20);
        let own = rig.clone();
        rig.run(1, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, LARGE as u64).await;
            fill(&pool, VOLUME, 1).await;
            pool.sync().await.unwrap();
            match before {
                "a resilver is done" => {
                    miss_some(&pool).await;
                    made_whole(&pool).await;
                }
                "nothing" => (),
                _ => pool.scrub().await.unwrap(),
            }
            match before {
                "a scrub pauses" => pool.scrub_pause().await.unwrap(),
                "a scrub was stopped" => pool.scrub_stop().await.unwrap(),
                _ => pool.scrub_wait().await,
            }
            miss_some(&pool).await;
            assert!(is_behind(&pool), "{before}");
            made_whole(&pool).await;
            assert_eq!(verify(&pool).await.repairable, 0, "{before}");
            pool.export().await.unwrap();
        });
    }
}

/// A txg that the second device misses something of, or finds that it does.
async fn miss_some(pool: &Pool) {
    let leaf = pool.tree().leaves()[1].clone();
    leaf.missing().add(units::Txg(1)..=pool.uberblock().txg);
    pool.change("a txg", |pool, tx| async move { pool.0.touch(&tx).await }).await.unwrap();
}

/// Snapshots come and go while the devices are brought up to date, and take blocks along from one set to the next.
#[test]
fn blocks_that_change_hands_during_a_resilver_are_made_good_too() {
    let rig = Rig::new(Layout::Mirror, 2, 128 << 20);
    let own = rig.clone();
    rig.run(1, async move { prepare(&own).await });
    set_fault(&rig, 0, GONE);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.open(false).await.unwrap();
        work(&pool, 2).await;
        pool.export().await.unwrap();
    });
    set_fault(&rig, 0, Fault::default());
    let own = rig.clone();
    rig.run(3, async move {
        let pool = own.open(false).await.unwrap();
        for seed in 3..9 {
            let name = format!("{VOLUME}@{seed}");
            let taken =
                pool.change("snapshot", |pool, tx| async move { pool.dsl().snapshot(&tx, &name).await });
            taken.await.unwrap();
            fill(&pool, VOLUME, seed).await;
            if seed % 2 == 0 {
                let name = format!("{VOLUME}@{}", seed - 1);
                let gone = pool.change("destroy", |pool, tx| async move {
                    pool.dsl().destroy_snapshot(&tx, &name).await
                });
                gone.await.unwrap();
            }
        }
        made_whole(&pool).await;
        assert_eq!(verify(&pool).await.repairable, 0);
        pool.export().await.unwrap();
    });
    set_fault(&rig, 1, GONE);
    let own = rig.clone();
    rig.run(4, async move {
        let pool = own.open(false).await.unwrap();
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(8, SIZE));
        assert!(read_all(&pool, BARE).await.unwrap() == noise(102, SIZE));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// A resilver that is broken off again and again goes on where it was, and what it gave is there.
#[test]
fn a_resilver_goes_on_where_it_was_after_exports_and_power_cuts() {
    for cuts in [false, true] {
        let rig = Rig::new(Layout::Mirror, 2, 160 << 20);
        let own = rig.clone();
        rig.run(1, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, LARGE as u64).await;
            pool.export().await.unwrap();
        });
        set_fault(&rig, 0, GONE);
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.open(false).await.unwrap();
            fill(&pool, VOLUME, 2).await;
            pool.export().await.unwrap();
        });
        set_fault(&rig, 0, Fault::default());
        let (mut openings, mut last) = (0, 0);
        loop {
            let own = rig.clone();
            let tunables: std::sync::Arc<tunables::Tunables> = Default::default();
            tunables.set(tunables::Tunable::ScanCheckpointInterval, 0).unwrap();
            if cuts {
                rig.disks.cut_at_flush(10 + openings);
            }
            let done = sim::run_until_cut(&rig.disks, 3 + openings, sim::Config::default(), async move {
                let pool = own.open_tuned(false, tunables).await.unwrap();
                world::sleep(Duration::from_millis(3 + openings)).await;
                while cuts && is_behind(&pool) {
                    world::sleep(Duration::from_millis(40)).await;
                }
                pool.export().await.unwrap();
            });
            rig.disks.power_cut(openings);
            assert!(done.is_some() || cuts);
            let own = rig.clone();
            let (scan, behind) = rig.run(1000 + openings, async move {
                let pool = own.open(true).await.unwrap();
                let seen = (pool.scan_status().unwrap(), is_behind(&pool));
                pool.close().await.unwrap();
                seen
            });
            openings += 1;
            // After a cut the device may miss some of the last txgs too: that is another resilver.
            assert!(scan.repaired >= last || cuts, "{scan:?} after {last}");
            last = last.max(scan.repaired);
            if !behind {
                assert_eq!((scan.state, scan.errors), (ScanState::Finished, 0));
                break;
            }
            assert!(openings < 60, "it comes to its end: {scan:?}");
        }
        assert!(openings > 2, "it was broken off in the midst: {openings}");
        let most = if cuts { 3 } else { 2 } * LARGE as u64;
        assert!(last < most, "what was given is not given again: {last}");
        set_fault(&rig, 1, GONE);
        let own = rig.clone();
        rig.run(9, async move {
            let pool = own.open(false).await.unwrap();
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(2, LARGE));
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}
