//! What a dnode says of its object, as values.

use ondisk::{DnodeFlags, ObjectType};

/// Bytes of one dnode slot, and of a block of them.
pub(crate) const SLOT: u64 = 512;
pub(crate) const DNODE_BLOCK: u32 = 16 << 10;

/// What a dnode says of its object, besides the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attrs {
    pub kind: ObjectType,
    pub bonus_kind: ObjectType,
    /// Bytes of a level-0 block.
    pub block_size: u32,
    /// log2 of the bytes of an indirect block.
    pub indirect_shift: u8,
    /// How many roots there are: 1 to 3.
    pub roots: u8,
    /// How many 512-byte slots the dnode takes.
    pub slots: u8,
    /// The object's own checksum and compression codes; 0 inherits from the dataset.
    pub checksum: u8,
    pub compression: u8,
    pub flags: DnodeFlags,
    /// The largest block number that was ever written, less what was truncated.
    pub max_blkid: u64,
}

impl Attrs {
    /// log2 of how many pointers an indirect block holds.
    pub fn fan_out_shift(&self) -> u32 {
        u32::from(self.indirect_shift) - 7
    }

    /// The levels needed to reach `max_blkid`, counting level 0.
    pub fn levels_needed(&self) -> u8 {
        let mut reach = u128::from(self.roots);
        let mut levels = 1;
        while reach <= u128::from(self.max_blkid) {
            reach <<= self.fan_out_shift();
            levels += 1;
        }
        levels
    }

    pub fn size_bound(&self) -> u64 {
        (self.max_blkid + 1).saturating_mul(u64::from(self.block_size))
    }
}
