//! What a session shows to the server that watches over it, and how it is told to end.
//!
//! A client owes a session something while that keeps memory for it: it must *take* what is sent, or *bring* what it
//! announced. Each is due after the server's patience, and later by what was moved meanwhile, at [`RATE`]. What a client
//! brings is nothing for what it must take: one that asks and never reads is as stuck as one that does nothing. And while
//! others wait for memory, one that holds more than the base of its connection must move at [`CROWDED_RATE`], and is given
//! no more than [`CROWDED_PATIENCE`] from when they began to wait: their own clients give up after half a minute.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use world::Instant;

/// Bytes a second that a client must move at least while it owes something.
const RATE: u64 = 4 << 10;
const CROWDED_RATE: u64 = 1 << 20;
const CROWDED_PATIENCE: Duration = Duration::from_secs(5);

/// One session writes what it shows; the watcher reads it, and wakes the session.
#[derive(Debug, Default)]
pub struct Vitals {
    stop: AtomicBool,
    waker: AtomicWaker,
    /// Bytes that the client took, and brought.
    taken: AtomicU64,
    brought: AtomicU64,
    must_take: AtomicBool,
    must_bring: AtomicBool,
    /// It has a lease beyond the base.
    holds_shared: AtomicBool,
    /// Others wait for memory.
    is_asked: AtomicBool,
    /// It has requests for a suspended pool that it does not begin.
    waits_for_pool: AtomicBool,
}

/// Since when a client has owed what: for the watch.
#[derive(Debug, Default)]
pub struct Debts {
    /// Others waited when it was last looked at.
    is_in_the_way: bool,
    take: Debt,
    bring: Debt,
}

#[derive(Debug, Default)]
struct Debt {
    moved: u64,
    due: Option<Instant>,
}

impl Debts {
    /// Whether something is overdue, as of now. `is_crowded`: others wait for memory.
    pub fn are_overdue(
        &mut self,
        vitals: &Vitals,
        now: Instant,
        patience: Duration,
        is_crowded: bool,
    ) -> bool {
        let is_in_the_way = is_crowded && vitals.holds_shared.load(Ordering::Relaxed);
        let (rate, patience) = match is_in_the_way {
            true => (CROWDED_RATE, patience.min(CROWDED_PATIENCE)),
            false => (RATE, patience),
        };
        if std::mem::replace(&mut self.is_in_the_way, is_in_the_way) && !is_in_the_way {
            // What was due early is not any more.
            self.take.due = None;
            self.bring.due = None;
        }
        let of = |flag: &AtomicBool, bytes: &AtomicU64| {
            (flag.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
        };
        let take = self.take.is_overdue(of(&vitals.must_take, &vitals.taken), now, patience, rate);
        let bring = self.bring.is_overdue(of(&vitals.must_bring, &vitals.brought), now, patience, rate);
        take || bring
    }
}

impl Debt {
    fn is_overdue(
        &mut self,
        (owes, moved): (bool, u64),
        now: Instant,
        patience: Duration,
        rate: u64,
    ) -> bool {
        let more = moved - std::mem::replace(&mut self.moved, moved);
        if !owes {
            self.due = None;
            return false;
        }
        let latest = now.after(patience);
        let later = Duration::from_nanos(more.saturating_mul(1_000_000_000 / rate));
        let due = self.due.map_or(latest, |due| latest.min(due.after(later)));
        self.due = Some(due);
        now >= due
    }
}

impl Vitals {
    /// Asks the session to finish what is in flight and to hang up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// There is something new that the session should look at.
    pub fn wake(&self) {
        self.waker.wake();
    }

