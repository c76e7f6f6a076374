//! Permits, handed out strictly in the order they were asked for.
//!
//! ```text
//!   acquire(n) ── enough permits, empty queue ──────▶ Permit ── drop ──▶ permits += n, grant
//!       │                                               ▲
//!       └── else a ticket at the back of the queue ─────┘ grant: while the front's need is covered, pop it
//! ```
//!
//! A large request at the front holds back small ones behind it: it would starve otherwise. Tickets only grow, so
//! the queue is sorted, and "my ticket has left the queue" means that it was granted, or refused by `close`.

use super::lock;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

struct Waiting {
    ticket: u64,
    need: usize,
    waker: Waker,
}

struct State {
    free: usize,
    next_ticket: u64,
    queue: VecDeque<Waiting>,
    closed: bool,
    /// Tickets from here on were refused. Meaningful once closed.
    refused_from: u64,
}

pub struct Semaphore(Mutex<State>);

/// The semaphore or channel was closed: nothing more will be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

/// Permits borrowed from a semaphore, returned when dropped.
pub type Permit<'a> = Held<&'a Semaphore>;
/// Permits that keep their semaphore alive, to be carried into a spawned task.
pub type OwnedPermit = Held<Arc<Semaphore>>;

impl Semaphore {
    pub fn new(permits: usize) -> Semaphore {
        Semaphore(Mutex::new(State {
            free: permits,
            next_ticket: 0,
            queue: VecDeque::new(),
            closed: false,
            refused_from: 0,
        }))
    }

    /// Waits for `n` permits. Its place in the queue is taken at the first poll.
    pub fn acquire(&self, n: usize) -> Acquire<&Semaphore> {
        Acquire { semaphore: Some(self), need: n, ticket: None }
    }

    pub fn acquire_owned(self: &Arc<Semaphore>, n: usize) -> Acquire<Arc<Semaphore>> {
        Acquire { semaphore: Some(self.clone()), need: n, ticket: None }
    }

    /// `n` permits, if they are free and no waiter is queued for them.
    pub fn try_acquire(&self, n: usize) -> Option<Permit<'_>> {
        lock(&self.0).take(n).then(|| Held { semaphore: self, count: n })
    }

    pub fn try_acquire_owned(self: &Arc<Semaphore>, n: usize) -> Option<OwnedPermit> {
        lock(&self.0).take(n).then(|| Held { semaphore: self.clone(), count: n })
    }

    /// Adds permits: more than there were at first, or those that [`Held::forget`] kept back.
    pub fn release(&self, n: usize) {
        lock(&self.0).free += n;
        self.grant();
    }

    pub fn available(&self) -> usize {
        lock(&self.0).free
    }

    /// How many wait in the queue.
    pub fn waiting(&self) -> usize {
        lock(&self.0).queue.len()
    }

    /// Refuses all waiters, present and future. Permits already held stay valid.
    pub fn close(&self) {
        let refused = {
            let mut state = lock(&self.0);
            if !state.closed {
                state.closed = true;
                state.refused_from = state.queue.front().map_or(state.next_ticket, |w| w.ticket);
            }
            std::mem::take(&mut state.queue)
        };
        refused.into_iter().for_each(|w| w.waker.wake());
    }

    pub fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    fn grant(&self) {
        // The lock is given up for each wake-up: a waker may run arbitrary code.
        while let Some(granted) = { lock(&self.0).grant_first() } {
            granted.wake();
        }
    }
}

impl State {
    fn take(&mut self, n: usize) -> bool {
        let can = !self.closed && self.queue.is_empty() && self.free >= n;
        if can {
            self.free -= n;
        }
        can
    }

    fn grant_first(&mut self) -> Option<Waker> {
        if self.queue.front()?.need > self.free {
            return None;
        }
        let first = self.queue.pop_front()?;
        self.free -= first.need;
        Some(first.waker)
    }

    fn enqueue(&mut self, need: usize, waker: Waker) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(Waiting { ticket, need, waker });
        ticket
    }

    fn position(&self, ticket: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&ticket, |w| w.ticket).ok()
    }

    fn was_refused(&self, ticket: u64) -> bool {
        self.closed && ticket >= self.refused_from
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0);
        write!(f, "Semaphore({} free, {} waiting)", state.free, state.queue.len())
    }
}

/// The wait for permits. Dropping it leaves the queue.
#[must_use = "nothing is acquired until it is awaited"]
pub struct Acquire<S: Deref<Target = Semaphore>> {
    /// Taken when the wait is over.
    semaphore: Option<S>,
    need: usize,
    ticket: Option<u64>,
}

impl<S: Deref<Target = Semaphore>> Acquire<S> {
    fn poll_state(&mut self, cx: &Context<'_>) -> Poll<Result<(), Closed>> {
        let semaphore = self.semaphore.as_ref().expect("not polled after it was ready");
        let mut state = lock(&semaphore.0);
        let Some(ticket) = self.ticket else {
            if state.closed {
                return Poll::Ready(Err(Closed));
            }
            if state.take(self.need) {
                return Poll::Ready(Ok(()));
            }
            self.ticket = Some(state.enqueue(self.need, cx.waker().clone()));
            return Poll::Pending;
        };
        if let Some(at) = state.position(ticket) {
            state.queue[at].waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        Poll::Ready(if state.was_refused(ticket) { Err(Closed) } else { Ok(()) })
    }
}

// The handle is a reference or an Arc: nothing in it cares where it lives.
impl<S: Deref<Target = Semaphore>> Unpin for Acquire<S> {}

impl<S: Deref<Target = Semaphore>> Future for Acquire<S> {
    type Output = Result<Held<S>, Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Poll::Ready(outcome) = this.poll_state(cx) else { return Poll::Pending };
        let semaphore = this.semaphore.take().expect("present: it was polled a line above");
        Poll::Ready(outcome.map(|()| Held { semaphore, count: this.need }))
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Acquire<S> {
    fn drop(&mut self) {
        let (Some(semaphore), Some(ticket)) = (self.semaphore.take(), self.ticket) else { return };
        {
            let mut state = lock(&semaphore.0);
            if let Some(at) = state.position(ticket) {
                state.queue.remove(at);
            } else if !state.was_refused(ticket) {
                // Granted, but the waiter is gone.
                state.free += self.need;
            }
        }
        // Requests that this one held back may go now.
        semaphore.grant();
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Acquire<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Acquire({})", self.need)
    }
}

/// Permits held until dropped.
#[must_use = "the permits go back at once when this is dropped"]
pub struct Held<S: Deref<Target = Semaphore>> {
    semaphore: S,
    count: usize,
}

impl<S: Deref<Target = Semaphore>> Held<S> {
    pub fn count(&self) -> usize {
        self.count
    }

    /// Keeps the permits out of circulation until [`Semaphore::release`] brings them back.
    pub fn forget(mut self) {
        self.count = 0;
    }

    /// Returns all permits beyond `count` now.
    pub fn shrink(&mut self, count: usize) {
        let surplus = self.count.saturating_sub(count);
        self.count -= surplus;
        self.semaphore.release(surplus);
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Held<S> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.semaphore.release(self.count);
        }
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Held<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({})", self.count)
    }
}
