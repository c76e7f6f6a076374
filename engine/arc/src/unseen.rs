//! What came into the window and was not looked at twice by those that feed cache devices: it may not leave before.
//!
//! ```text
//!           look                 look                 look now
//!   ──────────┼─────── before ─────┼────── since ───────▶      bytes that came into the window
//!     may go  │ seen once,         │ not seen yet
//!             │ perhaps being written
//! ```
//!
//! A small window is passed through within the second between two looks, and what is used as often as the blocks that are
//! kept is then neither in memory nor on a cache device. So while there is one, the window is at least as large as what may
//! not leave. It gives that back slowly, so that blocks which are kept need not leave for each burst anew. There is a bound:
//! what comes faster than a cache device is written to is lost to it in any case.
//!
//! Without cache devices nothing of this is there.

use crate::block::{Kind, Opening};

/// A window that is larger than it need be gives back this part of itself at each look.
const GIVEN_BACK: u64 = 16;

/// Of one feeder. See the module.
#[derive(Clone, Debug)]
pub(crate) struct Unseen {
    feeder: Opening,
    /// Of both kinds together what may not leave is no more.
    bound: u64,
    kinds: [Bytes; Kind::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    before: u64,
    since: u64,
    held: u64,
}

impl Bytes {
    fn now(&self) -> u64 {
        self.held.max(self.before + self.since)
    }
}

impl Unseen {
    pub(crate) fn new(feeder: Opening) -> Unseen {
        Unseen { feeder, bound: u64::MAX, kinds: Default::default() }
    }

    pub(crate) fn is_of(&self, feeder: Opening) -> bool {
        self.feeder == feeder
    }

    /// A block came to the end of the window from which it leaves last.
    pub(crate) fn came(&mut self, kind: Kind, charge: u64) {
        let bytes = &mut self.kinds[kind.index()];
        bytes.since = bytes.since.saturating_add(charge).min(self.bound);
    }

    /// The feeder is about to look; between two looks it can take in about `bound` bytes.
    pub(crate) fn look(&mut self, bound: u64) {
        self.bound = bound;
        for bytes in &mut self.kinds {
            let held = bytes.now().min(bound);
            *bytes = Bytes { before: bytes.since, since: 0, held: held - held / GIVEN_BACK };
        }
    }

    /// What the window of a kind must have room for.
    pub(crate) fn bytes(&self, kind: Kind) -> u64 {
        self.kinds[kind.index()].now().min(self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_since_the_look_before_the_last_may_not_leave() {
        let mut unseen = Unseen::new(Opening(1));
        let data = |unseen: &Unseen| unseen.bytes(Kind::Data);
        unseen.came(Kind::Data, 1000);
        assert_eq!((data(&unseen), unseen.bytes(Kind::Metadata)), (1000, 0));
        unseen.look(10_000);
        unseen.came(Kind::Data, 3000);
        assert_eq!(data(&unseen), 4000, "what was seen once may be about to be written");
        unseen.look(10_000);
        assert_eq!(data(&unseen), 3750, "3000, and what is given back slowly");
        (0..200).for_each(|_| unseen.look(10_000));
        assert!(data(&unseen) < 16, "in the end all of it");
        unseen.came(Kind::Data, 50_000);
        assert_eq!(data(&unseen), 10_000, "no more than can be taken in");
        unseen.look(500);
        assert_eq!(data(&unseen), 500, "and less when less can");
    }
}
