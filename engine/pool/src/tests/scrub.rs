//! Scrubs: what they find, repair, and remember.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::{Pool, ScanStatus, walk};
use dsl::DestroySpec;
use ondisk::ObjectType;
use ondisk::dsl::{ScanFunc, ScanState};
use std::sync::Arc;
use std::time::Duration;
use units::{Kind, ObjectId};
use vdev::Layout;
use world::Buf;
use zio::Bookmark;

const SIZE: usize = 2 << 20;

#[test]
fn a_scrub_repairs_everything_that_can_be_repaired_on_every_layout() {
    for rig in Rig::all().into_iter().filter(|r| r.redundancy() > 0) {
        let own = rig.clone();
        rig.run(1, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE as u64).await;
            fill(&pool, VOLUME, 1).await;
            pool.export().await.unwrap();
        });
        rig.spoil(1, 4 << 20, 80 << 20, 3);
        let own = rig.clone();
        rig.run(2, async move {
            let pool = own.open(false).await.unwrap();
            pool.scrub().await.unwrap();
            assert_eq!(pool.scrub().await.unwrap_err().kind(), Kind::Busy);
            pool.scrub_wait().await;
            let scan = pool.scan_status().unwrap();
            assert_eq!((scan.state, scan.errors), (ScanState::Finished, 0), "{:?}", pool.problems());
            assert!(scan.repaired > 1 << 20, "{scan:?}");
            assert!(scan.examined > 2 << 20, "{scan:?}");
            assert!(verify(&pool).await.repairable == 0, "nothing is left to be repaired");
            assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE));
            pool.export().await.unwrap();
            drop(pool);
            let pool = own.open(true).await.unwrap();
            let kept = pool.scan_status().unwrap();
            assert_eq!(
                (kept.func, kept.state, kept.repaired),
                (ScanFunc::Scrub, ScanState::Finished, scan.repaired)
            );
        });
    }
}

#[test]
fn a_scrub_pauses_goes_on_and_stops_and_an_unfinished_one_goes_on_with_the_pool() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let rig = own;
        let pool = rig.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        fill(&pool, VOLUME, 1).await;
        assert_eq!(pool.scrub_stop().await.unwrap_err().kind(), Kind::Invalid);
        pool.scrub().await.unwrap();
        pool.scrub_pause().await.unwrap();
        let scan = pool.scan_status().unwrap();
        assert!(scan.state == ScanState::Scanning && scan.paused.is_some(), "{scan:?}");
        pool.export().await.unwrap();
        drop(pool);
        let pool = rig.open(false).await.unwrap();
        world::sleep(Duration::from_secs(60)).await;
        let scan = pool.scan_status().unwrap();
        assert!(scan.state == ScanState::Scanning && scan.paused.is_some(), "it still pauses: {scan:?}");
        pool.scrub().await.unwrap();
        pool.export().await.unwrap();
        drop(pool);
        let pool = rig.open(false).await.unwrap();
        pool.scrub_wait().await;
        assert_eq!(pool.scan_status().unwrap().state, ScanState::Finished);
        pool.scrub().await.unwrap();
        pool.scrub_stop().await.unwrap();
        assert_eq!(pool.scan_status().unwrap().state, ScanState::Canceled);
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// Beside the scrub, which may be over by then: it pauses, is stopped, or is left to itself.
pub(super) fn end_somehow(pool: &Pool, rng: &mut sim::Rng) -> world::Task<()> {
    let (pool, how) = (pool.clone(), rng.below(3));
    world::spawn(async move {
        let _ = match how {
            0 => Ok(()),
            1 => pool.scrub_pause().await,
            _ => pool.scrub_stop().await,
        };
    })
}

/// What a client reads in the status is what it acts on: once that says that a scrub is over, is stopped or pauses, the next
/// may be asked for. The task of the one before could take a while to leave, and the pool was "busy".
#[test]
fn the_next_scrub_begins_as_soon_as_the_status_tells_that_the_one_before_is_over() {
    for seed in 0..20 {
        let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, SIZE as u64).await;
            fill(&pool, VOLUME, 1).await;
            pool.sync().await.unwrap();
            let mut rng = sim::Rng::new(seed);
            for turn in 0..20 {
                pool.scrub().await.unwrap_or_else(|e| panic!("turn {turn} of seed {seed}: {e}"));
                let other = end_somehow(&pool, &mut rng);
                let is_over = |scan: ScanStatus| scan.state != ScanState::Scanning || scan.paused.is_some();
                while !pool.scan_status().is_some_and(is_over) {
                    world::sleep(Duration::from_nanos(1 + rng.below(20_000))).await;
                }
                if rng.below(2) == 0 {
                    other.await;
                }
            }
            pool.scrub_wait().await;
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_scrub_of_a_pool_at_work_finds_no_errors_that_are_none() {
    let rig = Rig::new(Layout::Mirror, 2, 64 << 20);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        fill(&pool, VOLUME, 1).await;
        let worker = {
            let pool = pool.clone();
            world::spawn(async move {
                for seed in 2..40 {
                    fill(&pool, VOLUME, seed).await;
                }
            })
        };
        for _ in 0..10 {
            pool.scrub().await.unwrap();
            pool.scrub_wait().await;
            let scan = pool.scan_status().unwrap();
            assert_eq!(
                (scan.state, scan.errors, scan.repaired),
                (ScanState::Finished, 0, 0),
                "{:?}",
                pool.problems()
            );
        }
        worker.await;
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(39, SIZE));
        verify(&pool).await;
        pool.export().await.unwrap();
    });
}

