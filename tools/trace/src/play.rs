//! The requests of a trace, made again.
//!
//! ```text
//!   as recorded    each request when it came, however many are under way; response times count from then
//!   fast           so many lanes, each with the next request as soon as it has its answer
//! ```
//!
//! As recorded, a stage that is slower than the one before has more under way, as with clients that do not wait for one
//! another. There is a bound: beyond it requests come late, their response times say so, and they are counted.
//!
//! Runs in a world: in virtual time on modelled devices, in real time on real ones.

use crate::request::Request;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::Result;
use workload::Histogram;
use world::sync::{Event, Notify};
use world::{Instant, Pending};

/// What takes the requests.
pub trait Stage: Send + Sync + Debug {
    /// `None`: it is none that can be made again here.
    fn make(&self, request: &Request) -> Option<Pending<Result<()>>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Recorded,
    /// So many at once.
    Fast(usize),
}

/// At once at most.
const LANES_MAX: usize = 16_384;

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Played {
    pub reads: Histogram,
    pub writes: Histogram,
    pub others: Histogram,
    /// Bytes that clients read and wrote.
    pub bytes: u64,
    /// Requests that were not made again: of a kind, or in a place, that is not there.
    pub skipped: u64,
    pub failed: u64,
    /// Why the first of these failed.
    pub failure: Option<String>,
    /// Requests that could not be made when they were due.
    pub late: u64,
    /// Until the last answer.
    pub elapsed: Duration,
}

impl Played {
    pub fn requests(&self) -> u64 {
        self.reads.count() + self.writes.count() + self.others.count()
    }

    pub fn all(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all.merge(&self.others);
        all
    }
}

#[derive(Debug)]
struct Shared {
    requests: Arc<Vec<Request>>,
    stage: Arc<dyn Stage>,
    next: AtomicUsize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    played: Played,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the answer, and counts it from when it was `due`.
    async fn answer(&self, request: Request, made: Option<Pending<Result<()>>>, due: Instant) {
        let Some(made) = made else {
            self.lock().played.skipped += 1;
            return;
        };
        let outcome = made.await;
        let took = world::now().since(due);
        let mut state = self.lock();
        let played = &mut state.played;
        if let Err(e) = outcome {
            played.failed += 1;
            played.failure.get_or_insert_with(|| e.to_string());
            return;
        }
        match request.op {
            crate::Op::Read | crate::Op::Prefetch => played.reads.record(took),
            crate::Op::Write => played.writes.record(took),
            _ => played.others.record(took),
        }
        if request.op.moves_bytes() {
            played.bytes += request.bytes;
        }
    }

    fn end_one(&self) {
        self.lock().under_way -= 1;
        self.changed.notify_all();
    }
}

/// Makes all requests, which are in order of time, or those before `stop` is set; waits for their answers.
pub async fn play(
    requests: Arc<Vec<Request>>,
    stage: Arc<dyn Stage>,
    pace: Pace,
    stop: Arc<Event>,
) -> Played {
    let shared = Arc::new(Shared {
        requests,
        stage,
        next: AtomicUsize::new(0),
        state: Mutex::default(),
        changed: Notify::new(),
    });
    let begun = world::now();
    match pace {
        Pace::Recorded => recorded(&shared, begun, &stop).await,
        Pace::Fast(lanes) => {
            let lanes = lanes.clamp(1, LANES_MAX);
            shared.lock().under_way = lanes;
            for _ in 0..lanes {
                drop(world::spawn(lane(shared.clone(), stop.clone())));
            }
        }
    }
    shared.changed.until(|| (shared.lock().under_way == 0).then_some(())).await;
    let mut played = std::mem::take(&mut shared.lock().played);
    played.elapsed = world::now().since(begun);
    played
}

async fn recorded(shared: &Arc<Shared>, begun: Instant, stop: &Event) {
    for request in shared.requests.iter().copied() {
        let due = begun.after(Duration::from_nanos(request.at));
        if world::now() < due {
            world::sleep_until(due).await;
        }
        let is_full = shared.lock().under_way >= LANES_MAX;
        if is_full {
            shared.lock().played.late += 1;
            shared.changed.until(|| (shared.lock().under_way < LANES_MAX).then_some(())).await;
        }
        if stop.is_set() {
            return;
        }
        shared.lock().under_way += 1;
        let shared = shared.clone();
        drop(world::spawn(async move {
            let made = shared.stage.make(&request);
            shared.answer(request, made, due).await;
            shared.end_one();
        }));
    }
}

async fn lane(shared: Arc<Shared>, stop: Arc<Event>) {
    while !stop.is_set() {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(request) = shared.requests.get(number).copied() else { break };
        let due = world::now();
        let made = shared.stage.make(&request);
        shared.answer(request, made, due).await;
    }
    shared.end_one();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    /// Takes a millisecond for each, one after the other; no trims.
    #[derive(Debug)]
    struct Slow(Arc<world::sync::Mutex<()>>);

    impl Stage for Slow {
        fn make(&self, request: &Request) -> Option<Pending<Result<()>>> {
            let turn = self.0.clone();
            let fails = request.failed;
            (request.op != Op::Trim).then(|| -> Pending<Result<()>> {
                Box::pin(async move {
                    let _turn = turn.lock().await;
                    world::sleep(Duration::from_millis(1)).await;
                    if fails { Err(units::Error::invalid("no")) } else { Ok(()) }
                })
            })
        }
    }

    fn requests() -> Arc<Vec<Request>> {
        let one = |n: u64| Request {
            at: n * 100_000,
            latency: 0,
            place: 0,
            op: if n == 9 { Op::Trim } else { Op::Read },
            object: 0,
            offset: 0,
            bytes: 512,
            durable: false,
            failed: n == 8,
        };
        Arc::new((0..10).map(one).collect())
    }

    fn played(pace: Pace) -> Played {
        sim::run(1, sim::Config { shuffle: false, ..Default::default() }, async move {
            play(requests(), Arc::new(Slow(Arc::new(world::sync::Mutex::new(())))), pace, Arc::default())
                .await
        })
    }

    #[test]
    fn response_times_count_from_when_a_request_came() {
        let open = played(Pace::Recorded);
        // Nine of a millisecond each, that came every tenth of one: the n-th waits for those before it.
        assert_eq!((open.requests(), open.skipped, open.failed), (8, 1, 1));
        assert_eq!(open.elapsed, Duration::from_millis(9));
        assert_eq!(open.all().max(), Duration::from_micros(7300));
        assert_eq!((open.bytes, open.failure.as_deref()), (8 * 512, Some("no")));
        let fast = played(Pace::Fast(2));
        assert_eq!((fast.requests(), fast.all().max()), (8, Duration::from_millis(2)));
    }

    #[test]
    fn a_stop_ends_it() {
        let stopped = sim::run(1, sim::Config::default(), async {
            let stop = Arc::new(Event::new());
            stop.set();
            let stage = Arc::new(Slow(Arc::new(world::sync::Mutex::new(()))));
            let open = play(requests(), stage.clone(), Pace::Recorded, stop.clone()).await;
            let fast = play(requests(), stage, Pace::Fast(3), stop).await;
            open.requests() + fast.requests()
        });
        assert_eq!(stopped, 0);
    }
}
