//! Whether two devices of a pool have one past: what their uberblocks tell. Pure.
//!
//! ```text
//!   ours     … 13  14  15  16  17  18                the same root in the same txg: a state that both have had
//!   other    … 13  14  15  16' 17' 18' … 75'         another root: it went on alone, and 15 is the last they share
//! ```
//!
//! One such txg alone, not newer than ours, is one that was cut short by a crash before all devices had it, and nothing that
//! was promised. Two are not: the device was used without the others, as a half of a mirror is when the other half is away.
//! Each of the two has then what the other has not, under the same txgs; the places that one uses are free to the other.
//! So the higher txg says nothing about which is to be kept, and a ring with both in it leads into a tree that was written
//! over since. Nor is what both had before still whole on both: each has reused places that it had freed.
//!
//! [`Past`] is what the open pool knows of its own states: the rings it was opened with, and every one since.

use ondisk::{BlockPointer, Uberblock};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use units::{Endian, Txg};

/// How a device departs from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The last state that both have had, if any is still known.
    pub common: Option<Txg>,
    /// The first and the last of its own.
    pub first: Txg,
    pub last: Txg,
    /// It is more than a txg that was cut short.
    pub went_on: bool,
}

impl Departure {
    /// What the device may lack, or have otherwise, begins here. What one txg frees is not reused in it.
    pub fn missing_from(&self) -> Txg {
        let common = self.common.filter(|_| !self.went_on);
        common.map_or(Txg::INITIAL, Txg::next)
    }

    /// Whether an uberblock of the device leads to what is not the pool's. Of a device that misses everything each does:
    /// without any it is known to, should the pool end before that is kept in it.
    pub fn is_foreign(&self, uberblock: &Uberblock) -> bool {
        let common = self.common.filter(|_| !self.went_on);
        common.is_none_or(|common| uberblock.txg > common)
    }
}

/// So many states are remembered: the first ones, from which a device departs that was away when the pool was opened, and
/// the last. A ring has no more than 128.
const FIRST_MAX: usize = 256;
const STATES_MAX: usize = 1024;

/// What is the same in two uberblocks of one state; heartbeats have the root of the state that they were written in.
fn mark_of(root: &BlockPointer) -> u64 {
    let mut hasher = DefaultHasher::new();
    root.to_bytes(Endian::Little).hash(&mut hasher);
    hasher.finish()
}

/// The states that the pool has had.
#[derive(Debug, Default)]
pub struct Past {
    /// By txg.
    marks: BTreeMap<u64, u64>,
    /// All states from this txg on are known, but the forgotten ones.
    whole_from: Option<u64>,
    forgotten: Option<(u64, u64)>,
    /// When the last one was written.
    timestamp: u64,
}

