//! Cache devices, both ways: what OpenZFS put on one serves here, and its debugger reads what is put on one here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::tree::{Walk, compare};
use crate::common::{new, verify};
use interop::harness::{Need, Trial, trial};
use interop::{Scratch, golden, programs, trees, zdb};
use l2arc::{CacheDevice, Stats};
use pool::{Content, CreateOptions, Host, OpenOptions, Pool};
use tunables::{Tunable, Tunables};
use vdev::{AuxKind, Layout, NewLeaf};

const POOL: &str = "tank";
const SIZE: u64 = 128 << 20;
const VOLUME: u64 = 8 << 20;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("what_openzfs_put_on_a_cache_device_serves", &[Need::Golden("aux")], theirs),
        trial("zdb_reads_what_is_put_on_a_cache_device_and_the_pool_is_clean", &[Need::Program("zdb")], ours),
    ]
}

fn tunables() -> Arc<Tunables> {
    let tunables = Tunables::new();
    tunables.set(Tunable::L2RebuildMinSize, 0).unwrap();
    // A busy machine makes a read take long.
    tunables.set(Tunable::L2ReadLimit, 600_000).unwrap();
    tunables
}

async fn open(images: Vec<PathBuf>, name: &str, read_only: bool) -> Pool {
    let found = pool::scan(images.into_iter().map(vdev::Device::whole).collect()).await;
    let candidate = found.into_iter().find(|candidate| candidate.config.name == name).unwrap();
    let options = OpenOptions {
        read_only,
        name: None,
        host: Host::new(1, "interop"),
        force: true,
        missing_log: false,
        copy_over: false,
        cache: Arc::new(arc::Cache::new(64 << 20)),
        hub: Default::default(),
        tunables: tunables(),
    };
    pool::open(&candidate, options).await.unwrap()
}

fn stats(pool: &Pool) -> Stats {
    pool.pipeline().second_level().stats()
}

/// Waits until something is so of the cache devices, and no longer than a loaded machine may take.
async fn until(pool: &Pool, what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        world::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: {:?}", stats(pool));
}

fn theirs() {
    assert_eq!(linux::block_on(read_theirs()), 0, "no read of the cache device fails");
}

/// A pool that OpenZFS wrote, whose cache device is found elsewhere than the pool says; answers how many reads of the
/// device failed.
async fn read_theirs() -> u64 {
    let images = golden::pool("aux").images;
    let is_cache = |path: &&PathBuf| path.file_name() == Some(Path::new("aux-cache.img").as_os_str());
    let cache = images.iter().find(is_cache).unwrap().to_string_lossy().into_owned();
    let wanted = trees::trees("aux");
    let pool = open(images, "aux", true).await;
    let mut spec = pool.tree().aux(AuxKind::Cache)[0].spec.clone();
    spec.path = Some(cache);
    pool.tree().set_aux(AuxKind::Cache, Vec::new()).await.unwrap();
    pool.tree().set_aux(AuxKind::Cache, vec![spec.clone()]).await.unwrap();
    let leaf = pool.tree().aux(AuxKind::Cache)[0].leaf.clone();
    let second = pool.pipeline().second_level().clone();
    let ashift = spec.ashift.unwrap() as u32;
    second.set_devices(vec![CacheDevice { guid: spec.guid, ashift, leaf }], pool.tree().mode);
    until(&pool, "it is in use", || second.filled(spec.guid).is_some()).await;
    let found = stats(&pool).counted.rebuilt;
    assert!(found > 150, "{found} of 224 entries name a block of their own");
    pool.pipeline().cache().clear();
    let datasets: BTreeSet<String> = pool.dsl().descendants("aux").await.unwrap().into_iter().collect();
    for tree in wanted {
        let fs = pool.open_file_system(&tree.name).await.unwrap();
        let found = Walk::of(&pool, &datasets, fs).await;
        assert_eq!(compare(&tree, found, &[]), Vec::<String>::new(), "{}", tree.name);
    }
    let stats = stats(&pool);
    assert!(stats.counted.hits > 50, "{stats:?}");
    assert_eq!(stats.counted.fed, 0, "{stats:?}");
    pool.close().await.unwrap();
    stats.counted.read_errors
}

