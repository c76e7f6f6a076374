//! Blocks through the open tree, on sound and on unsound disks.

use crate::common::*;
use sim::{Fault, Rng};
use std::sync::Arc;
use units::{Guid, Kind, Txg};
use vdev::{Aux, Care, Layout, OpenOptions, Priority, Spec, State, Tree};
use world::{Buf, OpenMode};

const DATA: u64 = 4 * MIB;

#[test]
fn blocks_come_back_from_every_layout() {
    for (layout, n) in LAYOUTS {
        for ashift in [9, 12] {
            run(&disks(n), 1, async move {
                let tree = create(layout, n, ashift).await;
                let blocks = Blocks::write(&top(&tree), &mut Rng::new(7), 60).await;
                blocks.read(&top(&tree)).await;
                let again = reopen(OpenMode::ReadOnly).await;
                blocks.read(&top(&again)).await;
                assert_eq!(tree.health(), vdev::Health::ONLINE);
            });
        }
    }
}

#[test]
fn as_many_disks_can_be_gone_as_there_is_redundancy_and_no_more() {
    for (layout, n) in LAYOUTS {
        let gone = redundancy(layout, n);
        let disks = disks(n);
        let (blocks, writer) = run(&disks, 2, async move {
            let tree = create(layout, n, 9).await;
            (Blocks::write(&top(&tree), &mut Rng::new(8), 40).await, tree)
        });
        drop(writer);
        for i in 0..gone {
            disks.get(format!("/d/{i}")).unwrap().set_fault(Fault { gone: true, ..Fault::default() });
        }
        let blocks = run(&disks, 3, async move {
            let tree = reopen(OpenMode::ReadWrite).await;
            let expected = if gone > 0 { State::Degraded } else { State::Online };
            assert_eq!(tree.health().state, expected, "{layout:?}");
            blocks.read(&top(&tree)).await;
            let at = 40 * MIB;
            let block = random_block(&mut Rng::new(1), 8192);
            top(&tree).write(at, block.clone(), Priority::SyncWrite).await.unwrap();
            tree.commit(&commit(5, true)).await.unwrap();
            top(&tree).read(at, 8192, verify(&block), Priority::SyncRead).await.unwrap();
            blocks
        });
        disks.get(format!("/d/{gone}")).unwrap().set_fault(Fault { gone: true, ..Fault::default() });
        if gone + 1 == n {
            continue; // nothing is left by which the pool could be found
        }
        run(&disks, 4, async move {
            let tree = reopen(OpenMode::ReadWrite).await;
            assert_eq!(tree.health(), vdev::Health::new(State::CannotOpen, Aux::NoReplicas));
            let (at, block) = &blocks.0[0];
            let error =
                top(&tree).read(*at, block.len(), verify(block), Priority::SyncRead).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Io);
        });
    }
}

#[test]
fn silent_damage_is_found_counted_on_the_guilty_and_repaired() {
    for (layout, n) in LAYOUTS {
        let bad = redundancy(layout, n);
        if bad == 0 {
            continue;
        }
        let disks = disks(n);
        let damaged = disks.clone();
        run(&disks, 5, async move {
            let tree = create(layout, n, 9).await;
            let blocks = Blocks::write(&top(&tree), &mut Rng::new(9), 50).await;
            let garbage = vec![0xa5; 4 * MIB as usize];
            for i in 1..=bad {
                damaged.get(format!("/d/{}", n - i)).unwrap().poke(DATA, &garbage);
            }
            blocks.scrub(&top(&tree)).await;
            let errors = checksum_errors(&tree);
            assert_eq!(errors.len(), bad, "{layout:?}: {errors:?}");
            assert!((1..=bad).all(|i| errors[&format!("/d/{}", n - i)] > 0));

            assert_eq!(tree.clear(POOL, None).await.unwrap().len(), 0);
            blocks.scrub(&top(&tree)).await;
            assert!(checksum_errors(&tree).is_empty(), "{layout:?}: all was repaired");

            // Now the others may fail in turn.
            for i in 0..bad {
                damaged.get(format!("/d/{i}")).unwrap().poke(DATA, &garbage);
            }
            blocks.read(&top(&tree)).await;
        });
    }
}

