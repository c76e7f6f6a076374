//! Events recorded one by one, for as long as a reader takes them away.
//!
//! ```text
//!   thread A ── lane A: entries, behind a lock that only `take` asks for besides ─┐
//!   thread B ── lane B                                                            ├─ take ─▶ Taped: entries, dropped
//!   places: what the events' labels say, each combination once ───────────────────┘          new places
//! ```
//!
//! What is held is bounded: by a number of entries in all lanes together, and by [`PLACES_MAX`] places. An event beyond
//! either is counted as dropped and nothing else; a client never waits for the reader of a recording.
//!
//! An entry has the time at which its event began: the time at which it is told, less its latency.

use crate::breakdown::{Breakdown, Field};
use crate::counter::{Facts, Tests, lock};
use crate::event::{Label, Labels};
use crate::names::Op;
use crate::query::Query;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use units::{HashMap, Result};
use world::Instant;

/// So many places a recording tells apart; of further ones nothing is recorded.
pub const PLACES_MAX: usize = 4096;
/// So many labels of places a thread remembers: places of clients that come and go are told anew.
const KNOWN_MAX: usize = 8192;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it began, in nanoseconds since the recording did; 0 for what had begun before.
    pub at: u64,
    /// In nanoseconds.
    pub latency: u64,
    /// Its index among the places of the recording.
    pub place: u32,
    pub op: Op,
    pub object: u64,
    pub offset: u64,
    pub bytes: u64,
    pub durable: bool,
    pub failed: bool,
}

/// What was recorded since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taped {
    /// In no order of time: those of one thread after those of another.
    pub entries: Vec<Entry>,
    /// Those that are new, in the order of their indices: what is said of each.
    pub places: Vec<Vec<(Breakdown, String)>>,
    pub dropped: u64,
    /// More is there than was taken.
    pub has_more: bool,
}

/// See the module.
pub(crate) struct Tape {
    tests: Tests,
    began: Instant,
    capacity: usize,
    held: AtomicUsize,
    dropped: AtomicU64,
    lanes: Mutex<Vec<Arc<Lane>>>,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    by_words: BTreeMap<Vec<(Breakdown, String)>, u32>,
    /// In the order of their indices.
    all: Vec<Vec<(Breakdown, String)>>,
    taken: usize,
}

/// One thread's part of a tape.
pub(crate) struct Lane {
    tape: Arc<Tape>,
    state: Mutex<LaneState>,
}

#[derive(Default)]
struct LaneState {
    entries: Vec<Entry>,
    /// By the address of the labels, which are kept so that it stays theirs.
    known: HashMap<usize, (Arc<Labels>, u32)>,
}

impl Tape {
    pub fn new(query: &Query, label: impl Fn(&str) -> Label, capacity: usize) -> Result<Arc<Tape>> {
        Ok(Arc::new(Tape {
            tests: Tests::of(query, label)?,
            began: world::now(),
            capacity,
            held: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            lanes: Mutex::default(),
            places: Mutex::default(),
        }))
    }

    /// This thread's lane, until it is dropped.
    pub fn join(self: &Arc<Tape>) -> Arc<Lane> {
        let lane = Arc::new(Lane { tape: self.clone(), state: Mutex::default() });
        lock(&self.lanes).push(lane.clone());
        lane
    }

    pub fn take(&self, most: usize) -> Taped {
        let mut taped = Taped { dropped: self.dropped.swap(0, Relaxed), ..Taped::default() };
        lock(&self.lanes).retain(|lane| {
            // Asked before its entries are taken: a thread that has let go adds no more.
            let is_over = Arc::strong_count(lane) == 1;
            let mut state = lock(&lane.state);
            let rest = state.entries.len().saturating_sub(most - taped.entries.len());
            let first = state.entries.len() - rest;
            taped.entries.extend(state.entries.drain(..first));
            taped.has_more |= rest > 0;
            !(is_over && rest == 0)
        });
        self.held.fetch_sub(taped.entries.len(), Relaxed);
        // After the entries: a place is there before the first entry that names it.
        let mut places = lock(&self.places);
        taped.places = places.all[places.taken..].to_vec();
        places.taken = places.all.len();
        taped
    }

    /// The index of a place; `None` when there are too many.
    fn place(&self, labels: &Labels) -> Option<u32> {
        let words: Vec<(Breakdown, String)> = Breakdown::ALL
            .iter()
            .filter_map(|by| match by.field() {
                Field::Label(index) => Some((*by, labels.get(index)?.as_str().to_string())),
                _ => None,
            })
            .collect();
        let mut places = lock(&self.places);
        if let Some(known) = places.by_words.get(&words) {
            return Some(*known);
        }
        let index = u32::try_from(places.all.len()).ok().filter(|_| places.all.len() < PLACES_MAX)?;
        places.by_words.insert(words.clone(), index);
        places.all.push(words);
        Some(index)
    }
}

