use super::*;
use crate::describe::{Arrival, Flush, Lanes, Sizes, Store, Stream, Walk};
use crate::knee;
use crate::target::Target;
use linux::Order;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::Error;
use world::{Buf, Pending};

/// Answers each request after a time, at most so many of them at once; remembers what it was asked.
#[derive(Debug)]
struct Modelled {
    size: u64,
    takes: Duration,
    servers: world::sync::Semaphore,
    bytes: Mutex<Vec<u8>>,
    asked: Mutex<Vec<(bool, u64, u32)>>,
    flushes: AtomicU64,
    /// How much had been asked whenever it was chilled.
    chilled: Mutex<Vec<usize>>,
    opened: Mutex<Vec<How>>,
    /// Damages what is read from here.
    bad: Option<u64>,
    fails: bool,
}

impl Modelled {
    fn new(takes: Duration, servers: usize) -> Arc<Modelled> {
        let size = 1 << 20;
        Arc::new(Modelled {
            size,
            takes,
            servers: world::sync::Semaphore::new(servers),
            bytes: Mutex::new(vec![0; size as usize]),
            asked: Mutex::default(),
            flushes: AtomicU64::new(0),
            chilled: Mutex::default(),
            opened: Mutex::default(),
            bad: None,
            fails: false,
        })
    }
}

#[derive(Debug)]
struct Held(Arc<Modelled>);

impl Target for Held {
    fn size(&self) -> u64 {
        self.0.size
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        let disk = self.0.clone();
        Box::pin(async move {
            let _permit = disk.servers.acquire(1).await;
            world::sleep(disk.takes).await;
            disk.asked.lock().unwrap().push((true, offset, len));
            if disk.fails {
                return Err(Error::new(units::Kind::Io, "read"));
            }
            let range = offset as usize..offset as usize + len as usize;
            let mut bytes = disk.bytes.lock().unwrap()[range.clone()].to_vec();
            if let Some(bad) = disk.bad.filter(|bad| range.contains(&(*bad as usize))) {
                bytes[bad as usize - range.start] ^= 1;
            }
            Ok(vec![Buf::copy_from(&bytes)])
        })
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        let disk = self.0.clone();
        Box::pin(async move {
            let _permit = disk.servers.acquire(1).await;
            world::sleep(disk.takes).await;
            disk.asked.lock().unwrap().push((false, offset, data.len() as u32));
            disk.bytes.lock().unwrap()[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
            Ok(())
        })
    }

    fn flush(&self) -> Pending<Result<()>> {
        self.0.flushes.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(())))
    }

    fn chill(&self) -> Result<()> {
        self.0.chilled.lock().unwrap().push(self.0.asked.lock().unwrap().len());
        Ok(())
    }
}

#[derive(Debug)]
struct Only(Arc<Modelled>);

impl Places for Only {
    fn open(&self, _: &Store, how: How) -> Pending<Result<Arc<dyn Target>>> {
        self.0.opened.lock().unwrap().push(how);
        let target: Arc<dyn Target> = Arc::new(Held(self.0.clone()));
        Box::pin(std::future::ready(Ok(target)))
    }
}

const MS: Duration = Duration::from_millis(1);

fn description(change: impl FnOnce(&mut Run)) -> Description {
    let mut run = Run::new("run");
    run.elapsed = Some(Duration::from_secs(2));
    run.streams.push(Stream::new("stream", vec![0]));
    change(&mut run);
    Description { stores: vec![Store::new("disk", "disk")], runs: vec![run] }
}

/// In virtual time: what is measured is exact.
fn simulate(disk: &Arc<Modelled>, description: Description) -> Result<Vec<Summary>> {
    simulate_until(disk, description, None).map(|(summaries, _)| summaries)
}

fn simulate_until(
    disk: &Arc<Modelled>,
    description: Description,
    stop_after: Option<Duration>,
) -> Result<(Vec<Summary>, Vec<f64>)> {
    let places = Only(disk.clone());
    sim::run(1, sim::Config::default(), async move {
        let stop = Arc::new(Event::new());
        if let Some(after) = stop_after {
            let stop = stop.clone();
            drop(world::spawn(async move {
                world::sleep(after).await;
                stop.set();
            }));
        }
        let mut intervals = Vec::new();
        let mut tell = |news: News<'_>| {
            if let News::Interval { figures, .. } = news {
                intervals.push(figures.rate());
            }
        };
        let summaries = drive(&description, &places, Options { seed: 1 }, stop, &mut tell).await?;
        Ok((summaries, intervals))
    })
}

