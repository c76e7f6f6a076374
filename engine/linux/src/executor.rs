//! The loops: tasks, and the turn that polls them and talks to the kernel.
//!
//! ```text
//!   spawn ──▶ live (slab) ──▶ ready queue ──▶ poll ──┬─ done: leaves the slab
//!                                 ▲                  └─ waits: its waker is with what will call it
//!                                 └──── wake (once, however often it is called before the poll)
//! ```
//!
//! The slab holds every live task, so that the end of [`run`] can drop them all, also those that wait for each other.

pub(crate) mod compute;
pub(crate) mod inbox;
pub(crate) mod plain;
pub(crate) mod timers;
pub(crate) mod uring;

use crate::Config;
use crate::operation::Operation;
use crate::workers::Workers;
use compute::Compute;
use inbox::{Inbox, Message};
use plain::Plain;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;
use timers::Timers;
use uring::Uring;
use world::{Instant, Pending};

/// Blocking calls under way at once, for the whole process: enough to keep a disk's queue busy without a ring.
const BLOCKING_THREADS: usize = 32;

/// What all loops of one [`run`] have in common.
pub(crate) struct Shared {
    pub config: Config,
    pub homes: Vec<Arc<Home>>,
    pub compute: Compute,
    pub blocking: Arc<Workers>,
    began: std::time::Instant,
    stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The world of the tasks of one [`run`]; what it can do is in [`crate::world`].
pub(crate) struct World(pub Arc<Shared>);

/// A loop as others see it.
pub(crate) struct Home {
    pub inbox: Inbox,
    started: OnceLock<()>,
    /// Nanoseconds that connections of clients have had of it.
    serving: AtomicU64,
}

impl Home {
    fn new() -> std::io::Result<Home> {
        Ok(Home { inbox: Inbox::new()?, started: OnceLock::new(), serving: AtomicU64::new(0) })
    }

    pub fn serving(&self) -> Duration {
        Duration::from_nanos(self.serving.load(Ordering::Relaxed))
    }

