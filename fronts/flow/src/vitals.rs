//! What a session shows to the server that watches over it, and how it is told to end.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

/// One session writes what it shows; the watcher reads it, and wakes the session.
#[derive(Debug, Default)]
pub struct Vitals {
    stop: AtomicBool,
    waker: AtomicWaker,
    /// Grows whenever the client takes or brings something.
    progress: AtomicU64,
    /// The client keeps memory of ours for as long as it does not read, or does not send what it announced.
    owes: AtomicBool,
}

impl Vitals {
    /// Asks the session to finish what is in flight and to hang up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// There is something new that the session should look at.
    pub fn wake(&self) {
        self.waker.wake();
    }

    pub async fn stopped(&self) {
        poll_fn(|cx| if self.is_stopping(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// For the session alone, whose task is woken from now on.
    pub fn is_stopping(&self, cx: &mut Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.stop.load(Ordering::Acquire)
    }

    /// How far the session has come.
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    pub fn note_progress(&self) {
        // One writer, so that no locked instruction is needed.
        self.progress.store(self.progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Whether the session waits for a client that keeps memory of ours.
    pub fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed)
    }

    pub fn note_debts(&self, owes: bool) {
        self.owes.store(owes, Ordering::Relaxed);
    }

    /// As [`Vitals::progress`], when it waits for such a client.
    pub fn stuck_at(&self) -> Option<u64> {
        self.owes().then(|| self.progress())
    }
}