impl Past {
    /// A pool that is opened in the newest of these states.
    pub fn of<'a>(rings: impl IntoIterator<Item = &'a Uberblock>) -> Past {
        let (mut past, mut last) = (Past::default(), None);
        for uberblock in rings {
            past.marks.insert(uberblock.txg.0, mark_of(&uberblock.root));
            last = last.max(Some((uberblock.txg, uberblock.timestamp)));
        }
        past.timestamp = last.map_or(0, |(_, timestamp)| timestamp);
        past
    }

    /// The state that is being committed, or was.
    pub fn add(&mut self, uberblock: &Uberblock) {
        let Txg(txg) = uberblock.txg;
        self.whole_from.get_or_insert(txg);
        self.marks.insert(txg, mark_of(&uberblock.root));
        self.timestamp = uberblock.timestamp;
        if self.marks.len() > STATES_MAX
            && let Some(&txg) = self.marks.keys().nth(FIRST_MAX)
        {
            self.marks.remove(&txg);
            let first = self.forgotten.map_or(txg, |(first, _)| first);
            self.forgotten = Some((first, txg));
        }
    }

    pub fn latest(&self) -> Option<Txg> {
        self.marks.keys().next_back().copied().map(Txg)
    }

    /// The pool had no state of this txg.
    fn never_had(&self, txg: u64) -> bool {
        let is_forgotten = self.forgotten.is_some_and(|(first, last)| (first..=last).contains(&txg));
        self.whole_from.is_some_and(|from| txg >= from) && !is_forgotten
    }

    fn has(&self, uberblock: &Uberblock) -> bool {
        self.marks.get(&uberblock.txg.0) == Some(&mark_of(&uberblock.root))
    }

    /// How a device with these uberblocks departs from them: what it has of its own since the last state of both. Pools that
    /// earlier versions made have two states of their first txg, and not each device has the same.
    pub fn departure(&self, other: &[Uberblock]) -> Option<Departure> {
        let latest = self.latest()?;
        let common = other.iter().filter(|u| self.has(u)).map(|u| u.txg).max();
        let is_own = |u: &&Uberblock| {
            let is_known = self.marks.contains_key(&u.txg.0) || self.never_had(u.txg.0);
            u.txg > common.unwrap_or(Txg::INITIAL) && (is_known || u.txg > latest)
        };
        let own: Vec<&Uberblock> = other.iter().filter(is_own).collect();
        let first = own.iter().map(|u| u.txg).min()?;
        let last = own.iter().map(|u| u.txg).max()?;
        let is_newer = own.iter().any(|u| (u.txg, u.timestamp) > (latest, self.timestamp));
        Some(Departure { common, first, last, went_on: first != last || is_newer })
    }

    /// A device with these uberblocks has had states of the pool, and no others since.
    pub fn agrees(&self, other: &[Uberblock]) -> bool {
        other.iter().any(|u| self.has(u)) && self.departure(other).is_none()
    }

    /// Of a device whose states are all forgotten or were never known: one that misses everything since before its newest
    /// state went on alone, or it failed or was being made whole when it went. It cannot be told which, so nothing that it
    /// has is believed.
    pub fn unknown(&self, other: &[Uberblock], missing: &[RangeInclusive<Txg>]) -> Option<Departure> {
        let latest = self.latest()?;
        let last = other.iter().map(|u| u.txg).max()?;
        if other.iter().any(|u| self.marks.contains_key(&u.txg.0)) {
            return None;
        }
        let range = missing.iter().find(|range| range.contains(&last) && latest <= *range.end())?;
        Some(Departure { common: None, first: *range.start(), last, went_on: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ondisk::{BlockPointer, Hole, ObjectType, RaidzReflow};
    use units::Lsize;

    /// Of a txg, in a history of its own.
    fn state(txg: u64, history: u64) -> Uberblock {
        let birth = Txg(txg * 1000 + history);
        let root = BlockPointer::Hole(Hole { lsize: Lsize(512), kind: ObjectType::NONE, level: 0, birth });
        Uberblock {
            version: 5000,
            txg: Txg(txg),
            guid_sum: 1,
            timestamp: txg + history,
            root,
            software_version: 0,
            mmp: None,
            checkpoint_txg: Txg::NONE,
            reflow: RaidzReflow::default(),
        }
    }

    fn states(txgs: std::ops::RangeInclusive<u64>, history: u64) -> Vec<Uberblock> {
        txgs.map(|txg| state(txg, history)).collect()
    }

    fn departure(ours: &[Uberblock], other: &[Uberblock]) -> Option<Departure> {
        Past::of(ours).departure(other)
    }

    #[test]
    fn a_device_that_is_behind_or_was_cut_short_did_not_go_on() {
        let ours = states(10..=20, 1);
        assert_eq!(departure(&ours, &states(5..=15, 1)), None);
        assert_eq!(departure(&ours, &states(1..=3, 1)), None, "too long ago to tell");
        let cut = [states(10..=14, 1), vec![state(15, 0)]].concat();
        let found = departure(&ours, &cut).unwrap();
        assert!(!found.went_on && found.missing_from() == Txg(15), "{found:?}");
        assert!(found.is_foreign(&state(15, 0)) && !found.is_foreign(&state(14, 1)));
    }

    #[test]
    fn a_device_that_went_on_is_known_by_its_roots_or_by_its_txg() {
        let ours = states(10..=20, 1);
        for (last, history) in [(17, 0), (30, 0), (30, 2)] {
            let other = [states(10..=15, 1), states(16..=last, history)].concat();
            let found = departure(&ours, &other).unwrap();
            let expected =
                Departure { common: Some(Txg(15)), first: Txg(16), last: Txg(last), went_on: true };
            assert_eq!(found, expected);
            assert_eq!(found.missing_from(), Txg::INITIAL, "it has reused places of what both had");
            assert!(found.is_foreign(&state(16, history)) && found.is_foreign(&state(15, 1)));
        }
        // Its ring has nothing left of what they had in common.
        let found = departure(&ours, &states(21..=60, 0)).unwrap();
        assert!(found.went_on && found.missing_from() == Txg::INITIAL, "{found:?}");
    }

    #[test]
    fn an_open_pool_knows_which_txgs_it_never_had() {
        let mut past = Past::of(&states(10..=15, 1));
        [17, 19, 25].iter().for_each(|txg| past.add(&state(*txg, 1)));
        let found = past.departure(&[state(15, 1), state(18, 0), state(20, 0)]).unwrap();
        assert!(found.went_on && found.common == Some(Txg(15)), "{found:?}");
        // Before it was opened states may be on other devices alone.
        assert_eq!(past.departure(&[state(9, 0), state(16, 0)]), None);
        // A heartbeat comes later than its state.
        let late = Uberblock { timestamp: 99, ..state(25, 1) };
        assert_eq!(past.departure(&[late]), None);
    }

    /// Each device that had the first of the two was taken for one that lacks everything.
    #[test]
    fn a_txg_that_was_written_twice_is_no_departure_of_a_device_that_got_later_ones() {
        let ours = [state(4, 2), state(5, 1), state(6, 1)];
        let other = [state(4, 1), state(6, 1)];
        assert_eq!(departure(&ours, &other), None);
        assert!(Past::of(&ours).agrees(&other));
        assert_eq!(departure(&ours, &[state(4, 1)]), None);
        let found = departure(&ours, &[state(4, 1), state(5, 1), state(6, 2), state(7, 2)]).unwrap();
        assert_eq!((found.common, found.first, found.went_on), (Some(Txg(5)), Txg(6), true));
    }

    #[test]
    fn a_pool_that_is_open_for_long_remembers_where_it_began_and_where_it_is() {
        let mut past = Past::of(&states(10..=100, 1));
        (101..=9000).for_each(|txg| past.add(&state(txg, 1)));
        assert_eq!(past.marks.len(), STATES_MAX);
        let alone = [states(90..=100, 1), states(101..=130, 2)].concat();
        assert!(past.departure(&alone).unwrap().went_on);
        assert_eq!(past.departure(&states(90..=100, 1)), None);
        assert!(past.departure(&states(8990..=9010, 2)).unwrap().went_on);
        // Away since a txg that is forgotten, and behind; or with more than it can have.
        let forgotten = states(4000..=4100, 1);
        assert_eq!(past.departure(&forgotten), None);
        assert_eq!(past.unknown(&forgotten, &[Txg(4101)..=Txg(9002)]), None);
        let found = past.unknown(&forgotten, &[Txg(4001)..=Txg(9002)]).unwrap();
        assert_eq!((found.missing_from(), found.went_on), (Txg::INITIAL, false));
        assert!(forgotten.iter().all(|u| found.is_foreign(u)));
    }
}
