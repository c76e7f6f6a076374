//! The exporter: figures on their way to a collector.
//!
//! ```text
//!   offer ─▶ [ oldest … newest ]  QUEUE_MAX, QUEUE_BYTES: a full queue gives up its oldest
//!              └▶ post ── 200 to 299: taken ─▶ the next
//!                   ├──── 429, 502, 503, 504, no answer: waits, twice as long each time, and again
//!                   │                                    (as long as the collector says, if it says so)
//!                   └──── any other answer: this one is given up, the next is tried
//! ```
//!
//! A failure is told once in the log, until it is another or something was taken; each is counted.

use alerts::post::{Answer, Url};
use api::Secret;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::sync::oneshot;

/// An hour, where figures are sent each minute.
const QUEUE_MAX: usize = 60;
const QUEUE_BYTES: usize = 16 << 20;
/// Between a failure and the next try, at first.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(300);
/// Of an answer, as much as says what of it was not taken.
const ANSWER_MAX: usize = 16 << 10;
/// Where a collector takes figures, of an address that says no path.
const PATH: &str = "/v1/metrics";

/// Where figures are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub endpoint: String,
    /// `name=value`, with commas between: a token, as collectors ask for it.
    pub headers: Option<Secret>,
}

/// What has become of them since the program began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub sent: u64,
    /// Tries that failed.
    pub failed: u64,
    /// Given up: the queue was full, or the collector does not want them.
    pub dropped: u64,
    pub waiting: u64,
    /// Why the last try failed.
    pub problem: Option<String>,
}

impl Target {
    /// # Errors
    /// What is wrong with it; nothing is asked of the network. No header's value is told.
    pub fn check(&self) -> Result<(), String> {
        self.url().and(self.header_list()).map(drop)
    }

    fn url(&self) -> Result<Url, String> {
        Url::parse(&self.endpoint, "a collector").map(|url| url.or_path(PATH))
    }

    fn header_list(&self) -> Result<Vec<(String, String)>, String> {
        let text = self.headers.as_ref().map_or("", |headers| headers.reveal());
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let is_own = |name: &str| {
            ["host", "content-length", "content-type", "connection", "transfer-encoding"]
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own))
        };
        let one = |pair: &str| {
            let (name, value) =
                pair.split_once('=').ok_or("a header is name=value, with commas between several")?;
            let (name, value) = (name.trim(), value.trim());
            if !is_name(name) || is_own(name) {
                return Err(format!("'{name}' is no name of a header that can be set"));
            }
            if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
                return Err(format!("the value of the header '{name}' is not of plain characters"));
            }
            Ok((name.to_string(), value.to_string()))
        };
        text.split(',').filter(|pair| !pair.trim().is_empty()).map(one).collect()
    }

    /// Posts one document.
    fn post(&self, body: &str) -> Result<Answer, String> {
        let url = self.url()?;
        url.post(&self.header_list()?, body.as_bytes(), ANSWER_MAX)
            .map_err(|e| format!("{}: {e}", url.place()))
    }
}

/// See the module. Clones are the same. Dropped, its thread ends.
#[derive(Clone)]
pub struct Exporter(Arc<Handle>);

struct Handle(Arc<Lane>);

struct Lane {
    inside: Mutex<Inside>,
    wake: Condvar,
    first: Duration,
}

#[derive(Default)]
struct Inside {
    target: Option<Target>,
    queue: VecDeque<Arc<str>>,
    state: State,
    /// Counts changes of the target.
    changes: u64,
    has_thread: bool,
    is_ended: bool,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exporter({:?})", self.state())
    }
}

impl Default for Exporter {
    fn default() -> Exporter {
        Exporter::trying_again_after(FIRST)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().is_ended = true;
        self.0.wake.notify_all();
    }
}

/// What a collector's answer means.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Taken,
    /// Taken, but not all of it.
    Partly(String),
    /// Again later; after so long, if it said so.
    Later(String, Option<Duration>),
    Never(String),
}

impl Outcome {
    fn of(answer: Result<Answer, String>, place: &str) -> Outcome {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Outcome::Later(why, None),
        };
        let says = || format!("{place}: it answers {}", answer.status);
        match answer.status {
            200..=299 => match rejected(&answer.body) {
                0 => Outcome::Taken,
                count => Outcome::Partly(format!("{place}: it did not take {count} of the figures")),
            },
            429 | 502 | 503 | 504 => {
                let after = answer.retry_after.map(|seconds| Duration::from_secs(seconds).min(LAST));
                Outcome::Later(says(), after)
            }
            _ => Outcome::Never(says()),
        }
    }
}

