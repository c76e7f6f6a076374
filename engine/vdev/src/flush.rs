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
//! After a flush that failed nobody can know what became of the writes that it was to make durable: an operating system
//! tells of the failure once and drops them, and so do devices. A second flush that succeeds would prove nothing. So
//! every flush from then on fails, until the leaf is opened again or an administrator clears its errors; a group with
//! enough others goes on without it.
//!
//! Invariant: `flushed` counts only writes that had completed when a flush that succeeded was issued.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use world::sync::Mutex;

/// What of one leaf's writes a power cut would take. See the module.
#[derive(Debug)]
pub(crate) struct Durability {
    /// How many writes have completed, well or badly, and how many of them, from the first on, are durable.
    written: AtomicU64,
    flushed: AtomicU64,
    /// A flush failed.
    doubtful: AtomicBool,
    /// Whoever has it flushes.
    turn: Arc<Mutex<()>>,
}

impl Durability {
    pub fn new() -> Arc<Durability> {
        Arc::new(Durability {
            written: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            doubtful: AtomicBool::new(false),
            turn: Arc::new(Mutex::new(())),
        })
    }

    /// A write has completed. Of one that failed some bytes may have arrived: it counts too.
    pub fn wrote(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    /// Whether all that completed is durable.
    pub fn is_clean(&self) -> bool {
        self.covers(self.written.load(Ordering::Acquire))
    }

    /// Trusts the device again.
    pub fn forget_doubts(&self) {
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
            return Err(io::Error::other(
                "an earlier flush failed, and what it was to make durable may be lost",
            ));
        }
        let this = self.clone();
        // A task of its own: whoever waits may go away, but how the flush ended must be known to those who come later.
        let flushing = world::spawn(async move {
            let covered = this.written.load(Ordering::Acquire);
            let result = flush().await;
            match &result {
                Ok(()) => drop(this.flushed.fetch_max(covered, Ordering::Release)),
                Err(_) => this.doubtful.store(true, Ordering::Release),
            }
            drop(turn);
            result
        });
        flushing.await
    }

    fn covers(&self, written: u64) -> bool {
        self.flushed.load(Ordering::Acquire) >= written
    }
}
