//! A delay at one layer is found in the stage of that layer, and nowhere else.
//!
//! Each test does the same work twice, without the delay and with it. What the requests took longer must be what the
//! stage took longer, within a twentieth.

use super::{BLOCK, Rig, VOLUME, fill, make_volume, noise};
use crate::{Content, Pool};
use dsl::props::{Limits, Types, When, parse_setting};
use sim::{Config, Disks, Model};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use vdev::Layout;
use world::stages::{Course, Stage};
use world::{Buf, Task};

const DELAY: Duration = Duration::from_millis(20);
const SIZE: u64 = 4 << 20;

/// What requests took together, and their stages.
#[derive(Clone, Debug, Default)]
struct Took(Arc<Mutex<(Duration, BTreeMap<&'static str, Duration>)>>);

impl Took {
    /// Does a request and adds it.
    async fn time<T>(&self, work: impl Future<Output = T>) -> T {
        let began = world::now();
        let course = Course::of_request(began);
        let result = course.clone().run(work).await;
        let ended = world::now();
        let mut sums = self.0.lock().unwrap();
        let (mut left, took) = (ended.since(began), ended.since(began));
        for (stage, spent) in course.spent(ended) {
            *sums.1.entry(stage.name()).or_default() += spent;
            left = left.checked_sub(spent).expect("stages are parts of the request");
        }
        sums.0 += took;
        result
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Task<()> {
        let took = self.clone();
        world::spawn(async move { took.time(work).await })
    }

    fn total(&self) -> Duration {
        self.0.lock().unwrap().0
    }

    fn of(&self, stage: Stage) -> Duration {
        self.0.lock().unwrap().1.get(stage.name()).copied().unwrap_or_default()
    }
}

/// How the two runs differ.
#[derive(Clone, Default)]
struct Setting {
    model: Option<Model>,
    tunables: Vec<(Tunable, u64)>,
    compute: Duration,
}

impl Setting {
    fn disk(model: Model) -> Setting {
        Setting { model: Some(model), ..Setting::default() }
    }

    fn tuned(tunable: Tunable, value: u64) -> Setting {
        Setting { tunables: vec![(tunable, value)], ..Setting::default() }
    }

    /// A pool with a volume that is full and cold.
    fn run<F>(&self, work: impl FnOnce(Pool, Took) -> F + Send + 'static) -> Took
    where
        F: Future<Output = ()> + Send,
    {
        let rig = Rig { disks: Disks::new(), layout: Layout::Stripe, count: 1 };
        rig.disks.add(rig.path(0), 96 << 20, self.model.unwrap_or(Model::NVME));
        let config = Config { compute: self.compute, ..Config::default() };
        let (tunables, devices) = (self.tunables.clone(), rig.clone());
        sim::run_with(&rig.disks, 7, config, async move {
            let pool = devices.create().await;
            make_volume(&pool, VOLUME, SIZE).await;
            fill(&pool, VOLUME, 7).await;
            let content = Content::Volume { size: SIZE, block_size: 1 << 20 };
            let zstd =
                parse_setting("compression", "zstd-3", Types::VOLUME, When::Create, &Limits::default());
            pool.create_dataset("tank/large", content, vec![zstd.unwrap()]).await.unwrap();
            let large = pool.open_volume("tank/large").await.unwrap();
            // Compressible, and yet no block that its pointer has room for.
            let half = [noise(1, 512 << 10), vec![7; 512 << 10]].concat();
            large.write(1 << 20, Buf::copy_from(&half)).await.unwrap();
            drop(large);
            pool.close().await.unwrap();
            let tuned = Arc::new(Tunables::default());
            for (tunable, value) in tunables {
                tuned.set(tunable, value).unwrap();
            }
            let pool = devices.open_tuned(false, tuned).await.unwrap();
            let took = Took::default();
            work(pool.clone(), took.clone()).await;
            pool.close().await.unwrap();
            took
        })
    }
}

/// Runs `work` both ways and compares.
fn found<F>(
    stage: Stage,
    [without, with]: [Setting; 2],
    work: impl Fn(Pool, Took) -> F + Send + Copy + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let [without, with] = [without, with].map(|setting| setting.run(work));
    let longer = with.total().checked_sub(without.total()).unwrap_or_default();
    assert!(longer >= DELAY / 2, "there is a delay: {without:?}, {with:?}");
    let (longer, there) =
        (longer.as_secs_f64(), with.of(stage).as_secs_f64() - without.of(stage).as_secs_f64());
    assert!((there / longer - 1.0).abs() < 0.05, "{stage:?} has {there} of {longer}: {without:?}, {with:?}");
}

fn block(seed: u64) -> Buf {
    Buf::copy_from(&noise(seed, BLOCK as usize))
}

#[test]
fn a_slow_read_is_at_the_device() {
    let slow = Model { read: DELAY, ..Model::NVME };
    found(Stage::Device, [Setting::default(), Setting::disk(slow)], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        took.time(volume.read(SIZE / 2, BLOCK)).await.unwrap();
    });
}

/// The second request waits for the read of the first, and knows where that is.
#[test]
fn a_read_that_two_requests_share_is_at_the_device_for_both() {
    let slow = Model { read: DELAY, ..Model::NVME };
    found(Stage::Device, [Setting::default(), Setting::disk(slow)], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        let both: Vec<_> = (0..2)
            .map(|_| {
                let volume = volume.clone();
                took.spawn(async move { drop(volume.read(SIZE / 2, BLOCK).await.unwrap()) })
            })
            .collect();
        for one in both {
            one.await;
        }
        assert_eq!(took.of(Stage::Cache), Duration::ZERO);
    });
}

#[test]
fn a_slow_flush_is_a_flush() {
    let slow = Model { flush: DELAY, ..Model::NVME };
    found(Stage::Flush, [Setting::default(), Setting::disk(slow)], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        // The first begins the chain of the log, which waits for a txg.
        volume.write_durable(0, block(1)).await.unwrap();
        took.time(volume.write_durable(BLOCK, block(2))).await.unwrap();
    });
}

#[test]
fn commits_that_share_a_flush_have_all_of_it() {
    let slow = Model { flush: DELAY, ..Model::NVME };
    found(Stage::Flush, [Setting::default(), Setting::disk(slow)], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        volume.write_durable(0, block(1)).await.unwrap();
        let writer = |i: u64| {
            let volume = volume.clone();
            took.spawn(async move { volume.write_durable(i * BLOCK, block(i)).await.unwrap() })
        };
        for one in (1..8).map(writer).collect::<Vec<_>>() {
            one.await;
        }
    });
}

