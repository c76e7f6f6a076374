//! What a pool keeps of a scrub of its error log while it is open, where that is, and what is told of it. Pure.

use super::GO;
use crate::lock::lock;
use dsl::error_log::LoggedError;
use ondisk::dsl::{ErrorScrubPhys, ScanState};
use ondisk::{BlockBookmark, dsl::ScanFunc};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use units::Txg;
use world::Task;
use world::sync::Notify;

/// A scrub of the error log: the last one, or the one under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorScrubStatus {
    pub state: ScanState,
    /// Seconds since 1970.
    pub start_time: u64,
    /// The txg in which it began; [`Txg::NONE`] if that was before the pool was opened.
    pub begun: Txg,
    pub end_time: u64,
    /// Since when it pauses, if it does.
    pub paused: Option<u64>,
    /// Blocks that are still to be looked at.
    pub to_examine: u64,
    /// Blocks that were, and how many of them could not be had.
    pub examined: u64,
    pub errors: u64,
}

/// See the module above. Belongs to one pool.
#[derive(Debug, Default)]
pub(crate) struct ErrorScrub {
    pub(super) state: Mutex<State>,
    /// What the task is to do.
    pub(super) command: AtomicU8,
    /// One has begun or ended, with its record.
    pub(super) turned: Notify,
}

impl ErrorScrub {
    /// The record and the task agree: what is told to be under way is, and goes on; what is told to be over has ended.
    pub(super) fn is_settled(&self) -> bool {
        let state = lock(&self.state);
        let goes = state.is_under_way() && !state.phys.is_some_and(|phys| phys.is_paused);
        !state.is_running || (goes && self.command.load(Ordering::Acquire) == GO)
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) phys: Option<ErrorScrubPhys>,
    /// What is before it and it itself was looked at.
    pub(super) position: Option<LoggedError>,
    pub(super) task: Option<Task<()>>,
    pub(super) is_running: bool,
    pub(super) paused_at: u64,
    /// The txg in which it began, if that was since the pool was opened.
    pub(super) begun: Txg,
}

impl State {
    /// Under way, though it may pause.
    pub(super) fn is_under_way(&self) -> bool {
        self.phys.is_some_and(|phys| phys.state == ScanState::ErrorScrubbing)
    }

    pub(super) fn status(&self) -> Option<ErrorScrubStatus> {
        let phys = self.phys.filter(|phys| phys.func == ScanFunc::ErrorScrub)?;
        Some(ErrorScrubStatus {
            state: phys.state,
            start_time: phys.start_time,
            begun: self.begun,
            end_time: phys.end_time,
            paused: (self.is_under_way() && phys.is_paused).then_some(self.paused_at),
            to_examine: phys.to_examine,
            examined: phys.examined,
            errors: phys.errors,
        })
    }
}

/// The form of a position. A program that knows another one begins from the start.
const FORM: u64 = 1;

/// A position as the pool keeps it: form, start of the scrub, then the entry.
pub(super) fn position_to_words(start_time: u64, at: &LoggedError) -> [u64; 7] {
    let [objset, object, level, block] = at.at.to_words();
    [FORM, start_time, objset, object, level, block, at.birth.0]
}

/// `None` for another form, and for the position of another scrub.
pub(super) fn position_from_words(words: &[u64], start_time: u64) -> Option<LoggedError> {
    let &[FORM, start, objset, object, level, block, birth] = words else { return None };
    let at = BlockBookmark::from_words([objset, object, level, block]);
    (start == start_time).then_some(LoggedError { at, birth: Txg(birth) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_its_scrub_s_alone() {
        let at = BlockBookmark::from_words([54, 2, u64::MAX, 7]);
        let error = LoggedError { at, birth: Txg(40) };
        let words = position_to_words(1_000, &error);
        assert_eq!(position_from_words(&words, 1_000), Some(error));
        assert_eq!(position_from_words(&words, 1_001), None);
        assert_eq!(position_from_words(&words[..6], 1_000), None);
        assert_eq!(position_from_words(&[2, 1_000, 0, 0, 0, 0, 0], 1_000), None);
    }
}
