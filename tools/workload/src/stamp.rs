//! Blocks that say what they are.
//!
//! ```text
//!   each 512-byte sector   | magic | seed | offset | generation | words used | words that follow from these | zeros |
//! ```
//!
//! Reading a block back tells more than that it is wrong: a sector of another offset was misdirected, one of another
//! generation is stale, a mixture is torn.

use crate::choose::Random;
use units::{Error, Kind, Result};

pub const SECTOR: usize = 512;

/// The words before the data.
const HEAD: usize = 5;

/// "CENOTEWL"
const MAGIC: u64 = u64::from_be_bytes(*b"CENOTEWL");

/// Which write of a block it was, from 1; 0 is a block never written, all zeros.
pub type Generation = u64;

/// The words of a sector of which `used` are not zero.
fn words(seed: u64, offset: u64, generation: Generation, used: u64) -> impl Iterator<Item = u64> {
    let mut random = Random(seed ^ offset.rotate_left(32) ^ generation.rotate_left(17));
    let head = [MAGIC, seed, offset, generation, used];
    let data = head.into_iter().chain(std::iter::repeat_with(move || random.next()));
    data.take(used as usize).chain(std::iter::repeat(0))
}

/// Fills a block; `zeros` bytes at the end of each sector stay zero, so that it can be compressed.
pub fn fill(block: &mut [u8], seed: u64, offset: u64, generation: Generation, zeros: usize) {
    let used = ((SECTOR - zeros.min(SECTOR)) / 8).max(HEAD) as u64;
    for (i, sector) in block.chunks_mut(SECTOR).enumerate() {
        let words = words(seed, offset + (i * SECTOR) as u64, generation, used);
        for (to, word) in sector.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// The generation of a block, or what is wrong with it.
pub fn check(block: &[u8], seed: u64, offset: u64) -> Result<Generation> {
    let mut found = None;
    for (i, sector) in block.chunks(SECTOR).enumerate() {
        let at = offset + (i * SECTOR) as u64;
        let generation = check_sector(sector, seed, at)?;
        if *found.get_or_insert(generation) != generation {
            let first = found.unwrap_or(0);
            let what = format!("verify: torn block, generations {first} and {generation}");
            return Err(Error::new(Kind::Corrupt, what).at(format!("at {at:#x}")));
        }
    }
    Ok(found.unwrap_or(0))
}

fn check_sector(sector: &[u8], seed: u64, offset: u64) -> Result<Generation> {
    if sector.iter().all(|&b| b == 0) {
        return Ok(0);
    }
    let wrong = |what: String| Err(Error::new(Kind::Corrupt, what).at(format!("at {offset:#x}")));
    let word = |i: usize| {
        let bytes = sector.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_be_bytes)
    };
    if word(0) != MAGIC {
        return wrong("verify: not a block of any workload".into());
    }
    if word(1) != seed {
        return wrong(format!("verify: a block of the workload with seed {}", word(1)));
    }
    if word(2) != offset {
        return wrong(format!("verify: misdirected, the sector belongs to {:#x}", word(2)));
    }
    let (generation, used) = (word(3), word(4).min(SECTOR as u64 / 8));
    let expected = words(seed, offset, generation, used);
    match sector.chunks_exact(8).zip(expected).position(|(bytes, word)| bytes != word.to_be_bytes()) {
        Some(i) => wrong(format!("verify: damaged in byte {} of generation {generation}", i * 8)),
        None => Ok(generation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: u64, generation: Generation, zeros: usize) -> Vec<u8> {
        let mut block = vec![0xee; 4096];
        fill(&mut block, 9, offset, generation, zeros);
        block
    }

    #[test]
    fn a_block_tells_its_generation() {
        for zeros in [0, 100, 256, 512] {
            assert_eq!(check(&block(8192, 5, zeros), 9, 8192).unwrap(), 5, "{zeros}");
        }
        assert_eq!(check(&[0; 4096], 9, 8192).unwrap(), 0);
        let zeros = block(0, 1, 256).iter().filter(|&&b| b == 0).count();
        assert!(zeros >= 2048, "half of the block can be compressed away");
    }

    #[test]
    fn every_kind_of_damage_is_named() {
        let mut torn = block(0, 1, 0);
        torn[2048..].copy_from_slice(&block(0, 2, 0)[2048..]);
        let mut half = block(0, 1, 0);
        half[..512].fill(0);
        let mut flipped = block(0, 1, 0);
        flipped[700] ^= 1;
        let mut cut = block(0, 1, 0);
        cut[900..1024].fill(0);
        for (bytes, seed, offset, what) in [
            (torn, 9, 0, "torn"),
            (half, 9, 0, "torn"),
            (flipped, 9, 0, "damaged"),
            (cut, 9, 0, "damaged"),
            (block(4096, 1, 0), 9, 0, "misdirected"),
            (block(0, 1, 0), 8, 0, "seed 9"),
            (vec![1; 4096], 9, 0, "not a block"),
        ] {
            let e = check(&bytes, seed, offset).unwrap_err();
            assert!(e.to_string().contains(what), "{e}");
        }
    }

    #[test]
    fn a_flip_of_any_byte_is_seen() {
        for zeros in [0, 256] {
            let good = block(512, 3, zeros);
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 0x40;
                assert!(check(&bad, 9, 512).is_err(), "byte {at}");
            }
        }
    }
}
