//! The one way in which this crate takes its locks: tests take them in every order that threads can.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(not(test))]
    let locked = mutex.lock();
    #[cfg(test)]
    let locked = crate::interleave::lock(mutex);
    // What these locks guard is replaced whole, never left half changed.
    locked.unwrap_or_else(PoisonError::into_inner)
}
