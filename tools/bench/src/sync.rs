//! Synchronous writes: what a promise costs, beside what the bare file takes for it.
//!
//! ```text
//!   raw          pwrite, then fdatasync, by each of the writers           the floor
//!   latency      a volume, each write with FUA: data into the intent log
//!   throughput   the same with logbias=throughput: data to its place, a pointer into the log
//!   slog         logbias=latency, the log on a device of its own
//! ```
//!
//! All four in turn, several rounds, medians. `writes/flush` says how many promises one flush of a device has kept: that
//! is batching, and more than one flush for each write is a mistake. Then the filesync loop on a volume beside ext4 and XFS
//! that are made for it on the same disk.
//!
//! All files are written once before they are used: they stand for disks, on which a write allocates nothing. A new file
//! would have its file system's journal in every flush.

mod target;

use crate::filesync::{self, Outcome};
use crate::loop_device::LoopMount;
use crate::volume_pool::{VOLUME, VolumePool};
use disk::NbdVolume;
use pool::Pool;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use target::{FuaTarget, SyncedFile};
use units::{Error, Kind, Result};
use vdev::NewLeaf;
use workload::{Limit, Pattern, Report, Spec, Target};
use world::OpenMode;

/// How long and how often.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a write, and how many are under way at once: each with each.
    pub blocks: Vec<u64>,
    pub depths: Vec<usize>,
    /// Seconds of each run; by default there are 48 in a round.
    pub seconds: f64,
    pub rounds: usize,
    /// Files of the filesync loop; 0 leaves it out.
    pub files: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            blocks: vec![4 << 10, 16 << 10, 128 << 10],
            depths: vec![1, 8, 32, 128],
            seconds: 0.5,
            rounds: 3,
            files: 1000,
        }
    }
}

const STREAMS: [usize; 2] = [1, 8];
/// Of the kernel, made on a loop device on the same disk.
const FILE_SYSTEMS: [&str; 2] = ["ext4", "xfs"];
/// Of the volume, and of the file that it is compared with.
const SIZE: u64 = 256 << 20;
const DEVICE_SIZE: u64 = 2 << 30;
const LOG_SIZE: u64 = 1 << 30;
/// Their files.
const RAW: &str = "raw";
const DISK: &str = "disk";
const LOG: &str = "log";
/// Of the time of a run, to come to speed before it.
const WARMUP: f64 = 0.2;

/// The medians of one column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    pub iops: f64,
    pub p99_us: f64,
    /// Writes for each flush of a device.
    pub per_flush: f64,
}

/// One block size and number of writers.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub block: u64,
    pub depth: usize,
    pub raw: Figure,
    pub latency: Figure,
    pub throughput: Figure,
    pub slog: Figure,
}

/// The filesync loop in one place.
#[derive(Clone, Debug)]
pub struct FilesyncRow {
    pub place: String,
    /// For 1 and for 8 streams, or why it could not be run.
    pub outcomes: std::result::Result<Vec<Outcome>, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Raw,
    Latency,
    Throughput,
    Slog,
}

/// The columns.
const HOWS: [How; 4] = [How::Raw, How::Latency, How::Throughput, How::Slog];

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Raw => "raw file",
            How::Latency => "logbias=latency",
            How::Throughput => "logbias=throughput",
            How::Slog => "slog",
        }
    }
}

/// What was measured of one block size: by [`HOWS`] and depth, one for each round.
type Samples = [Vec<Vec<Figure>>; HOWS.len()];

/// Runs all of it with files in `dir`, telling `progress` what comes next.
pub async fn run(
    dir: &Path,
    options: Options,
    progress: impl Fn(&str),
) -> Result<(Vec<Row>, Vec<FilesyncRow>)> {
    let rig = SyncRig { dir: dir.join(format!("cenote-sync-{}", std::process::id())), options };
    std::fs::create_dir_all(&rig.dir).map_err(rig.io("make"))?;
    let _files = Files(&rig.dir);
    progress("writing the files that stand for disks");
    for (name, size) in [(RAW, SIZE), (DISK, DEVICE_SIZE), (LOG, LOG_SIZE)] {
        rig.fill(name, size).await?;
    }
    let mut rows = Vec::new();
    for &block in &rig.options.blocks {
        let mut samples: Samples = std::array::from_fn(|_| vec![Vec::new(); rig.options.depths.len()]);
        let of = rig.options.rounds;
        for round in 1..=of {
            for (how, samples) in HOWS.into_iter().zip(&mut samples) {
                let size = units::pretty_size(block);
                progress(&format!("synchronous writes of {size}, round {round} of {of}, {}", how.name()));
                rig.column(block, how, samples).await?;
            }
        }
        rows.extend(Row::all(block, &rig.options.depths, &samples));
    }
    let mut loops = Vec::new();
    if rig.options.files == 0 {
        return Ok((rows, loops));
    }
    for (place, with_slog) in [("volume", false), ("volume, with a slog", true)] {
        progress(&format!("filesync on a {place}"));
        loops.push(FilesyncRow { place: place.into(), outcomes: Ok(rig.filesync(with_slog).await?) });
    }
    for file_system in FILE_SYSTEMS {
        progress(&format!("filesync on {file_system}"));
        let outcomes = rig.filesync_mounted(file_system);
        loops.push(FilesyncRow { place: format!("{file_system}, on a loop device"), outcomes });
    }
    Ok((rows, loops))
}

