//! How much may still be written to a dataset before a quota, or the pool, is full by the accounts.
//!
//! What a write will be charged is known only when its blocks are written. Until then it is *in flight*, counted three
//! times, and while its txg is being synced the guess is replaced by facts, block by block; what is free is known as of
//! the last sync:
//!
//! ```text
//!   nothing free                     Full: an error, for waiting would not help; but Wait while something is in flight
//!                                          or ripens, which may free what is wanted
//!   as much in flight as is free     Wait: for blocks to be written, and for the sync to end
//!   else                             Go
//!
//!   in flight, of a txg  =  3 x entered x (bytes that are still dirty / bytes that were, when its sync began)
//!                           + what the blocks written since have been charged
//! ```
//!
//! So the last write before the end may be larger than what is left: one too many is let through, none after it. Whether
//! the devices can take it is another question, which `capacity` answers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Txg;

/// See the module.
#[derive(Debug)]
pub struct SpaceReservation {
    free: AtomicU64,
    in_flight: Mutex<[InFlight; Txg::SLOTS]>,
    /// Writers that wait take their turns.
    pub(crate) queue: world::sync::Mutex<()>,
    pub(crate) waiting: AtomicU64,
    /// There would be more, but for a quota.
    is_quota: AtomicBool,
    /// There will be more: what was freed has yet to ripen.
    ripens: AtomicBool,
}

/// Of one txg.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// Bytes of data that were let in.
    entered: u64,
    /// Bytes that were dirty when the sync began, and are still; both are zero before.
    was_dirty: u64,
    dirty: u64,
    /// What has been written since has been charged so much.
    charged: u64,
}

impl InFlight {
    fn enter(&mut self, bytes: u64) {
        // What is entered without data counts too: its sync may free something.
        self.entered = self.entered.saturating_add(bytes);
    }

