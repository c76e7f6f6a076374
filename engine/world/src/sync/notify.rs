//! "Look again": a wake-up without a value, and the event that happened or did not.
//!
//! A [`Notified`] stands in the queue from the moment it is made, before it is polled. So the classic race is
//! closed by making it first and looking second, which [`Notify::until`] does:
//!
//! ```text
//!   let notified = notify.notified();   in the queue
//!   look at the state                   a change from here on wakes us
//!   notified.await
//! ```

use super::lock;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct State {
    next_ticket: u64,
    /// In order of tickets; no waker until the first poll.
    queue: VecDeque<(u64, Option<Waker>)>,
    /// Chosen by `notify_one` and not yet aware of it. A ticket in neither list was woken by `notify_all`.
    chosen: Vec<u64>,
    /// A `notify_one` that found no waiter: the next one has it.
    stored: bool,
}

/// A handle: its clones notify the same waiters.
#[derive(Clone, Default)]
pub struct Notify(Arc<Mutex<State>>);

impl Notify {
    pub fn new() -> Notify {
        Notify::default()
    }

    /// Wakes the first in the queue, or, when it is empty, the next to come.
    pub fn notify_one(&self) {
        let waker = lock(&self.0).choose_first();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes all waiters in the queue; nothing is kept for later ones.
    pub fn notify_all(&self) {
        let woken = std::mem::take(&mut lock(&self.0).queue);
        woken.into_iter().filter_map(|(_, waker)| waker).for_each(Waker::wake);
    }

    /// The wait for the next notification, from now on.
    pub fn notified(&self) -> Notified {
        let mut state = lock(&self.0);
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        if std::mem::take(&mut state.stored) {
            state.chosen.push(ticket);
        } else {
            state.queue.push_back((ticket, None));
        }
        Notified { notify: self.clone(), ticket: Some(ticket) }
    }

    /// Looks now and after each notification, until `look` finds something.
    pub async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let notified = self.notified();
            if let Some(found) = look() {
                return found;
            }
            notified.await;
        }
    }
}

impl State {
    fn choose_first(&mut self) -> Option<Waker> {
        match self.queue.pop_front() {
            Some((ticket, waker)) => {
                self.chosen.push(ticket);
                waker
            }
            None => {
                self.stored = true;
                None
            }
        }
    }

    fn position(&self, ticket: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&ticket, |w| w.0).ok()
    }

    /// Whether `notify_one` chose this ticket; it is forgotten.
    fn take_choice(&mut self, ticket: u64) -> bool {
        let at = self.chosen.iter().position(|&t| t == ticket);
        at.is_some_and(|at| {
            self.chosen.swap_remove(at);
            true
        })
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notify({} waiting)", lock(&self.0).queue.len())
    }
}

/// See [`Notify::notified`]. Dropped unawaited, it passes a `notify_one` on to the next.
#[must_use = "it waits only when awaited"]
#[derive(Debug)]
pub struct Notified {
    notify: Notify,
    /// Taken when the wait is over.
    ticket: Option<u64>,
}

impl Future for Notified {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(ticket) = self.ticket else { return Poll::Ready(()) };
        let this = &mut *self;
        let mut state = lock(&this.notify.0);
        if let Some(at) = state.position(ticket) {
            state.queue[at].1 = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.take_choice(ticket);
        this.ticket = None;
        Poll::Ready(())
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let pass_on = {
            let mut state = lock(&self.notify.0);
            match state.position(ticket) {
                Some(at) => {
                    state.queue.remove(at);
                    false
                }
                None => state.take_choice(ticket),
            }
        };
        if pass_on {
            self.notify.notify_one();
        }
    }
}

/// Happens once and stays happened.
#[derive(Default, Debug)]
pub struct Event {
    happened: std::sync::atomic::AtomicBool,
    notify: Notify,
}

impl Event {
    pub fn new() -> Event {
        Event::default()
    }

    pub fn set(&self) {
        self.happened.store(true, std::sync::atomic::Ordering::Release);
        self.notify.notify_all();
    }

    pub fn is_set(&self) -> bool {
        self.happened.load(std::sync::atomic::Ordering::Acquire)
    }

    pub async fn wait(&self) {
        self.notify.until(|| self.is_set().then_some(())).await;
    }
}
