//! The txgs of which a device misses something: what OpenZFS calls its dirty time log.
//!
//! ```text
//!   a write or a flush fails ──▶ add ──┐                        ┌─▶ contains(birth): do not believe what it has
//!   opened, older than its sisters ────┼──▶ [first, last] … ────┼─▶ kept in the pool, a space map of txgs
//!   kept in the pool, at open ─────────┘            ▲           └─▶ resilver
//!                                                   └── remove_to, when a scan has seen to everything up to a txg
//! ```
//!
//! A block that was born in a missing txg may be old or nothing on the device, though the device is well. Its checksum
//! would tell, if it has one; so the device is asked last, and for a block without a checksum not at all.
//!
//! What changed since it was last kept in the pool is not *kept*: until it is, the device must not get the uberblock,
//! so that after a crash its labels tell that it is behind.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::Txg;

/// See the module. Ranges that touch are one.
#[derive(Debug, Default)]
pub struct Missing {
    is_any: AtomicBool,
    state: Mutex<State>,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Disjoint, not adjacent, ascending.
    ranges: Vec<(u64, u64)>,
    version: u64,
    kept: u64,
}

/// So many gaps are told apart; then the nearest are closed: a device that misses more is resilvered more.
const RANGES_MAX: usize = 256;

impl Missing {
    pub fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Whether something born in `txg` may be missing; of an unknown txg, whether anything may.
    pub fn contains(&self, txg: Option<Txg>) -> bool {
        if !self.is_any() {
            return false;
        }
        let state = self.lock();
        txg.is_none_or(|Txg(txg)| state.ranges.iter().any(|&(first, last)| (first..=last).contains(&txg)))
    }

    pub fn ranges(&self) -> Vec<RangeInclusive<Txg>> {
        self.lock().ranges.iter().map(|&(first, last)| Txg(first)..=Txg(last)).collect()
    }

    /// The first and the last txg of which anything is missing.
    pub fn span(&self) -> Option<(Txg, Txg)> {
        let state = self.lock();
        Some((Txg(state.ranges.first()?.0), Txg(state.ranges.last()?.1)))
    }

    pub fn add(&self, txgs: RangeInclusive<Txg>) {
        let (Txg(mut first), Txg(mut last)) = txgs.into_inner();
        if first > last {
            return;
        }
        let mut state = self.lock();
        if state.ranges.iter().any(|&(a, b)| a <= first && last <= b) {
            return;
        }
        state.ranges.retain(|&(a, b)| {
            let is_apart = b.saturating_add(1) < first || last.saturating_add(1) < a;
            if !is_apart {
                (first, last) = (first.min(a), last.max(b));
            }
            is_apart
        });
        let at = state.ranges.partition_point(|&(a, _)| a < first);
        state.ranges.insert(at, (first, last));
        if state.ranges.len() > RANGES_MAX {
            close_smallest_gap(&mut state.ranges);
        }
        self.changed(&mut state);
    }

    /// Everything up to `txg` is there by now.
    pub fn remove_to(&self, Txg(txg): Txg) {
        let mut state = self.lock();
        let before = state.ranges.clone();
        state.ranges.retain(|&(_, last)| last > txg);
        if let Some((first, _)) = state.ranges.first_mut() {
            *first = (*first).max(txg + 1);
        }
        if state.ranges != before {
            self.changed(&mut state);
        }
    }

    /// Counts an operation that failed: a repair of the device sees by it whether all went well.
    pub fn failed(&self) {
        self.failures.fetch_add(1, Ordering::AcqRel);
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Acquire)
    }

    /// What is to be kept in the pool, and by what [`Missing::set_kept`] knows it; `None` when it is kept.
    pub fn unkept(&self) -> Option<(Vec<RangeInclusive<Txg>>, u64)> {
        let state = self.lock();
        let ranges = || state.ranges.iter().map(|&(first, last)| Txg(first)..=Txg(last)).collect();
        (state.version != state.kept).then(|| (ranges(), state.version))
    }

    pub fn set_kept(&self, version: u64) {
        let mut state = self.lock();
        state.kept = state.kept.max(version);
    }

    fn changed(&self, state: &mut State) {
        state.version += 1;
        self.is_any.store(!state.ranges.is_empty(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn close_smallest_gap(ranges: &mut Vec<(u64, u64)>) {
    let gap = |i: usize| ranges[i + 1].0 - ranges[i].1;
    if let Some(i) = (0..ranges.len() - 1).min_by_key(|&i| gap(i)) {
        ranges[i].1 = ranges[i + 1].1;
        ranges.remove(i + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> RangeInclusive<Txg> {
        Txg(first)..=Txg(last)
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let missing = Missing::default();
        for (first, last) in [(10, 12), (20, 20), (13, 14), (5, 8), (9, 9)] {
            missing.add(range(first, last));
        }
        assert_eq!(missing.ranges(), [range(5, 14), range(20, 20)]);
        assert!(
            missing.contains(Some(Txg(14))) && !missing.contains(Some(Txg(15))) && missing.contains(None)
        );
        missing.remove_to(Txg(9));
        assert_eq!(missing.span(), Some((Txg(10), Txg(20))));
        missing.remove_to(Txg(20));
        assert!(!missing.is_any() && !missing.contains(None));
    }

    #[test]
    fn a_change_is_kept_only_when_it_was_told() {
        let missing = Missing::default();
        assert_eq!(missing.unkept(), None);
        missing.add(range(3, 4));
        let (ranges, version) = missing.unkept().unwrap();
        assert_eq!(ranges, [range(3, 4)]);
        missing.add(range(3, 5));
        missing.set_kept(version);
        assert!(missing.unkept().is_some(), "it changed while it was written");
        missing.set_kept(missing.unkept().unwrap().1);
        missing.add(range(4, 5));
        assert_eq!(missing.unkept(), None, "nothing new");
    }

    #[test]
    fn too_many_gaps_are_closed_from_the_smallest() {
        let missing = Missing::default();
        (0..RANGES_MAX as u64).for_each(|i| missing.add(range(i * 100, i * 100)));
        missing.add(range(503, 503));
        assert_eq!(missing.ranges().len(), RANGES_MAX);
        assert!(missing.contains(Some(Txg(501))) && !missing.contains(Some(Txg(601))));
    }
}
