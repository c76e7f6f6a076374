//! One request to the kernel, with everything it needs until the answer.
//!
//! ```text
//!                       ring: entry ──▶ kernel ──▶ result ─┐
//!   Box<dyn Operation> ─┤                                  ├─▶ complete ─▶ done: the waiting future has its value
//!                       no ring: perform ──────▶ result ───┘       └─────▶ again: the rest of a short one
//! ```
//!
//! The backend keeps the box where it is from `entry` to `complete`, so an entry may point into it.

use io_uring::squeue;
use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;
use std::io;

pub(crate) trait Operation: Send {
    /// The request for a ring; `None` when a ring has no word for it. Called again after a `complete` that asked.
    fn entry(&mut self) -> Option<squeue::Entry>;

    /// The same by system calls; the result is the ring's: a count, or an errno below zero. It may wait, except for
    /// an operation with a [`readiness`](Operation::readiness), which answers EAGAIN instead.
    fn perform(&mut self) -> i32;

    /// What to wait for before `perform`; without a ring only.
    fn readiness(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        None
    }

    /// Takes the answer. Returns itself to be submitted again.
    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>>;
}

/// Performs an operation, and its rest if it was short, on this thread.
pub(crate) fn perform_to_the_end(operation: Box<dyn Operation>) {
    let mut next = Some(operation);
    while let Some(mut operation) = next {
        let result = operation.perform();
        next = operation.complete(result);
    }
}

/// A ring's result as a count or an error.
pub(crate) fn outcome(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.saturating_neg()))
}

/// A system call's result as a ring would give it. Counts are below 2 GiB: the kernel transfers no more at once.
pub(crate) fn as_result(outcome: rustix::io::Result<usize>) -> i32 {
    match outcome {
        Ok(n) => i32::try_from(n).unwrap_or(i32::MAX),
        Err(e) => -e.raw_os_error(),
    }
}

/// Whether the kernel asks for the same request once more.
pub(crate) fn is_transient(result: i32) -> bool {
    result == -libc::EINTR || result == -libc::EAGAIN
}

/// The wait for an operation's answer.
pub(crate) async fn answer<T>(waiting: world::sync::oneshot::Receiver<T>) -> io::Result<T> {
    waiting.await.map_err(|_| io::Error::other("the program is ending"))
}
