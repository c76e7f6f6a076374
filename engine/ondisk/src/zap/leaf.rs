//! A leaf of a fat ZAP: all entries whose hash begins with its prefix.
//!
//! ```text
//!   | header, 48 bytes | hash table, u16 each | chunk | chunk | ...           chunks of 24 bytes
//!
//!   entry   0 type 252   1 bytes of a value's integer   2 next in the hash chain (u16)
//!           4 first chunk of the name   6 its length    8 first chunk of the value   10 its count of integers
//!           12 collision differentiator (u32)           16 hash (u64)
//!   array   0 type 251   1 bytes of name or value, 21 of them   22 next chunk (u16)
//!   free    0 type 253   1 padding                              22 next free chunk (u16)
//! ```
//!
//! The hash table has a bucket for each 32 bytes of the block; chunks take what is left. Integers of values are
//! stored big endian, whatever the order of the block.

use super::ZapBlock;
use crate::bytes::{Reader, Writer};
use units::Result;

pub const LEAF_HEADER_SIZE: usize = 48;
pub const CHUNK_SIZE: usize = 24;
/// Bytes of name or value in an array chunk.
pub const CHUNK_ARRAY_BYTES: usize = 21;
/// The end of every chain of chunks, and an empty bucket.
pub const CHAIN_END: u16 = 0xffff;

const ENTRY: u8 = 252;
const ARRAY: u8 = 251;
const FREE: u8 = 253;

/// ```text
///    0  block type   8  padding   16  hash prefix   24  magic (u32)
///   28  free chunks   30  entries   32  bits of the prefix   34  first free chunk   36  flags (u8)   37  padding
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafHeader {
    pub prefix: u64,
    pub prefix_len: u16,
    pub free_chunks: u16,
    pub entries: u16,
    pub first_free: u16,
    pub flags: u8,
}

/// How many buckets and chunks a leaf has, by the size of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafGeometry {
    block_shift: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafChunk {
    Entry(LeafEntry),
    Array(LeafArray),
    Free(LeafFree),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafEntry {
    /// Bytes of one integer of the value: 1, 2, 4 or 8.
    pub value_int_size: u8,
    /// The next entry in the bucket.
    pub next: u16,
    pub name_chunk: u16,
    /// In bytes with the final zero; for keys of u64, in words.
    pub name_len: u16,
    pub value_chunk: u16,
    /// In integers.
    pub value_count: u16,
    /// Tells apart names of equal hash.
    pub differentiator: u32,
    pub hash: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafArray {
    pub bytes: [u8; CHUNK_ARRAY_BYTES],
    pub next: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafFree {
    pub next: u16,
}

impl LeafHeader {
    pub const MAGIC: u32 = 0x02ab_1eaf;
    /// In `flags`: the entries of a bucket are in order of their differentiators.
    pub const ENTRIES_SORTED: u8 = 1;

    pub fn decode(r: &mut Reader<'_>) -> Result<LeafHeader> {
        let [kind, _, prefix] = r.u64s()?;
        let magic = r.u32()?;
        if kind != ZapBlock::LEAF || magic != LeafHeader::MAGIC {
            return Err(
                r.corrupt(format_args!("type {kind:#x}, magic {magic:#x} where a ZAP leaf should be"))
            );
        }
        let (free_chunks, entries, prefix_len, first_free) = (r.u16()?, r.u16()?, r.u16()?, r.u16()?);
        if prefix_len > 64 {
            return Err(r.corrupt(format_args!("a hash prefix of {prefix_len} bits")));
        }
        let flags = r.u8()?;
        r.skip(11)?;
        Ok(LeafHeader { prefix, prefix_len, free_chunks, entries, first_free, flags })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        w.u64s(&[ZapBlock::LEAF, 0, self.prefix]);
        w.u32(LeafHeader::MAGIC);
        for field in [self.free_chunks, self.entries, self.prefix_len, self.first_free] {
            w.u16(field);
        }
        w.u8(self.flags);
        w.zeros(11);
    }
}

impl LeafGeometry {
    /// For a block of 2^`block_shift` bytes, of at least 512.
    pub fn new(block_shift: u32) -> LeafGeometry {
        assert!((9..=24).contains(&block_shift), "leaves of 2^{block_shift} bytes");
        LeafGeometry { block_shift }
    }

    /// The hash table is indexed by this many bits.
    pub fn hash_shift(&self) -> u32 {
        self.block_shift - 5
    }

    pub fn buckets(&self) -> usize {
        1 << self.hash_shift()
    }

    pub fn chunks(&self) -> usize {
        ((1 << self.block_shift) - 2 * self.buckets()) / CHUNK_SIZE - LEAF_HEADER_SIZE / CHUNK_SIZE
    }

    /// Where bucket `index` is, from the start of the block.
    pub fn bucket_offset(&self, index: usize) -> usize {
        LEAF_HEADER_SIZE + 2 * index
    }

    /// Where chunk `index` begins, from the start of the block.
    pub fn chunk_offset(&self, index: u16) -> usize {
        self.bucket_offset(self.buckets()) + CHUNK_SIZE * usize::from(index)
    }
}

impl LeafChunk {
    pub fn decode(r: &mut Reader<'_>) -> Result<LeafChunk> {
        Ok(match r.u8()? {
            ENTRY => LeafChunk::Entry(LeafEntry::decode_rest(r)?),
            ARRAY => LeafChunk::Array(LeafArray { bytes: r.array()?, next: r.u16()? }),
            FREE => {
                r.skip(CHUNK_ARRAY_BYTES)?;
                LeafChunk::Free(LeafFree { next: r.u16()? })
            }
            kind => return Err(r.corrupt(format_args!("unknown chunk type {kind}"))),
        })
    }

    pub fn encode(&self, w: &mut Writer<'_>) {
        match self {
            LeafChunk::Entry(entry) => {
                w.u8(ENTRY);
                entry.encode_rest(w);
            }
            LeafChunk::Array(array) => {
                w.u8(ARRAY);
                w.bytes(&array.bytes);
                w.u16(array.next);
            }
            LeafChunk::Free(free) => {
                w.u8(FREE);
                w.zeros(CHUNK_ARRAY_BYTES);
                w.u16(free.next);
            }
        }
    }
}

impl LeafEntry {
    /// Bytes of the value.
    pub fn value_size(&self) -> usize {
        usize::from(self.value_int_size) * usize::from(self.value_count)
    }

    fn decode_rest(r: &mut Reader<'_>) -> Result<LeafEntry> {
        let value_int_size = r.u8()?;
        if !matches!(value_int_size, 1 | 2 | 4 | 8) {
            return Err(r.corrupt(format_args!("integers of {value_int_size} bytes in a ZAP value")));
        }
        Ok(LeafEntry {
            value_int_size,
            next: r.u16()?,
            name_chunk: r.u16()?,
            name_len: r.u16()?,
            value_chunk: r.u16()?,
            value_count: r.u16()?,
            differentiator: r.u32()?,
            hash: r.u64()?,
        })
    }

    fn encode_rest(&self, w: &mut Writer<'_>) {
        w.u8(self.value_int_size);
        for field in [self.next, self.name_chunk, self.name_len, self.value_chunk, self.value_count] {
            w.u16(field);
        }
        w.u32(self.differentiator);
        w.u64(self.hash);
    }
}
