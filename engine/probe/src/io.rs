//! The I/O at one place: how many, how much, how long, by operation.

use crate::histogram::{Histogram, Scale};
use crate::names::{Layer, Op};
use crate::registry::Observers;
use crate::sharded::Sharded;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use world::Instant;

/// One I/O that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    pub began: Instant,
    pub latency: Duration,
    pub failed: bool,
}

/// The counters of one operation, side by side: ops, bytes, errors and nanoseconds, then the two histograms.
const OPS: usize = 0;
const BYTES: usize = 1;
const ERRORS: usize = 2;
const NANOS: usize = 3;
const LATENCY: usize = 4;
const SIZE: usize = LATENCY + Scale::LATENCY.buckets();
const CELLS: usize = SIZE + Scale::SIZE.buckets();

/// Counts the I/O of one layer at one place: a vdev, a volume, a client.
pub struct Io {
    layer: Layer,
    place: String,
    /// By operation; allocated with its first.
    ops: Vec<OnceLock<Sharded>>,
    observers: Arc<Observers>,
}

impl Io {
    pub(crate) fn new(layer: Layer, place: String, observers: Arc<Observers>) -> Io {
        let ops = Op::ALL.iter().map(|_| OnceLock::new()).collect();
        Io { layer, place, ops, observers }
    }

    pub fn layer(&self) -> Layer {
        self.layer
    }

    pub fn place(&self) -> &str {
        &self.place
    }

    pub fn record(&self, event: Event) {
        let nanos = u64::try_from(event.latency.as_nanos()).unwrap_or(u64::MAX);
        let mine = self.ops[event.op.index()].get_or_init(|| Sharded::new(CELLS)).mine();
        mine.add(OPS, 1);
        mine.add(BYTES, event.bytes);
        mine.add(NANOS, nanos);
        mine.add(LATENCY + Scale::LATENCY.bucket(nanos), 1);
        mine.add(SIZE + Scale::SIZE.bucket(event.bytes), 1);
        if event.failed {
            mine.add(ERRORS, 1);
        }
        self.observers.tell(self, &event);
    }

    pub fn snapshot(&self) -> IoSnapshot {
        IoSnapshot { ops: self.ops.iter().map(|op| op.get().map_or_else(OpSnapshot::new, read)).collect() }
    }
}

fn read(counters: &Sharded) -> OpSnapshot {
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

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Io({} {})", self.layer, self.place)
    }
}

/// What one operation came to.
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

impl OpSnapshot {
    fn new() -> OpSnapshot {
        let (latency, size) = (Histogram::new(Scale::LATENCY), Histogram::new(Scale::SIZE));
        OpSnapshot { ops: 0, bytes: 0, errors: 0, nanos: 0, latency, size }
    }

    pub fn latency_mean(&self) -> Option<Duration> {
        self.nanos.checked_div(self.ops).map(Duration::from_nanos)
    }

    fn since(&self, earlier: &OpSnapshot) -> OpSnapshot {
        OpSnapshot {
            ops: self.ops.saturating_sub(earlier.ops),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            errors: self.errors.saturating_sub(earlier.errors),
            nanos: self.nanos.saturating_sub(earlier.nanos),
            latency: self.latency.since(&earlier.latency),
            size: self.size.since(&earlier.size),
        }
    }

    fn add(&mut self, other: &OpSnapshot) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.latency.add(&other.latency);
        self.size.add(&other.size);
    }
}

/// What an [`Io`] had counted at one moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoSnapshot {
    ops: Vec<OpSnapshot>,
}

impl Default for IoSnapshot {
    fn default() -> IoSnapshot {
        IoSnapshot { ops: Op::ALL.iter().map(|_| OpSnapshot::new()).collect() }
    }
}

impl IoSnapshot {
    pub fn op(&self, op: Op) -> &OpSnapshot {
        &self.ops[op.index()]
    }

    /// Several operations as one: all reads, say.
    pub fn sum(&self, ops: impl IntoIterator<Item = Op>) -> OpSnapshot {
        let mut sum = OpSnapshot::new();
        ops.into_iter().for_each(|op| sum.add(self.op(op)));
        sum
    }

    /// All kinds of reads: `zpool iostat`'s column.
    pub fn reads(&self) -> OpSnapshot {
        self.sum([Op::SyncRead, Op::AsyncRead, Op::Scrub])
    }

    /// All kinds of writes.
    pub fn writes(&self) -> OpSnapshot {
        self.sum([Op::SyncWrite, Op::AsyncWrite, Op::Rebuild])
    }

    pub fn since(&self, earlier: &IoSnapshot) -> IoSnapshot {
        IoSnapshot { ops: self.ops.iter().zip(&earlier.ops).map(|(a, b)| a.since(b)).collect() }
    }

    /// Adds another place's counts, as a mirror is the sum of its children.
    pub fn add(&mut self, other: &IoSnapshot) {
        self.ops.iter_mut().zip(&other.ops).for_each(|(a, b)| a.add(b));
    }
}