/// A raidz of three, the last of which is being replaced by a fourth.
async fn create_replacing() -> Arc<Tree> {
    let new_guid = || Guid(world::random_u64());
    let raidz = group(Layout::Raidz { parity: 1 }, 0, 3);
    let mut spec = Spec::create(POOL, &[raidz], 9, Txg::INITIAL, new_guid).unwrap();
    let old = spec.leaves().nth(2).unwrap().guid;
    let new = Spec::leaf_of(&group(Layout::Stripe, 3, 1).leaves[0], new_guid());
    spec.attach(old, new, true, new_guid()).unwrap();
    let tree = Tree::open(spec, OpenOptions::new(OpenMode::ReadWrite)).await.unwrap();
    tree.label_new(&config(0), Txg::INITIAL).await.unwrap();
    tree
}

/// Before the pool has read what its devices miss, nothing tells that one of two which share a column is behind: a block was
/// lost then when another column was missing too, though the other of the two had it.
#[test]
fn a_column_that_two_devices_share_is_found_on_either() {
    for stale in [2, 3] {
        let disks = disks(4);
        let damaged = disks.clone();
        run(&disks, 5, async move {
            let tree = create_replacing().await;
            let blocks = Blocks::write(&top(&tree), &mut Rng::new(9), 50).await;
            tree.commit(&commit(4, true)).await.unwrap();
            for disk in [0, stale] {
                damaged.get(format!("/d/{disk}")).unwrap().poke(DATA, &vec![0xa5; 4 * MIB as usize]);
            }
            blocks.read(&top(&tree)).await;
            assert_eq!(tree.clear(POOL, None).await.unwrap().len(), 0);
            blocks.scrub(&top(&tree)).await;
            let errors: Vec<String> = checksum_errors(&tree).into_keys().collect();
            assert_eq!(errors, ["/d/0".to_string(), format!("/d/{stale}")], "no other is blamed");
            assert_eq!(tree.clear(POOL, None).await.unwrap().len(), 0);
            blocks.scrub(&top(&tree)).await;
            assert!(checksum_errors(&tree).is_empty(), "{stale}: all was repaired");
        });
    }
}

#[test]
fn a_scrub_reads_a_column_from_all_devices_that_share_it() {
    for rotten in [2, 3] {
        let disks = disks(4);
        let damaged = disks.clone();
        run(&disks, 6, async move {
            let tree = create_replacing().await;
            let block = random_block(&mut Rng::new(2), 64 << 10);
            top(&tree).write(0, block.clone(), Priority::AsyncWrite).await.unwrap();
            let disk = damaged.get(format!("/d/{rotten}")).unwrap();
            let sound = disk.peek(DATA, 4096);
            disk.poke(DATA + 17, &[!sound[17]]);
            top(&tree).scrub(0, block.len(), verify(&block)).await.unwrap();
            assert_eq!(checksum_errors(&tree), [(format!("/d/{rotten}"), 1)].into());
            assert_eq!(disk.peek(DATA, 4096), sound);
        });
    }
}

/// What is behind a block that ends in the midst of a sector is zeros, of which its checksum says nothing. A bit that had
/// turned there was taken for the truth, and the parity was set "right" by it.
#[test]
fn a_bit_behind_the_end_of_a_block_is_bad_and_its_parity_is_not() {
    for rotten in 0..3 {
        let disks = disks(4);
        let damaged = disks.clone();
        run(&disks, 7, async move {
            let tree = create(Layout::Raidz { parity: 2 }, 4, 12).await;
            let block = random_block(&mut Rng::new(2), 512);
            top(&tree).write(0, block.clone(), Priority::AsyncWrite).await.unwrap();
            let all = || [0, 1, 2].map(|i| damaged.get(format!("/d/{i}")).unwrap().peek(DATA, 4096));
            let sound = all();
            damaged.get(format!("/d/{rotten}")).unwrap().poke(DATA + 1000, &[16]);
            top(&tree).scrub(0, block.len(), verify(&block)).await.unwrap();
            assert_eq!(checksum_errors(&tree), [(format!("/d/{rotten}"), 1)].into());
            assert!(all() == sound, "{rotten}");
        });
    }
}

