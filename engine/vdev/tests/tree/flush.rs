//! Flushes: none that is not needed, none left out that is.

use crate::common::*;
use futures_util::future::join_all;
use sim::{Disks, Fault, Model};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::Kind;
use vdev::{Layout, OpenOptions, Priority, Top, Tree};
use world::{Buf, DiskKind, OpenMode};

const BLOCK: u64 = 4096;

async fn write(top: &Arc<Top>, block: u64, data: &Buf) {
    top.write(block * BLOCK, data.clone(), Priority::SyncWrite).await.unwrap();
}

fn block(seed: u64) -> Buf {
    random_block(&mut sim::Rng::new(seed), BLOCK as usize)
}

/// How many flushes the leaves were asked for, and how many they did.
fn flushes(tree: &Tree) -> Vec<(u64, u64)> {
    tree.leaves().iter().map(|l| l.stats.snapshot()).map(|s| (s.flushes_asked, s.flushes)).collect()
}

async fn two_tops(tunables: &Arc<Tunables>) -> Arc<Tree> {
    let tree = create_of(&[group(Layout::Stripe, 0, 2)], 12).await;
    let options = OpenOptions { tunables: tunables.clone(), ..OpenOptions::new(OpenMode::ReadWrite) };
    let spec = tree.spec();
    drop(tree);
    Tree::open(spec, options).await.unwrap()
}

#[test]
fn only_what_was_written_is_flushed_and_only_once() {
    run(&disks(2), 1, async {
        let tree = two_tops(&Tunables::new()).await;
        let tops = tree.tops();
        write(&tops[0], 0, &block(1)).await;
        for _ in 0..3 {
            join_all(tops.iter().map(|t| t.flush())).await;
        }
        assert_eq!(flushes(&tree), [(3, 1), (3, 0)]);
    });
}

#[test]
fn waiters_share_the_flush_that_begins_after_their_writes() {
    let disks = Disks::new();
    disks.add("/d/0", 80 * MIB, Model { flush: Duration::from_millis(10), ..Model::NVME });
    run(&disks, 2, async {
        let tree = create(Layout::Stripe, 1, 12).await;
        let top = top(&tree);
        let before = flushes(&tree)[0].1;
        let waiters: Vec<_> = (0..30u64)
            .map(|i| {
                let top = top.clone();
                world::spawn(async move {
                    // All but the first write and ask while the first flush is under way.
                    world::sleep(Duration::from_micros(i * 100)).await;
                    write(&top, i, &block(i)).await;
                    top.flush().await.unwrap();
                    world::now()
                })
            })
            .collect();
        let mut ends = Vec::new();
        for waiter in waiters {
            ends.push(waiter.await);
        }
        ends.dedup();
        assert_eq!(flushes(&tree)[0].1 - before, 2, "one for the first, one for all others");
        assert_eq!(ends.len(), 2);
    });
}

/// Whoever was told that his write is durable finds it after a power cut at any moment, however flushes were shared.
#[test]
fn what_a_flush_made_durable_survives_a_power_cut() {
    for seed in 0..24 {
        // No redundancy: what one flush too few loses is lost.
        let disks = disks(1);
        run(&disks, 1, async { drop(create(Layout::Stripe, 1, 12).await) });
        let promised: Arc<Mutex<Vec<u64>>> = Arc::default();
        let promises = promised.clone();
        let mut rng = sim::Rng::new(seed);
        if seed % 2 == 0 {
            disks.cut_at_flush(1 + rng.below(40));
        } else {
            disks.cut_at_write(1 + rng.below(150));
        }
        sim::run_until_cut(&disks, seed, sim::Config::default(), async move {
            let tree = reopen(OpenMode::ReadWrite).await;
            let clients = (0..4u64).map(|client| {
                let (top, promised) = (top(&tree), promised.clone());
                world::spawn(async move {
                    for i in (client..400).step_by(4) {
                        write(&top, i, &block(i)).await;
                        top.flush().await.unwrap();
                        promised.lock().unwrap().push(i);
                        world::sleep(Duration::from_micros(world::random_u64() % 300)).await;
                    }
                })
            });
            join_all(clients.collect::<Vec<_>>()).await;
        });
        disks.power_cut(seed);
        run(&disks, 2, async move {
            let tree = reopen(OpenMode::ReadOnly).await;
            let promised = std::mem::take(&mut *promises.lock().unwrap());
            for i in promised {
                let block = block(i);
                let read = top(&tree).read(i * BLOCK, block.len(), verify(&block), Priority::SyncRead).await;
                assert!(read.is_ok(), "seed {seed}: block {i} was promised");
            }
        });
    }
}

