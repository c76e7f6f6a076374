//! How far a scan has come, so that it goes on there after a pause, an export or a crash. Pure.
//!
//! ```text
//!   order   MOS │ snapshots by the txg they were taken in │ heads by directory │       each in the order of its data
//!                     a snapshot that is destroyed leaves its blocks to a later one ──▶
//! ```
//!
//! What was born before the scan began is in a snapshot of that time, or in what was a head then: the head itself, or a
//! snapshot that was taken of it since ([`Part::Head`]). Blocks move only from a snapshot to a later one of the same line, or
//! with all that is theirs from a directory to the clone that is promoted; so what is behind a position stays seen, whatever
//! is done to the datasets meanwhile, and a position is good in every later txg.
//!
//! Within a part, blocks are looked at several at a time and repaired in batches. [`Track`] knows up to where all of them
//! are done: what is under way, waits for its repair or could not be looked at holds the position back.
//!
//! The position is kept in the pool beside OpenZFS's own state of the scan, whose list of datasets is left empty: OpenZFS
//! begins such a scan from the start. What it has begun, or begun anew, has another start or last txg, so that a position of
//! ours is not taken for one of its own scans.

use std::collections::BTreeMap;
use units::{Guid, ObjectId, Txg};

/// A block of data: an object and a block of it. The positions of a walk are in this order.
pub(crate) type Place = (u64, u64);

/// What is walked at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Mos,
    Snapshot {
        created: Txg,
        id: ObjectId,
    },
    /// What was the head of this directory when the scan began.
    Head {
        dir: ObjectId,
    },
}

/// Everything in earlier parts is done, and of this one all data before `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub part: Part,
    pub from: Place,
}

impl Default for Position {
    fn default() -> Position {
        Position::START
    }
}

impl Position {
    pub const START: Position = Position { part: Part::Mos, from: (0, 0) };

    /// Behind all of a part.
    pub fn behind(part: Part) -> Position {
        Position { part, from: (u64::MAX, u64::MAX) }
    }
}

/// A position as the pool keeps it.
///
/// ```text
///   words   0  form (1)    1  start of the scan    2  its last txg    3  kind of part    4  created    5  object
///           6  object of data    7  block    8 …  guids of the devices that have all that is before
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Seconds since 1970.
    pub start_time: u64,
    pub max_txg: Txg,
    pub position: Position,
    /// The devices that missed something and have been given what is before the position.
    pub healed: Vec<Guid>,
}

/// The form of what is kept. A program that knows another one begins from the start.
const FORM: u64 = 1;
/// A pool has fewer devices that miss something; an entry of the directory holds no more words.
pub(crate) const HEALED_MAX: usize = 900;

impl Kept {
    pub fn to_words(&self) -> Vec<u64> {
        let (kind, created, object) = match self.position.part {
            Part::Mos => (0, 0, 0),
            Part::Snapshot { created, id } => (1, created.0, id.0),
            Part::Head { dir } => (2, 0, dir.0),
        };
        let (data, block) = self.position.from;
        let head = [FORM, self.start_time, self.max_txg.0, kind, created, object, data, block];
        head.into_iter().chain(self.healed.iter().map(|guid| guid.0)).collect()
    }

    /// `None` for what is in another form, or makes no sense.
    pub fn from_words(words: &[u64]) -> Option<Kept> {
        let (&[form, start_time, max_txg, kind, created, object, data, block], healed) =
            words.split_first_chunk()?;
        let part = match kind {
            0 => Part::Mos,
            1 => Part::Snapshot { created: Txg(created), id: ObjectId(object) },
            2 => Part::Head { dir: ObjectId(object) },
            _ => return None,
        };
        (form == FORM).then(|| Kept {
            start_time,
            max_txg: Txg(max_txg),
            position: Position { part, from: (data, block) },
            healed: healed.iter().copied().map(Guid).collect(),
        })
    }
}

/// Which blocks of one part are done. Blocks are met in order and done in any.
#[derive(Debug)]
pub(crate) struct Track {
    /// Data before it was seen in an earlier pass.
    from: Place,
    /// What is behind everything met so far.
    next: Place,
    /// Met and not done, by place.
    pending: BTreeMap<Place, usize>,
    safe: Place,
    /// Something may have been missed: the position stays where it is until the walk is over.
    is_frozen: bool,
}

impl Track {
    pub fn new(from: Place) -> Track {
        Track { from, next: from, pending: BTreeMap::new(), safe: from, is_frozen: false }
    }

    /// The part is walked from its beginning; what was safe stays so.
    pub fn begin(&mut self) {
        (self.next, self.is_frozen) = (self.from, false);
        self.pending.clear();
    }

