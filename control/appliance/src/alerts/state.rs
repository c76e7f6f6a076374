//! What is kept of alerts while the appliance runs: the judge, and the queues of the receivers.

use ::alerts::{Alert, Judge, Outbox, Receiver, State};
use api::Event;
use api::alerts::Thresholds;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::Instant;

/// See the module. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Desk(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    judge: Mutex<Judge>,
    thresholds: Mutex<Thresholds>,
    outbox: Outbox,
    started: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// `host`: what messages say they come from.
    pub fn new(host: String) -> Desk {
        let thresholds = Thresholds::default();
        Desk(Arc::new(Inner {
            judge: Mutex::new(Judge::new(thresholds.failed_logins)),
            thresholds: Mutex::new(thresholds),
            outbox: Outbox::new(host),
            started: world::now(),
        }))
    }

    pub fn set(&self, receivers: Vec<Receiver>, thresholds: Thresholds) {
        self.0.outbox.set(receivers);
        lock(&self.0.judge).failed_logins = thresholds.failed_logins;
        *lock(&self.0.thresholds) = thresholds;
    }

    pub fn thresholds(&self) -> Thresholds {
        lock(&self.0.thresholds).clone()
    }

    /// Queues the alert that an event is, if it is one. Does not wait.
    pub fn note(&self, event: &Event) {
        let now = world::now().since(self.0.started).as_secs();
        let alert = lock(&self.0.judge).note(event, now);
        if let Some(alert) = alert {
            self.0.outbox.offer(alert);
        }
    }

    pub fn states(&self) -> BTreeMap<String, State> {
        self.0.outbox.states()
    }

    pub async fn try_now(&self, name: &str, alert: Alert) -> Option<Result<(), String>> {
        self.0.outbox.try_now(name, alert).await
    }
}
