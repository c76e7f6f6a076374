//! The free space of a loaded metaslab, and the choice of a place in it.
//!
//! ```text
//!   plenty of space:  go on at the cursor of this alignment; first free segment that is large enough
//!   little, or only   the smallest class of segments that surely holds it, by an index over
//!   small segments:   (size class, place)
//! ```
//!
//! First fit from a cursor writes what is allocated together next to each other, and costs one descent of one tree.
//! There is a cursor for each alignment, so that small blocks do not chop up the region where large ones are laid down.
//! When the cursor finds nothing near, or space is scarce, fit matters more than order.
//!
//! Size classes are quarters of a power of two: eating a large segment from its front then rarely touches the index.
//! A search that failed is remembered: it is not made again before something large enough was freed.

use crate::histogram::Histogram;
use crate::ranges::{Missing, Ranges, Segment, Watch};
use std::collections::BTreeSet;

/// How far from the cursor a segment is still "near"; with very many small segments, at least so many are looked at.
const SEARCH_BYTES: u64 = 16 << 20;
const SEARCH_SEGMENTS: usize = 100;
/// Below either, fit matters more than order: no segment of this size is left, or less than this percentage is free.
const SCARCE_SEGMENT: u64 = 128 << 10;
const SCARCE_PERCENT: u64 = 4;
/// In the class of the wanted size itself, segments may be too small; so many are tried before the next class.
const CLASS_TRIES: usize = 16;

const CLASSES: usize = 256;

/// Quarters of powers of two, in order of size.
fn class_of(len: u64) -> u8 {
    let log = len.ilog2();
    let quarter = if log >= 2 { len >> (log - 2) & 3 } else { 0 };
    (log << 2) as u8 | quarter as u8
}

/// All segments, ordered by size class.
#[derive(Clone, Debug)]
pub(crate) struct BySize {
    order: BTreeSet<(u8, u64)>,
    counts: [u32; CLASSES],
}

impl Default for BySize {
    fn default() -> BySize {
        BySize { order: BTreeSet::new(), counts: [0; CLASSES] }
    }
}

impl Watch for BySize {
    fn added(&mut self, segment: Segment) {
        let class = class_of(segment.len());
        self.order.insert((class, segment.end));
        self.counts[usize::from(class)] += 1;
    }

    fn removed(&mut self, segment: Segment) {
        let class = class_of(segment.len());
        self.order.remove(&(class, segment.end));
        self.counts[usize::from(class)] -= 1;
    }

    fn resized(&mut self, old: Segment, new: Segment) {
        if class_of(old.len()) != class_of(new.len()) {
            self.removed(old);
            self.added(new);
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FreeSpace {
    ranges: Ranges<BySize>,
    /// Where the last allocation of each alignment (a power of two) ended.
    cursors: [u64; 64],
    /// No segment of this length or more exists, as a search has found.
    absent: u64,
}

impl FromIterator<Segment> for BySize {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> BySize {
        let mut counts = [0; CLASSES];
        let order = segments
            .into_iter()
            .map(|segment| {
                let class = class_of(segment.len());
                counts[usize::from(class)] += 1;
                (class, segment.end)
            })
            .collect();
        BySize { order, counts }
    }
}

impl FreeSpace {
    pub(crate) fn new(ranges: Ranges) -> FreeSpace {
        let by_size = ranges.iter().collect();
        FreeSpace { ranges: ranges.watched_by(by_size), cursors: [0; 64], absent: u64::MAX }
    }

    pub(crate) fn ranges(&self) -> &Ranges<BySize> {
        &self.ranges
    }

    pub(crate) fn add(&mut self, segment: Segment) -> Result<(), Segment> {
        let merged = self.ranges.add(segment)?;
        if merged.len() >= self.absent {
            self.absent = u64::MAX;
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, segment: Segment) -> Result<(), Missing> {
        self.ranges.remove(segment)
    }

    /// Takes `size` bytes out. `whole` is the size of the metaslab, to know what is scarce.
    pub(crate) fn allocate(&mut self, size: u64, whole: u64) -> Option<u64> {
        if size >= self.absent {
            return None;
        }
        let cursor = size.trailing_zeros() as usize;
        let near = if self.is_scarce(whole) { None } else { self.first_fit(self.cursors[cursor], size) };
        let Some(segment) = near.or_else(|| self.best_fit(size)) else {
            self.absent = size;
            return None;
        };
        self.ranges.take_front(segment, size);
        self.cursors[cursor] = segment.start + size;
        Some(segment.start)
    }

    /// The power of two below the length of the largest segment.
    pub(crate) fn largest_log(&self) -> Option<u32> {
        self.ranges.watch().order.last().map(|&(class, _)| u32::from(class >> 2))
    }

    /// How many segments there are in each power of two.
    pub(crate) fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for (class, &count) in self.ranges.watch().counts.iter().enumerate() {
            histogram.add_count(class as u32 >> 2, u64::from(count));
        }
        histogram
    }

    fn is_scarce(&self, whole: u64) -> bool {
        let small = self.largest_log().is_none_or(|log| log < SCARCE_SEGMENT.ilog2());
        small || self.ranges.space() < whole / 100 * SCARCE_PERCENT
    }

    fn first_fit(&self, cursor: u64, size: u64) -> Option<Segment> {
        let mut first = None;
        for (looked_at, segment) in self.ranges.behind(cursor).enumerate() {
            let near = *first.get_or_insert(segment.start) + SEARCH_BYTES;
            if segment.start > near && looked_at >= SEARCH_SEGMENTS {
                return None;
            }
            if segment.len() >= size {
                return Some(segment);
            }
        }
        None
    }

    fn best_fit(&self, size: u64) -> Option<Segment> {
        let class = class_of(size);
        let order = &self.ranges.watch().order;
        let segment =
            |&(_, end): &(u8, u64)| self.ranges.ending_at(end).expect("the index lists what is there");
        let mut same_class = order.range((class, 0)..=(class, u64::MAX)).map(segment);
        let fits = |s: &Segment| s.len() >= size;
        if let Some(found) = same_class.by_ref().take(CLASS_TRIES).find(fits) {
            return Some(found);
        }
        let larger = order.range((class, u64::MAX)..).next().map(segment).filter(fits);
        larger.or_else(|| same_class.find(fits))
    }
}

#[cfg(test)]
mod tests;
