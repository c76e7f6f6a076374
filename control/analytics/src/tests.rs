//! What is promised of the whole: days in simulated time, with a store in a file.

use crate::tap::{Key, Taken, Tap, Tapped, Taps};
use crate::{Errands, Limits, NewChange, Recorder};
use api::analytics::{Data, DataQuery, Granularity, Settings, Start};
use api::changes::{Kind, Setting, Verdict};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// 2026-11-24T00:00:00Z
const START: u64 = 1_795_478_400;

/// Statistics of which each sample is known: the n-th that is taken, by the number of what is in brackets.
#[derive(Default)]
struct Known {
    open: Arc<AtomicU64>,
}

struct KnownTap {
    kind: String,
    taken: u64,
    open: Arc<AtomicU64>,
}

fn noise(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

impl Tap for KnownTap {
    fn take(&mut self) -> Taken {
        self.taken += 1;
        let n = self.taken;
        let of = |parts: Vec<(Key, u64)>| Taken { value: parts.iter().map(|(_, value)| value).sum(), parts };
        match self.kind.as_str() {
            "ops[size]" => {
                of((0..24).map(|b| (Key::Range(512 << b, 1024 << b), noise(n * 31 + b) % 900)).collect())
            }
            "ops[file]" => {
                of((0..1_024).map(|f| (Key::text(&format!("{}-{n}-{f}", "x".repeat(200))), 1)).collect())
            }
            // A load that changes for good after as many samples.
            step if step.starts_with("step-") => {
                let after = step["step-".len()..].parse::<u64>().unwrap_or(0);
                let more = if n > after { 500 } else { 0 };
                Taken { value: 1_000 + noise(n) % 200 + more, parts: Vec::new() }
            }
            "level" => Taken { value: (16 << 30) + noise(n) % (1 << 20), parts: Vec::new() },
            _ => Taken { value: n, parts: Vec::new() },
        }
    }
}

impl Drop for KnownTap {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Taps for Known {
    fn statistics(&self) -> Vec<api::analytics::Statistic> {
        Vec::new()
    }

    fn open(&self, statistic: &str) -> Result<Tapped, String> {
        let (name, kind) = statistic.split_once('.').ok_or("a statistic has a dot")?;
        let _: u32 = name.parse().map_err(|_| format!("there is no '{name}'"))?;
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Tapped {
            name: statistic.into(),
            grouping: "Known".into(),
            explanation: "Known".into(),
            unit: "count".into(),
            overhead: "low".into(),
            scale: kind.contains("[size]").then(|| "bytes".into()),
            tap: Box::new(KnownTap { kind: kind.into(), taken: 0, open: self.open.clone() }),
        })
    }
}

struct Lab {
    dir: PathBuf,
    limits: Limits,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Lab {
    fn new(name: &str) -> Lab {
        let dir = std::env::temp_dir().join(format!("cenote-analytics-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Lab { dir, limits: Limits::default() }
    }

    fn path(&self) -> PathBuf {
        self.dir.join("analytics.redb")
    }

    /// A recorder from that second on, which is ended properly after the work, or just dropped.
    fn run<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
        &self,
        at: u64,
        ends: bool,
        work: impl FnOnce(Recorder) -> W + Send + 'static,
    ) -> T {
        let config = sim::Config { wall_seconds: at, ..sim::Config::default() };
        let (path, limits) = (self.path(), self.limits);
        sim::run_with(&sim::Disks::new(), 7, config, async move {
            let recorder = Recorder::new(&path, limits, Errands::here());
            recorder.begin(Arc::new(Known::default()), &["0.count"]).await;
            let task = world::spawn(recorder.clone().run());
            let outcome = work(recorder.clone()).await;
            if ends {
                recorder.end();
                task.await;
            }
            outcome
        })
    }
}

fn second(name: &str, start: Start, seconds: u64) -> DataQuery {
    DataQuery { name: name.into(), start, seconds, granularity: Granularity::Second }
}

fn minute(name: &str, start: u64, seconds: u64) -> DataQuery {
    DataQuery { name: name.into(), start: Start::At(start), seconds, granularity: Granularity::Minute }
}

fn values(data: &Data) -> Vec<(u64, u64)> {
    data.points.iter().map(|p| (p.sample, p.value)).collect()
}

async fn seconds(n: u64) {
    world::sleep(Duration::from_secs(n)).await;
}

#[test]
fn samples_of_two_lives_are_one_history() {
    let lab = Lab::new("lives");
    let hour = 3_600;
    let until = lab.run(START + 30, true, move |recorder| async move {
        recorder.open("1.ops[size]").unwrap();
        recorder.save("1.ops[size]").unwrap();
        seconds(2 * hour).await;
        recorder.state().last
    });
    assert!((START + 30 + 2 * hour).abs_diff(until) <= 1, "{until}");
    // A minute that began in the first life ends in the second.
    let again = until + 20;
    lab.run(again, true, move |recorder| async move {
        let names: Vec<String> = recorder.datasets().into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["0.count", "1.ops[size]"]);
        seconds(1_000).await;
        let all = recorder.data(&second("1.ops[size]", Start::At(START), 3 * hour)).await.unwrap();
        let last = recorder.state().last;
        let there: Vec<u64> = all.points.iter().map(|p| p.sample).collect();
        let expected: Vec<u64> = (START + 30..=until).chain(again..=last).collect();
        assert_eq!(there, expected);
        for point in &all.points {
            assert_eq!(point.parts.iter().map(|p| p.value).sum::<u64>(), point.value);
        }
        for (of, step) in [(Granularity::Minute, 60), (Granularity::Hour, hour)] {
            let query = DataQuery { granularity: of, ..second("1.ops[size]", Start::At(START), 3 * hour) };
            let coarse = recorder.data(&query).await.unwrap();
            for point in &coarse.points {
                let own = all.points.iter().filter(|p| p.sample / step == point.sample / step);
                let (mut sum, mut count, mut most) = (0, 0, 0);
                own.for_each(|p| (sum, count, most) = (sum + p.value, count + 1, most.max(p.value)));
                assert_eq!(
                    (point.sum, point.samples, point.max),
                    (sum, count, most),
                    "{of:?} {}",
                    point.sample
                );
                assert_eq!(point.parts.iter().map(|p| p.sum).sum::<u64>(), sum);
                assert_eq!(point.parts.iter().map(|p| p.value).sum::<u64>(), point.value);
            }
            assert_eq!(coarse.points.iter().map(|p| p.samples).sum::<u64>(), all.points.len() as u64);
        }
        let told = recorder.datasets().remove(1);
        assert!(told.size > 10_000 && told.since == START + 30 && told.saved, "{told:?}");
    });
}

#[test]
fn a_crash_loses_a_minute_at_most() {
    let lab = Lab::new("crash");
    lab.run(START, false, move |_| seconds(1_130));
    lab.run(START + 1_200, true, move |recorder| async move {
        let data = recorder.data(&second("0.count", Start::At(START), 1_190)).await.unwrap();
        let last = data.points.last().unwrap().sample;
        assert!(last >= START + 1_130 - 61 && data.points.len() as u64 == last - START + 1, "{last}");
    });
}

#[test]
fn a_reader_waits_for_what_is_to_come_and_not_for_what_is_suspended() {
    let lab = Lab::new("wait");
    lab.run(START, true, move |recorder| async move {
        seconds(5).await;
        let from = world::wall_clock().seconds;
        let data = recorder.data(&second("0.count", Start::Now, 3)).await.unwrap();
        let now = world::wall_clock().seconds;
        assert_eq!(values(&data).len(), 3, "{data:?}");
        assert!(data.points[0].sample >= from && now - from <= 4, "{now} {from} {data:?}");
        recorder.suspend(Some("0.count"), true).unwrap();
        let none = recorder.data(&second("0.count", Start::Now, 3)).await.unwrap();
        assert_eq!((none.points.len(), world::wall_clock().seconds), (0, now));
        recorder.suspend(None, false).unwrap();
        // One that is destroyed meanwhile is not waited for.
        let own = recorder.clone();
        let reader = world::spawn(async move { own.data(&second("0.count", Start::Now, 600)).await });
        seconds(2).await;
        recorder.destroy("0.count").unwrap();
        assert!(reader.await.unwrap_err().message.contains("was destroyed"));
        let gone = recorder.data(&second("0.count", Start::Now, 1)).await.unwrap_err();
        assert!(gone.message.contains("there is no dataset '0.count'"), "{gone}");
    });
    lab.run(START + 100, true, |recorder| async move {
        assert_eq!(recorder.datasets(), [], "it is not the first start any more");
    });
}

#[test]
fn what_no_reader_asks_for_ends_and_what_is_saved_goes_on() {
    let lab = Lab::new("idle");
    lab.run(START, true, move |recorder| async move {
        for name in ["1.count", "2.count", "3.count"] {
            recorder.open(name).unwrap();
        }
        assert_eq!(recorder.open("1.count").unwrap(), "1.count", "it is open already");
        recorder.save("3.count").unwrap();
        for _ in 0..4 {
            seconds(300).await;
            recorder.data(&second("2.count", Start::Ago(10), 10)).await.unwrap();
        }
        let names: Vec<String> = recorder.datasets().into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["0.count", "2.count", "3.count"]);
        // The whole of a temporary one is in memory: encoded, and as it grows.
        let data = recorder.data(&second("2.count", Start::At(START), 1_200)).await.unwrap();
        assert!(data.points.len() >= 1_199, "{}", data.points.len());
        recorder.save("2.count").unwrap();
    });
    lab.run(START + 3_000, true, move |recorder| async move {
        let data = recorder.data(&second("2.count", Start::At(START), 1_200)).await.unwrap();
        assert!(data.points.len() >= 1_199, "what there was is kept with it: {}", data.points.len());
    });
}

#[test]
fn what_cannot_be_opened_is_refused_by_name() {
    let mut lab = Lab::new("refused");
    lab.limits.datasets = 3;
    lab.run(START, true, move |recorder| async move {
        let e = recorder.open("x.count").unwrap_err();
        assert_eq!(e.message, "cannot open the statistic 'x.count': there is no 'x'");
        recorder.open("1.count").unwrap();
        recorder.open("2.count").unwrap();
        let e = recorder.open("3.count").unwrap_err();
        assert!(e.message.contains("as many as can be"), "{e}");
        for seconds in [u64::MAX, 200_000] {
            let e = recorder.data(&second("1.count", Start::Ago(1), seconds)).await.unwrap_err();
            assert!(e.message.contains("coarser granularity"), "{e}");
        }
        seconds(2).await;
        let e = recorder.data(&second("1.count", Start::At(START + (1 << 30)), 1)).await.unwrap_err();
        assert!(e.message.contains("further in the future"), "{e}");
        let none = recorder.data(&second("1.count", Start::At(u64::MAX), 0)).await;
        assert!(none.is_err() || none.unwrap().points.is_empty());
    });
}

/// Ticks by a clock of the test's.
fn tick(recorder: &Recorder, wall: u64) {
    recorder.tick(wall, world::now());
}

#[test]
fn a_clock_that_jumps_costs_labels_and_never_history() {
    let lab = Lab::new("clock");
    let config = sim::Config { wall_seconds: START, ..sim::Config::default() };
    let path = lab.path();
    sim::run_with(&sim::Disks::new(), 7, config, async move {
        let recorder = Recorder::new(&path, Limits::default(), Errands::here());
        recorder.begin(Arc::new(Known::default()), &["0.count"]).await;
        (0..1_300).for_each(|n| tick(&recorder, START + n));
        recorder.flush().await;
        // An hour forward, and back again to before what there was.
        (0..700).for_each(|n| tick(&recorder, START + 4_000 + n));
        recorder.flush().await;
        (0..200).for_each(|n| tick(&recorder, START + 600 + n));
        recorder.flush().await;
        recorder.end();
        let data = recorder.data(&second("0.count", Start::At(START), 4_700)).await.unwrap();
        let of: std::collections::BTreeMap<u64, u64> = values(&data).into_iter().collect();
        assert_eq!(of.len(), 2_000);
        assert_eq!((of[&START], of[&(START + 1_299)]), (1, 1_300));
        assert_eq!((of[&(START + 599)], of[&(START + 600)], of[&(START + 799)]), (600, 2_001, 2_200));
        assert_eq!((of[&(START + 800)], of[&(START + 4_000)]), (801, 1_301));
        // What a wrong clock says of the age of samples is not believed.
        recorder.set_settings(Settings { retain_second_data: 1, ..Settings::default() });
        tick(&recorder, START + (400 << 20));
        recorder.flush().await;
        let data = recorder.data(&second("0.count", Start::At(START), 4_700)).await.unwrap();
        assert_eq!(data.points.len(), 2_000);
    });
}

/// As a machine has it whose battery is empty: the clock goes a day ahead, is set an hour back, and the daemon is started
/// anew in between. Every sample that was taken is there afterwards.
#[test]
fn a_clock_that_goes_a_day_ahead_and_an_hour_back_loses_nothing_over_a_restart() {
    const DAY: u64 = 86_400;
    let lab = Lab::new("day-ahead");
    let config = sim::Config { wall_seconds: START, ..sim::Config::default() };
    let path = lab.path();
    sim::run_with(&sim::Disks::new(), 7, config, async move {
        let begin = async || {
            let recorder = Recorder::new(&path, Limits::default(), Errands::here());
            recorder.begin(Arc::new(Known::default()), &["0.count"]).await;
            recorder
        };
        let recorder = begin().await;
        (0..600).for_each(|n| tick(&recorder, START + n));
        (0..600).for_each(|n| tick(&recorder, START + DAY + n));
        recorder.flush().await;
        recorder.end();
        drop(recorder);
        // What began a day ahead goes on an hour earlier, and then where it should have been.
        let recorder = begin().await;
        (0..600).for_each(|n| tick(&recorder, START + DAY - 3_600 + n));
        (600..1_200).for_each(|n| tick(&recorder, START + n));
        recorder.flush().await;
        recorder.end();
        drop(recorder);
        // What has a label of the future can be asked for once that has come.
        let recorder = begin().await;
        tick(&recorder, START + DAY + 1_000);
        let data = recorder.data(&second("0.count", Start::At(START), DAY + 1_000)).await.unwrap();
        let labels: Vec<u64> = values(&data).into_iter().map(|(second, _)| second).collect();
        for (from, n) in [(START, 1_200), (START + DAY - 3_600, 600), (START + DAY, 600)] {
            let found = labels.iter().filter(|second| (from..from + n).contains(second)).count();
            assert_eq!(found as u64, n, "from {from}");
        }
        assert_eq!(labels.len(), 2_400);
        assert!(labels.is_sorted(), "in the order of their labels, whatever the order they were taken in");
    });
}

#[test]
fn samples_go_at_the_age_that_is_set_and_coarser_ones_stay() {
    let lab = Lab::new("retention");
    lab.run(START, true, move |recorder| async move {
        recorder.set_settings(Settings { retain_second_data: 1, ..Settings::default() });
        seconds(4 * 3_600).await;
        recorder.flush().await;
        let data = recorder.data(&second("0.count", Start::At(START), 4 * 3_600)).await.unwrap();
        let (first, last) = (data.points[0].sample, data.points.last().unwrap().sample);
        assert!((3_500..3_600 + 1_300).contains(&(last - first)), "{}", last - first);
        let minutes = recorder.data(&minute("0.count", START, 4 * 3_600)).await.unwrap();
        assert_eq!(minutes.points.len(), 240);
        recorder.prune("0.count", Some(Granularity::Minute), None).await.unwrap();
        recorder.prune("0.count", Some(Granularity::Second), Some(last)).await.unwrap();
        seconds(1).await;
        let minutes = recorder.data(&DataQuery { seconds: 5, ..minute("0.count", START, 0) }).await.unwrap();
        assert_eq!(minutes.points.len(), 0);
    });
}

#[test]
fn all_together_take_no_more_disk_than_they_may() {
    let lab = Lab::new("limit");
    lab.run(START, true, move |recorder| async move {
        for n in 1..5 {
            let name = recorder.open(&format!("{n}.ops[size]")).unwrap();
            recorder.save(&name).unwrap();
        }
        let limit = 400_000;
        recorder.set_settings(Settings { disk_limit: limit, ..Settings::default() });
        seconds(2 * 3_600).await;
        recorder.flush().await;
        let bytes: u64 = recorder.datasets().iter().map(|d| d.size).sum();
        assert!((limit / 3..=limit).contains(&bytes), "{bytes}");
        let data = recorder.data(&second("1.ops[size]", Start::Ago(60), 60)).await.unwrap();
        assert_eq!(data.points.len(), 60, "the newest are there");
    });
}

#[test]
fn a_full_disk_stops_samples_from_being_kept_and_says_so_until_there_is_room() {
    let lab = Lab::new("full");
    lab.run(START, true, move |recorder| async move {
        seconds(130).await;
        assert_eq!(recorder.settings().problem, None);
        recorder.0.store().leave_free(u64::MAX);
        seconds(1_500).await;
        let problem = recorder.settings().problem.unwrap();
        assert!(problem.contains("keep samples") && problem.contains("left"), "{problem}");
        let data = recorder.data(&second("0.count", Start::At(START), 1_600)).await.unwrap();
        assert_eq!(data.points.len(), 1_600, "they are in memory meanwhile");
        recorder.0.store().leave_free(0);
        seconds(130).await;
        assert_eq!(recorder.settings().problem, None);
    });
    lab.run(START + 2_000, true, move |recorder| async move {
        let data = recorder.data(&second("0.count", Start::At(START), 1_700)).await.unwrap();
        assert_eq!(data.points.len(), 1_700);
    });
}

#[test]
fn a_store_that_can_be_opened_later_is_gone_on_with() {
    let lab = Lab::new("later");
    lab.run(START, true, move |_| seconds(200));
    let (path, away) = (lab.path(), lab.dir.join("away"));
    std::fs::rename(&path, &away).unwrap();
    std::fs::create_dir(&path).unwrap();
    lab.run(START + 300, true, move |recorder| async move {
        let name = recorder.open("5.count").unwrap();
        recorder.save(&name).unwrap();
        seconds(130).await;
        let problem = recorder.settings().problem.unwrap();
        assert!(problem.contains("open the store of samples"), "{problem}");
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(&away, &path).unwrap();
        seconds(130).await;
        assert_eq!(recorder.settings().problem, None);
        let names: Vec<String> = recorder.datasets().into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["0.count", "5.count"]);
    });
    lab.run(START + 700, true, move |recorder| async move {
        let data = recorder.data(&second("0.count", Start::At(START), 600)).await.unwrap();
        assert!(data.points.len() > 250, "{}", data.points.len());
        let data = recorder.data(&second("5.count", Start::At(START), 600)).await.unwrap();
        assert!(data.points.len() > 250 && data.points[0].sample >= START + 300, "{}", data.points.len());
    });
}

