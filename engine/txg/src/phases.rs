//! How long txgs are in each phase, and how long writers are held back, for statistics.
//!
//! ```text
//!   open ──close──▶ quiescing ──last hold──▶ syncing ──done──▶ on disk
//!   └──── "open" ───┘└───── "quiesce" ─────┘└── "sync" ──┘
//! ```

use crate::txgs::Txgs;
use probe::{Breakdown, Event, Family, Hub, Mark, Op, Probe, Reading, Registration};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use world::Instant;

/// Where it is told.
#[derive(Default)]
pub(crate) struct Told(OnceLock<Probes>);

struct Probes {
    phases: Probe,
    throttle: Probe,
}

/// When the phases began that are not over.
#[derive(Default)]
pub(crate) struct Phases {
    opened: Option<Instant>,
    closed: Option<Instant>,
    quiet: Option<Instant>,
}

impl Phases {
    /// The open txg is closed, and the next one open.
    pub fn close(&mut self, told: &Told, dirty: u64) {
        let now = world::now();
        told.phase("open", self.opened.replace(now), now, dirty);
        self.closed = Some(now);
    }

    /// Its last hold is gone.
    pub fn quiesce(&mut self, told: &Told, dirty: u64) {
        let now = world::now();
        told.phase("quiesce", self.closed.take(), now, dirty);
        self.quiet = Some(now);
    }

    /// It is on disk.
    pub fn sync(&mut self, told: &Told, dirty: u64) {
        told.phase("sync", self.quiet.take(), world::now(), dirty);
    }
}

impl Told {
    /// One that began before this pool was open is not told.
    fn phase(&self, kind: &'static str, began: Option<Instant>, now: Instant, bytes: u64) {
        if let (Some(probes), Some(began)) = (self.0.get(), began) {
            let latency = now.since(began);
            probes.phases.tell(|| Event { op: Op::Phase, kind, bytes, latency, ..Event::default() });
        }
    }

    pub fn held_back(&self, latency: Duration) {
        if let Some(probes) = self.0.get() {
            probes.throttle.tell(|| Event { op: Op::Delay, latency, ..Event::default() });
        }
    }
}

impl Txgs {
    /// Tells phases and delays to `hub`, and has it ask what is dirty until what is returned is dropped.
    pub fn tell_to(&self, hub: &Hub, pool: &str) -> Registration {
        let labels = [(Breakdown::Pool, pool)];
        let (phases, throttle) = (hub.probe(Family::Txg, &labels), hub.probe(Family::Throttle, &labels));
        let _ = self.told().0.set(Probes { phases, throttle });
        let (txgs, pool) = (self.downgrade(), hub.label(pool));
        let dirty = move || {
            let value = txgs.upgrade().map_or(0, |txgs| txgs.dirty_bytes());
            vec![Reading { marks: vec![(Breakdown::Pool, Mark::from(&pool))], value }]
        };
        hub.readings("txg.dirty", Arc::new(dirty))
    }
}
