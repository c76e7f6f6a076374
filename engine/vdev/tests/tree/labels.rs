//! Labels: made, found, written so that a crash harms nothing, cleared.

use crate::common::*;
use ondisk::{NvList, PoolState};
use sim::{Disks, Fault, Model};
use std::path::Path;
use units::{Kind, Txg};
use vdev::label::fresh::wipe_labels;
use vdev::label::read::read_labels;
use vdev::label::ring::{best_uberblock, read_uberblocks};
use vdev::{Aux, Health, Layout, OpenOptions, State, Tree};
use world::OpenMode;

/// The newest uberblock of all disks, and whether every disk's label fits it.
async fn last_state(n: usize) -> (Txg, bool) {
    let mut uberblocks = Vec::new();
    let mut labels = Vec::new();
    for i in 0..n {
        let disk = device(i).open(OpenMode::ReadOnly).await.unwrap();
        uberblocks.extend(read_uberblocks(&disk, 12).await);
        labels.push(read_labels(&disk).await);
    }
    let best = best_uberblock(uberblocks, None).expect("there is an uberblock");
    (best.txg, labels.iter().all(|l| l.best(Some(best.txg)).is_some()))
}

#[test]
fn a_crash_at_any_flush_leaves_the_old_or_the_new_state() {
    for with_labels in [true, false] {
        let mut outcomes = std::collections::BTreeSet::new();
        for cut_at in 1..30 {
            let disks = disks(3);
            run(&disks, 1, async { drop(create(Layout::Raidz { parity: 1 }, 3, 12).await) });
            disks.cut_at_flush(cut_at);
            let done = sim::run_until_cut(&disks, cut_at, sim::Config::default(), async move {
                let tree = reopen(OpenMode::ReadWrite).await;
                tree.commit(&commit(5, with_labels)).await.unwrap();
            });
            if done.is_none() {
                disks.power_cut(cut_at * 7 + 1);
            }
            let (txg, fits) = run(&disks, 2, last_state(3));
            assert!(fits, "cut at flush {cut_at}: every disk has a label for txg {txg}");
            assert!(txg == Txg(4) || txg == Txg(5));
            assert!(done.is_none() || txg == Txg(5), "what was committed stays");
            outcomes.insert((done.is_some(), txg));
            run(&disks, 3, async {
                assert_eq!(reopen(OpenMode::ReadWrite).await.health(), Health::ONLINE);
            });
        }
        // Without labels only one of a dozen copies of the uberblock need survive the cut: the old state is rare.
        assert!(!with_labels || outcomes.contains(&(false, Txg(4))), "{outcomes:?}");
        assert!(outcomes.contains(&(false, Txg(5))) && outcomes.contains(&(true, Txg(5))), "{outcomes:?}");
    }
}

#[test]
fn uberblocks_of_the_last_txgs_stay_in_the_ring() {
    run(&disks(1), 4, async {
        let tree = create(Layout::Stripe, 1, 12).await;
        for txg in 5..100 {
            tree.commit(&commit(txg, txg % 10 == 0)).await.unwrap();
        }
        let disk = device(0).open(OpenMode::ReadOnly).await.unwrap();
        let mut txgs: Vec<u64> = read_uberblocks(&disk, 12).await.iter().map(|u| u.txg.0).collect();
        txgs.sort_unstable();
        txgs.dedup();
        assert_eq!(txgs, (68..100).collect::<Vec<_>>());
        let back = best_uberblock(read_uberblocks(&disk, 12).await, Some(Txg(70)));
        assert_eq!(back.unwrap().txg, Txg(70));
    });
}

#[test]
fn with_many_vdevs_the_uberblock_goes_to_a_few() {
    run(&disks(6), 5, async {
        let tree = create_of(&[group(Layout::Stripe, 0, 6)], 12).await;
        tree.commit(&commit(5, false)).await.unwrap();
        let mut with = 0;
        for i in 0..6 {
            let disk = device(i).open(OpenMode::ReadOnly).await.unwrap();
            with +=
                usize::from(best_uberblock(read_uberblocks(&disk, 12).await, None).unwrap().txg == Txg(5));
        }
        assert_eq!(with, 3);
    });
}

#[test]
fn a_device_with_a_foreign_label_is_not_used() {
    let disks = disks(3);
    run(&disks, 6, async { drop(create(Layout::Mirror, 2, 9).await) });
    let foreign = run(&disks, 7, async {
        let spec = reopen(OpenMode::ReadOnly).await.spec();
        let mut other = spec.clone();
        other.guid = units::Guid(99);
        let options = OpenOptions { pool: Some(units::Guid(99)), ..OpenOptions::new(OpenMode::ReadWrite) };
        Tree::open(other, options).await.unwrap().status()
    });
    for leaf in &foreign.children[0].children {
        assert_eq!(leaf.health, Health::new(State::CannotOpen, Aux::CorruptData));
        assert_eq!(leaf.health.word(), "FAULTED");
    }
}

