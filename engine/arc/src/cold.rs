//! The cold part: blocks that would leave memory, kept compressed.
//!
//! ```text
//!   window, main ── would leave for one that comes ──▶ worth it? ─ no ─▶ ghost
//!                                                        │ yes            ▲ ▲
//!                                     without the lock: compressed ─ no ──┘ │ the one used least of a few
//!                                                        ▼ gains            │ leaves for one used more
//!   window ◀── decompressed, without the lock ── hit ── COLD ───────────────┘
//! ```
//!
//! *Worth it* is what was used more than once, and, when the part is full, clearly more often than the block that would
//! leave it, or after that was not used for long: what passes once is never compressed, and of a loop larger than all,
//! what fits stays. One in [`TURNED`] of those that are refused comes in all the same.
//!
//! *A hit* is decompressed, and stays here: to bring it back another one would have to be compressed. It comes back when it
//! is used again soon, or clearly more often than what is next to leave the main part.
//!
//! *How large it is* follows what it is good for, up to a share of the limit that is set from above:
//!
//! ```text
//!   larger     a hit on a block that would not be here in the same memory, uncompressed
//!              a miss of one that left it, or was refused
//!   smaller    a hit on one that would; a block that leaves without a hit: both compress in vain. An eighth of a block
//! ```
//!
//! It is filled by what leaves, so that what fits without it is not compressed, and what would fit into a little of it
//! takes no more.
//!
//! *What does not gain* is found out by trying; while it is so for block after block, only one in [`TRIED`] is tried.
//!
//! *When memory is short* nothing new is compressed. Cold blocks leave first until the part has its share of what is left:
//! they are used less than all others. Then the others leave as always, so that both become smaller together.
//!
//! A block that is being compressed is a ghost meanwhile, with a number in `pending`: whatever happens to it in that time,
//! a read or a write or a free, takes the number away, and its bytes are dropped.
//!
//! Here is what is remembered, and `part` has what is done with it under the shard's lock; `cache::cold` compresses.
//! Blocks are not offered to a second level from here: they were, before they came here.

mod part;

use crate::block::{BlockId, Kind};
use crate::horizon::{EPOCHS, Epoch};
use crate::packed::Packed;
use units::HashMap;
use world::Buf;

/// Blocks used so often come here.
const USES_LEAST: u8 = 2;
/// Of so many blocks of a kind the one used least leaves.
const LOOKED_AT: usize = 5;
/// It leaves for one that was used more often by more than this, and one comes back that was used more often by this than
/// what leaves for it: compressing is not free.
const MARGIN: u8 = 2;
/// And for any when it was not used for so long: four cachefuls of uses.
const STALE: Epoch = 4 * EPOCHS as Epoch;
/// One in so many that were refused so far comes in all the same.
const TURNED: u32 = 16;
/// After so many that did not gain one in so many is tried.
const TRIED: u32 = 16;
/// Compressing and decompressing a block costs this part of what a miss does.
const COST: u64 = 8;

/// Of one shard. See the module.
#[derive(Debug, Default)]
pub(crate) struct Cold {
    /// The share of the limit it may have, in percent; 0: it is off.
    percent: u64,
    /// What it may have now, in so far as its share is that much.
    target: u64,
    /// What it has, by kind.
    bytes: [u64; 2],
    /// Demand hits, by kind.
    pub(crate) hits: [u64; 2],
    /// By the slots of their entries.
    held: HashMap<u32, Held>,
    /// Being compressed.
    pending: HashMap<BlockId, u64>,
    /// Of the last one.
    stamp: u64,
    /// Uncompressed bytes that came in since ever.
    passed: u64,
    refused: u32,
    in_vain: u32,
}

#[derive(Debug)]
struct Held {
    packed: Packed,
    /// What had come in before.
    passed: u64,
}

/// A block on its way here.
#[derive(Debug)]
pub(crate) struct Cooling {
    pub(crate) block: BlockId,
    pub(crate) kind: Kind,
    pub(crate) buf: Buf,
    stamp: u64,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Kept,
    /// It left memory.
    Left,
    /// It was read again, written or freed meanwhile.
    Overtaken,
}

impl Cold {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    pub(crate) fn bytes_of(&self, kind: Kind) -> u64 {
        self.bytes[kind.index()]
    }

    /// What is being compressed of this block, is of no use.
    pub(crate) fn overtake(&mut self, block: &BlockId) {
        if !self.pending.is_empty() {
            self.pending.remove(block);
        }
    }

    /// Takes out the bytes of an entry that is about to go.
    pub(crate) fn forget(&mut self, slot: u32, kind: Kind) {
        if let Some(held) = self.held.remove(&slot) {
            self.bytes[kind.index()] -= held.packed.charge();
        }
    }

    /// An empty one with the same share.
    pub(crate) fn emptied(&self) -> Cold {
        let Cold { percent, target, hits, stamp, .. } = *self;
        Cold { percent, target, hits, stamp, ..Cold::default() }
    }

    /// Begins to learn anew, of a memory of another size.
    pub(crate) fn begin(&mut self, limit: u64) {
        self.target = self.most(limit);
        self.in_vain = 0;
    }

    fn may_have(&self, limit: u64) -> u64 {
        self.target.min(self.most(limit))
    }

    fn most(&self, limit: u64) -> u64 {
        (u128::from(limit) * u128::from(self.percent) / 100) as u64
    }

    /// Whether the next may be tried.
    fn tries(&mut self) -> bool {
        if self.in_vain < TRIED {
            return true;
        }
        self.in_vain += 1;
        self.in_vain.is_multiple_of(TRIED)
    }

    fn grow(&mut self, by: u64, limit: u64) {
        self.target = (self.target + by).min(self.most(limit));
    }

    fn shrink(&mut self, by: u64) {
        self.target = self.target.saturating_sub(by / COST);
    }
}

#[cfg(test)]
impl Cold {
    pub(crate) fn check(&self, lists: &crate::lists::Lists) {
        for kind in Kind::ALL {
            let held = self.held.iter().filter(|(slot, _)| lists[**slot].kind == kind);
            assert_eq!(held.map(|(_, held)| held.packed.charge()).sum::<u64>(), self.bytes_of(kind));
        }
        assert!(self.held.keys().all(|slot| lists[*slot].part == crate::lists::Part::Cold));
        let listed: usize =
            Kind::ALL.into_iter().map(|kind| lists.count(kind, crate::lists::Part::Cold)).sum();
        assert_eq!(listed, self.held.len());
    }
}

#[cfg(test)]
mod tests;
