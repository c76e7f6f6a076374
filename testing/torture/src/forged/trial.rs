//! What is done with a forged pool: all that an administrator and a client would do.
//!
//! An error ends a step and not the trial. Every step is bounded by its own numbers, as a client's patience is; what
//! the engine does of itself is not.

use super::base::{Base, config, open};
use super::watch::stage;
use crate::model::pattern;
use dsl::DestroySpec;
use pool::{Content, Pool};
use sim::{Disks, run_with};
use units::Result;
use world::Buf;
use zpl::{Changes, FileKind, FileSystem, NewFile, Node};

const DATASETS: usize = 24;
const FILES: usize = 24;
const ENTRIES: usize = 200;
const BYTES: u64 = 64 << 10;

/// Reads the pool, then opens a copy of its disks for writing, and changes it. Answers what it met, for people.
pub fn run(disks: &Disks, seed: u64) -> Vec<String> {
    let mut told = run_with(&disks.fork(), seed, config(), look());
    told.extend(run_with(disks, seed, config(), change()));
    told
}

/// An unchanged pool meets no error in any step, but what the pool itself refuses.
pub fn rehearse(base: &Base) -> Vec<String> {
    run(&base.disks.fork(), 1)
}

struct Told(Vec<String>);

impl Told {
    fn step<T>(&mut self, what: &str, result: Result<T>) -> Option<T> {
        result.map_err(|e| self.0.push(format!("{what}: {e}"))).ok()
    }
}

async fn look() -> Vec<String> {
    let mut told = Told(Vec::new());
    stage("open read-only");
    let Some(pool) = told.step("open", open(true).await) else { return told.0 };
    stage("verify");
    if let Some(report) = told.step("verify", pool.verify(|_| ()).await) {
        told.0.extend(report.damage.iter().take(3).map(|damage| format!("damage: {damage:?}")));
    }
    stage("list");
    list(&pool, &mut told).await;
    stage("read");
    for name in names(&pool, &mut told).await {
        read(&pool, &name, &mut told).await;
    }
    stage("close");
    told.step("close", pool.close().await);
    told.0
}

async fn names(pool: &Pool, told: &mut Told) -> Vec<String> {
    let mut names = told.step("datasets", pool.dsl().descendants(&pool.name()).await).unwrap_or_default();
    names.truncate(DATASETS);
    for name in names.clone() {
        let snapshots = told.step("snapshots", pool.dsl().snapshots(&name).await).unwrap_or_default();
        names.extend(snapshots.into_iter().map(|(name, _)| name).take(4));
    }
    names.truncate(2 * DATASETS);
    names
}

async fn list(pool: &Pool, told: &mut Told) {
    _ = pool.report();
    _ = pool.scan_status();
    _ = pool.waiting_logs();
    told.step("pool properties", pool.properties().await);
    if let Some(history) = pool.dsl().history() {
        told.step("history", history.records().await);
    }
    for name in names(pool, told).await {
        if let Some(stats) = told.step("stats", pool.dsl().stats(&name).await) {
            told.step("properties", stats.all().await);
        }
        if name.contains('@') {
            told.step("holds", pool.dsl().holds(&name).await);
        }
    }
}

async fn read(pool: &Pool, name: &str, told: &mut Told) {
    if let Ok(volume) = pool.open_volume(name).await {
        let size = volume.size();
        for offset in [0, size / 2, size.saturating_sub(BYTES)] {
            told.step("volume", volume.read(offset, BYTES.min(size - offset)).await);
        }
        told.step("extents", volume.extents(0, size, 64).await);
        return;
    }
    if let Some(fs) = told.step("file system", pool.open_file_system(name).await) {
        walk(&fs, told).await;
    }
}

async fn walk(fs: &FileSystem, told: &mut Told) {
    for account in [zpl::Account::User, zpl::Account::Group, zpl::Account::Project] {
        told.step("accounts", fs.space_of(account).await);
    }
    let Some(root) = told.step("root", fs.root().await) else { return };
    let mut directories = vec![root];
    let mut files = 0;
    while let Some(directory) = directories.pop() {
        told.step("directory", inspect(&directory).await);
        let Some(listing) = told.step("list", directory.list(0, ENTRIES).await) else { continue };
        for entry in listing.entries {
            files += 1;
            if files > FILES {
                return;
            }
            let Some(node) = told.step("look up", directory.lookup(&entry.name).await) else { continue };
            if node.is_directory() {
                directories.push(node);
            } else {
                told.step("file", inspect(&node).await);
            }
        }
    }
}

