//! Pools that were left in the midst of synchronous writes: `zdb` reads their logs and claims them, and we replay them.
//!
//! `CENOTE_LEAVE_DIRTY=DIR` names a directory in which to leave the pool with the files, as it was, for OpenZFS to import:
//! `disk0`, and in `DATASET.jsonl` what must be in each file system then, in the manifests' form.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::tree::{Walk, compare};
use crate::common::{digest, new, open, verify};
use dsl::props::{Limits, Types, When, parse_setting};
use interop::harness::{Need, Trial, trial};
use interop::trees::Tree;
use interop::{Scratch, copy_sparse, zdb};
use pool::{Content, Pool};
use vdev::Layout;
use world::Buf;
use zpl::{Changes, FileKind, FileSystem, NewFile, Renaming, Time};

const BLOCK: u64 = 16 << 10;
const SIZE: u64 = 8 << 20;

pub fn trials() -> Vec<Trial> {
    let needs = [Need::Program("zdb")];
    let layouts = [("one_device", 1, Layout::Stripe), ("raidz1", 3, Layout::Raidz { parity: 1 })];
    let trials = layouts.into_iter().map(|(name, devices, layout)| {
        let name = format!("zdb_reads_and_claims_the_log_of_a_dirty_pool_on_{name}");
        trial(name, &needs, move || left_dirty(devices, layout))
    });
    let mut trials: Vec<_> = trials.collect();
    let name = "zdb_reads_and_claims_the_logs_of_file_systems_and_they_are_replayed";
    trials.push(trial(name, &needs, files_left_dirty));
    trials
}

async fn create(directory: &Path, devices: usize, layout: Layout) -> Pool {
    let leaf = |i: usize| new::leaf(&directory.join(format!("disk{i}")), 128 << 20);
    let data = new::group(layout, (0..devices).map(leaf).collect());
    pool::create(new::options("tank", data)).await.unwrap()
}

/// Bytes that do not compress.
fn noise(seed: u64, len: usize) -> Buf {
    let mut state = seed.wrapping_mul(2) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    Buf::copy_from(&(0..len).map(|_| next()).collect::<Vec<_>>())
}

fn left_dirty(devices: usize, layout: Layout) {
    let scratch = Scratch::new();
    let directory = scratch.path().to_owned();
    let wanted = linux::block_on(async move {
        let pool = create(&directory, devices, layout).await;
        let content = Content::Volume { size: SIZE, block_size: BLOCK };
        pool.create_dataset("tank/v", content, Vec::new()).await.unwrap();
        let volume = pool.open_volume("tank/v").await.unwrap();
        // The first commit begins the log with a txg; the following are in it, and nowhere else.
        volume.write_durable(0, noise(1, 4096)).await.unwrap();
        for i in 2..40u64 {
            volume.write_durable(i * 4096, noise(i, 4096)).await.unwrap();
        }
        volume.write_durable(1 << 20, noise(50, 128 << 10)).await.unwrap();
        volume.write_durable(2 << 20, noise(51, 20 << 10)).await.unwrap();
        volume.zero(1 << 20, 32 << 10).await.unwrap();
        volume.flush().await.unwrap();
        digest(&volume).await
    });
    let logs = zdb::intent_logs(scratch.path(), "tank");
    for found in ["TX_WRITE", "TX_TRUNCATE"] {
        assert!(logs.contains(found), "no {found} in:\n{logs}");
    }
    zdb::assert_clean(scratch.path(), "tank");
    // The images as a crash would have left them; the pool above still has its own.
    let crashed = Scratch::new();
    let images: Vec<_> = (0..devices).map(|i| crashed.join(format!("disk{i}"))).collect();
    for image in &images {
        copy_sparse(&scratch.join(image.file_name().unwrap()), image).unwrap();
    }
    linux::block_on(async move {
        let pool = open(images, "tank", false).await.unwrap();
        let volume = pool.open_volume("tank/v").await.unwrap();
        assert_eq!(digest(&volume).await, wanted);
        volume.write_durable(0, noise(60, 4096)).await.unwrap();
        verify(&pool).await;
        assert_eq!(pool.complaints(), Vec::<String>::new());
        drop(volume);
        pool.export().await.unwrap();
    });
    let logs = zdb::intent_logs(crashed.path(), "tank");
    assert!(!logs.contains("TX_WRITE"), "an exported pool has a log:\n{logs}");
    zdb::assert_clean(crashed.path(), "tank");
}

/// With `logbias=latency`, and `throughput`.
const FILE_SYSTEMS: [&str; 2] = ["tank/fs", "tank/tp"];
/// Times of files are those of their replay, and space is counted when a txg syncs.
const IGNORED: [&str; 3] = ["mtime_ns", "ctime_ns", "blocks"];

