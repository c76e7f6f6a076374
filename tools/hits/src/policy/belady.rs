//! What could be had by knowing the future: what is wanted again last leaves, or is not taken in (Belady, 1966).

use super::Simulated;
use crate::shape::Block;
use std::collections::BTreeSet;
use units::HashMap;

const NEVER: usize = usize::MAX;

pub(super) struct Belady {
    max: u64,
    size: u64,
    now: usize,
    /// For each request, the next one for the same block.
    next: Vec<usize>,
    resident: HashMap<u64, usize>,
    by_next: BTreeSet<(usize, Block)>,
}

impl Belady {
    pub fn new(max: u64, requests: &[Block]) -> Belady {
        let (mut seen, mut next) = (HashMap::default(), vec![NEVER; requests.len()]);
        for (i, block) in requests.iter().enumerate().rev() {
            if let Some(later) = seen.insert(block.id, i) {
                next[i] = later;
            }
        }
        Belady { max, size: 0, now: 0, next, resident: HashMap::default(), by_next: BTreeSet::new() }
    }
}

impl Simulated for Belady {
    fn ask(&mut self, block: &Block) -> bool {
        let next = self.next[self.now];
        self.now += 1;
        let before = self.resident.remove(&block.id);
        if let Some(before) = before {
            self.by_next.remove(&(before, *block));
            self.size -= block.charge();
        }
        if next != NEVER {
            self.resident.insert(block.id, next);
            self.by_next.insert((next, *block));
            self.size += block.charge();
        }
        while self.size > self.max {
            let Some((_, last)) = self.by_next.pop_last() else { break };
            self.resident.remove(&last.id);
            self.size -= last.charge();
        }
        before.is_some()
    }
}
