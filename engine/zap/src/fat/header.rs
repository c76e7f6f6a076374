//! Block 0 of a fat ZAP: what is counted, and the start of the pointer table.
//!
//! ```text
//!   0  kind | magic | table: first block, blocks, shift, next copy, blocks copied |
//!      free block | leaves | entries | salt | normalisation | flags          8 bytes each
//!   half a block: the pointer table, while it is small enough                8 bytes each
//! ```
//!
//! The pointer at index i is the block of the leaf for the hashes whose first `shift` bits are i. The table is half
//! of block 0 first. When that is too small it becomes a run of blocks of its own, and doubles from then on:
//!
//! ```text
//!   embedded, shift s ── grow ──▶ 1 block, s + 1 ── grow ──▶ 2 blocks, s + 2 ── grow ──▶ 4 blocks ...
//! ```
//!
//! A doubling is spread over several changes: `next_block` names the new table, into which `copied` blocks of the old
//! one have been transferred. Until all are, the old table is the one to look into, and a change of it is repeated in
//! the part that was copied.

use crate::block::HEADER;
use crate::hash::{Flags, Rules};
use crate::le;
use crate::leaf;
use crate::normalize::Normalization;
use units::{Error, Result};

const MAGIC: u64 = 0x2_f52a_b2ab;

/// More blocks than any ZAP has; below it a block number cannot be mistaken for one of the other byte order.
const BLOCKS_MAX: u64 = 1 << 32;

/// The fields of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The size of each block as a power of two.
    pub shift: u32,
    pub table: Table,
    /// The first block that was never allocated.
    pub free_block: u64,
    pub leaves: u64,
    pub entries: u64,
    pub rules: Rules,
}

/// Where the pointer table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// The first block, 0 while the table is embedded in the header.
    pub block: u64,
    pub blocks: u64,
    /// How many bits of the hash index it.
    pub shift: u32,
    /// The first block of the table twice as large that is being made, or 0.
    pub next_block: u64,
    pub copied: u64,
}

/// Where one pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub block: u64,
    /// In bytes.
    pub offset: usize,
}

impl Header {
    /// The header of a fat ZAP whose only leaf is block 1.
    pub fn new(shift: u32, rules: Rules) -> Header {
        let table = Table { block: 0, blocks: 0, shift: embedded_shift(shift), next_block: 0, copied: 0 };
        Header { shift, table, free_block: 2, leaves: 1, entries: 0, rules }
    }

    /// Reads block 0, whose kind has been seen already.
    pub fn decode(bytes: &[u8]) -> Result<Header> {
        let word = |i: usize| le::u64_at(bytes, 8 * i);
        let shift = bytes.len().ilog2();
        if word(1) != MAGIC {
            return Err(Error::corrupt("ZAP header without its magic"));
        }
        if !bytes.len().is_power_of_two() || !(leaf::SHIFT_MIN..=leaf::SHIFT_MAX).contains(&shift) {
            return Err(Error::corrupt(format!("ZAP header of {} bytes", bytes.len())));
        }
        let header = Header {
            shift,
            table: Table {
                block: word(2),
                blocks: word(3),
                shift: u32::try_from(word(4)).unwrap_or(u32::MAX),
                next_block: word(5),
                copied: word(6),
            },
            free_block: word(7),
            leaves: word(8),
            entries: word(9),
            rules: Rules { salt: word(10), norm: Normalization(word(11)), flags: Flags(word(12)) },
        };
        header.rules.norm.check()?;
        header.rules.flags.check()?;
        header.check_table()?;
        Ok(header)
    }

    /// Writes the fields; the rest of the block is left alone.
    pub fn encode(&self, bytes: &mut [u8]) {
        let words = [
            HEADER,
            MAGIC,
            self.table.block,
            self.table.blocks,
            self.table.shift.into(),
            self.table.next_block,
            self.table.copied,
            self.free_block,
            self.leaves,
            self.entries,
            self.rules.salt,
            self.rules.norm.0,
            self.rules.flags.0,
        ];
        for (i, word) in words.into_iter().enumerate() {
            le::put_u64(bytes, 8 * i, word);
        }
    }

    fn check_table(&self) -> Result<()> {
        let Table { block, blocks, shift, next_block, copied } = self.table;
        let fits = |first: u64, count: u64| {
            first > 0 && first.checked_add(count).is_some_and(|end| end <= self.free_block)
        };
        let shift_is_right = if blocks == 0 {
            block == 0 && shift == embedded_shift(self.shift)
        } else {
            blocks.is_power_of_two()
                && shift <= self.rules.hash_bits()
                && shift == self.pointers_per_block().ilog2() + blocks.ilog2()
        };
        let is_sound = (2..=BLOCKS_MAX).contains(&self.free_block)
            && shift_is_right
            && (blocks == 0 || fits(block, blocks))
            && (next_block == 0 || blocks > 0 && copied < blocks && fits(next_block, 2 * blocks));
        if !is_sound {
            return Err(Error::corrupt(format!(
                "ZAP header: impossible pointer table {:?}, free block {}",
                self.table, self.free_block
            )));
        }
        Ok(())
    }

    pub fn block_size(&self) -> usize {
        1 << self.shift
    }

    pub fn pointers_per_block(&self) -> u64 {
        self.block_size() as u64 / 8
    }

    /// Which pointer leads to the leaf of this hash.
    pub fn index_of(&self, hash: u64) -> u64 {
        leaf::prefix_of(hash, self.table.shift)
    }

    pub fn place_of(&self, index: u64) -> Place {
        if self.table.blocks == 0 {
            return Place { block: 0, offset: self.block_size() / 2 + 8 * index as usize };
        }
        self.place_in(self.table.block, index)
    }

    /// The place of pointer `index` in the table of blocks that starts at `first`.
    pub fn place_in(&self, first: u64, index: u64) -> Place {
        let per_block = self.pointers_per_block();
        Place { block: first + index / per_block, offset: 8 * (index % per_block) as usize }
    }

    /// The longest prefix a leaf may have: beyond it a larger table would be indexed by bits that are always zero.
    pub fn prefix_len_max(&self) -> u32 {
        self.rules.hash_bits() - 2
    }

    pub fn allocate(&mut self, blocks: u64) -> Result<u64> {
        let first = self.free_block;
        if first + blocks > BLOCKS_MAX {
            return Err(Error::new(units::Kind::NoSpace, "grow ZAP"));
        }
        self.free_block += blocks;
        Ok(first)
    }
}

/// The embedded table is half of the block.
fn embedded_shift(shift: u32) -> u32 {
    shift - 4
}
