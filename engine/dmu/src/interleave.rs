//! A small model checker: threads that run one at a time, and change at locks.
//!
//! ```text
//!   first   ── lock ── lock ─┤ its n-th lock                                     ├── lock … end
//!   others                   └── second, to its end ── third, to its end ── … ──┘
//! ```
//!
//! For each n there is one run, so that the first thread is held up once at every place where it matters. A lock that the
//! first holds is lent a step: the first goes on until its next lock, and so on until the lock is free.
//!
//! What locks takes a lock through [`lock`], which outside of such a run is the mutex's own.

// Its threads take turns: what they do is the same in every run.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::cell::RefCell;
use std::sync::{Arc, Condvar, LockResult, Mutex, MutexGuard, TryLockError};

pub(crate) type Work = Box<dyn FnOnce() + Send>;

struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    running: usize,
    ended: Vec<bool>,
    /// Locks that the first has come to, and the one at which it is held up.
    locks: usize,
    held_up_at: usize,
    /// It is held up, and has lent a step to this thread.
    lent_by: Option<usize>,
}

thread_local! {
    static ME: RefCell<Option<(Arc<Turns>, usize)>> = const { RefCell::new(None) };
}

/// Locks `mutex`, when it is this thread's turn.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> LockResult<MutexGuard<'_, T>> {
    let Some((turns, me)) = ME.with(|me| me.borrow().clone()) else { return mutex.lock() };
    turns.come_to_a_lock(me);
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
            Err(TryLockError::WouldBlock) => turns.borrow_a_step(me),
        }
    }
}

impl Turns {
    fn wait_for_turn(&self, mut state: MutexGuard<'_, State>, me: usize) {
        self.changed.notify_all();
        while state.running != me {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn come_to_a_lock(&self, me: usize) {
        let mut state = self.state.lock().unwrap();
        if me == 0 {
            state.locks += 1;
            if let Some(borrower) = state.lent_by.take() {
                state.running = borrower;
            } else if state.locks == state.held_up_at {
                state.running = state.next();
            }
        }
        self.wait_for_turn(state, me);
    }

    /// The lock is held by the first, which is held up.
    fn borrow_a_step(&self, me: usize) {
        let mut state = self.state.lock().unwrap();
        assert!(me != 0 && !state.ended[0], "only the first is ever held up with a lock");
        (state.lent_by, state.running) = (Some(me), 0);
        self.wait_for_turn(state, me);
    }
}

impl State {
    /// The others in their order, then the first.
    fn next(&self) -> usize {
        (1..self.ended.len()).find(|i| !self.ended[*i]).unwrap_or(0)
    }
}

/// Ends a thread's part, in peace or by a panic.
struct Ending(Arc<Turns>, usize);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap();
        state.ended[self.1] = true;
        state.running = state.lent_by.take().unwrap_or_else(|| state.next());
        self.0.changed.notify_all();
    }
}

/// Runs the threads once; answers how many locks the first came to.
fn run(works: Vec<Work>, held_up_at: usize) -> usize {
    let state = State { running: 0, ended: vec![false; works.len()], locks: 0, held_up_at, lent_by: None };
    let turns = Arc::new(Turns { state: Mutex::new(state), changed: Condvar::new() });
    let start = |(me, work): (usize, Work)| {
        let turns = turns.clone();
        std::thread::spawn(move || {
            let _ending = Ending(turns.clone(), me);
            turns.wait_for_turn(turns.state.lock().unwrap(), me);
            ME.with(|own| *own.borrow_mut() = Some((turns.clone(), me)));
            work();
        })
    };
    let threads: Vec<_> = works.into_iter().enumerate().map(start).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    turns.state.lock().unwrap().locks
}

/// Runs what `make` makes, holding up the first thread at each of its locks in turn; then `check`, after each run.
pub(crate) fn explore<T>(make: impl Fn() -> (T, Vec<Work>), check: impl Fn(T, usize)) {
    for held_up_at in 1.. {
        let (outcome, works) = make();
        let locks = run(works, held_up_at);
        check(outcome, held_up_at);
        if locks < held_up_at {
            return;
        }
    }
}

#[test]
fn every_place_between_two_locks_is_tried() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let seen = Mutex::new(Vec::new());
    let make = || {
        let sum = Arc::new(Mutex::new(0));
        let (own, other) = (sum.clone(), sum.clone());
        // One reads, and writes what it has read, one more.
        let first: Work = Box::new(move || {
            let before = *lock(&own).unwrap();
            *lock(&own).unwrap() = before + 1;
        });
        let second: Work = Box::new(move || *lock(&other).unwrap() += 1);
        (sum, vec![first, second])
    };
    explore(make, |sum, _| seen.lock().unwrap().push(*sum.lock().unwrap()));
    // Before the first lock, between the two, and not at all.
    assert_eq!(*seen.lock().unwrap(), [2, 1, 2]);
    let held = Arc::new(Mutex::new(()));
    let was_free = Arc::new(AtomicBool::new(false));
    let make = || {
        let (own, inner, other, tell) = (held.clone(), Mutex::new(()), held.clone(), was_free.clone());
        let first: Work = Box::new(move || {
            let _outer = lock(&own).unwrap();
            drop(lock(&inner).unwrap());
        });
        let second: Work = Box::new(move || {
            drop(lock(&other).unwrap());
            tell.store(true, Ordering::Relaxed);
        });
        ((), vec![first, second])
    };
    explore(make, |(), _| assert!(was_free.swap(false, Ordering::Relaxed)));
}
