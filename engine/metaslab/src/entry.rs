//! The entries of a space map: a log of what was allocated and freed, in 64-bit words.
//!
//! ```text
//!            63 62 61  60 59           50 49                              0
//!   debug   | 1  0 | act |   sync pass   |             txg                 |   says where the next entries are from
//!
//!            63 62                     16 15 14                           0
//!   short   | 0 |        offset          | F |       run - 1              |
//!
//!            63 62 61  60 59                          24 23               0
//!   long    | 1  1 | pad |          run - 1             |       vdev        |
//!           | F |                      offset                             |
//!
//!   F: 1 freed, 0 allocated.  offset and run in units of 2^shift bytes, offset from the start of the map's region.
//! ```
//!
//! A long entry (feature `spacemap_v2`) does not straddle a block of the map's object; an empty debug word pads. Maps of
//! one metaslab name no vdev, the pool's log space maps always do.

use crate::ranges::Segment;
use units::{Error, Result, Txg, VdevId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Alloc,
    Free,
}

const DEBUG: u64 = 2;
const LONG: u64 = 3;
const NO_VDEV: u64 = 1 << 24; // as 25 bits; stored as 0 in its 24
const SHORT_OFFSET_BITS: u32 = 47;
const SHORT_RUN_BITS: u32 = 15;
const LONG_RUN_BITS: u32 = 36;
/// The longest run of a short entry, in units.
pub(crate) const SHORT_RUN_MAX: u64 = 1 << SHORT_RUN_BITS;
const LONG_RUN_MAX: u64 = 1 << LONG_RUN_BITS;

fn field(word: u64, low: u32, width: u32) -> u64 {
    word >> low & ((1 << width) - 1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    /// Of entries in a log of the whole pool.
    pub(crate) vdev: Option<VdevId>,
    pub(crate) segment: Segment,
}

/// Reads the entries of a map that describes `region`, in units of `1 << shift` bytes. Ends after the first error.
pub(crate) fn entries(words: &[u64], region: Segment, shift: u32) -> impl Iterator<Item = Result<Entry>> {
    let mut rest = words.iter().copied();
    std::iter::from_fn(move || {
        let word = rest.by_ref().find(|word| word >> 62 != DEBUG)?;
        let entry = decode(word, &mut rest, region, shift);
        if entry.is_err() {
            rest = [].iter().copied();
        }
        Some(entry)
    })
}

fn decode(word: u64, rest: &mut impl Iterator<Item = u64>, region: Segment, shift: u32) -> Result<Entry> {
    let (freed, vdev, offset, run) = if word >> 62 == LONG {
        let second =
            rest.next().ok_or_else(|| Error::corrupt("space map entry: its second word is missing"))?;
        let vdev = VdevId(field(word, 0, 24) as u32);
        (second >> 63 == 1, Some(vdev), field(second, 0, 63), field(word, 24, LONG_RUN_BITS) + 1)
    } else {
        let offset = field(word, SHORT_RUN_BITS + 1, SHORT_OFFSET_BITS);
        (field(word, SHORT_RUN_BITS, 1) == 1, None, offset, field(word, 0, SHORT_RUN_BITS) + 1)
    };
    if offset + run > region.len() >> shift {
        return Err(Error::corrupt(format!(
            "space map entry: {run} units at {offset:#x} end outside of {region:?}"
        )));
    }
    let action = if freed { Action::Free } else { Action::Alloc };
    Ok(Entry { action, vdev, segment: Segment::new(region.start + (offset << shift), run << shift) })
}

/// Writes entries that are to be appended to a map.
#[derive(Debug)]
pub(crate) struct Writer {
    words: Vec<u64>,
    /// Where in the object the first word goes, and the size of the object's blocks, in words.
    at: u64,
    block_words: u64,
    region: Segment,
    shift: u32,
    long_allowed: bool,
}

impl Writer {
    pub(crate) fn new(at: u64, block_size: u64, region: Segment, shift: u32, long_allowed: bool) -> Writer {
        Writer {
            words: Vec::new(),
            at: at / 8,
            block_words: (block_size / 8).max(2),
            region,
            shift,
            long_allowed,
        }
    }

    /// A debug word, then an entry or more for each segment; nothing when there is none.
    pub(crate) fn write(
        &mut self,
        action: Action,
        segments: impl IntoIterator<Item = Segment>,
        txg: Txg,
        pass: u32,
    ) {
        let mut segments = segments.into_iter().peekable();
        if segments.peek().is_none() {
            return;
        }
        let pass = u64::from(pass.min((1 << 10) - 1));
        self.words.push(DEBUG << 62 | (action as u64) << 60 | pass << 50 | txg.0 & ((1 << 50) - 1));
        for segment in segments {
            self.write_segment(action, segment);
        }
    }

    pub(crate) fn finish(self) -> Vec<u64> {
        self.words
    }

    fn write_segment(&mut self, action: Action, segment: Segment) {
        assert!(self.region.contains(segment), "{segment:?} belongs to the map of {:?}", self.region);
        let mut offset = (segment.start - self.region.start) >> self.shift;
        let mut run = segment.len() >> self.shift;
        let long = self.long_allowed && (offset >> SHORT_OFFSET_BITS != 0 || run > SHORT_RUN_MAX);
        while run > 0 {
            let step = run.min(if long { LONG_RUN_MAX } else { SHORT_RUN_MAX });
            if long {
                self.push_long(action, offset, step);
            } else {
                let freed = (action as u64) << SHORT_RUN_BITS;
                self.words.push(offset << (SHORT_RUN_BITS + 1) | freed | (step - 1));
            }
            offset += step;
            run -= step;
        }
    }

    fn push_long(&mut self, action: Action, offset: u64, run: u64) {
        if (self.at + self.words.len() as u64 + 1).is_multiple_of(self.block_words) {
            self.words.push(DEBUG << 62);
        }
        // "No vdev" is 1 << 24, of which the field keeps the lower 24 bits.
        self.words.push(LONG << 62 | (run - 1) << 24 | NO_VDEV & ((1 << 24) - 1));
        self.words.push((action as u64) << 63 | offset);
    }
}

#[cfg(test)]
mod tests;
