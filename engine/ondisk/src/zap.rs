//! The blocks of a ZAP, the table of names and values: their structures only. The crate `zap` looks up and inserts.
//!
//! ```text
//!   micro   one block of up to 1 MiB       | header | entry | entry | ...            short names, one u64 each
//!   fat     blocks of equal size, 2^n      block 0: | header | padding | pointer table, half the block |
//!           from 512 bytes on              others:  | leaf |, or a larger pointer table
//! ```
//!
//! The first word of a block tells what it is, and since only three values are possible there, its byte order too.

mod fat;
mod leaf;
mod micro;
#[cfg(test)]
mod tests;

pub use fat::{PointerTable, ZapFlags, ZapHeader};
pub use leaf::{
    CHAIN_END, CHUNK_ARRAY_BYTES, CHUNK_SIZE, LEAF_HEADER_SIZE, LeafArray, LeafChunk, LeafEntry, LeafFree,
    LeafGeometry, LeafHeader,
};
pub use micro::{MICRO_ENTRY_SIZE, MICRO_HEADER_SIZE, MICRO_NAME_MAX, MicroEntry, MicroHeader};

use units::Endian;

/// What the first word of a block says; any other word starts a pointer table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZapBlock {
    Leaf,
    Header,
    Micro,
}

impl ZapBlock {
    pub const LEAF: u64 = 1 << 63;
    pub const HEADER: u64 = (1 << 63) + 1;
    pub const MICRO: u64 = (1 << 63) + 3;

    /// What kind of block this is; `None` for a pointer table.
    pub fn of(block: &[u8], endian: Endian) -> Option<ZapBlock> {
        let word = *block.first_chunk::<8>()?;
        let word = match endian {
            Endian::Little => u64::from_le_bytes(word),
            Endian::Big => u64::from_be_bytes(word),
        };
        match word {
            ZapBlock::LEAF => Some(ZapBlock::Leaf),
            ZapBlock::HEADER => Some(ZapBlock::Header),
            ZapBlock::MICRO => Some(ZapBlock::Micro),
            _ => None,
        }
    }
}

/// The longest name, its final zero byte included, without the feature `longname`.
pub const NAME_MAX: usize = 256;
/// The longest name with the feature `longname`.
pub const LONG_NAME_MAX: usize = 1024;
/// The longest value in bytes.
pub const VALUE_MAX: usize = 8192;
