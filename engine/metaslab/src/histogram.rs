//! Free segments counted by size, and what is read out of the counts: how good a metaslab is, and how fragmented.

use crate::ranges::{Ranges, Watch};

const MAP_BUCKETS: usize = ondisk::SpaceMapPhys::BUCKETS;

/// How many segments have a length in `2^i .. 2^(i+1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Histogram([u64; 64]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram([0; 64])
    }
}

impl Histogram {
    pub(crate) fn add<W: Watch>(&mut self, ranges: &Ranges<W>) {
        ranges.iter().for_each(|s| self.0[s.len().ilog2() as usize] += 1);
    }

    pub(crate) fn add_count(&mut self, log: u32, count: u64) {
        self.0[log as usize] += count;
    }

    /// The buckets that are not empty, smallest segments first.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(self.0).filter(|&(_, count)| count > 0)
    }

    /// As the header of a space map has it: bucket `i` for lengths from `2^(i + shift)`. What is too long for the last
    /// bucket counts there as often as that bucket's length fits into it.
    pub(crate) fn to_map(self, shift: u32) -> [u64; MAP_BUCKETS] {
        let mut map = [0u64; MAP_BUCKETS];
        for (log, count) in self.buckets() {
            let index = log.saturating_sub(shift).min(MAP_BUCKETS as u32 - 1);
            let excess = log.saturating_sub(shift) - index;
            let bucket = &mut map[index as usize];
            *bucket = bucket.saturating_add(count.checked_shl(excess).unwrap_or(u64::MAX));
        }
        map
    }

    /// The counts of a space map's header, which came from a disk: any numbers.
    pub(crate) fn from_map(map: &[u64; MAP_BUCKETS], shift: u32) -> Histogram {
        let mut histogram = Histogram::default();
        for (log, &count) in (shift..64).zip(map) {
            histogram.0[log as usize] = count;
        }
        histogram
    }

    /// Takes out segments that are free on disk but may not be used yet.
    pub(crate) fn without<W: Watch>(mut self, ranges: &Ranges<W>) -> Histogram {
        for segment in ranges.iter() {
            let bucket = &mut self.0[segment.len().ilog2() as usize];
            *bucket = bucket.saturating_sub(1);
        }
        self
    }
}

/// How much a metaslab has to offer: first by the size of its largest segments, then by how many of those it has.
/// Zero has nothing.
///
/// ```text
///   63    58 57                                 0
///   |  log  |   count of segments of that size   |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weight(pub(crate) u64);

impl Weight {
    const COUNT_BITS: u32 = 58;

    pub(crate) fn of_segments(log: u32, count: u64) -> Weight {
        Weight(u64::from(log) << Weight::COUNT_BITS | count.clamp(1, (1 << Weight::COUNT_BITS) - 1))
    }

    pub(crate) fn of_histogram(histogram: &Histogram) -> Weight {
        histogram.buckets().last().map_or(Weight(0), |(log, count)| Weight::of_segments(log, count))
    }

    /// Where nothing is known but how much is free.
    pub(crate) fn of_space(free: u64) -> Weight {
        free.checked_ilog2().map_or(Weight(0), |log| Weight::of_segments(log, 1))
    }

    /// Whether a segment of `size` may be there.
    pub(crate) fn may_hold(self, size: u64) -> bool {
        self.0 != 0 && u64::from(size.ilog2()) <= self.0 >> Weight::COUNT_BITS
    }
}

/// How fragmented free space is that stands in segments of 512 bytes, 1 KiB, 2 KiB ...; 512 MiB and more is whole.
/// The numbers are OpenZFS's: they are shown to people who compare.
const FRAGMENTATION: [f64; 21] =
    [100., 99., 97., 93., 88., 83., 77., 71., 64., 57., 50., 43., 36., 29., 23., 17., 12., 7., 3., 1., 0.];

/// The mean over all free bytes, in percent; no free space is not fragmented.
pub(crate) fn fragmentation(map: &[u64; MAP_BUCKETS], shift: u32) -> u64 {
    // As floats: the counts come from a disk, and any numbers may be multiplied here.
    let (mut space, mut weighted) = (0.0, 0.0);
    for (log, &count) in (shift..).zip(map) {
        let bytes = count as f64 * f64::from(log).exp2();
        let index = (log.saturating_sub(units::SECTOR_SHIFT) as usize).min(FRAGMENTATION.len() - 1);
        space += bytes;
        weighted += bytes * FRAGMENTATION[index];
    }
    if space > 0.0 { (weighted / space) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::Segment;

    #[test]
    fn a_map_counts_what_is_too_long_for_it_as_several_of_its_longest() {
        let mut ranges: Ranges = Ranges::default();
        ranges.add(Segment::new(0, 512)).unwrap();
        ranges.add(Segment::new(4096, 1023)).unwrap();
        ranges.add(Segment::new(1 << 50, 5 << 42)).unwrap();
        let mut histogram = Histogram::default();
        histogram.add(&ranges);
        let map = histogram.to_map(9);
        assert_eq!((map[0], map[31]), (2, 16), "2^44 is 16 times 2^40");
        assert_eq!(map.iter().sum::<u64>(), 18);
        let back = Histogram::from_map(&map, 9);
        assert_eq!(back.buckets().collect::<Vec<_>>(), [(9, 2), (40, 16)]);
    }

    #[test]
    fn larger_segments_weigh_more_than_many_small_ones() {
        let many_small = Weight::of_segments(12, 1 << 40);
        let few_large = Weight::of_segments(13, 1);
        assert!(few_large > many_small && many_small > Weight(0));
        assert!(few_large.may_hold(8192) && few_large.may_hold(16383) && !few_large.may_hold(16384));
        assert!(!Weight(0).may_hold(512));
    }

    #[test]
    fn fragmentation_is_the_mean_over_free_bytes() {
        let mut map = [0; MAP_BUCKETS];
        assert_eq!(fragmentation(&map, 9), 0);
        map[0] = 10;
        assert_eq!(fragmentation(&map, 9), 100);
        map[3] = 10; // eight times as much, in 4 KiB segments
        assert_eq!(fragmentation(&map, 9), (100 + 8 * 93) / 9);
        assert_eq!(fragmentation(&[u64::MAX; MAP_BUCKETS], 40), 0, "any numbers may stand on a disk");
    }
}
