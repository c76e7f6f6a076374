//! Where the time of a request goes: which of its layers it waits in.
//!
//! ```text
//!   course.run(work) ── poll ──▶ work ──▶ stage(Throttle, …) ──▶ stage(Queue, …) ──▶ stage(Device, …)
//!      │                                    opened and closed in the course of the task that is polled
//!      ▼
//!   course.spent(now)     Throttle 8 ms   Queue 2 ms   Device 5 ms      the rest: work, and waits for a turn of the loop
//! ```
//!
//! A request may wait in several stages at once, as it does for the two disks of a mirror, or within a commit for a
//! device. A moment counts for the deepest stage that is open, so that all stages and the rest together are the
//! request's time.
//!
//! Work that many requests share has a course of its own, which they *follow*: what opens in it opens in theirs, for as
//! long as they wait for it. So a request that waits for another's read or commit is told that it waited for the device.
//!
//! ```text
//!   request A ──follow──┐
//!   request B ──follow──┴──▶ commit of a log ──▶ stage(Device), stage(Flush)
//! ```
//!
//! While no request is timed, a stage costs a look at a variable of the thread.
//!
//! Not here: which statistics are made of it (`probe`), and which requests are timed (the fronts).

use crate::Instant;
use crate::around::around;
use crate::time::{now, now_if_any};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a request waits for; a later one is deeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The client: its data are not there yet, or the socket has no room for the answer.
    Wire,
    /// Its turn at the front: requests before it, the order that the client asked for.
    Front,
    /// Another request has what it needs: a range of blocks, a name, an object.
    Lock,
    /// Too much is dirty, or the pool is suspended.
    Throttle,
    /// A transaction group must be on disk first.
    Txg,
    /// The commit of the intent log: other commits, and its gathering.
    Log,
    /// Another request reads the block.
    Cache,
    /// Checksums and compression on another core.
    Compute,
    /// The queue in front of the device.
    Queue,
    /// The device makes durable what it was given.
    Flush,
    /// The device reads or writes.
    Device,
}

impl Stage {
    pub const ALL: [Stage; 11] = [
        Stage::Wire,
        Stage::Front,
        Stage::Lock,
        Stage::Throttle,
        Stage::Txg,
        Stage::Log,
        Stage::Cache,
        Stage::Compute,
        Stage::Queue,
        Stage::Flush,
        Stage::Device,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Stage::Wire => "wire",
            Stage::Front => "front",
            Stage::Lock => "lock",
            Stage::Throttle => "throttle",
            Stage::Txg => "txg",
            Stage::Log => "log",
            Stage::Cache => "cache",
            Stage::Compute => "compute",
            Stage::Queue => "queue",
            Stage::Flush => "flush",
            Stage::Device => "device",
        }
    }
}

const COUNT: usize = Stage::ALL.len();

/// How many requests are timed now, so that shared work knows whether it may be asked.
static TIMED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Course>> = const { RefCell::new(None) };
}

/// The stages of one request, or of work that several share. Clones are the same one.
#[derive(Clone)]
pub struct Course(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    is_request: bool,
}

#[derive(Default)]
struct State {
    /// How often each is open.
    open: [u32; COUNT],
    /// Until when `spent` has been reckoned.
    until: Instant,
    spent: [Duration; COUNT],
    /// What is timed by this one as well.
    followers: Vec<Course>,
}

impl State {
    fn settle(&mut self, now: Instant) {
        let deepest = self.open.iter().rposition(|count| *count > 0);
        if let Some(stage) = deepest {
            self.spent[stage] += now.since(self.until);
        }
        self.until = self.until.max(now);
    }
}

impl Course {
    /// Of a request that began at `began`.
    pub fn of_request(began: Instant) -> Course {
        TIMED.fetch_add(1, Ordering::Relaxed);
        Course::new(began, true)
    }

    /// Of work that requests may share.
    pub fn shared() -> Course {
        Course::new(Instant::default(), false)
    }

    /// The same, unless no request is timed now: then there is none to follow it.
    pub fn if_timed(&self) -> Option<Course> {
        is_timed().then(|| self.clone())
    }

    fn new(began: Instant, is_request: bool) -> Course {
        let state = Mutex::new(State { until: began, ..State::default() });
        Course(Arc::new(Inner { state, is_request }))
    }

