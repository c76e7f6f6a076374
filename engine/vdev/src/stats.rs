//! What each leaf was asked to do, and how long it took: what `zpool iostat -v -l -q -r -w` shows.
//!
//! ```text
//!   asked ──────── queue wait ──────── started ──── disk wait ──── completed
//!     └────────────────────── total wait ─────────────────────────────┘
//! ```
//!
//! The same is told to open statistics: the wait of each operation in the queue, and each operation at the device.
//!
//! Histograms count by powers of two: bucket n holds what lies in `2^n ..= 2^(n+1) - 1`, nanoseconds or bytes.

use crate::Priority;
use crate::queue::Outcome;
use crate::queue::schedule::{Direction, Shape};
use probe::{Breakdown, Event, Family, Hub, Op, Probe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use world::Instant;

/// 2^36 ns is over a minute.
pub const LATENCY_BUCKETS: usize = 37;
/// 2^24 bytes is the largest block.
pub const SIZE_BUCKETS: usize = 25;

/// A flush passes by the queue; its class is its own.
const FLUSH: &str = "flush";

type Histogram<const N: usize> = [AtomicU64; N];

/// The counters of one leaf.
#[derive(Debug)]
pub struct LeafStats {
    kinds: [KindCounters; 3],
    classes: [ClassCounters; Priority::COUNT],
    flushes: AtomicU64,
    flush_ns: AtomicU64,
    flush_wait: Histogram<LATENCY_BUCKETS>,
    flushes_asked: AtomicU64,
    /// Bytes written again because they were bad.
    healed: AtomicU64,
    queue: Probe,
    disk: Probe,
}

#[derive(Debug)]
struct KindCounters {
    ops: AtomicU64,
    bytes: AtomicU64,
    total_wait: Histogram<LATENCY_BUCKETS>,
    disk_wait: Histogram<LATENCY_BUCKETS>,
    total_ns: AtomicU64,
    disk_ns: AtomicU64,
}

#[derive(Debug)]
struct ClassCounters {
    ops: AtomicU64,
    queue_wait: Histogram<LATENCY_BUCKETS>,
    queue_ns: AtomicU64,
    individual: Histogram<SIZE_BUCKETS>,
    aggregated: Histogram<SIZE_BUCKETS>,
}

impl LeafStats {
    pub(crate) fn new(hub: &Hub, pool: &str, disk: &str) -> LeafStats {
        let labels = [(Breakdown::Pool, pool), (Breakdown::Disk, disk)];
        LeafStats {
            kinds: std::array::from_fn(|_| KindCounters {
                ops: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                total_wait: histogram(),
                disk_wait: histogram(),
                total_ns: AtomicU64::new(0),
                disk_ns: AtomicU64::new(0),
            }),
            classes: std::array::from_fn(|_| ClassCounters {
                ops: AtomicU64::new(0),
                queue_wait: histogram(),
                queue_ns: AtomicU64::new(0),
                individual: histogram(),
                aggregated: histogram(),
            }),
            flushes: AtomicU64::new(0),
            flush_ns: AtomicU64::new(0),
            flush_wait: histogram(),
            flushes_asked: AtomicU64::new(0),
            healed: AtomicU64::new(0),
            queue: hub.probe(Family::Queue, &labels),
            disk: hub.probe(Family::Disk, &labels),
        }
    }

    /// Answers how long the device took.
    pub(crate) fn completed(&self, shape: &Shape, asked: Instant, outcome: &Outcome) -> Duration {
        let (total, disk) = (outcome.ended.since(asked), outcome.ended.since(outcome.started));
        let kind = &self.kinds[kind_of(shape.direction)];
        add(&kind.ops, 1);
        add(&kind.bytes, shape.len);
        count_time(&kind.total_wait, &kind.total_ns, total);
        count_time(&kind.disk_wait, &kind.disk_ns, disk);

        let class = &self.classes[shape.class.index()];
        add(&class.ops, 1);
        count_time(&class.queue_wait, &class.queue_ns, outcome.started.since(asked));
        match outcome.batch {
            None => count(&class.individual, shape.len),
            // A batch counts once, not for each of its parts.
            Some(batch) if outcome.leads => count(&class.aggregated, batch),
            Some(_) => {}
        }
        self.tell(shape, asked, outcome, disk);
        disk
    }

    fn tell(&self, shape: &Shape, asked: Instant, outcome: &Outcome, disk: Duration) {
        let (op, kind) = (op_of(shape.direction), shape.class.name());
        let failed = outcome.result.is_err();
        let &Shape { offset, len: bytes, .. } = shape;
        let queued = || {
            let latency = outcome.started.since(asked);
            Event { op, kind, offset, bytes, latency, failed, ..Event::default() }
        };
        self.queue.tell(queued);
        if outcome.leads {
            let bytes = outcome.batch.unwrap_or(bytes);
            self.disk.tell(|| Event { bytes, latency: disk, ..queued() });
        }
    }

    /// A caller wants to be sure; most often that costs no flush of its own.
    pub(crate) fn flush_asked(&self) {
        add(&self.flushes_asked, 1);
    }

    pub(crate) fn flushed(&self, began: Instant, failed: bool) {
        let latency = world::now().since(began);
        add(&self.flushes, 1);
        count_time(&self.flush_wait, &self.flush_ns, latency);
        self.disk.tell(|| Event { op: Op::Flush, kind: FLUSH, latency, failed, ..Event::default() });
    }

    pub(crate) fn healed(&self, bytes: u64) {
        add(&self.healed, bytes);
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            read: self.kind(0),
            write: self.kind(1),
            trim: self.kind(2),
            classes: std::array::from_fn(|i| {
                let class = &self.classes[i];
                ClassSnapshot {
                    ops: load(&class.ops),
                    queue_ns: load(&class.queue_ns),
                    queue_wait: class.queue_wait.each_ref().map(load),
                    individual: class.individual.each_ref().map(load),
                    aggregated: class.aggregated.each_ref().map(load),
                    waiting: 0,
                    active: 0,
                }
            }),
            flushes: load(&self.flushes),
            flush_ns: load(&self.flush_ns),
            flush_wait: self.flush_wait.each_ref().map(load),
            flushes_asked: load(&self.flushes_asked),
            healed: load(&self.healed),
        }
    }

    fn kind(&self, i: usize) -> KindSnapshot {
        let kind = &self.kinds[i];
        KindSnapshot {
            ops: load(&kind.ops),
            bytes: load(&kind.bytes),
            total_ns: load(&kind.total_ns),
            disk_ns: load(&kind.disk_ns),
            total_wait: kind.total_wait.each_ref().map(load),
            disk_wait: kind.disk_wait.each_ref().map(load),
        }
    }
}

