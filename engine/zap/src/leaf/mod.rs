//! A leaf of a fat ZAP: the entries whose hashes share a prefix, in one block that is a small hash table of its own.
//!
//! ```text
//!    0  kind(8) unused(8) prefix(8) magic(4) nfree(2) nentries(2) prefix_len(2) freelist(2) flags(1) unused(11)
//!   48  hash table: one u16 per 32 bytes of block, the first chunk of each bucket's chain
//!       chunks of 24 bytes, all of one kind:
//!         entry  252 int_size(1) next(2) name_chunk(2) name_ints(2) value_chunk(2) value_ints(2) cd(4) hash(8)
//!         array  251 bytes(21) next(2)
//!         free   253 unused(21) next(2)
//! ```
//!
//! `0xffff` ends a chain. An entry's name and value are chains of array chunks, each integer with its high byte
//! first. Of a hash, the first `prefix_len` bits are the leaf's prefix, and those that follow choose the bucket.
//! A chain of entries is sorted by collision differentiator.
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

use crate::block::LEAF;
use crate::hash::Rules;
use crate::key::{Needle, OwnedKey};
use crate::le;
use crate::value::Value;
use std::ops::Deref;
use units::{Error, Result};
use world::Buf;

pub(crate) use edit::Fit;

const MAGIC: u32 = 0x2ab_1eaf;
const HEADER: usize = 48;
pub(crate) const CHUNK: usize = 24;
/// Bytes of a key or a value that one chunk holds.
pub(crate) const ARRAY: usize = CHUNK - 3;
const CHAIN_END: u16 = 0xffff;

const ENTRY: u8 = 252;
const ARRAY_KIND: u8 = 251;
const FREE: u8 = 253;

/// Entry chains are sorted by cd: what a lookup by normalised form relies on.
const FLAG_CD_SORTED: u8 = 1;

/// The sizes a leaf may have, as powers of two: chunk numbers are 16 bits.
pub(crate) const SHIFT_MIN: u32 = 9;
pub(crate) const SHIFT_MAX: u32 = 20;

/// A leaf over its block: a `Buf` to read, an `IoBuf` to change.
#[derive(Debug)]
pub(crate) struct Leaf<B> {
    bytes: B,
    shift: u32,
}

/// An entry chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryChunk {
    pub chunk: u16,
    next: u16,
    int_size: u8,
    name: u16,
    name_ints: u16,
    value: u16,
    value_ints: u16,
    pub cd: u32,
    pub hash: u64,
}

/// How many chunks an array of so many bytes takes.
pub(crate) fn chunks_for(bytes: usize) -> usize {
    bytes.div_ceil(ARRAY)
}

/// How many chunks a block of this size has.
pub(crate) fn chunk_count(shift: u32) -> usize {
    ((1 << shift) - HEADER - 2 * bucket_count(shift)) / CHUNK
}

fn bucket_count(shift: u32) -> usize {
    1 << bucket_bits(shift)
}

fn bucket_bits(shift: u32) -> u32 {
    shift - 5
}

/// The first `len` bits of a hash as a number.
pub(crate) fn prefix_of(hash: u64, len: u32) -> u64 {
    if len == 0 { 0 } else { hash >> (64 - len) }
}

/// Turns a block of the other byte order into ours. Arrays hold bytes and stay.
pub(crate) fn turn(bytes: &mut [u8]) {
    let shift = bytes.len().ilog2().clamp(SHIFT_MIN, SHIFT_MAX);
    let (head, rest) = bytes.split_at_mut(HEADER);
    le::swap_each(&mut head[..24], 8);
    le::swap_each(&mut head[24..28], 4);
    le::swap_each(&mut head[28..36], 2);
    let (buckets, chunks) = rest.split_at_mut(2 * bucket_count(shift));
    le::swap_each(buckets, 2);
    for chunk in chunks.chunks_exact_mut(CHUNK) {
        if chunk[0] == ENTRY {
            le::swap_each(&mut chunk[2..12], 2);
            le::swap_each(&mut chunk[12..16], 4);
            le::swap_each(&mut chunk[16..24], 8);
        } else {
            chunk[22..24].reverse();
        }
    }
}

