use super::*;
use crate::blkptr::tests::any_pointer;
use crate::bookmark::BlockBookmark;
use crate::testing::{Numbers, assault, check_round_trip};
use units::{Guid, ObjectId, Txg};

fn object(n: &mut Numbers) -> ObjectId {
    ObjectId(n.bits(48))
}

fn space(n: &mut Numbers) -> Space {
    Space { used: n.bits(64), compressed: n.bits(64), uncompressed: n.bits(64) }
}

fn any_dir(n: &mut Numbers) -> DslDirPhys {
    DslDirPhys {
        creation_time: n.bits(64),
        head_dataset: object(n),
        parent: object(n),
        origin: object(n),
        children: object(n),
        space: space(n),
        quota: n.bits(64),
        reservation: n.bits(64),
        properties: object(n),
        delegations: object(n),
        flags: n.bits(1),
        used_breakdown: UsedBreakdown {
            head: n.next(),
            snapshots: n.next(),
            children: n.next(),
            children_reserved: n.next(),
            refreservation: n.next(),
        },
        clones: object(n),
    }
}

fn any_dataset(n: &mut Numbers) -> DslDatasetPhys {
    DslDatasetPhys {
        dir: object(n),
        previous: object(n),
        previous_txg: Txg(n.bits(64)),
        next: object(n),
        snapshot_names: object(n),
        children: n.bits(8),
        creation_time: n.bits(64),
        creation_txg: Txg(n.bits(64)),
        deadlist: object(n),
        referenced: space(n),
        unique: n.next(),
        fsid_guid: n.bits(56),
        guid: Guid(n.next()),
        flags: DatasetFlags(n.bits(64)),
        root: any_pointer(n),
        next_clones: object(n),
        properties: object(n),
        holds: object(n),
    }
}

fn any_bptree_entry(n: &mut Numbers) -> BptreeEntry {
    let resume = BlockBookmark::from_words([n.next(), n.next(), u64::MAX, n.next()]);
    BptreeEntry { root: any_pointer(n), birth: Txg(n.bits(64)), resume }
}

fn any_bpobj(n: &mut Numbers, size: BpobjSize) -> BpobjPhys {
    let mut phys = BpobjPhys::new(size);
    (phys.pointers, phys.space.used) = (n.bits(64), n.bits(64));
    if size >= BpobjSize::Accounting {
        (phys.space.compressed, phys.space.uncompressed) = (n.next(), n.next());
    }
    if size >= BpobjSize::SubLists {
        (phys.sub_lists, phys.sub_list_count) = (object(n), n.bits(64));
    }
    if size >= BpobjSize::Freed {
        phys.freed = n.next();
    }
    phys
}

#[test]
fn all_structures_survive_the_round_trip_in_both_orders() {
    let mut n = Numbers(60);
    for _ in 0..100 {
        check_round_trip(&any_dir(&mut n), DslDirPhys::SIZE, DslDirPhys::encode, DslDirPhys::decode);
        check_round_trip(
            &any_dataset(&mut n),
            DslDatasetPhys::SIZE,
            DslDatasetPhys::encode,
            DslDatasetPhys::decode,
        );
        let deadlist = DeadlistPhys { space: space(&mut n) };
        check_round_trip(&deadlist, DeadlistPhys::SIZE, DeadlistPhys::encode, DeadlistPhys::decode);
        let tree = BptreePhys { begin: n.next(), end: n.next(), space: space(&mut n) };
        check_round_trip(&tree, BptreePhys::SIZE, BptreePhys::encode, BptreePhys::decode);
        let entry = any_bptree_entry(&mut n);
        check_round_trip(&entry, BptreeEntry::SIZE, BptreeEntry::encode, BptreeEntry::decode);
        for size in [BpobjSize::Count, BpobjSize::Accounting, BpobjSize::SubLists, BpobjSize::Freed] {
            let phys = any_bpobj(&mut n, size);
            check_round_trip(&phys, size.bytes(), BpobjPhys::encode, BpobjPhys::decode);
            assert_eq!(BpobjPhys::from_bonus(&phys.to_bonus()).unwrap(), phys);
        }
        let dataset = any_dataset(&mut n);
        assert_eq!(DslDatasetPhys::from_bonus(&dataset.to_bonus()).unwrap(), dataset);
    }
}

#[test]
fn fields_stand_where_they_are_drawn() {
    let mut n = Numbers(61);
    let (dir, dataset) = (any_dir(&mut n), any_dataset(&mut n));
    let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let (d, s) = (dir.to_bonus(), dataset.to_bonus());
    assert_eq!((word(&d, 88), word(&d, 104)), (dir.delegations.0, dir.used_breakdown.head));
    assert_eq!(word(&d, 144), dir.clones.0);
    assert_eq!(
        (word(&s, 96), word(&s, 120), word(&s, 272)),
        (dataset.unique, dataset.flags.0, dataset.holds.0)
    );
}

#[test]
fn scans_and_bookmarks_survive_the_round_trip() {
    let mut n = Numbers(62);
    let mut words: [u64; ScanPhys::WORDS] = std::array::from_fn(|_| n.next());
    (words[0], words[1]) = (2, 1);
    let scan = ScanPhys::from_words(&words).unwrap();
    assert_eq!((scan.func, scan.state, scan.to_words()), (ScanFunc::Resilver, ScanState::Scanning, words));
    assert_eq!(scan.bookmark.block, words[22]);
    assert!(ScanPhys::from_words(&words[1..]).is_err());
    for len in [3, 12] {
        let bookmark = BookmarkPhys::from_words(&words[..len]).unwrap();
        assert_eq!(bookmark.to_words(), words[..len]);
    }
    assert!(BookmarkPhys::from_words(&words[..5]).is_err());
}

#[test]
fn hostile_bytes_never_panic() {
    let good = any_dataset(&mut Numbers(63)).to_bonus();
    assault(&good, |bytes, _| {
        let _ = DslDatasetPhys::from_bonus(bytes);
        let _ = DslDirPhys::from_bonus(bytes);
        let _ = BpobjPhys::from_bonus(bytes);
        let _ = DeadlistPhys::from_bonus(bytes);
        let _ = BptreePhys::from_bonus(bytes);
    });
}
