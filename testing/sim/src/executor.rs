//! The executor: tasks, timers and virtual time.

use crate::disk::Disks;
use crate::net::{self, Network};
use crate::rng::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use world::{Instant, Pending};

/// How a run is set up.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Poll ready tasks in an order drawn from the seed, not in the order in which they were woken.
    pub shuffle: bool,
    /// How many loops the engine is told there are; all run on the one thread.
    pub cores: usize,
    /// What the wall clock shows at the start.
    pub wall_seconds: u64,
    /// More virtual time than this means that something waits for ever.
    pub limit: Duration,
    /// How long a computation takes that is given to another core.
    pub compute: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            shuffle: true,
            cores: 2,
            wall_seconds: 1_700_000_000,
            limit: Duration::from_secs(100 * 86_400),
            compute: Duration::ZERO,
        }
    }
}

type TaskId = u64;
type Woken = Arc<Mutex<VecDeque<Arc<Awake>>>>;

pub(crate) struct Sim {
    me: Weak<Sim>,
    pub config: Config,
    pub disks: Disks,
    pub network: Arc<Network>,
    state: Mutex<State>,
    woken: Woken,
}

struct State {
    now: Instant,
    rng: Rng,
    tasks: BTreeMap<TaskId, Task>,
    next_task: TaskId,
    /// The core of the task that is being polled.
    core: usize,
    timers: BTreeMap<(Instant, u64), Waker>,
    next_timer: u64,
    /// What connections of clients have had of each loop, as far as it was said: to compute takes no time here.
    serving: BTreeMap<usize, Duration>,
}

struct Task {
    core: usize,
    /// Taken while it is being polled.
    future: Option<Pending<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task's waker: it is queued once, however often it is called before the poll.
struct Awake {
    id: TaskId,
    queued: AtomicBool,
    woken: Woken,
}

impl Wake for Awake {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Relaxed) {
            lock(&self.woken.clone()).push_back(self);
        }
    }
}

/// Says which seed to replay when a run panics.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the simulation ran with seed {}", self.0);
        }
    }
}

/// Runs `work` to its end in a world of its own, without disks.
pub fn run<T: Send + 'static>(
    seed: u64,
    config: Config,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    run_with(&Disks::new(), seed, config, work)
}

/// Runs `work` to its end in a world with these disks.
///
/// # Panics
/// When nothing can go on, or the power is cut: [`run_until_cut`] is for that.
pub fn run_with<T: Send + 'static>(
    disks: &Disks,
    seed: u64,
    config: Config,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    run_until_cut(disks, seed, config, work).unwrap_or_else(|| panic!("seed {seed}: the power was cut"))
}

/// Runs `work` until it ends or the power is cut; then every task is gone, and `None` is the answer.
pub fn run_until_cut<T: Send + 'static>(
    disks: &Disks,
    seed: u64,
    config: Config,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let _seed = SeedOnPanic(seed);
    disks.restart();
    let sim = Sim::new(disks, seed, config);
    let _world = world::enter(sim.clone());
    let _network = net::enter(sim.network.clone());
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    sim.spawn_task(
        0,
        Box::pin(async move {
            let value = work.await;
            *lock(&slot) = Some(value);
        }),
    );
    let outcome = loop {
        if disks.take_cut() {
            break None;
        }
        if let Some(value) = lock(&result).take() {
            break Some(value);
        }
        if !sim.step() {
            panic!("seed {seed}: nothing can go on, and the work is not done");
        }
    };
    sim.drop_tasks();
    outcome
}

impl Sim {
    fn new(disks: &Disks, seed: u64, config: Config) -> Arc<Sim> {
        let state = State {
            now: Instant(0),
            rng: Rng::new(seed),
            tasks: BTreeMap::new(),
            next_task: 0,
            core: 0,
            timers: BTreeMap::new(),
            next_timer: 0,
            serving: BTreeMap::new(),
        };
        Arc::new_cyclic(|me| Sim {
            me: me.clone(),
            config,
            disks: disks.clone(),
            network: Arc::default(),
            state: Mutex::new(state),
            woken: Arc::default(),
        })
    }

