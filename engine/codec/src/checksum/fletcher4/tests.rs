use super::*;
use crate::testing::{bytes, oracle};

/// A single word set to one shows its weights: with `m` words from it to the end, 1, m, m(m+1)/2, m(m+1)(m+2)/6.
#[test]
fn each_place_of_a_block_has_the_weights_of_its_distance_from_the_end() {
    const WORDS: u64 = 40;
    for (level, endian) in levels() {
        for place in 0..WORDS {
            let mut data = [0; 4 * WORDS as usize];
            let low_byte = if endian == Endian::Little { 0 } else { 3 };
            data[4 * place as usize + low_byte] = 1;
            let m = WORDS - place;
            let expected = [1, m, m * (m + 1) / 2, m * (m + 1) * (m + 2) / 6];
            assert_eq!(resume_by(level, [0; 4], endian, &data), expected, "{level:?} {endian:?} {place}");
        }
    }
}

#[test]
fn lanes_and_tails_sum_up_to_the_definition_at_every_length_and_alignment() {
    let data = bytes(7, 3000);
    for (level, endian) in levels() {
        for length in (0..1200).step_by(4).chain([2048, 2980]) {
            let data = &data[length % 13..][..length];
            let words = resume_by(level, [0; 4], endian, data);
            assert_eq!(words, oracle::fletcher4(endian, data), "{level:?} {endian:?}, {length} bytes");
        }
    }
}

#[test]
fn sums_wrap_around_as_the_definition_does() {
    let data = vec![0xff; 1 << 20];
    for (level, endian) in levels() {
        assert_eq!(resume_by(level, [0; 4], endian, &data), oracle::fletcher4(endian, &data));
    }
}

fn levels() -> impl Iterator<Item = (Level, Endian)> {
    cpu::levels().into_iter().flat_map(|level| [(level, Endian::Little), (level, Endian::Big)])
}

#[test]
fn a_block_may_be_summed_in_pieces() {
    let data = bytes(8, 4096);
    for cut in [0, 4, 152, 1024, 4092, 4096] {
        let (head, tail) = data.split_at(cut);
        for endian in [Endian::Little, Endian::Big] {
            assert_eq!(resume(compute(endian, head), endian, tail), compute(endian, &data), "cut at {cut}");
        }
    }
}

#[test]
fn weights_are_right_where_a_product_would_not_fit_in_64_bits() {
    assert_eq!(weights(3), [3, 6, 10]);
    assert_eq!(weights(-1), [u64::MAX, 0, 0]);
    assert_eq!(weights(-3), [3u64.wrapping_neg(), 3, 1u64.wrapping_neg()]);
    let n: i128 = 1 << 32;
    let exact = [n as u64, (n * (n + 1) / 2) as u64, (n * (n + 1) * (n + 2) / 6) as u64];
    assert_eq!(weights(n as i64), exact);
}
