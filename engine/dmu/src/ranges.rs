//! A set of block numbers, kept as disjoint ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint, non-touching, half-open ranges: start → end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub fn contains(&self, n: u64) -> bool {
        self.0.range(..=n).next_back().is_some_and(|(_, &end)| n < end)
    }

    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        let touching: Vec<u64> =
            self.0.range(..=end).rev().take_while(|(_, e)| **e >= start).map(|(s, _)| *s).collect();
        for s in touching {
            let e = self.0.remove(&s).unwrap_or(s);
            start = start.min(s);
            end = end.max(e);
        }
        self.0.insert(start, end);
    }

    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().map(|(&s, &e)| s..e)
    }

    /// The parts of `within` that are in the set.
    pub fn overlap(&self, within: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.0.range(..=within.start).next_back().map_or(within.start, |(&s, _)| s);
        self.0
            .range(first..within.end.max(first))
            .map(move |(&s, &e)| s.max(within.start)..e.min(within.end))
            .filter(|r| r.start < r.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_answer_like_a_bitmap() {
        let mut seed = 7u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let (mut set, mut bitmap) = (Ranges::default(), vec![false; 64]);
            for _ in 0..10 {
                let start = random(60);
                let end = start + random(64 - start);
                set.insert(start..end);
                bitmap[start as usize..end as usize].fill(true);
            }
            for n in 0..64 {
                assert_eq!(set.contains(n), bitmap[n as usize]);
            }
            let all: Vec<_> = set.iter().collect();
            assert!(all.windows(2).all(|w| w[0].end < w[1].start), "{all:?}");
            let (a, b) = (random(32), 32 + random(32));
            let inside: u64 = set.overlap(a..b).map(|r| r.end - r.start).sum();
            assert_eq!(inside, bitmap[a as usize..b as usize].iter().filter(|x| **x).count() as u64);
        }
    }
}