#[test]
fn a_damaged_store_is_set_aside_named_and_begun_anew() {
    for damage in 0..6u64 {
        let lab = Lab::new(&format!("damaged{damage}"));
        lab.run(START, true, move |_| seconds(1_300));
        let mut bytes = std::fs::read(lab.path()).unwrap();
        match damage {
            0 => bytes = vec![b'x'; 20_000],
            1 => bytes.truncate(5_000),
            2 => bytes[..512].fill(0),
            n => {
                // Anywhere: whatever comes of it, the recorder goes on.
                let at = (noise(n) as usize % bytes.len()).min(bytes.len() - 4_096);
                bytes[at..at + 4_096].fill(0xa5);
            }
        }
        std::fs::write(lab.path(), &bytes).unwrap();
        let (dir, known) = (lab.dir.clone(), damage < 3);
        lab.run(START + 5_000, true, move |recorder| async move {
            seconds(200).await;
            let notice = recorder.settings().problem;
            let aside = std::fs::read_dir(&dir).unwrap().filter(|e| {
                e.as_ref().unwrap().file_name().to_string_lossy().starts_with("analytics.redb.damaged-")
            });
            let aside = aside.count();
            if known {
                assert!(notice.unwrap().contains("was damaged, and is now"), "damage {damage}");
                assert_eq!(aside, 1, "damage {damage}");
            }
            let name = recorder.open("9.count").unwrap();
            recorder.save(&name).unwrap();
            seconds(130).await;
            let data = recorder.data(&second("9.count", Start::Ago(100), 100)).await.unwrap();
            assert_eq!(data.points.len(), 100, "damage {damage}");
        });
        lab.run(START + 6_000, true, move |recorder| async move {
            assert!(recorder.datasets().iter().any(|d| d.name == "9.count" && d.size > 0), "damage {damage}");
        });
    }
}

