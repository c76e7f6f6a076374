//! Cache devices: blocks that left memory come from them, also after an import; and whatever they do, no byte is wrong and
//! no request fails.

#![allow(clippy::unwrap_used)]

use arc::Cache;
use dsl::props::{Prop, PropName, Value};
use l2arc::{Counted, Stats};
use pool::{Content, CreateOptions, Host, Offline, OpenOptions, Pool};
use sim::{Config, DiskHandle, Disks, Fault, Model, Rng};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::Guid;
use vdev::{AuxKind, Bias, Device, Group, Layout, NewLeaf, State};
use world::Buf;

const CACHE: &str = "/sim/cache";
const CACHE_SIZE: u64 = 64 << 20;
const VOLUME: &str = "tank/v";
const BLOCK: u64 = 32 << 10;
/// Larger than memory, and smaller than the cache device.
const SIZE: u64 = 24 << 20;
const MEMORY: u64 = 6 << 20;
const COUNT: u64 = SIZE / BLOCK;

fn devices() -> Disks {
    let disks = Disks::new();
    disks.add("/sim/disk0", 256 << 20, Model::NVME);
    disks.add("/sim/disk1", 256 << 20, Model::NVME);
    disks.add(CACHE, CACHE_SIZE, Model::NVME);
    disks
}

fn run<T: Send + 'static>(disks: &Disks, seed: u64, work: impl Future<Output = T> + Send + 'static) -> T {
    sim::run_with(disks, seed, Config::default(), work)
}

/// Bytes that do not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(len).collect()
}

fn memory() -> Arc<Cache> {
    Arc::new(Cache::new(MEMORY))
}

fn host() -> Host {
    Host::new(7, "sim")
}

fn tunables() -> Arc<Tunables> {
    let tunables = Tunables::new();
    tunables.set(Tunable::L2RebuildMinSize, 0).unwrap();
    tunables
}

async fn open(tunables: Arc<Tunables>) -> Pool {
    let devices = ["/sim/disk0", "/sim/disk1"].map(Device::whole);
    let candidate = pool::scan(devices.into()).await.remove(0);
    let options = OpenOptions {
        read_only: false,
        name: None,
        host: host(),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: memory(),
        hub: Default::default(),
        tunables,
    };
    pool::open(&candidate, options).await.unwrap()
}

fn leaf(path: &str) -> NewLeaf {
    NewLeaf::look_at(Path::new(path)).unwrap()
}

async fn create(tunables: Arc<Tunables>) -> Pool {
    let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY).unwrap();
    let leaves = ["/sim/disk0", "/sim/disk1"].map(leaf).into();
    let options = CreateOptions {
        name: "tank".into(),
        groups: vec![Group { layout: Layout::Mirror, bias: Bias::Normal, leaves }],
        ashift: 12,
        features: features.into_iter().collect(),
        root_props: Vec::new(),
        root: Default::default(),
        pool_props: Vec::new(),
        compatibility: None,
        comment: None,
        host: host(),
        cache: memory(),
        hub: Default::default(),
        tunables,
    };
    pool::create(options).await.unwrap()
}

/// A pool with a cache device and a volume of which each block is [`block`].
async fn prepared(tunables: Arc<Tunables>) -> Pool {
    let pool = create(tunables).await;
    pool.add_side_devices(AuxKind::Cache, &[leaf(CACHE)]).await.unwrap();
    let content = Content::Volume { size: SIZE, block_size: BLOCK };
    pool.create_dataset(VOLUME, content, Vec::new()).await.unwrap();
    let volume = pool.open_volume(VOLUME).await.unwrap();
    for n in 0..COUNT {
        volume.write(n * BLOCK, Buf::copy_from(&block(n, 0))).await.unwrap();
    }
    volume.flush().await.unwrap();
    pool.sync().await.unwrap();
    pool
}

/// Of two that follow one another, one can be compressed.
fn block(n: u64, version: u64) -> Vec<u8> {
    let seed = n + version * 100_000;
    let half = noise(seed, BLOCK as usize / 2);
    if n.is_multiple_of(2) { half.repeat(2) } else { noise(seed, BLOCK as usize) }
}

fn bytes(parts: &[Buf]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}

fn second(pool: &Pool) -> Stats {
    pool.pipeline().second_level().stats()
}

fn guid(pool: &Pool) -> Guid {
    pool.tree().aux(AuxKind::Cache)[0].spec.guid
}

/// Reads all of it in pieces, with time between them for feeding.
async fn read_slowly(pool: &Pool) {
    let volume = pool.open_volume(VOLUME).await.unwrap();
    for n in 0..COUNT {
        let read = volume.read(n * BLOCK, BLOCK).await.unwrap();
        assert!(bytes(&read) == block(n, 0), "block {n}");
        if n % 32 == 31 {
            world::sleep(Duration::from_secs(2)).await;
        }
    }
}

