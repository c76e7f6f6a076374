use super::*;
use crate::tests::Dice;

fn whole(len: u64) -> FreeSpace {
    let mut ranges = Ranges::default();
    ranges.add(Segment::new(0, len)).unwrap();
    FreeSpace::new(ranges)
}

/// The index must be what it would be if it were made anew.
fn check_index(free: &FreeSpace) {
    let fresh: BySize = free.ranges.iter().collect();
    assert_eq!(fresh.order, free.ranges.watch().order);
    assert_eq!(fresh.counts, free.ranges.watch().counts);
}

#[test]
fn size_classes_are_in_the_order_of_sizes() {
    for len in 1..5000u64 {
        assert!(class_of(len) <= class_of(len + 1), "{len}");
    }
    assert_eq!([class_of(4096), class_of(5119), class_of(5120), class_of(8191)], [48, 48, 49, 51]);
    assert_eq!(class_of(u64::MAX), 255);
}

#[test]
fn blocks_allocated_one_after_the_other_lie_next_to_each_other() {
    let mut free = whole(1 << 30);
    for i in 0..1000 {
        assert_eq!(free.allocate(16384, 1 << 30), Some(i * 16384));
    }
    assert_eq!(free.ranges().count(), 1);
    check_index(&free);
}

#[test]
fn with_little_space_a_block_goes_where_it_fits() {
    let mut free = whole(1 << 20);
    free.remove(Segment::new(0, 1 << 20)).unwrap();
    for (start, len) in [(0, 65536), (100_352, 20480), (200_704, 16384), (300_544, 8192)] {
        free.add(Segment::new(start, len)).unwrap();
    }
    assert_eq!(free.allocate(16384, 1 << 20), Some(200_704));
    assert_eq!(free.allocate(16384, 1 << 20), Some(100_352));
    assert_eq!(free.allocate(16384, 1 << 20), Some(0));
    assert_eq!(free.allocate(65536, 1 << 20), None);
    free.add(Segment::new(65536, 16384)).unwrap();
    assert_eq!(free.allocate(65536, 1 << 20), Some(16384), "what is freed is looked at again");
}

#[test]
fn nothing_is_given_twice_and_nothing_is_lost() {
    for seed in 1..20 {
        let mut dice = Dice(seed);
        let size = 1u64 << 22;
        let mut free = whole(size);
        let mut used: Vec<Segment> = Vec::new();
        let mut bitmap = vec![true; (size >> 9) as usize];
        for _ in 0..4000 {
            if dice.roll(100) < 55 {
                let most = 1 << dice.roll(8);
                let len = (1 + dice.roll(most)) << 9;
                let fits = bitmap.chunk_by(|a, b| a == b).any(|run| run[0] && run.len() as u64 * 512 >= len);
                let got = free.allocate(len, size);
                assert_eq!(got.is_some(), fits, "seed {seed}: {len} bytes");
                let Some(start) = got else { continue };
                let segment = Segment::new(start, len);
                for i in start >> 9..segment.end >> 9 {
                    assert!(std::mem::replace(&mut bitmap[i as usize], false), "seed {seed}: {segment:?}");
                }
                used.push(segment);
            } else if !used.is_empty() {
                let segment = used.swap_remove(dice.roll(used.len() as u64) as usize);
                free.add(segment).unwrap();
                bitmap[(segment.start >> 9) as usize..(segment.end >> 9) as usize].fill(true);
            }
        }
        check_index(&free);
        assert_eq!(free.ranges().space(), bitmap.iter().filter(|&&b| b).count() as u64 * 512);
    }
}
