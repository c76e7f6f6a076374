//! "Something changed": wakes everybody who asked before it did.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct State {
    /// How often [`Notify::notify_all`] was called.
    epoch: u64,
    next_ticket: u64,
    /// Those who wait, in the order they came.
    waiting: BTreeMap<u64, Waker>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // No code that can panic runs under this lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ask with [`Notify::notified`] *before* looking at what may change, wait after: no change is missed.
#[derive(Clone, Default)]
pub struct Notify(Arc<Mutex<State>>);

/// Ready once [`Notify::notify_all`] was called after this was made.
pub struct Notified {
    state: Arc<Mutex<State>>,
    epoch: u64,
    ticket: Option<u64>,
}

impl Notify {
    pub fn new() -> Notify {
        Notify::default()
    }

    pub fn notified(&self) -> Notified {
        Notified { epoch: lock(&self.0).epoch, state: self.0.clone(), ticket: None }
    }

    pub fn notify_all(&self) {
        let waiting = {
            let mut state = lock(&self.0);
            state.epoch += 1;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_values().for_each(Waker::wake);
    }
}

impl Future for Notified {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = lock(&this.state);
        if state.epoch != this.epoch {
            return Poll::Ready(());
        }
        let ticket = *this.ticket.get_or_insert_with(|| {
            state.next_ticket += 1;
            state.next_ticket
        });
        state.waiting.insert(ticket, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            lock(&self.state).waiting.remove(&ticket);
        }
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notify")
    }
}

impl fmt::Debug for Notified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notified")
    }
}
