//! Threads that take jobs from one queue, in order. They are started when there is work for them, up to a limit.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

pub(crate) type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    closed: bool,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Workers {
    name: &'static str,
    limit: usize,
    shared: Arc<Shared>,
}

impl Workers {
    pub fn new(name: &'static str, limit: usize) -> Workers {
        let shared = Shared { state: Mutex::default(), work: Condvar::new() };
        Workers { name, limit, shared: Arc::new(shared) }
    }

    /// Queues a job. `around` wraps the life of a thread, should one have to be started.
    pub fn submit(&self, job: Job, around: impl FnOnce(&mut dyn FnMut()) + Send + 'static) {
        let mut state = self.shared.lock();
        if state.closed {
            drop(state);
            drop(job);
            return;
        }
        state.queue.push_back(job);
        if state.idle >= state.queue.len() || state.threads.len() == self.limit {
            drop(state);
            self.shared.work.notify_one();
            return;
        }
        let shared = self.shared.clone();
        let name = format!("{}-{}", self.name, state.threads.len());
        let started =
            std::thread::Builder::new().name(name).spawn(move || around(&mut || work_until_closed(&shared)));
        match started {
            Ok(thread) => state.threads.push(thread),
            // Fewer threads will have to do; with none at all there is no way on.
            Err(e) => assert!(!state.threads.is_empty(), "cannot start a thread: {e}"),
        }
    }

    /// Finishes the jobs under way, drops those that wait, and joins the threads.
    pub fn close(&self) {
        let (queue, threads) = {
            let mut state = self.shared.lock();
            state.closed = true;
            (std::mem::take(&mut state.queue), std::mem::take(&mut state.threads))
        };
        drop(queue);
        self.shared.work.notify_all();
        for thread in threads {
            // A job's panic has been reported by its thread already.
            let _ = thread.join();
        }
    }
}

fn work_until_closed(shared: &Shared) {
    let mut state = shared.lock();
    while !state.closed {
        match state.queue.pop_front() {
            Some(job) => {
                drop(state);
                // The task that waits for the job sees that its sender is gone; the thread goes on.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = shared.lock();
            }
            None => {
                state.idle += 1;
                state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}
