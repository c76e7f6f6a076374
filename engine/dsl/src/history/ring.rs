//! The ring that history is kept in: arithmetic only.
//!
//! ```text
//!   0        create_len                                             phys_max
//!   | create |  ...records...  | end of newest | oldest record ...  |
//!   kept for ever                                 logical offsets run on; modulo they fold into this range
//! ```
//!
//! `begin` and `end` are logical: they only grow. When a record does not fit, the oldest ones are given up.

use units::{Error, Result};

/// The bonus of the history object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    pub create_len: u64,
    pub phys_max: u64,
    pub begin: u64,
    pub end: u64,
    pub lost: u64,
}

/// A run of bytes of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub offset: u64,
    pub len: u64,
}

impl Ring {
    pub const SIZE: usize = 40;
    /// A thousandth of the pool, but at least a block and at most a gibibyte.
    pub fn for_pool(size: u64) -> Ring {
        Ring { phys_max: (size / 1000).clamp(128 << 10, 1 << 30), ..Ring::default() }
    }

    /// Makes sure that the offsets can be computed with.
    pub fn check(&self) -> Result<()> {
        let sound = self.create_len < self.phys_max
            && self.phys_max <= 1 << 40
            && self.begin <= self.end
            && self.begin >= self.create_len.min(self.end)
            && self.end - self.begin <= self.room();
        if sound { Ok(()) } else { Err(Error::corrupt(format!("history offsets {self:?}"))) }
    }

    fn room(&self) -> u64 {
        self.phys_max - self.create_len
    }

    /// Whether `len` more bytes overwrite nothing.
    pub fn fits(&self, len: u64) -> bool {
        self.room() - (self.end - self.begin) > len
    }

    /// Where the logical bytes from `from` on lie: one run, or two when they go round.
    pub fn place(&self, from: u64, len: u64) -> [Extent; 2] {
        let offset = from.saturating_sub(self.create_len) % self.room() + self.create_len;
        // While the first record is being written nothing is folded yet.
        let offset = if from < self.create_len { from } else { offset };
        let first = len.min(self.phys_max - offset);
        [Extent { offset, len: first }, Extent { offset: self.create_len, len: len - first }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_a_thousandth_of_the_pool() {
        assert_eq!(Ring::for_pool(251_658_240).phys_max, 251_658);
        assert_eq!(Ring::for_pool(0).phys_max, 131_072);
        assert_eq!(Ring::for_pool(1 << 50).phys_max, 1 << 30);
    }

    #[test]
    fn bytes_past_the_end_go_round_behind_the_first_record() {
        let ring = Ring { create_len: 100, phys_max: 1100, begin: 2050, end: 2550, lost: 3 };
        ring.check().unwrap();
        assert_eq!(
            ring.place(2050, 100),
            [Extent { offset: 1050, len: 50 }, Extent { offset: 100, len: 50 }]
        );
        assert_eq!(ring.place(2550, 10), [Extent { offset: 550, len: 10 }, Extent { offset: 100, len: 0 }]);
        assert!(ring.fits(499));
        assert!(!ring.fits(500));
    }

    #[test]
    fn offsets_that_contradict_each_other_are_refused() {
        let good = Ring { create_len: 100, phys_max: 1100, begin: 100, end: 200, lost: 0 };
        good.check().unwrap();
        for bad in [
            Ring { create_len: 1100, ..good },
            Ring { begin: 300, ..good },
            Ring { end: 5000, ..good },
            Ring { phys_max: 0, ..good },
            Ring { phys_max: u64::MAX, end: u64::MAX, ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
