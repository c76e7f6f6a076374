//! Scrubs of the error log: what they read, repair and take out of it, and what stands in their way.

use super::heal::{block, place};
use super::scrub::end_somehow;
use super::{Rig, VOLUME, fill, make_volume, verify};
use crate::{Offline, Pool};
use dsl::error_log::ErrorLog;
use ondisk::dsl::{ErrorScrubPhys, ScanFunc, ScanState};
use ondisk::mos::directory;
use std::ops::Range;
use std::time::Duration;
use units::Kind;
use vdev::Layout;

const SIZE: u64 = 4 << 20;
/// More than one batch.
const MANY: u64 = 200;

async fn with_volume(rig: &Rig) -> Pool {
    let pool = rig.create_as("openzfs-2.2").await;
    make_volume(&pool, VOLUME, SIZE).await;
    fill(&pool, VOLUME, 1).await;
    pool.sync().await.unwrap();
    pool
}

/// Overwrites blocks of the volume on some devices. Answers what was there: device, place, bytes.
async fn damage(rig: &Rig, pool: &Pool, blocks: Range<u64>, on: Range<usize>) -> Vec<(usize, u64, Vec<u8>)> {
    let mut whole = Vec::new();
    for blkid in blocks {
        let (_, bp) = block(pool, blkid).await;
        for device in on.clone() {
            let disk = rig.disks.get(rig.path(device)).unwrap();
            let len = bp.psize().0 as usize;
            whole.push((device, place(&bp), disk.peek(place(&bp), len)));
            disk.poke(place(&bp), &super::noise(blkid + 7, len));
        }
    }
    whole
}

fn restore(rig: &Rig, whole: &[(usize, u64, Vec<u8>)]) {
    for (device, at, bytes) in whole {
        rig.disks.get(rig.path(*device)).unwrap().poke(*at, bytes);
    }
}

async fn scrub(pool: &Pool) {
    pool.scrub().await.unwrap();
    pool.scrub_wait().await;
}

async fn error_scrub(pool: &Pool) {
    pool.error_scrub().await.unwrap();
    pool.error_scrub_wait().await;
}

/// State, looked at, still to be looked at, errors.
fn told(pool: &Pool) -> (ScanState, u64, u64, u64) {
    let status = pool.error_scrub_status().unwrap();
    (status.state, status.examined, status.to_examine, status.errors)
}

fn bytes_read(pool: &Pool) -> u64 {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().read.bytes).sum()
}

/// Begins one of many entries, and stops where some of them were looked at and not all.
async fn half_way(pool: &Pool) {
    pool.error_scrub().await.unwrap();
    while pool.error_scrub_status().unwrap().examined == 0 {
        world::sleep(Duration::from_micros(50)).await;
    }
}

#[test]
fn what_can_be_had_is_repaired_and_leaves_the_log_and_the_rest_stays_in_it() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let rig = own;
        let pool = with_volume(&rig).await;
        error_scrub(&pool).await;
        assert_eq!(pool.error_scrub_status(), None, "nothing is in the log, so nothing was done");
        let whole = damage(&rig, &pool, 10..15, 0..2).await;
        scrub(&pool).await;
        assert_eq!((pool.scan_status().unwrap().errors, pool.data_error_count()), (5, 5));
        // The good bytes of two blocks are back, of one device each.
        restore(&rig, &whole[..1]);
        restore(&rig, &whole[3..4]);
        let before = bytes_read(&pool);
        error_scrub(&pool).await;
        assert!(bytes_read(&pool) - before < SIZE / 8, "only what is in the log was read");
        assert_eq!(told(&pool), (ScanState::Finished, 5, 0, 3), "{:?}", pool.problems());
        assert_eq!(pool.data_error_count(), 3);
        let lost = pool.data_errors().await;
        assert_eq!(lost.errors[0].ranges, [(12 * super::BLOCK, 3 * super::BLOCK)]);
        // A block that was written anew is no more.
        let volume = pool.open_volume(VOLUME).await.unwrap();
        volume.write(12 * super::BLOCK, world::Buf::copy_from(&[7; super::BLOCK as usize])).await.unwrap();
        volume.flush().await.unwrap();
        drop(volume);
        restore(&rig, &whole[6..]);
        error_scrub(&pool).await;
        assert_eq!((told(&pool), pool.data_error_count()), ((ScanState::Finished, 3, 0, 0), 0));
        assert_eq!(verify(&pool).await.repairable, 0, "both sides have all");
        pool.export().await.unwrap();
        drop(pool);
        let pool = rig.open(true).await.unwrap();
        assert_eq!((told(&pool), pool.data_error_count()), ((ScanState::Finished, 3, 0, 0), 0));
    });
}

