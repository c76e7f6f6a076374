//! The chain in memory: which of its blocks are written, and which are not needed any more. Pure.
//!
//! ```text
//!   header ─▶ [ Durable ] ─▶ [ Durable ] ─▶ [ Issued ] ─▶ [ Issued ] ─▶ [ Empty ]
//!              freed by the sync that        being written and           named by the one before;
//!              makes its records obsolete    flushed, at once            the next records go here
//! ```
//!
//! What a block promises counts when it and all before it are durable: a reader stops at the first that is not.
//!
//! A block that could not be written breaks the chain, as does one for which no successor could be allocated: it stays
//! empty, since no reader takes records from a block that leads to no other. Then those waiters fall back to waiting for
//! their txg, and when all records are obsolete the chain is freed and the next commit begins another.
//!
//! Invariants: the last block is empty, and only that one, but of a broken chain; a block is freed in a txg that is
//! not older than its birth, once, and only after its write has ended.
//!
//! A txg leaves tens of thousands of blocks behind it, and each commit comes by here twice: so what is asked of every
//! commit looks only at the few blocks after the durable ones at the front, of which there is just a count.

use ondisk::Plain;
use std::collections::VecDeque;
use units::Txg;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Empty,
    /// Being written. The block after it was allocated in this txg, and is found only through this one: so the txg must
    /// not be on disk before this block is.
    Issued(Txg),
    Durable,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub place: Plain,
    pub stage: Stage,
    /// The newest txg that it has records of.
    pub newest: Txg,
    /// All changes up to here are in it or in those before.
    pub complete: u64,
}

impl Block {
    pub fn empty(place: Plain) -> Block {
        Block { place, stage: Stage::Empty, newest: Txg::NONE, complete: 0 }
    }

    pub fn number(&self) -> u64 {
        self.place.checksum[3]
    }

    fn is_written(&self) -> bool {
        !matches!(self.stage, Stage::Issued(_))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    list: VecDeque<Block>,
    /// How many blocks at the front are durable, one after the other.
    sound: usize,
    /// All changes up to here could be read from the chain, or are on disk since.
    durable: u64,
    broken: bool,
    /// A block that could not be written has left the list, and maybe its records are not obsolete: those of the blocks
    /// after it must not be found without them.
    has_gap: bool,
}

impl Blocks {
    pub fn begin(&mut self, place: Plain) {
        assert!(self.list.is_empty(), "one chain at a time");
        self.list.push_back(Block::empty(place));
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Nothing more can be put into this chain.
    pub fn break_off(&mut self) {
        self.broken = true;
    }

    /// Where a reader begins.
    pub fn first(&self) -> Option<&Plain> {
        self.list.front().filter(|_| !self.has_gap).map(|block| &block.place)
    }

    /// Behind the durable ones at the front.
    fn unsettled(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.list.range(self.sound..)
    }

    fn failed(&self) -> usize {
        self.unsettled().filter(|b| b.stage == Stage::Failed).count()
    }

    /// The empty block.
    pub fn last(&self) -> Option<&Plain> {
        self.list.back().filter(|b| b.stage == Stage::Empty && !self.broken).map(|block| &block.place)
    }

    /// The empty block is being written, and `next` comes after it.
    pub fn issue(&mut self, in_txg: Txg, newest: Txg, complete: u64, next: Plain) {
        let last = self.list.back_mut().expect("what is issued is the last");
        assert_eq!(last.stage, Stage::Empty, "a block is written once");
        *last = Block { place: last.place.clone(), stage: Stage::Issued(in_txg), newest, complete };
        self.list.push_back(Block::empty(next));
    }

    /// The write of a block has ended, and its flush.
    pub fn written(&mut self, number: u64, is_durable: bool) {
        let block = self.list.range_mut(self.sound..).find(|b| b.number() == number);
        let block = block.expect("a block is not freed while it is written");
        block.stage = if is_durable { Stage::Durable } else { Stage::Failed };
        self.broken |= !is_durable;
        self.advance();
    }

    /// Counts what has become durable at the front. What comes after a gap is not found at replay.
    fn advance(&mut self) {
        while let Some(block) = self.list.get(self.sound).filter(|b| b.stage == Stage::Durable) {
            self.sound += 1;
            if !self.has_gap {
                self.durable = self.durable.max(block.complete);
            }
        }
    }

    pub fn in_flight(&self) -> usize {
        self.unsettled().filter(|b| !b.is_written()).count()
    }

    /// All changes up to here can be read from the chain, or are on disk since.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// All changes up to `id` are in the blocks issued so far, or need not be. Answers whether they are durable now.
    pub fn cover(&mut self, id: u64) -> bool {
        let last = self.list.range_mut(self.sound..).rev().find(|b| !b.is_written());
        match last {
            Some(block) => {
                block.complete = block.complete.max(id);
                false
            }
            None => !self.broken,
        }
    }

    /// Whether all that `txg` allocated is named by blocks that are on disk, or can be freed.
    pub fn is_settled(&self, txg: Txg) -> bool {
        // Nothing leads to what comes after a gap.
        let is_loose = |b: &Block| self.failed() > 0 && b.place.birth <= txg;
        !self.unsettled().any(|b| matches!(b.stage, Stage::Issued(in_txg) if in_txg <= txg || is_loose(b)))
    }

    /// Takes out what is not needed any more when `txg` is on disk, to be freed in `txg`.
    pub fn retire(&mut self, txg: Txg) -> Vec<Plain> {
        let mut freed = Vec::new();
        let failed = self.failed();
        while let Some(first) = self.list.front() {
            let is_done = first.is_written() && first.stage != Stage::Empty;
            if !is_done || first.place.birth > txg || first.newest > txg {
                break;
            }
            freed.extend(self.list.pop_front().map(|b| b.place));
            self.sound = self.sound.saturating_sub(1);
        }
        if self.broken {
            self.has_gap |= self.failed() < failed;
            self.retire_unreachable(txg, &mut freed);
            self.has_gap |= self.failed() < failed;
        }
        if self.list.is_empty() {
            (self.broken, self.has_gap) = (false, false);
        }
        freed
    }

    /// No reader finds a block that comes after one that could not be written.
    fn retire_unreachable(&mut self, txg: Txg, freed: &mut Vec<Plain>) {
        let sound = self.list.iter().take_while(|b| b.stage != Stage::Failed).count();
        let (has_failed, has_gap) = (sound < self.list.len(), self.has_gap);
        let mut at = 0;
        self.list.retain(|block| {
            let unreachable = has_gap || at >= sound || (!has_failed && block.stage == Stage::Empty);
            at += 1;
            let goes = unreachable && block.is_written() && block.place.birth <= txg;
            if goes {
                freed.push(block.place.clone());
            }
            !goes
        });
        // Which of them went is not known here by number.
        self.sound = self.list.iter().take_while(|b| b.stage == Stage::Durable).count();
    }

    /// Takes everything out, when all records are obsolete or unwanted.
    pub fn take_all(&mut self) -> Vec<Plain> {
        assert_eq!(self.in_flight(), 0, "a block is not freed while it is written");
        (self.broken, self.has_gap, self.sound) = (false, false, 0);
        self.list.drain(..).map(|b| b.place).collect()
    }
}

#[cfg(test)]
mod tests;
