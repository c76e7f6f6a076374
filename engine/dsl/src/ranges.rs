//! The ranges of the deadlists that were used last, in memory.
//!
//! A dataset with thousands of snapshots has thousands of ranges, and each snapshot that is taken or destroyed asks for
//! those of its head. Reading them anew takes longer than all else that the operation does.
//!
//! ```text
//!   Remembered ── object ──▶ Ranges ── known? ── yes ──▶ a shared map
//!                              ▲             └── no ───▶ read, and kept unless it changed meanwhile
//!                              └── every change goes through here, or is forgotten
//! ```
//!
//! Invariants: all that have a deadlist open share its `Ranges`; what is known is what the ZAP has.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{ObjectId, Result, Txg};

/// Enough for the snapshots and the head that one change is about, for some datasets side by side.
const KEPT: usize = 16;

/// Where ranges begin, exclusive, and the lists of their blocks.
///
/// In a row, by txg: each snapshot copies the map for the head, which of ten thousand ranges is 160K in one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Map(Vec<(Txg, ObjectId)>);

impl Map {
    fn find(&self, txg: Txg) -> Result<usize, usize> {
        self.0.binary_search_by_key(&txg, |(begin, _)| *begin)
    }

    pub fn get(&self, txg: Txg) -> Option<ObjectId> {
        self.find(txg).ok().map(|at| self.0[at].1)
    }

    pub fn insert(&mut self, txg: Txg, list: ObjectId) {
        match self.find(txg) {
            Ok(at) => self.0[at].1 = list,
            Err(at) => self.0.insert(at, (txg, list)),
        }
    }

    pub fn remove(&mut self, txg: Txg) {
        if let Ok(at) = self.find(txg) {
            self.0.remove(at);
        }
    }

    /// Those that begin in `txgs`, in order; none where the bounds are crossed.
    pub fn within(&self, txgs: impl RangeBounds<Txg>) -> &[(Txg, ObjectId)] {
        let before = |txg: &Txg| self.0.partition_point(|(begin, _)| begin < txg);
        let through = |txg: &Txg| self.0.partition_point(|(begin, _)| begin <= txg);
        let from = match txgs.start_bound() {
            Bound::Included(txg) => before(txg),
            Bound::Excluded(txg) => through(txg),
            Bound::Unbounded => 0,
        };
        let to = match txgs.end_bound() {
            Bound::Included(txg) => through(txg),
            Bound::Excluded(txg) => before(txg),
            Bound::Unbounded => self.0.len(),
        };
        self.0.get(from..to).unwrap_or_default()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, (Txg, ObjectId)> {
        self.0.iter()
    }
}

impl FromIterator<(Txg, ObjectId)> for Map {
    /// In any order; of two that begin in the same txg the first stays.
    fn from_iter<I: IntoIterator<Item = (Txg, ObjectId)>>(all: I) -> Map {
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(txg, _)| *txg);
        all.dedup_by_key(|(txg, _)| *txg);
        Map(all)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ranges(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: Option<Arc<Map>>,
    /// Changes begun and ended.
    changes: u64,
}

impl Ranges {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ranges, from memory or as `read` finds them.
    pub async fn get(&self, read: impl Future<Output = Result<Map>>) -> Result<Arc<Map>> {
        let before = {
            let state = self.lock();
            if let Some(known) = &state.known {
                return Ok(known.clone());
            }
            state.changes
        };
        let found = Arc::new(read.await?);
        let mut state = self.lock();
        if state.changes == before {
            state.known = Some(found.clone());
        }
        Ok(found)
    }

    /// Changes them: in the ZAP by `write`, then here as it did.
    pub async fn change(
        &self,
        write: impl Future<Output = Result<()>>,
        same: impl FnOnce(&mut Map),
    ) -> Result<()> {
        self.lock().changes += 1;
        let written = write.await;
        let mut state = self.lock();
        state.changes += 1;
        match &written {
            Ok(()) => {
                if let Some(known) = &mut state.known {
                    same(Arc::make_mut(known));
                }
            }
            Err(_) => state.known = None,
        }
        written
    }

