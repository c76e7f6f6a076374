//! The ring that history is kept in: arithmetic only.
//!
//! ```text
//!   0        create_len                                             max_offset
//!   | create |  ...records...  | end of newest | oldest record ...  |
//!   kept for ever                                 logical offsets run on; modulo they fold into this range
//! ```
//!
//! `begin` and `end` are logical: they only grow. When a record does not fit, the oldest ones are given up.

use ondisk::HistoryPhys;
use units::{Error, Result};

/// No history is so long, and offsets up to here can be added to.
const END_MAX: u64 = 1 << 62;

/// A run of bytes of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub offset: u64,
    pub len: u64,
}

/// A thousandth of the pool, but at least a block and at most a gibibyte.
pub fn for_pool(size: u64) -> HistoryPhys {
    HistoryPhys { max_offset: (size / 1000).clamp(128 << 10, 1 << 30), ..HistoryPhys::default() }
}

/// Makes sure that the offsets can be computed with.
pub fn check(ring: &HistoryPhys) -> Result<()> {
    let sound = ring.create_len < ring.max_offset
        && ring.max_offset <= 1 << 40
        && ring.begin <= ring.end
        && ring.end <= END_MAX
        && ring.begin >= ring.create_len.min(ring.end)
        && ring.end - ring.begin <= room(ring);
    if sound { Ok(()) } else { Err(Error::corrupt(format!("history offsets {ring:?}"))) }
}

fn room(ring: &HistoryPhys) -> u64 {
    ring.max_offset - ring.create_len
}

/// Whether `len` more bytes overwrite nothing.
pub fn fits(ring: &HistoryPhys, len: u64) -> bool {
    room(ring) - (ring.end - ring.begin) > len
}

/// Where the logical bytes from `from` on lie: one run, or two when they go round.
pub fn place(ring: &HistoryPhys, from: u64, len: u64) -> [Extent; 2] {
    // While the first record is being written nothing is folded yet.
    let offset = if from < ring.create_len { from } else { ring.physical(from) };
    let first = len.min(ring.max_offset - offset);
    [Extent { offset, len: first }, Extent { offset: ring.create_len, len: len - first }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_a_thousandth_of_the_pool() {
        assert_eq!(for_pool(251_658_240).max_offset, 251_658);
        assert_eq!(for_pool(0).max_offset, 131_072);
        assert_eq!(for_pool(1 << 50).max_offset, 1 << 30);
    }

    #[test]
    fn bytes_past_the_end_go_round_behind_the_first_record() {
        let ring = HistoryPhys { create_len: 100, max_offset: 1100, begin: 2050, end: 2550, records_lost: 3 };
        check(&ring).unwrap();
        assert_eq!(
            place(&ring, 2050, 100),
            [Extent { offset: 1050, len: 50 }, Extent { offset: 100, len: 50 }]
        );
        assert_eq!(place(&ring, 2550, 10), [Extent { offset: 550, len: 10 }, Extent { offset: 100, len: 0 }]);
        assert!(fits(&ring, 499));
        assert!(!fits(&ring, 500));
    }

    #[test]
    fn offsets_that_contradict_each_other_are_refused() {
        let good = HistoryPhys { create_len: 100, max_offset: 1100, begin: 100, end: 200, records_lost: 0 };
        check(&good).unwrap();
        for bad in [
            HistoryPhys { create_len: 1100, ..good },
            HistoryPhys { begin: 300, ..good },
            HistoryPhys { end: 5000, ..good },
            HistoryPhys { max_offset: 0, ..good },
            HistoryPhys { max_offset: u64::MAX, end: u64::MAX, ..good },
            HistoryPhys { begin: u64::MAX - 100, end: u64::MAX, ..good },
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }
}