async fn rebuilt(pool: &Pool) -> u64 {
    for _ in 0..100 {
        world::sleep(Duration::from_millis(100)).await;
    }
    second(pool).counted.rebuilt
}

#[test]
fn what_left_memory_comes_from_the_cache_device_also_after_an_import() {
    let disks = devices();
    run(&disks, 1, async move {
        let pool = prepared(tunables()).await;
        read_slowly(&pool).await;
        let before = second(&pool);
        assert!(before.counted.fed > COUNT * 3 / 4 && before.header_bytes > 0, "{before:?}");
        let charged = pool.pipeline().cache().stats();
        assert!(charged.beside >= before.header_bytes && charged.limit + charged.beside <= MEMORY);
        read_slowly(&pool).await;
        let after = second(&pool).counted;
        let hits = after.hits - before.counted.hits;
        assert!(hits > COUNT * 6 / 10, "{hits} of {} blocks: {after:?}", COUNT);
        assert_eq!((after.bad_checksums, after.read_errors, after.foreign), (0, 0, 0), "{after:?}");
        let report = pool.verify(|_| ()).await.unwrap();
        assert!(report.is_sound(), "{:?}", report.damage);
        pool.export().await.unwrap();

        let pool = open(tunables()).await;
        let found = rebuilt(&pool).await;
        assert!(found > COUNT / 2, "{found} were found again");
        read_slowly(&pool).await;
        let stats = second(&pool).counted;
        assert!(stats.hits > found / 2, "{stats:?}");
        assert_eq!(stats.bad_checksums, 0);
        pool.export().await.unwrap();

        let without = tunables();
        without.set(Tunable::L2RebuildEnabled, 0).unwrap();
        let pool = open(without).await;
        assert_eq!(rebuilt(&pool).await, 0, "it is forgotten when that is asked for");
        pool.export().await.unwrap();
        let pool = open(tunables()).await;
        assert_eq!(rebuilt(&pool).await, 0, "and stays so");
        pool.export().await.unwrap();
    });
}

#[test]
fn the_hand_comes_around_and_what_is_there_is_found_again_after_an_import() {
    let disks = devices();
    run(&disks, 6, async move {
        let pool = prepared(tunables()).await;
        for version in 1..6 {
            let volume = pool.open_volume(VOLUME).await.unwrap();
            for n in 0..COUNT {
                volume.write(n * BLOCK, Buf::copy_from(&block(n, version))).await.unwrap();
                if n % 32 == 31 {
                    volume.flush().await.unwrap();
                    world::sleep(Duration::from_secs(8)).await;
                }
                let back = rng_of(n, version).below(COUNT);
                let expected = if back <= n { version } else { version - 1 };
                let read = volume.read(back * BLOCK, BLOCK).await.unwrap();
                assert!(bytes(&read) == block(back, expected), "version {version}, block {back}");
            }
        }
        let stats = second(&pool).counted;
        assert!(
            stats.written_bytes > CACHE_SIZE * 3 / 2 && stats.hits > 500 && stats.bad_checksums == 0,
            "{stats:?}"
        );
        pool.export().await.unwrap();
        let pool = open(tunables()).await;
        assert!(rebuilt(&pool).await > COUNT / 2, "{:?}", second(&pool));
        let volume = pool.open_volume(VOLUME).await.unwrap();
        for n in 0..COUNT {
            assert!(bytes(&volume.read(n * BLOCK, BLOCK).await.unwrap()) == block(n, 5), "block {n}");
        }
        drop(volume);
        let stats = second(&pool).counted;
        assert!(stats.hits > COUNT / 2 && stats.bad_checksums == 0, "{stats:?}");
        pool.export().await.unwrap();
    });
}

fn rng_of(n: u64, version: u64) -> Rng {
    Rng::new(n * 7 + version)
}

async fn set(pool: &Pool, prop: Prop, value: u64) {
    let set = pool.change("set", move |pool, tx| async move {
        pool.dsl().set(&tx, VOLUME, &PropName::Native(prop), &Value::Number(value)).await
    });
    set.await.unwrap();
}