#[test]
fn an_ordinary_read_leaves_what_is_bad_to_who_may_repair_it() {
    let disks = disks(3);
    let damaged = disks.clone();
    run(&disks, 6, async move {
        let tree = create(Layout::Raidz { parity: 1 }, 3, 12).await;
        let block = random_block(&mut Rng::new(2), 64 << 10);
        top(&tree).write(0, block.clone(), Priority::AsyncWrite).await.unwrap();
        let sound = damaged.get("/d/1").unwrap().peek(DATA, 4096);
        damaged.get("/d/1").unwrap().poke(DATA + 17, &[!sound[17]]);
        let spoilt = damaged.get("/d/1").unwrap().peek(DATA, 4096);
        top(&tree).read(0, block.len(), verify(&block), Priority::SyncRead).await.unwrap();
        assert_eq!(checksum_errors(&tree), [("/d/1".to_string(), 1)].into());
        assert_eq!(
            damaged.get("/d/1").unwrap().peek(DATA, 4096),
            spoilt,
            "the place may be another's by now"
        );
        top(&tree).read_with(0, block.len(), verify(&block), &Care::repair()).await.unwrap();
        assert_eq!(checksum_errors(&tree), [("/d/1".to_string(), 1)].into(), "one error is counted once");
        assert_eq!(damaged.get("/d/1").unwrap().peek(DATA, 4096), sound);
        assert_eq!(tree.status().children[0].stats.healed, 32 << 10, "the column that was bad");
    });
}

#[test]
fn a_block_of_which_too_much_is_damaged_is_reported_and_never_returned() {
    let disks = disks(4);
    let damaged = disks.clone();
    run(&disks, 7, async move {
        let tree = create(Layout::Raidz { parity: 1 }, 4, 9).await;
        let block = random_block(&mut Rng::new(3), 16 << 10);
        top(&tree).write(0, block.clone(), Priority::AsyncWrite).await.unwrap();
        for i in [1, 2] {
            damaged.get(format!("/d/{i}")).unwrap().poke(DATA, &[1; 4096]);
        }
        let error = top(&tree).read(0, block.len(), verify(&block), Priority::SyncRead).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Checksum);
        assert!(error.to_string().contains("vdev 0 offset 0x0"), "{error}");
        assert_eq!(tree.status().children[0].errors.checksum, 1);
    });
}

#[test]
fn nothing_is_written_through_a_tree_opened_for_reading() {
    let disks = disks(2);
    let blocks = run(&disks, 8, async {
        let tree = create(Layout::Mirror, 2, 9).await;
        let blocks = Blocks::write(&top(&tree), &mut Rng::new(4), 10).await;
        tree.commit(&commit(5, false)).await.unwrap();
        blocks
    });
    disks.get("/d/0").unwrap().poke(DATA, &[9; 1 << 20]);
    let before: Vec<_> = (0..2).map(|i| disks.get(format!("/d/{i}")).unwrap().peek(0, 80 << 20)).collect();
    run(&disks, 9, async move {
        let tree = reopen(OpenMode::ReadOnly).await;
        blocks.scrub(&top(&tree)).await;
        assert!(!checksum_errors(&tree).is_empty());
        let error = top(&tree).write(0, Buf::zeroed(512), Priority::SyncWrite).await.unwrap_err();
        assert_eq!(error.kind(), Kind::ReadOnly);
    });
    let after: Vec<_> = (0..2).map(|i| disks.get(format!("/d/{i}")).unwrap().peek(0, 80 << 20)).collect();
    assert!(before == after, "the evidence is unchanged");
}