    fn bytes(&self) -> u64 {
        if self.entered == 0 {
            return 0;
        }
        let guess = u128::from(self.entered) * u128::from(INFLATION);
        let rest = match self.was_dirty {
            0 => guess,
            was_dirty => guess * u128::from(self.dirty) / u128::from(was_dirty),
        };
        // Until the sync has ended something is in flight: it may free what is wanted.
        (rest.min(u64::MAX.into()) as u64).saturating_add(self.charged).max(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    Go,
    Wait,
    Full,
}

/// Pointers, parity, padding and copies make a write larger than its data; this many times is the worst in practice.
const INFLATION: u64 = 3;

impl SpaceReservation {
    /// Without limit until [`SpaceReservation::set_free`] says otherwise.
    pub fn new() -> Arc<SpaceReservation> {
        Arc::new(SpaceReservation {
            free: AtomicU64::new(u64::MAX),
            in_flight: Default::default(),
            queue: world::sync::Mutex::new(()),
            waiting: AtomicU64::new(0),
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

    fn lock(&self) -> MutexGuard<'_, [InFlight; Txg::SLOTS]> {
        // Nothing is called under this lock that could panic half-way.
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sync of `txg` begins, and has `dirty` bytes of this dataset to write.
    pub(crate) fn syncing(&self, txg: Txg, dirty: u64) {
        let slot = &mut self.lock()[txg.slot()];
        (slot.was_dirty, slot.dirty) = (dirty, dirty);
    }

    /// Of what the sync of `txg` has to write, `dirty` bytes are written, for which the dataset is charged `charged`.
    pub(crate) fn landed(&self, txg: Txg, dirty: u64, charged: u64) {
        let slot = &mut self.lock()[txg.slot()];
        slot.dirty = slot.dirty.saturating_sub(dirty);
        slot.charged = slot.charged.saturating_add(charged);
    }

    /// What `txg` wrote is in the accounts, no longer in flight.
    pub fn synced(&self, txg: Txg) {
        self.lock()[txg.slot()] = InFlight::default();
    }

    fn ask(&self, in_flight: &[InFlight]) -> Entry {
        let in_flight = in_flight.iter().fold(0, |sum: u64, slot| sum.saturating_add(slot.bytes()));
        let free = self.free();
        if free == 0 && in_flight == 0 && !self.ripens.load(Ordering::Relaxed) {
            Entry::Full
        } else if in_flight >= free {
            Entry::Wait
        } else {
            Entry::Go
        }
    }

    /// Asks for room for `bytes` of data in `txg`; with [`Entry::Go`] they are in flight.
    pub fn enter(&self, txg: Txg, bytes: u64) -> Entry {
        let mut in_flight = self.lock();
        let entry = self.ask(&*in_flight);
        if entry == Entry::Go {
            in_flight[txg.slot()].enter(bytes);
        }
        entry
    }

    /// As [`SpaceReservation::enter`], for what frees more than it takes: never refused.
    pub fn enter_freeing(&self, txg: Txg, bytes: u64) -> Entry {
        self.lock()[txg.slot()].enter(bytes);
        Entry::Go
    }

    /// Whether [`SpaceReservation::enter`] would make a writer wait.
    pub(crate) fn makes_wait(&self) -> bool {
        self.ask(&*self.lock()) == Entry::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_write_too_many_is_let_through_and_none_after_it() {
        let space_reservation = SpaceReservation::new();
        space_reservation.set_free(1000);
        assert_eq!(space_reservation.enter(Txg(5), 300), Entry::Go);
        assert_eq!(space_reservation.enter(Txg(5), 300), Entry::Go);
        assert_eq!(space_reservation.enter(Txg(6), 1), Entry::Wait);
        space_reservation.synced(Txg(5));
        space_reservation.set_free(400);
        assert_eq!(space_reservation.enter(Txg(6), 1000), Entry::Go, "nothing is in flight any more");
        space_reservation.synced(Txg(6));
        space_reservation.set_free(0);
        assert_eq!(space_reservation.enter(Txg(7), 1), Entry::Full);
    }

    #[test]
    fn guesses_become_facts_block_by_block() {
        let space_reservation = SpaceReservation::new();
        space_reservation.set_free(1000);
        assert_eq!(space_reservation.enter(Txg(5), 400), Entry::Go);
        assert!(space_reservation.makes_wait());
        space_reservation.syncing(Txg(5), 4000);
        assert!(space_reservation.makes_wait());
        // Of the guess of 1200 a half is left, and 300 are facts.
        space_reservation.landed(Txg(5), 2000, 300);
        assert_eq!(space_reservation.enter(Txg(6), 30), Entry::Go);
        assert_eq!(space_reservation.enter(Txg(6), 10), Entry::Go, "990 are in flight");
        assert_eq!(space_reservation.enter(Txg(6), 1), Entry::Wait);
        space_reservation.landed(Txg(5), 2000, 0);
        assert_eq!(space_reservation.enter(Txg(6), 200), Entry::Go);
        space_reservation.set_free(0);
        space_reservation.synced(Txg(6));
        space_reservation.syncing(Txg(5), 1);
        space_reservation.landed(Txg(5), 1, 0);
        assert_eq!(space_reservation.enter(Txg(7), 1), Entry::Wait, "the sync has not ended");
    }

    #[test]
    fn what_frees_space_is_let_in_where_a_dataset_is_full_and_may_make_room() {
        let space_reservation = SpaceReservation::new();
        space_reservation.set_free(0);
        assert_eq!(space_reservation.enter(Txg(5), 1), Entry::Full);
        assert_eq!(space_reservation.enter_freeing(Txg(5), 1), Entry::Go);
        assert_eq!(space_reservation.enter(Txg(5), 1), Entry::Wait);
        space_reservation.synced(Txg(5));
        space_reservation.set_ripens(true);
        assert_eq!(space_reservation.enter(Txg(6), 1), Entry::Wait);
        space_reservation.set_ripens(false);
        assert_eq!(space_reservation.enter(Txg(7), 1), Entry::Full);
    }
}
