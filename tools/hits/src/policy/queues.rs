//! Policies of plain queues with fixed shares: LRU; 2Q (Johnson and Shasha, 1994); S3-FIFO (Yang and others, 2023).

use super::Simulated;
use crate::lists::Lists;
use crate::shape::Block;

pub(super) struct Lru {
    max: u64,
    lists: Lists<1>,
}

impl Lru {
    pub fn new(max: u64) -> Lru {
        Lru { max, lists: Lists::new() }
    }
}

impl Simulated for Lru {
    fn ask(&mut self, block: &Block) -> bool {
        let is_hit = self.lists.find(block).is_some();
        self.lists.put(0, *block);
        self.lists.trim(0, self.max);
        is_hit
    }
}

/// ```text
///   miss ─▶ IN (a quarter, first in first out) ─▶ OUT (names of half a cache) ─ missed again ─▶ MAIN (LRU)
/// ```
pub(super) struct TwoQ {
    max: u64,
    lists: Lists<3>,
}

impl TwoQ {
    const IN: usize = 0;
    const OUT: usize = 1;
    const MAIN: usize = 2;

    pub fn new(max: u64) -> TwoQ {
        TwoQ { max, lists: Lists::new() }
    }

    fn make_room(&mut self, bytes: u64) {
        while self.lists.bytes(Self::IN) + self.lists.bytes(Self::MAIN) + bytes > self.max {
            let is_in_large = self.lists.bytes(Self::IN) > self.max / 4 || self.lists.bytes(Self::MAIN) == 0;
            let queue = if is_in_large { Self::IN } else { Self::MAIN };
            let Some(block) = self.lists.oldest(queue) else { return };
            if is_in_large {
                self.lists.put(Self::OUT, block);
                self.lists.trim(Self::OUT, self.max / 2);
            } else {
                self.lists.remove(&block);
            }
        }
    }
}

impl Simulated for TwoQ {
    fn ask(&mut self, block: &Block) -> bool {
        match self.lists.find(block) {
            Some(Self::MAIN) => {
                self.lists.put(Self::MAIN, *block);
                true
            }
            Some(Self::IN) => true,
            found => {
                self.lists.remove(block);
                self.make_room(block.charge());
                let queue = if found.is_some() { Self::MAIN } else { Self::IN };
                self.lists.put(queue, *block);
                false
            }
        }
    }
}

/// ```text
///   miss ─▶ SMALL (a tenth) ─ used twice ─▶ MAIN ─▶ round again for each use, three at most
///              └─ not ─▶ GHOST (names of as much as MAIN) ─ missed again ─▶ MAIN
/// ```
pub(super) struct S3Fifo {
    max: u64,
    lists: Lists<3>,
}

impl S3Fifo {
    const SMALL: usize = 0;
    const MAIN: usize = 1;
    const GHOST: usize = 2;

    pub fn new(max: u64) -> S3Fifo {
        S3Fifo { max, lists: Lists::new() }
    }

    fn make_room(&mut self, bytes: u64) {
        while self.lists.bytes(Self::SMALL) + self.lists.bytes(Self::MAIN) + bytes > self.max {
            let is_small_large = self.lists.bytes(Self::SMALL) >= self.max / 10;
            match self
                .lists
                .oldest(Self::SMALL)
                .filter(|_| is_small_large || self.lists.bytes(Self::MAIN) == 0)
            {
                Some(block) => self.evict_small(block),
                None => self.evict_main(),
            }
        }
    }

    fn evict_small(&mut self, block: Block) {
        let uses = std::mem::take(self.lists.mark(&block));
        if uses > 1 {
            self.lists.put(Self::MAIN, block);
        } else {
            self.lists.put(Self::GHOST, block);
            self.lists.trim(Self::GHOST, self.max / 10 * 9);
        }
    }

    fn evict_main(&mut self) {
        while let Some(block) = self.lists.oldest(Self::MAIN) {
            let uses = self.lists.mark(&block);
            if *uses == 0 {
                self.lists.remove(&block);
                return;
            }
            *uses -= 1;
            self.lists.put(Self::MAIN, block);
        }
    }
}

impl Simulated for S3Fifo {
    fn ask(&mut self, block: &Block) -> bool {
        match self.lists.find(block) {
            Some(Self::SMALL | Self::MAIN) => {
                let uses = self.lists.mark(block);
                *uses = (*uses + 1).min(3);
                true
            }
            found => {
                self.lists.remove(block);
                self.make_room(block.charge());
                let queue = if found.is_some() { Self::MAIN } else { Self::SMALL };
                self.lists.put(queue, *block);
                false
            }
        }
    }
}
