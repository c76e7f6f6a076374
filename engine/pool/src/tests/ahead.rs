//! Reading ahead: small blocks that lie side by side come together, no block answers for another, and what is only a guess
//! counts for nothing.

use super::heal::{block, place};
use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise};
use crate::Pool;
use dsl::props::{Prop, PropName, Value};
use sim::Fault;
use std::sync::Arc;
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Kind, Result};
use vdev::{Layout, Priority};
use world::Buf;

const SIZE: usize = 4 << 20;
const BLOCKS: u64 = SIZE as u64 / BLOCK;

/// Block after block, as a client in order asks.
async fn in_order(pool: &Pool) -> Vec<Result<Vec<u8>>> {
    let volume = pool.open_volume(VOLUME).await.unwrap();
    let mut blocks = Vec::new();
    for blkid in 0..BLOCKS {
        let read = volume.read(blkid * BLOCK, BLOCK).await;
        blocks.push(read.map(|parts| parts.iter().flat_map(|part| part.to_vec()).collect()));
    }
    blocks
}

/// Operations that were read ahead at the devices: alone, and with others.
fn ahead(pool: &Pool) -> (u64, u64) {
    let classes = pool.tree().leaves().into_iter().map(|leaf| {
        let class = leaf.stats.snapshot().classes[Priority::AsyncRead.index()].clone();
        (class.individual.iter().sum::<u64>(), class.aggregated.iter().sum::<u64>())
    });
    classes.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
}

async fn cold(rig: &Rig, seed: u64) -> Pool {
    let pool = rig.create().await;
    make_volume(&pool, VOLUME, SIZE as u64).await;
    fill(&pool, VOLUME, seed).await;
    pool.export().await.unwrap();
    drop(pool);
    rig.open(false).await.unwrap()
}

/// Each block of 8K was a task, a place in the queue and a hand-over by itself.
#[test]
fn neighbours_are_read_with_one_operation_of_a_device_that_stands_alone() {
    for rig in Rig::all() {
        let (own, stands_alone) = (rig.clone(), rig.redundancy() == 0);
        rig.run(1, async move {
            let pool = cold(&own, 1).await;
            let read = in_order(&pool).await;
            let read: Vec<u8> = read.into_iter().flat_map(Result::unwrap).collect();
            assert!(read == noise(1, SIZE));
            let (alone, together) = ahead(&pool);
            assert!(alone + together > 0, "it was read ahead");
            if stands_alone {
                assert!(alone + together <= BLOCKS / 8, "{alone} alone, {together} with others");
            }
            let errors: u64 = pool.tree().leaves().iter().map(|leaf| leaf.errors().checksum).sum();
            assert_eq!(errors, 0);
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn a_bad_block_among_neighbours_is_the_only_one_that_fails_and_is_counted() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = cold(&own, 3).await;
        let bad = [BLOCKS / 2, BLOCKS / 2 + 1, BLOCKS - 20];
        for blkid in bad {
            let (_, bp) = block(&pool, blkid).await;
            own.disks.get(own.path(0)).unwrap().poke(place(&bp), &[7; 512]);
        }
        let all = noise(3, SIZE);
        for (blkid, read) in in_order(&pool).await.into_iter().enumerate() {
            if bad.contains(&(blkid as u64)) {
                assert_eq!(read.unwrap_err().kind(), Kind::Checksum, "block {blkid}");
            } else {
                let at = blkid * BLOCK as usize;
                assert!(read.unwrap() == all[at..at + BLOCK as usize], "block {blkid}");
            }
        }
        let errors = pool.tree().leaves()[0].errors();
        assert!(errors.checksum >= bad.len() as u64 && errors.read == 0, "{errors:?}");
        pool.export().await.unwrap();
    });
}

/// Opened cold, with a volume that is full.
async fn cold_tuned(rig: &Rig, size: u64, tunables: &Arc<Tunables>) -> Pool {
    let pool = rig.create().await;
    pool.export().await.unwrap();
    drop(pool);
    let pool = rig.open_tuned(false, tunables.clone()).await.unwrap();
    make_volume(&pool, VOLUME, size).await;
    fill(&pool, VOLUME, 1).await;
    pool.export().await.unwrap();
    drop(pool);
    rig.open_tuned(false, tunables.clone()).await.unwrap()
}

/// Reads blocks as a client that needs some time for each; answers how many it had to wait for.
async fn waits(pool: &Pool, blocks: impl Iterator<Item = u64>) -> u64 {
    let volume = pool.open_volume(VOLUME).await.unwrap();
    let before = pool.pipeline().cache().stats().data.demand_misses;
    for blkid in blocks {
        volume.read(blkid * BLOCK, BLOCK).await.unwrap();
        world::sleep(Duration::from_millis(4)).await;
    }
    pool.pipeline().cache().stats().data.demand_misses - before
}

#[test]
fn a_cold_volume_read_in_any_constant_way_is_waited_for_seldom() {
    const ALL: u64 = (8 << 20) / BLOCK;
    let ways: [(&str, Vec<u64>); 4] = [
        ("forward", (0..ALL).collect()),
        ("backward", (0..ALL).rev().collect()),
        ("in steps", (0..ALL).step_by(8).collect()),
        ("in steps back", (0..ALL).rev().step_by(8).collect()),
    ];
    for (way, blocks) in ways {
        let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
        let own = rig.clone();
        rig.run(5, async move {
            let pool = cold_tuned(&own, ALL * BLOCK, &Tunables::new()).await;
            let slow = Fault { delay: Duration::from_millis(5), ..Fault::default() };
            own.disks.get(own.path(0)).unwrap().set_fault(slow);
            let reads = blocks.len() as u64;
            let waits = waits(&pool, blocks.into_iter()).await;
            assert!(waits * 5 < reads, "{way}: {waits} waits for {reads} reads");
            let data = pool.pipeline().cache().stats().data;
            assert!(data.prefetched_used + data.prefetched_late > reads / 2, "{way}: {data:?}");
            own.disks.get(own.path(0)).unwrap().set_fault(Fault::default());
            pool.export().await.unwrap();
        });
    }
}

#[test]
fn what_is_read_ahead_is_what_tunables_and_the_property_let_be() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(6, async move {
        let tunables = Tunables::new();
        // 32 pointers in an indirect block, so that there are many.
        tunables.set(Tunable::DefaultIndirectShift, 12).unwrap();
        let pool = cold_tuned(&own, SIZE as u64, &tunables).await;
        let set = |value| {
            let name = PropName::Native(Prop::Prefetch);
            pool.change("set", move |pool, tx| async move {
                pool.dsl().set(&tx, VOLUME, &name, &Value::Number(value)).await
            })
        };
        let ahead = || {
            let (cache, volume) = (pool.pipeline().cache().clone(), pool.open_volume(VOLUME));
            async move {
                let volume = volume.await.unwrap();
                cache.clear();
                let told = || {
                    let stats = cache.stats();
                    (stats.data.prefetch_misses, stats.metadata.prefetch_misses)
                };
                let before = told();
                for blkid in 0..BLOCKS {
                    volume.read(blkid * BLOCK, BLOCK).await.unwrap();
                }
                (told().0 - before.0, told().1 - before.1)
            }
        };
        let usual = ahead().await;
        assert!(usual.0 > BLOCKS / 2 && usual.1 > 0, "{usual:?}");
        for (tunable, value) in [(Tunable::PrefetchDisable, 1), (Tunable::FetchMaxStreams, 0)] {
            let usually = tunables.get(tunable);
            tunables.set(tunable, value).unwrap();
            assert_eq!(ahead().await, (0, 0), "{tunable}={value}");
            tunables.set(tunable, usually).unwrap();
        }
        tunables.set(Tunable::FetchMaxDistance, 0).unwrap();
        assert_eq!(ahead().await.0, 0, "zfetch_max_distance=0");
        tunables.set(Tunable::FetchMaxDistance, 64 << 20).unwrap();
        set(0).await.unwrap();
        assert_eq!(ahead().await, (0, 0), "prefetch=none");
        set(1).await.unwrap();
        let metadata = ahead().await;
        assert!(metadata.0 == 0 && metadata.1 > 0, "prefetch=metadata: {metadata:?}");
        set(2).await.unwrap();
        assert!(ahead().await.0 > BLOCKS / 2, "prefetch=all");
        pool.export().await.unwrap();
    });
}