    /// That of the task that is being polled.
    pub fn current() -> Option<Course> {
        CURRENT.with_borrow(Clone::clone)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work`, whose stages are this course's. A task that `work` spawns is not: see [`carried`].
    pub fn run<T>(self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        run_if(Some(self), work)
    }

    /// Makes it the course of this thread until the guard is dropped: for a future that is polled by hand.
    pub fn enter(&self) -> impl Drop + use<> {
        enter(self)
    }

    /// Opens a stage that ends with the request, or when the guard is dropped.
    pub fn open(&self, stage: Stage) -> Open {
        self.change(stage, Some(now()), 1);
        Open(self.clone(), stage)
    }

    /// Without a time where no world is, as when one ends and drops what is left.
    fn change(&self, stage: Stage, now: Option<Instant>, by: i32) {
        let mut state = self.lock();
        if let Some(now) = now {
            state.settle(now);
        }
        let open = &mut state.open[stage as usize];
        *open = open.saturating_add_signed(by);
        for follower in &state.followers {
            // A course is followed by those that wait for it, so that no two wait for each other's locks.
            follower.change(stage, now, by);
        }
    }

    /// How long each stage has taken until `now`, but those that took no time.
    pub fn spent(&self, now: Instant) -> impl Iterator<Item = (Stage, Duration)> + use<> {
        let spent = {
            let mut state = self.lock();
            state.settle(now);
            state.spent
        };
        Stage::ALL.into_iter().zip(spent).filter(|(_, spent)| !spent.is_zero())
    }

    /// What is open here is open in `follower` as well, until the guard is dropped.
    fn followed_by(&self, follower: Course) -> Following {
        let now = Some(now());
        let mut state = self.lock();
        state.followers.push(follower.clone());
        for stage in Stage::ALL {
            for _ in 0..state.open[stage as usize] {
                follower.change(stage, now, 1);
            }
        }
        drop(state);
        Following { shared: self.clone(), follower }
    }
}

/// Whether any request is timed now.
pub fn is_timed() -> bool {
    TIMED.load(Ordering::Relaxed) > 0
}

impl fmt::Debug for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Course")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_request {
            TIMED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Makes `course` that of the thread, until the guard is dropped.
fn enter(course: &Course) -> impl Drop + use<> {
    struct Leave(Option<Course>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    Leave(CURRENT.replace(Some(course.clone())))
}

/// A stage that is open.
#[must_use = "the stage ends when this is dropped"]
#[derive(Debug)]
pub struct Open(Course, Stage);

impl Open {
    /// Another stage from now on.
    pub fn becomes(&mut self, stage: Stage) {
        let now = now_if_any();
        self.0.change(stage, now, 1);
        self.0.change(std::mem::replace(&mut self.1, stage), now, -1);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.change(self.1, now_if_any(), -1);
    }
}

struct Following {
    shared: Course,
    follower: Course,
}

impl Drop for Following {
    fn drop(&mut self) {
        let now = now_if_any();
        let mut state = self.shared.lock();
        let place = state.followers.iter().position(|other| Arc::ptr_eq(&other.0, &self.follower.0));
        if let Some(place) = place {
            state.followers.swap_remove(place);
        }
        for stage in Stage::ALL {
            for _ in 0..state.open[stage as usize] {
                self.follower.change(stage, now, -1);
            }
        }
    }
}

/// Does `work`, whose time counts as this stage unless a deeper one is open.
pub fn stage<T>(stage: Stage, work: impl Future<Output = T>) -> impl Future<Output = T> {
    beside(move || open_stage(stage), work)
}

/// Opens a stage of the task that is being polled, if it is timed.
pub fn open_stage(stage: Stage) -> Option<Open> {
    Course::current().map(|course| course.open(stage))
}

/// Waits by `work` for what has the course `shared`, whose stages count for this task as well.
pub fn following<T>(shared: Option<&Course>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    beside(move || follow(shared), work)
}

/// Does `work` for all that follow the course `shared`, this task among them.
pub fn sharing<T>(shared: Option<Course>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    let followed = shared.clone();
    beside(move || follow(followed.as_ref()), run_if(shared, work))
}

/// Does `work`, with what `begin` answers when it begins until it is done.
fn beside<G, T>(begin: impl FnOnce() -> Option<G>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    let (mut begin, mut guard) = (Some(begin), None);
    around(work, move |work, cx| {
        if let Some(begin) = begin.take() {
            guard = begin();
        }
        let done = work.poll(cx);
        if done.is_ready() {
            drop(guard.take());
        }
        done
    })
}

fn follow(shared: Option<&Course>) -> Option<Following> {
    Some(shared?.followed_by(Course::current()?))
}

/// `work` for a task that is spawned: its stages are those of the task that calls.
pub fn carried<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    run_if(Course::current(), work)
}

/// Does `work`, whose stages are those of `course` where there is one.
pub fn run_if<T>(course: Option<Course>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    around(work, move |work, cx| {
        let _current = course.as_ref().map(enter);
        work.poll(cx)
    })
}