fn leaf(dir: &Path, name: &str) -> NewLeaf {
    new::leaf(&dir.join(name), SIZE)
}

/// Of two blocks that follow one another, one can be compressed.
fn content(at: u64) -> Vec<u8> {
    let block = |n: u64| {
        (0..16_384u64).map(move |i| if n.is_multiple_of(2) { i / 64 + n } else { (i * n) ^ (i >> 3) })
    };
    (0..8)
        .flat_map(|n| block(at / 16_384 + n))
        .map(|word| (word.wrapping_mul(0x9e37_79b9) >> 24) as u8)
        .collect()
}

async fn create(dir: &Path) -> Pool {
    let data = new::group(Layout::Stripe, vec![leaf(dir, "data")]);
    let options = CreateOptions { tunables: tunables(), ..new::options(POOL, data) };
    pool::create(options).await.unwrap()
}

fn ours() {
    let scratch = Scratch::new();
    let dir = scratch.path().to_path_buf();
    let within = dir.clone();
    linux::block_on(async move {
        let pool = create(&within).await;
        pool.add_side_devices(AuxKind::Cache, &[leaf(&within, "cache")]).await.unwrap();
        let volume = Content::Volume { size: VOLUME, block_size: 16 << 10 };
        pool.create_dataset("tank/v", volume, Vec::new()).await.unwrap();
        let volume = pool.open_volume("tank/v").await.unwrap();
        for at in (0..VOLUME).step_by(128 << 10) {
            volume.write(at, world::Buf::copy_from(&content(at))).await.unwrap();
        }
        volume.flush().await.unwrap();
        drop(volume);
        pool.sync().await.unwrap();
        until(&pool, "it is fed", || stats(&pool).data.blocks >= VOLUME / (16 << 10)).await;
        pool.export().await.unwrap();
    });
    zdb::assert_clean(&dir, POOL);
    let label = programs::run(programs::command("zdb").arg("-l").arg(dir.join("cache")));
    let number = |name: &str| -> Vec<u64> {
        let lines = label.lines().filter_map(|line| line.trim().strip_prefix(name));
        lines.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect()
    };
    assert!(label.contains("L2ARC device header") && label.contains("labels = 0 1 2 3"), "{label}");
    assert_eq!(number("log_blk_ent:"), [7], "{label}");
    let (named, found) = (number("lb_count_refcount:"), number("log_blk_count:"));
    assert!(named == found && named.len() == 1 && named[0] > 60, "{named:?}, {found:?} logs\n{label}");
    assert_eq!(number("lb_asize_refcount:"), number("log_blk_asize:"), "{label}");
    assert!(label.lines().any(|line| line.trim() == "0 with invalid cksum"), "{label}");
    let logs = named[0];

    assert_eq!(linux::block_on(read_again(dir.clone(), logs)), 0, "no read of the cache device fails");
    zdb::assert_clean(&dir, POOL);
}

/// Opens the pool, whose cache device has as many logs, and reads the volume; answers how many reads of the device failed.
async fn read_again(dir: PathBuf, logs: u64) -> u64 {
    let images = ["data", "cache"].map(|name| dir.join(name)).into();
    let pool = open(images, POOL, false).await;
    let guid = pool.tree().aux(AuxKind::Cache)[0].spec.guid;
    let second = pool.pipeline().second_level().clone();
    until(&pool, "it is in use", || second.filled(guid).is_some()).await;
    assert!(stats(&pool).counted.rebuilt >= logs * 7, "each block that a log names");
    let volume = pool.open_volume("tank/v").await.unwrap();
    for at in (0..VOLUME).step_by(128 << 10) {
        let read = volume.read(at, 128 << 10).await.unwrap();
        let read: Vec<u8> = read.iter().flat_map(|part| part.iter().copied()).collect();
        assert!(read == content(at), "at {at}");
    }
    drop(volume);
    let stats = stats(&pool);
    assert!(stats.counted.hits > VOLUME / (16 << 10) / 2, "{stats:?}");
    assert_eq!(stats.counted.bad_checksums, 0, "{stats:?}");
    verify(&pool).await;
    pool.export().await.unwrap();
    stats.counted.read_errors
}
