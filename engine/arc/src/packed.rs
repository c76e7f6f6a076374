//! A block as the cold part keeps it: its bytes, compressed by lz4, where that gains.
//!
//! ```text
//!   up to 16K   ── whole ───────────────────────────▶ at most two thirds? ──▶ Packed
//!   larger      ── four samples of 1K: promising? ──▶ whole, likewise
//! ```
//!
//! The compressor stops when its room is full, so that what does not gain costs less than what does; of a large block four
//! samples tell it for a fortieth of that. Plain functions on bytes: no lock is held meanwhile.

use crate::charge::{OVERHEAD, charge_of};
use std::sync::Arc;
use units::Compression;
use world::{Buf, IoBuf};

/// What is charged beyond the bytes: the entry, the place in two maps, the counts of holders, and the heap's own.
const AROUND: u64 = OVERHEAD + 112;
/// The heap deals in so many bytes.
const GRAIN: u64 = 16;
/// Larger blocks are not kept: they would hold up the other requests of a core, on their way in and out.
pub(crate) const LARGEST: usize = 256 << 10;
/// Larger blocks are sampled first,
const SAMPLED: usize = 16 << 10;
/// by so many pieces of so many bytes, which must shrink to three quarters: of so little less is found to be alike.
const SAMPLES: usize = 4;
const SAMPLE: usize = 1 << 10;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    bytes: Arc<[u8]>,
    len: usize,
}

impl Packed {
    /// `None` when that gains too little.
    pub(crate) fn of(block: &[u8]) -> Option<Packed> {
        if block.len() > SAMPLED && !is_promising(block) {
            return None;
        }
        let most = (charge_of(block.len()) * 2 / 3).checked_sub(AROUND)? as usize;
        let mut out = IoBuf::scratch(most);
        let len = codec::compress::compress(Compression::Lz4, block, &mut out)?;
        Some(Packed { bytes: Arc::from(&out[..len]), len: block.len() })
    }

    /// The block's bytes; `None` when these were not made by [`Packed::of`].
    pub(crate) fn unpack(&self) -> Option<Buf> {
        let mut out = IoBuf::scratch(self.len);
        codec::compress::decompress(Compression::Lz4, &self.bytes, &mut out).ok()?;
        Some(out.freeze())
    }

    pub(crate) fn charge(&self) -> u64 {
        (self.bytes.len() as u64).next_multiple_of(GRAIN) + AROUND
    }

    pub(crate) fn is(&self, other: &Packed) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }
}

fn is_promising(block: &[u8]) -> bool {
    let mut sample = [0; SAMPLES * SAMPLE];
    let step = (block.len() - SAMPLE) / (SAMPLES - 1);
    for (i, piece) in sample.chunks_exact_mut(SAMPLE).enumerate() {
        piece.copy_from_slice(&block[i * step..i * step + SAMPLE]);
    }
    let mut out = [0; SAMPLES * SAMPLE / 4 * 3];
    codec::compress::compress(Compression::Lz4, &sample, &mut out).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seeded generator (xorshift64*).
    fn noise(len: usize, mut seed: u64) -> Vec<u8> {
        let mut next = || {
            seed ^= seed >> 12;
            seed ^= seed << 25;
            seed ^= seed >> 27;
            (seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    /// Each half of the bytes is noise, the rest one letter.
    fn half_noise(len: usize, seed: u64) -> Vec<u8> {
        let mut bytes = noise(len, seed);
        bytes.chunks_mut(64).for_each(|chunk| chunk.iter_mut().skip(24).for_each(|byte| *byte = b'x'));
        bytes
    }

    #[test]
    fn bytes_of_any_length_come_back_equal_for_less() {
        for len in [512, 700, 4096, 5000, 8192, 16_384, 20_000, 131_072, LARGEST] {
            let block = half_noise(len, len as u64);
            let packed = Packed::of(&block).unwrap_or_else(|| panic!("{len} bytes gain"));
            assert_eq!(packed.unpack().unwrap()[..], block[..]);
            assert!(packed.charge() * 3 <= charge_of(len) * 2 + 3 * GRAIN, "{len}: {}", packed.charge());
        }
    }

    #[test]
    fn what_does_not_gain_is_not_kept() {
        for len in [4096, 8192, 16_384, 131_072] {
            assert!(Packed::of(&noise(len, 7)).is_none(), "{len} bytes of noise");
        }
        let mut seldom = noise(8192, 9);
        seldom[..2048].fill(0);
        assert!(Packed::of(&seldom).is_none(), "a quarter less is too little");
    }

    #[test]
    fn a_large_block_is_told_by_samples() {
        let mut block = noise(131_072, 3);
        block[2048..40_000].fill(0);
        assert!(!is_promising(&block));
        assert!(is_promising(&half_noise(131_072, 5)));
    }
}
