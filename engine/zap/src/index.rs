//! The index of a micro ZAP: which slots have names of a hash, and which slots are free.
//!
//! ```text
//!   heads   one per bucket of hashes ──▶ the first slot of a chain
//!   links   one per slot: its name's hash, the next slot of the chain
//!   free    one bit per slot
//! ```
//!
//! It says where to look and has no names of its own: the bytes of the block decide whether a slot is the one, and a slot
//! that the index does not name has another hash. So it is good for exactly the bytes that it was made of, and a change
//! of them is done to both. A block with damage in it has none, and is searched as it stands.

use crate::key::Key;
use crate::micro::Micro;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Numbers of slots are below this, the end of a chain.
const NONE: u16 = u16::MAX;
/// Bytes of all indexes.
static BYTES: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
pub(crate) struct Index {
    /// A power of two, at least as many as there are slots.
    heads: Vec<u16>,
    links: Vec<Link>,
    free: Vec<u64>,
    /// What [`BYTES`] has of it.
    counted: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// The upper half, which has all the bits that count.
    hash: u32,
    next: u16,
}

/// What all indexes take now.
pub(crate) fn bytes() -> usize {
    BYTES.load(Relaxed)
}

impl Index {
    /// `None` where a slot is damaged, or there are more than a ZAP of a sound pool has.
    pub fn of(micro: &Micro) -> Option<Index> {
        let count = micro.slot_count();
        if count >= usize::from(NONE) {
            return None;
        }
        let mut index = Index { heads: Vec::new(), links: Vec::new(), free: Vec::new(), counted: 0 };
        index.grow(count);
        let rules = micro.rules();
        for slot in micro.slots() {
            let slot = slot.ok()?;
            index.add(slot.index, rules.hash(Key::Name(slot.name)));
        }
        Some(index)
    }

    /// The slots whose names have this hash, in no order.
    pub fn slots_of(&self, hash: u64) -> impl Iterator<Item = usize> + '_ {
        let hash = upper(hash);
        let mut at = self.heads[self.bucket(hash)];
        std::iter::from_fn(move || {
            while at != NONE {
                let slot = usize::from(at);
                let link = self.links[slot];
                at = link.next;
                if link.hash == hash {
                    return Some(slot);
                }
            }
            None
        })
    }

    /// The lowest one.
    pub fn free_slot(&self) -> Option<usize> {
        let word = self.free.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.free[word].trailing_zeros() as usize)
    }

    /// A free slot now has a name of this hash.
    pub fn add(&mut self, slot: usize, hash: u64) {
        let hash = upper(hash);
        self.free[slot / 64] &= !(1 << (slot % 64));
        self.links[slot].hash = hash;
        self.chain(slot);
    }

    /// The slot is free again.
    pub fn remove(&mut self, slot: usize) {
        let Link { hash, next } = self.links[slot];
        let bucket = self.bucket(hash);
        if self.heads[bucket] == slot as u16 {
            self.heads[bucket] = next;
        } else {
            let mut before = usize::from(self.heads[bucket]);
            while self.links[before].next != slot as u16 {
                before = usize::from(self.links[before].next);
            }
            self.links[before].next = next;
        }
        self.free[slot / 64] |= 1 << (slot % 64);
    }

    /// There are as many slots now, the new ones free.
    pub fn grow(&mut self, count: usize) {
        let had = self.links.len();
        assert!((had..usize::from(NONE)).contains(&count), "a block of {count} slots has an index");
        self.links.resize(count, Link { hash: 0, next: NONE });
        self.free.resize(count.div_ceil(64), 0);
        if count > self.heads.len() {
            // Empty chains for all, then those that have a name: a free slot is in none.
            self.heads = vec![NONE; count.next_power_of_two().max(64)];
            for slot in
                (0..had).filter(|slot| self.free[slot / 64] >> (slot % 64) & 1 == 0).collect::<Vec<_>>()
            {
                self.chain(slot);
            }
        }
        for slot in had..count {
            self.free[slot / 64] |= 1 << (slot % 64);
        }
        self.count();
    }

    fn chain(&mut self, slot: usize) {
        let bucket = self.bucket(self.links[slot].hash);
        self.links[slot].next = std::mem::replace(&mut self.heads[bucket], slot as u16);
    }

    fn bucket(&self, hash: u32) -> usize {
        (hash >> (32 - self.heads.len().ilog2())) as usize
    }

    fn count(&mut self) {
        let bytes = self.heads.capacity() * size_of::<u16>()
            + self.links.capacity() * size_of::<Link>()
            + self.free.capacity() * size_of::<u64>();
        BYTES.fetch_add(bytes, Relaxed);
        BYTES.fetch_sub(std::mem::replace(&mut self.counted, bytes), Relaxed);
    }
}

impl Clone for Index {
    fn clone(&self) -> Index {
        let (heads, links, free) = (self.heads.clone(), self.links.clone(), self.free.clone());
        let mut clone = Index { heads, links, free, counted: 0 };
        clone.count();
        clone
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.counted, Relaxed);
    }
}

/// Hashes of a micro ZAP have 28 bits, the upper ones of 64.
fn upper(hash: u64) -> u32 {
    (hash >> 32) as u32
}
