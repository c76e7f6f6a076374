//! A server of object storage, simulated: many threads at 1 MiB over several large files, straight on the engine.
//!
//! ```text
//!   thread t has a part of the file t % FILES, and goes through it from its beginning:
//!     write     all threads write their parts, then the pool is synced
//!     read      the pool is opened anew; all read what they wrote
//!     mixed     every other thread writes its part again, the others read theirs
//! ```
//!
//! It shows what a record size costs on mirrors and on wide raidz, where small blocks are mostly parity and padding.

use super::large::noise;
use super::{Options, Sample, median};
use crate::Progress;
use crate::metadata::pool::{FILE_SYSTEM, Rig, setting};
use crate::programs::Stop;
use pool::Pool;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{Error, Kind, Result, pretty_size};
use vdev::Layout;
use world::Buf;
use zpl::{FileKind, NewFile, Node};

const THREADS: usize = 64;
const FILES: usize = 8;
const REQUEST: u64 = 1 << 20;
/// Requests of a thread's part.
const PART: u64 = 16;
/// What each step may take, once every part was begun.
const LIMIT: Duration = Duration::from_millis(1500);

pub(super) const STEPS: [&str; 3] = ["read", "write", "mixed"];

/// What OpenZFS's own engine does with the same in a process, MiB/s in the order of [`STEPS`]: measured once, with the
/// engine of 2.4.99, prefetching off, on the machine that the tables of docs/performance.md are from.
const OPENZFS: [(&str, u64, [f64; 3]); 6] = [
    (MIRROR, 4 << 10, [144.0, 96.0, 89.0]),
    (MIRROR, 128 << 10, [452.0, 279.0, 275.0]),
    (MIRROR, 1 << 20, [1835.0, 311.0, 444.0]),
    (RAIDZ, 4 << 10, [54.0, 62.0, 79.0]),
    (RAIDZ, 128 << 10, [470.0, 358.0, 254.0]),
    (RAIDZ, 1 << 20, [968.0, 580.0, 556.0]),
];

const MIRROR: &str = "mirror of 2";
const RAIDZ: &str = "raidz2 of 10";

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub layout: &'static str,
    pub record: u64,
    /// For each of [`STEPS`], one a round.
    pub samples: [Vec<Sample>; 3],
    pub openzfs: [f64; 3],
}

impl Row {
    pub fn speed(&self, step: usize) -> Option<f64> {
        median(&self.samples[step], Sample::mib_per_second)
    }
}

pub(super) fn measure(options: &Options, stop: &Stop, progress: Progress) -> Result<Vec<Row>> {
    let mut rows =
        OPENZFS.map(|(layout, record, openzfs)| Row { layout, record, samples: Default::default(), openzfs });
    for round in 1..=options.rounds {
        for row in &mut rows {
            if stop.was_asked() {
                stop.check()?;
            }
            if stop.is_over() {
                break;
            }
            progress(&format!("object storage, {}, {}, round {round}", row.layout, pretty_size(row.record)));
            let one = match one(&options.objects, row.layout, row.record, stop) {
                Err(_) if stop.is_over() && !stop.was_asked() => break,
                one => one?,
            };
            row.samples.iter_mut().zip(one).for_each(|(samples, sample)| samples.push(sample));
        }
    }
    Ok(rows.into())
}

/// The files of the pools, which go with it.
struct Devices(PathBuf);

