//! A log over devices that forget, in the simulator: what a crash would leave is read at any moment, and compared.

mod world_of_one;

use dmu::SyncMode;
use sim::Rng;
use tunables::Tunable;
use units::{Error, Kind, Txg};
use world_of_one::{BLOCK, BLOCKS, Rig, Trouble};

/// Writes, trims and commits at random; meanwhile another task imagines crashes.
fn torture(seed: u64, trouble: Trouble) {
    Rig::run(seed, trouble, move |rig| async move {
        let watcher = {
            let rig = rig.clone();
            world::spawn(async move {
                let mut rng = Rng::new(seed ^ 77);
                while !rig.is_over() {
                    world::sleep(std::time::Duration::from_micros(rng.below(900))).await;
                    rig.crash(&mut rng);
                    if rng.below(20) == 0 {
                        rig.txgs.sync().await.unwrap();
                    }
                }
            })
        };
        let mut rng = Rng::new(seed);
        for step in 0..250 {
            match rng.below(10) {
                0..=5 => {
                    let at = rng.below(BLOCKS * BLOCK / 512 - 1) * 512;
                    let most = if rng.below(6) == 0 { 400 } else { 20 };
                    let len = ((1 + rng.below(most)) * 512).min(BLOCKS * BLOCK - at);
                    rig.write(at, vec![step as u8 | 1; len as usize]).await;
                }
                6 => {
                    let first = rng.below(BLOCKS);
                    rig.trim(first, 1 + rng.below(BLOCKS - first)).await;
                }
                7 => world::sleep(std::time::Duration::from_micros(rng.below(3000))).await,
                _ => rig.commit().await,
            }
            if rng.below(30) == 0 {
                rig.txgs.sync().await.unwrap();
            }
            rig.crash(&mut rng);
        }
        rig.commit().await;
        rig.crash(&mut rng);
        rig.over();
        watcher.await;
        rig.leave().await;
    });
}

#[test]
fn whatever_a_crash_leaves_every_commit_is_in_it_and_no_space_is_lost() {
    for seed in 0..12 {
        torture(seed, Trouble { throughput: seed % 3 == 1, slog: seed % 4 == 2, ..Trouble::default() });
    }
}

#[test]
fn failing_writes_and_a_lack_of_space_make_commits_slow_and_never_untrue() {
    // 42: a block fails, and those after it are older than its txg.
    for seed in (0..8).chain([42]) {
        let trouble = Trouble {
            failing_writes: if seed % 2 == 0 { 12 } else { 0 },
            failing_allocations: if seed % 4 > 0 { 8 } else { 0 },
            throughput: seed % 3 == 0,
            ..Trouble::default()
        };
        torture(100 + seed, trouble);
    }
}