    pub fn count_serving(&self, time: Duration) {
        self.serving.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Shared {
    fn new(config: Config) -> std::io::Result<Arc<Shared>> {
        let allowed = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let cores = config.cores.unwrap_or_else(allowed).max(1);
        let home = |_| Home::new().map(Arc::new);
        Ok(Arc::new(Shared {
            config,
            homes: (0..cores).map(home).collect::<std::io::Result<_>>()?,
            compute: Compute::new(cores),
            blocking: Arc::new(Workers::new("blocking", BLOCKING_THREADS)),
            began: std::time::Instant::now(),
            stopping: AtomicBool::new(false),
            threads: Mutex::default(),
        }))
    }

    pub fn now(&self) -> Instant {
        Instant(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Gives a message to a loop, which is started if it is its first.
    pub fn send(self: &Arc<Shared>, core: usize, message: Message) {
        let home = &self.homes[core];
        home.started.get_or_init(|| self.start(core));
        home.inbox.put(message);
    }

    fn start(self: &Arc<Shared>, core: usize) {
        let shared = self.clone();
        let body = move || live(shared, core, None);
        let thread = std::thread::Builder::new().name(format!("loop-{core}")).spawn(body);
        let thread = thread.unwrap_or_else(|e| panic!("cannot start the thread of loop {core}: {e}"));
        self.lock_threads().push(thread);
    }

    fn lock_threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.homes.iter().for_each(|home| home.inbox.ring_bell());
    }

    /// Joins everything; the calling loop has ended already.
    fn join(&self) {
        loop {
            let threads = std::mem::take(&mut *self.lock_threads());
            if threads.is_empty() {
                break;
            }
            for thread in threads {
                // A loop catches the panics of its tasks; one of its own has been printed.
                let _ = thread.join();
            }
        }
        self.compute.close();
        self.blocking.close();
    }
}

/// A loop as its own thread sees it.
pub(crate) struct Local {
    pub shared: Arc<Shared>,
    pub index: usize,
    home: Arc<Home>,
    pub timers: RefCell<Timers>,
    ready: RefCell<VecDeque<Arc<TaskCell>>>,
    begun: RefCell<Vec<Box<dyn Operation>>>,
    live: RefCell<slab::Slab<Arc<TaskCell>>>,
}

thread_local! {
    static LOCAL: RefCell<Option<Rc<Local>>> = const { RefCell::new(None) };
}

/// `f` of this thread's loop, if it is a loop's thread.
pub(crate) fn with_local<R>(f: impl FnOnce(&Local) -> R) -> Option<R> {
    let local = LOCAL.with_borrow(Clone::clone)?;
    Some(f(&local))
}

impl Local {
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Leaves an operation for the end of this turn.
    pub fn begin(&self, operation: Box<dyn Operation>) {
        self.begun.borrow_mut().push(operation);
    }

    pub fn spawn(&self, future: Pending<()>) {
        let mut live = self.live.borrow_mut();
        let entry = live.vacant_entry();
        let task = Arc::new(TaskCell {
            home: self.home.clone(),
            slot: entry.key(),
            queued: AtomicBool::new(true),
            future: Mutex::new(Some(future)),
        });
        entry.insert(task.clone());
        self.ready.borrow_mut().push_back(task);
    }

    fn poll(&self, task: Arc<TaskCell>) {
        task.queued.store(false, Ordering::SeqCst);
        let waker = Waker::from(task.clone());
        let mut slot = task.lock();
        let Some(future) = slot.as_mut() else { return };
        world::turn_begins();
        let polled =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        // A panic was printed by the hook; the waiter for the task sees that its sender is gone.
        if !matches!(polled, Ok(Poll::Pending)) {
            let ended = slot.take();
            drop(slot);
            // Its destructors may spawn and wake: nothing is borrowed here.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(ended)));
            let cell = self.live.borrow_mut().try_remove(task.slot);
            drop(cell);
        }
    }
}

/// A task: its future, and where it is woken.
pub(crate) struct TaskCell {
    home: Arc<Home>,
    slot: usize,
    /// In the ready queue, or on its way there.
    queued: AtomicBool,
    /// Only its loop takes this lock; it is there to make the cell `Sync`.
    future: Mutex<Option<Pending<()>>>,
}

impl TaskCell {
    fn lock(&self) -> MutexGuard<'_, Option<Pending<()>>> {
        self.future.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for TaskCell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let here = with_local(|local| {
            let mine = Arc::ptr_eq(&local.home, &self.home);
            if mine {
                local.ready.borrow_mut().push_back(self.clone());
            }
            mine
        });
        if here != Some(true) {
            self.home.inbox.put(Message::Wake(self.clone()));
        }
    }
}

/// How long a backend may wait for the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    No,
    For(Duration),
    Forever,
}

enum Backend {
    Ring(Box<Uring>),
    Plain(Plain),
}

impl Backend {
    fn new(shared: &Shared, home: &Arc<Home>) -> Backend {
        let ring = shared.config.io_uring.then(|| Uring::new(home.clone(), shared.blocking.clone()));
        match ring {
            Some(Ok(ring)) => Backend::Ring(Box::new(ring)),
            // Not permitted or too old: seccomp, sysctl, kernel. What the ring would do is done without.
            _ => Backend::Plain(Plain::new(home.clone(), shared.blocking.clone())),
        }
    }

    fn submit(&mut self, operation: Box<dyn Operation>) {
        match self {
            Backend::Ring(ring) => ring.submit(operation),
            Backend::Plain(plain) => plain.submit(operation),
        }
    }

    fn exchange(&mut self, wait: Wait) {
        match self {
            Backend::Ring(ring) => ring.exchange(wait),
            Backend::Plain(plain) => plain.exchange(wait),
        }
    }
}

/// Makes the calling thread the loop `index` until the world stops.
fn live(shared: Arc<Shared>, index: usize, first: Option<Pending<()>>) {
    let _world = world::enter(Arc::new(World(shared.clone())));
    let this = Loop::enter(shared, index);
    if let Some(first) = first {
        this.local.spawn(first);
    }
    this.run_until_stopped();
}

struct Loop {
    local: Rc<Local>,
    backend: Backend,
    messages: Vec<Message>,
}

impl Loop {
    fn enter(shared: Arc<Shared>, index: usize) -> Loop {
        let home = shared.homes[index].clone();
        let backend = Backend::new(&shared, &home);
        let local = Rc::new(Local {
            shared,
            index,
            home,
            timers: RefCell::default(),
            ready: RefCell::default(),
            begun: RefCell::default(),
            live: RefCell::default(),
        });
        let former = LOCAL.replace(Some(local.clone()));
        assert!(former.is_none(), "a loop does not run inside a loop");
        Loop { local, backend, messages: Vec::new() }
    }

    fn run_until_stopped(mut self) {
        while !self.local.shared.stopping.load(Ordering::SeqCst) {
            self.turn();
        }
        self.end();
    }

    fn turn(&mut self) {
        self.take_messages();
        self.fire_timers();
        self.poll_ready();
        self.submit_begun();
        let wait = self.wait();
        self.backend.exchange(wait);
        self.local.home.inbox.awake();
    }

