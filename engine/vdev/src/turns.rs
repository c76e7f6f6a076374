//! Writes of blocks and copies of extents take turns: a copy has its range of the vdev for itself, from its read to its
//! write.
//!
//! ```text
//!   write of a block ──▶ [range] shared with other writes ─┐
//!                                                          ├── ranges that overlap: one kind at a time
//!   copy of an extent ─▶ [range] for itself ───────────────┘
//! ```
//!
//! Without it a copy could read what was there before a write, and put it on the new device after the write was there. A
//! write waits for one copy at most; a copy waits for writes under way only. As long as nothing is copied, a write only
//! looks at one flag.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use world::sync::Notify;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Copy,
}

/// See the module. Belongs to one top-level vdev.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    is_on: AtomicBool,
    held: Mutex<Vec<(u64, Kind, Range<u64>)>>,
    ended: Notify,
}

/// A range that is written or copied as long as this lives.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    id: u64,
}

impl Turns {
    /// Copies may come from now on, or no more. Writes that began before are not known of: the first copy waits for a txg.
    pub fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Release);
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    pub async fn write(&self, range: Range<u64>) -> Option<Turn<'_>> {
        match self.is_on() {
            true => Some(self.take(Kind::Write, range).await),
            false => None,
        }
    }

    pub async fn copy(&self, range: Range<u64>) -> Turn<'_> {
        self.take(Kind::Copy, range).await
    }

    async fn take(&self, kind: Kind, range: Range<u64>) -> Turn<'_> {
        let look = || {
            let mut held = self.lock();
            let hinders = |(_, of, other): &(u64, Kind, Range<u64>)| {
                (kind, *of) != (Kind::Write, Kind::Write)
                    && other.start < range.end
                    && range.start < other.end
            };
            if held.iter().any(hinders) {
                return None;
            }
            let id = held.last().map_or(0, |(id, ..)| id + 1);
            held.push((id, kind, range.clone()));
            Some(Turn { turns: self, id })
        };
        self.ended.until(look).await
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Kind, Range<u64>)>> {
        // No code that can panic runs under this lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().retain(|(id, ..)| *id != self.id);
        self.turns.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_copy_is_alone_in_its_range_and_writes_are_not_alone() {
        let turns = Turns::default();
        assert!(turns.write(0..10).now_or_never().unwrap().is_none(), "nothing is copied");
        turns.set_on(true);
        let first = turns.write(0..10).now_or_never().unwrap();
        let second = turns.write(5..15).now_or_never().unwrap();
        assert!(first.is_some() && second.is_some());
        assert!(turns.copy(14..20).now_or_never().is_none(), "a write is under way there");
        let elsewhere = turns.copy(15..20).now_or_never().unwrap();
        assert!(turns.write(19..30).now_or_never().is_none() && turns.copy(10..16).now_or_never().is_none());
        drop(elsewhere);
        assert!(turns.write(19..30).now_or_never().is_some());
        drop(second);
        assert!(turns.copy(10..20).now_or_never().is_some(), "the first ends before it");
        assert!(turns.copy(9..20).now_or_never().is_none());
        drop(first);
        assert!(turns.copy(9..20).now_or_never().is_some());
    }
}