fn op_of(direction: Direction) -> Op {
    match direction {
        Direction::Read => Op::Read,
        Direction::Write => Op::Write,
        Direction::Trim => Op::Trim,
    }
}

/// The counters at one moment; those of a group are sums.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub read: KindSnapshot,
    pub write: KindSnapshot,
    pub trim: KindSnapshot,
    /// By [`Priority::index`].
    pub classes: [ClassSnapshot; Priority::COUNT],
    /// Flushes that the device was asked for, and how long they took.
    pub flushes: u64,
    pub flush_ns: u64,
    pub flush_wait: [u64; LATENCY_BUCKETS],
    /// How often a flush was asked for: what is more than `flushes` was shared, or not needed.
    pub flushes_asked: u64,
    /// Bytes written again because they were bad.
    pub healed: u64,
}

#[derive(Clone, Debug)]
pub struct KindSnapshot {
    pub ops: u64,
    pub bytes: u64,
    pub total_ns: u64,
    pub disk_ns: u64,
    pub total_wait: [u64; LATENCY_BUCKETS],
    pub disk_wait: [u64; LATENCY_BUCKETS],
}

#[derive(Clone, Debug)]
pub struct ClassSnapshot {
    pub ops: u64,
    pub queue_ns: u64,
    pub queue_wait: [u64; LATENCY_BUCKETS],
    pub individual: [u64; SIZE_BUCKETS],
    pub aggregated: [u64; SIZE_BUCKETS],
    /// In the queue, and at the device, at this moment.
    pub waiting: u64,
    pub active: u64,
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot {
            read: KindSnapshot::default(),
            write: KindSnapshot::default(),
            trim: KindSnapshot::default(),
            classes: Default::default(),
            flushes: 0,
            flush_ns: 0,
            flush_wait: [0; LATENCY_BUCKETS],
            flushes_asked: 0,
            healed: 0,
        }
    }
}