#[test]
fn memory_is_bounded_whatever_is_open() {
    let mut lab = Lab::new("memory");
    lab.limits.memory = 8 << 20;
    lab.run(START, true, move |recorder| async move {
        for n in 1..9 {
            recorder.open(&format!("{n}.ops[file]")).unwrap();
        }
        for _ in 0..120 {
            seconds(1).await;
            let bytes: u64 = recorder.datasets().iter().map(|d| d.incore).sum();
            assert!(bytes <= 8 << 20, "{bytes}");
        }
        let told = recorder.datasets();
        assert!(told.iter().any(|d| d.problem.is_some()), "it is said");
        let count = told.iter().find(|d| d.name == "0.count").unwrap();
        assert!(!count.suspended, "what is small goes on");
    });
}

#[test]
fn what_is_closed_costs_nothing_from_then_on() {
    let lab = Lab::new("closed");
    let config = sim::Config { wall_seconds: START, ..sim::Config::default() };
    let path = lab.path();
    sim::run_with(&sim::Disks::new(), 7, config, async move {
        let known = Known::default();
        let open = known.open.clone();
        let recorder = Recorder::new(&path, Limits::default(), Errands::here());
        recorder.begin(Arc::new(known), &[]).await;
        recorder.open("1.count").unwrap();
        recorder.open("1.count").unwrap();
        assert_eq!(open.load(Ordering::Relaxed), 1);
        recorder.destroy("1.count").unwrap();
        assert_eq!(open.load(Ordering::Relaxed), 0);
    });
}

