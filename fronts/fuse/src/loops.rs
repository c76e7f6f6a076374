//! From the session's threads to the engine's loops.
//!
//! ```text
//!   session thread ── run ──▶ a permit ──▶ tried here and now ── waits ──▶ a task of a loop, which replies by itself
//!        ▲                    none: wait         │ replied                       at most AT_ONCE under way
//!        └────────── next request ───────────────┘
//! ```
//!
//! Most requests find what they need in memory and have replied when they were tried. To hand such a one to another thread
//! would cost more than the request: a thread that must be woken on another core, twice.
//!
//! A request that is timed is told of both waits as the stage `front`: for a permit, and from the end of the try until the
//! loop takes the task up, unless what it waits for takes as long.
//!
//! That the kernel forgets a file takes no permit: it brings no data, no program waits for it, and what it frees may wait
//! for a suspended pool. By io_uring less comes at once than there are permits, so that the threads of the rings never
//! wait here.
//!
//! Those that wait go to the loops in turn, whatever file they are about: a file that many use keeps all cores busy. The end
//! comes when no sender is left and all permits are back.

use futures_util::future::{Either, select};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use world::stages::{Course, Stage};
use world::sync::{Event, Semaphore};
use world::{Domain, Instant, Pending, Visitor, boxed};

/// Requests of one mount that are under way, each with a mebibyte at most.
pub(crate) const AT_ONCE: usize = 256;
/// Files that are being forgotten: more than there can be.
const FORGOTTEN: usize = 1 << 30;

/// How soon it is tried again to make a thread.
const NEXT_TRY: Duration = Duration::from_millis(20);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A program waits, and data may come with it.
    Request,
    Forget,
}

/// Where requests are sent to.
pub(crate) struct Loops {
    visitor: Visitor,
    /// What is told of panics in requests.
    domain: Option<Arc<dyn Domain>>,
    next: AtomicUsize,
    permits: Permits,
}

#[derive(Clone)]
struct Permits {
    under_way: Arc<Semaphore>,
    forgotten: Arc<Semaphore>,
    /// The kernel wants no answers any more.
    over: Arc<Event>,
}

/// What was sent and is not done.
pub(crate) struct Serving(Permits);

/// Begins to serve, on all loops of this world.
pub(crate) fn start(domain: Option<Arc<dyn Domain>>) -> (Loops, Serving) {
    let permits = Permits {
        under_way: Arc::new(Semaphore::new(AT_ONCE)),
        forgotten: Arc::new(Semaphore::new(FORGOTTEN)),
        over: Arc::default(),
    };
    let (visitor, next) = (Visitor::new(), AtomicUsize::new(0));
    let loops = Loops { visitor, domain, next, permits: permits.clone() };
    (loops, Serving(permits))
}

impl Loops {
    /// The time of the loops, on any thread.
    pub fn now(&self) -> Instant {
        self.visitor.now()
    }

    /// From any thread that is no loop: waits while too much is under way. What waits here is told to `course`.
    /// The work is some kilobytes, which each future around it would hold twice, and copy: it comes in its box.
    pub fn run(&self, sort: Sort, course: Option<&Course>, work: Pending<()>) {
        let permits = match sort {
            Sort::Request => &self.permits.under_way,
            Sort::Forget => &self.permits.forgotten,
        };
        // First: what was tried may hold a lock that all those wait for which could give a permit back.
        let permit = match permits.try_acquire_owned(1) {
            Some(permit) => Some(permit),
            None => self.visitor.visit(|| {
                let _front = course.map(|course| course.open(Stage::Front));
                match wait_for(select(pin!(permits.acquire_owned(1)), pin!(self.permits.over.wait()))) {
                    Either::Left((permit, _)) => permit.ok(),
                    Either::Right(_) => None,
                }
            }),
        };
        // At the end the work is dropped, and its reply says that it was not done.
        let Some(permit) = permit else { return };
        let core = self.next.load(Ordering::Relaxed) % self.visitor.cores();
        let work: Pending<()> = match self.domain.clone() {
            // The domain is told, and the reply says that it was not done.
            Some(domain) => boxed(|| async move { drop(world::within(domain, work).await) }),
            None => work,
        };
        let Some(waiting) = self.visitor.attempt(core, work) else { return };
        self.next.fetch_add(1, Ordering::Relaxed);
        let front = course.map(|course| self.visitor.visit(|| course.open(Stage::Front)));
        self.visitor.spawn_on(
            core,
            boxed(|| async move {
                drop(front);
                waiting.await;
                drop(permit);
            }),
        );
    }
}

impl Serving {
    /// Waits until everything that was sent is done; all senders must be gone.
    pub async fn finish(self) {
        drop(self.0.under_way.acquire(AT_ONCE).await);
        drop(self.0.forgotten.acquire(FORGOTTEN).await);
    }

