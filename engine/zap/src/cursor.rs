//! Going through the entries of a ZAP, a page at a time.
//!
//! Entries are listed by hash, then by collision differentiator, in both forms of a ZAP. A position is such a pair,
//! not a place in a block: it stays good while the ZAP grows, splits, or becomes fat. An entry that is there from
//! start to end is seen exactly once; one that comes or goes meanwhile may be seen or not.
//!
//! ```text
//!   cookie:  | 28 (or 48) bits of hash | 32 (or 16) of cd |      what a directory reader keeps between calls
//! ```
//!
//! Cookies grow as the listing goes on: before one that stands behind an entry there is always an entry to be listed.

use crate::hash::Rules;
use crate::value::Entry;

/// A position between two entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(crate) hash: u64,
    pub(crate) cd: u32,
}

/// Some of the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// The position behind each entry.
    pub behind: Vec<Cursor>,
    /// Where the rest starts; `None` behind the last entry.
    pub next: Option<Cursor>,
}

impl Cursor {
    /// Before the first entry.
    pub const START: Cursor = Cursor { hash: 0, cd: 0 };

    /// Behind the entry at this position.
    pub(crate) fn behind(self) -> Cursor {
        Cursor { cd: self.cd.saturating_add(1), ..self }
    }

    pub(crate) fn cookie(self, rules: &Rules) -> u64 {
        let bits = rules.hash_bits();
        let cd = u64::from(self.cd).min((1 << cd_bits(bits)) - 1);
        self.hash >> (64 - bits) << cd_bits(bits) | cd
    }

    pub(crate) fn from_cookie(cookie: u64, rules: &Rules) -> Cursor {
        let bits = rules.hash_bits();
        let cd = u32::try_from(cookie & ((1 << cd_bits(bits)) - 1)).ok().filter(|cd| *cd < rules.max_cd());
        Cursor { hash: cookie >> cd_bits(bits) << (64 - bits), cd: cd.unwrap_or(0) }
    }
}

/// How many bits of a cookie the collision differentiator has beside so many of the hash: as many as it needs.
fn cd_bits(hash_bits: u32) -> u32 {
    (64 - hash_bits).min(32)
}