/// Each entry is looked at once, however often it pauses and the pool is opened again.
#[test]
fn it_pauses_goes_on_where_it_was_and_stops() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(2, async move {
        let rig = own;
        let pool = with_volume(&rig).await;
        assert_eq!(pool.scrub_stop().await.unwrap_err().kind(), Kind::Invalid);
        let whole = damage(&rig, &pool, 0..MANY, 0..1).await;
        scrub(&pool).await;
        assert_eq!(pool.data_error_count(), MANY);
        half_way(&pool).await;
        assert_eq!(pool.error_scrub().await.unwrap_err().kind(), Kind::Busy);
        pool.scrub_pause().await.unwrap();
        let paused = pool.error_scrub_status().unwrap();
        assert!(paused.paused.is_some() && (1..MANY).contains(&paused.examined), "{paused:?}");
        assert_eq!(paused.examined + paused.to_examine, MANY);
        assert_eq!(pool.scrub().await.unwrap_err().kind(), Kind::Busy, "no scrub beside it");
        // What was looked at already is good now, too late.
        restore(&rig, &whole);
        pool.export().await.unwrap();
        drop(pool);
        let pool = rig.open(false).await.unwrap();
        world::sleep(Duration::from_secs(60)).await;
        let status = pool.error_scrub_status().unwrap();
        assert!(status.paused.is_some() && status.examined == paused.examined, "it still pauses: {status:?}");
        error_scrub(&pool).await;
        assert_eq!(told(&pool), (ScanState::Finished, MANY, 0, paused.examined));
        assert_eq!(pool.data_error_count(), paused.examined);
        error_scrub(&pool).await;
        assert_eq!((told(&pool).1, pool.data_error_count()), (paused.examined, 0));

        damage(&rig, &pool, 0..MANY, 0..1).await;
        scrub(&pool).await;
        half_way(&pool).await;
        pool.scrub_stop().await.unwrap();
        assert_eq!(pool.error_scrub_status().unwrap().state, ScanState::Canceled);
        assert_eq!(pool.data_error_count(), MANY);
        // One that does not pause goes on with the pool.
        half_way(&pool).await;
        pool.export().await.unwrap();
        drop(pool);
        let pool = rig.open(false).await.unwrap();
        pool.error_scrub_wait().await;
        assert_eq!(told(&pool), (ScanState::Finished, MANY, 0, MANY));
        pool.export().await.unwrap();
    });
}

/// As of scrubs: what has read that one is over, is stopped or pauses may ask for the next.
#[test]
fn the_next_one_begins_as_soon_as_the_status_tells_that_the_one_before_is_over() {
    for seed in 0..10 {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(seed, async move {
            let pool = with_volume(&own).await;
            damage(&own, &pool, 0..MANY, 0..1).await;
            scrub(&pool).await;
            let mut rng = sim::Rng::new(seed);
            for turn in 0..20 {
                let begun = match rng.below(4) {
                    0 if !pool.is_error_scrubbing() => pool.scrub().await,
                    _ => pool.error_scrub().await,
                };
                begun.unwrap_or_else(|e| panic!("turn {turn} of seed {seed}: {e}"));
                let other = end_somehow(&pool, &mut rng);
                loop {
                    let scan = pool.scan_status().unwrap();
                    let errors = pool.error_scrub_status();
                    let goes =
                        errors.is_some_and(|e| e.state == ScanState::ErrorScrubbing && e.paused.is_none());
                    if !goes && scan.state != ScanState::Scanning {
                        break;
                    }
                    if scan.paused.is_some() {
                        // No scrub of errors beside it, though it pauses.
                        pool.scrub().await.unwrap();
                    }
                    world::sleep(Duration::from_nanos(1 + rng.below(20_000))).await;
                }
                if rng.below(2) == 0 {
                    other.await;
                }
            }
            pool.error_scrub_wait().await;
            pool.export().await.unwrap();
        });
    }
}