/// Fifty statistics, half of them broken down by size with 24 buckets that vary, for so long: bytes on disk, and how long it
/// takes to open a day of one by the minute and an hour by the second.
fn budget(name: &str, time: u64) -> (u64, usize, Duration, Duration) {
    let lab = Lab::new(name);
    let config = sim::Config { wall_seconds: START, ..sim::Config::default() };
    let path = lab.path();
    let taken = sim::run_with(&sim::Disks::new(), 7, config, async move {
        let recorder = Recorder::new(&path, Limits::default(), Errands::here());
        recorder.begin(Arc::new(Known::default()), &[]).await;
        for n in 0..50 {
            let kind = ["ops[size]", "level", "ops[size]", "count"][n % 4];
            let name = recorder.open(&format!("{n}.{kind}")).unwrap();
            recorder.save(&name).unwrap();
        }
        let mut most = 0;
        for second in 0..time {
            tick(&recorder, START + second);
            if second % 60 == 59 {
                most = most.max(recorder.datasets().iter().map(|d| d.incore).sum::<u64>());
                recorder.flush().await;
            }
        }
        drop(recorder);
        most
    });
    let bytes = std::fs::metadata(lab.path()).unwrap().len();
    let path = lab.path();
    let config = sim::Config { wall_seconds: START + time, ..sim::Config::default() };
    let (day, hour) = sim::run_with(&sim::Disks::new(), 7, config, async move {
        let begun = std::time::Instant::now();
        let recorder = Recorder::new(&path, Limits::default(), Errands::here());
        recorder.begin(Arc::new(Known::default()), &[]).await;
        tick(&recorder, START + time - 1);
        let day = recorder.data(&minute("0.ops[size]", START, time)).await.unwrap();
        assert_eq!(day.points.len() as u64, time / 60);
        let of_day = begun.elapsed();
        let begun = std::time::Instant::now();
        let seconds = recorder.data(&second("2.ops[size]", Start::Ago(3_600), 3_600)).await.unwrap();
        assert_eq!(seconds.points.len(), 3_600);
        (of_day, begun.elapsed())
    });
    (bytes, taken as usize, day, hour)
}