#[test]
fn a_device_of_four_servers_gives_four_times_one() {
    for (lanes, rate, response) in [(1, 1000.0, MS), (4, 4000.0, MS), (16, 4000.0, 4 * MS)] {
        let disk = Modelled::new(MS, 4);
        let summaries =
            simulate(&disk, description(|run| run.streams[0].lanes = Lanes::Each(lanes))).unwrap();
        let figures = &summaries[0].figures;
        assert!((figures.rate() - rate).abs() < rate / 100.0, "{lanes}: {}", figures.rate());
        let mean = figures.reads.mean();
        assert!(mean.abs_diff(response) < response / 50, "{lanes}: {mean:?}");
        assert!((figures.measured_concurrency() - f64::from(lanes)).abs() < 0.05 * f64::from(lanes));
        assert!(
            !figures.is_doubtful(),
            "{} {}",
            figures.concurrency_by_law(),
            figures.measured_concurrency()
        );
        assert_eq!(figures.bytes_read, figures.requests() * 4096);
        assert!(disk.asked.lock().unwrap().iter().all(|(read, _, _)| *read));
    }
}

#[test]
fn each_run_begins_with_a_cold_place_where_that_is_asked() {
    for is_cold in [true, false] {
        let disk = Modelled::new(MS, 1);
        let mut description = description(|run| {
            run.streams[0].tells_order = true;
            run.streams.push(Stream::new("other", vec![0]));
            run.streams[1].walk = Walk::sequential();
            run.streams[1].in_place = true;
        });
        description.stores[0].cold = is_cold;
        description.runs.push(description.runs[0].clone());
        simulate(&disk, description).unwrap();
        let asked = disk.asked.lock().unwrap().len();
        let chilled = disk.chilled.lock().unwrap();
        // A quarter of the requests are those of the sequence in one of the runs; its place has 256 blocks.
        let begun_again = (asked / 4 - 1) / 256;
        assert_eq!(chilled.len(), if is_cold { 2 * (1 + begun_again) } else { 0 }, "{chilled:?}");
        assert!(begun_again > 1, "{asked} requests");
        assert!(!is_cold || [0, asked / 2].iter().all(|run| chilled.contains(run)), "{chilled:?}");
        let opened: Vec<_> =
            disk.opened.lock().unwrap().iter().map(|how| (how.in_place, how.order)).collect();
        assert_eq!(opened, [(false, Some(Order::Random)), (true, None)]);
    }
}

#[test]
fn a_rate_is_kept_and_a_stall_is_charged_to_those_that_waited() {
    let disk = Modelled::new(MS, 1);
    let asked = |rate| {
        description(move |run| {
            run.load = Load::PerSecond(rate);
            run.streams[0].lanes = Lanes::Each(8);
        })
    };
    let summaries = simulate(&disk, asked(100.0)).unwrap();
    assert!((summaries[0].figures.rate() - 100.0).abs() < 1.0);
    assert_eq!(summaries[0].figures.reads.max(), MS);
    // Twice what the device does: the last ones were due a second before they were answered.
    let summaries = simulate(&disk, asked(2000.0)).unwrap();
    let figures = &summaries[0].figures;
    assert!((figures.rate() - 1000.0).abs() < 10.0, "{}", figures.rate());
    assert!(figures.reads.max() > 900 * MS, "{:?}", figures.reads.max());
    assert!(figures.measured_concurrency() < 8.1, "the device never had more than the lanes");
}

#[test]
fn warm_up_is_not_counted_and_intervals_are_told() {
    let disk = Modelled::new(MS, 1);
    let warm = description(|run| run.warmup = Duration::from_millis(500));
    let (summaries, intervals) = simulate_until(&disk, warm, None).unwrap();
    // Until the request that was under way at the end has its answer.
    assert!(summaries[0].figures.elapsed.abs_diff(Duration::from_secs(2)) <= MS);
    assert!((1990..=2001).contains(&summaries[0].figures.requests()), "{}", summaries[0].figures.requests());
    assert_eq!(intervals.len(), 3, "half a second of warm-up, and two whole ones: {intervals:?}");
    assert!(intervals.iter().all(|rate| (rate - 1000.0).abs() < 10.0));
}

