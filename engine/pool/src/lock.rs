//! Taking the locks of an open pool: what they guard is changed whole, so a panic under one leaves nothing half done.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these locks guard is replaced whole or pushed to.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
