//! Range locks on blocks: a request that overlaps a range that is taken waits until it is given back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::stages::{Stage, stage};
use world::sync::Notify;

/// The ranges taken now: start → end. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    taken: Arc<Mutex<BTreeMap<u64, u64>>>,
    released: Notify,
}

/// A range taken; dropping it gives it back.
#[derive(Debug)]
pub struct RangeGuard {
    locks: RangeLocks,
    start: u64,
}

impl RangeLocks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        // Under this lock there is only an insert or a remove.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `range`, which is not empty, as soon as no part of it is held.
    pub async fn take(&self, range: Range<u64>) -> RangeGuard {
        loop {
            let released = self.released.notified();
            if self.try_take(&range) {
                return RangeGuard { locks: self.clone(), start: range.start };
            }
            stage(Stage::Lock, released).await;
        }
    }

    fn try_take(&self, range: &Range<u64>) -> bool {
        let mut taken = self.lock();
        let overlaps = taken.range(..range.end).next_back().is_some_and(|(_, &end)| end > range.start);
        if !overlaps {
            taken.insert(range.start, range.end);
        }
        !overlaps
    }
}

impl Drop for RangeGuard {
    fn drop(&mut self) {
        self.locks.lock().remove(&self.start);
        self.locks.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn overlapping_ranges_wait_and_others_do_not() {
        let mut cx = Context::from_waker(Waker::noop());
        let locks = RangeLocks::default();
        let Poll::Ready(first) = pin!(locks.take(10..20)).as_mut().poll(&mut cx) else { panic!("free") };
        let Poll::Ready(_beside) = pin!(locks.take(20..30)).as_mut().poll(&mut cx) else {
            panic!("beside, not over")
        };
        let mut over = pin!(locks.take(5..11));
        assert!(over.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(over.as_mut().poll(&mut cx).is_ready());
    }
}
