//! What became of blocks that were read ahead, besides those that were there in time.
//!
//! ```text
//!   read ahead ── asked for while it was read ──▶ late
//!              ├─ asked for when it was there ──▶ used in time: [`Counts`](crate::Counts)
//!              └─ left, or was freed, before ───▶ unused: fetched, and never used
//! ```
//!
//! Counters of their own, so that whatever reads ahead can look at them often without any lock.

use crate::block::Kind;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module. Of one cache.
#[derive(Debug, Default)]
pub struct AheadCounts {
    late: [AtomicU64; Kind::ALL.len()],
    unused: [AtomicU64; Kind::ALL.len()],
    /// What the cache may have, in bytes.
    room: AtomicU64,
}

impl AheadCounts {
    pub fn late(&self) -> u64 {
        Kind::ALL.into_iter().map(|kind| self.late_of(kind)).sum()
    }

    pub fn unused(&self) -> u64 {
        Kind::ALL.into_iter().map(|kind| self.unused_of(kind)).sum()
    }

    /// What the cache may have, in bytes: what is read ahead of all readers must fit.
    pub fn room(&self) -> u64 {
        self.room.load(Ordering::Relaxed)
    }

    pub(crate) fn late_of(&self, kind: Kind) -> u64 {
        self.late[kind.index()].load(Ordering::Relaxed)
    }

    pub(crate) fn unused_of(&self, kind: Kind) -> u64 {
        self.unused[kind.index()].load(Ordering::Relaxed)
    }

    pub(crate) fn note_late(&self, kind: Kind) {
        self.late[kind.index()].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_unused(&self, kind: Kind) {
        self.unused[kind.index()].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_room(&self, bytes: u64) {
        self.room.store(bytes, Ordering::Relaxed);
    }
}