impl Lane {
    pub fn record(&self, facts: &Facts<'_>) {
        let tape = &self.tape;
        if !tape.tests.pass(facts) {
            return;
        }
        let drop_it = || {
            tape.dropped.fetch_add(1, Relaxed);
        };
        if tape.held.fetch_add(1, Relaxed) >= tape.capacity {
            tape.held.fetch_sub(1, Relaxed);
            return drop_it();
        }
        let mut state = lock(&self.state);
        let Some(place) = self.known(&mut state, facts.labels) else {
            tape.held.fetch_sub(1, Relaxed);
            return drop_it();
        };
        let event = &facts.event;
        let told = world::now().0.saturating_sub(tape.began.0);
        state.entries.push(Entry {
            at: told.saturating_sub(facts.nanos),
            latency: facts.nanos,
            place,
            op: event.op,
            object: event.object,
            offset: event.offset,
            bytes: event.bytes,
            durable: event.durable,
            failed: event.failed,
        });
    }

    fn known(&self, state: &mut LaneState, labels: &Arc<Labels>) -> Option<u32> {
        let address = Arc::as_ptr(labels).addr();
        if let Some((_, place)) = state.known.get(&address) {
            return Some(*place);
        }
        let place = self.tape.place(labels)?;
        if state.known.len() >= KNOWN_MAX {
            state.known.clear();
        }
        state.known.insert(address, (labels.clone(), place));
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Breakdown, Event, Family, Hub, Op};
    use std::time::Duration;

    fn in_world<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
        sim::run(1, sim::Config::default(), work)
    }

    #[test]
    fn each_event_that_passes_is_recorded_with_the_time_at_which_it_began() {
        in_world(async {
            let hub = Hub::new();
            let place = |client| {
                let labels = [(Breakdown::Client, client), (Breakdown::Dataset, "tank/v")];
                hub.probe(Family::Nbd, &labels)
            };
            let (a, again, b) = (place("a"), place("a"), place("b"));
            let tell = |probe: &crate::Probe, op, offset| {
                let latency = Duration::from_millis(1);
                probe.tell(|| Event { op, offset, bytes: 512, latency, durable: true, ..Event::default() });
            };
            tell(&a, Op::Write, 1);
            let recording = hub.record(&"nbd.ops[op=write]".parse().unwrap(), 100).unwrap();
            world::sleep(Duration::from_millis(5)).await;
            tell(&a, Op::Write, 2);
            tell(&a, Op::Read, 3);
            // Statistics that are opened meanwhile take nothing away.
            let opened = hub.open(&"nbd.ops".parse().unwrap()).unwrap();
            tell(&again, Op::Write, 4);
            tell(&b, Op::Write, 5);
            let taped = recording.take(2);
            let offsets: Vec<u64> = taped.entries.iter().map(|entry| entry.offset).collect();
            assert_eq!((offsets, taped.has_more, taped.places.len()), (vec![2, 4], true, 2));
            assert_eq!(taped.places[0][0], (Breakdown::Client, "a".to_string()));
            let first = taped.entries[0];
            assert_eq!((first.at, first.latency), (4_000_000, 1_000_000));
            assert!(first.durable && !first.failed && first.place == 0 && taped.entries[1].place == 0);
            let rest = recording.take(10);
            assert_eq!((rest.entries.len(), rest.entries[0].place, rest.has_more), (1, 1, false));
            assert!(rest.places.is_empty());
            assert_eq!(opened.take().value, 2);
            drop((recording, opened));
            assert!(!a.is_open());
        });
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_room_comes_back() {
        in_world(async {
            let hub = Hub::new();
            let probe = hub.probe(Family::Nbd, &[]);
            let recording = hub.record(&"nbd.ops".parse().unwrap(), 3).unwrap();
            let tell = || (0..5).for_each(|_| probe.tell(Event::default));
            tell();
            let taped = recording.take(100);
            assert_eq!((taped.entries.len(), taped.dropped), (3, 2));
            tell();
            let taped = recording.take(100);
            assert_eq!((taped.entries.len(), taped.dropped), (3, 2));
            assert_eq!(recording.take(100).dropped, 0);
            // More places than are told apart.
            for client in 0..super::PLACES_MAX + 10 {
                let client = client.to_string();
                let probe = hub.probe(Family::Nbd, &[(Breakdown::Client, client.as_str())]);
                probe.tell(Event::default);
                recording.take(100);
            }
            let probe = hub.probe(Family::Nbd, &[(Breakdown::Client, "one more")]);
            probe.tell(Event::default);
            let taped = recording.take(100);
            assert_eq!((taped.entries.len(), taped.dropped), (0, 1));
        });
    }

    #[test]
    fn what_is_asked_has_no_events() {
        in_world(async {
            let e = Hub::new().record(&"arc.size".parse().unwrap(), 3).unwrap_err();
            assert!(e.to_string().contains("no events"), "{e}");
        });
    }
}
