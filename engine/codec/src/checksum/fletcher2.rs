//! Fletcher2: two interleaved streams of 64-bit words, each with a sum and a sum of sums.
//!
//! Kept for pools and log blocks of the first years; weak, since the top bits of a word reach only the top bits
//! of the sums.

use super::{Words, read_u64};
use units::Endian;

pub fn compute(endian: Endian, data: &[u8]) -> Words {
    resume([0; 4], endian, data)
}

/// Goes on from the words of what came before. A tail short of 16 bytes is not covered; blocks have none.
pub fn resume(start: Words, endian: Endian, data: &[u8]) -> Words {
    match endian {
        Endian::Little => sums(start, data, |bytes| read_u64(Endian::Little, bytes)),
        Endian::Big => sums(start, data, |bytes| read_u64(Endian::Big, bytes)),
    }
}

#[inline(always)]
fn sums(start: Words, data: &[u8], read: impl Fn([u8; 8]) -> u64) -> Words {
    let [mut a0, mut a1, mut b0, mut b1] = start;
    let (words, _) = data.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    for &[even, odd] in pairs {
        a0 = a0.wrapping_add(read(even));
        a1 = a1.wrapping_add(read(odd));
        b0 = b0.wrapping_add(a0);
        b1 = b1.wrapping_add(a1);
    }
    [a0, a1, b0, b1]
}
