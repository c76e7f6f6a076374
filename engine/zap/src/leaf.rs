//! A leaf of a fat ZAP: the entries whose hashes share a prefix, in one block that is a small hash table of its own.
//!
//! Its layout is in [`ondisk::zap`]: a header, buckets, and chunks that are each an entry, a piece of an array, or free.
//! An entry's name and value are chains of array chunks. Of a hash, the first `prefix_len` bits are the leaf's prefix,
//! and those that follow choose the bucket. A chain of entries is sorted by collision differentiator.
//!
//! A leaf is read in place. A chunk number is checked when it is followed, and every walk is bounded by the number of
//! chunks, so a damaged leaf costs an error. Before a leaf is changed, [`Leaf::check`] proves it sound as a whole:
//! from then on a wrong chunk is a fault of ours and panics.
//!
//! ```text
//!   Leaf<Buf> ── find, entries, value ── check + into_mut ──▶ Leaf<IoBuf> ── insert, update, remove, split
//! ```

mod check;
mod edit;

use crate::hash::Rules;
use crate::key::{Needle, OwnedKey};
use crate::le;
use crate::value::Value;
use ondisk::zap::{
    CHAIN_END, CHUNK_ARRAY_BYTES as ARRAY, CHUNK_SIZE as CHUNK, LEAF_HEADER_SIZE, LeafChunk, LeafEntry,
    LeafGeometry, LeafHeader, ZapBlock,
};
use ondisk::{Reader, Writer};
use std::ops::{Deref, RangeInclusive};
use units::{Endian, Error, Result};
use world::Buf;

pub(crate) use edit::Fit;

/// The sizes a leaf may have, as powers of two: chunk numbers are 16 bits.
pub(crate) const SHIFTS: RangeInclusive<u32> = 9..=20;

/// A leaf over its block: a `Buf` to read, an `IoBuf` to change.
#[derive(Debug)]
pub(crate) struct Leaf<B> {
    /// While the leaf is being changed, its header lags behind the one below.
    bytes: B,
    header: LeafHeader,
    shift: u32,
    geometry: LeafGeometry,
}

/// An entry, and the chunk it is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryChunk {
    pub chunk: u16,
    pub phys: LeafEntry,
}

/// The kinds of chunks that only hold something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plain {
    Array = 251,
    Free = 253,
}

/// The kind of the others.
const ENTRY: u8 = 252;

/// How many chunks an array of so many bytes takes.
pub(crate) fn chunks_for(bytes: usize) -> usize {
    bytes.div_ceil(ARRAY)
}

/// How many chunks a block of this size has.
pub(crate) fn chunk_count(shift: u32) -> usize {
    LeafGeometry::new(shift).chunks()
}

/// The first `len` bits of a hash as a number.
pub(crate) fn prefix_of(hash: u64, len: u32) -> u64 {
    if len == 0 { 0 } else { hash >> (64 - len) }
}

/// Turns a block of the other byte order into ours. Arrays hold bytes and stay.
pub(crate) fn turn(bytes: &mut [u8]) {
    let shift = bytes.len().ilog2().clamp(*SHIFTS.start(), *SHIFTS.end());
    let (head, rest) = bytes.split_at_mut(LEAF_HEADER_SIZE);
    le::swap_each(&mut head[..24], 8);
    le::swap_each(&mut head[24..28], 4);
    le::swap_each(&mut head[28..36], 2);
    let (buckets, chunks) = rest.split_at_mut(2 * LeafGeometry::new(shift).buckets());
    le::swap_each(buckets, 2);
    for chunk in chunks.chunks_exact_mut(CHUNK) {
        if matches!(chunk[0], 251 | 253) {
            chunk[22..24].reverse();
        } else {
            le::swap_each(&mut chunk[2..12], 2);
            le::swap_each(&mut chunk[12..16], 4);
            le::swap_each(&mut chunk[16..24], 8);
        }
    }
}

impl Leaf<Buf> {
    /// Opens the leaf that a lookup of `hash` came to.
    pub fn open(bytes: Buf, hash: u64) -> Result<Leaf<Buf>> {
        let leaf = Leaf::of(bytes)?;
        if prefix_of(hash, leaf.prefix_len()) != leaf.prefix() {
            return Err(Error::corrupt(format!(
                "ZAP leaf of prefix {:x}/{} where hash {hash:x} leads",
                leaf.prefix(),
                leaf.prefix_len()
            )));
        }
        Ok(leaf)
    }

