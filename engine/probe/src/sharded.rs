//! An array of counters that many threads add to without meeting.
//!
//! ```text
//!   slot 0   thread A's own array      plain load, add, store: its only writer
//!   slot 1   thread B's own array
//!    …
//!   slot 63
//!   shared   all further threads       atomic additions
//! ```
//!
//! A thread gets its slot with its first count and gives it back when it ends; an array is allocated when its thread
//! first counts there. Reading adds the arrays up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A loop and a compute thread for each of 32 cores; beyond, threads share.
const SLOTS: usize = 64;

pub(crate) struct Sharded {
    len: usize,
    shards: Box<[OnceLock<Box<[AtomicU64]>>; SLOTS + 1]>,
}

impl Sharded {
    pub fn new(len: usize) -> Sharded {
        Sharded { len, shards: Box::new([const { OnceLock::new() }; SLOTS + 1]) }
    }

    /// This thread's array, to be added to through [`Shard::add`].
    pub fn mine(&self) -> Shard<'_> {
        let slot = my_slot();
        let cells = self.shards[slot].get_or_init(|| (0..self.len).map(|_| AtomicU64::new(0)).collect());
        Shard { cells, alone: slot < SLOTS }
    }

    pub fn sum(&self) -> Vec<u64> {
        let mut total = vec![0u64; self.len];
        for shard in self.shards.iter().filter_map(OnceLock::get) {
            for (sum, cell) in total.iter_mut().zip(shard) {
                *sum = sum.wrapping_add(cell.load(Relaxed));
            }
        }
        total
    }
}

pub(crate) struct Shard<'a> {
    cells: &'a [AtomicU64],
    alone: bool,
}

impl Shard<'_> {
    pub fn add(&self, index: usize, n: u64) {
        let cell = &self.cells[index];
        if self.alone {
            cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
        } else {
            cell.fetch_add(n, Relaxed);
        }
    }
}

/// Slots without a thread. A slot changes hands through this lock, so its next owner sees what the last one counted.
static FREE: Mutex<Free> = Mutex::new(Free { returned: Vec::new(), next: 0 });

struct Free {
    returned: Vec<usize>,
    next: usize,
}

fn free() -> MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Slot(Cell<Option<usize>>);

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take().filter(|&s| s < SLOTS) {
            free().returned.push(slot);
        }
    }
}

thread_local! {
    static SLOT: Slot = const { Slot(Cell::new(None)) };
}

fn my_slot() -> usize {
    // A thread that is ending has given its slot back.
    SLOT.try_with(|slot| {
        slot.0.get().unwrap_or_else(|| {
            let taken = take_slot();
            slot.0.set(Some(taken));
            taken
        })
    })
    .unwrap_or(SLOTS)
}

fn take_slot() -> usize {
    let mut free = free();
    if let Some(slot) = free.returned.pop() {
        return slot;
    }
    let slot = free.next;
    free.next = (slot + 1).min(SLOTS);
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "real threads, to find what a single one cannot")]
    fn no_count_is_lost_however_many_threads_there_are() {
        let counters = Sharded::new(2);
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counters.mine().add(0, 1);
                        counters.mine().add(1, 3);
                    }
                });
            }
        });
        assert_eq!(counters.sum(), [100_000, 300_000]);
    }
}