/// A device that stalls until after the end: what it holds up are the slowest requests of the run, and all of them count.
#[test]
fn what_is_under_way_at_the_end_counts() {
    let disk = Modelled::new(800 * MS, 4);
    let summaries = simulate(&disk, description(|run| run.streams[0].lanes = Lanes::Each(4))).unwrap();
    let figures = &summaries[0].figures;
    assert_eq!(figures.requests(), 12, "eight that ended in two seconds, and four that were under way then");
    assert_eq!((figures.reads.count(), summaries[0].rows[0].1.reads.count()), (12, 12));
    assert_eq!(figures.elapsed, 2400 * MS);
    assert!((figures.rate() - 5.0).abs() < 0.01 && !figures.is_doubtful(), "{}", figures.rate());
    // Longer than the run: without them nothing would be known of it at all.
    let disk = Modelled::new(5000 * MS, 1);
    let summaries = simulate(&disk, description(|_| ())).unwrap();
    assert_eq!(summaries[0].figures.reads.max().as_secs(), 5);
}

#[test]
fn an_amount_ends_a_run_and_so_does_the_user() {
    let disk = Modelled::new(MS, 1);
    let amount = description(|run| {
        run.elapsed = None;
        run.streams[0].amount = Some(10 * 4096);
    });
    assert_eq!(simulate(&disk, amount).unwrap()[0].figures.requests(), 10);
    let mut endless = description(|run| run.elapsed = Some(Duration::from_secs(999 * 3600)));
    endless.runs.push(endless.runs[0].clone());
    let (summaries, _) = simulate_until(&disk, endless, Some(Duration::from_millis(2500))).unwrap();
    assert_eq!(summaries.len(), 1, "the next one does not begin");
    assert!(summaries[0].is_interrupted);
    assert!((2490..=2501).contains(&summaries[0].figures.requests()), "{}", summaries[0].figures.requests());
}

#[test]
fn a_sequence_without_a_new_beginning_and_a_runtime_end_a_stream() {
    let disk = Modelled::new(MS, 1);
    let once = description(|run| {
        run.elapsed = None;
        run.streams[0].walk = Walk { wraps: false, ..Walk::sequential() };
        run.streams[0].read_sizes = Sizes::one(65_536);
    });
    assert_eq!(simulate(&disk, once).unwrap()[0].figures.requests(), 16);
    let timed = description(|run| {
        run.elapsed = None;
        run.streams[0].elapsed = Some(Duration::from_millis(100));
    });
    let requests = simulate(&disk, timed).unwrap()[0].figures.requests();
    assert!((99..=101).contains(&requests), "{requests}");
}

#[test]
fn writes_are_flushed_as_asked() {
    let disk = Modelled::new(MS, 1);
    let flushed = |flush| {
        description(move |run| {
            run.elapsed = None;
            run.streams[0].read_percent = 0.0;
            run.streams[0].amount = Some(100 * 4096);
            run.streams[0].flush = flush;
        })
    };
    for (flush, expected) in [(Flush::Never, 0), (Flush::Every(10), 10), (Flush::AtEnd, 1)] {
        disk.flushes.store(0, Ordering::Relaxed);
        simulate(&disk, flushed(flush)).unwrap();
        assert_eq!(disk.flushes.load(Ordering::Relaxed), expected, "{flush:?}");
    }
}

#[test]
fn shares_hold_at_the_maximum_and_at_a_rate() {
    for load in [Load::Max, Load::PerSecond(800.0)] {
        let disk = Modelled::new(MS, 4);
        let shared = description(|run| {
            (run.load, run.keeps_shares) = (load, true);
            run.streams.push(Stream::new("other", vec![0]));
            (run.streams[0].share, run.streams[1].share) = (80.0, 20.0);
            run.streams.iter_mut().for_each(|s| s.lanes = Lanes::Each(4));
        });
        let rows = simulate(&disk, shared).unwrap()[0].rows.clone();
        let part = rows[0].1.rate() / (rows[0].1.rate() + rows[1].1.rate());
        assert!((part - 0.8).abs() < 0.02, "{load:?}: {part}");
    }
}

