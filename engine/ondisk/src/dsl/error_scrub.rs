//! How far a scrub of the error log has come: nine words under the name `error_scrub` in the object directory.

use super::scan::{ScanFunc, ScanState};
use units::{Error, Result};

/// ```text
///    0  function, state      2  cursor in the error log      3  start time, end time
///    5  to examine, examined, errors (blocks)                8  it pauses
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorScrubPhys {
    pub func: ScanFunc,
    pub state: ScanState,
    /// A place in the table of the last log, as ZAP cursors are written; 0 is its beginning.
    pub cursor: u64,
    /// Seconds since 1970.
    pub start_time: u64,
    pub end_time: u64,
    /// Blocks that are still to be looked at.
    pub to_examine: u64,
    pub examined: u64,
    pub errors: u64,
    pub is_paused: bool,
}

impl ErrorScrubPhys {
    pub const WORDS: usize = 9;

    /// # Errors
    /// `Corrupt`: another count of words, or a function or state that has no meaning.
    pub fn from_words(words: &[u64]) -> Result<ErrorScrubPhys> {
        let &[func, state, cursor, start_time, end_time, to_examine, examined, errors, paused] = words else {
            let (len, wanted) = (words.len(), ErrorScrubPhys::WORDS);
            return Err(Error::corrupt(format!("error scrub: {len} words, not {wanted}")));
        };
        Ok(ErrorScrubPhys {
            func: ScanFunc::from_code(func)?,
            state: ScanState::from_code(state)?,
            cursor,
            start_time,
            end_time,
            to_examine,
            examined,
            errors,
            is_paused: paused != 0,
        })
    }

    pub fn to_words(&self) -> [u64; ErrorScrubPhys::WORDS] {
        [
            self.func as u64,
            self.state as u64,
            self.cursor,
            self.start_time,
            self.end_time,
            self.to_examine,
            self.examined,
            self.errors,
            u64::from(self.is_paused),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_go_both_ways_and_what_means_nothing_is_refused() {
        let words = [3, 4, 5, 6, 7, 8, 9, 10, 1];
        let phys = ErrorScrubPhys::from_words(&words).unwrap();
        assert_eq!((phys.func, phys.state), (ScanFunc::ErrorScrub, ScanState::ErrorScrubbing));
        assert_eq!((phys.start_time, phys.to_examine, phys.examined, phys.errors), (6, 8, 9, 10));
        assert!(phys.is_paused);
        assert_eq!(phys.to_words(), words);
        assert_eq!(ErrorScrubPhys::default().to_words(), [0; 9]);
        let why = |words: &[u64]| ErrorScrubPhys::from_words(words).unwrap_err().to_string();
        assert!(why(&words[1..]).starts_with("error scrub: 8 words, not 9:"));
        assert!(why(&[4, 4, 0, 0, 0, 0, 0, 0, 0]).starts_with("scan: unknown function 4"));
        assert!(why(&[3, 5, 0, 0, 0, 0, 0, 0, 0]).starts_with("scan: unknown state 5"));
    }
}
