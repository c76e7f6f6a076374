//! Locks on ranges of numbers, such as the blocks of a volume.
//!
//! ```text
//!   taken      |──────|        |──|
//!   waiting  1:     |──────|            overlaps what is taken
//!            2:           |──|          is free, but overlaps 1, which came before
//!   asked for:                     |─|  is free: taken at once
//! ```
//!
//! So a wide range is not overtaken by narrow ones that come again and again.

use super::lock;
use crate::stages::{Stage, stage};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// See the module. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Start → end; they do not overlap.
    taken: BTreeMap<u64, u64>,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    next_id: u64,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    range: Range<u64>,
    waker: Waker,
    /// The range was taken for it.
    is_given: bool,
}

/// A range that is taken; dropping it gives it back.
#[derive(Debug)]
pub struct RangeLock {
    locks: RangeLocks,
    range: Range<u64>,
}

/// A range that is asked for, once this was polled.
struct Taking {
    locks: RangeLocks,
    range: Range<u64>,
    id: Option<u64>,
}

impl RangeLocks {
    /// Takes `range`, which is not empty, when no part of it is taken, or was asked for before.
    pub async fn take(&self, range: Range<u64>) -> RangeLock {
        if lock(&self.0).try_take(&range) {
            return RangeLock { locks: self.clone(), range };
        }
        stage(Stage::Lock, Taking { locks: self.clone(), range, id: None }).await
    }