impl Leaf<Buf> {
    /// Opens the leaf that a lookup of `hash` came to.
    pub fn open(bytes: Buf, hash: u64) -> Result<Leaf<Buf>> {
        let (kind, bytes) = crate::block::open(bytes)?;
        let shift = bytes.len().ilog2();
        if kind != crate::block::BlockKind::Leaf || le::u32_at(&bytes, 24) != MAGIC {
            return Err(Error::corrupt("ZAP leaf without its magic"));
        }
        if !bytes.len().is_power_of_two() || !(SHIFT_MIN..=SHIFT_MAX).contains(&shift) {
            return Err(Error::corrupt(format!("ZAP leaf of {} bytes", bytes.len())));
        }
        let leaf = Leaf { bytes, shift };
        let len = leaf.prefix_len();
        // The bits that choose the bucket come after the prefix and must exist.
        if len > 64 - bucket_bits(shift) || prefix_of(hash, len) != leaf.prefix() {
            return Err(Error::corrupt(format!(
                "ZAP leaf of prefix {:x}/{len} where hash {hash:x} leads",
                leaf.prefix()
            )));
        }
        Ok(leaf)
    }
}

impl<B: Deref<Target = [u8]>> Leaf<B> {
    pub fn prefix(&self) -> u64 {
        le::u64_at(&self.bytes, 16)
    }

    pub fn prefix_len(&self) -> u32 {
        u32::from(le::u16_at(&self.bytes, 32))
    }

    pub fn len(&self) -> usize {
        usize::from(le::u16_at(&self.bytes, 30))
    }

    pub fn free_chunks(&self) -> usize {
        usize::from(le::u16_at(&self.bytes, 28))
    }

    fn free_list(&self) -> u16 {
        le::u16_at(&self.bytes, 34)
    }

    fn chunk_count(&self) -> usize {
        chunk_count(self.shift)
    }

    fn bucket_of(&self, hash: u64) -> usize {
        (hash << self.prefix_len() >> (64 - bucket_bits(self.shift))) as usize
    }

    fn bucket(&self, bucket: usize) -> u16 {
        le::u16_at(&self.bytes, HEADER + 2 * bucket)
    }

    fn chunk_at(&self, chunk: u16) -> usize {
        HEADER + 2 * bucket_count(self.shift) + CHUNK * usize::from(chunk)
    }

    /// The bytes of a chunk that must be of the given kind.
    fn chunk(&self, chunk: u16, kind: u8) -> Result<&[u8]> {
        if usize::from(chunk) >= self.chunk_count() {
            return Err(Error::corrupt(format!("ZAP leaf: link to chunk {chunk} of {}", self.chunk_count())));
        }
        let bytes = &self.bytes[self.chunk_at(chunk)..][..CHUNK];
        if bytes[0] != kind {
            return Err(Error::corrupt(format!(
                "ZAP leaf: chunk {chunk} is of kind {}, not {kind}",
                bytes[0]
            )));
        }
        Ok(bytes)
    }

