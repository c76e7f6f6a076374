//! The engine on a modelled disk, in simulated time: nothing of the machine is in the figures, and they are the same in
//! every run.
//!
//! The disk takes 60 MiB/s, one request after the other. A volume of 16K blocks on it is written at random at half that
//! rate, nine tenths, and half as much again, which the throttle must hold back without stopping anybody; it is read so
//! while it is written; and a reader of 4K has a writer of 1 MiB for a neighbour, and so has a client whose writes of 4K
//! are durable, on another volume.
//!
//! The same reader beside the same writer on the bare disk is the floor: first as they come, and then with the writer in
//! pieces of 64K, and with a flush for every 32 MiB, as often as the engine makes one.

use super::outcome::{Outcome, Sample};
use super::pace::{Asked, Places, Plan, Rate, Schedule};
use super::{BLOCK, READS_A_SECOND, Row, SMALL};
use crate::Progress;
use crate::volume_pool::{VOLUME, VolumePool};
use disk::NbdVolume;
use pool::{Content, Pool};
use sim::{Disks, Model};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{Error, Kind, Result};
use vdev::NewLeaf;
use workload::{Target, VolumeTarget};
use world::{Buf, Disk, Instant, IoBuf, OpenMode, Pending};

const DEVICE: &str = "/lab/disk";
const DEVICE_SIZE: u64 = 4 << 30;
const SIZE: u64 = 128 << 20;
const MIB_A_SECOND: f64 = 60.0;
/// Its writes are what the throttle is about; a read takes a tenth of a millisecond beside the time for its bytes.
const DISK: Model = Model { channels: 1, per_mib: Duration::from_micros(16_667), ..Model::SSD };
const SHARES: [f64; 3] = [0.5, 0.9, 1.5];
const DISK_NAME: &str = "disk of 60 MiB/s";
const LANES: usize = 16;
/// Of the writer of 1 MiB.
const WRITERS: usize = 4;
const OTHER: &str = "bench/log";
/// Fewer than one after the other can be, with the flush of each.
const DURABLE_A_SECOND: f64 = 20.0;
/// Small, so that seconds have many txgs.
const DIRTY_MAX: u64 = 32 << 20;
/// Too little for the volume: reads come from the disk.
const CACHE: u64 = 16 << 20;
/// Of simulated chance.
const SEED: u64 = 1;

pub fn rows(seconds: f64, progress: Progress) -> Result<Vec<Row>> {
    let length = Duration::from_secs_f64(seconds);
    let disk_rate = MIB_A_SECOND * f64::from(1 << 20) / f64::from(BLOCK);
    let mut rows = Vec::new();
    let mut row = |subject: &str, what, at: String, block: u32, outcome| {
        rows.push(Row { subject: subject.into(), what, at, outcome, block: block.into(), cpu: None });
    };
    for share in SHARES {
        let at = format!("{share:.1}x");
        progress(&format!("{}, {at}", Row::WRITES));
        let rate = disk_rate * share;
        let rate = if share < 1.0 { Rate::Fixed(rate) } else { Rate::TooMany(rate) };
        let plan = Plan { asked: Asked { reads: false, block: BLOCK }, rate, length };
        row(DISK_NAME, Row::WRITES, at, BLOCK, one(plan, None)?);
    }
    let reader =
        |block| Plan { asked: Asked { reads: true, block }, rate: Rate::Fixed(READS_A_SECOND), length };
    progress(Row::BESIDE);
    let writer = Plan { asked: Asked { reads: false, block: 1 << 20 }, rate: Rate::AllItTakes, length };
    let at = || format!("{READS_A_SECOND:.0}/s");
    row(DISK_NAME, Row::BESIDE, at(), SMALL, one(reader(SMALL), Some(writer))?);
    progress(Row::DURABLE);
    let asked = Asked { reads: false, block: SMALL };
    let durable = Plan { asked, rate: Rate::Fixed(DURABLE_A_SECOND), length };
    let rate = format!("{DURABLE_A_SECOND:.0}/s");
    row(DISK_NAME, Row::DURABLE, rate, SMALL, durable_beside(durable, writer)?);
    for (subject, piece, lanes, flush_every) in [
        ("it, bare", 1 << 20, WRITERS, u64::MAX),
        ("it, bare, writes in pieces of 64K, a flush each 32M", 64 << 10, 1, DIRTY_MAX),
    ] {
        progress(subject);
        row(subject, Row::BESIDE, at(), SMALL, bare(reader(SMALL), piece, lanes, flush_every)?);
    }
    Ok(rows)
}