/// OpenZFS has a cursor of its own, and what it met again is in the other log by then.
#[test]
fn what_openzfs_has_begun_is_looked_at_from_the_start_with_both_logs() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(3, async move {
        let rig = own;
        let pool = with_volume(&rig).await;
        let whole = damage(&rig, &pool, 0..6, 0..1).await;
        scrub(&pool).await;
        let half = |pool: Pool, tx: std::sync::Arc<dmu::Tx>| async move {
            let phys = ErrorScrubPhys {
                func: ScanFunc::ErrorScrub,
                state: ScanState::ErrorScrubbing,
                cursor: 0x1234_5678_0000_0000,
                start_time: 1_795_000_000,
                to_examine: 2,
                examined: 4,
                ..Default::default()
            };
            let directory = pool.dsl().core().directory();
            directory.update(&tx, directory::ERROR_SCRUB, &phys.to_words()[..]).await?;
            let all = pool.dsl().logged_errors(ErrorLog::Last, 6).await?.errors;
            pool.dsl().unlog_errors(&tx, &all[..3]).await?;
            pool.dsl().log_errors(&tx, ErrorLog::Scrub, &all[..4]).await
        };
        pool.change("leave it half-way", half).await.unwrap();
        pool.export().await.unwrap();
        drop(pool);
        restore(&rig, &whole[..5]);
        let pool = rig.open(false).await.unwrap();
        pool.error_scrub_wait().await;
        assert_eq!(told(&pool), (ScanState::Finished, 6, 0, 1), "{:?}", pool.problems());
        assert_eq!(pool.data_error_count(), 1);
        pool.export().await.unwrap();
    });
}

#[test]
fn it_stands_back_for_scans_and_needs_births_in_the_log() {
    let rig = Rig::new(Layout::Mirror, 2, 96 << 20);
    let own = rig.clone();
    rig.run(4, async move {
        let rig = own;
        let pool = with_volume(&rig).await;
        damage(&rig, &pool, 0..MANY, 0..2).await;
        scrub(&pool).await;
        pool.scrub().await.unwrap();
        pool.scrub_pause().await.unwrap();
        assert_eq!(pool.error_scrub().await.unwrap_err().kind(), Kind::Busy, "a scrub that pauses");
        pool.scrub_stop().await.unwrap();
        // A resilver begins meanwhile: it is called off.
        let guid = pool.tree().leaves()[1].guid();
        pool.offline(guid, Offline::Lasting).await.unwrap();
        fill(&pool, VOLUME, 2).await;
        damage(&rig, &pool, 0..MANY, 0..1).await;
        scrub(&pool).await;
        half_way(&pool).await;
        pool.scrub_pause().await.unwrap();
        pool.online(guid).await.unwrap();
        while pool.is_resilvering() {
            if pool.scan_status().unwrap().state == ScanState::Scanning {
                assert_eq!(pool.error_scrub().await.unwrap_err().kind(), Kind::Busy);
            }
            world::sleep(Duration::from_millis(1)).await;
        }
        error_scrub(&pool).await;
        assert_eq!(pool.error_scrub_status().unwrap().state, ScanState::Finished);
        // One that is going is called off by a resilver that begins.
        pool.offline(guid, Offline::Lasting).await.unwrap();
        fill(&pool, VOLUME, 3).await;
        damage(&rig, &pool, 0..SIZE / super::BLOCK, 0..1).await;
        scrub(&pool).await;
        pool.error_scrub().await.unwrap();
        pool.online(guid).await.unwrap();
        pool.error_scrub_wait().await;
        assert_eq!(pool.error_scrub_status().unwrap().state, ScanState::Canceled);
        pool.export().await.unwrap();
    });
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(5, async move {
        let pool = own.create_as("openzfs-2.1-linux").await;
        let refused = pool.error_scrub().await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Unsupported);
        assert!(refused.to_string().contains("zpool set feature@head_errlog=enabled tank"), "{refused}");
        pool.export().await.unwrap();
    });
}