impl Row {
    fn all(block: u64, depths: &[usize], samples: &Samples) -> Vec<Row> {
        let of = |how: usize, depth: usize| median(&samples[how][depth]);
        let row = |(i, &depth): (usize, &usize)| Row {
            block,
            depth,
            raw: of(0, i),
            latency: of(1, i),
            throughput: of(2, i),
            slog: of(3, i),
        };
        depths.iter().enumerate().map(row).collect()
    }
}

struct SyncRig {
    dir: PathBuf,
    options: Options,
}

/// The files of a run, which go with it.
struct Files<'a>(&'a Path);

impl Drop for Files<'_> {
    fn drop(&mut self) {
        // What cannot be removed is in no way harmful: the next run has another directory.
        let _ = std::fs::remove_dir_all(self.0);
    }
}

impl SyncRig {
    fn io(&self, doing: &'static str) -> impl Fn(std::io::Error) -> Error + '_ {
        move |e| Error::new(Kind::Io, doing).at(self.dir.display()).because(e)
    }

    /// A file whose blocks are all there, and stay where they are.
    async fn fill(&self, name: &str, len: u64) -> Result<()> {
        let path = self.dir.join(name);
        std::fs::File::create(&path).and_then(|f| f.set_len(len)).map_err(self.io("make a file in"))?;
        let fill = Spec { pattern: Pattern::Sequential, ..self.spec(1 << 20, 8, Limit::Requests(len >> 20)) };
        workload::run(workload::open(&path, OpenMode::ReadWrite)?, &fill).await.map(drop)
    }

    /// All depths one way.
    async fn column(&self, block: u64, how: How, samples: &mut [Vec<Figure>]) -> Result<()> {
        if how == How::Raw {
            let path = self.dir.join(RAW);
            let disk = world::open(&path, OpenMode::ReadWrite).map_err(self.io("open a file in"))?;
            let target: Arc<dyn Target> = Arc::new(SyncedFile(workload::DiskTarget(disk)));
            for (&depth, samples) in self.options.depths.iter().zip(samples) {
                samples.push(self.measure(target.clone(), block, depth, || None).await?);
            }
            return Ok(());
        }
        let pool = self.pool(block, how).await?;
        let target: Arc<dyn Target> =
            Arc::new(FuaTarget(Arc::new(NbdVolume::new(pool.open_volume(VOLUME).await?))));
        for (&depth, samples) in self.options.depths.iter().zip(samples) {
            samples.push(self.measure(target.clone(), block, depth, || Some(flushes(&pool))).await?);
        }
        drop(target);
        pool.export().await
    }

    fn spec(&self, block: u64, depth: usize, limit: Limit) -> Spec {
        Spec {
            pattern: Pattern::Random,
            block_size: block as u32,
            queue_depth: depth,
            read_percent: 0,
            limit,
            ..Spec::default()
        }
    }

    /// Some time to come to speed, then the run that counts. `flushes` counts those of the devices.
    async fn measure(
        &self,
        target: Arc<dyn Target>,
        block: u64,
        depth: usize,
        flushes: impl Fn() -> Option<u64>,
    ) -> Result<Figure> {
        let spec = |seconds| self.spec(block, depth, Limit::Time(Duration::from_secs_f64(seconds)));
        workload::run(target.clone(), &spec(self.options.seconds * WARMUP)).await?;
        let before = flushes();
        let report = workload::run(target, &spec(self.options.seconds)).await?;
        Ok(figure(&report, flushes().zip(before).map(|(after, before)| after - before)))
    }

    async fn pool(&self, block: u64, how: How) -> Result<Pool> {
        let leaf = |name: &str| NewLeaf::look_at(&self.dir.join(name));
        let plain = VolumePool::plain(vec![leaf(DISK)?]);
        let mut rig = VolumePool { size: SIZE, block_size: block, ..plain };
        match how {
            How::Raw | How::Latency => {}
            How::Throughput => rig.logbias = "throughput",
            How::Slog => rig.logs = vec![leaf(LOG)?],
        }
        rig.create().await
    }

    async fn filesync(&self, with_slog: bool) -> Result<Vec<Outcome>> {
        let pool = self.pool(16 << 10, if with_slog { How::Slog } else { How::Latency }).await?;
        let lun: Arc<dyn nbd::Volume> = Arc::new(NbdVolume::new(pool.open_volume(VOLUME).await?));
        let mut outcomes = Vec::new();
        for streams in STREAMS {
            let options = filesync::Options { count: self.options.files, streams };
            outcomes.push(filesync::volume::run(lun.clone(), options).await?);
        }
        drop(lun);
        pool.export().await?;
        Ok(outcomes)
    }
}

impl SyncRig {
    /// The loop with each number of streams on a file system of the kernel, or why it cannot be run here.
    fn filesync_mounted(&self, file_system: &str) -> std::result::Result<Vec<Outcome>, String> {
        let mounted = LoopMount::new(file_system, &self.dir, &self.dir.join(DISK))?;
        let run = |streams| {
            let options = filesync::Options { count: self.options.files, streams };
            filesync::files::run(mounted.at(), options).map_err(|e| e.to_string())
        };
        STREAMS.into_iter().map(run).collect()
    }
}

/// How often the pool's devices were flushed.
fn flushes(pool: &Pool) -> u64 {
    pool.tree().leaves().iter().map(|leaf| leaf.stats.snapshot().flushes).sum()
}

fn figure(report: &Report, flushes: Option<u64>) -> Figure {
    let writes = report.writes.count();
    Figure {
        iops: report.iops(),
        p99_us: report.writes.percentile(99.0).as_nanos() as f64 / 1e3,
        per_flush: writes as f64 / flushes.unwrap_or(writes).max(1) as f64,
    }
}

fn median(figures: &[Figure]) -> Figure {
    let of = |field: fn(&Figure) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Figure { iops: of(|f| f.iops), p99_us: of(|f| f.p99_us), per_flush: of(|f| f.per_flush) }
}

/// Both tables, as Markdown.
pub fn render(rows: &[Row], loops: &[FilesyncRow]) -> String {
    let mut text = String::from(
        "| synchronous write | outstanding | raw file, fdatasync: IOPS | logbias=latency: IOPS (x raw) | writes/flush | \
         logbias=throughput: IOPS (x raw) | writes/flush | slog: IOPS (x raw) | writes/flush |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        text += &format!("| {} | {} | {:.0} |", units::pretty_size(row.block), row.depth, row.raw.iops);
        for figure in [row.latency, row.throughput, row.slog] {
            let ratio = figure.iops / row.raw.iops.max(1e-9);
            text += &format!(" {:.0} ({ratio:.2}) | {:.1} |", figure.iops, figure.per_flush);
        }
        text.push('\n');
    }
    if loops.is_empty() {
        return text;
    }
    text += "\n| filesync | 1 stream: files/s | p50 | p99 | 8 streams: files/s | p50 | p99 |\n\
             |---|---:|---:|---:|---:|---:|---:|\n";
    for FilesyncRow { place, outcomes } in loops {
        text += &format!("| {place} |");
        match outcomes {
            Err(why) => text += &format!(" not run: {why} | | | | | |"),
            Ok(outcomes) => outcomes.iter().for_each(|o| text += &filesync_cells(o)),
        }
        text.push('\n');
    }
    text
}

fn filesync_cells(outcome: &Outcome) -> String {
    let at = |percent| filesync::time(outcome.latencies.percentile(percent));
    format!(" {:.0} | {} | {} |", outcome.per_second(), at(50.0), at(99.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_each_way_beside_the_raw_file() {
        let of = |iops, per_flush| Figure { iops, p99_us: 900.0, per_flush };
        let row = Row {
            block: 4096,
            depth: 32,
            raw: of(4000.0, 1.0),
            latency: of(40_000.0, 21.5),
            throughput: of(2000.0, 9.0),
            slog: of(36_000.0, 20.0),
        };
        let mut latencies = workload::Histogram::default();
        latencies.record(Duration::from_micros(500));
        let outcome = Outcome { count: 1, elapsed: Duration::from_millis(1), latencies };
        let loops = [
            FilesyncRow { place: "volume".into(), outcomes: Ok(vec![outcome.clone(), outcome]) },
            FilesyncRow { place: "xfs".into(), outcomes: Err("needs root".into()) },
        ];
        let text = render(&[row], &loops);
        assert!(
            text.contains(
                "| 4K | 32 | 4000 | 40000 (10.00) | 21.5 | 2000 (0.50) | 9.0 | 36000 (9.00) | 20.0 |\n"
            ),
            "{text}"
        );
        assert!(text.contains("| volume | 1000 | 500us | 500us | 1000 | 500us | 500us |\n"), "{text}");
        assert!(text.ends_with("| xfs | not run: needs root | | | | | |\n"), "{text}");
    }

    #[test]
    fn the_median_is_not_moved_by_one_bad_round() {
        let of = |iops| Figure { iops, p99_us: iops, per_flush: 1.0 };
        assert_eq!(median(&[of(10.0), of(9000.0), of(11.0)]).iops, 11.0);
    }
}
