//! Changes of one range, one at a time: what makes a compare and its write one step.
//!
//! Every write takes its turn, so that a compare-and-write sees no half of another. A turn that meets no other costs a
//! short lock; one that does waits until those before it are done.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::stages::{Stage, stage};
use world::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct RangeLocks {
    taken: Mutex<Vec<(u64, Range<u64>)>>,
    freed: Notify,
}

/// A range that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct RangeLock {
    range_locks: Arc<RangeLocks>,
    id: u64,
}

impl RangeLocks {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Range<u64>)>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn try_take(self: &Arc<RangeLocks>, range: &Range<u64>) -> Option<RangeLock> {
        let mut taken = self.lock();
        if taken.iter().any(|(_, other)| other.start < range.end && range.start < other.end) {
            return None;
        }
        let id = taken.last().map_or(0, |last| last.0 + 1);
        taken.push((id, range.clone()));
        Some(RangeLock { range_locks: self.clone(), id })
    }

    pub async fn take(self: &Arc<RangeLocks>, range: Range<u64>) -> RangeLock {
        stage(Stage::Lock, self.freed.until(|| self.try_take(&range))).await
    }
}

impl Drop for RangeLock {
    fn drop(&mut self) {
        self.range_locks.lock().retain(|(id, _)| *id != self.id);
        self.range_locks.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_wait_and_others_do_not() {
        let range_locks = Arc::new(RangeLocks::default());
        let first = range_locks.try_take(&(0..10)).expect("nobody is there");
        assert!(range_locks.try_take(&(9..12)).is_none());
        let beside = range_locks.try_take(&(10..20)).expect("they do not overlap");
        drop(first);
        let again = range_locks.try_take(&(0..10)).expect("it is free again");
        assert!(again.id != beside.id);
    }
}