    /// A block is met: data at a place, or, without one, what leads to data behind everything met so far. Answers the turn
    /// that is to be given back to [`Track::done`]; `None` for data that need not be seen again.
    pub fn meet(&mut self, place: Option<Place>) -> Option<Place> {
        let turn = match place {
            Some(place) if place < self.from => return None,
            Some(place) => {
                self.next = self.next.max(after(place));
                place
            }
            None => self.next,
        };
        *self.pending.entry(turn).or_default() += 1;
        Some(turn)
    }

    /// Whether data was met that an earlier pass had not seen. What leads to data is seen in every pass, and counted once.
    pub fn is_new_ground(&self) -> bool {
        self.from == (0, 0) || self.next > self.from
    }

    /// Nothing is to be done about a block any more.
    pub fn done(&mut self, turn: Place) {
        if let Some(count) = self.pending.get_mut(&turn) {
            *count -= 1;
            if *count == 0 {
                self.pending.remove(&turn);
            }
        }
        if !self.is_frozen {
            let first = self.pending.first_key_value().map_or(self.next, |(place, _)| *place);
            self.safe = self.safe.max(first);
        }
    }

    /// Something could not be looked at.
    pub fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// All data before it is done.
    pub fn safe(&self) -> Place {
        self.safe
    }
}

fn after((object, block): Place) -> Place {
    match block.checked_add(1) {
        Some(block) => (object, block),
        None => (object.saturating_add(1), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_position_is_read_as_it_was_written_and_other_forms_are_not_believed() {
        let parts = [
            Part::Mos,
            Part::Snapshot { created: Txg(70), id: ObjectId(9) },
            Part::Head { dir: ObjectId(u64::MAX) },
        ];
        for part in parts {
            let position = Position { part, from: (3, 1 << 40) };
            let kept = Kept { start_time: 5, max_txg: Txg(90), position, healed: vec![Guid(7), Guid(8)] };
            assert_eq!(Kept::from_words(&kept.to_words()), Some(kept.clone()));
            let mut other = kept.to_words();
            other[0] += 1;
            assert_eq!(Kept::from_words(&other), None);
            other[0] -= 1;
            other[3] = 3;
            assert_eq!(Kept::from_words(&other), None);
            assert_eq!(Kept::from_words(&other[..7]), None);
        }
    }

    #[test]
    fn parts_are_in_the_order_in_which_blocks_move() {
        let snapshot = |created, id| Part::Snapshot { created: Txg(created), id: ObjectId(id) };
        let order = [Part::Mos, snapshot(4, 90), snapshot(5, 2), Part::Head { dir: ObjectId(1) }];
        assert!(order.is_sorted());
        assert!(Position::START < Position::behind(Part::Mos));
        assert!(Position::behind(order[1]) < Position { part: order[2], from: (0, 0) });
    }

    #[test]
    fn what_is_under_way_holds_the_position_back() {
        let mut track = Track::new((0, 0));
        let [a, b] = [(1, 0), (1, 1)].map(|place| track.meet(Some(place)).unwrap());
        let leads_on = track.meet(None).unwrap();
        let c = track.meet(Some((2, 0))).unwrap();
        track.done(b);
        assert_eq!(track.safe(), (1, 0));
        track.done(a);
        track.done(c);
        assert_eq!(track.safe(), (1, 2), "what leads on is not seen yet");
        track.done(leads_on);
        assert_eq!(track.safe(), (2, 1));
    }

    #[test]
    fn what_could_not_be_looked_at_holds_it_for_the_whole_walk_and_no_longer() {
        let mut track = Track::new((5, 0));
        assert_eq!(track.meet(Some((4, 9))), None, "an earlier pass has seen it");
        assert!(!track.is_new_ground());
        let a = track.meet(Some((5, 0))).unwrap();
        track.done(a);
        track.freeze();
        let b = track.meet(Some((6, 0))).unwrap();
        track.done(b);
        assert_eq!(track.safe(), (5, 1));
        track.begin();
        for place in [(5, 0), (6, 0)] {
            let turn = track.meet(Some(place)).unwrap();
            assert_eq!(track.safe(), (5, 1), "what was safe stays so");
            track.done(turn);
        }
        assert_eq!(track.safe(), (6, 1));
        assert_eq!(after((1, u64::MAX)), (2, 0));
    }

    /// Against the plain definition: the first place that was met and is not done.
    #[test]
    fn it_is_the_first_place_that_is_not_done_for_any_order() {
        for seed in 0..200 {
            let mut rng = sim::Rng::new(seed);
            let mut track = Track::new((0, 0));
            let (mut open, mut met): (Vec<Place>, u64) = (Vec::new(), 0);
            for _ in 0..100 {
                if open.is_empty() || rng.below(2) == 0 {
                    open.push(track.meet(Some((1, met))).unwrap());
                    met += 1;
                } else {
                    let turn = open.swap_remove(rng.below(open.len() as u64) as usize);
                    track.done(turn);
                    let first = open.iter().min().copied().unwrap_or((1, met));
                    assert_eq!(track.safe(), first, "seed {seed}");
                }
            }
        }
    }
}