impl Default for KindSnapshot {
    fn default() -> KindSnapshot {
        let none = [0; LATENCY_BUCKETS];
        KindSnapshot { ops: 0, bytes: 0, total_ns: 0, disk_ns: 0, total_wait: none, disk_wait: none }
    }
}

impl Default for ClassSnapshot {
    fn default() -> ClassSnapshot {
        ClassSnapshot {
            ops: 0,
            queue_ns: 0,
            queue_wait: [0; LATENCY_BUCKETS],
            individual: [0; SIZE_BUCKETS],
            aggregated: [0; SIZE_BUCKETS],
            waiting: 0,
            active: 0,
        }
    }
}

impl Snapshot {
    pub fn class(&self, priority: Priority) -> &ClassSnapshot {
        &self.classes[priority.index()]
    }

    pub(crate) fn add(&mut self, other: &Snapshot) {
        self.read.add(&other.read);
        self.write.add(&other.write);
        self.trim.add(&other.trim);
        self.classes.iter_mut().zip(&other.classes).for_each(|(a, b)| a.add(b));
        self.flushes += other.flushes;
        self.flush_ns += other.flush_ns;
        sum(&mut self.flush_wait, &other.flush_wait);
        self.flushes_asked += other.flushes_asked;
        self.healed += other.healed;
    }
}

impl KindSnapshot {
    fn add(&mut self, other: &KindSnapshot) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.total_ns += other.total_ns;
        self.disk_ns += other.disk_ns;
        sum(&mut self.total_wait, &other.total_wait);
        sum(&mut self.disk_wait, &other.disk_wait);
    }
}

impl ClassSnapshot {
    fn add(&mut self, other: &ClassSnapshot) {
        self.ops += other.ops;
        self.queue_ns += other.queue_ns;
        self.waiting += other.waiting;
        self.active += other.active;
        sum(&mut self.queue_wait, &other.queue_wait);
        sum(&mut self.individual, &other.individual);
        sum(&mut self.aggregated, &other.aggregated);
    }
}

fn sum(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
}

fn histogram<const N: usize>() -> Histogram<N> {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn kind_of(direction: Direction) -> usize {
    match direction {
        Direction::Read => 0,
        Direction::Write => 1,
        Direction::Trim => 2,
    }
}

fn count(histogram: &[AtomicU64], value: u64) {
    let bucket = value.max(1).ilog2() as usize;
    add(&histogram[bucket.min(histogram.len() - 1)], 1);
}

fn count_time(histogram: &[AtomicU64], sum: &AtomicU64, time: Duration) {
    let ns = nanos(time);
    count(histogram, ns);
    add(sum, ns);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_by_powers_of_two() {
        let h: Histogram<SIZE_BUCKETS> = histogram();
        for value in [0, 1, 2, 3, 4, 511, 512, u64::MAX] {
            count(&h, value);
        }
        let counts = h.each_ref().map(load);
        assert_eq!((counts[0], counts[1], counts[2], counts[8], counts[9]), (2, 2, 1, 1, 1));
        assert_eq!(counts[SIZE_BUCKETS - 1], 1);
    }
}
