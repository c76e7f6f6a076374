//! How far a scrub or resilver has come: 24 words under the name `scan` in the object directory.

use crate::bookmark::BlockBookmark;
use units::{Error, ObjectId, Result, Txg};

/// ```text
///    0  function, state, queue object          3  min txg, max txg, current min txg, current max txg
///    7  start time, end time                   9  to examine, examined, skipped, processed (bytes)   13  errors
///   14  last dedup class to be walked first   15  dedup bookmark (4)   19  block bookmark (4)        23  flags
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanPhys {
    pub func: ScanFunc,
    pub state: ScanState,
    pub queue: ObjectId,
    pub min_txg: Txg,
    pub max_txg: Txg,
    pub current_min_txg: Txg,
    pub current_max_txg: Txg,
    /// Seconds since 1970.
    pub start_time: u64,
    pub end_time: u64,
    pub to_examine: u64,
    pub examined: u64,
    pub skipped: u64,
    pub processed: u64,
    pub errors: u64,
    pub dedup_class_max: u64,
    /// Class, type, checksum and cursor of the dedup table.
    pub dedup_bookmark: [u64; 4],
    pub bookmark: BlockBookmark,
    pub flags: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum ScanFunc {
    #[default]
    None = 0,
    Scrub = 1,
    Resilver = 2,
    ErrorScrub = 3,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum ScanState {
    #[default]
    None = 0,
    Scanning = 1,
    Finished = 2,
    Canceled = 3,
    ErrorScrubbing = 4,
}

impl ScanPhys {
    pub const WORDS: usize = 24;
    /// In `flags`.
    pub const VISIT_DATASET_AGAIN: u64 = 1;
    pub const SCRUB_PAUSED: u64 = 2;
    pub const SCRUB_THOROUGH: u64 = 4;

    pub fn from_words(words: &[u64]) -> Result<ScanPhys> {
        let words: &[u64; ScanPhys::WORDS] =
            words.try_into().map_err(|_| Error::corrupt(format!("scan: {} words, not 24", words.len())))?;
        let &[func, state, queue, t0, t1, t2, t3, start_time, end_time, ..] = words;
        let &[
            ..,
            to_examine,
            examined,
            skipped,
            processed,
            errors,
            class,
            d0,
            d1,
            d2,
            d3,
            b0,
            b1,
            b2,
            b3,
            flags,
        ] = words;
        Ok(ScanPhys {
            func: ScanFunc::from_code(func)?,
            state: ScanState::from_code(state)?,
            queue: ObjectId(queue),
            min_txg: Txg(t0),
            max_txg: Txg(t1),
            current_min_txg: Txg(t2),
            current_max_txg: Txg(t3),
            start_time,
            end_time,
            to_examine,
            examined,
            skipped,
            processed,
            errors,
            dedup_class_max: class,
            dedup_bookmark: [d0, d1, d2, d3],
            bookmark: BlockBookmark::from_words([b0, b1, b2, b3]),
            flags,
        })
    }

    pub fn to_words(&self) -> [u64; ScanPhys::WORDS] {
        let [d0, d1, d2, d3] = self.dedup_bookmark;
        let [b0, b1, b2, b3] = self.bookmark.to_words();
        [
            self.func as u64,
            self.state as u64,
            self.queue.0,
            self.min_txg.0,
            self.max_txg.0,
            self.current_min_txg.0,
            self.current_max_txg.0,
            self.start_time,
            self.end_time,
            self.to_examine,
            self.examined,
            self.skipped,
            self.processed,
            self.errors,
            self.dedup_class_max,
            d0,
            d1,
            d2,
            d3,
            b0,
            b1,
            b2,
            b3,
            self.flags,
        ]
    }
}

impl ScanFunc {
    pub(super) fn from_code(code: u64) -> Result<ScanFunc> {
        use ScanFunc::*;
        [None, Scrub, Resilver, ErrorScrub]
            .into_iter()
            .find(|f| *f as u64 == code)
            .ok_or_else(|| Error::corrupt(format!("scan: unknown function {code}")))
    }
}

impl ScanState {
    pub(super) fn from_code(code: u64) -> Result<ScanState> {
        use ScanState::*;
        [None, Scanning, Finished, Canceled, ErrorScrubbing]
            .into_iter()
            .find(|s| *s as u64 == code)
            .ok_or_else(|| Error::corrupt(format!("scan: unknown state {code}")))
    }
}
