//! A set of byte ranges, merged where they touch.
//!
//! ```text
//!   by_end:   end ──▶ start          0        4K   8K           20K
//!                                    │ taken   │free │ taken ...  │
//! ```
//!
//! Ranges are keyed by their *end*, because allocation eats a free range from its front: that changes a value in
//! place and moves no key. A range that ends where a new one begins is found by one lookup.
//!
//! A [`Watch`] is told of each change, so that an index by size can be kept without this set knowing of it.
//!
//! Nothing here panics on a contradiction: adding what is there or removing what is not is reported, and changes nothing.
//! The caller knows whether a disk or we ourselves are to blame.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};

/// The bytes `start..end` of a vdev; never empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    pub start: u64,
    pub end: u64,
}

impl Segment {
    /// # Panics
    /// When `len` is 0 or the end does not fit: code that reads them from a disk has checked them.
    pub fn new(start: u64, len: u64) -> Segment {
        let end = start.checked_add(len).filter(|&end| end > start);
        Segment { start, end: end.expect("a segment holds at least a byte and ends below 2^64") }
    }

    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    pub(crate) fn contains(&self, other: Segment) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start, self.end)
    }
}

/// Learns of the changes of a set.
pub(crate) trait Watch: Default {
    fn added(&mut self, segment: Segment);
    fn removed(&mut self, segment: Segment);
    /// The start moved, the end stayed.
    fn resized(&mut self, old: Segment, new: Segment) {
        self.removed(old);
        self.added(new);
    }
}

/// Nothing watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    fn added(&mut self, _: Segment) {}
    fn removed(&mut self, _: Segment) {}
}

/// What was to be removed is not wholly there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing;

#[derive(Clone, Default)]
pub(crate) struct Ranges<W = Unwatched> {
    by_end: BTreeMap<u64, u64>,
    space: u64,
    watch: W,
}

impl<W: Watch> Ranges<W> {
    /// The sum of all lengths.
    pub(crate) fn space(&self) -> u64 {
        self.space
    }

    /// How many segments there are.
    pub(crate) fn count(&self) -> usize {
        self.by_end.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_end.is_empty()
    }

    pub(crate) fn watch(&self) -> &W {
        &self.watch
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Segment> {
        self.by_end.iter().map(|(&end, &start)| Segment { start, end })
    }

    /// The segments that end behind `position`.
    pub(crate) fn behind(&self, position: u64) -> impl Iterator<Item = Segment> {
        self.by_end.range((Excluded(position), Unbounded)).map(|(&end, &start)| Segment { start, end })
    }

    /// The segment that ends at `end`.
    pub(crate) fn ending_at(&self, end: u64) -> Option<Segment> {
        self.by_end.get(&end).map(|&start| Segment { start, end })
    }

    /// The first segment that shares a byte with `with`.
    pub(crate) fn overlapping(&self, with: Segment) -> Option<Segment> {
        self.behind(with.start).next().filter(|found| found.start < with.end)
    }

    /// Adds a segment and returns the one it became part of, or the segment it overlaps.
    pub(crate) fn add(&mut self, new: Segment) -> Result<Segment, Segment> {
        if let Some(taken) = self.overlapping(new) {
            return Err(taken);
        }
        self.space += new.len();
        let start = match self.by_end.remove(&new.start) {
            Some(start) => {
                self.watch.removed(Segment { start, end: new.start });
                start
            }
            None => new.start,
        };
        let merged = match self.by_end.range_mut((Excluded(new.end), Unbounded)).next() {
            Some((&end, next)) if *next == new.end => {
                let old = Segment { start: std::mem::replace(next, start), end };
                self.watch.resized(old, Segment { start, end });
                Segment { start, end }
            }
            _ => {
                let merged = Segment { start, end: new.end };
                self.by_end.insert(merged.end, merged.start);
                self.watch.added(merged);
                merged
            }
        };
        Ok(merged)
    }

    /// Removes a segment that lies within one of ours.
    pub(crate) fn remove(&mut self, gone: Segment) -> Result<(), Missing> {
        let found = self.behind(gone.start).next().filter(|found| found.contains(gone)).ok_or(Missing)?;
        self.space -= gone.len();
        if gone.end < found.end {
            self.set_start(found, gone.end);
        } else {
            self.by_end.remove(&found.end);
            self.watch.removed(found);
        }
        if found.start < gone.start {
            self.by_end.insert(gone.start, found.start);
            self.watch.added(Segment { start: found.start, end: gone.start });
        }
        Ok(())
    }

    /// Eats `len` bytes of one of our segments from its front.
    pub(crate) fn take_front(&mut self, segment: Segment, len: u64) {
        assert!(len <= segment.len(), "no more is taken from a segment than it has");
        self.space -= len;
        if len < segment.len() {
            self.set_start(segment, segment.start + len);
        } else {
            self.by_end.remove(&segment.end);
            self.watch.removed(segment);
        }
    }

    fn set_start(&mut self, segment: Segment, start: u64) {
        let value = self.by_end.get_mut(&segment.end).expect("the segment was found in this set");
        *value = start;
        self.watch.resized(segment, Segment { start, end: segment.end });
    }
}

impl Ranges {
    /// The same set with a watcher that knows it already.
    pub(crate) fn watched_by<W: Watch>(self, watch: W) -> Ranges<W> {
        Ranges { by_end: self.by_end, space: self.space, watch }
    }

    /// Takes what is common with `segment` out of this set, and adds the rest of it to `target`.
    ///
    /// So a free cancels the allocation that went before it. Nothing is changed if the rest is in `target` already.
    pub(crate) fn cancel_or_add(&mut self, segment: Segment, target: &mut Ranges) -> Result<(), Segment> {
        let common: Vec<Segment> = self
            .behind(segment.start)
            .take_while(|s| s.start < segment.end)
            .map(|s| Segment { start: s.start.max(segment.start), end: s.end.min(segment.end) })
            .collect();
        let mut rest = Vec::new();
        let mut from = segment.start;
        for c in &common {
            rest.extend((from < c.start).then_some(Segment { start: from, end: c.start }));
            from = c.end;
        }
        rest.extend((from < segment.end).then_some(Segment { start: from, end: segment.end }));
        if let Some(taken) = rest.iter().find_map(|r| target.overlapping(*r)) {
            return Err(taken);
        }
        for c in common {
            self.remove(c).expect("what is common is in this set");
        }
        for r in rest {
            target.add(r)?;
        }
        Ok(())
    }
}

impl<W: Watch> fmt::Debug for Ranges<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().take(20)).finish()
    }
}

#[cfg(test)]
mod tests;
