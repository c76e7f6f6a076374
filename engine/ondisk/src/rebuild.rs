//! How far the sequential rebuild of a mirror has come: twelve words under [`crate::mos::top_vdev::REBUILD`] in the ZAP of
//! its top-level vdev.

use units::{Error, Result, Txg};

/// ```text
///    0  state        1  last offset         2  min txg, max txg       4  start time, end time
///    6  milliseconds of all passes          7  scanned, issued, rebuilt, expected in all (bytes)   11  errors
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuildPhys {
    pub state: RebuildState,
    /// All that is allocated before this is done: bytes of the vdev, as in DVAs.
    pub last_offset: u64,
    /// What the devices missed that are being rebuilt.
    pub min_txg: Txg,
    pub max_txg: Txg,
    /// Seconds since 1970.
    pub start_time: u64,
    pub end_time: u64,
    pub scan_time_ms: u64,
    pub bytes_scanned: u64,
    pub bytes_issued: u64,
    pub bytes_rebuilt: u64,
    pub bytes_expected: u64,
    pub errors: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum RebuildState {
    #[default]
    None = 0,
    Active = 1,
    Canceled = 2,
    Complete = 3,
}

impl RebuildPhys {
    pub const WORDS: usize = 12;

    /// # Errors
    /// `Corrupt`: another count of words, or a state that has no meaning.
    pub fn from_words(words: &[u64]) -> Result<RebuildPhys> {
        let &[
            state,
            last_offset,
            min_txg,
            max_txg,
            start_time,
            end_time,
            scan_time_ms,
            bytes_scanned,
            bytes_issued,
            bytes_rebuilt,
            bytes_expected,
            errors,
        ] = words
        else {
            return Err(Error::corrupt(format!(
                "rebuild: {} words, not {}",
                words.len(),
                RebuildPhys::WORDS
            )));
        };
        let state = match state {
            0 => RebuildState::None,
            1 => RebuildState::Active,
            2 => RebuildState::Canceled,
            3 => RebuildState::Complete,
            other => return Err(Error::corrupt(format!("rebuild: state {other}"))),
        };
        Ok(RebuildPhys {
            state,
            last_offset,
            min_txg: Txg(min_txg),
            max_txg: Txg(max_txg),
            start_time,
            end_time,
            scan_time_ms,
            bytes_scanned,
            bytes_issued,
            bytes_rebuilt,
            bytes_expected,
            errors,
        })
    }

    pub fn to_words(&self) -> [u64; RebuildPhys::WORDS] {
        [
            self.state as u64,
            self.last_offset,
            self.min_txg.0,
            self.max_txg.0,
            self.start_time,
            self.end_time,
            self.scan_time_ms,
            self.bytes_scanned,
            self.bytes_issued,
            self.bytes_rebuilt,
            self.bytes_expected,
            self.errors,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_go_both_ways_and_what_means_nothing_is_refused() {
        let words: [u64; 12] = std::array::from_fn(|i| i as u64 + 1);
        let phys = RebuildPhys::from_words(&words).unwrap();
        assert_eq!((phys.state, phys.last_offset, phys.max_txg), (RebuildState::Active, 2, Txg(4)));
        assert_eq!((phys.end_time, phys.bytes_rebuilt, phys.errors), (6, 10, 12));
        assert_eq!(phys.to_words(), words);
        let mut other = words;
        other[0] = 4;
        let why = |words: &[u64]| RebuildPhys::from_words(words).unwrap_err().to_string();
        assert!(why(&other).starts_with("rebuild: state 4:"), "{}", why(&other));
        assert!(why(&words[1..]).starts_with("rebuild: 11 words, not 12:"));
    }
}
