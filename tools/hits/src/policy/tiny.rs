//! W-TinyLFU (Einziger, Friedman and Manes, 2017): what leaves a small window is taken in when it was wanted more often than
//! what would have to leave for it.
//!
//! ```text
//!   miss ─▶ WINDOW (1 %, LRU) ─ wanted more often than the oldest there ─▶ PROBATION ─ used ─▶ PROTECTED (80 %)
//! ```
//!
//! How often is counted for each block by itself, up to 15, and halved when ten times as many requests as blocks were made:
//! better than the sketch of the paper, which confuses some.

use super::Simulated;
use crate::lists::Lists;
use crate::shape::Block;
use units::HashMap;

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

pub(super) struct TinyLfu {
    max: u64,
    lists: Lists<3>,
    counts: HashMap<u64, u8>,
    /// Bytes asked for since the counts were halved.
    asked: u64,
}

impl TinyLfu {
    pub fn new(max: u64) -> TinyLfu {
        TinyLfu { max, lists: Lists::new(), counts: HashMap::default(), asked: 0 }
    }

    fn count(&mut self, block: &Block) {
        let count = self.counts.entry(block.id).or_default();
        *count = (*count + 1).min(15);
        self.asked += block.charge();
        if self.asked > self.max * 10 {
            self.asked = 0;
            self.counts.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
        }
    }

    fn often(&self, block: &Block) -> u8 {
        self.counts.get(&block.id).copied().unwrap_or(0)
    }

    fn use_again(&mut self, block: &Block) {
        self.lists.put(PROTECTED, *block);
        while self.lists.bytes(PROTECTED) > self.max / 100 * 79 {
            let Some(oldest) = self.lists.oldest(PROTECTED) else { return };
            self.lists.put(PROBATION, oldest);
        }
    }

    fn settle(&mut self) {
        while self.lists.bytes(WINDOW) > (self.max / 100).max(crate::shape::SMALL) {
            let Some(candidate) = self.lists.oldest(WINDOW) else { return };
            self.admit(candidate);
        }
    }

    fn admit(&mut self, candidate: Block) {
        self.lists.put(PROBATION, candidate);
        let window = (self.max / 100).max(crate::shape::SMALL);
        while self.lists.bytes(PROBATION) + self.lists.bytes(PROTECTED) > self.max - window {
            let victim = self.lists.oldest(PROBATION).filter(|block| block.id != candidate.id);
            match victim.or_else(|| self.lists.oldest(PROTECTED)) {
                Some(victim) if self.often(&candidate) > self.often(&victim) => self.lists.remove(&victim),
                _ => {
                    self.lists.remove(&candidate);
                    return;
                }
            };
        }
    }
}

impl Simulated for TinyLfu {
    fn ask(&mut self, block: &Block) -> bool {
        self.count(block);
        match self.lists.find(block) {
            Some(WINDOW) => self.lists.put(WINDOW, *block),
            Some(_) => self.use_again(block),
            None => {
                self.lists.put(WINDOW, *block);
                self.settle();
                return false;
            }
        }
        true
    }
}