    /// They are these: it was made just now.
    pub fn are(&self, map: Map) {
        self.lock().known = Some(Arc::new(map));
    }
}

/// Of one pool.
#[derive(Debug, Default)]
pub(crate) struct Remembered(Mutex<VecDeque<(ObjectId, Arc<Ranges>)>>);

impl Remembered {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(ObjectId, Arc<Ranges>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of the deadlist `id`, which all share that ask.
    pub fn of(&self, id: ObjectId) -> Arc<Ranges> {
        let mut all = self.lock();
        let entry = match all.iter().position(|(of, _)| *of == id).and_then(|at| all.remove(at)) {
            Some(entry) => entry,
            None => (id, Arc::default()),
        };
        let ranges = entry.1.clone();
        all.push_back(entry);
        // One that is in use stays, so that there is no second one of the same deadlist.
        if all.len() > KEPT
            && let Some(oldest) = all.iter().position(|(_, ranges)| Arc::strong_count(ranges) == 1)
        {
            all.remove(oldest);
        }
        ranges
    }

    /// The number has a new deadlist.
    pub fn forget(&self, id: ObjectId) {
        self.lock().retain(|(of, _)| *of != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use units::{Error, Kind};

    fn now<T>(future: impl Future<Output = T>) -> T {
        future.now_or_never().expect("nothing is waited for")
    }

    fn map(keys: &[u64]) -> Map {
        keys.iter().map(|key| (Txg(*key), ObjectId(*key))).collect()
    }

    fn asked(ranges: &Ranges, found: &[u64]) -> Map {
        (*now(ranges.get(async { Ok(map(found)) })).unwrap()).clone()
    }

    #[test]
    fn they_are_read_once_and_follow_what_is_written() {
        let ranges = Ranges::default();
        assert_eq!(asked(&ranges, &[0, 4]), map(&[0, 4]));
        let add = |known: &mut Map| known.insert(Txg(7), ObjectId(7));
        now(ranges.change(async { Ok(()) }, add)).unwrap();
        assert_eq!(asked(&ranges, &[]), map(&[0, 4, 7]), "they are not read again");
        let failed = now(ranges.change(async { Err(Error::new(Kind::Io, "write")) }, |_| ()));
        assert!(failed.is_err());
        assert_eq!(asked(&ranges, &[9]), map(&[9]), "what the ZAP has now is not known");
    }

    #[test]
    fn a_row_in_order_is_the_map_that_it_replaces() {
        use std::collections::BTreeMap;
        let mut random = sim::Rng::new(7);
        let mut pick = |n: u64| random.next_u64() % n;
        for _ in 0..50 {
            let start: Vec<_> = (0..pick(20)).map(|_| (Txg(pick(60)), ObjectId(pick(9)))).collect();
            let mut model: BTreeMap<Txg, ObjectId> = BTreeMap::new();
            start.iter().for_each(|(txg, list)| _ = model.entry(*txg).or_insert(*list));
            let mut map: Map = start.into_iter().collect();
            for _ in 0..60 {
                let (txg, list, to) = (Txg(pick(60)), ObjectId(pick(9)), Txg(pick(60)));
                if pick(2) == 0 {
                    map.insert(txg, list);
                    model.insert(txg, list);
                } else {
                    map.remove(txg);
                    model.remove(&txg);
                }
                let all = |found: &[(Txg, ObjectId)]| found.to_vec();
                let pairs = |(txg, list): (&Txg, &ObjectId)| (*txg, *list);
                assert_eq!(map.get(to), model.get(&to).copied());
                assert_eq!(all(map.within(..)), model.iter().map(pairs).collect::<Vec<_>>());
                assert_eq!(all(map.within(..=to)), model.range(..=to).map(pairs).collect::<Vec<_>>());
                assert_eq!(all(map.within(to..)), model.range(to..).map(pairs).collect::<Vec<_>>());
                let crossed = match txg <= to {
                    true => model.range(txg..to).map(pairs).collect(),
                    false => Vec::new(),
                };
                assert_eq!(all(map.within(txg..to)), crossed);
            }
        }
    }

    #[test]
    fn what_changed_while_it_was_read_is_not_kept() {
        let ranges = Ranges::default();
        let read = async {
            ranges.change(async { Ok(()) }, |_| ()).await?;
            Ok(map(&[1]))
        };
        now(ranges.get(read)).unwrap();
        assert_eq!(asked(&ranges, &[2]), map(&[2]));
    }

    #[test]
    fn all_share_one_and_only_what_nobody_uses_is_forgotten() {
        let all = Remembered::default();
        let first = all.of(ObjectId(1));
        let second = Arc::downgrade(&all.of(ObjectId(2)));
        (3..100).for_each(|id| drop(all.of(ObjectId(id))));
        assert!(Arc::ptr_eq(&first, &all.of(ObjectId(1))));
        assert!(second.upgrade().is_none());
        all.forget(ObjectId(1));
        assert!(!Arc::ptr_eq(&first, &all.of(ObjectId(1))));
    }
}
