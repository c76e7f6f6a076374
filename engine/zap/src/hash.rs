//! From a key to the bits that place its entry.
//!
//! ```text
//!   63            36 35                          0
//!  |  28 hash bits  |  zero                       |   usual
//!  |        48 hash bits             |  zero      |   ZapFlags::HASH64
//!   └ table shift ┘└ leaf bucket ┘
//! ```
//!
//! The hash is a CRC-64 (ECMA-182, reflected) whose start value is the salt of the ZAP, so that nobody can prepare
//! names that collide everywhere. Only the high bits are kept, because a directory cookie must hold the hash and the
//! collision differentiator together; what is kept is also what the pointer table and the leaf look at first.

use crate::key::Key;
use crate::normalize::Normalization;
use ondisk::zap::ZapFlags;
use units::{Error, Result};

/// What decides where an entry of this ZAP lies: fixed when the ZAP is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub salt: u64,
    pub norm: Normalization,
    pub flags: ZapFlags,
}

/// The flags whose meaning we know.
const KNOWN_FLAGS: u64 = ZapFlags::HASH64.0 | ZapFlags::UINT64_KEY.0 | ZapFlags::PRE_HASHED_KEY.0;

impl Rules {
    /// Rules that we cannot follow would hide entries, or put them where no lookup finds them.
    pub fn check(&self) -> Result<()> {
        self.norm.check()?;
        if self.flags.0 & !KNOWN_FLAGS != 0 {
            return Err(Error::unsupported(format!("ZAP with unknown flags {:#x}", self.flags.0)));
        }
        Ok(())
    }

    /// How many of the high bits of a hash are used.
    pub fn hash_bits(&self) -> u32 {
        if self.flags.has(ZapFlags::HASH64) { 48 } else { 28 }
    }

    /// The size in bytes of what keys are made of.
    pub fn key_int_size(&self) -> usize {
        if self.flags.has(ZapFlags::UINT64_KEY) { 8 } else { 1 }
    }

    /// Collision differentiators stay below this.
    pub fn max_cd(&self) -> u32 {
        if self.flags.has(ZapFlags::HASH64) { 0xffff } else { u32::MAX }
    }

    /// The hash under which `key` is stored. Names are normalised first, whatever the match asked for: all spellings
    /// of a name must meet in one bucket.
    pub fn hash(&self, key: Key<'_>) -> u64 {
        let full = match key {
            Key::Words([first, ..]) if self.flags.has(ZapFlags::PRE_HASHED_KEY) => *first,
            Key::Words(words) => words.iter().fold(self.salt, |crc, word| feed(crc, &word.to_le_bytes())),
            Key::Name(name) => feed(self.salt, &self.norm.apply(name)),
        };
        full & (u64::MAX << (64 - self.hash_bits()))
    }
}

fn feed(crc: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(crc, |crc, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;

static TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_the_published_crc64_xz() {
        // The catalogue's CRC-64/XZ is this polynomial with all bits inverted before and after.
        assert_eq!(!feed(!0, b"123456789"), 0x995d_c9bb_df19_39fa);
    }

    #[test]
    fn only_the_high_bits_of_a_hash_are_used() {
        let rules =
            Rules { salt: 0x1234_5678_9abc_def1, norm: Normalization::NONE, flags: ZapFlags::default() };
        assert_eq!(rules.hash(Key::Name(b"name")) << 28, 0);
        let wide = Rules { flags: ZapFlags::HASH64, ..rules };
        assert_eq!(wide.hash(Key::Name(b"name")) << 48, 0);
        assert_eq!(wide.hash(Key::Name(b"name")) >> 36, rules.hash(Key::Name(b"name")) >> 36);
    }

    #[test]
    fn a_prehashed_key_is_its_own_hash() {
        let flags = ZapFlags::HASH64.with(ZapFlags::UINT64_KEY).with(ZapFlags::PRE_HASHED_KEY);
        let rules = Rules { salt: 7, norm: Normalization::NONE, flags };
        assert_eq!(rules.hash(Key::Words(&[0x1122_3344_5566_7788, 9])), 0x1122_3344_5566_0000);
    }
}
