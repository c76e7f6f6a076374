//! Pools of this engine's own making, small and with something of everything in them.

use super::base::{DIR, config};
use crate::bench::{POOL, create_pool_with};
use crate::layout::Shape;
use crate::model::pattern;
use dsl::DestroySpec;
use dsl::props::{Limits, PropName, Types, Value, When, parse_setting};
use ondisk::Feature;
use pool::{Content, Pool};
use sim::{Disks, Model, run_with};
use units::Result;
use vdev::Layout;
use world::Buf;
use zpl::{FileKind, FileSystem, NewFile};

pub const NAMES: [&str; 5] = ["own-single", "own-mirror", "own-raidz1", "own-raidz2", "own-log"];
const DISK: u64 = 72 << 20;
/// So many entries do not fit the small form of a directory.
const ENTRIES: usize = 400;

fn shape(name: &str) -> Option<Shape> {
    let shape = |layout, devices, ashift, logs| Some(Shape { layout, devices, ashift, logs });
    match name {
        "own-single" => shape(Layout::Stripe, 1, 9, 0),
        "own-mirror" => shape(Layout::Mirror, 2, 12, 0),
        "own-raidz1" => shape(Layout::Raidz { parity: 1 }, 3, 9, 0),
        "own-raidz2" => shape(Layout::Raidz { parity: 2 }, 4, 12, 0),
        "own-log" => shape(Layout::Mirror, 2, 9, 1),
        _ => None,
    }
}

/// Makes the pool of this name, if it is one of these. That with a log device was never closed, and its logs are full.
pub fn make(name: &str) -> Option<Result<Disks>> {
    let shape = shape(name)?;
    let disks = Disks::new();
    for path in shape.paths(DIR) {
        disks.add(path, DISK, Model::NVME);
    }
    let done = run_with(&disks, 1, config(), async move {
        let pool = create_pool_with(shape.groups(DIR)?, shape.ashift, &[Feature::ZilSaXattr]).await?;
        fill(&pool).await?;
        if shape.logs > 0 { leave_logs(&pool).await } else { pool.close().await }
    });
    disks.power_cut(1);
    Some(done.map(|()| disks))
}

fn props(kind: Types, all: &[(&str, &str)]) -> Result<Vec<(PropName, Value)>> {
    all.iter()
        .map(|(name, value)| parse_setting(name, value, kind, When::Create, &Limits::default()))
        .collect()
}

async fn fill(pool: &Pool) -> Result<()> {
    let (fs, volume) = (format!("{POOL}/fs"), format!("{POOL}/v"));
    let wanted = [("recordsize", "4K"), ("xattr", "sa"), ("acltype", "nfsv4"), ("org.test:key", "value")];
    let files = Content::FileSystem(zpl::NewFileSystem::default());
    pool.create_dataset(&fs, files, props(Types::FILESYSTEM, &wanted)?).await?;
    pool.create_dataset(&format!("{fs}/below"), files, Vec::new()).await?;
    let content = Content::Volume { size: 1 << 20, block_size: 4 << 10 };
    pool.create_dataset(&volume, content, props(Types::VOLUME, &[("copies", "2")])?).await?;
    for round in 0..4 {
        {
            let files = pool.open_file_system_for_writing(&fs).await?;
            some_files(&files, round).await?;
            let opened = pool.open_volume(&volume).await?;
            opened.write(round << 16, Buf::copy_from(&pattern(round, 200_000))).await?;
            opened.trim(round << 17, 40 << 10).await?;
        }
        pool.sync().await?;
        pool.snapshot(vec![format!("{fs}@{round}"), format!("{volume}@{round}")], Vec::new()).await?;
    }
    pool.clone_snapshot(&format!("{fs}@1"), &format!("{POOL}/clone"), Vec::new()).await?;
    pool.clone_snapshot(&format!("{volume}@2"), &format!("{POOL}/vclone"), Vec::new()).await?;
    pool.hold(vec![format!("{fs}@3")], "kept").await?;
    let spec =
        DestroySpec { names: vec![format!("{fs}@2"), format!("{volume}@0")], ..DestroySpec::default() };
    pool.destroy_datasets(spec).await?;
    pool.scrub().await?;
    pool.scrub_wait().await;
    pool.sync().await
}

async fn some_files(fs: &FileSystem, round: u64) -> Result<()> {
    let root = fs.root().await?;
    if round == 0 {
        let many = root.create(b"many", &NewFile::new(FileKind::Directory, 0o755)).await?;
        for i in 0..ENTRIES {
            let name = format!("entry-{i}-of-a-directory-that-grows");
            many.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await?;
        }
        let link = NewFile { target: b"many/entry-1", ..NewFile::new(FileKind::Symlink, 0o777) };
        root.create(b"link", &link).await?;
    }
    let file =
        root.create(format!("file-{round}").as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await?;
    // More blocks than the dnode has pointers for, and a hole.
    file.write(0, &pattern(round, 150_000)).await?;
    file.write(2 << 20, &pattern(round + 1, 5000)).await?;
    file.set_xattr(b"user.small", &pattern(round, 100)).await?;
    file.set_xattr(b"user.spilt", &pattern(round, 3000)).await?;
    file.set_xattr(b"user.large", &pattern(round, 60_000)).await?;
    let entry = root.lookup(b"many").await?.lookup(b"entry-7-of-a-directory-that-grows").await?;
    entry.write(round * 1000, &pattern(round, 3000)).await?;
    fs.sync().await
}

/// Writes what only the intent logs have.
async fn leave_logs(pool: &Pool) -> Result<()> {
    pool.sync().await?;
    let files = pool.open_file_system_for_writing(&format!("{POOL}/fs")).await?;
    let root = files.root().await?;
    for i in 0..6u64 {
        let name = format!("logged-{i}");
        let file = root.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o600)).await?;
        file.write_durable(0, &pattern(i, 9000)).await?;
        file.set_xattr(b"user.logged", &pattern(i, 200)).await?;
        file.truncate(5000).await?;
        file.sync().await?;
    }
    root.unlink(b"logged-3").await?;
    files.sync().await?;
    let volume = pool.open_volume(&format!("{POOL}/v")).await?;
    for i in 0..6u64 {
        volume.write_durable(i * 30_000, Buf::copy_from(&pattern(i, 10_000))).await?;
    }
    volume.trim(1 << 18, 64 << 10).await?;
    volume.flush().await
}
