//! How much may still be written to a dataset before a quota, or the pool, is full by the accounts.
//!
//! What a write will be charged is known only when its txg syncs. Until then it is *in flight*, counted three times;
//! what is free is known as of the last sync:
//!
//! ```text
//!   nothing free                     Full: an error, for waiting would not help; but Wait while something is in flight
//!                                          or ripens, which may free what is wanted
//!   as much in flight as is free     Wait: for a sync, which replaces guesses by facts
//!   else                             Go
//! ```
//!
//! So the last write before the end may be larger than what is left: one too many is let through, none after it. Whether
//! the devices can take it is another question, which `capacity` answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::Txg;

/// See the module.
#[derive(Debug)]
pub struct Room {
    free: AtomicU64,
    in_flight: [AtomicU64; Txg::SLOTS],
    /// There would be more, but for a quota.
    is_quota: AtomicBool,
    /// There will be more: what was freed has yet to ripen.
    ripens: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    Go,
    Wait,
    Full,
}

/// Pointers, parity, padding and copies make a write larger than its data; this many times is the worst in practice.
const INFLATION: u64 = 3;

impl Room {
    /// A room without end, until [`Room::set_free`] says otherwise.
    pub fn new() -> Arc<Room> {
        Arc::new(Room {
            free: AtomicU64::new(u64::MAX),
            in_flight: Default::default(),
            is_quota: AtomicBool::new(false),
            ripens: AtomicBool::new(false),
        })
    }

    /// What is free now that a txg has synced.
    pub fn set_free(&self, bytes: u64) {
        self.free.store(bytes, Ordering::Relaxed);
    }

    /// What was free when a txg synced last.
    pub fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    /// Says that what is free is as little as it is because of a quota.
    pub fn set_quota(&self, is_quota: bool) {
        self.is_quota.store(is_quota, Ordering::Relaxed);
    }

    /// A writer that finds the room full has come up against a quota, while the pool has space.
    pub fn is_quota(&self) -> bool {
        self.is_quota.load(Ordering::Relaxed)
    }

    /// Says that more will be free in a few txgs, without anything being written.
    pub fn set_ripens(&self, ripens: bool) {
        self.ripens.store(ripens, Ordering::Relaxed);
    }

    /// What `txg` wrote is in the accounts, no longer in flight.
    pub fn synced(&self, txg: Txg) {
        self.in_flight[txg.slot()].store(0, Ordering::Relaxed);
    }

    /// Asks for room for `bytes` of data in `txg`; with [`Entry::Go`] they are in flight.
    pub fn enter(&self, txg: Txg, bytes: u64) -> Entry {
        let in_flight: u64 = self.in_flight.iter().map(|n| n.load(Ordering::Relaxed)).sum();
        let free = self.free();
        if free == 0 && in_flight == 0 && !self.ripens.load(Ordering::Relaxed) {
            return Entry::Full;
        }
        if in_flight >= free {
            return Entry::Wait;
        }
        self.count(txg, bytes);
        Entry::Go
    }

    /// As [`Room::enter`], for what frees more than it takes: never refused.
    pub fn enter_freeing(&self, txg: Txg, bytes: u64) -> Entry {
        self.count(txg, bytes);
        Entry::Go
    }

    fn count(&self, txg: Txg, bytes: u64) {
        self.in_flight[txg.slot()].fetch_add(bytes.saturating_mul(INFLATION), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_write_too_many_is_let_through_and_none_after_it() {
        let room = Room::new();
        room.set_free(1000);
        assert_eq!(room.enter(Txg(5), 300), Entry::Go);
        assert_eq!(room.enter(Txg(5), 300), Entry::Go);
        assert_eq!(room.enter(Txg(6), 1), Entry::Wait);
        room.synced(Txg(5));
        room.set_free(400);
        assert_eq!(room.enter(Txg(6), 1000), Entry::Go, "nothing is in flight any more");
        room.synced(Txg(6));
        room.set_free(0);
        assert_eq!(room.enter(Txg(7), 1), Entry::Full);
    }

    #[test]
    fn what_frees_space_is_let_in_where_a_dataset_is_full_and_may_make_room() {
        let room = Room::new();
        room.set_free(0);
        assert_eq!(room.enter(Txg(5), 1), Entry::Full);
        assert_eq!(room.enter_freeing(Txg(5), 1), Entry::Go);
        assert_eq!(room.enter(Txg(5), 1), Entry::Wait);
        room.synced(Txg(5));
        room.set_ripens(true);
        assert_eq!(room.enter(Txg(6), 1), Entry::Wait);
        room.set_ripens(false);
        assert_eq!(room.enter(Txg(7), 1), Entry::Full);
    }
}