    fn entry(&self, chunk: u16) -> Result<EntryChunk> {
        let bytes = self.chunk(chunk, ENTRY)?;
        let int_size = bytes[1];
        if !matches!(int_size, 1 | 2 | 4 | 8) {
            return Err(Error::corrupt(format!("ZAP leaf: chunk {chunk} has integers of {int_size} bytes")));
        }
        Ok(EntryChunk {
            chunk,
            int_size,
            next: le::u16_at(bytes, 2),
            name: le::u16_at(bytes, 4),
            name_ints: le::u16_at(bytes, 6),
            value: le::u16_at(bytes, 8),
            value_ints: le::u16_at(bytes, 10),
            cd: le::u32_at(bytes, 12),
            hash: le::u64_at(bytes, 16),
        })
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
            let entry = if steps > self.chunk_count() {
                Err(Error::corrupt(format!("ZAP leaf: the entries of bucket {bucket} form a loop")))
            } else {
                self.entry(next)
            };
            next = entry.as_ref().map_or(CHAIN_END, |e| e.next);
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
            let piece = if left > self.chunk_count() * ARRAY {
                Err(Error::corrupt(format!("ZAP leaf: array of {left} bytes")))
            } else {
                self.chunk(next, ARRAY_KIND)
            };
            Some(
                piece
                    .map(|bytes| {
                        next = le::u16_at(bytes, CHUNK - 2);
                        let size = left.min(ARRAY);
                        left -= size;
                        &bytes[1..1 + size]
                    })
                    .inspect_err(|_| left = 0),
            )
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
            if best.is_none_or(|b| entry.cd < b.cd) && self.matches(&entry, needle)? {
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
        if entry.hash != needle.hash {
            return Ok(false);
        }
        if needle.is_exact() {
            return Ok(usize::from(entry.name_ints) == needle.stored_ints()
                && self.array_equals(entry.name, &needle.stored)?);
        }
        let stored = self.array_bytes(entry.name, entry.name_ints.into())?;
        Ok(stored.split_last().is_some_and(|(_, name)| needle.matches_name(name)))
    }

    /// Every entry, bucket by bucket.
    pub fn entries(&self) -> impl Iterator<Item = Result<EntryChunk>> {
        let mut left = self.chunk_count();
        (0..bucket_count(self.shift)).flat_map(|bucket| self.chain(bucket)).map(move |entry| {
            // Chains that run into one another would multiply the work.
            left = left.checked_sub(1).ok_or_else(|| Error::corrupt("ZAP leaf: more entries than chunks"))?;
            entry
        })
    }

    pub fn key_of(&self, entry: &EntryChunk, rules: &Rules) -> Result<OwnedKey> {
        let len = usize::from(entry.name_ints) * rules.key_int_size();
        OwnedKey::from_stored(self.array_bytes(entry.name, len)?, rules.flags)
    }

    pub fn value_of(&self, entry: &EntryChunk) -> Result<Value> {
        let bytes = self.array_bytes(entry.value, self.value_len(entry))?;
        Ok(Value::from_stored(bytes, entry.int_size).expect("the size of the integers was checked"))
    }

    fn value_len(&self, entry: &EntryChunk) -> usize {
        usize::from(entry.value_ints) * usize::from(entry.int_size)
    }

    /// The value of a single integer, without an allocation.
    pub fn u64_of(&self, entry: &EntryChunk) -> Result<Option<u64>> {
        if entry.value_ints != 1 {
            return Ok(None);
        }
        let mut value = 0;
        for piece in self.array(entry.value, entry.int_size.into()) {
            value = piece?.iter().fold(value, |value, byte| value << 8 | u64::from(*byte));
        }
        Ok(Some(value))
    }

    /// The lowest cd that no entry of this hash has.
    pub fn lowest_free_cd(&self, hash: u64) -> Result<u32> {
        let mut taken = Vec::new();
        for entry in self.chain(self.bucket_of(hash)) {
            let entry = entry?;
            if entry.hash == hash {
                taken.push(entry.cd);
            }
        }
        Ok(crate::micro::lowest_free_cd(taken))
    }

    /// How many leading bits the hashes of all entries, and this one, have in common.
    pub fn common_bits(&self, hash: u64) -> Result<u32> {
        let mut differing = 0;
        for entry in self.entries() {
            differing |= entry?.hash ^ hash;
        }
        Ok(differing.leading_zeros())
    }
}

/// Whether `key` can be put in an empty leaf of this size at all.
pub(crate) fn could_hold(shift: u32, key: &Needle<'_>, value: &Value) -> bool {
    edit::cost(key.stored.len(), value.len() * value.int_size()) <= chunk_count(shift)
}