#[test]
fn a_cache_that_survives_power_cuts_is_not_flushed() {
    let disks = disks(1);
    let kind = DiskKind::Block { rotational: false, volatile_cache: false };
    disks.add("/d/1", 80 * MIB, Model { kind, ..Model::NVME });
    run(&disks, 3, async {
        let tunables = Tunables::new();
        let tree = two_tops(&tunables).await;
        let tops = tree.tops();
        let write_and_flush = async |i: u64| {
            for top in &tops {
                write(top, i, &block(i)).await;
                top.flush().await.unwrap();
            }
            flushes(&tree).iter().map(|(_, done)| *done).collect::<Vec<_>>()
        };
        assert_eq!(write_and_flush(1).await, [1, 0], "the device says so");
        tunables.set(Tunable::NoCacheFlush, 1).unwrap();
        assert_eq!(write_and_flush(2).await, [1, 0], "everybody says so");
        tunables.set(Tunable::NoCacheFlush, 0).unwrap();
        tops[0].flush().await.unwrap();
        assert_eq!(flushes(&tree)[0].1, 2, "what was not flushed then is flushed now");
        tree.leaves()[0].set_cache_is_safe(true);
        assert_eq!(write_and_flush(3).await, [2, 0], "somebody says so of this device");
        tree.leaves()[0].set_cache_is_safe(false);
        assert_eq!(write_and_flush(4).await, [3, 0], "nobody says so any more");
    });
}

#[test]
fn after_a_flush_that_failed_no_later_one_is_believed() {
    let disks = disks(1);
    let disk = disks.get("/d/0").unwrap();
    run(&disks, 4, async move {
        let tree = create(Layout::Stripe, 1, 12).await;
        let top = top(&tree);
        write(&top, 0, &block(0)).await;
        disk.set_fault(Fault { flush_errors_ppm: 1_000_000, ..Fault::default() });
        // Nothing waits for how it ends; it must be known all the same.
        let impatient = world::timeout(Duration::from_nanos(1), top.flush()).await;
        assert!(impatient.is_none());
        world::sleep(Duration::from_millis(100)).await;
        disk.set_fault(Fault::default());
        let error = top.flush().await.unwrap_err();
        assert!(error.to_string().contains("an earlier flush failed"), "{error}");
        assert!(tree.commit(&commit(5, false)).await.is_err());
        assert_eq!(tree.clear(POOL, None).await.unwrap().len(), 0);
        top.flush().await.unwrap();
        tree.commit(&commit(6, false)).await.unwrap();
    });
}

/// The only copy of a block that one side of a mirror missed must not be lost by the other side's cache.
#[test]
fn a_lost_flush_and_a_missed_write_are_too_much_for_one_copy() {
    for missed in [false, true] {
        let disks = disks(2);
        let [a, b] = ["/d/0", "/d/1"].map(|d| disks.get(d).unwrap());
        run(&disks, 5, async move {
            let tree = create(Layout::Mirror, 2, 12).await;
            tree.set_txg(units::Txg(5));
            if missed {
                a.set_fault(Fault { write_errors_ppm: 1_000_000, ..Fault::default() });
                write(&top(&tree), 0, &block(0)).await;
                a.set_fault(Fault::default());
            }
            write(&top(&tree), 1, &block(1)).await;
            b.set_fault(Fault { flush_errors_ppm: 1_000_000, ..Fault::default() });
            let flushed = top(&tree).flush().await.map_err(|e| e.kind());
            assert_eq!(flushed, if missed { Err(Kind::Io) } else { Ok(()) });
        });
    }
}