    pub async fn stopped(&self) {
        poll_fn(|cx| if self.is_stopping(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// For the session alone, whose task is woken from now on.
    pub fn is_stopping(&self, cx: &mut Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.stop.load(Ordering::Acquire)
    }

    /// How far the session has come: grows whenever the client takes or brings something.
    pub fn progress(&self) -> u64 {
        self.taken.load(Ordering::Relaxed) + self.brought.load(Ordering::Relaxed)
    }

    /// The client took so many bytes, or some.
    pub fn note_taken(&self, bytes: usize) {
        note(&self.taken, bytes);
    }

    pub fn note_brought(&self, bytes: usize) {
        note(&self.brought, bytes);
    }

    /// Whether the session waits for a client that keeps memory of ours.
    pub fn owes(&self) -> bool {
        self.must_take.load(Ordering::Relaxed) || self.must_bring.load(Ordering::Relaxed)
    }

    /// Whether the session holds memory that others might wait for.
    pub fn note_held(&self, holds_shared: bool) {
        self.holds_shared.store(holds_shared, Ordering::Relaxed);
    }

    /// For the watch, now and then: `is_crowded` says that others wait for memory. A session that has some of it looks
    /// whether it can be [excused](crate::Lease::excuse), and one that waits for a pool looks whether that goes on.
    pub fn ask_to_yield(&self, is_crowded: bool) {
        let is_asked = is_crowded && self.holds_shared.load(Ordering::Relaxed);
        self.is_asked.store(is_asked, Ordering::Relaxed);
        if is_asked || self.waits_for_pool.load(Ordering::Relaxed) {
            self.waker.wake();
        }
    }

    /// Others wait for memory that the session has.
    pub fn is_asked_to_yield(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Whether the session leaves requests alone until a pool goes on.
    pub fn note_waits_for_pool(&self, waits: bool) {
        self.waits_for_pool.store(waits, Ordering::Relaxed);
    }

    /// Whether the client keeps memory of ours for as long as it does not read, or does not send what it announced.
    pub fn note_debts(&self, must_take: bool, must_bring: bool) {
        self.must_take.store(must_take, Ordering::Relaxed);
        self.must_bring.store(must_bring, Ordering::Relaxed);
    }
}

/// One writer, so that no locked instruction is needed.
fn note(count: &AtomicU64, bytes: usize) {
    count.store(count.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// After how many seconds a client is left that owes and moves so many bytes of either each second; at most 1,000.
    fn left_after(owes: (bool, bool), taken: usize, brought: usize) -> u64 {
        left_of(&Vitals::default(), owes, taken, brought, false)
    }

    fn left_of(vitals: &Vitals, owes: (bool, bool), taken: usize, brought: usize, is_crowded: bool) -> u64 {
        let mut debts = Debts::default();
        vitals.note_debts(owes.0, owes.1);
        let at = |second| Instant::default().after(Duration::from_secs(second));
        (0..1000)
            .find(|&second| {
                let is_overdue = debts.are_overdue(vitals, at(second), PATIENCE, is_crowded);
                vitals.note_taken(taken);
                vitals.note_brought(brought);
                is_overdue
            })
            .unwrap_or(1000)
    }

    #[test]
    fn each_debt_is_due_by_itself() {
        const ENOUGH: usize = 4 << 10;
        assert_eq!(left_after((false, false), 0, 0), 1000);
        assert_eq!(left_after((true, false), 0, 0), 10);
        assert_eq!(left_after((false, true), 0, 0), 10);
        assert_eq!(left_after((true, false), ENOUGH, 0), 1000);
        assert_eq!(left_after((true, false), 0, ENOUGH), 10, "what it sends us is not read by it");
        assert_eq!(left_after((true, true), ENOUGH, 0), 10);
        assert_eq!(left_after((true, true), ENOUGH, ENOUGH), 1000);
        assert_eq!(left_after((false, true), 0, 1), 11, "a byte now and then");
        let vitals = Vitals::default();
        assert_eq!(left_of(&vitals, (true, false), ENOUGH, 0, true), 1000, "others do not wait for it");
        vitals.note_held(true);
        assert_eq!(left_of(&vitals, (true, false), ENOUGH, 0, true), 6);
        assert_eq!(left_of(&vitals, (true, false), 2 << 20, 0, true), 1000);
        assert_eq!(left_of(&vitals, (true, false), ENOUGH, 0, false), 1000);
    }

    /// It held up all others for as long as a client alone may stand still.
    #[test]
    fn one_that_others_wait_for_stands_still_for_seconds_only() {
        let left = |crowded: std::ops::Range<u64>| {
            let (vitals, mut debts) = (Vitals::default(), Debts::default());
            vitals.note_debts(true, false);
            vitals.note_held(true);
            let at = |second| Instant::default().after(Duration::from_secs(second));
            let patience = Duration::from_secs(60);
            let is_left = |s: &u64| debts.are_overdue(&vitals, at(*s), patience, crowded.contains(s));
            (0..100).find(is_left).unwrap_or(100)
        };
        assert_eq!(left(0..100), 5);
        assert_eq!(left(20..100), 25, "from when they wait");
        assert_eq!(left(57..100), 60, "no longer than alone");
        assert_eq!(left(0..3), 63, "and not once they do not");
        assert_eq!(left(0..0), 60);
    }
}
