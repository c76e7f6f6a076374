//! How much may still be written before a quota or the pool is full.
//!
//! What a write will take on the devices is known only when its txg syncs. Until then it is *in flight*, counted at its
//! worst; what is free is known as of the last sync:
//!
//! ```text
//!   nothing free                     Full: an error, for waiting would not help
//!   as much in flight as is free     Wait: for a sync, which replaces guesses by facts
//!   else                             Go
//! ```
//!
//! So the last write before the end may be larger than what is left: one too many is let through, none after it. The
//! slop that a pool keeps back is there for that.
//!
//! Rooms nest: a dataset's lies within the pool's, and a write must fit both.

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
    above: Option<Arc<Room>>,
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
    pub fn new(above: Option<Arc<Room>>) -> Arc<Room> {
        Arc::new(Room {
            free: AtomicU64::new(u64::MAX),
            in_flight: Default::default(),
            is_quota: AtomicBool::new(false),
            above,
        })
    }

    /// What is free now that a txg has synced.
    pub fn set_free(&self, bytes: u64) {
        self.free.store(bytes, Ordering::Relaxed);
    }

    /// Says that what is free is as little as it is because of a quota.
    pub fn set_quota(&self, is_quota: bool) {
        self.is_quota.store(is_quota, Ordering::Relaxed);
    }

    /// Who finds the room full has come up against a quota, while the pool has space.
    pub fn is_quota(&self) -> bool {
        self.is_quota.load(Ordering::Relaxed)
    }

    /// What `txg` wrote is in the accounts, no longer in flight.
    pub fn synced(&self, txg: Txg) {
        self.in_flight[txg.slot()].store(0, Ordering::Relaxed);
    }

    fn state(&self) -> Entry {
        let free = self.free.load(Ordering::Relaxed);
        let in_flight: u64 = self.in_flight.iter().map(|n| n.load(Ordering::Relaxed)).sum();
        let above = self.above.as_ref().map_or(Entry::Go, |room| room.state());
        let own = match free {
            0 => Entry::Full,
            _ if in_flight >= free => Entry::Wait,
            _ => Entry::Go,
        };
        own.max(above)
    }

    /// Asks for room for `bytes` of data in `txg`; with [`Entry::Go`] they are in flight.
    pub fn enter(&self, txg: Txg, bytes: u64) -> Entry {
        let state = self.state();
        if state == Entry::Go {
            self.count(txg, bytes.saturating_mul(INFLATION));
        }
        state
    }

    /// As [`Room::enter`], for what frees more than it takes: only the outermost room, the pool's, can be full.
    pub fn enter_freeing(&self, txg: Txg, bytes: u64) -> Entry {
        let outermost = self.above.as_deref().unwrap_or(self);
        let state = outermost.state();
        if state == Entry::Go {
            self.count(txg, bytes.saturating_mul(INFLATION));
        }
        state
    }

    fn count(&self, txg: Txg, bytes: u64) {
        self.in_flight[txg.slot()].fetch_add(bytes, Ordering::Relaxed);
        if let Some(above) = &self.above {
            above.count(txg, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_write_too_many_is_let_through_and_none_after_it() {
        let room = Room::new(None);
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
    fn what_frees_space_is_let_in_where_a_dataset_is_full() {
        let pool = Room::new(None);
        let room = Room::new(Some(pool.clone()));
        pool.set_free(100);
        room.set_free(0);
        assert_eq!(room.enter(Txg(5), 1), Entry::Full);
        assert_eq!(room.enter_freeing(Txg(5), 1), Entry::Go);
        pool.set_free(0);
        assert_eq!(room.enter_freeing(Txg(5), 1), Entry::Full);
    }

    #[test]
    fn a_write_must_fit_the_pool_as_well() {
        let pool = Room::new(None);
        let (a, b) = (Room::new(Some(pool.clone())), Room::new(Some(pool.clone())));
        pool.set_free(100);
        assert_eq!(a.enter(Txg(5), 50), Entry::Go);
        assert_eq!(
            b.enter(Txg(5), 1),
            Entry::Wait,
            "the other dataset's writes are in flight in the same pool"
        );
        pool.set_free(0);
        assert_eq!(b.enter(Txg(5), 1), Entry::Full);
    }
}
