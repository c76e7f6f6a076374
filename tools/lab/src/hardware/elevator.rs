//! The host's elevator: one that anticipates (CFQ of Linux 2.6.18), and none.
//!
//! ```text
//!   a process owns the device for a slice ─▶ all its requests go there, and no others
//!      └─ nothing of it left? idle: wait a little for its next request, for others' would seek
//!             └─ slice over, or idle in vain ─▶ the next process
//! ```
//!
//! A process whose requests are far apart is seeky: it is waited for shorter, and not at all once the device was seen to
//! queue, which takes more than four requests at the device at once. A process that keeps fewer under way never shows that.

use super::spindle::{instant, seconds};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::sync::oneshot;

/// What the elevator goes by, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    pub slice: f64,
    /// Of a seeky process.
    pub idle: f64,
    /// So many at the device show that it queues; more than this, no seeky process is waited for.
    pub shows_queueing: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Elevator {
    /// None: every request goes to the device at once.
    rules: Option<Rules>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<usize, VecDeque<oneshot::Sender<()>>>,
    at_device: usize,
    of_owner: usize,
    owner: Option<usize>,
    slice_end: f64,
    /// Until then the device is kept free for the owner; a number tells one wait from the next.
    idle: Option<u64>,
    idles: u64,
    /// The process that owned it last.
    last: usize,
    device_queues: bool,
}

impl Elevator {
    pub fn new(rules: Option<Rules>) -> Arc<Elevator> {
        Arc::new(Elevator { rules, state: Mutex::default() })
    }

    /// Does one request of a process when its turn comes.
    pub async fn submit<T>(self: &Arc<Elevator>, process: usize, request: impl Future<Output = T>) -> T {
        let Some(rules) = self.rules else { return request.await };
        let (turn, its_turn) = oneshot::channel();
        self.lock().waiting.entry(process).or_default().push_back(turn);
        self.dispatch(&rules, Some(process));
        let _ = its_turn.await;
        let answer = request.await;
        {
            let mut state = self.lock();
            state.at_device -= 1;
            if state.owner == Some(process) {
                state.of_owner -= 1;
            }
        }
        self.dispatch(&rules, None);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dispatch(self: &Arc<Elevator>, rules: &Rules, arrived: Option<usize>) {
        let now = seconds(world::now());
        let mut state = self.lock();
        if arrived.is_some() && arrived == state.owner {
            state.idle = None;
        }
        loop {
            let has_work =
                |state: &State, process| state.waiting.get(&process).is_some_and(|queue| !queue.is_empty());
            match state.owner {
                Some(owner) if now < state.slice_end && has_work(&state, owner) => {
                    let next = state.waiting.get_mut(&owner).and_then(VecDeque::pop_front);
                    state.at_device += 1;
                    state.of_owner += 1;
                    state.device_queues |= state.at_device > rules.shows_queueing;
                    if let Some(turn) = next {
                        // A waiter that has gone gives its place back as it is dropped.
                        let _ = turn.send(());
                    }
                }
                Some(owner) if now < state.slice_end && !has_work(&state, owner) => {
                    if state.of_owner > 0 && !state.device_queues {
                        return;
                    }
                    if !state.device_queues && state.idle.is_none() {
                        state.idles += 1;
                        state.idle = Some(state.idles);
                        self.clone().wait_idle(*rules, state.idles, (now + rules.idle).min(state.slice_end));
                        return;
                    }
                    if state.idle.is_some() && !state.device_queues {
                        return;
                    }
                    state.owner = None;
                }
                Some(_) => {
                    // The slice is over: what is at the device is waited for.
                    if state.at_device > 0 && !state.device_queues {
                        return;
                    }
                    state.owner = None;
                }
                None => {
                    let Some(next) = state.next_process() else { return };
                    state.owner = Some(next);
                    state.last = next;
                    state.of_owner = 0;
                    state.slice_end = now + rules.slice;
                    state.idle = None;
                }
            }
        }
    }

    fn wait_idle(self: Arc<Elevator>, rules: Rules, number: u64, until: f64) {
        world::spawn(async move {
            world::sleep_until(instant(until)).await;
            let is_over = {
                let mut state = self.lock();
                let is_over = state.idle == Some(number);
                if is_over {
                    (state.idle, state.owner) = (None, None);
                }
                is_over
            };
            if is_over {
                self.dispatch(&rules, None);
            }
        });
    }
}

impl State {
    /// The next in turn, after the last one, that has something to do.
    fn next_process(&self) -> Option<usize> {
        let after = self.waiting.range(self.last + 1..).chain(self.waiting.range(..=self.last));
        after.filter(|(_, queue)| !queue.is_empty()).map(|(process, _)| *process).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const RULES: Rules = Rules { slice: 0.1, idle: 0.002, shows_queueing: 4 };

    /// Requests per second, and their mean time, of `processes` that each keep `depth` requests of 0.3 ms under way.
    fn load(rules: Option<Rules>, processes: usize, depth: usize) -> (f64, f64) {
        sim::run(1, sim::Config { shuffle: false, ..Default::default() }, async move {
            let elevator = Elevator::new(rules);
            let loops = (0..processes * depth).map(|n| {
                let elevator = elevator.clone();
                async move {
                    let (mut count, mut sum) = (0u64, 0.0);
                    while world::now() < world::Instant(10_000_000_000) {
                        let began = world::now();
                        let request = async { world::sleep(Duration::from_micros(300)).await };
                        elevator.submit(n % processes, request).await;
                        count += 1;
                        sum += world::now().since(began).as_secs_f64();
                    }
                    (count, sum)
                }
            });
            let all = futures_util::future::join_all(loops).await;
            let count = all.iter().map(|one| one.0).sum::<u64>() as f64;
            (count / 10.0, all.iter().map(|one| one.1).sum::<f64>() / count)
        })
    }

    #[test]
    fn one_process_at_a_time_gets_the_device_until_it_is_seen_to_queue() {
        let (rate, time) = load(Some(RULES), 7, 3);
        assert!((9_000.0..10_100.0).contains(&rate) && (0.0019..0.0024).contains(&time), "{rate} {time}");
        let (rate, time) = load(None, 7, 3);
        assert!((69_000.0..70_100.0).contains(&rate) && time < 0.00031, "{rate} {time}");
        // A single process with many under way shows that the device queues.
        let (rate, _) = load(Some(RULES), 2, 16);
        assert!(rate > 90_000.0, "{rate}");
    }

    #[test]
    fn a_process_that_falls_silent_is_given_up_after_a_little() {
        let took = sim::run(1, sim::Config { shuffle: false, ..Default::default() }, async {
            let elevator = Elevator::new(Some(RULES));
            let request = || async { world::sleep(Duration::from_micros(300)).await };
            elevator.submit(1, request()).await;
            let began = world::now();
            elevator.submit(2, request()).await;
            world::now().since(began)
        });
        assert!(took > Duration::from_micros(2200) && took < Duration::from_micros(2500), "{took:?}");
    }
}
