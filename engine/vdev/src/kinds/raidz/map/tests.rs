use super::*;

fn places(map: &Map) -> Vec<(usize, u64, usize)> {
    map.columns.iter().map(|c| (c.child, c.offset >> 9, c.len() >> 9)).collect()
}

#[test]
fn the_block_of_the_drawing_lies_where_it_is_drawn() {
    let map = Shape::new(4, 1, 9).unwrap().map(5 << 9, 5 << 9);
    assert_eq!(places(&map), [(1, 1, 2), (2, 1, 2), (3, 1, 2), (0, 2, 1)].map(|(c, o, l)| (c, o, l)));
    assert_eq!(map.columns[3].bytes, 4 << 9..5 << 9);
}

#[test]
fn a_block_of_one_sector_is_mirrored_by_its_parity() {
    let map = Shape::new(5, 2, 12).unwrap().map(4 << 12, 1 << 12);
    let places: Vec<_> = map.columns.iter().map(|c| (c.child, c.offset, c.len())).collect();
    assert_eq!(places, [(4, 0, 4096), (0, 4096, 4096), (1, 4096, 4096)]);
}

#[test]
fn single_parity_changes_places_in_every_second_mebibyte() {
    let shape = Shape::new(3, 1, 9).unwrap();
    assert_eq!(places(&shape.map(0, 1024)), [(0, 0, 1), (1, 0, 1), (2, 0, 1)]);
    // Sector 2048 is 3 * 682 + 2.
    assert_eq!(places(&shape.map(1 << 20, 1024)), [(0, 683, 1), (2, 682, 1), (1, 683, 1)]);
    assert_eq!(places(&shape.map(2 << 20, 512)), [(1, 1365, 1), (2, 1365, 1)]);
    let double = Shape::new(3, 2, 9).unwrap();
    assert_eq!(places(&double.map(1 << 20, 512)), [(2, 682, 1), (0, 683, 1), (1, 683, 1)]);
}

#[test]
fn space_is_counted_with_parity_and_rounding() {
    let shape = Shape::new(3, 1, 9).unwrap();
    for (psize, sectors) in [(512, 2), (1024, 4), (1536, 6), (2048, 6), (128 << 10, 384)] {
        assert_eq!(shape.asize(psize), sectors << 9, "{psize}");
    }
    let shape = Shape::new(5, 2, 12).unwrap();
    for (psize, sectors) in [(512, 3), (4096, 3), (12288, 6), (16384, 9), (128 << 10, 54)] {
        assert_eq!(shape.asize(psize), sectors << 12, "{psize}");
    }
}

/// The oracle: the vdev's sectors one by one, written down in the order in which a block takes them.
fn walk(children: u64, parity: u64, first: u64, sectors: u64) -> (Vec<(u64, u64)>, Vec<(u64, u64)>) {
    let data_per_row = children - parity;
    let rows = sectors.div_ceil(data_per_row);
    let (mut parities, mut data) = (Vec::new(), vec![None; sectors as usize]);
    let mut next = first;
    for row in 0..rows {
        for _ in 0..parity {
            parities.push((next % children, next / children));
            next += 1;
        }
        // Data runs down the columns: column c begins where the columns before it end.
        let (full, rest) = (sectors / data_per_row, sectors % data_per_row);
        let in_row = if row < full { data_per_row } else { rest };
        for c in 0..in_row {
            let above = (0..c).map(|c| full + u64::from(c < rest)).sum::<u64>();
            data[(above + row) as usize] = Some((next % children, next / children));
            next += 1;
        }
    }
    (parities, data.into_iter().map(|d| d.unwrap()).collect())
}

#[test]
fn every_sector_lies_where_a_walk_over_the_vdev_puts_it() {
    let mut seen = 0;
    for (children, parity) in [(2, 1), (3, 1), (4, 1), (3, 2), (5, 2), (6, 2), (4, 3), (7, 3), (11, 3)] {
        let shape = Shape::new(children, parity, 9).unwrap();
        for first in (0..2 * children as u64).chain([2047, 2048, 2049, 4096, 6147]) {
            for sectors in (1..40).chain([256]) {
                check_against_walk(shape, first, sectors);
                seen += 1;
            }
        }
    }
    assert!(seen > 3000);
}

fn check_against_walk(shape: Shape, first: u64, sectors: u64) {
    let map = shape.map(first << 9, (sectors as usize) << 9);
    let (mut parities, mut data) = walk(shape.children.into(), shape.parity.into(), first, sectors);
    if shape.parity == 1 && first & (1 << 11) != 0 {
        parities.iter_mut().zip(&mut data).for_each(|(p, d)| std::mem::swap(p, d));
    }
    let sectors_of = |c: &Column| {
        (0..c.len() as u64 >> 9).map(|i| (c.child as u64, (c.offset >> 9) + i)).collect::<Vec<_>>()
    };
    let mapped: Vec<_> = map.data().iter().flat_map(sectors_of).collect();
    assert_eq!(mapped, data, "{shape:?} first {first} sectors {sectors}");

    let mut mapped: Vec<_> = map.columns[..map.parity].iter().flat_map(sectors_of).collect();
    mapped.sort_unstable();
    parities.sort_unstable();
    assert_eq!(mapped, parities, "{shape:?} first {first} sectors {sectors}");

    // Contiguous in the block, and within the space that is allocated for it.
    let mut at = 0;
    for column in map.data() {
        assert_eq!(column.bytes.start, at);
        at = column.bytes.end;
    }
    assert_eq!(at as u64, sectors << 9);
    let total: usize = map.columns.iter().map(Column::len).sum();
    let asize = shape.asize(sectors << 9);
    assert!(total as u64 <= asize && asize - (total as u64) <= u64::from(shape.parity) << 9);
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    for (children, parity) in [(1, 1), (2, 2), (3, 3), (3, 0), (5, 4), (256, 1)] {
        assert!(Shape::new(children, parity, 9).is_err(), "{children} {parity}");
    }
}

#[test]
fn a_range_of_the_vdev_is_its_sectors_on_each_child() {
    for children in 2..6u64 {
        let shape = Shape::new(children as usize, 1, 9).unwrap();
        for first in 0..20u64 {
            for n in 0..20u64 {
                let mut sectors: Vec<(u64, u64)> =
                    (first..first + n).map(|b| (b % children, b / children)).collect();
                let mut ranged: Vec<(u64, u64)> = Vec::new();
                for r in shape.ranges(first << 9, n << 9) {
                    ranged.extend((0..r.len >> 9).map(|i| (r.child as u64, (r.offset >> 9) + i)));
                }
                sectors.sort_unstable();
                ranged.sort_unstable();
                assert_eq!(ranged, sectors, "{children} children, {n} from {first}");
            }
        }
    }
}
