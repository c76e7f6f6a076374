//! Waiting for one another, without a runtime and without chance: all queues are first come, first served.
//!
//! ```text
//!   oneshot     one value, once                       Notify   "look again": one waiter or all of them
//!   channel     a bounded queue of values             Event    happened or not, for ever
//!   Semaphore   n permits          Mutex = 1 permit   Watch    the latest value, and waiting for a change
//!               RwLock = all permits for the writer   Group    many tasks, at most n under way
//!   RangeLocks  parts of a whole, one holder each
//! ```
//!
//! What always holds: waiters of a queue do not overtake; a waiter that is dropped leaves the queue, and what it had
//! already been given (a permit, a notification) goes to the next; wakers are called with no lock held. Guards may
//! be held across an await and are `Send` when their value is.
//!
//! Not here: clocks. To wait with a limit, wrap the wait in [`crate::timeout`].

mod channel;
mod group;
mod mutex;
mod notify;
pub mod oneshot;
mod range_locks;
mod rwlock;
mod semaphore;
mod watch;

pub use channel::{Receiver, SendError, Sender, TrySendError, channel};
pub use group::{Group, join_all_bounded, try_join_all_bounded};
pub use mutex::{Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::{Event, Notified, Notify};
pub use range_locks::{RangeLock, RangeLocks};
pub use rwlock::{OwnedReadGuard, OwnedWriteGuard, ReadGuard, RwLock, WriteGuard};
pub use semaphore::{Acquire, Closed, OwnedPermit, Permit, Semaphore};
pub use watch::Watch;

use std::sync::PoisonError;

/// Locks state that no panic can leave half changed: nothing that may panic runs under these locks.
fn lock<T>(state: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
