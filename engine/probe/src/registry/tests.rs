use super::*;
use crate::names::Op;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

fn event(op: Op, bytes: u64, micros: u64) -> Event {
    let latency = Duration::from_micros(micros);
    Event { op, offset: 0, bytes, began: Instant(0), latency, failed: false }
}

fn in_a_world(work: impl FnOnce() + Send + 'static) {
    sim::run(1, sim::Config::default(), async move { work() });
}

#[test]
fn what_is_recorded_is_what_a_snapshot_shows() {
    in_a_world(|| {
        let registry = Registry::new();
        let disk = registry.io(Layer::Disk, "sda");
        disk.record(event(Op::SyncRead, 4096, 100));
        disk.record(event(Op::Scrub, 131_072, 900));
        disk.record(Event { failed: true, ..event(Op::AsyncWrite, 512, 10) });
        let before = registry.snapshot();
        let counts = before.get(Layer::Disk, "sda").unwrap();
        let reads = counts.reads();
        assert_eq!((reads.ops, reads.bytes, reads.errors), (2, 135_168, 0));
        assert_eq!(reads.latency_mean(), Some(Duration::from_micros(500)));
        assert_eq!((counts.writes().ops, counts.writes().errors), (1, 1));
        assert_eq!(counts.op(Op::Flush).latency_mean(), None);
        disk.record(event(Op::SyncRead, 8192, 100));
        let between = registry.snapshot().since(&before);
        let reads = between.get(Layer::Disk, "sda").unwrap().reads();
        assert_eq!((reads.ops, reads.bytes, reads.size.total()), (1, 8192, 1));
    });
}

#[test]
fn a_place_leaves_with_its_owner_and_a_new_one_counts_from_nothing() {
    in_a_world(|| {
        let registry = Registry::new();
        let first = registry.io(Layer::Volume, "tank/a");
        let before = registry.snapshot();
        drop(first);
        let second = registry.io(Layer::Volume, "tank/b");
        second.record(event(Op::SyncWrite, 1, 1));
        let after = registry.snapshot().since(&before);
        assert!(after.get(Layer::Volume, "tank/a").is_none());
        assert_eq!(after.get(Layer::Volume, "tank/b").unwrap().writes().ops, 1);
    });
}

#[test]
fn metrics_are_counted_by_name() {
    in_a_world(|| {
        let registry = Registry::new();
        let before = registry.snapshot();
        registry.count(Metric::ArcHits, 3);
        registry.count(Metric::ArcHits, 4);
        assert_eq!(registry.metric(Metric::ArcHits), 7);
        assert_eq!(registry.snapshot().since(&before).metric(Metric::ArcHits), 7);
        assert_eq!(registry.metric(Metric::ArcMisses), 0);
    });
}

#[test]
fn an_observer_sees_everything_while_it_is_there() {
    let registry = Registry::new();
    let io = registry.io(Layer::Front, "nbd");
    let seen = Arc::new(AtomicU64::new(0));
    let sum = seen.clone();
    io.record(event(Op::SyncRead, 1, 1));
    let guard = registry.observe(Arc::new(move |io, event| {
        assert_eq!(io.place(), "nbd");
        sum.fetch_add(event.bytes, Ordering::Relaxed);
    }));
    io.record(event(Op::SyncRead, 10, 1));
    io.record(event(Op::Trim, 100, 1));
    drop(guard);
    io.record(event(Op::SyncRead, 1000, 1));
    assert_eq!(seen.load(Ordering::Relaxed), 110);
}

/// Not a limit but a reminder: tens of nanoseconds even in a debug build, so it can stand on every path.
#[test]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it measures real time")]
fn recording_is_cheap() {
    let io = Registry::new().io(Layer::Disk, "sda");
    let began = std::time::Instant::now();
    for i in 0..100_000 {
        io.record(event(Op::SyncRead, 512 + i, i));
    }
    let each = began.elapsed() / 100_000;
    assert!(each < Duration::from_micros(5), "{each:?}");
}
