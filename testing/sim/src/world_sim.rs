//! The executor: tasks, timers and virtual time.

use crate::disk::Disks;
use crate::rng::Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use world::{Address, Disk, Instant, Listener, OpenMode, Pending, WallTime, World};

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
}

impl Default for Config {
    fn default() -> Config {
        Config {
            shuffle: true,
            cores: 2,
            wall_seconds: 1_700_000_000,
            limit: Duration::from_secs(100 * 86_400),
        }
    }
}

type TaskId = u64;

struct Sim {
    me: std::sync::Weak<Sim>,
    config: Config,
    disks: Disks,
    state: Mutex<State>,
    woken: Arc<Mutex<VecDeque<TaskId>>>,
}

struct State {
    now: Instant,
    rng: Rng,
    tasks: BTreeMap<TaskId, Option<Pending<()>>>,
    next_task: TaskId,
    timers: BinaryHeap<Reverse<(Instant, u64)>>,
    timer_wakers: BTreeMap<u64, Waker>,
    next_timer: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct TaskWaker {
    id: TaskId,
    woken: Arc<Mutex<VecDeque<TaskId>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        lock(&self.woken).push_back(self.id);
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
    disks.restart();
    let sim = Arc::new_cyclic(|me| Sim {
        me: me.clone(),
        config,
        disks: disks.clone(),
        state: Mutex::new(State {
            now: Instant(0),
            rng: Rng::new(seed),
            tasks: BTreeMap::new(),
            next_task: 0,
            timers: BinaryHeap::new(),
            timer_wakers: BTreeMap::new(),
            next_timer: 0,
        }),
        woken: Arc::default(),
    });
    let _world = world::enter(sim.clone());
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    sim.spawn_task(Box::pin(async move {
        let value = work.await;
        *lock(&slot) = Some(value);
    }));
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
    fn spawn_task(&self, task: Pending<()>) {
        let id = {
            let mut state = lock(&self.state);
            state.next_task += 1;
            let id = state.next_task;
            state.tasks.insert(id, Some(task));
            id
        };
        lock(&self.woken).push_back(id);
    }

    /// Polls one ready task, or lets time pass; false when neither is possible.
    fn step(&self) -> bool {
        match self.pick() {
            Some(id) => {
                self.poll(id);
                true
            }
            None => self.advance(),
        }
    }

    fn pick(&self) -> Option<TaskId> {
        let mut woken = lock(&self.woken);
        if woken.is_empty() {
            return None;
        }
        let index =
            if self.config.shuffle { lock(&self.state).rng.below(woken.len() as u64) as usize } else { 0 };
        woken.remove(index)
    }

    fn poll(&self, id: TaskId) {
        // A task that is gone, or being polled further up, has nothing to do here.
        let Some(mut task) = lock(&self.state).tasks.get_mut(&id).and_then(Option::take) else { return };
        let waker = Waker::from(Arc::new(TaskWaker { id, woken: self.woken.clone() }));
        let done = task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(());
        if done {
            lock(&self.state).tasks.remove(&id);
            drop(task);
        } else if let Some(slot) = lock(&self.state).tasks.get_mut(&id) {
            *slot = Some(task);
        }
    }

    /// Jumps to the next timer.
    fn advance(&self) -> bool {
        let mut fired = Vec::new();
        {
            let mut state = lock(&self.state);
            let Some(&Reverse((when, _))) = state.timers.peek() else { return false };
            assert!(
                when.since(Instant(0)) < self.config.limit,
                "more than {:?} of virtual time passed",
                self.config.limit
            );
            state.now = state.now.max(when);
            while let Some(&Reverse((at, id))) = state.timers.peek().filter(|t| t.0.0 <= state.now) {
                debug_assert!(at <= state.now);
                state.timers.pop();
                fired.extend(state.timer_wakers.remove(&id));
            }
        }
        fired.into_iter().for_each(Waker::wake);
        true
    }

    /// Drops every task; dropping may spawn and wake, which is dropped in turn.
    fn drop_tasks(&self) {
        loop {
            let tasks = std::mem::take(&mut lock(&self.state).tasks);
            if tasks.is_empty() {
                return;
            }
            drop(tasks);
        }
    }
}

/// Ready at its time; registers anew when polled by another task.
struct Timer {
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
        let id = match this.id {
            Some(id) => id,
            None => {
                state.next_timer += 1;
                let id = state.next_timer;
                state.timers.push(Reverse((this.when, id)));
                this.id = Some(id);
                id
            }
        };
        state.timer_wakers.insert(id, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let mut state = lock(&self.sim.state);
            state.timer_wakers.remove(&id);
            // Without its timer nobody waits for that moment, and time must not stop there.
            if state.timers.peek().is_some_and(|t| t.0.1 == id) {
                state.timers.pop();
            } else if state.now < self.when {
                state.timers.retain(|t| t.0.1 != id);
            }
        }
    }
}

impl World for Sim {
    fn now(&self) -> Instant {
        lock(&self.state).now
    }

    fn wall_clock(&self) -> WallTime {
        let elapsed = self.now().since(Instant(0));
        WallTime { seconds: self.config.wall_seconds + elapsed.as_secs(), nanos: elapsed.subsec_nanos() }
    }

    fn sleep_until(&self, deadline: Instant) -> Pending<()> {
        let sim = self.me.upgrade().expect("a world in use exists");
        Box::pin(Timer { sim, when: deadline, id: None })
    }

    fn random_u64(&self) -> u64 {
        lock(&self.state).rng.next_u64()
    }

    fn cores(&self) -> usize {
        self.config.cores
    }

    fn this_core(&self) -> usize {
        0
    }

    fn spawn_on(&self, _core: usize, task: Pending<()>) {
        self.spawn_task(task);
    }

    fn compute(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Disk>> {
        if self.disks.is_cut() {
            return Err(io::Error::other("the power is gone"));
        }
        self.disks.open(path, mode)
    }

    fn list_dir(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.disks.list(dir))
    }

    fn listen(&self, _address: &Address) -> io::Result<Box<dyn Listener>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "no network is simulated"))
    }
}
