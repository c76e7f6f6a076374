//! Recordings of single operations, as clients of the socket take them away.
//!
//! ```text
//!   begin ─▶ id ── take, take, take … ─▶ end
//!                   └ none for half a minute: the recording ends, as it does with the daemon
//! ```
//!
//! A few at once, each of which holds a bounded number of entries: a client that takes them too slowly finds that some were
//! dropped, and how many.

use api::analytics::{TraceEntry, Traced};
use api::{ApiError, ErrorKind, Result};
use probe::{Entry, Hub, Query, Recording, Taped};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use world::Instant;

/// At once.
const TRACES_MAX: usize = 4;
/// Entries that a recording may hold, some 20 MiB.
const HELD_MAX: u64 = 256 << 10;
/// In one answer.
const TAKEN_MAX: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Traces(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    running: BTreeMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    recording: Recording,
    of: String,
    asked: Instant,
}

impl Traces {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn begin(&self, hub: &Hub, of: &str, held: u64) -> Result<Traced> {
        let invalid = |e: units::Error| ApiError::new(ErrorKind::Invalid, e.to_string());
        let query: Query = of.parse().map_err(invalid)?;
        let is_front = ["iscsi.ops", "nbd.ops", "fs.ops"].contains(&query.statistic.name);
        if !is_front || query.breakdown.is_some() {
            let what = format!("'{of}' is not recorded: iscsi.ops, nbd.ops and fs.ops are, with filters");
            return Err(ApiError::new(ErrorKind::Invalid, what));
        }
        let traced = self.with(|state| {
            if state.running.len() >= TRACES_MAX {
                let what = format!("{TRACES_MAX} traces are being recorded already: wait for one to end");
                return Err(ApiError::new(ErrorKind::Busy, what));
            }
            let capacity = held.clamp(1, HELD_MAX) as usize;
            let recording = hub.record(&query, capacity).map_err(invalid)?;
            state.last += 1;
            let (id, of) = (state.last, query.to_string());
            let running = Running { recording, of: of.clone(), asked: world::now() };
            state.running.insert(id, running);
            Ok(Traced { id, of, ..Traced::default() })
        })?;
        drop(world::spawn(watch(self.0.clone(), traced.id)));
        Ok(traced)
    }

    pub fn take(&self, id: u64) -> Result<Traced> {
        self.with(|state| {
            let running = state.running.get_mut(&id).ok_or_else(gone)?;
            running.asked = world::now();
            let Taped { entries, places, dropped, has_more } = running.recording.take(TAKEN_MAX);
            let words = |place: Vec<(probe::Breakdown, String)>| {
                place.into_iter().map(|(by, word)| (by.name().to_string(), word)).collect()
            };
            Ok(Traced {
                id,
                of: running.of.clone(),
                entries: entries.into_iter().map(told).collect(),
                places: places.into_iter().map(words).collect(),
                dropped,
                has_more,
            })
        })
    }

    pub fn end(&self, id: u64) -> Result<()> {
        self.with(|state| state.running.remove(&id).map(drop).ok_or_else(gone))
    }
}

fn gone() -> ApiError {
    ApiError::new(ErrorKind::NotFound, "the recording has ended: it was not asked for its entries")
}

fn told(entry: Entry) -> TraceEntry {
    TraceEntry {
        at: entry.at,
        latency: entry.latency,
        place: entry.place,
        op: entry.op.name().to_string(),
        object: entry.object,
        offset: entry.offset,
        bytes: entry.bytes,
        durable: entry.durable,
        failed: entry.failed,
    }
}

/// Ends a recording whose client is gone.
async fn watch(state: Arc<Mutex<State>>, id: u64) {
    loop {
        world::sleep(PATIENCE / 4).await;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = state.running.get(&id) else { return };
        if world::now().since(running.asked) > PATIENCE {
            state.running.remove(&id);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::{Breakdown, Event, Family};

    #[test]
    fn operations_are_taken_until_the_client_is_gone() {
        sim::run(1, sim::Config::default(), async {
            let (hub, traces) = (Hub::new(), Traces::default());
            let probe = hub.probe(Family::Nbd, &[(Breakdown::Dataset, "tank/v")]);
            let id = traces.begin(&hub, "nbd.ops[op=read]", 100).unwrap().id;
            probe.tell(|| Event { offset: 512, ..Event::default() });
            world::sleep(PATIENCE / 2).await;
            let traced = traces.take(id).unwrap();
            assert_eq!((traced.entries.len(), traced.entries[0].offset), (1, 512));
            assert_eq!(traced.places, [[("dataset".to_string(), "tank/v".to_string())]]);
            world::sleep(PATIENCE / 2).await;
            assert!(traces.take(id).unwrap().places.is_empty(), "they are told once");
            world::sleep(PATIENCE * 2).await;
            assert_eq!(traces.take(id).unwrap_err().kind, ErrorKind::NotFound);
            assert!(!probe.is_open());
        });
    }

    #[test]
    fn recordings_are_few_and_of_fronts() {
        sim::run(1, sim::Config::default(), async {
            let (hub, traces) = (Hub::new(), Traces::default());
            for of in ["io.ops", "nbd.bytes", "nbd.ops[op]", "nbd.ops[colour=red]", ""] {
                assert_eq!(traces.begin(&hub, of, 1).unwrap_err().kind, ErrorKind::Invalid, "{of}");
            }
            let ids: Vec<u64> =
                (0..TRACES_MAX).map(|_| traces.begin(&hub, "fs.ops", u64::MAX).unwrap().id).collect();
            assert_eq!(traces.begin(&hub, "fs.ops", 1).unwrap_err().kind, ErrorKind::Busy);
            traces.end(ids[0]).unwrap();
            traces.begin(&hub, "iscsi.ops", 1).unwrap();
            assert!(traces.end(ids[0]).is_err());
        });
    }
}
