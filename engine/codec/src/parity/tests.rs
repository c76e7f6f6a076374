use super::*;
use crate::testing::bytes;

/// Parity as its definition reads, byte by byte.
fn oracle(data: &[Vec<u8>], row: usize) -> Vec<u8> {
    let longest = data.iter().map(Vec::len).max().unwrap_or(0);
    let factor = |column: usize| gf::power(row * (data.len() - 1 - column));
    (0..longest)
        .map(|at| {
            data.iter().enumerate().fold(0, |sum, (column, bytes)| {
                sum ^ gf::multiply(factor(column), *bytes.get(at).unwrap_or(&0))
            })
        })
        .collect()
}

/// Columns as a block leaves them: the first few one sector longer than the rest.
fn columns(count: usize, sectors: usize, longer: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|i| bytes((1 + i + 31 * count) as u64, 512 * (sectors + usize::from(i < longer))))
        .collect()
}

fn generated(level: Level, data: &[Vec<u8>], parities: usize) -> Vec<Vec<u8>> {
    let longest = data.iter().map(Vec::len).max().unwrap_or(0);
    let mut parity = vec![vec![0xee; longest]; parities];
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    generate_by(level, &data, &mut parity.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
    parity
}

#[test]
fn parity_follows_the_definition_at_every_level_and_length() {
    for level in cpu::levels() {
        for (count, sectors, longer) in [(1, 1, 0), (2, 1, 1), (3, 0, 2), (5, 3, 2), (8, 4, 0), (40, 1, 7)] {
            let data = columns(count, sectors, longer);
            for parities in 1..=3 {
                for (row, parity) in generated(level, &data, parities).iter().enumerate() {
                    assert!(*parity == oracle(&data, row), "{level:?}: parity {row} of {count} columns");
                }
            }
        }
    }
}

/// Three columns of one byte, worked out by hand: Q = 4 d0 + 2 d1 + d2, R = 16 d0 + 4 d1 + d2.
#[test]
fn a_small_example_worked_out_by_hand_comes_out() {
    let data = [vec![0x01], vec![0x80], vec![0x03]];
    for level in cpu::levels() {
        let parity = generated(level, &data, 3);
        // 2 * 0x80 = 0x1d and 4 * 0x80 = 0x3a, for x^8 is replaced by 0x1d.
        let expected = [0x01 ^ 0x80 ^ 0x03, 0x04 ^ 0x1d ^ 0x03, 0x10 ^ 0x3a ^ 0x03];
        assert_eq!(parity, expected.map(|byte| vec![byte]), "{level:?}");
    }
}

#[test]
fn lengths_that_are_no_sectors_and_odd_alignments_are_no_trouble() {
    for level in cpu::levels() {
        for length in (1..300).step_by(7) {
            let data: Vec<Vec<u8>> = (0..3).map(|i| bytes(i, length * (i as usize + 1) / 2)).collect();
            for (row, parity) in generated(level, &data, 3).iter().enumerate() {
                assert!(*parity == oracle(&data, row), "{level:?}: {length} bytes");
            }
        }
    }
}

#[test]
fn any_columns_come_back_from_any_parity_that_is_enough() {
    for level in cpu::levels() {
        for (count, sectors, longer) in [(1, 1, 0), (2, 0, 1), (3, 1, 2), (4, 2, 0), (6, 1, 3), (11, 1, 1)] {
            let data = columns(count, sectors, longer);
            let parity = generated(level, &data, 3);
            for lost in 0u32..1 << count {
                for read in 0u32..8 {
                    if lost.count_ones() <= 3 {
                        check(level, &data, &parity, lost, read);
                    }
                }
            }
        }
    }
}

/// Loses the columns whose bits are in `lost`, keeps the parity whose bits are in `read`.
fn check(level: Level, data: &[Vec<u8>], parity: &[Vec<u8>], lost: u32, read: u32) {
    let keep = |i: usize, mask: u32| mask >> i & 1 == 1;
    let data_left: Vec<Option<&[u8]>> =
        data.iter().enumerate().map(|(i, column)| (!keep(i, lost)).then_some(column.as_slice())).collect();
    let parity_left: Vec<Option<&[u8]>> =
        parity.iter().enumerate().map(|(i, column)| keep(i, read).then_some(column.as_slice())).collect();
    let expected: Vec<Vec<u8>> =
        data.iter().enumerate().filter(|(i, _)| keep(*i, lost)).map(|(_, column)| column.clone()).collect();
    let mut back: Vec<Vec<u8>> = expected.iter().map(|column| vec![0xee; column.len()]).collect();
    let mut slices: Vec<&mut [u8]> = back.iter_mut().map(Vec::as_mut_slice).collect();
    let result = reconstruct_by(level, &data_left, &parity_left, &mut slices);
    assert_eq!(result.is_ok(), lost.count_ones() <= read.count_ones(), "lost {lost:b}, read {read:b}");
    if result.is_ok() {
        assert!(back == expected, "{level:?}: lost {lost:b} of {}, read {read:b}", data.len());
    }
}

#[test]
fn the_widest_stripe_has_three_columns_that_can_be_told_apart() {
    let data = columns(DATA_MAX, 1, 100);
    let level = cpu::level();
    let parity = generated(level, &data, 3);
    let mut data_left: Vec<Option<&[u8]>> = data.iter().map(|column| Some(column.as_slice())).collect();
    let lost = [0, 127, 254];
    lost.iter().for_each(|&i| data_left[i] = None);
    let parity_left: Vec<Option<&[u8]>> = parity.iter().map(|column| Some(column.as_slice())).collect();
    let mut back = lost.map(|i| vec![0; data[i].len()]);
    let mut slices: Vec<&mut [u8]> = back.iter_mut().map(Vec::as_mut_slice).collect();
    reconstruct(&data_left, &parity_left, &mut slices).unwrap();
    assert!(lost.iter().zip(&back).all(|(&i, back)| *back == data[i]));
}
