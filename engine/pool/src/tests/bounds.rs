//! What must stay within bounds: dirty data, the cache; and copies that lie apart.

use super::{BLOCK, Rig, cache, fill, host, make_volume, noise, read_all, verify};
use crate::{Content, OpenOptions, Pool};
use arc::Cache;
use dsl::DestroySpec;
use dsl::props::{Limits, Types, When, parse_setting};
use sim::{Fault, Model};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use vdev::Layout;
use world::Buf;

const VOLUME: &str = "tank/v";
const CHUNK: u64 = 128 << 10;

impl Rig {
    pub(super) async fn open_with(&self, cache: Arc<Cache>, tunables: Arc<Tunables>) -> Pool {
        let options = OpenOptions {
            read_only: false,
            name: None,
            host: host(),
            force: false,
            missing_log: false,
            copy_over: false,
            cache,
            hub: Default::default(),
            tunables,
        };
        crate::open(&self.candidate().await, options).await.unwrap()
    }
}

/// Calls `look` every five milliseconds until the returned flag is dropped, and keeps the largest answer.
fn watch(look: impl Fn() -> u64 + Send + Sync + 'static) -> (Arc<AtomicU64>, world::Task<()>, Arc<()>) {
    let largest = Arc::new(AtomicU64::new(0));
    let alive = Arc::new(());
    let (seen, until) = (largest.clone(), Arc::downgrade(&alive));
    let task = world::spawn(async move {
        while until.upgrade().is_some() {
            seen.fetch_max(look(), Ordering::Relaxed);
            world::sleep(Duration::from_millis(5)).await;
        }
    });
    (largest, task, alive)
}

/// Sixteen writers against a disk that takes ten milliseconds for anything: dirty data stays below its maximum, but for
/// the one write that each of them may have under way; and they are slowed, not stopped.
#[test]
fn writers_are_slowed_before_dirty_data_runs_out() {
    const MAX: u64 = 8 << 20;
    const WRITERS: u64 = 16;
    const EACH: u64 = 2 << 20;
    let rig = Rig::new(Layout::Stripe, 1, 512 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, WRITERS * EACH).await;
        pool.export().await.unwrap();
        drop(pool);
        let tunables = Tunables::new();
        tunables.set(Tunable::DirtyDataMax, MAX).unwrap();
        let pool = own.open_with(cache(), tunables).await;
        own.disks
            .get(own.path(0))
            .unwrap()
            .set_fault(Fault { delay: Duration::from_millis(10), ..Fault::default() });
        let sampled = pool.clone();
        let (largest, sampler, alive) = watch(move || sampled.txgs().dirty_bytes());
        let volume = Arc::new(pool.open_volume(VOLUME).await.unwrap());
        let writers = (0..WRITERS).map(|writer| {
            let volume = volume.clone();
            world::spawn(async move {
                for at in (0..EACH).step_by(CHUNK as usize) {
                    let data = Buf::copy_from(&noise(writer * EACH + at, CHUNK as usize));
                    volume.write(writer * EACH + at, data).await.unwrap();
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            world::timeout(Duration::from_secs(3600), writer).await.expect("the writers get on");
        }
        drop(alive);
        sampler.await;
        let largest = largest.load(Ordering::Relaxed);
        assert!(largest <= MAX + WRITERS * CHUNK, "{largest} bytes were dirty");
        assert!(largest > MAX / 2, "only {largest} bytes were dirty: the throttle was not met");
        drop(volume);
        pool.close().await.unwrap();
    });
}

/// Four writers that are faster than their disk, which does 60 MiB/s, one thing at a time.
struct Hurry {
    /// Bytes that may be dirty.
    dirty_max: u64,
    /// Of the volume.
    size: u64,
    /// How often each writes its part of it.
    rounds: u64,
}

/// What came of it.
struct Hurried {
    took: Duration,
    txgs: u64,
    /// Of all writes.
    longest: Duration,
}

impl Hurry {
    const WRITERS: u64 = 4;

    fn run(self) -> Hurried {
        let disk = Model { channels: 1, per_mib: Duration::from_micros(16_600), ..Model::NVME };
        let rig = Rig { count: 1, ..Rig::new(Layout::Stripe, 0, 0) };
        rig.disks.add(rig.path(0), 1 << 30, disk);
        let own = rig.clone();
        rig.run(1, async move {
            let pool = own.create().await;
            make_volume(&pool, VOLUME, self.size).await;
            pool.export().await.unwrap();
            drop(pool);
            let tunables = Tunables::new();
            tunables.set(Tunable::DirtyDataMax, self.dirty_max).unwrap();
            let pool = own.open_with(cache(), tunables).await;
            let volume = Arc::new(pool.open_volume(VOLUME).await.unwrap());
            let (began, first) = (world::now(), pool.txgs().synced_txg());
            let (data, each) = (noise(1, CHUNK as usize), self.size / Self::WRITERS);
            let writers = (0..Self::WRITERS).map(|writer| {
                let (volume, data) = (volume.clone(), data.clone());
                world::spawn(async move {
                    let mut longest = Duration::ZERO;
                    for at in (0..self.rounds * each).step_by(CHUNK as usize) {
                        let begun = world::now();
                        volume.write(writer * each + at % each, Buf::copy_from(&data)).await.unwrap();
                        longest = longest.max(world::now().since(begun));
                    }
                    longest
                })
            });
            let mut longest = Duration::ZERO;
            for writer in writers.collect::<Vec<_>>() {
                longest = longest.max(writer.await);
            }
            let took = world::now().since(began);
            let txgs = pool.txgs().synced_txg().0 - first.0;
            drop(volume);
            pool.close().await.unwrap();
            Hurried { took, txgs, longest }
        })
    }
}

/// Writers that are faster than the disk stopped at each txg, all together, until it was on disk: here for an eighth of a
/// second, on larger machines for one and a half. Now none waits longer than its share of the disk's time, and a little.
#[test]
fn writers_do_not_stop_for_a_txg_to_end() {
    let Hurried { took, txgs, longest } = Hurry { dirty_max: 16 << 20, size: 192 << 20, rounds: 1 }.run();
    assert!(txgs >= 10, "{txgs} txgs are too few to say");
    assert!(took < Duration::from_secs(5), "the disk was idle: {took:?} for what it does in 3.2 s");
    assert!(longest <= Duration::from_millis(40), "a write of 128K took {longest:?}, of {took:?} in all");
}

/// Where less is free than may be dirty, what is free is the limit; writers stopped at it for whole txgs, here for two
/// seconds.
#[test]
fn writers_do_not_stop_for_a_txg_to_end_where_space_is_short() {
    let Hurried { took, txgs, longest } = Hurry { dirty_max: 1 << 30, size: 192 << 20, rounds: 5 }.run();
    assert!(txgs >= 2, "{txgs} txgs are too few to say");
    assert!(took < Duration::from_secs(20), "the disk was idle: {took:?} for what it does in 16 s");
    assert!(longest <= Duration::from_millis(40), "a write of 128K took {longest:?}, of {took:?} in all");
}

/// A txg frees a bounded number of blocks; the next one came only when its time-out was over.
#[test]
fn an_idle_pool_frees_as_fast_as_its_disks_allow() {
    const SIZE: u64 = 16 << 20;
    let rig = Rig::new(Layout::Stripe, 1, 256 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE).await;
        fill(&pool, VOLUME, 1).await;
        pool.export().await.unwrap();
        drop(pool);
        let tunables = Tunables::new();
        tunables.set(Tunable::AsyncBlockMaxBlocks, SIZE / BLOCK / 16).unwrap();
        let pool = own.open_with(cache(), tunables).await;
        let spec = DestroySpec { names: vec![VOLUME.into()], ..DestroySpec::default() };
        pool.destroy_datasets(spec).await.unwrap();
        assert!(pool.0.dsl.has_frees().await.unwrap(), "it was freed at once");
        let (began, first) = (world::now(), pool.txgs().synced_txg());
        while pool.0.dsl.has_frees().await.unwrap() {
            world::sleep(Duration::from_millis(1)).await;
        }
        let (took, txgs) = (world::now().since(began), pool.txgs().synced_txg().0 - first.0);
        assert!(txgs >= 10, "{txgs} txgs");
        assert!(took < Duration::from_secs(1), "{txgs} txgs took {took:?}");
        pool.close().await.unwrap();
    });
}