    /// To be set when the kernel wants no answers any more: what waits for its turn is given up.
    pub fn over(&self) -> Arc<Event> {
        self.0.over.clone()
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

/// Does something that may block, on a thread of its own, and waits for it without blocking; also for a thread, where there
/// are as many as may be.
///
/// # Panics
/// When the thread does: the panic was printed there.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = world::sync::oneshot::channel();
    let job = Arc::new(Mutex::new(Some((work, done))));
    let body = move || {
        let taken = job.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((work, done)) = taken {
            let _ = done.send(work());
        }
    };
    while std::thread::Builder::new().spawn(body.clone()).is_err() {
        world::sleep(NEXT_TRY).await;
    }
    drop(body);
    wait.await.expect("what was done aside did not panic")
}

/// As [`aside`], for what looks at paths: they may lie below a mount of this very process, and a process that is killed
/// while it waits for its own answer must be gone all the same ([`linux::apart`]).
pub(crate) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    aside(move || linux::apart(work)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn run(loops: &Loops, sort: Sort, work: impl Future<Output = ()> + Send + 'static) {
        loops.run(sort, None, Box::pin(work));
    }

    /// One that panics costs itself alone; one that waits goes on as a task, woken by whatever it began to wait for when
    /// it was tried.
    #[test]
    fn what_panics_or_waits_when_it_is_tried_holds_up_nobody() {
        let sum = Arc::new(AtomicU64::new(0));
        let seen = sum.clone();
        linux::block_on(async move {
            let (loops, serving) = start(None);
            let gate = Arc::new(world::sync::Event::new());
            let sender = aside(move || {
                for i in 0..300 {
                    let (sum, gate) = (sum.clone(), gate.clone());
                    run(&loops, Sort::Request, async move {
                        match i {
                            150 => panic!("one request of many"),
                            299 => gate.set(),
                            i if i % 10 == 0 => gate.wait().await,
                            _ => {}
                        }
                        sum.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
            sender.await;
            serving.finish().await;
        });
        assert_eq!(seen.load(Ordering::Relaxed), 299);
    }

    /// One more than may be under way takes what all the others will want: it must not begin before it may go on.
    #[test]
    fn nothing_is_held_by_what_may_not_go_on() {
        linux::block_on(async {
            let (loops, serving) = start(None);
            let (go, held) = (Arc::new(world::sync::Event::new()), Arc::new(world::sync::Mutex::new(0)));
            let (soon, counted) = (go.clone(), held.clone());
            world::spawn(async move {
                world::sleep(Duration::from_millis(50)).await;
                soon.set();
            });
            let sender = aside(move || {
                for i in 0..=AT_ONCE {
                    let (go, held) = (go.clone(), held.clone());
                    run(&loops, Sort::Request, async move {
                        if i < AT_ONCE {
                            go.wait().await;
                        }
                        let mut held = held.lock().await;
                        world::sleep(Duration::from_micros(10)).await;
                        *held += 1;
                    });
                }
            });
            let all = async move {
                sender.await;
                serving.finish().await;
            };
            assert!(world::timeout(Duration::from_secs(20), all).await.is_some(), "they wait for each other");
            assert_eq!(*counted.lock().await, AT_ONCE + 1);
        });
    }

    /// With as much under way as may be, all of which waits: what the kernel forgets goes on, and the end lets the sender
    /// go.
    #[test]
    fn what_waits_for_ever_holds_up_neither_what_is_forgotten_nor_the_end() {
        linux::block_on(async {
            let (loops, serving) = start(None);
            let (gate, over) = (Arc::new(world::sync::Event::new()), serving.over());
            let open = gate.clone();
            let (told, tell) = (Arc::new(AtomicU64::new(0)), over.clone());
            let seen = told.clone();
            let sender = aside(move || {
                for _ in 0..AT_ONCE {
                    let gate = gate.clone();
                    run(&loops, Sort::Request, async move { gate.wait().await });
                }
                for _ in 0..2 * AT_ONCE {
                    let (gate, told) = (gate.clone(), told.clone());
                    run(&loops, Sort::Forget, async move {
                        told.fetch_add(1, Ordering::Relaxed);
                        gate.wait().await;
                    });
                }
                run(&loops, Sort::Request, async { panic!("there is no room for it") });
            });
            world::spawn(async move {
                world::sleep(Duration::from_millis(50)).await;
                tell.set();
            });
            assert!(world::timeout(Duration::from_secs(20), sender).await.is_some(), "it waits for a permit");
            assert_eq!(seen.load(Ordering::Relaxed), 2 * AT_ONCE as u64);
            let mut finish = pin!(serving.finish());
            assert!(
                world::timeout(Duration::from_millis(20), &mut finish).await.is_none(),
                "all of it is under way"
            );
            open.set();
            finish.await;
        });
    }

    /// What waits for nothing is done on the thread that brought it, without a loop.
    #[test]
    fn what_need_not_wait_is_done_where_it_came_from() {
        linux::block_on(async {
            let (loops, serving) = start(None);
            let (here, there) = aside(move || {
                let (tell, told) = std::sync::mpsc::channel();
                run(&loops, Sort::Request, async move {
                    tell.send(std::thread::current().id()).expect("somebody listens")
                });
                (std::thread::current().id(), told.try_recv())
            })
            .await;
            assert_eq!(Ok(here), there);
            serving.finish().await;
        });
    }

    /// More than may be under way, from a thread that is no loop: it waits, and nothing is lost.
    #[test]
    fn everything_that_is_sent_is_done_before_the_end() {
        let sum = Arc::new(AtomicU64::new(0));
        let seen = sum.clone();
        linux::block_on(async move {
            let (loops, serving) = start(None);
            let sender = aside(move || {
                for i in 0..5000 {
                    let sum = sum.clone();
                    run(&loops, Sort::Request, async move {
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