#[test]
fn two_hours_of_fifty_statistics_stay_within_their_share_of_the_budget() {
    let (bytes, memory, _, _) = budget("budget", 2 * 3_600);
    assert!(bytes < (200 << 20) / 12, "{bytes} bytes on disk");
    assert!(memory < 64 << 20, "{memory} bytes in memory");
}

#[test]
#[ignore = "takes a minute: for the figures of docs/rfd/0055"]
fn a_day_of_fifty_statistics_stays_within_the_budget() {
    let (bytes, memory, day, hour) = budget("day", 86_400);
    println!("{} MB on disk, {} MB in memory; a day {day:?}, an hour {hour:?}", bytes >> 20, memory >> 20);
    assert!(bytes < 200 << 20 && memory < 64 << 20 && day.as_millis() < 200 && hour.as_millis() < 200);
}

fn recordsize(from: &str, to: &str) -> NewChange {
    let of = |value: &str| Some(Setting { value: value.into(), is_own: true });
    NewChange {
        kind: Kind::Dataset,
        subject: "tank/db".into(),
        setting: "recordsize".into(),
        before: of(from),
        after: of(to),
        command: format!("zfs set recordsize={to} tank/db"),
        uid: 0,
    }
}

#[test]
fn a_change_is_judged_by_what_came_after_it_and_keeps_its_verdict() {
    let lab = Lab::new("ledger");
    let changes = lab.run(START, true, |recorder| async move {
        let step = recorder.open("0.step-1800").unwrap();
        recorder.save(&step).unwrap();
        seconds(1_800).await;
        recorder.note([recordsize("131072", "16384")]);
        seconds(20).await;
        let waiting = &recorder.changes()[0];
        assert!(waiting.verdict == Verdict::Waiting && waiting.until > START + 1_820, "{waiting:?}");
        seconds(400).await;
        // It changes nothing here.
        recorder.note([recordsize("16384", "32768")]);
        seconds(600).await;
        // Two at once, of which none can be told from the other; and two settings of one command, which is one step.
        recorder.note([recordsize("32768", "65536")]);
        seconds(10).await;
        recorder.note([recordsize("65536", "131072"), recordsize("65536", "131072")]);
        seconds(60).await;
        recorder.changes()
    });
    let numbers: Vec<u64> = changes.iter().map(|change| change.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let effects: Vec<_> = changes[0].effects().collect();
    assert_eq!(effects.len(), 1, "{:?}", changes[0]);
    assert_eq!((effects[0].dataset.as_str(), effects[0].unit.as_str()), ("0.step-1800", "count"));
    assert!(effects[0].gain().is_some_and(|gain| (400..510).contains(&gain)), "{effects:?}");
    assert!(changes[1].verdict == Verdict::Compared && changes[1].moments >= 100, "{:?}", changes[1]);
    assert_eq!(changes[1].effects().count(), 0, "{:?}", changes[1]);
    let mixed: Vec<_> = changes[2..].iter().map(|change| (change.verdict, change.with)).collect();
    assert_eq!(mixed, [(Verdict::Mixed, 4), (Verdict::Mixed, 3), (Verdict::Mixed, 3)]);
    // After a restart, and after what no sample was open for.
    let kept = changes.clone();
    let later = lab.run(START + 90_000, true, |recorder| async move {
        assert_eq!(recorder.changes(), kept);
        recorder.destroy("0.count").unwrap();
        recorder.destroy("0.step-1800").unwrap();
        recorder.note([recordsize("131072", "1048576")]);
        seconds(60).await;
        recorder.changes()
    });
    assert_eq!((later.len(), later[5].number, later[5].verdict), (6, 6, Verdict::Idle));
}

#[test]
fn changes_are_bounded_and_numbers_never_come_again() {
    let lab = Lab::new("many-changes");
    lab.run(START, true, |recorder| async move {
        for at in 0..10_100u64 {
            recorder.note([recordsize(&at.to_string(), &"x".repeat(5_000))]);
        }
        seconds(1).await;
    });
    lab.run(START + 60, true, |recorder| async move {
        let changes = recorder.changes();
        let ends = (changes.first().unwrap().number, changes.last().unwrap().number);
        assert_eq!((changes.len(), ends), (10_000, (101, 10_100)));
        assert!(changes[0].after.as_ref().unwrap().len() <= 1_024);
        recorder.note([recordsize("1", "2")]);
        assert_eq!(recorder.changes().last().unwrap().number, 10_101);
    });
}
