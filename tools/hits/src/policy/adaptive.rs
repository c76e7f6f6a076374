//! ARC (Megiddo and Modha, 2003) and CAR (Bansal and Modha, 2004): two lists whose border follows the misses on what left
//! them.
//!
//! ```text
//!   miss ─▶ T1 ─ used again ─▶ T2        B1, B2: names of what left T1 and T2
//!   a miss on B1 moves the target of T1 up, one on B2 down; both go to T2
//! ```
//!
//! ARC moves a block at each hit; CAR sets a mark, and moves it when the hand passes.

use super::Simulated;
use crate::lists::Lists;
use crate::shape::Block;

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

pub(super) struct Adaptive {
    max: u64,
    /// Bytes that T1 should have.
    target: u64,
    is_clock: bool,
    lists: Lists<4>,
}

impl Adaptive {
    pub fn arc(max: u64) -> Adaptive {
        Adaptive { max, target: 0, is_clock: false, lists: Lists::new() }
    }

    pub fn car(max: u64) -> Adaptive {
        Adaptive { is_clock: true, ..Adaptive::arc(max) }
    }

    fn resident(&self) -> u64 {
        self.lists.bytes(T1) + self.lists.bytes(T2)
    }

    fn learn(&mut self, found: usize, block: &Block) {
        let (b1, b2) = (self.lists.bytes(B1).max(1), self.lists.bytes(B2).max(1));
        self.target = if found == B1 {
            (self.target + block.charge() * (b2 / b1).max(1)).min(self.max)
        } else {
            self.target.saturating_sub(block.charge() * (b1 / b2).max(1))
        };
    }

    /// Evicts until `bytes` fit in. `at_b2`: the miss is one on B2.
    fn make_room(&mut self, bytes: u64, at_b2: bool) {
        while self.resident() + bytes > self.max {
            let t1 = self.lists.bytes(T1);
            let from_t1 = match self.is_clock {
                true => t1 > 0 && t1 >= self.target.max(1),
                false => t1 > 0 && (t1 > self.target || (at_b2 && t1 == self.target)),
            };
            let queue = if from_t1 || self.lists.bytes(T2) == 0 { T1 } else { T2 };
            let Some(block) = self.lists.oldest(queue) else { return };
            if self.is_clock && std::mem::take(self.lists.mark(&block)) > 0 {
                self.lists.put(T2, block);
            } else {
                self.lists.put(queue + 2, block);
            }
        }
    }
}

impl Simulated for Adaptive {
    fn ask(&mut self, block: &Block) -> bool {
        let found = self.lists.find(block);
        if let Some(T1 | T2) = found {
            match self.is_clock {
                true => *self.lists.mark(block) = 1,
                false => self.lists.put(T2, *block),
            }
            return true;
        }
        if let Some(ghost) = found {
            self.learn(ghost, block);
            self.lists.remove(block);
        }
        self.make_room(block.charge(), found == Some(B2));
        self.lists.put(if found.is_some() { T2 } else { T1 }, *block);
        // T1 and B1 name one cache at most, all four two.
        self.lists.trim(B1, self.max.saturating_sub(self.lists.bytes(T1)));
        let rest = (2 * self.max).saturating_sub(self.resident() + self.lists.bytes(B1));
        self.lists.trim(B2, rest);
        false
    }
}
