//! Where the time of a request went, told: an event for each stage that took some of it.
//!
//! ```text
//!   Course (world)   queue 2 ms, device 5 ms, of 8 ms
//!     └─ tell ──▶ event(kind = queue, spent 2 ms), event(device, 5 ms), event(work, 1 ms)      each of latency 8 ms
//! ```
//!
//! Each has what the request has otherwise, so that "of reads over 10 ms, by stage" is a filter and a breakdown, and all
//! stages together are the time of the requests.

use crate::event::Event;
use crate::hub::Probe;
use std::time::Duration;
use world::Instant;
use world::stages::{Course, Open, Stage};

/// What is no wait: work for the request, and work for others that the loop does first.
pub const WORK: &str = "work";

/// A request that is timed, and what it waits in above the engine, if anything. As large as a pointer, so that requests that
/// are not timed have little room for it.
#[derive(Debug)]
pub struct Timed(Box<(Course, Option<Open>)>);

impl Timed {
    /// A request that began at `began`, if `probe` is asked for stages.
    pub fn begin(probe: &Probe, began: Instant) -> Option<Timed> {
        probe.is_open().then(|| Timed(Box::new((Course::of_request(began), None))))
    }

    pub fn course(&self) -> &Course {
        &self.0.0
    }

    /// It waits in `stage` from now on, whatever it waited in before.
    pub fn waits(&mut self, stage: Stage) {
        self.0.1 = Some(self.0.0.open(stage));
    }

    /// It waits in nothing that is known here.
    pub fn works(&mut self) {
        self.0.1 = None;
    }

    /// Tells what the stages took of `event`, which ended at `ended`.
    pub fn tell(self, probe: &Probe, event: Event<'_>, ended: Instant) {
        let mut left = event.latency;
        for (stage, spent) in self.0.0.spent(ended) {
            let spent = spent.min(left);
            left -= spent;
            probe.tell(|| Event { kind: stage.name(), spent, ..event });
        }
        if left > Duration::ZERO {
            probe.tell(|| Event { kind: WORK, spent: left, ..event });
        }
    }
}

/// As [`Timed::tell`], of a request that waited for nothing.
pub fn tell_work(probe: &Probe, event: Event<'_>) {
    probe.tell(|| Event { kind: WORK, spent: event.latency, ..event });
}