    /// Opens a leaf of whatever hashes.
    pub fn of(bytes: Buf) -> Result<Leaf<Buf>> {
        let (kind, bytes) = crate::block::open(bytes)?;
        let shift = bytes.len().ilog2();
        if kind != ZapBlock::Leaf || !bytes.len().is_power_of_two() || !SHIFTS.contains(&shift) {
            return Err(Error::corrupt(format!("{kind:?} block of {} bytes for a ZAP leaf", bytes.len())));
        }
        let header = LeafHeader::decode(&mut Reader::new(&bytes, Endian::Little, "ZAP leaf"))?;
        let leaf = Leaf { bytes, header, shift, geometry: LeafGeometry::new(shift) };
        let len = leaf.prefix_len();
        // The bits that choose the bucket come after the prefix and must exist.
        if len > 64 - leaf.geometry.hash_shift() || leaf.prefix() >> len != 0 {
            return Err(Error::corrupt(format!("ZAP leaf of prefix {:x}/{len}", leaf.prefix())));
        }
        Ok(leaf)
    }
}

impl<B: Deref<Target = [u8]>> Leaf<B> {
    pub fn prefix(&self) -> u64 {
        self.header.prefix
    }

    pub fn prefix_len(&self) -> u32 {
        self.header.prefix_len.into()
    }

    pub fn len(&self) -> usize {
        self.header.entries.into()
    }

    pub fn free_chunks(&self) -> usize {
        self.header.free_chunks.into()
    }

    fn bucket_of(&self, hash: u64) -> usize {
        (hash << self.prefix_len() >> (64 - self.geometry.hash_shift())) as usize
    }

    /// The first chunk of a bucket's chain.
    fn bucket(&self, bucket: usize) -> u16 {
        le::u16_at(&self.bytes, self.geometry.bucket_offset(bucket))
    }

    fn chunk(&self, chunk: u16) -> Result<&[u8]> {
        if usize::from(chunk) >= self.geometry.chunks() {
            return Err(Error::corrupt(format!(
                "ZAP leaf: link to chunk {chunk} of {}",
                self.geometry.chunks()
            )));
        }
        Ok(&self.bytes[self.geometry.chunk_offset(chunk)..][..CHUNK])
    }

    /// The content of an array or free chunk, and the chunk behind it.
    fn plain(&self, chunk: u16, kind: Plain) -> Result<(&[u8], u16)> {
        let bytes = self.chunk(chunk)?;
        if bytes[0] != kind as u8 {
            return Err(Error::corrupt(format!(
                "ZAP leaf: chunk {chunk} is of kind {}, not {kind:?}",
                bytes[0]
            )));
        }
        Ok((&bytes[1..=ARRAY], le::u16_at(bytes, 1 + ARRAY)))
    }

    fn entry(&self, chunk: u16) -> Result<EntryChunk> {
        match LeafChunk::decode(&mut Reader::new(self.chunk(chunk)?, Endian::Little, "ZAP leaf chunk"))? {
            LeafChunk::Entry(phys) => Ok(EntryChunk { chunk, phys }),
            _ => Err(Error::corrupt(format!("ZAP leaf: chunk {chunk} is no entry"))),
        }
    }

    /// Follows a chain of entries; a loop ends with an error, as no chain is longer than there are chunks.
    fn chain(&self, bucket: usize) -> impl Iterator<Item = Result<EntryChunk>> {
        let mut next = self.bucket(bucket);
        let mut steps = 0;
        std::iter::from_fn(move || {
            if next == CHAIN_END {
                return None;
            }
            steps += 1;
            let entry = if steps > self.geometry.chunks() {
                Err(Error::corrupt(format!("ZAP leaf: the entries of bucket {bucket} form a loop")))
            } else {
                self.entry(next)
            };
            next = entry.as_ref().map_or(CHAIN_END, |e| e.phys.next);
            Some(entry)
        })
    }