impl Drop for Devices {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn one(dir: &Path, layout: &str, record: u64, stop: &Stop) -> Result<[Sample; 3]> {
    let devices = Devices(dir.join(format!("cenote-objects-{}", std::process::id())));
    let failed = |e| Error::new(Kind::Io, "make a pool's files").at(devices.0.display()).because(e);
    std::fs::create_dir(&devices.0).map_err(failed)?;
    let (layout, count, size) = match layout {
        MIRROR => (Layout::Mirror, 2, 6u64 << 30),
        _ => (Layout::Raidz { parity: 2 }, 10, 3 << 30),
    };
    let mut paths = Vec::new();
    for n in 0..count {
        let path = devices.0.join(format!("disk{n}"));
        std::fs::File::create(&path).and_then(|file| file.set_len(size)).map_err(failed)?;
        paths.push(path);
    }
    let rig = Rig::on(layout, paths);
    let stop = stop.clone();
    linux::block_on(async move { all(&rig, record, &stop).await })
}

async fn all(rig: &Rig, record: u64, stop: &Stop) -> Result<[Sample; 3]> {
    let props = vec![setting("recordsize", &record.to_string())?, setting("compression", "off")?];
    let pool = rig.create_with(props).await?;
    let fs = pool.open_file_system_for_writing(FILE_SYSTEM).await?;
    let root = fs.root().await?;
    let mut files = Vec::new();
    for n in 0..FILES {
        let name = format!("object-{n}");
        files.push(root.create(name.as_bytes(), &NewFile::new(FileKind::Regular, 0o644)).await?);
    }
    let ids: Vec<_> = files.iter().map(Node::id).collect();
    pool.sync().await?;
    drop((root, fs));
    let parts: Arc<[AtomicU64]> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let write = step(&pool, files, &parts, |_| true, stop).await?;
    pool.export().await?;
    let pool = rig.open(false).await?;
    let fs = pool.open_file_system_for_writing(FILE_SYSTEM).await?;
    let mut steps = Vec::new();
    for writes in [never, every_other] {
        let mut files = Vec::new();
        for id in &ids {
            files.push(fs.node(*id).await?);
        }
        steps.push(step(&pool, files, &parts, writes, stop).await?);
    }
    drop(fs);
    pool.export().await?;
    Ok([steps[0], write, steps[1]])
}

fn never(_: usize) -> bool {
    false
}

fn every_other(thread: usize) -> bool {
    (thread / FILES).is_multiple_of(2)
}

/// All threads at once. `parts` says how many requests of its part each has written.
async fn step(
    pool: &Pool,
    files: Vec<Node>,
    parts: &Arc<[AtomicU64]>,
    writes: fn(usize) -> bool,
    stop: &Stop,
) -> Result<Sample> {
    stop.check()?;
    let (cpu, begun) = (crate::servers::cpu_of(std::process::id()).ok(), world::now());
    let noise = Buf::copy_from(&noise());
    let start = |thread: usize| {
        let (file, parts, noise) = (files[thread % FILES].clone(), parts.clone(), noise.clone());
        let stop = stop.clone();
        world::spawn_on(thread, async move {
            let from = (thread / FILES) as u64 * PART * REQUEST;
            let (part, mut done) = (&parts[thread], 0);
            let is_writer = writes(thread);
            let end = if is_writer { PART } else { part.load(Ordering::Relaxed) };
            while done < end && (done == 0 || !stop.is_over() && world::now().since(begun) < LIMIT) {
                let at = from + done * REQUEST;
                if is_writer {
                    file.write(at, &noise).await?;
                } else if file.read(at, REQUEST as usize).await?.len() as u64 != REQUEST {
                    return Err(Error::corrupt("a file is shorter than what was written"));
                }
                done += 1;
            }
            if is_writer {
                part.fetch_max(done, Ordering::Relaxed);
            }
            Ok(done)
        })
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    let (mut requests, mut failure) = (0, None);
    for thread in threads {
        match thread.await {
            Ok(done) => requests += done,
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    if let Some(e) = failure {
        return Err(e);
    }
    drop(files);
    if (0..THREADS).any(writes) {
        pool.sync().await?;
    }
    let elapsed = world::now().since(begun);
    let after = crate::servers::cpu_of(std::process::id()).ok();
    let cpu = after.zip(cpu).map(|(after, before)| after.saturating_sub(before));
    Ok(Sample { bytes: requests * REQUEST, ops: requests, elapsed, cpu })
}