    fn take_messages(&mut self) {
        self.local.home.inbox.take(&mut self.messages);
        for message in self.messages.drain(..) {
            match message {
                Message::Wake(task) => self.local.ready.borrow_mut().push_back(task),
                Message::Spawn(future) => self.local.spawn(future),
                Message::Submit(operation) => self.local.begin(operation),
            }
        }
    }

    fn fire_timers(&self) {
        if self.local.timers.borrow().is_empty() {
            return;
        }
        let now = self.local.now();
        while let Some(waker) = { self.local.timers.borrow_mut().pop_due(now) } {
            waker.wake();
        }
    }

    /// Polls those that are ready now; those they wake come next turn, after the kernel was asked.
    fn poll_ready(&self) {
        let count = self.local.ready.borrow().len();
        for _ in 0..count {
            let task = self.local.ready.borrow_mut().pop_front();
            self.local.poll(task.expect("only this loop takes from its queue"));
        }
    }

    fn submit_begun(&mut self) {
        let mut begun = std::mem::take(&mut *self.local.begun.borrow_mut());
        begun.drain(..).for_each(|operation| self.backend.submit(operation));
        // The vector's memory is used again; nothing was begun meanwhile, submitting polls no task.
        let mut slot = self.local.begun.borrow_mut();
        if slot.is_empty() {
            *slot = begun;
        }
    }

    fn wait(&self) -> Wait {
        let local = &self.local;
        let busy = !local.ready.borrow().is_empty()
            || !local.begun.borrow().is_empty()
            || local.shared.stopping.load(Ordering::SeqCst);
        if busy || !local.home.inbox.may_sleep() {
            return Wait::No;
        }
        match local.timers.borrow().first() {
            Some(deadline) => Wait::For(deadline.since(local.now())),
            None => Wait::Forever,
        }
    }

    /// Drops all tasks, then waits for the kernel to give every buffer back.
    fn end(mut self) {
        let local = self.local.clone();
        drop(local.home.inbox.close());
        drop(std::mem::take(&mut self.messages));
        // Dropping a task may wake others and begin operations, so until nothing is left.
        loop {
            let tasks: Vec<_> = local.live.borrow_mut().drain().collect();
            let ready = std::mem::take(&mut *local.ready.borrow_mut());
            let sleeping = local.timers.borrow_mut().clear();
            let begun = std::mem::take(&mut *local.begun.borrow_mut());
            if tasks.is_empty() && ready.is_empty() && begun.is_empty() && sleeping.is_empty() {
                break;
            }
            for task in tasks {
                let future = task.lock().take();
                let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
            }
        }
        drop(self.backend);
        LOCAL.set(None);
    }
}

/// Runs `work` on a loop on this thread, and the tasks it spawns on as many loops as the configuration says. Returns
/// when `work` is done; tasks still alive then are dropped.
///
/// # Panics
/// As `work` did; when the system has no file descriptor or thread left to start with; inside of another `run`.
pub fn run<T: Send + 'static>(config: Config, work: impl Future<Output = T> + Send + 'static) -> T {
    crate::house::set_heap_up();
    crate::apart::prepare();
    let shared = Shared::new(config).unwrap_or_else(|e| panic!("cannot create an eventfd: {e}"));
    shared.homes[0].started.get_or_init(|| ());
    let result = Arc::new(Mutex::new(None));
    live(shared.clone(), 0, Some(Box::pin(run_main(shared.clone(), work, result.clone()))));
    shared.join();
    let outcome = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    match outcome.expect("the loop stops when its main task has ended") {
        Ok(value) => value,
        Err(panic) => resume_unwind(panic),
    }
}

async fn run_main<T>(
    shared: Arc<Shared>,
    work: impl Future<Output = T> + Send,
    result: Arc<Mutex<Option<std::thread::Result<T>>>>,
) {
    let mut work = Some(Box::pin(work));
    let outcome = poll_fn(|cx| {
        let future = work.as_mut().expect("not polled after its end");
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await;
    *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    shared.stop();
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({} loops)", self.homes.len())
    }
}

/// Begins an operation on this thread's loop, or, from a thread that has none, on the one it visits, or on the first.
pub(crate) fn begin(shared: &Arc<Shared>, operation: Box<dyn Operation>) {
    let mut operation = Some(operation);
    with_local(|local| operation.take().map(|o| local.begin(o)));
    if let Some(operation) = operation {
        shared.send(world::visited_core().unwrap_or(0), Message::Submit(operation));
    }
}
