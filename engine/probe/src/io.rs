//! The I/O of one client: how much, how long, always counted; and told to what counts more.

use crate::event::Event;
use crate::histogram::{Histogram, Scale};
use crate::hub::Probe;
use crate::names::Op;
use crate::sharded::Sharded;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

/// The counters of one direction, side by side: ops, bytes, errors and nanoseconds, then the two histograms.
const OPS: usize = 0;
const BYTES: usize = 1;
const ERRORS: usize = 2;
const NANOS: usize = 3;
const LATENCY: usize = 4;
const SIZE: usize = LATENCY + Scale::LATENCY.buckets();
const CELLS: usize = SIZE + Scale::SIZE.buckets();

/// Counts the I/O of one client, and tells it to open statistics.
pub struct Io {
    probe: Probe,
    /// Reads, writes, all else; allocated with its first.
    directions: [OnceLock<Sharded>; 3],
}

impl Io {
    pub fn new(probe: Probe) -> Io {
        Io { probe, directions: [const { OnceLock::new() }; 3] }
    }

    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Counts an event that is told elsewhere, at a place of the same family.
    pub fn count(&self, event: &Event<'_>) {
        let nanos = event.nanos();
        let mine = self.directions[direction(event.op)].get_or_init(|| Sharded::new(CELLS)).mine();
        mine.add(OPS, 1);
        mine.add(BYTES, event.bytes);
        mine.add(NANOS, nanos);
        mine.add(LATENCY + Scale::LATENCY.bucket(nanos), 1);
        mine.add(SIZE + Scale::SIZE.bucket(event.bytes), 1);
        if event.failed {
            mine.add(ERRORS, 1);
        }
    }

    pub fn record(&self, event: Event<'_>) {
        self.count(&event);
        self.probe.tell(|| event);
    }

    pub fn snapshot(&self) -> IoSnapshot {
        let [read, write, other] = self
            .directions
            .each_ref()
            .map(|counters| counters.get().map_or_else(OpSnapshot::default, OpSnapshot::of));
        IoSnapshot { read, write, other }
    }
}

fn direction(op: Op) -> usize {
    match op {
        Op::Read | Op::Prefetch => 0,
        Op::Write | Op::WriteZeroes => 1,
        _ => 2,
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Io({:?})", self.probe)
    }
}

/// What one direction came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpSnapshot {
    pub ops: u64,
    pub bytes: u64,
    pub errors: u64,
    /// All latencies together.
    pub nanos: u64,
    pub latency: Histogram,
    pub size: Histogram,
}

impl Default for OpSnapshot {
    fn default() -> OpSnapshot {
        let (latency, size) = (Histogram::new(Scale::LATENCY), Histogram::new(Scale::SIZE));
        OpSnapshot { ops: 0, bytes: 0, errors: 0, nanos: 0, latency, size }
    }
}

impl OpSnapshot {
    fn of(counters: &Sharded) -> OpSnapshot {
        let cells = counters.sum();
        OpSnapshot {
            ops: cells[OPS],
            bytes: cells[BYTES],
            errors: cells[ERRORS],
            nanos: cells[NANOS],
            latency: Histogram { scale: Scale::LATENCY, counts: cells[LATENCY..SIZE].to_vec() },
            size: Histogram { scale: Scale::SIZE, counts: cells[SIZE..].to_vec() },
        }
    }

    pub fn latency_mean(&self) -> Option<Duration> {
        self.nanos.checked_div(self.ops).map(Duration::from_nanos)
    }
}

/// What an [`Io`] had counted at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoSnapshot {
    pub read: OpSnapshot,
    pub write: OpSnapshot,
    /// Flushes and trims.
    pub other: OpSnapshot,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Hub};

    #[test]
    fn what_is_recorded_is_what_a_snapshot_shows_and_what_is_told() {
        let hub = Hub::new();
        let io = Io::new(hub.probe(Family::Nbd, &[]));
        let opened = hub.open(&"nbd.bytes".parse().unwrap()).unwrap();
        let event = |op, bytes, micros| Event {
            op,
            bytes,
            latency: Duration::from_micros(micros),
            ..Event::default()
        };
        io.record(event(Op::Read, 4096, 100));
        io.record(event(Op::Prefetch, 131_072, 900));
        io.record(Event { failed: true, ..event(Op::Write, 512, 10) });
        let counts = io.snapshot();
        assert_eq!((counts.read.ops, counts.read.bytes, counts.read.errors), (2, 135_168, 0));
        assert_eq!(counts.read.latency_mean(), Some(Duration::from_micros(500)));
        assert_eq!((counts.write.ops, counts.write.errors, counts.write.size.total()), (1, 1, 1));
        assert_eq!((counts.other.ops, counts.other.latency_mean()), (0, None));
        assert_eq!(opened.take().value, 135_168 + 512);
    }
}