fn files_left_dirty() {
    let scratch = Scratch::new();
    let directory = scratch.path().to_owned();
    let wanted = linux::block_on(async move {
        let pool = create(&directory, 1, Layout::Stripe).await;
        let mut wanted = Vec::new();
        for (name, bias) in FILE_SYSTEMS.into_iter().zip(["latency", "throughput"]) {
            let types = Types::FILESYSTEM;
            let bias = parse_setting("logbias", bias, types, When::Create, &Limits::default()).unwrap();
            let props = vec![bias];
            pool.create_dataset(name, Content::FileSystem(Default::default()), props).await.unwrap();
        }
        let mut open = Vec::new();
        for name in FILE_SYSTEMS {
            let fs = pool.open_file_system_for_writing(name).await.unwrap();
            prepare(&fs).await;
            open.push(fs);
        }
        pool.sync().await.unwrap();
        for fs in open {
            work(&fs).await;
            fs.sync().await.unwrap();
            wanted.push(manifest(&pool, fs).await);
        }
        wanted
    });
    let logs = zdb::intent_logs(scratch.path(), "tank");
    let kinds =
        ["CREATE", "MKDIR", "SYMLINK", "REMOVE", "RMDIR", "LINK", "RENAME", "WRITE", "TRUNCATE", "SETATTR"];
    for kind in kinds {
        let found = logs
            .lines()
            .filter(|line| line.contains(&format!("TX_{kind} ")) && line.contains(" len "))
            .count();
        assert!(found >= FILE_SYSTEMS.len(), "{found} of TX_{kind} in:\n{logs}");
    }
    zdb::assert_clean(scratch.path(), "tank");
    let crashed = Scratch::new();
    let image = crashed.join("disk0");
    copy_sparse(&scratch.join("disk0"), &image).unwrap();
    if let Some(directory) = std::env::var_os("CENOTE_LEAVE_DIRTY").map(PathBuf::from) {
        copy_sparse(&image, &directory.join("disk0")).unwrap();
        for tree in &wanted {
            let file = format!("{}.jsonl", tree.name.replace('/', "__"));
            std::fs::write(directory.join(file), tree.lines.join("\n") + "\n").unwrap();
        }
    }
    linux::block_on(async move {
        let pool = open(vec![image], "tank", false).await.unwrap();
        assert_eq!((pool.complaints(), pool.waiting_logs()), (Vec::new(), Vec::new()));
        for tree in wanted {
            let fs = pool.open_file_system(&tree.name).await.unwrap();
            let differences = compare(&tree, Walk::of(&pool, &BTreeSet::new(), fs).await, &IGNORED);
            assert!(differences.is_empty(), "{}", differences.join("\n"));
        }
        verify(&pool).await;
        pool.export().await.unwrap();
    });
    zdb::assert_clean(crashed.path(), "tank");
}

/// What is in a txg before the log begins.
async fn prepare(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    for (i, name) in ["old1", "old2", "old3", "old4"].into_iter().enumerate() {
        let file = root.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await.unwrap();
        file.write(0, &noise(i as u64 + 1, 200_000)).await.unwrap();
    }
    root.create(b"olddir", &NewFile::new(FileKind::Directory, 0o755)).await.unwrap();
    // The first commit begins the log with a txg; the following are in it, and nowhere else.
    fs.sync().await.unwrap();
}

async fn work(fs: &FileSystem) {
    let root = fs.root().await.unwrap();
    let directory = NewFile::new(FileKind::Directory, 0o750);
    let regular = NewFile { uid: 7, gid: 8, ..NewFile::new(FileKind::Regular, 0o640) };
    let new = root.create(b"new", &directory).await.unwrap();
    let link = NewFile { target: b"../old1", ..NewFile::new(FileKind::Symlink, 0o777) };
    new.create(b"link", &link).await.unwrap();
    new.create(b"fifo", &NewFile::new(FileKind::Fifo, 0o600)).await.unwrap();
    let device = NewFile { rdev: (8, 17), ..NewFile::new(FileKind::BlockDevice, 0o600) };
    new.create(b"device", &device).await.unwrap();
    for (i, len) in [1, 511, 4096, 40_000, 131_072, 300_000].into_iter().enumerate() {
        let file = new.create(format!("w{len}").as_bytes(), &regular).await.unwrap();
        file.write_durable(0, &noise(i as u64 + 10, len)).await.unwrap();
        file.write_durable(len as u64 / 2, &noise(i as u64 + 20, len.min(700))).await.unwrap();
    }
    let file = new.create(b"append", &regular).await.unwrap();
    for i in 0..20 {
        let end = file.stat().await.unwrap().size;
        file.write(end, format!("line {i}\n").as_bytes()).await.unwrap();
        if i % 5 == 0 {
            file.sync().await.unwrap();
        }
    }
    // A file that is written, and then takes the place of another.
    let file = root.create(b"old1.new", &regular).await.unwrap();
    file.write(0, &noise(40, 100_000)).await.unwrap();
    root.rename(b"old1.new", &root, b"old1", Renaming::Replace).await.unwrap();
    root.rename(b"old2", &new, b"renamed", Renaming::NoReplace).await.unwrap();
    new.link(b"second", &root.lookup(b"old3").await.unwrap()).await.unwrap();
    let old = root.lookup(b"old4").await.unwrap();
    old.truncate(123_456).await.unwrap();
    old.punch_hole(10_000, 50_000).await.unwrap();
    old.allocate(150_000, 10_000, false).await.unwrap();
    old.write(159_990, b"past the end of what was there").await.unwrap();
    let changes = Changes {
        permissions: Some(0o4711),
        uid: Some(1234),
        gid: Some(5678),
        mtime: Some(Time { seconds: 1_000_000_000, nanos: 5 }),
        ..Changes::default()
    };
    root.lookup(b"old3").await.unwrap().change(&changes).await.unwrap();
    root.unlink(b"old3").await.unwrap();
    root.remove_directory(b"olddir").await.unwrap();
    let gone = new.create(b"gone", &regular).await.unwrap();
    gone.write(0, b"written and removed").await.unwrap();
    drop(gone);
    new.unlink(b"gone").await.unwrap();
    new.sync().await.unwrap();
}

async fn manifest(pool: &Pool, fs: FileSystem) -> Tree {
    let name = fs.name().to_string();
    let found = Walk::of(pool, &BTreeSet::new(), fs).await;
    Tree {
        name,
        lines: found.into_values().map(|file| serde_json::Value::Object(file).to_string()).collect(),
    }
}
