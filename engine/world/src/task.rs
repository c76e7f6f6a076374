//! Tasks, and the world that runs them.

use crate::around::around;
use crate::domain::{self, inherited, inherited_job};
use crate::sync::oneshot;
use crate::{Address, Disk, Instant, Listener, OpenMode, Pending, WallTime, boxed};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The two implementations are `linux::World` and `sim::World`. Engine code uses the free functions instead.
pub trait World: Send + Sync + 'static {
    fn now(&self) -> Instant;
    fn wall_clock(&self) -> WallTime;
    fn sleep_until(&self, deadline: Instant) -> Pending<()>;
    fn random_u64(&self) -> u64;
    /// How many loops there are, one per core.
    fn cores(&self) -> usize;
    /// The loop that runs the calling thread; of a [`Visitor`], the one its work would go on.
    fn this_core(&self) -> usize;
    /// Starts a task on the loop `core`, where it stays.
    fn spawn_on(&self, core: usize, task: Pending<()>);
    /// What connections of clients have had of loop `core` so far; nothing in a world that does not count it.
    fn serving(&self, _core: usize) -> Duration {
        Duration::ZERO
    }
    /// Counts `time` of the calling loop for a client's connection.
    fn count_serving(&self, _time: Duration) {}
    /// Runs a computation on any core that is free: for work worth a hand-off, tens of microseconds and more.
    fn compute(&self, job: Box<dyn FnOnce() + Send>);
    /// Waits in the caller for as long as the file system does: for programs that have nothing else to serve.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Disk>>;
    /// As `open`, without holding up a loop. `TimedOut` when the file system does not answer.
    fn open_aside(&self, path: &Path, mode: OpenMode) -> Pending<io::Result<Arc<dyn Disk>>>;
    /// The files and block devices directly inside `dir`, sorted by name. No loop waits for the file system that it is in.
    fn list_dir(&self, dir: &Path) -> Pending<io::Result<Vec<PathBuf>>>;
    fn listen(&self, address: &Address) -> io::Result<Box<dyn Listener>>;
    /// What the heap holds; nothing where it cannot be asked.
    fn heap(&self) -> Option<Heap> {
        None
    }
    /// Gives free pages of the heap back to the system, which takes some milliseconds.
    fn trim_heap(&self) {}
}

/// Bytes that the heap has from the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    pub in_use: u64,
    /// Not in use, and not given back: holes between what is, for the most part in memory.
    pub free: u64,
}

/// What the heap of this process holds, as [`World::heap`] says.
pub fn heap() -> Option<Heap> {
    current(|world| world.heap())
}

/// Gives free pages of the heap back, as [`World::trim_heap`] says.
pub fn trim_heap() {
    current(|world| world.trim_heap());
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn World>>> = const { RefCell::new(None) };
    static VISITING: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Makes `world` the world of this thread until the guard is dropped. Only worlds and their loops call this.
pub fn enter(world: Arc<dyn World>) -> impl Drop {
    struct Leave(Option<Arc<dyn World>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    Leave(CURRENT.replace(Some(world)))
}

/// # Panics
/// Outside of a loop: there is no world to ask.
pub(crate) fn current<T>(f: impl FnOnce(&dyn World) -> T) -> T {
    CURRENT.with_borrow(|w| f(w.as_deref().expect("called from a task of a world")))
}

/// As [`current`], where there may be no world.
pub(crate) fn current_if_any<T>(f: impl FnOnce(&dyn World) -> T) -> Option<T> {
    CURRENT.try_with(|w| w.borrow().as_deref().map(f)).ok().flatten()
}

/// For a thread that is no loop and has work for them: one of a library, which calls us.
#[derive(Clone)]
pub struct Visitor(Arc<dyn World>);

impl Visitor {
    /// To the world that runs the calling task.
    pub fn new() -> Visitor {
        Visitor(CURRENT.with_borrow(Clone::clone).expect("called from a task of a world"))
    }

    /// Polls `work` once, here and now. If that was all it was done without a hand-off between threads; what waits is given
    /// back, and must be spawned on loop `core`, which has whatever it began. A panic ends the work, as it ends a task.
    pub fn attempt(&self, core: usize, mut work: Pending<()>) -> Option<Pending<()>> {
        let _world = enter(self.0.clone());
        let before = VISITING.replace(Some(core));
        turn_begins();
        // Whatever calls this waker meanwhile calls in vain: the work is polled again as soon as it is spawned.
        let poll = || work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        let waits = match polled {
            Ok(Poll::Pending) => Some(work),
            _ => {
                // Its destructors may spawn, and may panic as well.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
                None
            }
        };
        VISITING.set(before);
        waits
    }

    /// Goes on with `work` as a task of the loop `core`.
    pub fn spawn_on(&self, core: usize, work: Pending<()>) {
        self.0.spawn_on(core, work);
    }

    /// Does `f` in that world, here and now: what it asks the time has an answer.
    pub fn visit<T>(&self, f: impl FnOnce() -> T) -> T {
        let _world = enter(self.0.clone());
        f()
    }

    pub fn now(&self) -> Instant {
        self.0.now()
    }

    pub fn cores(&self) -> usize {
        self.0.cores()
    }
}

impl Default for Visitor {
    fn default() -> Visitor {
        Visitor::new()
    }
}

impl std::fmt::Debug for Visitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Visitor")
    }
}