#[test]
fn bursts_come_at_once_and_wait_for_one_another() {
    let disk = Modelled::new(MS, 1);
    let asked = |arrival| {
        description(move |run| {
            run.load = Load::PerSecond(100.0);
            run.streams[0].arrival = arrival;
            run.streams[0].lanes = Lanes::Each(16);
        })
    };
    let even = simulate(&disk, asked(Arrival::Even)).unwrap()[0].figures.reads.mean();
    let bursts = simulate(&disk, asked(Arrival::Bursts(10))).unwrap()[0].figures.reads.mean();
    assert_eq!(even, MS);
    assert!(bursts.abs_diff(Duration::from_micros(5500)) < MS / 2, "{bursts:?}");
}

#[test]
fn a_part_of_the_maximum_is_taken_of_what_was_measured() {
    let disk = Modelled::new(MS, 2);
    let mut curve = description(|run| run.streams[0].lanes = Lanes::Each(4));
    curve.runs.push(Run { load: Load::OfMax(25.0), ..curve.runs[0].clone() });
    let summaries = simulate(&disk, curve).unwrap();
    assert!((summaries[1].figures.rate() - 500.0).abs() < 10.0, "{}", summaries[1].figures.rate());
}

#[test]
fn the_knee_of_a_device_is_its_servers() {
    let disk = Modelled::new(MS, 8);
    let all = knee::at_all_depths(&description(|_| {}), 32);
    let points: Vec<knee::Point> = simulate(&disk, all)
        .unwrap()
        .iter()
        .map(|s| knee::Point { depth: s.lanes, rate: s.figures.rate(), response: s.figures.reads.mean() })
        .collect();
    assert_eq!(knee::knee(&points).map(|i| points[i].depth), Some(8), "{points:?}");
}

#[test]
fn what_is_verified_is_found_right_or_named() {
    let verified = || {
        description(|run| {
            run.elapsed = None;
            let stream = &mut run.streams[0];
            (stream.verify, stream.read_percent, stream.amount) = (true, 30.0, Some(4 << 20));
            stream.write_sizes = Sizes::Weighted(vec![(4096, 50.0), (16_384, 50.0)]);
            stream.lanes = Lanes::Each(8);
        })
    };
    let disk = Modelled::new(MS, 4);
    let summary = simulate(&disk, verified()).unwrap().remove(0);
    let written: std::collections::BTreeSet<u64> = {
        let asked = disk.asked.lock().unwrap();
        let writes = asked.iter().filter(|(read, _, _)| !read);
        writes.flat_map(|(_, offset, len)| (offset / 4096)..(offset + u64::from(*len)) / 4096).collect()
    };
    assert_eq!(summary.verified, Some(written.len() as u64));
    let mut bad = Arc::try_unwrap(Modelled::new(MS, 4)).unwrap();
    bad.bad = Some(40_000);
    let said = simulate(&Arc::new(bad), verified()).unwrap_err().to_string();
    assert!(said.contains("verify: damaged"), "{said}");
    let mut blind = verified();
    blind.runs[0].streams.push(Stream { read_percent: 0.0, ..Stream::new("blind", vec![0]) });
    blind.runs[0].streams[1].amount = Some(4096);
    let said = simulate(&disk, blind).unwrap_err().to_string();
    assert!(said.contains("written without it"), "{said}");
}

#[test]
fn what_fails_ends_the_run_with_its_reason() {
    let mut bad = Arc::try_unwrap(Modelled::new(MS, 1)).unwrap();
    bad.fails = true;
    assert!(simulate(&Arc::new(bad), description(|_| {})).unwrap_err().to_string().starts_with("read"));
    let disk = Modelled::new(MS, 1);
    let mut large = description(|_| {});
    large.stores[0].size = Some(2 << 20);
    let said = simulate(&disk, large).unwrap_err().to_string();
    assert!(said.contains("has 1048576 bytes; 2097152"), "{said}");
    let long = description(|run| run.streams[0].read_sizes = Sizes::one(2 << 20));
    assert!(simulate(&disk, long).unwrap_err().to_string().contains("do not fit"));
}