#[test]
fn many_who_commit_at_once_share_blocks_and_one_alone_waits_for_nobody() {
    Rig::run(5, Trouble { steady: true, ..Trouble::default() }, |rig| async move {
        rig.write(0, vec![1; 512]).await;
        rig.commit().await;
        let alone = rig.log.stats();
        let began = world::now();
        for i in 0..20u64 {
            rig.write(i * 512, vec![2; 512]).await;
            rig.commit().await;
        }
        let each = world::now().since(began) / 20;
        let after = rig.log.stats();
        assert_eq!(after.blocks - alone.blocks, 20);
        assert!(each <= rig.latency() * 11 / 10, "{each:?} is more than a write and a flush");
        let writers: Vec<_> = (0..32u64)
            .map(|i| {
                let rig = rig.clone();
                world::spawn(async move {
                    for _ in 0..20 {
                        rig.write_to(i).await;
                        rig.commit().await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await;
        }
        let shared = rig.log.stats();
        let (commits, blocks) = (shared.commits - after.commits, shared.blocks - after.blocks);
        assert!(commits == 640 && blocks < commits / 8, "{commits} commits in {blocks} blocks");
        rig.over();
        rig.leave().await;
    });
}

#[test]
fn a_batch_of_many_blocks_is_written_at_once_and_flushed_once() {
    Rig::run(10, Trouble { steady: true, slog: true, ..Trouble::default() }, |rig| async move {
        rig.write(0, vec![1; 512]).await;
        rig.commit().await;
        let (blocks, flushes, began) = (rig.log.stats().blocks, rig.flushes(), world::now());
        rig.write(0, vec![2; (BLOCKS * BLOCK) as usize]).await;
        for i in 0..20 {
            rig.write_to(i).await;
        }
        rig.commit().await;
        let took = world::now().since(began);
        assert!(rig.log.stats().blocks - blocks >= 4, "{:?}", rig.log.stats());
        assert_eq!(rig.flushes() - flushes, 1);
        assert!(took <= rig.latency() * 12 / 10, "{took:?}: one write and one flush are {:?}", rig.latency());
        rig.over();
        rig.leave().await;
    });
}

#[test]
fn large_writes_go_to_their_place_and_the_setting_says_what_is_large() {
    Rig::run(11, Trouble::default(), |rig| async move {
        // The first commit waits for its txg: nothing of it is in the log.
        rig.write(0, vec![1; 512]).await;
        rig.commit().await;
        let large = || vec![1; 32 << 10];
        rig.write(0, large()).await;
        rig.commit().await;
        assert_eq!(rig.log.stats().indirect, (32 << 10) / BLOCK);
        rig.tunables.set(Tunable::ImmediateWriteSize, 64 << 10).unwrap();
        rig.write(0, large()).await;
        rig.commit().await;
        assert_eq!(rig.log.stats().indirect, (32 << 10) / BLOCK);
        rig.over();
        rig.leave().await;
    });
}

/// Each record by pointer kept the whole block as it was then, and nothing counted it: a client that wrote large blocks in
/// small pieces filled the memory with many times what may be dirty.
#[test]
fn what_small_writes_of_a_block_keep_in_memory_is_copied_or_counted() {
    const PIECE: u64 = BLOCK / 8;
    for throughput in [false, true] {
        Rig::run(14, Trouble { throughput, ..Trouble::default() }, move |rig| async move {
            rig.tunables.set(Tunable::ImmediateWriteSize, PIECE).unwrap();
            rig.write(0, vec![1; 512]).await;
            rig.commit().await;
            rig.txgs.sync().await.unwrap();
            let before = rig.txgs.dirty_bytes();
            for n in 0..8 {
                rig.write(n * PIECE, vec![n as u8; PIECE as usize]).await;
            }
            let grown = rig.txgs.dirty_bytes() - before;
            let kept = if throughput { 8 * BLOCK } else { 8 * PIECE };
            assert!((kept..kept + 2 * BLOCK).contains(&grown), "{throughput}: {grown} bytes");
            rig.commit().await;
            assert_eq!(rig.log.stats().indirect > 0, throughput);
            rig.over();
            rig.leave().await;
        });
    }
}

#[test]
fn where_only_whole_blocks_are_pointed_to_parts_are_copied() {
    Rig::run(13, Trouble::default(), |rig| async move {
        rig.write(0, vec![1; 512]).await;
        rig.commit().await;
        rig.tunables.set(Tunable::ZilWholeBlocksOnly, 1).unwrap();
        rig.tunables.set(Tunable::ImmediateWriteSize, BLOCK / 2).unwrap();
        rig.write(0, vec![1; 32 << 10]).await;
        rig.commit().await;
        assert_eq!(rig.log.stats().indirect, (32 << 10) / BLOCK);
        for (offset, len) in [(512, 32 << 10), (0, (32 << 10) + 512)] {
            rig.write(offset, vec![2; len]).await;
            rig.commit().await;
        }
        assert_eq!(rig.log.stats().indirect, (32 << 10) / BLOCK, "parts of blocks are copied");
        // No block is larger than this.
        rig.tunables.set(Tunable::ImmediateWriteSize, BLOCK).unwrap();
        rig.write(0, vec![1; 32 << 10]).await;
        rig.commit().await;
        assert_eq!(rig.log.stats().indirect, (32 << 10) / BLOCK);
        rig.over();
        rig.leave().await;
    });
}

#[test]
fn with_log_devices_nothing_is_large_and_a_commit_of_very_much_lets_others_go_first() {
    Rig::run(12, Trouble { slog: true, ..Trouble::default() }, |rig| async move {
        rig.tunables.set(Tunable::ZilSlogBulk, 100 << 10).unwrap();
        for _ in 0..2 {
            rig.write(0, vec![1; 64 << 10]).await;
            rig.commit().await;
        }
        assert_eq!((rig.log.stats().indirect, rig.patient()), (0, 0));
        rig.write(0, vec![2; 200 << 10]).await;
        let blocks = rig.log.stats().blocks;
        rig.commit().await;
        assert_eq!(rig.patient(), rig.log.stats().blocks - blocks);
        assert!(rig.patient() >= 2);
        rig.over();
        rig.leave().await;
    });
}

#[test]
fn without_log_devices_a_commit_of_very_much_is_as_urgent_as_any() {
    Rig::run(13, Trouble::default(), |rig| async move {
        rig.tunables.set(Tunable::ZilSlogBulk, 0).unwrap();
        for _ in 0..2 {
            rig.write(0, vec![1; 16 << 10]).await;
            rig.commit().await;
        }
        assert_eq!(rig.patient(), 0);
        rig.over();
        rig.leave().await;
    });
}

#[test]
fn a_log_whose_devices_need_no_flush_asks_for_none() {
    Rig::run(14, Trouble { steady: true, ..Trouble::default() }, |rig| async move {
        rig.write(0, vec![1; 512]).await;
        rig.log.commit().await.unwrap();
        let flushes = rig.flushes();
        rig.tunables.set(Tunable::ZilNoCacheFlush, 1).unwrap();
        rig.write(0, vec![2; 512]).await;
        let began = world::now();
        rig.log.commit().await.unwrap();
        assert_eq!(rig.flushes(), flushes);
        assert!(world::now().since(began) < rig.latency() / 2);
        rig.tunables.set(Tunable::ZilNoCacheFlush, 0).unwrap();
        rig.write(0, vec![3; 512]).await;
        rig.log.commit().await.unwrap();
        assert_eq!(rig.flushes(), flushes + 1);
        rig.over();
        rig.leave().await;
    });
}

#[test]
fn sync_disabled_waits_for_nothing_and_what_was_not_logged_is_waited_for_later() {
    Rig::run(6, Trouble::default(), |rig| async move {
        rig.set_mode(SyncMode::Disabled);
        rig.write(0, vec![1; 4096]).await;
        let (began, txg) = (world::now(), rig.txgs.open_txg());
        rig.log.commit().await.unwrap();
        assert_eq!((world::now(), rig.log.stats().records), (began, 0));
        rig.set_mode(SyncMode::Standard);
        rig.commit().await;
        assert!(rig.txgs.synced_txg() >= txg);
        rig.over();
        rig.leave().await;
    });
}

#[test]
fn a_closed_log_is_empty_and_commits_wait_for_their_txg() {
    Rig::run(7, Trouble::default(), |rig| async move {
        for i in 0..30 {
            rig.write(i * 1024, vec![3; 9000]).await;
            rig.commit().await;
        }
        rig.over();
        rig.leave().await;
        let txg = rig.txgs.open_txg();
        rig.write(0, vec![4; 512]).await;
        rig.log.commit().await.unwrap();
        assert!(rig.txgs.synced_txg() >= txg);
    });
}

#[test]
fn a_dataset_that_goes_takes_its_log_with_it_even_while_it_is_written_to() {
    Rig::run(8, Trouble::default(), |rig| async move {
        rig.write(0, vec![1; 512]).await;
        rig.commit().await;
        let writer = {
            let rig = rig.clone();
            world::spawn(async move {
                for i in 0..200 {
                    rig.write(i * 512, vec![2; 512]).await;
                    let _ = rig.log.commit().await;
                }
            })
        };
        world::sleep(rig.latency() * 7).await;
        rig.over();
        rig.destroy_in_next_sync();
        rig.txgs.sync().await.unwrap();
        writer.await;
        rig.txgs.sync().await.unwrap();
        assert_eq!(rig.log_space(), 0, "blocks of the log are left");
    });
}

#[test]
fn a_pool_that_cannot_sync_any_more_says_so() {
    Rig::run(9, Trouble::default(), |rig| async move {
        rig.write(0, vec![1; 512]).await;
        rig.over();
        rig.txgs.fail(&Error::new(Kind::Io, "no more"));
        assert_eq!(rig.log.commit().await.unwrap_err().kind(), Kind::Io);
        assert_eq!(rig.txgs.synced_txg(), Txg(9));
    });
}