/// How many figures the collector did not take. Of an answer that is none, none is known.
fn rejected(body: &[u8]) -> u64 {
    let told: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let count = &told["partialSuccess"]["rejectedDataPoints"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

impl Exporter {
    fn trying_again_after(first: Duration) -> Exporter {
        let inside = Mutex::new(Inside::default());
        Exporter(Arc::new(Handle(Arc::new(Lane { inside, wake: Condvar::new(), first }))))
    }

    /// Where they are sent from now on: nowhere, and what waits is given up; or there, at once.
    pub fn set(&self, target: Option<Target>) {
        let lane = &self.0.0;
        let mut inside = lane.lock();
        if inside.target == target {
            return;
        }
        if target.is_none() {
            inside.state.dropped += inside.queue.len() as u64;
            inside.queue.clear();
            inside.state.problem = None;
        }
        inside.target = target;
        inside.changes += 1;
        lane.wake.notify_all();
        if inside.target.is_some() && !inside.has_thread {
            let own = lane.clone();
            let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || own.run());
            match thread {
                Ok(_) => inside.has_thread = true,
                Err(e) => inside.state.problem = Some(format!("no thread can be started: {e}")),
            }
        }
    }

    /// Queues a document. Never waits for the collector.
    pub fn offer(&self, document: String) {
        let lane = &self.0.0;
        let mut inside = lane.lock();
        if inside.target.is_none() {
            return;
        }
        inside.queue.push_back(document.into());
        let is_full = |queue: &VecDeque<Arc<str>>| {
            queue.len() > QUEUE_MAX || queue.iter().map(|own| own.len()).sum::<usize>() > QUEUE_BYTES
        };
        while is_full(&inside.queue) {
            inside.queue.pop_front();
            inside.state.dropped += 1;
        }
        lane.wake.notify_all();
    }

    pub fn state(&self) -> State {
        let inside = self.0.0.lock();
        State { waiting: inside.queue.len() as u64, ..inside.state.clone() }
    }

    /// Sends a document now, past the queue, and waits for what comes of it.
    ///
    /// # Errors
    /// It was not taken, or figures are sent nowhere; a sentence.
    pub async fn try_now(&self, document: String) -> Result<(), String> {
        let Some(target) = self.0.0.lock().target.clone() else {
            return Err("figures are sent nowhere: set an endpoint, and enabled=true".into());
        };
        let (done, wait) = oneshot::channel();
        let thread = std::thread::Builder::new().name("metric".into()).spawn(move || {
            let _ = done.send(match outcome(&target, &document) {
                Outcome::Taken => Ok(()),
                Outcome::Partly(why) | Outcome::Later(why, _) | Outcome::Never(why) => Err(why),
            });
        });
        match thread {
            Ok(_) => wait.await.unwrap_or_else(|_| Err("it was given up".into())),
            Err(e) => Err(format!("no thread can be started: {e}")),
        }
    }
}

fn outcome(target: &Target, document: &str) -> Outcome {
    let place = target.url().map_or_else(|_| String::new(), |url| url.place());
    Outcome::of(target.post(document), &place)
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends until it is ended.
    fn run(&self) {
        let mut delay = self.first;
        let mut inside = self.lock();
        loop {
            if inside.is_ended {
                return;
            }
            let (Some(target), Some(document)) = (inside.target.clone(), inside.queue.front().cloned())
            else {
                inside = self.wake.wait(inside).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let changes = inside.changes;
            drop(inside);
            let outcome = outcome(&target, &document);
            inside = self.lock();
            // While it was under way the queue may have given it up.
            let is_there = inside.queue.front().is_some_and(|front| Arc::ptr_eq(front, &document));
            if is_there && !matches!(outcome, Outcome::Later(..)) {
                inside.queue.pop_front();
            }
            match outcome {
                Outcome::Taken => {
                    inside.state.sent += 1;
                    inside.state.problem = None;
                    delay = self.first;
                }
                Outcome::Partly(why) => {
                    inside.state.sent += 1;
                    inside.failed(why);
                    delay = self.first;
                }
                Outcome::Never(why) => {
                    inside.state.dropped += 1;
                    inside.failed(why);
                    delay = self.first;
                }
                Outcome::Later(why, after) => {
                    inside.failed(why);
                    let same = |inside: &mut Inside| !inside.is_ended && inside.changes == changes;
                    let pause = after.unwrap_or(delay);
                    let waited = self.wake.wait_timeout_while(inside, pause, same);
                    inside = waited.unwrap_or_else(PoisonError::into_inner).0;
                    delay = (delay * 2).min(LAST);
                }
            }
        }
    }
}

impl Inside {
    fn failed(&mut self, why: String) {
        self.state.failed += 1;
        if self.state.problem.as_ref() != Some(&why) {
            tracing::warn!("figures cannot be sent to the collector at {why}");
        }
        self.state.problem = Some(why);
    }
}

#[cfg(test)]
mod tests;
