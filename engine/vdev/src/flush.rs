//! Making durable what a leaf was given, with as few flushes as that takes.
//!
//! ```text
//!   writes completed   1 2 3      4 5     6
//!   flushes                 F1──────┤F2─────────┤     F1 covers 1 to 3, F2 covers 1 to 5: what was complete when it began
//!   waiters                 a     b c                 a needs 1 to 3, b 1 to 4, c 1 to 5
//! ```
//!
//! A waiter is served by any flush that began after its writes had completed. Here `a` begins F1. `b` and `c` come while
//! it is under way, which may be too late for their writes: they wait until it has ended; then the first of them begins
//! F2, and the others find that it served them too. So many waiters cost two flushes, and what was not written since the
//! last flush costs none.
//!
//! After a flush that failed it is unknown what became of the writes that it was to make durable: an operating system
//! tells of the failure once and drops them, and so do devices. A second flush that succeeds would prove nothing. So
//! every flush from then on fails, until the leaf is opened again or an administrator clears its errors; a group with
//! enough others goes on without it.
//!
//! What was written since the last flush that succeeded is kept, so that clearing can write it again ([`Durability::kept`]):
//! to the same device after a flush that failed, or to one that was unplugged, and lost its cache, and came back. The
//! memory that takes has a bound: a write past [`FLUSH_AT`] has the device flushed at once, one past [`KEPT_MAX`] waits for
//! that, and a device whose flush failed is not written to any more.
//!
//! Meanwhile a read of what is kept is answered from there: the device may have lost it.
//!
//! Invariants: `flushed` counts only writes that had completed when a flush that succeeded was issued; what is kept is all
//! that completed since, in that order.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use world::Buf;
use world::sync::Mutex;

/// What there is to say of a device after a flush that failed.
pub(crate) const LOST: &str = "an earlier flush failed, and what it was to make durable may be lost";

/// So many bytes that are not durable are reason enough for a flush.
pub(crate) const FLUSH_AT: u64 = 64 << 20;
/// With so many, a writer waits for that flush.
pub(crate) const KEPT_MAX: u64 = 256 << 20;

/// What of one leaf's writes a power cut would take. See the module.
#[derive(Debug)]
pub(crate) struct Durability {
    /// How many writes have completed, well or badly, and how many of them, from the first on, are durable.
    written: AtomicU64,
    flushed: AtomicU64,
    /// A flush failed.
    doubtful: AtomicBool,
    kept: std::sync::Mutex<Kept>,
    /// Its holder flushes.
    turn: Arc<Mutex<()>>,
}

/// Writes that are not known to be durable, in the order of their completion.
#[derive(Debug, Default)]
struct Kept {
    /// With the count of writes when each completed.
    writes: VecDeque<(u64, u64, Buf)>,
    bytes: u64,
    /// A flush was asked for because there were so many.
    is_relieving: bool,
}

/// What a write owes for the memory that is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// To have the device flushed.
    Flush,
    /// To wait until it is.
    Wait,
}

impl Durability {
    pub fn new() -> Arc<Durability> {
        Arc::new(Durability {
            written: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            doubtful: AtomicBool::new(false),
            kept: Default::default(),
            turn: Arc::new(Mutex::new(())),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // No code that can panic runs under this lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write has failed. Some of its bytes may have arrived: it counts too.
    pub fn failed(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    /// A write has completed, of `data` at `offset`.
    pub fn wrote(&self, offset: u64, data: Buf) -> Due {
        let mut kept = self.lock();
        let number = self.written.fetch_add(1, Ordering::Release) + 1;
        kept.bytes += data.len() as u64;
        kept.writes.push_back((number, offset, data));
        if kept.bytes > KEPT_MAX {
            return Due::Wait;
        }
        if kept.bytes > FLUSH_AT && !std::mem::replace(&mut kept.is_relieving, true) {
            return Due::Flush;
        }
        Due::Nothing
    }

    /// As [`Durability::wrote`], of a device that loses nothing.
    pub fn wrote_through(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    /// All writes that are not known to be durable, as (offset, bytes) in the order in which they completed.
    pub fn kept(&self) -> Vec<(u64, Buf)> {
        self.lock().writes.iter().map(|(_, offset, data)| (*offset, data.clone())).collect()
    }

    /// What was written to a range last, when that is kept as a whole.
    pub fn kept_at(&self, offset: u64, len: usize) -> Option<Buf> {
        let kept = self.lock();
        let holds = |(_, at, data): &&(u64, u64, Buf)| {
            *at <= offset && offset + len as u64 <= *at + data.len() as u64
        };
        let (_, at, data) = kept.writes.iter().rev().find(holds)?;
        let from = (offset - at) as usize;
        Some(data.slice(from..from + len))
    }

    /// A flush failed, and the device's errors have not been cleared since.
    pub fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    fn forget_kept(&self, covered: u64) {
        let mut kept = self.lock();
        while let Some((_, _, data)) = kept.writes.pop_front_if(|(number, _, _)| *number <= covered) {
            kept.bytes -= data.len() as u64;
        }
    }

    /// Gives up what is not durable: the device is known to miss it.
    pub fn abandon(&self) {
        self.forget_kept(u64::MAX);
        self.doubtful.store(false, Ordering::Release);
    }

    /// Whether all that completed is durable.
    pub fn is_clean(&self) -> bool {
        self.covers(self.written.load(Ordering::Acquire))
    }

    /// Trusts the device again: what was kept has been written to it once more.
    pub fn forget_doubts(&self) {
        // And that is to be flushed.
        self.written.fetch_add(1, Ordering::Release);
        self.doubtful.store(false, Ordering::Release);
    }

    /// Makes durable what has completed by now, by `flush` unless another's does.
    pub async fn flush<F>(
        self: &Arc<Durability>,
        flush: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<()>
    where
        F: Future<Output = io::Result<()>> + Send,
    {
        let mine = self.written.load(Ordering::Acquire);
        let turn = self.turn.lock_owned().await;
        if self.covers(mine) {
            return Ok(());
        }
        if self.doubtful.load(Ordering::Acquire) {
            return Err(io::Error::other(LOST));
        }
        let this = self.clone();
        // A task of its own: the waiters may be dropped, but later requests must know how the flush ended.
        let flushing = world::spawn(async move {
            let covered = this.written.load(Ordering::Acquire);
            let result = flush().await;
            match &result {
                Ok(()) => {
                    this.flushed.fetch_max(covered, Ordering::Release);
                    this.forget_kept(covered);
                }
                Err(_) => this.doubtful.store(true, Ordering::Release),
            }
            this.lock().is_relieving = false;
            drop(turn);
            result
        });
        flushing.await
    }

    fn covers(&self, written: u64) -> bool {
        self.flushed.load(Ordering::Acquire) >= written
    }
}
