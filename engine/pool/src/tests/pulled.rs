//! Devices on a bad day: one that comes and goes every second, the wrong one pulled, one that grows slower.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise, read_all, verify};
use crate::Pool;
use sim::{Fault, Rng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use vdev::{Layout, State};
use world::{Buf, timeout};

const SIZE: u64 = 8 << 20;
const SOON: Duration = Duration::from_secs(600);

fn plug_in(rig: &Rig, i: usize) {
    rig.disks.get(rig.path(i)).unwrap().set_fault(Fault::default());
}

fn unplug(rig: &Rig, i: usize) {
    rig.disks.get(rig.path(i)).unwrap().unplug();
}

async fn prepared(rig: &Rig) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE).await;
    fill(&pool, VOLUME, 1).await;
    pool.sync().await.unwrap();
    pool
}

fn misses(pool: &Pool) -> usize {
    pool.tree().leaves().iter().filter(|leaf| leaf.missing().is_any()).count()
}

/// Waits until every device has everything, and looks: a scrub finds nothing to do.
async fn whole_again(pool: &Pool) {
    for _ in 0..100 {
        if misses(pool) == 0 && pool.report().health.state == State::Online {
            break;
        }
        world::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!((misses(pool), pool.report().health.state), (0, State::Online), "{:?}", pool.problems());
    assert_eq!(verify(pool).await.repairable, 0);
}

/// Each of the other devices that can be done without is taken away, and what is read is what was written last.
async fn each_can_go(rig: &Rig, expected: &[u8]) {
    for i in 0..rig.count {
        unplug(rig, i);
        let pool = rig.open(true).await.unwrap();
        assert!(read_all(&pool, VOLUME).await.unwrap() == expected, "without device {i}");
        pool.close().await.unwrap();
        plug_in(rig, i);
    }
}

/// Writes, flushes and reads at random places; every request is answered in time, and every read with what was written last.
async fn client(pool: Pool, end: Arc<AtomicBool>) -> Vec<u8> {
    let (mut rng, mut expected) = (Rng::new(5), noise(1, SIZE as usize));
    let volume = pool.open_volume(VOLUME).await.unwrap();
    while !end.load(Relaxed) {
        let at = rng.below(SIZE / BLOCK) * BLOCK;
        let place = at as usize..(at + BLOCK) as usize;
        match rng.below(4) {
            0 => {
                let bytes = noise(rng.next_u64(), BLOCK as usize);
                timeout(SOON, volume.write(at, Buf::copy_from(&bytes))).await.expect("in time").unwrap();
                expected[place].copy_from_slice(&bytes);
            }
            1 => timeout(SOON, volume.flush()).await.expect("in time").unwrap(),
            _ => {
                let read = timeout(SOON, volume.read(at, BLOCK)).await.expect("in time").unwrap();
                assert!(read.iter().flat_map(|part| part.iter()).eq(&expected[place]), "at {at}");
            }
        }
        if rng.below(20) == 0 {
            pool.pipeline().cache().clear();
        }
        world::sleep(Duration::from_millis(rng.below(80))).await;
    }
    volume.flush().await.unwrap();
    expected
}

#[test]
fn a_device_that_comes_and_goes_every_second_costs_no_request() {
    for (layout, count) in [(Layout::Mirror, 2), (Layout::Raidz { parity: 1 }, 3)] {
        let rig = Rig::new(layout, count, 96 << 20);
        let own = rig.clone();
        let expected = rig.run(1, async move {
            let pool = prepared(&own).await;
            let end = Arc::new(AtomicBool::new(false));
            let client = world::spawn(client(pool.clone(), end.clone()));
            for round in 0..60 {
                unplug(&own, 1);
                world::sleep(Duration::from_secs(1)).await;
                plug_in(&own, 1);
                // Every now and then it is taken back before it goes again.
                if round % 5 == 0 {
                    pool.clear(None).await.unwrap();
                }
                world::sleep(Duration::from_secs(1)).await;
            }
            assert!(misses(&pool) > 0 || pool.report().vdevs.children[0].children[1].errors.write > 0);
            end.store(true, Relaxed);
            let expected = client.await;
            assert_eq!(pool.suspended(), None);
            pool.clear(None).await.unwrap();
            whole_again(&pool).await;
            pool.export().await.unwrap();
            expected
        });
        let own = rig.clone();
        rig.run(2, async move { each_can_go(&own, &expected).await });
    }
}

/// What was flushed is there when the device is plugged in again, and nothing that is read in between is old.
#[test]
fn the_wrong_device_pulled_in_a_resilver_costs_time_and_nothing_else() {
    for (layout, count) in
        [(Layout::Mirror, 2), (Layout::Raidz { parity: 1 }, 3), (Layout::Raidz { parity: 2 }, 4)]
    {
        let rig = Rig::new(layout, count, 96 << 20);
        let is_spared = rig.redundancy() > 1;
        let own = rig.clone();
        rig.run(1, async move {
            let pool = prepared(&own).await;
            unplug(&own, 0);
            fill(&pool, VOLUME, 2).await;
            pool.sync().await.unwrap();
            plug_in(&own, 0);
            pool.clear(None).await.unwrap();
            for _ in 0..100_000 {
                if pool.scan_status().is_some_and(|scan| scan.repaired > 0) {
                    break;
                }
                world::sleep(Duration::from_micros(50)).await;
            }
            assert!(misses(&pool) > 0, "the resilver is not over");
            unplug(&own, 1);

            let volume = pool.open_volume(VOLUME).await.unwrap();
            let bytes = noise(3, BLOCK as usize);
            volume.write(0, Buf::copy_from(&bytes)).await.unwrap();
            let mut flush = Box::pin(world::spawn(async move { volume.flush().await }));
            let flushed = timeout(SOON, &mut flush).await;
            pool.pipeline().cache().clear();
            let mut expected = noise(2, SIZE as usize);
            expected[..BLOCK as usize].copy_from_slice(&bytes);
            // The device that is being made whole takes what is new, and may be enough for that; what is old it may lack.
            let read = timeout(SOON, read_all(&pool, VOLUME)).await;
            if is_spared {
                assert!(flushed.is_some(), "a second device can be done without");
                assert!(read.expect("it is answered").unwrap() == expected);
            } else {
                assert!(
                    read.is_none_or(|read| read.is_err() || read.unwrap() == expected),
                    "nothing old is read"
                );
            }
            let is_flushed = flushed.is_some();
            flushed.unwrap_or(Ok(())).unwrap();
            assert!(is_flushed || pool.suspended().is_some());
            plug_in(&own, 1);
            pool.clear(None).await.unwrap();
            if !is_flushed {
                timeout(SOON, flush).await.expect("it goes on").unwrap();
            }
            assert!(read_all(&pool, VOLUME).await.unwrap() == expected);
            whole_again(&pool).await;
            pool.export().await.unwrap();
            each_can_go(&own, &expected).await;
        });
    }
}

/// Reads go to the devices that answer; what waited too long is counted, so that `zpool status -s` names the device, and
/// once it is as it was it is read again.
#[test]
fn reads_avoid_a_device_that_grows_slower() {
    for (layout, count) in
        [(Layout::Mirror, 2), (Layout::Raidz { parity: 1 }, 3), (Layout::Raidz { parity: 2 }, 5)]
    {
        let rig = Rig::new(layout, count, 96 << 20);
        let own = rig.clone();
        rig.run(3, async move {
            let pool = prepared(&own).await;
            let volume = pool.open_volume(VOLUME).await.unwrap();
            let reads = |n: u64| {
                let (pool, volume) = (&pool, &volume);
                async move {
                    let (before, mut rng) = (world::now(), Rng::new(n));
                    for _ in 0..n {
                        // Each from a device.
                        pool.pipeline().cache().clear();
                        drop(volume.read(rng.below(SIZE / BLOCK) * BLOCK, BLOCK).await.unwrap());
                    }
                    world::now().since(before) / n as u32
                }
            };
            let avoided = || -> Vec<bool> {
                pool.report().vdevs.children[0].children.iter().map(|child| child.is_avoided).collect()
            };
            let second: Vec<bool> = (0..count).map(|i| i == 1).collect();
            reads(200).await;
            assert!(!avoided().contains(&true));
            for delay in [64, 1_000, 8_000, 40_000].map(Duration::from_millis) {
                own.disks.get(own.path(1)).unwrap().set_fault(Fault { delay, ..Fault::default() });
                let each = reads(400).await;
                assert!(
                    each < Duration::from_millis(1) + delay / 15,
                    "{layout:?}: {each:?} when one takes {delay:?}"
                );
                assert_eq!(avoided(), second, "{layout:?}");
                let each = reads(400).await;
                assert!(each < Duration::from_millis(2), "{layout:?}: {each:?} once it is known");
            }
            fill(&pool, VOLUME, 1).await;
            pool.sync().await.unwrap();
            let devices = &pool.report().vdevs.children[0].children;
            assert!(devices[0].slow_operations == 0 && devices[1].slow_operations > 0, "{devices:?}");
            plug_in(&own, 1);
            world::sleep(Duration::from_secs(601)).await;
            let before = pool.report().vdevs.children[0].children[1].stats.read.ops;
            reads(400).await;
            let more = pool.report().vdevs.children[0].children[1].stats.read.ops - before;
            assert!(more > 50 && !avoided().contains(&true), "{layout:?}: it is read again, {more} times");
            drop(volume);
            whole_again(&pool).await;
            pool.export().await.unwrap();
        });
    }
}
