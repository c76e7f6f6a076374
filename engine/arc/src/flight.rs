//! A read under way, and its waiters.
//!
//! ```text
//!   Flying ── land ──▶ Landed(bytes or why not)
//!     └── the leading request was dropped ──▶ Abandoned: one of the waiting requests leads now
//! ```
//!
//! The leader reads inside its own request rather than in a task of its own: a miss then costs no hand-off, and a read
//! has no waiter any more ends.

use crate::block::Access;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use units::{Error, Kind};
use world::Buf;
use world::stages::{Course, is_timed};

/// Why a read failed, for those that shared it: errors themselves cannot be shared.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: Kind,
    text: String,
}

impl Failure {
    pub(crate) fn of(error: &Error) -> Failure {
        Failure { kind: error.kind(), text: error.to_string() }
    }

    pub(crate) fn into_error(self) -> Error {
        Error::new(self.kind, "read a block together with another request").because(self.text)
    }
}

/// What a flight ended with.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Landed(Result<Buf, Failure>),
    Abandoned,
}

#[derive(Debug)]
enum State {
    Flying(Vec<Waker>),
    Over(Outcome),
}

#[derive(Debug)]
pub(crate) struct Flight {
    state: Mutex<State>,
    /// Begun ahead of need, and not asked for yet.
    ahead: AtomicBool,
    /// Of the read, for the requests that wait for it; none while no request is timed.
    pub course: Option<Course>,
}

impl Flight {
    pub(crate) fn new(access: Access) -> Flight {
        let course = is_timed().then(Course::shared);
        let ahead = AtomicBool::new(access == Access::Prefetch);
        Flight { state: Mutex::new(State::Flying(Vec::new())), ahead, course }
    }

    /// Nothing has asked for what is only read ahead. Asked under the shard's lock, as what changes it is.
    pub(crate) fn is_ahead(&self) -> bool {
        self.ahead.load(Ordering::Relaxed)
    }

    /// The block is wanted now; whether it was only read ahead until then.
    pub(crate) fn want(&self) -> bool {
        self.is_ahead() && self.ahead.swap(false, Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the flight, once; a second end is ignored.
    pub(crate) fn end(&self, outcome: Outcome) {
        let waiting = {
            let mut state = self.state();
            match &mut *state {
                State::Over(_) => return,
                State::Flying(waiting) => {
                    let waiting = std::mem::take(waiting);
                    *state = State::Over(outcome);
                    waiting
                }
            }
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(crate) async fn wait(&self) -> Outcome {
        poll_fn(|cx| self.poll_end(cx)).await
    }

    fn poll_end(&self, cx: &mut Context<'_>) -> Poll<Outcome> {
        match &mut *self.state() {
            State::Over(outcome) => Poll::Ready(outcome.clone()),
            State::Flying(waiting) => {
                if !waiting.iter().any(|w| w.will_wake(cx.waker())) {
                    waiting.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}
