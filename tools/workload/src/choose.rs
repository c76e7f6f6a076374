//! Which block next, and whether to read or write it. Pure, and the same for the same seed.

use crate::spec::{Pattern, Spec};

/// A small generator of good quality (splitmix64).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Without the bias of a remainder, for limits far below 2^64.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// At least 0 and below 1.
    pub fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Above 0 and at most 1.
    pub fn part_above_zero(&mut self) -> f64 {
        1.0 - self.part()
    }

    /// True with this probability.
    pub fn is(&mut self, part: f64) -> bool {
        part >= 1.0 || part > 0.0 && self.part() < part
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub block: u64,
    pub read: bool,
}

/// One lane's choices. `turn` numbers the requests of all lanes together.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    random: Random,
    pattern: Pattern,
    read_percent: u64,
    blocks: u64,
}

impl Chooser {
    pub fn new(spec: &Spec, blocks: u64, lane: usize) -> Chooser {
        let random = Random(spec.seed ^ (lane as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93));
        Chooser { random, pattern: spec.pattern, read_percent: u64::from(spec.read_percent), blocks }
    }

    pub fn choose(&mut self, turn: u64) -> Choice {
        let block = match self.pattern {
            Pattern::Sequential => turn % self.blocks,
            Pattern::Random => self.random.below(self.blocks),
        };
        Choice { block, read: self.random.below(100) < self.read_percent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_from_the_seed_and_keep_to_the_percentage() {
        let spec = Spec { read_percent: 30, seed: 7, ..Spec::default() };
        let choices = |lane| {
            let mut chooser = Chooser::new(&spec, 100, lane);
            (0..10_000).map(|turn| chooser.choose(turn)).collect::<Vec<_>>()
        };
        let first = choices(0);
        assert_eq!(first, choices(0));
        assert_ne!(first, choices(1));
        let reads = first.iter().filter(|c| c.read).count();
        assert!((2_850..3_150).contains(&reads), "{reads}");
        let mut seen = [0; 100];
        first.iter().for_each(|c| seen[c.block as usize] += 1);
        assert!(seen.iter().all(|&n| (50..150).contains(&n)), "{seen:?}");
    }

    #[test]
    fn a_sequence_visits_every_block_in_order_and_starts_again() {
        let spec = Spec { pattern: Pattern::Sequential, ..Spec::default() };
        let mut chooser = Chooser::new(&spec, 3, 0);
        let blocks: Vec<u64> = (0..7).map(|turn| chooser.choose(turn).block).collect();
        assert_eq!(blocks, [0, 1, 2, 0, 1, 2, 0]);
    }
}
