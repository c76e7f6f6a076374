use super::super::map::Shape;
use super::*;

fn block(len: usize) -> Buf {
    let mut state = 7u32;
    let mut buf = IoBuf::zeroed(len);
    buf.iter_mut().for_each(|b| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *b = (state >> 24) as u8;
    });
    buf.freeze()
}

#[test]
fn any_columns_up_to_the_parity_can_be_lost() {
    for (children, parity) in [(2, 1), (4, 1), (5, 2), (6, 3), (7, 3)] {
        for sectors in [1, 2, 3, 4, 5, 9, 16] {
            let map = Shape::new(children, parity, 9).unwrap().map(7 << 9, sectors << 9);
            let block = block(sectors << 9);
            let columns = split(&map, &block);
            for lost in 0u32..1 << columns.len() {
                let left: Vec<Option<&[u8]>> =
                    columns.iter().enumerate().map(|(c, b)| (lost >> c & 1 == 0).then_some(&b[..])).collect();
                let rebuilt = rebuild(&map, &left);
                let possible = lost.count_ones() as usize <= map.parity;
                let data_lost = (lost >> map.parity).count_ones() as usize;
                let parity_left = map.parity - (lost & ((1 << map.parity) - 1)).count_ones() as usize;
                assert_eq!(rebuilt.is_some(), data_lost <= parity_left);
                assert!(rebuilt.is_some() || !possible);
                if let Some(rebuilt) = rebuilt {
                    assert_eq!(rebuilt[..], block[..], "{children} {parity} {sectors} {lost:b}");
                }
            }
        }
    }
}

#[test]
fn splitting_copies_no_data() {
    let map = Shape::new(4, 1, 9).unwrap().map(0, 6 << 9);
    let block = block(6 << 9);
    let columns = split(&map, &block);
    assert_eq!(columns[1].as_ptr(), block.as_ptr());
    assert_eq!(columns[3].as_ptr(), block[4 << 9..].as_ptr());
}
