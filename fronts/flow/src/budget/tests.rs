use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection as the budget sees it.
struct Party {
    lease: Lease,
    woken: Arc<Woken>,
}

impl Party {
    fn join(budget: &Arc<Budget>) -> Party {
        Party { lease: budget.lease(), woken: Arc::default() }
    }

    fn covers(&mut self, bytes: usize) -> bool {
        let waker = Waker::from(self.woken.clone());
        self.lease.covers(Load::of(1, bytes), &mut Context::from_waker(&waker))
    }

    fn wakes(&self) -> usize {
        self.woken.0.load(Ordering::Relaxed)
    }
}

const UNIT: usize = 1 << 20;
const LARGEST: usize = 33 * UNIT;

#[test]
fn the_base_of_a_connection_needs_nobody() {
    let budget = Budget::new(0, 32 * UNIT, UNIT);
    let (mut hog, mut small) = (Party::join(&budget), Party::join(&budget));
    assert!(hog.covers(LARGEST + UNIT), "the smallest budget carries the largest request");
    assert!(small.covers(UNIT), "and the others still have their base");
    assert!(!small.covers(UNIT + 1));
}

#[test]
fn who_waits_is_served_in_order_when_room_comes_back() {
    let budget = Budget::new(LARGEST, 32 * UNIT, UNIT);
    let [mut a, mut b, mut c] = [0; 3].map(|_| Party::join(&budget));
    assert!(a.covers(LARGEST));
    assert!(!b.covers(20 * UNIT));
    assert!(!c.covers(2 * UNIT));
    a.lease.rest();
    assert_eq!((b.wakes(), c.wakes()), (1, 0), "the first in the queue is woken");
    assert!(!c.covers(2 * UNIT), "there is room, but b came first");
    assert!(b.covers(20 * UNIT));
    assert_eq!(c.wakes(), 1, "what b left is enough for c");
    assert!(c.covers(2 * UNIT));
}

/// Two connections held a part each and waited for the rest, for ever.
#[test]
fn two_that_want_more_than_there_is_do_not_block_each_other() {
    let budget = Budget::new(LARGEST, 32 * UNIT, UNIT);
    let (mut a, mut b) = (Party::join(&budget), Party::join(&budget));
    assert!(a.covers(17 * UNIT) && b.covers(17 * UNIT));
    assert!(!a.covers(LARGEST) && !b.covers(LARGEST));
    a.lease.rest();
    b.lease.rest();
    assert!(a.wakes() > 0);
    assert!(a.covers(LARGEST));
    assert!(!b.covers(LARGEST));
    a.lease.rest();
    assert!(b.wakes() > 0);
    assert!(b.covers(LARGEST));
}

#[test]
fn a_connection_that_ends_leaves_the_queue_and_returns_its_lease() {
    let budget = Budget::new(LARGEST, 32 * UNIT, UNIT);
    let [mut a, mut b, mut c] = [0; 3].map(|_| Party::join(&budget));
    assert!(a.covers(LARGEST + UNIT));
    assert!(!b.covers(2 * UNIT) && !c.covers(3 * UNIT));
    drop(b);
    drop(a);
    assert!(c.wakes() > 0);
    assert!(c.covers(LARGEST));
}
