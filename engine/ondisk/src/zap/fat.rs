//! Block 0 of a fat ZAP: the header, and in its second half the pointer table while that is small.

use super::ZapBlock;
use crate::bytes::{Reader, Writer};
use units::Result;

/// ```text
///    0  block type   8  magic
///   16  pointer table: first block, blocks, shift, first block of its successor, blocks copied    5 words
///   56  next free block   64  leaves   72  entries   80  salt of the hash
///   88  normalization flags   96  flags   104  padding up to half the block, then the pointer table
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZapHeader {
    pub table: PointerTable,
    pub free_block: u64,
    pub leaves: u64,
    pub entries: u64,
    pub salt: u64,
    pub normalization: u64,
    pub flags: ZapFlags,
}

/// From the first `shift` bits of a hash to the block of its leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointerTable {
    /// 0 while the table is in the second half of block 0.
    pub first_block: u64,
    pub blocks: u64,
    pub shift: u64,
    /// While the table is being doubled: where the larger one begins, and how much of this one it already has.
    pub next_first_block: u64,
    pub blocks_copied: u64,
}

/// A set of the `ZAP_FLAG_*` bits. Unknown bits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZapFlags(pub u64);

impl ZapFlags {
    /// The hash has 64 bits, not 28.
    pub const HASH64: ZapFlags = ZapFlags(1);
    /// Keys are arrays of u64, not names.
    pub const UINT64_KEY: ZapFlags = ZapFlags(2);
    /// The first word of a key is its hash.
    pub const PRE_HASHED_KEY: ZapFlags = ZapFlags(4);

    pub fn has(self, flag: ZapFlags) -> bool {
        self.0 & flag.0 == flag.0
    }

    #[must_use]
    pub fn with(self, flag: ZapFlags) -> ZapFlags {
        ZapFlags(self.0 | flag.0)
    }
}

impl PointerTable {
    pub fn is_embedded(&self) -> bool {
        self.blocks == 0
    }
}

impl ZapHeader {
    /// What is decoded; the block is larger.
    pub const SIZE: usize = 104;
    pub const MAGIC: u64 = 0x2_f52a_b2ab;

    /// The shift of a pointer table that fills half of a block of 2^`block_shift` bytes.
    pub fn embedded_shift(block_shift: u32) -> u32 {
        block_shift - 4
    }

    pub fn decode(r: &mut Reader<'_>) -> Result<ZapHeader> {
        let [kind, magic] = r.u64s()?;
        if kind != ZapBlock::HEADER || magic != ZapHeader::MAGIC {
            return Err(
                r.corrupt(format_args!("type {kind:#x}, magic {magic:#x} where a ZAP header should be"))
            );
        }
        let [first_block, blocks, shift, next_first_block, blocks_copied] = r.u64s()?;
        if !(1..64).contains(&shift) {
            return Err(r.corrupt(format_args!("a pointer table of 2^{shift} entries")));
        }
        let table = PointerTable { first_block, blocks, shift, next_first_block, blocks_copied };
        let [free_block, leaves, entries, salt, normalization, flags] = r.u64s()?;
        Ok(ZapHeader { table, free_block, leaves, entries, salt, normalization, flags: ZapFlags(flags) })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        let t = &self.table;
        w.u64s(&[ZapBlock::HEADER, ZapHeader::MAGIC]);
        w.u64s(&[t.first_block, t.blocks, t.shift, t.next_first_block, t.blocks_copied]);
        w.u64s(&[self.free_block, self.leaves, self.entries, self.salt, self.normalization, self.flags.0]);
    }
}