#[test]
fn devices_that_are_unfit_say_why() {
    let disks = disks(4);
    run(&disks, 8, async { drop(create(Layout::Raidz { parity: 2 }, 4, 9).await) });
    disks.get("/d/0").unwrap().set_fault(Fault { gone: true, ..Fault::default() });
    disks.get("/d/1").unwrap().resize(70 * MIB);
    run(&disks, 9, async {
        let tree = reopen(OpenMode::ReadWrite).await;
        let leaves = tree.status().children.remove(0).children;
        assert_eq!(leaves[0].health, Health::new(State::CannotOpen, Aux::OpenFailed));
        assert!(leaves[0].detail.is_some());
        assert_eq!(leaves[1].health, Health::new(State::CannotOpen, Aux::BadLabel), "it shrank");
        assert_eq!(leaves[2].health, Health::ONLINE);
        assert_eq!(tree.health().state, State::Degraded);
    });
}

#[test]
fn a_pool_in_a_partition_is_found() {
    let disks = disks(1);
    run(&disks, 10, async { drop(create(Layout::Stripe, 1, 12).await) });
    let image = disks.get("/d/0").unwrap().peek(0, 80 << 20);
    let whole = Disks::new();
    let disk = whole.add("/d/whole", 100 * MIB, Model::NVME);
    disk.poke(MIB, &image);
    disk.poke(512, &table_with(2048, 2048 + (80 << 11) - 1));
    run(&whole, 11, async {
        let tree = reopen(OpenMode::ReadWrite).await;
        assert_eq!(tree.health(), Health::ONLINE);
        tree.commit(&commit(5, true)).await.unwrap();
        let leaf = tree.leaves().remove(0);
        assert_eq!(leaf.device().window, Some(MIB..81 * MIB));
        assert_eq!(reopen(OpenMode::ReadOnly).await.health(), Health::ONLINE);
    });
}

/// A partition table with one partition, from sector 1 on.
fn table_with(first: u64, last: u64) -> Vec<u8> {
    let crc32 = |bytes: &[u8]| {
        !bytes.iter().fold(!0u32, |crc, &b| {
            (0..8).fold(crc ^ u32::from(b), |c, _| (c >> 1) ^ if c & 1 == 1 { 0xedb8_8320 } else { 0 })
        })
    };
    let mut table = vec![0u8; 512 + 128 * 128];
    let entry = &mut table[512..640];
    entry[0] = 0xc3;
    entry[32..40].copy_from_slice(&first.to_le_bytes());
    entry[40..48].copy_from_slice(&last.to_le_bytes());
    let entries_crc = crc32(&table[512..]);
    let header = &mut table[..92];
    header[..8].copy_from_slice(b"EFI PART");
    header[12..16].copy_from_slice(&92u32.to_le_bytes());
    header[72..80].copy_from_slice(&2u64.to_le_bytes());
    header[80..84].copy_from_slice(&128u32.to_le_bytes());
    header[84..88].copy_from_slice(&128u32.to_le_bytes());
    header[88..92].copy_from_slice(&entries_crc.to_le_bytes());
    let crc = crc32(header);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
    table
}

#[test]
fn a_device_whose_labels_are_wiped_is_found_no_more() {
    run(&disks(1), 12, async {
        drop(create(Layout::Stripe, 1, 9).await);
        let disk = device(0).open(OpenMode::ReadWrite).await.unwrap();
        let owner = read_labels(&disk).await.owner().unwrap();
        assert_eq!((owner.state, owner.pool), (PoolState::Active, Some(POOL)));
        // Something else is where the first label was.
        let other = world::Buf::copy_from(&[7; 256 << 10]);
        disk.write(0, vec![other]).await.unwrap();
        wipe_labels(&disk, &owner).await.unwrap();
        assert!(read_labels(&disk).await.is_empty());
        let (kept, read) = disk.read(0, world::IoBuf::scratch(256 << 10)).await;
        read.unwrap();
        assert!(kept.iter().all(|byte| *byte == 7), "it stays");
        let found = vdev::scan::scan_dirs(&[Path::new("/d")]).await.unwrap();
        assert!(found.is_empty());
    });
}

#[test]
fn what_this_version_cannot_read_is_refused_by_name() {
    run(&disks(1), 13, async {
        for (pairs, part) in [
            (NvList::new().with("type", "draid").with("nparity", 1u64), "draid"),
            (NvList::new().with("type", "indirect"), "removed"),
            (NvList::new().with("type", "raidz").with("raidz_expand_txgs", vec![52u64]), "raidz expansion"),
        ] {
            let child = NvList::new().with("type", "file").with("guid", 9u64).with("id", 0u64);
            let top = pairs
                .with("guid", 8u64)
                .with("id", 0u64)
                .with("ashift", 9u64)
                .with("metaslab_shift", 24u64)
                .with("children", vec![child]);
            let root = NvList::new().with("type", "root").with("guid", 7u64).with("children", vec![top]);
            let spec = vdev::Spec::decode(&root).unwrap();
            let error = Tree::open(spec, OpenOptions::new(OpenMode::ReadOnly)).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Unsupported);
            assert!(error.to_string().contains(part), "{error}");
        }
    });
}

#[test]
fn a_device_in_use_is_named_before_it_is_taken() {
    run(&disks(3), 14, async {
        drop(create(Layout::Mirror, 2, 9).await);
        let devices: Vec<_> = (0..3).map(device).collect();
        let objections = vdev::label::fresh::objections(&devices).await;
        assert_eq!(
            objections,
            ["'/d/0' is part of active pool 'tank'", "'/d/1' is part of active pool 'tank'"]
        );
    });
}
