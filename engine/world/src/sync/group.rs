//! Many pieces of work, at most `n` under way.
//!
//! [`join_all_bounded`] runs futures inside the caller's task: nothing is spawned, results come in order, and
//! dropping it drops them all. [`Group`] spawns tasks, which go on even when the group is dropped.

use super::{Event, Semaphore, lock};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

/// Runs all futures, at most `at_once` at a time; their results in the order given.
pub async fn join_all_bounded<F: Future>(
    at_once: usize,
    work: impl IntoIterator<Item = F>,
) -> Vec<F::Output> {
    stream::iter(work).buffered(at_once.max(1)).collect().await
}

/// As [`join_all_bounded`], but the first error (in the order given) ends it: the rest is dropped.
pub async fn try_join_all_bounded<T, E, F: Future<Output = Result<T, E>>>(
    at_once: usize,
    work: impl IntoIterator<Item = F>,
) -> Result<Vec<T>, E> {
    stream::iter(work).buffered(at_once.max(1)).try_collect().await
}

struct Shared<E> {
    state: Mutex<State<E>>,
    done: Event,
}

struct State<E> {
    under_way: usize,
    /// No more will be spawned: the group waits for its end.
    finishing: bool,
    first_error: Option<E>,
}

/// Spawned tasks of which at most `at_once` run, and the first error among them.
pub struct Group<E> {
    room: Arc<Semaphore>,
    shared: Arc<Shared<E>>,
}

impl<E: Send + 'static> Group<E> {
    pub fn new(at_once: usize) -> Group<E> {
        let state = State { under_way: 0, finishing: false, first_error: None };
        let shared = Shared { state: Mutex::new(state), done: Event::new() };
        Group { room: Arc::new(Semaphore::new(at_once.max(1))), shared: Arc::new(shared) }
    }

    /// Waits for a free place, then spawns `work` on this loop.
    pub async fn spawn(&self, work: impl Future<Output = Result<(), E>> + Send + 'static) {
        let place = self.room.acquire_owned(1).await.expect("the group never closes its semaphore");
        let running = Running::start(&self.shared);
        crate::spawn(async move {
            let outcome = work.await;
            running.end(outcome);
            drop(place);
        });
    }

    /// Whether a task has failed already: a producer may stop early.
    pub fn has_failed(&self) -> bool {
        lock(&self.shared.state).first_error.is_some()
    }

    /// Waits for all tasks; the error of the first that failed. A task that panicked counts as ended.
    pub async fn finish(self) -> Result<(), E> {
        let idle = {
            let mut state = lock(&self.shared.state);
            state.finishing = true;
            state.under_way == 0
        };
        if !idle {
            self.shared.done.wait().await;
        }
        lock(&self.shared.state).first_error.take().map_or(Ok(()), Err)
    }
}

/// Counts a task from its spawning to its end, even when it ends by a panic.
struct Running<E>(Arc<Shared<E>>);

impl<E> Running<E> {
    fn start(shared: &Arc<Shared<E>>) -> Running<E> {
        lock(&shared.state).under_way += 1;
        Running(shared.clone())
    }

    fn end(self, outcome: Result<(), E>) {
        if let Err(e) = outcome {
            lock(&self.0.state).first_error.get_or_insert(e);
        }
    }
}

impl<E> Drop for Running<E> {
    fn drop(&mut self) {
        let last = {
            let mut state = lock(&self.0.state);
            state.under_way -= 1;
            state.under_way == 0 && state.finishing
        };
        if last {
            self.0.done.set();
        }
    }
}

impl<E> fmt::Debug for Group<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({} under way)", lock(&self.shared.state).under_way)
    }
}