/// A full host, or a place that was given to another block: what is not as it should be is met by the request that needs it.
#[test]
fn a_bad_block_that_is_only_read_ahead_counts_for_nothing() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(7, async move {
        let pool = cold(&own, 3).await;
        let bad = BLOCKS / 2;
        let (_, bp) = block(&pool, bad).await;
        own.disks.get(own.path(0)).unwrap().poke(place(&bp), &[7; 512]);
        let volume = pool.open_volume(VOLUME).await.unwrap();
        for blkid in 0..bad {
            volume.read(blkid * BLOCK, BLOCK).await.unwrap();
        }
        world::sleep(Duration::from_secs(1)).await;
        assert!(pool.pipeline().cache().stats().data.prefetch_misses > bad, "it was read ahead");
        let errors = || pool.tree().leaves()[0].errors().checksum;
        assert_eq!((errors(), pool.pipeline().sick().lost_count()), (0, (0, 0)));
        assert_eq!(volume.read(bad * BLOCK, BLOCK).await.unwrap_err().kind(), Kind::Checksum);
        assert!(errors() > 0, "that is an error");
        drop(volume);
        pool.export().await.unwrap();
    });
}

#[test]
fn nothing_is_read_ahead_of_while_the_pool_is_suspended() {
    let rig = Rig::new(Layout::Stripe, 1, 96 << 20);
    let own = rig.clone();
    rig.run(8, async move {
        let pool = cold(&own, 4).await;
        pool.set_property("failmode", "continue").await.unwrap();
        make_volume(&pool, "tank/other", SIZE as u64).await;
        pool.sync().await.unwrap();
        let full = Fault { full: true, ..Fault::default() };
        own.disks.get(own.path(0)).unwrap().set_fault(full);
        let other = pool.open_volume("tank/other").await.unwrap();
        let written = other.write(0, Buf::copy_from(&noise(5, 1 << 20))).await;
        assert!(written.is_err() || other.flush().await.is_err());
        assert!(pool.suspended().is_some());
        drop(other);
        let data = || pool.pipeline().cache().stats().data;
        let before = data().prefetch_misses;
        assert!(in_order(&pool).await.into_iter().all(|read| read.is_ok()), "what is there can be read");
        assert_eq!(data().prefetch_misses, before);
        _ = pool.close().await;
    });
}