/// Carries `plan` out on a new pool, beside another one if there is one.
fn one(plan: Plan, beside: Option<Plan>) -> Result<Outcome> {
    let disks = Disks::new();
    disks.add(DEVICE, DEVICE_SIZE, DISK);
    sim::run_with(&disks, SEED, sim::Config::default(), async move {
        let leaf = NewLeaf::look_at(Path::new(DEVICE))?;
        let dirty_max = Some(DIRTY_MAX);
        let rig = VolumePool { size: SIZE, cache: CACHE, dirty_max, ..VolumePool::plain(vec![leaf]) };
        let pool: Pool = rig.create().await?;
        let volume: Arc<dyn Target> =
            Arc::new(VolumeTarget(Arc::new(NbdVolume::new(pool.open_volume(VOLUME).await?))));
        let noise: Arc<Vec<u8>> = Arc::new(noise());
        for offset in (0..SIZE).step_by(noise.len()) {
            volume.write(offset, Buf::copy_from(&noise)).await?;
        }
        pool.sync().await?;
        let other = beside.map(|plan| world::spawn(lanes(volume.clone(), noise.clone(), plan, WRITERS)));
        let samples = lanes(volume, noise, plan, LANES).await?;
        if let Some(other) = other {
            other.await?;
        }
        pool.export().await?;
        Ok(Outcome::of(samples, plan.length))
    })
}

/// Carries `plan` out on a volume of its own, each write followed by a flush, beside a writer of another volume.
fn durable_beside(plan: Plan, writer: Plan) -> Result<Outcome> {
    let disks = Disks::new();
    disks.add(DEVICE, DEVICE_SIZE, DISK);
    sim::run_with(&disks, SEED, sim::Config::default(), async move {
        let leaf = NewLeaf::look_at(Path::new(DEVICE))?;
        let dirty_max = Some(DIRTY_MAX);
        let rig = VolumePool { size: SIZE, cache: CACHE, dirty_max, ..VolumePool::plain(vec![leaf]) };
        let pool: Pool = rig.create().await?;
        let content = Content::Volume { size: SIZE, block_size: SMALL.into() };
        pool.create_dataset(OTHER, content, Vec::new()).await?;
        let open = async |name| {
            let volume = NbdVolume::new(pool.open_volume(name).await?);
            Ok::<_, Error>(Arc::new(VolumeTarget(Arc::new(volume))))
        };
        let (written, log) = (open(VOLUME).await?, open(OTHER).await?);
        let noise = Arc::new(noise());
        let other = world::spawn(lanes(written, noise.clone(), writer, WRITERS));
        let log = Arc::new(Durable(log));
        let samples = lanes(log, noise, plan, 1).await?;
        other.await?;
        pool.export().await?;
        Ok(Outcome::of(samples, plan.length))
    })
}

/// A volume whose every write is durable when it is answered.
#[derive(Debug)]
struct Durable(Arc<VolumeTarget>);

impl Target for Durable {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        self.0.read(offset, len)
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        let volume = self.0.clone();
        Box::pin(async move {
            volume.write(offset, data).await?;
            volume.flush().await
        })
    }

    fn flush(&self) -> Pending<Result<()>> {
        self.0.flush()
    }
}