/// `secondarycache` was accepted and followed by nothing.
#[test]
fn what_secondarycache_and_the_tunables_exclude_is_not_fed() {
    let disks = devices();
    run(&disks, 2, async move {
        let tunables = tunables();
        let pool = prepared(tunables.clone()).await;
        for (code, takes_data) in [(1, false), (0, false), (2, true)] {
            set(&pool, Prop::SecondaryCache, code).await;
            pool.pipeline().cache().clear();
            let before = second(&pool).data.blocks;
            read_slowly(&pool).await;
            let fed = second(&pool).data.blocks.saturating_sub(before);
            assert_eq!(fed > COUNT / 2, takes_data, "secondarycache {code}: {fed} blocks of data");
            assert!(second(&pool).metadata.blocks > 0, "the pool's own metadata goes there");
            // What was written before the property was set may be there.
            pool.remove_side_device(AuxKind::Cache, guid(&pool)).await.unwrap();
            assert_eq!(second(&pool).data, Default::default());
            pool.add_side_devices(AuxKind::Cache, &[leaf(CACHE)]).await.unwrap();
        }
        // No block was used more than once.
        tunables.set(Tunable::L2MfuOnly, 2).unwrap();
        pool.pipeline().cache().clear();
        read_slowly(&pool).await;
        let stats = second(&pool);
        assert!(stats.data.blocks < 100 && stats.metadata.blocks > 0, "{stats:?}");
        tunables.set(Tunable::L2MfuOnly, 0).unwrap();
        tunables.set(Tunable::L2MetaPercent, 0).unwrap();
        read_slowly(&pool).await;
        assert_eq!(second(&pool).data.blocks, stats.data.blocks, "there is no memory to remember more in");
        assert!(second(&pool).counted.no_memory > 0);
        pool.export().await.unwrap();
    });
}

#[test]
fn a_device_that_is_offline_serves_nothing_and_what_it_holds_when_it_is_back() {
    let disks = devices();
    run(&disks, 3, async move {
        let pool = prepared(tunables()).await;
        read_slowly(&pool).await;
        pool.offline(guid(&pool), Offline::Lasting).await.unwrap();
        let before = second(&pool).counted;
        read_slowly(&pool).await;
        let after = second(&pool).counted;
        assert_eq!((after.hits, after.read_errors), (before.hits, before.read_errors));
        assert!(after.passed_by > before.passed_by);
        pool.export().await.unwrap();
        let pool = open(tunables()).await;
        let state = || pool.tree().status().caches[0].health.state;
        assert_eq!((state(), rebuilt(&pool).await), (State::Offline, 0), "it stays so");
        assert_eq!(pool.online(guid(&pool)).await.unwrap().state, State::Online);
        assert!(rebuilt(&pool).await > COUNT / 2);
        read_slowly(&pool).await;
        assert!(second(&pool).counted.hits > COUNT / 3, "{:?}", second(&pool));
        pool.export().await.unwrap();
    });
}

#[test]
fn with_every_tunable_of_cache_devices_at_its_smallest_and_its_largest_reads_are_right_and_rest_is_rest() {
    for &tunable in Tunable::ALL.iter().filter(|tunable| tunable.name().starts_with("l2arc")) {
        for value in [tunable.definition().min, tunable.definition().max] {
            let disks = devices();
            let own = disks.clone();
            run(&disks, 4, async move {
                let tunables = tunables();
                tunables.set(tunable, value).unwrap();
                let pool = prepared(tunables.clone()).await;
                read_slowly(&pool).await;
                read_slowly(&pool).await;
                let handle = own.get(CACHE).unwrap();
                world::sleep(Duration::from_secs(100)).await;
                let before = handle.writes();
                world::sleep(Duration::from_secs(3600)).await;
                let idle = handle.writes() - before;
                assert!(idle < 100, "{tunable}={value}: {idle} writes while nothing happens");
                pool.export().await.unwrap();
                let pool = open(tunables).await;
                read_slowly(&pool).await;
                assert_eq!(second(&pool).counted.bad_checksums, 0, "{tunable}={value}");
                pool.export().await.unwrap();
            });
        }
    }
}

/// What is done to the cache device, at random.
fn hurt(handle: &DiskHandle, rng: &mut Rng, copy: &mut Vec<u8>) {
    let ppm = 300_000;
    let of = |fault: Fault| handle.set_fault(fault);
    match rng.below(16) {
        0 => of(Fault { gone: true, ..Fault::default() }),
        1 => handle.unplug(),
        2 => of(Fault { read_errors_ppm: ppm, write_errors_ppm: ppm, ..Fault::default() }),
        3 => of(Fault { rot_ppm: ppm, ..Fault::default() }),
        4 => of(Fault { lost_writes_ppm: ppm, misdirected_writes_ppm: ppm, ..Fault::default() }),
        // So slow that it is left alone, and merely slow.
        5 => of(Fault { delay: Duration::from_secs(15), ..Fault::default() }),
        6 => of(Fault { delay: Duration::from_millis(40), ..Fault::default() }),
        7 => *copy = handle.peek(0, CACHE_SIZE as usize),
        8 if !copy.is_empty() => handle.poke(0, copy),
        9 => {
            let at = rng.below(CACHE_SIZE - (1 << 20));
            handle.poke(at, &noise(at, 1 << 20));
        }
        10 => handle.break_sectors((5 << 20)..(9 << 20)),
        _ => of(Fault::default()),
    }
}

