//! The memory that all connections together may hold for requests.
//!
//! Every connection has a base of its own for life, so that small requests never come here. Beyond that it leases
//! from what is shared, in whole units and first come first served, and gives all of it back when it has nothing
//! outstanding.
//!
//! No deadlock: who waits admits nothing more, so what it has outstanding drains and its lease comes back; and what is
//! shared is enough for the largest request there can be. A client that holds a lease and takes its replies slowly is in the
//! way of those that wait: [`crate::Debts`] says how slowly.
//!
//! What is outstanding at a suspended pool does not drain. While others wait, the watch
//! [asks](crate::Vitals::ask_to_yield) those that hold a lease, and they are [excused](Lease::excuse) from what such
//! requests hold: it is leased to others, and comes back when they have ended. More is not leased for such a pool, so that
//! each suspension costs what is shared once at most.

use crate::outbox::Load;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

#[derive(Debug)]
struct State {
    free: usize,
    /// Who waits, in order; the number tells leases apart.
    queue: VecDeque<(u64, usize, Waker)>,
    next_id: u64,
}

#[derive(Debug)]
pub struct Budget {
    state: Mutex<State>,
    /// The base of a connection. Leases are multiples of it.
    unit: usize,
}

impl Budget {
    /// `shared` bytes beyond the bases of `unit` bytes each; raised to what the largest request needs.
    pub fn new(shared: usize, largest: usize, unit: usize) -> Arc<Budget> {
        let free = shared.max(largest + unit);
        let state = State { free, queue: VecDeque::new(), next_id: 0 };
        Arc::new(Budget { state: Mutex::new(state), unit })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether some connection waits for memory.
    pub fn is_waited_for(&self) -> bool {
        !self.lock().queue.is_empty()
    }

    /// For a new connection: its base, and nothing shared yet.
    pub fn lease(self: &Arc<Budget>) -> Lease {
        let mut state = self.lock();
        state.next_id += 1;
        let id = state.next_id;
        Lease { budget: self.clone(), id, extra: 0, excused: 0, is_queued: false, has_asked: false }
    }
}

/// What one connection may hold at present.
#[derive(Debug)]
pub struct Lease {
    budget: Arc<Budget>,
    id: u64,
    /// Leased beyond the base.
    extra: usize,
    /// Held beyond that: see [`Lease::excuse`].
    excused: usize,
    is_queued: bool,
    /// Asked in vain since the last [`Lease::settle`].
    has_asked: bool,
}

impl Lease {
    /// Whether `load` fits, after leasing more where that is possible; else the task of `cx` is woken when it is.
    pub fn covers(&mut self, load: Load, cx: &mut Context<'_>) -> bool {
        self.take_back();
        if self.holds(load) {
            return true;
        }
        let unit = self.budget.unit;
        let want = (load.bytes - unit - self.extra - self.excused).next_multiple_of(unit);
        let mut state = self.budget.lock();
        let first = state.queue.front().is_none_or(|w| w.0 == self.id);
        if first && want <= state.free {
            state.free -= want;
            self.extra += want;
            self.is_queued = false;
            state.leave_queue(self.id);
            state.wake_first();
            return true;
        }
        (self.is_queued, self.has_asked) = (true, true);
        match state.queue.iter_mut().find(|w| w.0 == self.id) {
            Some(waiting) => (waiting.1, waiting.2) = (want, cx.waker().clone()),
            None => state.queue.push_back((self.id, want, cx.waker().clone())),
        }
        false
    }

    /// Whether `load` fits without leasing more.
    pub fn holds(&mut self, load: Load) -> bool {
        let is_held = load.bytes <= self.budget.unit + self.extra + self.excused;
        if is_held {
            self.leave_queue();
        }
        is_held
    }

    /// Of `load`, which is all that is outstanding, so many bytes are held by requests that end when an administrator acts:
    /// others may lease as much meanwhile, and what `load` does not need.
    pub fn excuse(&mut self, bytes: usize, load: Load) {
        self.shrink(load);
        let more = bytes.saturating_sub(self.excused).min(self.extra);
        if more > 0 {
            (self.extra, self.excused) = (self.extra - more, self.excused + more);
            let mut state = self.budget.lock();
            state.free += more;
            state.wake_first();
        }
    }

    /// What was excused is leased again, as far as no connection waits for it.
    fn take_back(&mut self) {
        if self.excused > 0 {
            let mut state = self.budget.lock();
            let back = if state.queue.is_empty() { self.excused.min(state.free) } else { 0 };
            state.free -= back;
            (self.extra, self.excused) = (self.extra + back, self.excused - back);
        }
    }

    /// The connection has asked for all that it wants now: one that waited and wants nothing any more, because the request
    /// was given up, keeps no place before the others.
    pub fn settle(&mut self) {
        if !std::mem::take(&mut self.has_asked) {
            self.leave_queue();
        }
    }

    fn leave_queue(&mut self) {
        if std::mem::take(&mut self.is_queued) {
            let mut state = self.budget.lock();
            state.leave_queue(self.id);
            state.wake_first();
        }
    }

    /// Whether it leases anything beyond the base.
    pub fn is_extended(&self) -> bool {
        self.extra > 0
    }

    /// Gives back what `load` does not need.
    pub fn shrink(&mut self, load: Load) {
        let unit = self.budget.unit;
        let beyond = load.bytes.saturating_sub(unit);
        self.excused = self.excused.min(beyond);
        let needed = (beyond - self.excused).next_multiple_of(unit);
        if needed < self.extra {
            let mut state = self.budget.lock();
            state.free += self.extra - needed;
            self.extra = needed;
            state.wake_first();
        }
    }

    /// Nothing is outstanding: all but the base goes back. It must even when more is waited for, or two connections
    /// could each keep what the other needs.
    pub fn rest(&mut self) {
        self.excused = 0;
        if self.extra > 0 {
            let mut state = self.budget.lock();
            state.free += std::mem::take(&mut self.extra);
            state.wake_first();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.budget.lock();
        state.leave_queue(self.id);
        state.free += self.extra;
        state.wake_first();
    }
}

impl State {
    fn leave_queue(&mut self, id: u64) {
        self.queue.retain(|w| w.0 != id);
    }

    fn wake_first(&self) {
        if let Some((_, want, waker)) = self.queue.front()
            && *want <= self.free
        {
            waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests;