/// A scrub that paused began its dataset again: one of a pool with one large volume never came to its end.
#[test]
fn a_scrub_that_pauses_goes_on_where_it_was() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(9, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, 16 << 20).await;
        fill(&pool, VOLUME, 1).await;
        pool.sync().await.unwrap();
        let looked = || pool.tree().leaves()[0].stats.snapshot().read.bytes;
        let (mut pauses, mut all, mut last) = (0, 0, 0);
        loop {
            let before = looked();
            pool.scrub().await.unwrap();
            world::sleep(Duration::from_millis(2)).await;
            // It may be over by then.
            let paused = pool.scrub_pause().await.is_ok();
            all += looked() - before;
            let scan = pool.scan_status().unwrap();
            if !paused || scan.state == ScanState::Finished {
                break;
            }
            assert!(scan.examined >= last, "{} after {last}", scan.examined);
            last = scan.examined;
            pauses += 1;
            assert!(pauses < 1000, "it comes to its end");
        }
        assert!(pauses > 3, "it was paused in the midst of the volume: {pauses}");
        let scan = pool.scan_status().unwrap();
        assert_eq!((scan.state, scan.errors), (ScanState::Finished, 0));
        assert!(
            all < 3 * (16 << 20),
            "data are read once, what leads to them again: {all} bytes, {pauses} pauses"
        );
        pool.export().await.unwrap();
    });
}

/// Each time the pool was opened a scrub began anew: one that takes longer than the pool is ever open never ended.
#[test]
fn a_scan_goes_on_where_it_was_when_the_pool_is_opened() {
    for is_paused in [false, true] {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(10, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, 16 << 20).await;
            fill(&pool, VOLUME, 1).await;
            snapshot(&pool, "a").await;
            fill(&pool, VOLUME, 2).await;
            pool.export().await.unwrap();
        });
        let (mut openings, mut all, mut last) = (0, 0, 0);
        loop {
            let own = rig.clone();
            let (done, looked, examined) = rig.run(11 + openings, async move {
                let pool = own.open(false).await.unwrap();
                if openings == 0 || is_paused {
                    pool.scrub().await.unwrap();
                }
                let before = pool.scan_status().unwrap().examined;
                world::sleep(Duration::from_millis(4)).await;
                if is_paused {
                    // It may be over by then.
                    let _ = pool.scrub_pause().await;
                }
                pool.export().await.unwrap();
                let scan = pool.scan_status().unwrap();
                assert_eq!((scan.errors, scan.repaired), (0, 0));
                (scan.state == ScanState::Finished, scan.pass_examined, (before, scan.examined))
            });
            all += looked;
            assert!(examined.0 >= last && examined.1 >= examined.0, "{examined:?} after {last}");
            (last, openings) = (examined.1, openings + 1);
            assert!(openings < 200, "it comes to its end");
            if done {
                break;
            }
        }
        assert!(openings > 3, "it was closed in the midst of it: {openings}");
        assert!(all < 2 * (32 << 20), "data are looked at once: {all} bytes, {openings} openings");
        assert!(last > 32 << 20 && last < 40 << 20, "each block counts once: {last}");
    }
}

async fn snapshot(pool: &Pool, name: &str) {
    pool.snapshot(vec![format!("{VOLUME}@{name}")], Vec::new()).await.unwrap();
}

