//! The tasks of a path between two aborts of all of them: how an abort knows that nothing of them is left.
//!
//! ```text
//!   a task that executes holds its Epoch ──▶ the last of them drops it ──▶ its Mark is drained
//!   abort: the Mark is ended, tasks that begin later have another Epoch, and the abort waits until it is drained
//! ```
//!
//! A path keeps the marks of earlier epochs until they are drained: an abort waits for all that is left, also of what was
//! aborted before.
//!
//! Invariants: an admitted task belongs to the epoch that was current before it was checked, so that a task which passed
//! the checks of before an abort is aborted by it; a mark ends once, and stays ended by what ended it first.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use world::sync::Event;

/// See the module; each task under way has a share of it.
#[derive(Debug, Default)]
pub(crate) struct Epoch(Arc<Mark>);

/// What is left to be known of an epoch.
#[derive(Debug)]
pub(crate) struct Mark {
    /// The path whose command or function ended it.
    ended_by: AtomicU64,
    ended: Event,
    /// Set when the last of its tasks is done.
    drained: Event,
}

/// In the place of a path: it was the appliance, which takes the unit away.
pub(crate) const APPLIANCE: u64 = 0;
/// No path has this number.
const NO_PATH: u64 = u64::MAX;

impl Default for Mark {
    fn default() -> Mark {
        Mark { ended_by: AtomicU64::new(NO_PATH), ended: Event::new(), drained: Event::new() }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.0.drained.set();
    }
}

impl Epoch {
    pub fn mark(&self) -> Arc<Mark> {
        self.0.clone()
    }
}

impl Mark {
    /// The path that aborted its tasks, if one did, or [`APPLIANCE`].
    pub fn ended_by(&self) -> Option<u64> {
        Some(self.ended_by.load(Ordering::SeqCst)).filter(|&by| by != NO_PATH)
    }

    fn end(&self, by: u64) {
        // A second abort finds it ended.
        let _ = self.ended_by.compare_exchange(NO_PATH, by, Ordering::SeqCst, Ordering::SeqCst);
        self.ended.set();
    }

    /// Waits until no task of it is left.
    pub async fn drained(&self) {
        self.drained.wait().await;
    }

    /// The outcome of `work`; `None`, and `work` is dropped, when the tasks of this epoch are aborted first.
    pub async fn unless_ended<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut ended) = (pin!(work), pin!(self.ended.wait()));
        poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => work.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

/// The epochs of one path.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    now: Arc<Epoch>,
    /// Earlier ones, of which tasks may be left.
    before: Vec<Arc<Mark>>,
}

impl Tasks {
    pub fn epoch(&self) -> Arc<Epoch> {
        self.now.clone()
    }

    /// Begins a new epoch without aborting anything; returns all that are not drained.
    pub fn leave_running(&mut self) -> Vec<Arc<Mark>> {
        self.before.retain(|mark| !mark.drained.is_set());
        // The old epoch is drained here and now when no task has it.
        let mark = std::mem::take(&mut self.now).mark();
        if !mark.drained.is_set() {
            self.before.push(mark);
        }
        self.before.clone()
    }

    /// Begins a new epoch and aborts all tasks of earlier ones; returns all that are not drained.
    pub fn abort(&mut self, by: u64) -> Vec<Arc<Mark>> {
        self.now.0.end(by);
        let left = self.leave_running();
        left.iter().for_each(|mark| mark.end(by));
        left
    }
}