#[test]
fn addresses_from_damaged_pointers_are_refused() {
    run(&disks(3), 10, async {
        let tree = create(Layout::Raidz { parity: 1 }, 3, 12).await;
        let top = top(&tree);
        for (offset, psize) in [
            (512, 4096),
            (0, 0),
            (0, (16 << 20) + 1),
            (u64::MAX - 4095, 4096),
            (top.asize(), 512),
            (top.asize() - 4096, 4096),
        ] {
            let any: vdev::Verify = std::sync::Arc::new(|_: &[u8]| true);
            let error = top.read(offset, psize, any, Priority::SyncRead).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{offset:#x} {psize}");
        }
    });
}

#[test]
fn a_disk_that_fails_for_good_is_given_up_when_others_have_its_data() {
    let disks = disks(3);
    let failing = disks.clone();
    run(&disks, 11, async move {
        let tree = create(Layout::Mirror, 2, 9).await;
        let blocks = Blocks::write(&top(&tree), &mut Rng::new(5), 10).await;
        // What is not flushed would be answered from memory.
        top(&tree).flush().await.unwrap();
        let dead = Fault { read_errors_ppm: 1_000_000, write_errors_ppm: 1_000_000, ..Fault::default() };
        failing.get("/d/1").unwrap().set_fault(dead);
        blocks.scrub(&top(&tree)).await;
        world::sleep(std::time::Duration::from_secs(1)).await;
        let status = tree.status();
        let leaf = &status.children[0].children[1];
        assert_eq!((leaf.health.state, leaf.health.aux), (State::Faulted, Aux::ErrorsExceeded));
        assert_eq!(status.health.state, State::Degraded);
        assert!(leaf.errors.read > 0);
        blocks.read(&top(&tree)).await;

        // The last one is not given up: no other device has the data.
        failing.get("/d/0").unwrap().set_fault(dead);
        let (at, block) = &blocks.0[0];
        top(&tree).read(*at, block.len(), verify(block), Priority::SyncRead).await.unwrap_err();
        world::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(tree.status().children[0].children[0].health.state, State::Degraded);
    });
}

/// What no write met with, a resilver that is under way must know of all the same: it did not see what the device missed.
#[test]
fn a_disk_that_was_given_up_for_its_reads_and_came_back_has_been_passed_by() {
    let disks = disks(3);
    let failing = disks.clone();
    run(&disks, 11, async move {
        let tree = create(Layout::Raidz { parity: 1 }, 3, 9).await;
        let blocks = Blocks::write(&top(&tree), &mut Rng::new(5), 50).await;
        top(&tree).flush().await.unwrap();
        let leaf = tree.leaves()[1].clone();
        let before = leaf.missing().failures();
        let mute = Fault { read_errors_ppm: 1_000_000, ..Fault::default() };
        failing.get("/d/1").unwrap().set_fault(mute);
        blocks.read(&top(&tree)).await;
        world::sleep(std::time::Duration::from_secs(1)).await;
        assert!(!leaf.is_usable());
        failing.get("/d/1").unwrap().set_fault(Fault::default());
        assert_eq!(tree.clear(POOL, None).await.unwrap().len(), 0);
        assert!(leaf.is_usable() && leaf.missing().failures() > before);
    });
}

#[test]
fn a_full_host_is_told_to_the_caller_and_not_blamed_on_the_device() {
    let disks = disks(1);
    let full = disks.clone();
    run(&disks, 12, async move {
        let tree = create(Layout::Stripe, 1, 9).await;
        full.get("/d/0").unwrap().set_fault(Fault { full: true, ..Fault::default() });
        let error = top(&tree).write(0, Buf::zeroed(4096), Priority::AsyncWrite).await.unwrap_err();
        assert_eq!(error.kind(), Kind::NoSpace);
        assert_eq!(tree.leaves()[0].errors().write, 0);
    });
}

#[test]
fn many_writes_at_once_leave_as_few_large_ones() {
    run(&disks(1), 13, async {
        let tree = create(Layout::Stripe, 1, 9).await;
        let top = top(&tree);
        let block = random_block(&mut Rng::new(6), 4096);
        let tasks: Vec<_> = (0..500u64)
            .map(|i| {
                let (top, block) = (top.clone(), block.clone());
                world::spawn(async move { top.write(i * 4096, block, Priority::AsyncWrite).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let stats = tree.status().children[0].stats.clone();
        let class = stats.class(Priority::AsyncWrite);
        let at_device = class.individual.iter().chain(&class.aggregated).sum::<u64>();
        assert_eq!(class.ops, 500);
        assert!(at_device < 60, "{at_device} operations");
        for i in 0..500u64 {
            top.read(i * 4096, 4096, verify(&block), Priority::SyncRead).await.unwrap();
        }
    });
}

#[test]
fn a_device_remembers_the_txgs_it_missed() {
    let disks = disks(2);
    let failing = disks.clone();
    run(&disks, 14, async move {
        let tree = create(Layout::Mirror, 2, 9).await;
        tree.set_txg(units::Txg(20));
        failing.get("/d/1").unwrap().set_fault(Fault { write_errors_ppm: 1_000_000, ..Fault::default() });
        top(&tree).write(0, Buf::zeroed(4096), Priority::AsyncWrite).await.unwrap();
        tree.set_txg(units::Txg(21));
        top(&tree).write(8192, Buf::zeroed(4096), Priority::AsyncWrite).await.unwrap();
        let missed: Vec<_> = tree.leaves().iter().map(|l| l.missing().span()).collect();
        assert_eq!(missed, [None, Some((units::Txg(20), units::Txg(23)))]);
    });
}

#[test]
fn callers_that_go_away_leave_their_places_to_others() {
    let disks = sim::Disks::new();
    disks.add("/d/0", 80 * MIB, sim::Model::HDD);
    run(&disks, 15, async {
        let tree = create(Layout::Stripe, 1, 9).await;
        let top = top(&tree);
        let block = random_block(&mut Rng::new(1), 4096);
        top.write(0, block.clone(), Priority::SyncWrite).await.unwrap();
        let impatient: Vec<_> = (0..200u64)
            .map(|i| {
                let (top, block) = (top.clone(), block.clone());
                world::spawn(async move {
                    let read = top.read(i * 262_144 % (64 * MIB), 4096, verify(&block), Priority::SyncRead);
                    world::timeout(std::time::Duration::from_millis(i % 40), read).await.is_some()
                })
            })
            .collect();
        let mut answered = 0;
        for task in impatient {
            answered += usize::from(task.await);
        }
        assert!(answered < 100, "{answered} of 200 were answered in time");
        top.read(0, 4096, verify(&block), Priority::SyncRead).await.unwrap();
        let idle = tree.leaves()[0].depths().iter().all(|&(waiting, active)| waiting == 0 && active == 0);
        assert!(idle, "{:?}", tree.leaves()[0].depths());
    });
}

#[test]
fn open_statistics_see_blocks_their_waiting_and_what_the_devices_did() {
    run(&disks(3), 16, async {
        let spec = create(Layout::Raidz { parity: 1 }, 3, 12).await.spec();
        let options =
            vdev::OpenOptions { pool_name: "tank".into(), ..vdev::OpenOptions::new(OpenMode::ReadWrite) };
        let open = |query: &str| options.hub.open(&query.parse().unwrap()).unwrap();
        let blocks = open("zfs.bytes[op]");
        let queued = open("io.waits[disk=/d/0][class]");
        let reads = open("io.bytes[op=read][disk]");
        let flushes = open("io.ops[pool=tank][op=flush][disk]");
        let tree = vdev::Tree::open(spec, options.clone()).await.unwrap();
        for opened in [&blocks, &queued, &reads, &flushes] {
            opened.take();
        }
        let block = random_block(&mut Rng::new(1), 64 << 10);
        top(&tree).write(0, block.clone(), Priority::AsyncWrite).await.unwrap();
        top(&tree).read(0, block.len(), verify(&block), Priority::SyncRead).await.unwrap();
        top(&tree).flush().await.unwrap();
        let part = |opened: &probe::Opened, name: &str| {
            let parts = opened.take().parts;
            parts.iter().find(|(key, _)| key.to_string() == name).map_or(0, |(_, part)| *part)
        };
        assert_eq!(part(&blocks, "write"), 64 << 10);
        assert_eq!(part(&queued, "async_write"), 1);
        assert_eq!(part(&reads, "/d/1"), 32 << 10);
        assert_eq!(part(&flushes, "/d/2"), 1);
    });
}