/// The loop that the work of the calling thread would go on, while a [`Visitor`] polls it. For worlds.
pub fn visited_core() -> Option<usize> {
    VISITING.get()
}

/// A spawned task's result. Dropping it lets the task go on.
pub struct Task<T>(oneshot::Receiver<T>);

impl<T> std::fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Task")
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    /// # Panics
    /// When the task itself panicked: the panic goes on where the result was awaited.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx).map(|r| r.expect("the awaited task did not panic"))
    }
}

/// Starts a task on this loop, in the [`crate::Domain`] of the task that calls.
pub fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Task<T> {
    spawn_on(current(|w| w.this_core()), work)
}

/// Starts a task on the loop `core % cores()`, in the [`crate::Domain`] of the task that calls.
pub fn spawn_on<T: Send + 'static>(core: usize, work: impl Future<Output = T> + Send + 'static) -> Task<T> {
    let (tx, rx) = oneshot::channel();
    let mut tx = Some(tx);
    // Around both, so that what the work held is dropped before its result is there.
    let task = boxed(|| {
        around(inherited(domain::current(), work), move |work, cx| {
            work.poll(cx).map(|result| {
                if let (Some(result), Some(tx)) = (result, tx.take()) {
                    // A result that is not awaited is fine: the task was detached.
                    let _ = tx.send(result);
                }
            })
        })
    });
    current(|w| w.spawn_on(core % w.cores(), task));
    Task(rx)
}

/// Runs a computation on a core that is free and returns its result.
pub fn compute<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Task<T> {
    let (tx, rx) = oneshot::channel();
    let domain = domain::current();
    current(|w| {
        w.compute(Box::new(move || {
            if let Some(result) = inherited_job(domain, job) {
                let _ = tx.send(result);
            }
        }))
    });
    Task(rx)
}

pub fn cores() -> usize {
    current(|w| w.cores())
}

/// The loop that runs the calling task.
pub fn this_core() -> usize {
    current(|w| w.this_core())
}

/// The loop that runs the calling task, and how many there are; `None` on a thread that has no world.
pub fn core_if_any() -> Option<(usize, usize)> {
    current_if_any(|w| (w.this_core(), w.cores()))
}

/// Does `work`, whose time counts as one that the calling loop has given to a client's connection: what can be done on
/// another loop is better done there.
pub fn serve<T>(work: impl FnOnce() -> T) -> T {
    let Some(began) = current_if_any(|w| w.now()) else { return work() };
    let done = work();
    current_if_any(|w| w.count_serving(w.now().since(began)));
    done
}

/// Counts `time` of the calling loop as [`serve`] does: for what knows by itself how long it took.
pub fn count_serving(time: Duration) {
    current(|w| w.count_serving(time));
}

/// What connections of clients have had of loop `core` so far, as [`serve`] counts it.
pub fn serving(core: usize) -> Duration {
    current(|w| w.serving(core))
}

pub fn random_u64() -> u64 {
    current(|w| w.random_u64())
}

pub fn open(path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Disk>> {
    current(|w| w.open(path, mode))
}

pub fn open_aside(path: &Path, mode: OpenMode) -> Pending<io::Result<Arc<dyn Disk>>> {
    current(|w| w.open_aside(path, mode))
}

pub fn list_dir(dir: &Path) -> Pending<io::Result<Vec<PathBuf>>> {
    current(|w| w.list_dir(dir))
}

pub fn listen(address: &Address) -> io::Result<Box<dyn Listener>> {
    current(|w| w.listen(address))
}

/// The longest that work in pieces keeps its loop, and how many pieces it does at most without looking at the clock; in
/// the simulator, where computing takes no time, how many it does at most.
const TURN: Duration = Duration::from_micros(300);
const PIECES: u32 = 64;

/// What the task that is being polled has done of its turn.
#[derive(Clone, Copy)]
struct Turn {
    pieces: u32,
    /// When it had done its first.
    began: Instant,
}

thread_local! {
    static OF_THIS: Cell<Option<Turn>> = const { Cell::new(None) };
}

/// A task is about to be polled. For worlds.
pub fn turn_begins() {
    OF_THIS.set(None);
}

/// For long work, after each of its pieces: lets the other tasks of this loop run when the turn has been long enough.
/// Without a hand-over it costs some tens of nanoseconds.
pub async fn breathe() {
    // Without a world there is no other task to make room for.
    let Some(now) = current_if_any(|w| w.now()) else { return };
    let turn = OF_THIS.get().unwrap_or(Turn { pieces: 0, began: now });
    let turn = Turn { pieces: turn.pieces + 1, ..turn };
    OF_THIS.set(Some(turn));
    if turn.pieces >= PIECES || now.since(turn.began) >= TURN {
        yield_now().await;
    }
}

/// Lets the other tasks of this loop run.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(move |cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
