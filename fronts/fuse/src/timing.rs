//! The time of a request: from when the session's thread has it until it was answered.
//!
//! ```text
//!   there ── no permit ──▶ tried ── waits ──▶ a task of a loop ──▶ answered: its latency, and of it each stage
//!            front         work, stages   front     work, stages
//! ```
//!
//! The two waits at the front are opened by [`Loops`], which has them: for a permit, when very much is under way, and for
//! whatever the loop does first.
//!
//! Not here: how long the kernel keeps a request before it is read, which is nowhere told.

use crate::loops::Loops;
use probe::{Event, Probe, Timed};
use std::future::Future;
use world::Instant;
use world::stages::{Course, run_if};

/// What a request was about, in bytes.
pub(crate) trait Moved {
    fn bytes(self) -> u64;
}

impl Moved for () {
    fn bytes(self) -> u64 {
        0
    }
}

impl Moved for u64 {
    fn bytes(self) -> u64 {
        self
    }
}

/// A request that is told.
pub(crate) struct Timing {
    began: Instant,
    timed: Option<Timed>,
}

impl Timing {
    /// Of a request that is there now, if anything is open where it, or its stages, are told.
    pub fn begin((probe, stages): (&Probe, &Probe), loops: &Loops) -> Option<Timing> {
        if !probe.is_open() && !stages.is_open() {
            return None;
        }
        let began = loops.now();
        Some(Timing { began, timed: Timed::begin(stages, began) })
    }

    /// Where its stages are opened, if they are told.
    pub fn course(&self) -> Option<Course> {
        self.timed.as_ref().map(|timed| timed.course().clone())
    }

    /// Does `work`, which answers the request, and tells both.
    pub async fn tell(
        self,
        (probe, stages): (&Probe, &Probe),
        event: Event<'_>,
        work: impl Future<Output: Moved>,
    ) {
        let bytes = run_if(self.course(), work).await.bytes();
        let ended = world::now();
        let event = Event { bytes, latency: ended.since(self.began), ..event };
        probe.tell(|| event);
        if let Some(timed) = self.timed {
            timed.tell(stages, event, ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{self, AT_ONCE, Sort, aside};
    use probe::{Family, Hub, Key, Opened, Recording};
    use std::sync::Arc;
    use std::time::Duration;
    use world::stages::Stage;

    /// How long the front lets a request wait here.
    const LONG: Duration = Duration::from_millis(20);
    /// After which it is clear that no stage is told.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A front of whose requests latency and stages are counted.
    struct Bench {
        told: Arc<(Probe, Probe, Loops)>,
        stages: Opened,
        latency: Recording,
    }

    impl Bench {
        fn new(loops: Loops) -> Bench {
            let hub = Hub::new();
            let stages = hub.open(&"fs.time[stage]".parse().unwrap()).unwrap();
            let latency = hub.record(&"fs.ops".parse().unwrap(), 16).unwrap();
            let told = Arc::new((hub.probe(Family::Fs, &[]), hub.probe(Family::FsStages, &[]), loops));
            Bench { told, stages, latency }
        }

        /// One request was told, which waited at the front for `LONG` and whose stages are its latency.
        fn has_told(&self) {
            let stages = self.stages.take().parts;
            let front = stages.iter().find(|(key, _)| *key == Key::Text("front".into()));
            assert!(front.is_some_and(|(_, spent)| *spent >= LONG.as_nanos() as u64), "{stages:?}");
            let all: Vec<u64> = self.latency.take(16).entries.iter().map(|entry| entry.latency).collect();
            assert_eq!(all, [stages.iter().map(|(_, spent)| spent).sum::<u64>()], "{stages:?}");
        }
    }

    /// As the session does, on its thread; `begun` is given the request's stages before that may wait.
    fn ask(
        told: &Arc<(Probe, Probe, Loops)>,
        begun: impl FnOnce(Course),
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let (probe, stages, loops) = &**told;
        let timing = Timing::begin((probe, stages), loops).expect("both are open");
        let course = timing.course().expect("stages are open");
        begun(course.clone());
        let told = told.clone();
        let work = async move { timing.tell((&told.0, &told.1), Event::default(), work).await };
        loops.run(Sort::Request, Some(&course), Box::pin(work));
    }

    /// Waits until it is told that this request has waited at the front for `LONG`; whether it was.
    fn has_waited(course: &Course, loops: &Loops) -> bool {
        let began = std::time::Instant::now();
        let mut waits = false;
        while !waits && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
            waits = course.spent(loops.now()).any(|(stage, spent)| stage == Stage::Front && spent >= LONG);
        }
        waits
    }

    #[test]
    fn the_wait_for_a_loop_that_is_busy_is_the_front_s_and_in_the_latency() {
        linux::run(linux::Config { cores: Some(1), ..linux::Config::default() }, async {
            let (loops, serving) = loops::start(None);
            let bench = Bench::new(loops);
            let told = bench.told.clone();
            let session = std::thread::spawn(move || {
                let mut course = None;
                ask(&told, |begun| course = Some(begun), world::yield_now());
                has_waited(&course.expect("it has begun"), &told.2)
            });
            // The only loop does nothing else meanwhile.
            assert!(session.join().unwrap(), "no stage tells of the wait");
            serving.finish().await;
            bench.has_told();
        });
    }

    #[test]
    fn the_wait_for_requests_that_are_under_way_is_the_front_s_and_in_the_latency() {
        linux::block_on(async {
            let (loops, serving) = loops::start(None);
            let bench = Bench::new(loops);
            let go = Arc::new(world::sync::Event::new());
            let (begun, under_way) = std::sync::mpsc::channel();
            let (told, gate) = (bench.told.clone(), go.clone());
            let session = world::spawn(aside(move || {
                for _ in 0..AT_ONCE {
                    let gate = gate.clone();
                    told.2.run(Sort::Request, None, Box::pin(async move { gate.wait().await }));
                }
                ask(&told, |course| begun.send(course).unwrap(), async {});
            }));
            let told = bench.told.clone();
            let waited = aside(move || has_waited(&under_way.recv().unwrap(), &told.2)).await;
            // In any case, or the session would wait for ever.
            go.set();
            session.await;
            assert!(waited, "no stage tells of the wait");
            serving.finish().await;
            bench.has_told();
        });
    }

    #[test]
    fn a_request_that_nothing_counts_is_not_timed() {
        linux::block_on(async {
            let (loops, _serving) = loops::start(None);
            let hub = Hub::new();
            let (probe, stages) = (hub.probe(Family::Fs, &[]), hub.probe(Family::FsStages, &[]));
            assert!(Timing::begin((&probe, &stages), &loops).is_none());
            let counted = hub.open(&"fs.ops".parse().unwrap()).unwrap();
            let timing = Timing::begin((&probe, &stages), &loops).expect("it is counted");
            assert!(timing.course().is_none(), "stages are timed for those alone that ask for them");
            drop(counted);
            let _stages = hub.open(&"fs.time[stage]".parse().unwrap()).unwrap();
            assert!(Timing::begin((&probe, &stages), &loops).is_some_and(|timing| timing.course().is_some()));
        });
    }
}