/// Carries `plan`, of reads, out on the disk itself, beside `writers` lanes that write `piece` after `piece` in order, and
/// flush when so many bytes were written.
fn bare(plan: Plan, piece: u64, writers: usize, flush_every: u64) -> Result<Outcome> {
    let disks = Disks::new();
    disks.add(DEVICE, DEVICE_SIZE, DISK);
    sim::run_with(&disks, SEED, sim::Config::default(), async move {
        let failed = |e: std::io::Error| Error::new(Kind::Io, "use the bare disk").because(e);
        let disk = world::open(Path::new(DEVICE), OpenMode::ReadWrite).map_err(failed)?;
        let written = Arc::new(AtomicU64::new(0));
        let began = world::now();
        let write = move |disk: Arc<dyn Disk>, written: Arc<AtomicU64>| async move {
            let data = Buf::zeroed(piece as usize);
            while world::now().since(began) < plan.length {
                let at = written.fetch_add(piece, Ordering::Relaxed);
                disk.write(at % SIZE, vec![data.clone()]).await.map_err(failed)?;
                if (at + piece).is_multiple_of(flush_every) {
                    disk.flush().await.map_err(failed)?;
                }
            }
            Ok::<_, Error>(())
        };
        let writers: Vec<_> =
            (0..writers).map(|_| world::spawn(write(disk.clone(), written.clone()))).collect();
        let schedule = Arc::new(Schedule::new(plan));
        let readers = (0..LANES).map(|number| {
            let (disk, schedule) = (disk.clone(), schedule.clone());
            world::spawn(async move {
                let mut places = Places::new(number, SIZE, plan.asked.block);
                let mut samples = Vec::new();
                let now = || world::now().since(began);
                while let Some(due) = schedule.take(now()) {
                    world::sleep(due.saturating_sub(now())).await;
                    let made = now();
                    let buf = IoBuf::scratch(plan.asked.block as usize);
                    disk.read(places.next(), buf).await.1.map_err(failed)?;
                    samples.push(schedule.sample(due, made, now()));
                }
                Ok::<_, Error>(samples)
            })
        });
        let mut samples = Vec::new();
        for reader in readers.collect::<Vec<_>>() {
            samples.extend(reader.await?);
        }
        for writer in writers {
            writer.await?;
        }
        Ok(Outcome::of(samples, plan.length))
    })
}

async fn lanes(
    volume: Arc<dyn Target>,
    noise: Arc<Vec<u8>>,
    plan: Plan,
    count: usize,
) -> Result<Vec<Sample>> {
    let schedule = Arc::new(Schedule::new(plan));
    let began = world::now();
    let lanes: Vec<_> = (0..count)
        .map(|number| {
            world::spawn(lane(volume.clone(), noise.clone(), schedule.clone(), plan.asked, began, number))
        })
        .collect();
    let mut samples = Vec::new();
    for lane in lanes {
        samples.extend(lane.await?);
    }
    Ok(samples)
}

async fn lane(
    volume: Arc<dyn Target>,
    noise: Arc<Vec<u8>>,
    schedule: Arc<Schedule>,
    asked: Asked,
    began: Instant,
    number: usize,
) -> Result<Vec<Sample>> {
    let mut places = Places::new(number, volume.size(), asked.block);
    let mut samples = Vec::new();
    let now = || world::now().since(began);
    while let Some(due) = schedule.take(now()) {
        world::sleep(due.saturating_sub(now())).await;
        let (made, offset) = (now(), places.next());
        if asked.reads {
            volume.read(offset, asked.block).await?;
        } else {
            volume.write(offset, Buf::copy_from(&noise[..asked.block as usize])).await?;
        }
        samples.push(schedule.sample(due, made, now()));
    }
    Ok(samples)
}

/// What does not compress.
fn noise() -> Vec<u8> {
    let mut rng = sim::Rng::new(SEED);
    (0..(1 << 20) / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_stops_for_a_txg_at_any_rate_and_the_figures_are_the_same_again() {
        let rows = rows(3.0, |_| ()).unwrap();
        let longest = |row: &Row| row.outcome.latencies.max();
        for row in &rows[..2] {
            assert!(longest(row) <= Duration::from_millis(40), "{} {}: {:?}", row.what, row.at, longest(row));
        }
        let most = &rows[2].outcome;
        assert!(most.stall <= Duration::from_millis(40), "too many: {:?}", most.stall);
        let again = rows_again();
        assert_eq!(again.latencies.max(), longest(&rows[0]));
        assert_eq!(again.latencies.mean(), rows[0].outcome.latencies.mean());
    }

    fn rows_again() -> Outcome {
        let rate = Rate::Fixed(MIB_A_SECOND * 64.0 * SHARES[0]);
        one(Plan { asked: Asked { reads: false, block: BLOCK }, rate, length: Duration::from_secs(3) }, None)
            .unwrap()
    }
}