/// A set that changes under the walk is walked again, and its damage was counted each time.
#[test]
fn a_block_that_is_lost_counts_once_though_its_set_changes_under_the_walk() {
    let rig = Rig::new(Layout::Stripe, 1, 128 << 20);
    let own = rig.clone();
    rig.run(12, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, 8 << 20).await;
        fill(&pool, VOLUME, 1).await;
        pool.sync().await.unwrap();
        let found = pool.dsl().find(VOLUME).await.unwrap();
        let (_, phys) = pool.dsl().core().dataset(found.id).await.unwrap();
        let store: Arc<dyn zio::BlockStore> = Arc::new(pool.pipeline().clone());
        let at = zio::Bookmark {
            objset: units::ObjsetId(found.id.0),
            object: units::ObjectId(1),
            level: 0,
            blkid: 3,
        };
        let bp = dmu::locate(&store, &phys.bp, at).await.unwrap();
        let lost = bp.as_plain().unwrap().copies().next().unwrap().offset.bytes() + (4 << 20);
        own.spoil(0, lost, 4096, 7);
        let worker = {
            let pool = pool.clone();
            world::spawn(async move {
                let volume = pool.open_volume(VOLUME).await.unwrap();
                for round in 0..40 {
                    // All but the block that is lost.
                    volume.write(1 << 20, Buf::copy_from(&noise(round, 7 << 20))).await.unwrap();
                    pool.sync().await.unwrap();
                }
            })
        };
        for _ in 0..12 {
            pool.scrub().await.unwrap();
            pool.scrub_wait().await;
            let scan = pool.scan_status().unwrap();
            assert_eq!((scan.state, scan.errors), (ScanState::Finished, 1), "{:?}", pool.problems());
        }
        worker.await;
        pool.export().await.unwrap();
    });
}

/// Datasets were destroyed under the walk, and their objects used again by something else: a scrub that met that ended early
/// and told of damage, in a pool that was sound.
#[test]
fn a_scan_of_a_pool_whose_datasets_come_and_go_finds_no_errors_that_are_none() {
    for seed in 20..23 {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = own.create().await;
            let mut rng = sim::Rng::new(seed);
            let mut next = 0;
            // With their snapshots.
            let mut sets: Vec<(String, u64)> = Vec::new();
            for round in 0..12 {
                while sets.len() < 3 {
                    next += 1;
                    let name = format!("tank/v{next}");
                    make_volume(&pool, &name, 2 << 20).await;
                    fill(&pool, &name, next).await;
                    sets.push((name, 0));
                }
                pool.sync().await.unwrap();
                pool.scrub().await.unwrap();
                for _ in 0..4 {
                    world::sleep(Duration::from_micros(rng.below(1500))).await;
                    let at = rng.below(sets.len() as u64) as usize;
                    match rng.below(6) {
                        0..3 if sets.len() > 1 => {
                            let (name, _) = sets.remove(at);
                            let names = vec![name];
                            let spec = DestroySpec { names, recursive: true, ..DestroySpec::default() };
                            pool.destroy_datasets(spec).await.unwrap();
                        }
                        3 => fill(&pool, &sets[at].0, 100 * next + round).await,
                        _ => {
                            let (name, snapshots) = &mut sets[at];
                            *snapshots += 1;
                            pool.snapshot(vec![format!("{name}@s{snapshots}")], Vec::new()).await.unwrap();
                        }
                    }
                }
                pool.scrub_wait().await;
                let scan = pool.scan_status().unwrap();
                let told = pool.problems();
                assert_eq!((scan.state, scan.errors), (ScanState::Finished, 0), "seed {seed}: {told:?}");
                assert!(told.is_empty(), "seed {seed}, round {round}: {told:?}");
                let errors = pool.data_errors().await;
                assert!(errors.errors.is_empty(), "seed {seed}, round {round}: {errors:?}");
            }
            verify(&pool).await;
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_dataset_is_gone_when_its_object_is_something_else() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(31, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, BLOCK).await;
        fill(&pool, VOLUME, 1).await;
        let id = pool.dsl().find(VOLUME).await.unwrap().id;
        let set = walk::dataset_set(&pool, id).await.unwrap().unwrap();
        assert_eq!(walk::root_of(&pool, &set).await.unwrap().as_ref(), Some(&set.root));
        let spec = DestroySpec { names: vec![VOLUME.into()], ..DestroySpec::default() };
        pool.destroy_datasets(spec).await.unwrap();
        let kind = || async { pool.mos().object(id).await.map(|object| object.attrs().bonus_kind) };
        assert!(kind().await.is_err());
        let (mut others, mut datasets) = (0, 0);
        for number in 0..200 {
            assert_eq!(walk::root_of(&pool, &set).await.unwrap(), None);
            match kind().await {
                Err(_) => {}
                Ok(ObjectType::DSL_DATASET) => datasets += 1,
                Ok(_) => {
                    others += 1;
                    assert_eq!(walk::root_now(&pool, set.id).await.unwrap(), None);
                    let at = Bookmark { object: ObjectId(1), level: 0, blkid: 0, ..Bookmark::root(set.id) };
                    assert!(!walk::is_in_use(&pool, at, &set.root).await.unwrap());
                }
            }
            let name = format!("tank@s{number}");
            pool.snapshot(vec![name.clone()], Vec::new()).await.unwrap();
            if number % 3 > 0 {
                let spec = DestroySpec { names: vec![name], ..DestroySpec::default() };
                pool.destroy_datasets(spec).await.unwrap();
            }
        }
        assert!(others > 0 && datasets > 0, "its number was used by {others} others and {datasets} datasets");
        pool.export().await.unwrap();
    });
}
