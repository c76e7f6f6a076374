use super::*;
use units::{Sectors, Txg, VdevId};

fn block(n: u64) -> BlockId {
    BlockId { opening: Default::default(), vdev: VdevId(0), offset: Sectors(n), birth: Txg(4) }
}

fn at(device: DeviceId, daddr: u64) -> Place {
    Place::new(device, daddr, 4096, Kind::Data)
}

#[test]
fn what_is_written_over_is_forgotten_and_nothing_else() {
    let mut index = Index::default();
    (0..8).for_each(|n| index.insert(block(n), at(0, 4096 * n)));
    index.insert(block(100), at(1, 0));
    // 1 was freed; 2 was freed and written anew, behind the others.
    assert!(index.forget(&block(1)) && !index.forget(&block(1)));
    index.insert(block(2), at(0, 8 * 4096));
    assert_eq!(index.drop_range(0, &(0..3 * 4096 + 1)), 2, "0 and 3: one byte of it is enough");
    assert!([0, 1, 3].iter().all(|n| index.get(&block(*n)).is_none()));
    assert_eq!(index.get(&block(2)), Some(at(0, 8 * 4096)), "its newer copy is there");
    assert_eq!(index.held(Kind::Data), Held { blocks: 6, bytes: 6 * 4096 });
    index.drop_device(0);
    assert_eq!(index.held(Kind::Data), Held { blocks: 1, bytes: 4096 });
    assert!(index.get(&block(100)).is_some() && index.get(&block(2)).is_none());
}

#[test]
fn blocks_that_are_found_newest_first_leave_oldest_first() {
    let mut index = Index::default();
    for n in (0..4).rev() {
        assert!(index.insert_older(block(n), at(0, 4096 * n)));
    }
    assert!(!index.insert_older(block(3), at(0, 1 << 20)), "the newer copy counts");
    index.insert(block(9), at(0, 4 * 4096));
    assert_eq!(index.drop_range(0, &(0..4096)), 1);
    assert!(index.get(&block(0)).is_none() && index.get(&block(1)).is_some());
}

#[test]
fn its_memory_is_bounded_and_known() {
    let (mut index, limit) = (Index::default(), 1 << 20);
    let mut count = 0;
    while index.has_room(1, limit) {
        index.insert(block(count), at(0, 4096 * count));
        count += 1;
        assert!(index.bytes() <= limit);
    }
    let each = limit / count;
    assert!((64..=2 * (SLOT + TURN)).contains(&each), "{each} bytes for each of {count} blocks");
    assert!(index.bytes() >= count * (SLOT + TURN) * 7 / 8, "no less is said than is taken");
}
