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

/// A client that had waited, and then needed its base alone, stayed at the head of the queue for as long as it was there.
#[test]
fn who_waits_no_more_is_in_nobodys_way() {
    let budget = Budget::new(LARGEST, 32 * UNIT, UNIT);
    let [mut hog, mut small, mut given_up, mut large] = [0; 4].map(|_| Party::join(&budget));
    assert!(hog.covers(LARGEST + UNIT));
    assert!(!small.covers(UNIT + 1) && !given_up.covers(2 * UNIT) && !large.covers(3 * UNIT));
    for party in [&mut small, &mut given_up, &mut large] {
        party.lease.settle();
    }
    assert!(small.covers(UNIT), "its other reply is out");
    hog.lease.rest();
    assert_eq!((small.wakes(), given_up.wakes(), large.wakes()), (0, 1, 0));
    given_up.lease.settle();
    assert_eq!(large.wakes(), 1);
    assert!(large.covers(3 * UNIT));
    assert!(!budget.is_waited_for());
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

/// A connection with requests that wait and requests that are under way.
struct Busy {
    party: Party,
    seen: usize,
    waiting: Vec<usize>,
    under_way: Vec<usize>,
    /// What is under way does not end, as with a pool that is suspended.
    is_stuck: bool,
}

impl Busy {
    /// What its task does when it is woken: begins what has room, in order.
    fn poll(&mut self) {
        self.seen = self.party.wakes();
        while let Some(&first) = self.waiting.first() {
            let bytes = self.bytes() + first;
            let fits = self.party.lease.holds(Load::of(1, bytes));
            if !(fits || !self.is_stuck && self.party.covers(bytes)) {
                break;
            }
            self.under_way.push(self.waiting.remove(0));
        }
        self.party.lease.settle();
    }

    fn bytes(&self) -> usize {
        self.under_way.iter().sum()
    }

    /// What it does when the watch asks it.
    fn yields(&mut self) {
        if self.is_stuck && self.party.lease.is_extended() {
            let bytes = self.bytes();
            self.party.lease.excuse(bytes, Load::of(1, bytes));
        }
    }

    fn end(&mut self, at: usize) {
        self.under_way.remove(at);
        if self.under_way.is_empty() {
            self.party.lease.rest();
        }
        self.poll();
    }
}

#[test]
fn whatever_clients_ask_for_and_give_up_and_whatever_pool_is_suspended_no_request_is_forgotten() {
    for seed in 0..300u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |n: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % n as u64) as usize
        };
        let budget = Budget::new(LARGEST, 32 * UNIT, UNIT);
        let shared = budget.lock().free;
        let busy = || Busy {
            party: Party::join(&budget),
            seen: 0,
            waiting: vec![],
            under_way: vec![],
            is_stuck: false,
        };
        let mut all: Vec<Busy> = (0..5).map(|_| busy()).collect();
        // Those at the end that are stuck stay it: the others must go on all the same.
        for (last, stuck) in [(400, true), (600, false)] {
            for step in 0.. {
                let one = &mut all[below(5)];
                match below(6) {
                    0 | 1 if step < last / 2 => {
                        one.waiting.push([UNIT / 2, UNIT, 3 * UNIT, 30 * UNIT][below(4)]);
                    }
                    2 if !one.waiting.is_empty() && step < last / 2 => {
                        one.waiting.remove(below(one.waiting.len()));
                    }
                    3 if step < last / 2 => *one = busy(),
                    4 if step < last / 2 => one.is_stuck = stuck && below(3) == 0,
                    _ if !one.under_way.is_empty() && !one.is_stuck => one.end(below(one.under_way.len())),
                    _ => {}
                }
                one.poll();
                loop {
                    if budget.is_waited_for() {
                        all.iter_mut().for_each(Busy::yields);
                    }
                    let Some(woken) = all.iter_mut().find(|one| one.seen < one.party.wakes()) else { break };
                    woken.poll();
                }
                let leased: usize = all.iter().map(|one| one.party.lease.extra).sum();
                assert_eq!(leased + budget.lock().free, shared, "seed {seed}, step {step}");
                for one in &all {
                    let lease = &one.party.lease;
                    assert!(one.bytes() <= UNIT + lease.extra + lease.excused, "seed {seed}, step {step}");
                }
                let is_done = |one: &Busy| one.is_stuck || one.under_way.is_empty() && one.waiting.is_empty();
                if step >= last && all.iter().all(is_done) {
                    break;
                }
                assert!(step < 100_000, "seed {seed}: a request waits for nothing");
            }
            assert!(!budget.is_waited_for(), "seed {seed}");
            // What the watch does for those that wait for a pool.
            for one in &mut all {
                one.is_stuck = false;
                one.poll();
            }
        }
        all.iter_mut().for_each(|one| one.party.lease.rest());
        assert_eq!(budget.lock().free, shared, "seed {seed}");
    }
}