#[test]
fn the_first_commit_waits_for_a_txg() {
    let slow = Model { flush: DELAY, ..Model::NVME };
    found(Stage::Txg, [Setting::default(), Setting::disk(slow)], |pool, took| async move {
        took.time(pool.sync()).await.unwrap();
    });
}

#[test]
fn reads_that_the_device_may_not_have_yet_are_in_its_queue() {
    let few = |n| Setting {
        model: Some(Model { read: Duration::from_millis(2), ..Model::NVME }),
        // They are as far from each other as a reader in steps reads.
        tunables: vec![(Tunable::VdevSyncReadMaxActive, n), (Tunable::PrefetchDisable, 1)],
        ..Setting::default()
    };
    found(Stage::Queue, [few(100), few(1)], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        drop(volume.read(0, BLOCK).await.unwrap());
        let readers: Vec<_> = (1..16)
            .map(|i| {
                let volume = volume.clone();
                // Far from each other, or they would be one read.
                took.spawn(async move { drop(volume.read(i * (SIZE / 16), BLOCK).await.unwrap()) })
            })
            .collect();
        for one in readers {
            one.await;
        }
    });
}

#[test]
fn a_writer_that_is_held_back_is_throttled() {
    let slow = Model { write: Duration::from_millis(5), channels: 1, ..Model::NVME };
    let most = |bytes| Setting { model: Some(slow), ..Setting::tuned(Tunable::DirtyDataMax, bytes) };
    found(Stage::Throttle, [most(1 << 30), most(1 << 20)], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        for i in 0..SIZE / BLOCK {
            took.time(volume.write(i * BLOCK, block(i))).await.unwrap();
        }
    });
}

#[test]
fn a_range_that_another_request_has_is_a_lock() {
    let slow = Model { read: DELAY, ..Model::NVME };
    found(Stage::Lock, [Setting::default(), Setting::disk(slow)], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        // What is above the block is in memory.
        drop(volume.read(0, BLOCK).await.unwrap());
        let other = volume.clone();
        let part =
            world::spawn(async move { other.write(BLOCK * 64, block(1).slice(0..512)).await.unwrap() });
        world::sleep(Duration::from_micros(1)).await;
        took.time(volume.write(BLOCK * 64, block(2))).await.unwrap();
        part.await;
    });
}

#[test]
fn decompressing_on_another_core_is_computing() {
    let slow = Setting { compute: DELAY, ..Setting::default() };
    found(Stage::Compute, [Setting::default(), slow], |pool, took| async move {
        let volume = pool.open_volume("tank/large").await.unwrap();
        took.time(volume.read(1 << 20, 4096)).await.unwrap();
    });
}

/// A commit waits for others that are expected with it.
#[test]
fn gathering_is_in_the_log() {
    let patient = |percent| Setting::tuned(Tunable::CommitTimeoutPercent, percent);
    let model = Model { flush: Duration::from_millis(10), ..Model::NVME };
    let [hasty, patient] = [0, 1000].map(|percent| Setting { model: Some(model), ..patient(percent) });
    found(Stage::Log, [hasty, patient], |pool, took| async move {
        let volume = pool.open_volume(VOLUME).await.unwrap();
        volume.write_durable(0, block(1)).await.unwrap();
        for _ in 0..4 {
            let writers: Vec<_> = (0..4)
                .map(|i| {
                    let volume = volume.clone();
                    world::spawn(async move { volume.write_durable(i * BLOCK, block(i)).await.unwrap() })
                })
                .collect();
            for one in writers {
                one.await;
            }
        }
        took.time(volume.write_durable(0, block(9))).await.unwrap();
    });
}
