//! What the tests of every structure share: a seeded source of numbers, and mutations that must not panic.

use crate::bytes::{Reader, Writer};
use units::{Endian, Result};

/// SplitMix64: small, seeded, and good enough to fill fields.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of at most `bits` bits, often small or all ones.
    pub fn bits(&mut self, bits: u32) -> u64 {
        let mask = u64::MAX >> (64 - bits);
        match self.next() % 8 {
            0 => 0,
            1 => mask,
            2 => self.next() & 0xff & mask,
            _ => self.next() & mask,
        }
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn flag(&mut self) -> bool {
        self.next() & 1 == 1
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next() as u8);
    }
}

pub const ORDERS: [Endian; 2] = [Endian::Little, Endian::Big];

/// Encodes into `size` bytes in both orders and demands the same value back, and the same bytes of that.
pub fn check_round_trip<T: PartialEq + std::fmt::Debug>(
    value: &T,
    size: usize,
    encode: impl Fn(&T, &mut Writer<'_>),
    decode: impl Fn(&mut Reader<'_>) -> Result<T>,
) {
    for endian in ORDERS {
        let mut bytes = vec![0xa5; size];
        let mut w = Writer::new(&mut bytes, endian);
        encode(value, &mut w);
        assert_eq!(w.remaining(), 0, "an encoder fills its structure, padding included");
        let back = decode(&mut Reader::new(&bytes, endian, "test")).unwrap();
        assert_eq!(&back, value, "{endian:?}");
        let mut again = vec![0x5a; size];
        encode(&back, &mut Writer::new(&mut again, endian));
        assert_eq!(again, bytes, "{endian:?}");
    }
}

/// Feeds a decoder truncations and seeded mutations of good bytes: it may refuse, it must not panic.
pub fn assault(good: &[u8], mut decode: impl FnMut(&[u8], Endian)) {
    for endian in ORDERS {
        let step = (good.len() / 300).max(1);
        for cut in (0..good.len()).step_by(step) {
            decode(&good[..cut], endian);
        }
        let mut numbers = Numbers(good.len() as u64);
        for _ in 0..3000 {
            let mut bad = good.to_vec();
            for _ in 0..=numbers.below(6) {
                let at = numbers.below(bad.len() as u64) as usize;
                bad[at] = numbers.pick(&[0, 1, 0x7f, 0x80, 0xff, numbers.0 as u8]);
            }
            decode(&bad, endian);
        }
        for _ in 0..200 {
            let mut noise = vec![0; good.len()];
            numbers.fill(&mut noise);
            decode(&noise, endian);
        }
    }
}
