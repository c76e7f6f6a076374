//! The queues: one for each receiver, with a thread that sends what is in it.
//!
//! ```text
//!   offer ─▶ [ oldest … newest ]  at most QUEUE_MAX; a full queue gives up its oldest
//!              └▶ send ── sent: gone ─▶ the next
//!                   └──── failed: waits 1, 2, 4 … 300 s, and again; older than AGE_MAX: given up
//! ```
//!
//! A receiver that is changed keeps what waits, and is tried at once. One that is removed ends with its thread, which may
//! still wait for an answer as long as that takes.

use crate::judge::Alert;
use crate::send;
use api::Secret;
use api::alerts::{Handler, Severity};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use world::sync::oneshot;

/// Alerts that wait for one receiver: some hours of a machine that is in trouble.
const QUEUE_MAX: usize = 256;
/// Between a failure and the next try, at first.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(300);
/// What could not be sent for so long is given up: it is no news any more.
const AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Where alerts are sent, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub name: String,
    pub handler: Handler,
    pub to: String,
    /// Of mail.
    pub server: String,
    pub from: String,
    pub user: String,
    pub secret: Option<Secret>,
    /// The least that is sent.
    pub severity: Severity,
    pub enabled: bool,
}

/// What has become of a receiver's alerts since the program began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub sent: u64,
    pub dropped: u64,
    pub waiting: u64,
    /// Why the last try failed.
    pub problem: Option<String>,
}

/// See the module. Clones are the same.
#[derive(Clone)]
pub struct Outbox(Arc<Inner>);

struct Inner {
    host: String,
    first: Duration,
    lanes: Mutex<BTreeMap<String, Arc<Lane>>>,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbox({:?})", self.states())
    }
}

struct Lane {
    state: Mutex<Inside>,
    wake: Condvar,
}

struct Inside {
    receiver: Receiver,
    queue: VecDeque<(Instant, Arc<Alert>)>,
    state: State,
    /// Counts changes of the receiver.
    changes: u64,
    is_ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outbox {
    /// `host`: what messages say they come from.
    pub fn new(host: String) -> Outbox {
        Outbox::trying_again_after(host, FIRST)
    }

    fn trying_again_after(host: String, first: Duration) -> Outbox {
        Outbox(Arc::new(Inner { host, first, lanes: Mutex::default() }))
    }

    /// These are the receivers from now on.
    pub fn set(&self, receivers: Vec<Receiver>) {
        let mut lanes = lock(&self.0.lanes);
        lanes.retain(|name, lane| {
            let stays = receivers.iter().any(|receiver| receiver.name == *name);
            if !stays {
                lock(&lane.state).is_ended = true;
                lane.wake.notify_all();
            }
            stays
        });
        for receiver in receivers {
            if let Some(lane) = lanes.get(&receiver.name) {
                let mut inside = lock(&lane.state);
                if inside.receiver != receiver {
                    inside.receiver = receiver;
                    inside.changes += 1;
                    lane.wake.notify_all();
                }
                continue;
            }
            let name = receiver.name.clone();
            let inside = Inside {
                receiver,
                queue: VecDeque::new(),
                state: State::default(),
                changes: 0,
                is_ended: false,
            };
            let lane = Arc::new(Lane { state: Mutex::new(inside), wake: Condvar::new() });
            let (own, outbox) = (lane.clone(), self.0.clone());
            let thread = std::thread::Builder::new().name("alerts".into()).spawn(move || own.run(&outbox));
            if let Err(e) = thread {
                lock(&lane.state).state.problem = Some(format!("no thread can be started: {e}"));
            }
            lanes.insert(name, lane);
        }
    }

    /// Queues it for each receiver that wants it. Never waits for a receiver.
    pub fn offer(&self, alert: Alert) {
        let alert = Arc::new(alert);
        for lane in lock(&self.0.lanes).values() {
            let mut inside = lock(&lane.state);
            if !inside.receiver.enabled || alert.severity < inside.receiver.severity {
                continue;
            }
            if inside.queue.len() >= QUEUE_MAX {
                inside.queue.pop_front();
                inside.state.dropped += 1;
            }
            inside.queue.push_back((Instant::now(), alert.clone()));
            lane.wake.notify_all();
        }
    }

    pub fn states(&self) -> BTreeMap<String, State> {
        let told = |lane: &Lane| {
            let inside = lock(&lane.state);
            State { waiting: inside.queue.len() as u64, ..inside.state.clone() }
        };
        lock(&self.0.lanes).iter().map(|(name, lane)| (name.clone(), told(lane))).collect()
    }

    /// Sends an alert to one now, past its queue, and waits for what comes of it. `None`: there is no such receiver.
    pub async fn try_now(&self, name: &str, alert: Alert) -> Option<Result<(), String>> {
        let receiver = lock(&lock(&self.0.lanes).get(name)?.state).receiver.clone();
        let (done, wait) = oneshot::channel();
        let own = self.0.clone();
        let thread = std::thread::Builder::new().name("alert".into()).spawn(move || {
            let _ = done.send(send(&receiver, &own.host, &alert));
        });
        Some(match thread {
            Ok(_) => wait.await.unwrap_or_else(|_| Err("it was given up".into())),
            Err(e) => Err(format!("no thread can be started: {e}")),
        })
    }
}

impl Lane {
    /// Sends until it is ended.
    fn run(&self, outbox: &Inner) {
        let mut delay = outbox.first;
        let mut inside = lock(&self.state);
        loop {
            if inside.is_ended {
                return;
            }
            let Some((since, alert)) = inside.queue.front().cloned() else {
                inside = self.wake.wait(inside).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (receiver, changes) = (inside.receiver.clone(), inside.changes);
            drop(inside);
            let outcome = send(&receiver, &outbox.host, &alert);
            inside = lock(&self.state);
            // While it was under way the queue may have given it up.
            let is_there = inside.queue.front().is_some_and(|(_, front)| Arc::ptr_eq(front, &alert));
            match outcome {
                Ok(()) => {
                    if is_there {
                        inside.queue.pop_front();
                    }
                    inside.state.sent += 1;
                    inside.state.problem = None;
                    delay = outbox.first;
                }
                Err(why) => {
                    if inside.state.problem.as_ref() != Some(&why) {
                        tracing::warn!("alerts to '{}' cannot be sent: {why}", receiver.name);
                    }
                    inside.state.problem = Some(why);
                    if is_there && since.elapsed() > AGE_MAX {
                        inside.queue.pop_front();
                        inside.state.dropped += 1;
                    }
                    inside = self.pause(inside, delay, changes);
                    delay = (delay * 2).min(LAST);
                }
            }
        }
    }

    /// Waits for the time to pass, or for the receiver to be changed or ended.
    fn pause<'a>(
        &self,
        inside: MutexGuard<'a, Inside>,
        delay: Duration,
        changes: u64,
    ) -> MutexGuard<'a, Inside> {
        let same = |inside: &mut Inside| !inside.is_ended && inside.changes == changes;
        self.wake.wait_timeout_while(inside, delay, same).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
pub(crate) mod tests;
