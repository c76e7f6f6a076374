//! Changes of one range, one at a time: what makes a compare and its write one step.
//!
//! Every write takes its turn, so that a compare-and-write sees no half of another. A turn that meets nobody costs a
//! short lock; one that does waits until whoever was there before is done.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    taken: Mutex<Vec<(u64, Range<u64>)>>,
    freed: Notify,
}

/// A range that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    id: u64,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Range<u64>)>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn try_take(self: &Arc<Turns>, range: &Range<u64>) -> Option<Turn> {
        let mut taken = self.lock();
        if taken.iter().any(|(_, other)| other.start < range.end && range.start < other.end) {
            return None;
        }
        let id = taken.last().map_or(0, |last| last.0 + 1);
        taken.push((id, range.clone()));
        Some(Turn { turns: self.clone(), id })
    }

    pub async fn take(self: &Arc<Turns>, range: Range<u64>) -> Turn {
        self.freed.until(|| self.try_take(&range)).await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().retain(|(id, _)| *id != self.id);
        self.turns.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_wait_and_others_do_not() {
        let turns = Arc::new(Turns::default());
        let first = turns.try_take(&(0..10)).expect("nobody is there");
        assert!(turns.try_take(&(9..12)).is_none());
        let beside = turns.try_take(&(10..20)).expect("they do not overlap");
        drop(first);
        let again = turns.try_take(&(0..10)).expect("it is free again");
        assert!(again.id != beside.id);
    }
}
