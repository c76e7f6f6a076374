//! From the session's threads to the engine's loops.
//!
//! ```text
//!   session thread ── run ──▶ queue of a loop ──▶ a permit ──▶ a task of that loop, which replies by itself
//!        │ next request         full: wait          at most AT_ONCE under way
//! ```
//!
//! Requests go to the loops in turn, whatever file they are about: a file that many use keeps all cores busy. The end comes
//! when nobody can send any more and all permits are back.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use world::Task;
use world::sync::{Receiver, Semaphore, Sender, TrySendError, channel};

/// Requests that wait in one queue: enough that a thread rarely waits; more clients wait in the kernel.
const QUEUE: usize = 64;
/// Requests of one mount that are under way, each with a mebibyte at most.
const AT_ONCE: usize = 256;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where requests are sent to.
pub(crate) struct Loops {
    queues: Vec<Sender<Work>>,
    next: AtomicUsize,
}

/// What serves them.
pub(crate) struct Serving {
    takers: Vec<Task<()>>,
    under_way: Arc<Semaphore>,
}

/// Begins to serve, on all loops of this world.
pub(crate) fn start() -> (Loops, Serving) {
    let under_way = Arc::new(Semaphore::new(AT_ONCE));
    let (mut queues, mut takers) = (Vec::new(), Vec::new());
    for core in 0..world::cores() {
        let (queue, taken) = channel(QUEUE);
        queues.push(queue);
        takers.push(world::spawn_on(core, take(taken, under_way.clone())));
    }
    (Loops { queues, next: AtomicUsize::new(0) }, Serving { takers, under_way })
}

async fn take(mut taken: Receiver<Work>, under_way: Arc<Semaphore>) {
    while let Some(work) = taken.recv().await {
        let Ok(permit) = under_way.acquire_owned(1).await else { return };
        world::spawn(async move {
            work.await;
            drop(permit);
        });
    }
}

impl Loops {
    /// From any thread that is no loop: waits while too much is queued.
    pub fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.queues.len();
        match self.queues[at].try_send(Box::pin(work)) {
            Ok(()) => {}
            // Whoever is gone closes; the work is dropped, and its reply says that it was not done.
            Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(work)) => drop(wait_for(self.queues[at].send(work))),
        }
    }
}

impl Serving {
    /// Waits until everything that was sent is done; whoever sends must be gone.
    pub async fn finish(self) {
        for taker in self.takers {
            taker.await;
        }
        drop(self.under_way.acquire(AT_ONCE).await);
    }
}

/// Waits on this thread, which is no loop.
fn wait_for<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Does something that may block, on a thread of its own, and waits for it without blocking.
///
/// # Panics
/// When the thread does: the panic was printed there.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = world::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = done.send(work());
    });
    wait.await.expect("what was done aside did not panic")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    /// More than fits into the queues, from a thread that is no loop: it waits, and nothing is lost.
    #[test]
    fn everything_that_is_sent_is_done_before_the_end() {
        let sum = Arc::new(AtomicU64::new(0));
        let seen = sum.clone();
        linux::block_on(async move {
            let (loops, serving) = start();
            let sender = aside(move || {
                for i in 0..5000 {
                    let sum = sum.clone();
                    loops.run(async move {
                        if i % 100 == 0 {
                            world::sleep(Duration::from_millis(2)).await;
                        }
                        sum.fetch_add(i, Ordering::Relaxed);
                    });
                }
            });
            sender.await;
            serving.finish().await;
        });
        assert_eq!(seen.load(Ordering::Relaxed), 5000 * 4999 / 2);
    }
}