/// Answers how many blocks came from the cache device, and of how many it had other bytes or none.
async fn torture(disks: Disks, seed: u64) -> Counted {
    let mut rng = Rng::new(seed);
    let handle = disks.get(CACHE).unwrap();
    let mut pool = prepared(tunables()).await;
    let (mut volume, mut sum) = (pool.open_volume(VOLUME).await.unwrap(), Counted::default());
    let (mut versions, mut copy) = (vec![0u64; COUNT as usize], Vec::new());
    for step in 0..6000u64 {
        let n = match rng.below(3) {
            0 => rng.below(COUNT),
            _ => rng.below(COUNT / 3),
        };
        match rng.below(400) {
            0..110 => {
                versions[n as usize] = step + 1;
                volume.write(n * BLOCK, Buf::copy_from(&block(n, step + 1))).await.unwrap();
            }
            110..120 => world::sleep(Duration::from_millis(rng.below(3000))).await,
            120..122 => hurt(&handle, &mut rng, &mut copy),
            122..128 => {
                // A device that is not there cannot be told so, and the pool goes on.
                let _ = pool.clear(None).await;
            }
            128 => {
                let guid = guid(&pool);
                pool.offline(guid, Offline::Temporary).await.unwrap();
                pool.online(guid).await.unwrap();
            }
            129 if rng.below(4) == 0 => {
                pool.remove_side_device(AuxKind::Cache, guid(&pool)).await.unwrap();
                handle.set_fault(Fault::default());
                pool.add_side_devices(AuxKind::Cache, &[leaf(CACHE)]).await.unwrap();
            }
            130 if rng.below(4) == 0 => {
                drop(volume);
                sum += second(&pool).counted;
                match rng.below(2) {
                    0 => pool.export().await.unwrap(),
                    _ => pool.close().await.unwrap(),
                }
                hurt(&handle, &mut rng, &mut copy);
                pool = open(tunables()).await;
                volume = pool.open_volume(VOLUME).await.unwrap();
            }
            _ => {
                let read = volume.read(n * BLOCK, BLOCK).await.unwrap();
                assert!(
                    bytes(&read) == block(n, versions[n as usize]),
                    "seed {seed}, step {step}, block {n}"
                );
            }
        }
    }
    for (n, version) in (0..).zip(&versions) {
        let read = volume.read(n * BLOCK, BLOCK).await.unwrap();
        assert!(bytes(&read) == block(n, *version), "seed {seed}, block {n}");
    }
    drop(volume);
    sum += second(&pool).counted;
    let report = pool.verify(|_| ()).await.unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
    pool.export().await.unwrap();
    sum
}

#[test]
fn whatever_a_cache_device_does_no_byte_is_wrong_and_no_request_fails() {
    let mut sum = Counted::default();
    for seed in 0..8 {
        let disks = devices();
        sum += run(&disks, seed, torture(disks.clone(), seed));
    }
    assert!(sum.hits > 2000 && sum.fed > 10_000 && sum.rebuilt > 500, "{sum:?}");
    assert!(sum.bad_checksums > 50 && sum.read_errors > 50 && sum.write_errors > 10, "{sum:?}");
}

/// An export waits for what the pool's devices were asked, and not for what a cache device does not give back.
#[test]
fn a_device_that_never_answers_holds_up_no_request_for_long_and_no_export() {
    let disks = devices();
    let own = disks.clone();
    run(&disks, 5, async move {
        let pool = prepared(tunables()).await;
        read_slowly(&pool).await;
        let handle = own.get(CACHE).unwrap();
        handle.set_fault(Fault { delay: Duration::from_secs(1_000_000), ..Fault::default() });
        let volume = pool.open_volume(VOLUME).await.unwrap();
        let (mut slow, mut slowest) = (0, Duration::ZERO);
        for n in 0..COUNT {
            let asked = world::now();
            assert!(bytes(&volume.read(n * BLOCK, BLOCK).await.unwrap()) == block(n, 0));
            let took = world::now().since(asked);
            (slow, slowest) = (slow + u32::from(took > Duration::from_millis(100)), slowest.max(took));
        }
        assert!(slow < 20 && slowest < Duration::from_millis(700), "{slow} slow reads, {slowest:?} at most");
        drop(volume);
        let asked = world::now();
        pool.export().await.unwrap();
        assert!(world::now().since(asked) < Duration::from_secs(30));
    });
}