#[test]
fn the_cache_keeps_its_bound_under_any_load() {
    const MAX: u64 = 4 << 20;
    const SIZE: usize = 24 << 20;
    let rig = Rig::new(Layout::Mirror, 2, 256 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        make_volume(&pool, VOLUME, SIZE as u64).await;
        pool.export().await.unwrap();
        drop(pool);
        let cache = Arc::new(Cache::new(MAX));
        let pool = own.open_with(cache.clone(), Tunables::new()).await;
        let (largest, sampler, alive) = watch(move || cache.stats().size);
        fill(&pool, VOLUME, 1).await;
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE));
        let volume = Arc::new(pool.open_volume(VOLUME).await.unwrap());
        let readers = (0..8u64).map(|reader| {
            let volume = volume.clone();
            world::spawn(async move {
                for i in 0..400 {
                    let at = (reader * 7919 + i * 104_729) % (SIZE as u64 / BLOCK) * BLOCK;
                    volume.read(at, BLOCK).await.unwrap();
                }
            })
        });
        for reader in readers.collect::<Vec<_>>() {
            reader.await;
        }
        drop((alive, volume));
        sampler.await;
        let largest = largest.load(Ordering::Relaxed);
        assert!(largest <= MAX, "{largest} bytes were in a cache of {MAX}");
        assert!(largest > MAX / 2, "only {largest} bytes were ever in it");
        pool.close().await.unwrap();
    });
}

/// Copies lie on different devices, so that one of those may lose everything.
#[test]
fn a_volume_with_copies_survives_a_device_of_a_stripe() {
    const SIZE: u64 = 32 << 20;
    let rig = Rig::new(Layout::Stripe, 3, 256 << 20);
    let own = rig.clone();
    rig.run(1, async move {
        let pool = own.create().await;
        let copies = parse_setting("copies", "2", Types::VOLUME, When::Create, &Limits::default()).unwrap();
        let most =
            parse_setting("redundant_metadata", "most", Types::VOLUME, When::Create, &Limits::default());
        let content = Content::Volume { size: SIZE, block_size: 16 << 20 };
        pool.create_dataset(VOLUME, content, vec![copies, most.unwrap()]).await.unwrap();
        fill(&pool, VOLUME, 1).await;
        pool.export().await.unwrap();
    });
    rig.spoil(1, 4 << 20, 240 << 20, 3);
    let own = rig.clone();
    rig.run(2, async move {
        let pool = own.open(false).await.unwrap();
        assert!(read_all(&pool, VOLUME).await.unwrap() == noise(1, SIZE as usize));
        pool.scrub().await.unwrap();
        pool.scrub_wait().await;
        assert_eq!(pool.scan_status().unwrap().errors, 0, "{:?}", pool.problems());
        assert_eq!(verify(&pool).await.repairable, 0);
        pool.export().await.unwrap();
    });
}