    /// Changes something about `range`, after which others that wait for a part of it may have theirs.
    fn free(&self, range: &Range<u64>, change: impl FnOnce(&mut State)) {
        let woken = {
            let mut state = lock(&self.0);
            change(&mut state);
            state.give(range)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn try_take(&mut self, range: &Range<u64>) -> bool {
        let is_asked_for = self.waiting.iter().any(|w| !w.is_given && overlap(&w.range, range));
        !is_asked_for && self.take_if_free(range)
    }

    fn take_if_free(&mut self, range: &Range<u64>) -> bool {
        let before = self.taken.range(..range.end).next_back();
        let is_free = before.is_none_or(|(_, &end)| end <= range.start);
        if is_free {
            self.taken.insert(range.start, range.end);
        }
        is_free
    }

    /// Gives those that wait for a part of `range` theirs, where it is their turn.
    fn give(&mut self, range: &Range<u64>) -> Vec<Waker> {
        let mut woken = Vec::new();
        for at in 0..self.waiting.len() {
            let wanted = self.waiting[at].range.clone();
            if self.waiting[at].is_given || !overlap(&wanted, range) {
                continue;
            }
            let before = self.waiting.range(..at);
            let is_next = before.clone().all(|w| w.is_given || !overlap(&w.range, &wanted));
            if is_next && self.take_if_free(&wanted) {
                self.waiting[at].is_given = true;
                woken.push(self.waiting[at].waker.clone());
            }
        }
        woken
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Future for Taking {
    type Output = RangeLock;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<RangeLock> {
        let (locks, range) = (self.locks.clone(), self.range.clone());
        let mut state = lock(&locks.0);
        let Some(id) = self.id else {
            if state.try_take(&range) {
                drop(state);
                return Poll::Ready(RangeLock { locks, range });
            }
            let id = state.next_id;
            state.next_id += 1;
            let waker = cx.waker().clone();
            state.waiting.push_back(Waiting { id, range, waker, is_given: false });
            self.id = Some(id);
            return Poll::Pending;
        };
        let at = state.waiting.iter().position(|w| w.id == id).expect("it waits until it has its range");
        if !state.waiting[at].is_given {
            state.waiting[at].waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        state.waiting.remove(at);
        self.id = None;
        drop(state);
        Poll::Ready(RangeLock { locks, range })
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        self.locks.free(&self.range, |state| {
            let gone = state.waiting.iter().position(|w| w.id == id).and_then(|at| state.waiting.remove(at));
            if gone.is_some_and(|w| w.is_given) {
                state.taken.remove(&self.range.start);
            }
        });
    }
}

impl Drop for RangeLock {
    fn drop(&mut self) {
        self.locks.free(&self.range, |state| {
            state.taken.remove(&self.range.start);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    type Asked = Pin<Box<dyn Future<Output = RangeLock>>>;

    fn ask(locks: &RangeLocks, range: Range<u64>) -> Asked {
        let locks = locks.clone();
        Box::pin(async move { locks.take(range).await })
    }

    fn poll(asked: &mut Asked) -> Option<RangeLock> {
        match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(taken) => Some(taken),
            Poll::Pending => None,
        }
    }

    #[test]
    fn overlapping_ranges_wait_and_others_do_not() {
        let mut cx = Context::from_waker(Waker::noop());
        let locks = RangeLocks::default();
        let Poll::Ready(first) = pin!(locks.take(10..20)).as_mut().poll(&mut cx) else { panic!("free") };
        let Poll::Ready(_beside) = pin!(locks.take(20..30)).as_mut().poll(&mut cx) else {
            panic!("beside, not over")
        };
        let mut over = ask(&locks, 5..11);
        assert!(poll(&mut over).is_none());
        drop(first);
        assert!(poll(&mut over).is_some());
    }

    /// A write of a megabyte waited for seconds while blocks in it were written one after the other.
    #[test]
    fn a_wide_range_is_not_overtaken() {
        let locks = RangeLocks::default();
        let held = poll(&mut ask(&locks, 0..1)).unwrap();
        let (mut wide, mut narrow, mut apart) =
            (ask(&locks, 0..100), ask(&locks, 50..51), ask(&locks, 100..101));
        assert!(poll(&mut wide).is_none());
        assert!(poll(&mut narrow).is_none(), "it is free, and asked for");
        assert!(poll(&mut apart).is_some());
        drop(held);
        let taken = poll(&mut wide).unwrap();
        assert!(poll(&mut narrow).is_none());
        drop(taken);
        assert!(poll(&mut narrow).is_some());
    }

    #[test]
    fn one_that_is_given_up_is_in_nobodys_way() {
        let locks = RangeLocks::default();
        let held = poll(&mut ask(&locks, 0..1)).unwrap();
        let (mut wide, mut narrow) = (ask(&locks, 0..100), ask(&locks, 50..51));
        assert!(poll(&mut wide).is_none() && poll(&mut narrow).is_none());
        drop(wide);
        let narrow = poll(&mut narrow).unwrap();
        let (mut wide, mut after) = (ask(&locks, 0..100), ask(&locks, 7..8));
        assert!(poll(&mut wide).is_none() && poll(&mut after).is_none());
        drop((held, narrow));
        // It has its range by now, and does not know yet.
        drop(wide);
        assert!(poll(&mut after).is_some());
        assert!(lock(&locks.0).taken.is_empty() && lock(&locks.0).waiting.is_empty());
    }

    #[test]
    fn whatever_comes_and_goes_nothing_overlaps_and_nothing_is_forgotten() {
        for seed in 1..200u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut below = |n: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % n
            };
            let locks = RangeLocks::default();
            let (mut asked, mut held): (Vec<(Range<u64>, Asked)>, Vec<RangeLock>) = Default::default();
            for _ in 0..300 {
                match below(4) {
                    0 | 1 => {
                        let start = below(40);
                        let range = start..start + 1 + below(12);
                        let mut new = ask(&locks, range.clone());
                        let overtakes = asked.iter().any(|(other, _)| overlap(other, &range));
                        match poll(&mut new) {
                            Some(taken) => {
                                assert!(!overtakes, "seed {seed}: {range:?}");
                                held.push(taken);
                            }
                            None => asked.push((range, new)),
                        }
                    }
                    2 if !held.is_empty() => drop(held.swap_remove(below(held.len() as u64) as usize)),
                    _ if !asked.is_empty() => drop(asked.remove(below(asked.len() as u64) as usize)),
                    _ => {}
                }
                asked.retain_mut(|(_, one)| match poll(one) {
                    Some(taken) => {
                        held.push(taken);
                        false
                    }
                    None => true,
                });
                for (at, one) in held.iter().enumerate() {
                    assert!(held[..at].iter().all(|other| !overlap(&one.range, &other.range)), "seed {seed}");
                }
            }
            drop(held);
            while !asked.is_empty() {
                let before = asked.len();
                asked.retain_mut(|(_, one)| poll(one).is_none());
                assert!(asked.len() < before, "seed {seed}: some wait for nothing");
            }
            assert!(lock(&locks.0).taken.is_empty());
        }
    }
}
