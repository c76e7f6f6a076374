//! Block 0 of a fat ZAP: what is counted, and the start of the pointer table.
//!
//! Its layout is [`ZapHeader`]. The pointer at index i is the block of the leaf for the hashes whose first `shift`
//! bits are i. The table is half
//! of block 0 first. When that is too small it becomes a run of blocks of its own, and doubles from then on:
//!
//! ```text
//!   embedded, shift s ── grow ──▶ 1 block, s + 1 ── grow ──▶ 2 blocks, s + 2 ── grow ──▶ 4 blocks ...
//! ```
//!
//! A doubling is spread over several changes: `next_first_block` names the new table, into which `blocks_copied`
//! blocks of the old
//! one have been transferred. Until all are, the old table is the one to look into, and a change of it is repeated in
//! the part that was copied.

use crate::hash::Rules;
use crate::leaf;
use crate::normalize::Normalization;
use ondisk::zap::{PointerTable, ZapHeader};
use ondisk::{Reader, Writer};
use units::{Endian, Error, Result};

/// More blocks than any ZAP has; below it a block number cannot be mistaken for one of the other byte order.
const BLOCKS_MAX: u64 = 1 << 32;

/// The fields of the header, found possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The size of each block as a power of two.
    pub shift: u32,
    pub table: PointerTable,
    /// The first block that was never allocated.
    pub free_block: u64,
    pub leaves: u64,
    pub entries: u64,
    pub rules: Rules,
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
        let table = PointerTable { shift: embedded_shift(shift), ..PointerTable::default() };
        Header { shift, table, free_block: 2, leaves: 1, entries: 0, rules }
    }

    /// Reads block 0, which has been turned to our order already.
    pub fn decode(bytes: &[u8]) -> Result<Header> {
        let phys = ZapHeader::decode(&mut Reader::new(bytes, Endian::Little, "ZAP header"))?;
        let shift = bytes.len().ilog2();
        if !bytes.len().is_power_of_two() || !leaf::SHIFTS.contains(&shift) {
            return Err(Error::corrupt(format!("ZAP header of {} bytes", bytes.len())));
        }
        let norm = Normalization(phys.normalization);
        let rules = Rules { salt: phys.salt, norm, flags: phys.flags };
        rules.check()?;
        let ZapHeader { table, free_block, leaves, entries, .. } = phys;
        let header = Header { shift, table, free_block, leaves, entries, rules };
        header.check_table()?;
        Ok(header)
    }

    /// Writes the fields; the rest of the block is left alone.
    pub fn encode(&self, bytes: &mut [u8]) {
        let phys = ZapHeader {
            table: self.table,
            free_block: self.free_block,
            leaves: self.leaves,
            entries: self.entries,
            salt: self.rules.salt,
            normalization: self.rules.norm.0,
            flags: self.rules.flags,
        };
        phys.encode(&mut Writer::new(bytes, Endian::Little));
    }

    fn check_table(&self) -> Result<()> {
        let PointerTable { first_block, blocks, shift, next_first_block, blocks_copied } = self.table;
        let fits = |first: u64, count: u64| {
            first > 0 && first.checked_add(count).is_some_and(|end| end <= self.free_block)
        };
        let shift_is_right = if blocks == 0 {
            first_block == 0 && shift == embedded_shift(self.shift)
        } else {
            let blocks_shift = u64::from(blocks.ilog2());
            blocks.is_power_of_two()
                && shift <= self.rules.hash_bits().into()
                && shift == u64::from(self.pointers_per_block().ilog2()) + blocks_shift
        };
        let is_sound = (2..=BLOCKS_MAX).contains(&self.free_block)
            && shift_is_right
            && (blocks == 0 || fits(first_block, blocks))
            && (next_first_block == 0
                || blocks > 0 && blocks_copied < blocks && fits(next_first_block, 2 * blocks));
        if !is_sound {
            return Err(Error::corrupt(format!(
                "ZAP header: impossible pointer table {:?}, free block {}",
                self.table, self.free_block
            )));
        }
        Ok(())
    }

    /// Whether a block belongs to the pointer table, or to the one that it is growing into.
    pub fn is_of_table(&self, blkid: u64) -> bool {
        let PointerTable { first_block, blocks, next_first_block, .. } = self.table;
        let is_of = |first: u64, count: u64| first > 0 && (first..first + count).contains(&blkid);
        is_of(first_block, blocks) || is_of(next_first_block, 2 * blocks)
    }

    pub fn block_size(&self) -> usize {
        1 << self.shift
    }

    pub fn pointers_per_block(&self) -> u64 {
        self.block_size() as u64 / 8
    }

    /// How many bits of a hash index the table.
    pub fn table_shift(&self) -> u32 {
        self.table.shift as u32
    }

    /// Which pointer leads to the leaf of this hash.
    pub fn index_of(&self, hash: u64) -> u64 {
        leaf::prefix_of(hash, self.table_shift())
    }

    pub fn place_of(&self, index: u64) -> Place {
        if self.table.is_embedded() {
            return Place { block: 0, offset: self.block_size() / 2 + 8 * index as usize };
        }
        self.place_in(self.table.first_block, index)
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

fn embedded_shift(shift: u32) -> u64 {
    ZapHeader::embedded_shift(shift).into()
}