async fn inspect(node: &Node) -> Result<()> {
    let stat = node.stat().await?;
    node.acl().await.map(drop).or_else(|_| Ok(()))?;
    node.xattrs().await.map(drop).or_else(|_| Ok(()))?;
    node.permissions().await.map(drop).or_else(|_| Ok(()))?;
    match node.kind() {
        FileKind::Symlink => node.read_link().await.map(drop),
        FileKind::Regular => {
            for offset in [0, stat.size / 2, stat.size.saturating_sub(BYTES)] {
                node.read(offset, BYTES as usize).await?;
            }
            node.seek_data(0).await?;
            node.seek_hole(0).await.map(drop)
        }
        _ => Ok(()),
    }
}

async fn change() -> Vec<String> {
    let mut told = Told(Vec::new());
    stage("import");
    let Some(pool) = told.step("import", open(false).await) else { return told.0 };
    stage("sync");
    told.step("sync", pool.sync().await);
    stage("create");
    let (fs, volume) = (format!("{}/forged-fs", pool.name()), format!("{}/forged-v", pool.name()));
    let files = Content::FileSystem(zpl::NewFileSystem::default());
    told.step("create", pool.create_dataset(&fs, files, Vec::new()).await);
    let content = Content::Volume { size: 1 << 20, block_size: 8 << 10 };
    told.step("create", pool.create_dataset(&volume, content, Vec::new()).await);
    stage("write");
    let names = names(&pool, &mut told).await;
    for name in names.iter().filter(|name| !name.contains('@')) {
        let written = write(&pool, name, "forged-1").await;
        told.step("write", written);
    }
    told.step("sync", pool.sync().await);
    stage("snapshot");
    let heads: Vec<String> =
        names.iter().filter(|n| !n.contains('@')).map(|n| format!("{n}@forged")).collect();
    told.step("snapshot", pool.snapshot(heads.clone(), Vec::new()).await);
    // Not of the pool's own: a promoted clone of that could never go.
    for (i, head) in heads.iter().filter(|head| head.contains('/')).take(2).enumerate() {
        let clone = format!("{}/forged-clone{i}", pool.name());
        told.step("clone", pool.clone_snapshot(head, &clone, Vec::new()).await);
        told.step("promote", pool.promote(&clone).await);
    }
    for name in names.iter().filter(|name| !name.contains('@')).take(4) {
        let written = write(&pool, name, "forged-2").await;
        told.step("write", written);
    }
    stage("scrub");
    if told.step("scrub", pool.scrub().await).is_some() {
        pool.scrub_wait().await;
    }
    stage("destroy");
    for name in names.iter().filter(|name| name.contains('@')).take(12) {
        for (tag, _) in pool.dsl().holds(name).await.unwrap_or_default() {
            told.step("release", pool.release(vec![name.clone()], &tag).await);
        }
    }
    let one = names.iter().filter(|name| name.contains('@')).take(1).cloned().collect();
    destroy(&pool, one, &mut told).await;
    let children = told.step("children", pool.dsl().children(&pool.name()).await).unwrap_or_default();
    destroy(&pool, children, &mut told).await;
    for _ in 0..3 {
        told.step("sync", pool.sync().await);
    }
    stage("export");
    told.step("export", pool.export().await);
    told.0
}

/// All at once, or as much as can be.
async fn destroy(pool: &Pool, names: Vec<String>, told: &mut Told) {
    let spec = |names| DestroySpec { names, recursive: true, clones: true, ..DestroySpec::default() };
    if pool.destroy_datasets(spec(names.clone())).await.is_ok() {
        return;
    }
    for name in names.into_iter().take(DATASETS) {
        told.step("destroy", pool.destroy_datasets(spec(vec![name])).await);
    }
}

/// A little of everything, in a file system or a volume.
async fn write(pool: &Pool, name: &str, directory: &str) -> Result<()> {
    if let Ok(volume) = pool.open_volume(name).await {
        let len = volume.size().min(20_000);
        volume.write(0, Buf::copy_from(&pattern(1, len))).await?;
        volume.write(volume.size() / 2, Buf::copy_from(&pattern(2, len / 4))).await?;
        volume.trim(0, volume.block_size()).await?;
        return volume.flush().await;
    }
    let fs = pool.open_file_system_for_writing(name).await?;
    let root = fs.root().await?;
    let listing = root.list(0, 12).await?;
    for entry in listing.entries {
        let Ok(node) = root.lookup(&entry.name).await else { continue };
        if node.kind() == FileKind::Regular {
            _ = node.write(100, &pattern(3, 5000)).await;
            _ = node.set_xattr(b"user.forged", b"value").await;
            _ = node.truncate(50).await;
            _ = node.change(&Changes { permissions: Some(0o600), ..Changes::default() }).await;
            _ = root.unlink(&entry.name).await;
        }
    }
    let directory = root.create(directory.as_bytes(), &NewFile::new(FileKind::Directory, 0o755)).await?;
    let file = directory.create(b"forged", &NewFile::new(FileKind::Regular, 0o644)).await?;
    file.write(0, &pattern(4, 30_000)).await?;
    file.set_xattr(b"user.forged", b"value").await?;
    fs.sync().await
}