    pub fn clock(&self) -> Instant {
        lock(&self.state).now
    }

    pub fn random(&self) -> u64 {
        lock(&self.state).rng.next_u64()
    }

    pub fn current_core(&self) -> usize {
        lock(&self.state).core
    }

    pub fn serving_of(&self, core: usize) -> Duration {
        lock(&self.state).serving.get(&core).copied().unwrap_or_default()
    }

    pub fn count_serving_here(&self, time: Duration) {
        let mut state = lock(&self.state);
        let core = state.core;
        *state.serving.entry(core).or_default() += time;
    }

    pub fn timer(&self, when: Instant) -> Timer {
        Timer { sim: self.me.upgrade().expect("a world in use exists"), when, id: None }
    }

    pub fn spawn_task(&self, core: usize, future: Pending<()>) {
        let id = {
            let mut state = lock(&self.state);
            state.next_task += 1;
            let id = state.next_task;
            state.tasks.insert(id, Task { core, future: Some(future) });
            id
        };
        let awake = Awake { id, queued: AtomicBool::new(true), woken: self.woken.clone() };
        lock(&self.woken).push_back(Arc::new(awake));
    }

    /// Polls one ready task, or lets time pass; false when neither is possible.
    fn step(&self) -> bool {
        match self.pick() {
            Some(awake) => {
                self.poll(awake);
                true
            }
            None => self.advance(),
        }
    }

    fn pick(&self) -> Option<Arc<Awake>> {
        let mut woken = lock(&self.woken);
        let choices = woken.len() as u64;
        let shuffled = self.config.shuffle && choices > 1;
        let index = if shuffled { lock(&self.state).rng.below(choices) as usize } else { 0 };
        woken.remove(index)
    }

    fn poll(&self, awake: Arc<Awake>) {
        awake.queued.store(false, Relaxed);
        let id = awake.id;
        let mut future = {
            let mut state = lock(&self.state);
            // A task that has ended has nothing to do here.
            let Some(task) = state.tasks.get_mut(&id) else { return };
            let Some(future) = task.future.take() else { return };
            state.core = task.core;
            future
        };
        let waker = Waker::from(awake);
        world::turn_begins();
        let done = future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(());
        if done {
            lock(&self.state).tasks.remove(&id);
            drop(future);
        } else if let Some(task) = lock(&self.state).tasks.get_mut(&id) {
            task.future = Some(future);
        }
    }

    /// Jumps to the next timer.
    fn advance(&self) -> bool {
        let mut fired = Vec::new();
        {
            let mut guard = lock(&self.state);
            let state = &mut *guard;
            let Some((&(when, _), _)) = state.timers.first_key_value() else { return false };
            let limit = self.config.limit;
            assert!(when.since(Instant(0)) < limit, "more than {limit:?} of virtual time passed");
            state.now = state.now.max(when);
            while let Some(entry) = state.timers.first_entry().filter(|e| e.key().0 <= state.now) {
                fired.push(entry.remove());
            }
        }
        fired.into_iter().for_each(Waker::wake);
        true
    }

    /// Drops every task; dropping may spawn and wake, which is dropped in turn.
    fn drop_tasks(&self) {
        loop {
            let tasks = std::mem::take(&mut lock(&self.state).tasks);
            let woken = std::mem::take(&mut *lock(&self.woken));
            if tasks.is_empty() && woken.is_empty() {
                return;
            }
            drop((tasks, woken));
        }
    }
}

/// Ready at its time.
pub(crate) struct Timer {
    sim: Arc<Sim>,
    when: Instant,
    id: Option<u64>,
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = lock(&this.sim.state);
        if state.now >= this.when {
            return Poll::Ready(());
        }
        let id = *this.id.get_or_insert_with(|| {
            state.next_timer += 1;
            state.next_timer
        });
        let former = state.timers.insert((this.when, id), cx.waker().clone());
        drop(state);
        drop(former); // a waker may own the last of its task: dropped without the lock
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // No task waits for that moment any more, and time must not stop there.
            let waker = lock(&self.sim.state).timers.remove(&(self.when, id));
            drop(waker);
        }
    }
}