    /// The pieces of an array of `len` bytes.
    fn array(&self, first: u16, len: usize) -> impl Iterator<Item = Result<&[u8]>> {
        let mut next = first;
        let mut left = len;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let size = left.min(ARRAY);
            let piece = if left > self.geometry.chunks() * ARRAY {
                Err(Error::corrupt(format!("ZAP leaf: array of {left} bytes")))
            } else {
                self.plain(next, Plain::Array)
            };
            left = if piece.is_ok() { left - size } else { 0 };
            Some(piece.map(|(bytes, behind)| {
                next = behind;
                &bytes[..size]
            }))
        })
    }

    fn array_bytes(&self, first: u16, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len.min(self.bytes.len()));
        for piece in self.array(first, len) {
            bytes.extend_from_slice(piece?);
        }
        Ok(bytes)
    }

    fn array_equals(&self, first: u16, expected: &[u8]) -> Result<bool> {
        for (piece, expected) in self.array(first, expected.len()).zip(expected.chunks(ARRAY)) {
            if piece? != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The entry that the needle means; of several that match by normalised form, the one with the lowest cd.
    pub fn find(&self, needle: &Needle<'_>) -> Result<Option<EntryChunk>> {
        let mut best: Option<EntryChunk> = None;
        for entry in self.chain(self.bucket_of(needle.hash)) {
            let entry = entry?;
            let is_better = best.is_none_or(|b| entry.phys.differentiator < b.phys.differentiator);
            if is_better && self.matches(&entry, needle)? {
                best = Some(entry);
                if needle.is_exact() {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// How many entries the needle matches.
    pub fn count_matches(&self, needle: &Needle<'_>) -> Result<usize> {
        let mut count = 0;
        for entry in self.chain(self.bucket_of(needle.hash)) {
            count += usize::from(self.matches(&entry?, needle)?);
        }
        Ok(count)
    }

    fn matches(&self, entry: &EntryChunk, needle: &Needle<'_>) -> Result<bool> {
        let phys = &entry.phys;
        if phys.hash != needle.hash {
            return Ok(false);
        }
        if needle.is_exact() {
            return Ok(usize::from(phys.name_len) == needle.stored_ints()
                && self.array_equals(phys.name_chunk, &needle.stored)?);
        }
        let stored = self.array_bytes(phys.name_chunk, phys.name_len.into())?;
        Ok(stored.split_last().is_some_and(|(_, name)| needle.matches_name(name)))
    }

    /// Every entry, bucket by bucket.
    pub fn entries(&self) -> impl Iterator<Item = Result<EntryChunk>> {
        let mut left = self.geometry.chunks();
        (0..self.geometry.buckets()).flat_map(|bucket| self.chain(bucket)).map(move |entry| {
            // Chains that run into one another would multiply the work.
            left = left.checked_sub(1).ok_or_else(|| Error::corrupt("ZAP leaf: more entries than chunks"))?;
            entry
        })
    }

    /// Every chunk that is an entry, whether a chain leads to it or not.
    pub fn entry_chunks(&self) -> impl Iterator<Item = Result<EntryChunk>> {
        let chunks = 0..self.geometry.chunks() as u16;
        let is_entry = |chunk: &u16| self.bytes[self.geometry.chunk_offset(*chunk)] == ENTRY;
        chunks.filter(is_entry).map(|chunk| self.entry(chunk))
    }

    pub fn key_of(&self, entry: &EntryChunk, rules: &Rules) -> Result<OwnedKey> {
        let stored = self.array_bytes(entry.phys.name_chunk, name_size(&entry.phys, rules))?;
        OwnedKey::from_stored(stored, rules.flags)
    }

    pub fn value_of(&self, entry: &EntryChunk) -> Result<Value> {
        let bytes = self.array_bytes(entry.phys.value_chunk, entry.phys.value_size())?;
        Ok(Value::from_stored(bytes, entry.phys.value_int_size)
            .expect("the size of the integers was checked"))
    }

    /// The value of a single integer, without an allocation.
    pub fn u64_of(&self, entry: &EntryChunk) -> Result<Option<u64>> {
        if entry.phys.value_count != 1 {
            return Ok(None);
        }
        let mut value = 0;
        for piece in self.array(entry.phys.value_chunk, entry.phys.value_size()) {
            value = piece?.iter().fold(value, |value, byte| value << 8 | u64::from(*byte));
        }
        Ok(Some(value))
    }

    /// The lowest cd that no entry of this hash has.
    pub fn lowest_free_cd(&self, hash: u64) -> Result<u32> {
        let mut taken = Vec::new();
        for entry in self.chain(self.bucket_of(hash)) {
            let LeafEntry { hash: other, differentiator, .. } = entry?.phys;
            if other == hash {
                taken.push(differentiator);
            }
        }
        Ok(crate::micro::lowest_free_cd(taken))
    }

    /// How many leading bits the hashes of all entries, and this one, have in common.
    pub fn common_bits(&self, hash: u64) -> Result<u32> {
        let mut differing = 0;
        for entry in self.entries() {
            differing |= entry?.phys.hash ^ hash;
        }
        Ok(differing.leading_zeros())
    }
}

/// Bytes of a stored key.
fn name_size(entry: &LeafEntry, rules: &Rules) -> usize {
    usize::from(entry.name_len) * rules.key_int_size()
}

/// Whether `key` can be put in an empty leaf of this size at all.
pub(crate) fn could_hold(shift: u32, key: &Needle<'_>, value: &Value) -> bool {
    edit::cost(key.stored.len(), value.len() * value.int_size()) <= chunk_count(shift)
}
