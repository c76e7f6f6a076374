use super::*;
use Priority::*;

fn shape(class: Priority, offset: u64, len: u64) -> Shape {
    let direction = match class {
        SyncRead | AsyncRead | Scrub => Direction::Read,
        Trim => Direction::Trim,
        _ => Direction::Write,
    };
    Shape { class, direction, offset, len }
}

fn schedule() -> Schedule<u64> {
    Schedule::new(Limits::default(), true)
}

/// Pushes `n` operations too far apart to be neighbours.
fn push_apart(s: &mut Schedule<u64>, class: Priority, n: u64) {
    (0..n).for_each(|i| s.push(shape(class, i << 24, 4096), 0, i));
}

fn drain(s: &mut Schedule<u64>) -> Vec<Priority> {
    std::iter::from_fn(|| s.next()).map(|b| b.class).collect()
}

#[test]
fn no_class_exceeds_its_maximum_and_every_class_gets_its_minimum() {
    let mut s = schedule();
    for class in [SyncRead, SyncWrite, AsyncRead, AsyncWrite, Trim] {
        push_apart(&mut s, class, 50);
    }
    let started = drain(&mut s);
    // A device that seeks, of which nothing is known yet, and that clients read.
    for (class, max) in [(SyncRead, 10), (SyncWrite, 10), (AsyncRead, 3), (AsyncWrite, 2), (Trim, 2)] {
        assert_eq!(started.iter().filter(|&&c| c == class).count(), max, "{class:?}");
        assert_eq!(s.active(class), max as u32);
    }
    s.done(AsyncRead);
    assert_eq!(drain(&mut s), [AsyncRead]);
}

#[test]
fn asynchronous_writes_are_few_while_readers_would_wait_for_them() {
    let mut s = Schedule::new(Limits::default(), false);
    let mut writes = |reads: u64| {
        push_apart(&mut s, AsyncWrite, 10);
        push_apart(&mut s, SyncRead, reads);
        let started = drain(&mut s);
        (0..reads).for_each(|_| s.took(SyncRead, 100_000));
        started.iter().for_each(|class| s.done(*class));
        started.len() as u64 - reads
    };
    assert_eq!(writes(0), 10, "nobody reads");
    assert_eq!(writes(1), 1, "it is not known how it serves both");
    (0..100).for_each(|_| assert!(writes(1) > 0));
    assert_eq!(writes(1), 10, "it serves both side by side");
}

#[test]
fn with_a_small_total_the_classes_take_turns() {
    let mut s = Schedule::new(Limits { total: 1, ..Limits::default() }, true);
    push_apart(&mut s, SyncRead, 9);
    push_apart(&mut s, SyncWrite, 9);
    push_apart(&mut s, AsyncWrite, 9);
    let mut order = Vec::new();
    while let Some(batch) = s.next() {
        order.push(batch.class);
        s.done(batch.class);
    }
    assert_eq!(order[..6], [SyncRead, SyncWrite, AsyncWrite, SyncRead, SyncWrite, AsyncWrite]);
    assert_eq!(order.len(), 27);
}

#[test]
fn background_work_runs_on_credit_beside_others_and_freely_on_an_idle_device() {
    let mut s = schedule();
    assert!(s.try_start(SyncRead));
    push_apart(&mut s, Scrub, 30);
    assert_eq!(drain(&mut s), [Scrub], "one on the first credit");
    s.done(Scrub);
    assert_eq!(drain(&mut s), [], "the credit is spent");
    s.done(SyncRead);
    assert_eq!(drain(&mut s), [Scrub], "the others are gone, but only just");
    for _ in 0..4 {
        s.done(Scrub);
        assert_eq!(drain(&mut s), [Scrub]);
    }
    s.done(Scrub);
    assert_eq!(drain(&mut s), [Scrub; 3], "idle");
}

#[test]
fn nothing_overtakes_what_waits() {
    let mut s = schedule();
    (0..10).for_each(|_| assert!(s.try_start(SyncRead)));
    assert!(!s.try_start(SyncRead));
    s.push(shape(SyncRead, 0, 512), 0, 0);
    s.done(SyncRead);
    assert!(!s.try_start(SyncRead));
    assert!(s.next().is_some());
}

#[test]
fn neighbours_leave_as_one_operation_up_to_the_limit() {
    let mut s = schedule();
    for i in (0..12).rev() {
        s.push(shape(AsyncWrite, i << 17, 1 << 17), 7, i);
    }
    let first = s.next().unwrap();
    assert_eq!(first.parts.iter().map(|p| p.1).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!(first.span(), (0, 1 << 20));
    assert_eq!(s.next().unwrap().parts.len(), 4);
    assert_eq!(s.active(AsyncWrite), 2);
}

#[test]
fn neighbours_are_asked_for_together_as_far_as_tunables_let_them_be_merged() {
    let short = 64 << 10;
    let together = |aggregation, aggregation_non_rotating, rotational| {
        let limits = Limits { aggregation, aggregation_non_rotating, ..Limits::default() };
        Schedule::<u64>::new(limits, rotational).together_max()
    };
    assert_eq!(together(1 << 20, 128 << 10, true), 1 << 20);
    assert_eq!(together(1 << 20, 128 << 10, false), 512 << 10);
    assert_eq!(together(1 << 20, 1 << 20, false), 1 << 20);
    assert_eq!((together(short, 128 << 10, true), together(short, short, false)), (short, short));
    assert_eq!((together(0, 0, true), together(1 << 20, 0, false)), (0, 0));
}

#[test]
fn reads_sweep_over_small_gaps_and_writes_do_not() {
    let mut s = schedule();
    for class in [AsyncRead, AsyncWrite] {
        s.push(shape(class, 0, 4096), 0, 0);
        s.push(shape(class, 4096 + (32 << 10), 4096), 0, 1);
        s.push(shape(class, 8192 + (65 << 10), 4096), 0, 2);
    }
    let sizes: Vec<_> = std::iter::from_fn(|| s.next()).map(|b| (b.class, b.parts.len())).collect();
    assert_eq!(sizes, [(AsyncRead, 2), (AsyncWrite, 1), (AsyncWrite, 1), (AsyncRead, 1), (AsyncWrite, 1)]);
}

#[test]
fn overlapping_operations_never_merge() {
    let mut s = schedule();
    s.push(shape(AsyncWrite, 0, 8192), 0, 0);
    s.push(shape(AsyncWrite, 4096, 8192), 0, 1);
    assert_eq!(s.next().unwrap().parts.len(), 1);
}

#[test]
fn older_operations_go_before_nearer_ones() {
    let mut s = schedule();
    s.push(shape(AsyncWrite, 1 << 30, 512), 0, 1);
    s.push(shape(AsyncWrite, 0, 512), 1 << 30, 2);
    assert_eq!(s.next().unwrap().parts[0].1, 1);
}
