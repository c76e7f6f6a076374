//! Whether the MOS is being written: its dnodes change one after the other.
//!
//! ```text
//!   turn   0        …         1         …         2           what is read of several dnodes fits together
//!   MOS    as txg N │ written │ as N+1  │ written │ as N+2    … a head may name a snapshot whose dnode is still free
//! ```
//!
//! Sync tasks are kept away by [`Pool::reading`](crate::Pool::reading); the writing goes on, for it must wait for no
//! reader. So what was read is taken for true if nothing was being written before and after, and the turn is the same.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct MosWriting {
    writers: AtomicU64,
    turn: AtomicU64,
}

/// While it lives the MOS is being written.
pub(crate) struct Writing<'a>(&'a MosWriting);

impl MosWriting {
    pub fn begin(&self) -> Writing<'_> {
        self.writers.fetch_add(1, Ordering::AcqRel);
        Writing(self)
    }

    /// `None` while it is written; else what is the same until it was written again.
    pub fn turn(&self) -> Option<u64> {
        let is_written = self.writers.load(Ordering::Acquire) > 0;
        (!is_written).then(|| self.turn.load(Ordering::Acquire))
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.turn.fetch_add(1, Ordering::AcqRel);
        self.0.writers.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_beside_a_writing_is_told_from_what_was_not() {
        let mos = MosWriting::default();
        let before = mos.turn();
        assert!(before.is_some() && before == mos.turn());
        let writing = mos.begin();
        assert_eq!(mos.turn(), None);
        drop(writing);
        assert!(mos.turn().is_some() && mos.turn() != before, "it was written in between");
    }
}
