//! How fast cache devices fill, at the rate of then and at the one that the document advises.
//!
//! ```text
//!   readers at random ─▶ memory (too small) ─▶ disks          the feed copies what is about to leave memory,
//!                             └▶ cache device ◀── feed        so many bytes in each second
//! ```
//!
//! Rates, disks and readers are those of the real machine; what is made smaller are memory and data, as far as a pass of the
//! feed stays a part of memory. So the run shows the rate that is reached, and the time follows from the real size.
//!
//! At a smaller scale it is measured for a shorter time, of whole passes of the feed. Hardware, memory and readers stay as
//! they are: a part of them would be another machine, for the cache device is asked by all readers and answers ten at once.

use crate::experiment::{Ask, Better, Case, Experiment, Pair, Row, Said};
use crate::hardware::drive::Drive;
use crate::hardware::flash::Flash;
use crate::models::{DISK_7200, SSD_SATA, WARM_UP};
use crate::parameters::Parameters;
use crate::rig::{DATASET, Rig, in_lab};
use pool::{Content, Pool};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tunables::Tunable;
use units::Result;
use vdev::{AuxKind, Layout, NewLeaf};
use world::{Buf, Disk};
use zvol::Volume;

pub const EXPERIMENT: Experiment = Experiment {
    name: "warm-up",
    about: "S1, 2011: cache devices of 700 GB are filled at 8 MB/s at most; the document advises 166 MB/s",
    modelled: "140 disks of 7200 rpm in mirrors, a cache device of flash, readers at random; cache, feed and the cache \
               device's ring are the engine's",
    remark: "The document gives rates and no times: 700 GB take 23 hours at 8 MiB/s and 1.2 at 166 MB/s. A feed is no faster \
             than memory is turned over: with 20 readers the disks are the bound, long before 166 MB/s. Streams that are read \
             in order are read ahead, and what was read ahead does not go to cache devices unless l2arc_noprefetch is 0. In these \
             streams it makes no difference, for clients read what was read ahead while it is in memory.",
    chief: 0,
    quick: 0.5,
    parameters: || Parameters::of(&[WARM_UP, DISK_7200, SSD_SATA]),
    run,
};

/// Data and memory of the run: a pass at the advised rate, with its headroom, is a part of this memory.
const SET: u64 = 2 << 30;
const MEMORY: u64 = 640 << 20;
const WARM: f64 = 2.0;
/// In passes of the feed, one a second.
const MEASURED: f64 = 8.0;

/// How the feed is set.
#[derive(Clone, Copy)]
pub(super) struct Feed {
    /// Bytes of a pass.
    pub rate: f64,
    pub headroom: u64,
    pub again: bool,
    /// What was read ahead is left out.
    pub no_prefetch: bool,
}

/// What reads: so many at random, or in order.
#[derive(Clone, Copy)]
enum Readers {
    Random(u64),
    Streams(u64),
}

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let headroom = parameters.count("headroom-then");
    let feed = |rate| Feed { rate, headroom, again: false, no_prefetch: true };
    let then = feed(parameters.get("feed-then") * 1048576.0);
    let advised = feed(parameters.get("feed-advised") * 1e6);
    let today = Feed { rate: 33_554_432.0, headroom: 8, again: true, no_prefetch: true };
    let ahead = Feed { no_prefetch: false, ..advised };
    let (few, many) = (parameters.count("readers"), 2000);
    let case = |case: String, before: Feed, after: Feed, readers, said| -> Case<'_> {
        Box::new(move || {
            let rate = |feed| one(parameters, ask, feed, readers);
            let lab = Pair { before: rate(before)?, after: rate(after)? };
            Ok(Row { case, unit: "MB/s", better: Better::More, lab, said })
        })
    };
    let document = Said::Both(Pair { before: then.rate / 1e6, after: advised.rate / 1e6 });
    let (at_random, in_order) = (Readers::Random, Readers::Streams);
    ask.rows(vec![
        case(format!("8 MiB/s, 166 MB/s; {many} readers"), then, advised, at_random(many), document),
        case(format!("8 MiB/s, 166 MB/s; {few} readers"), then, advised, at_random(few), document),
        case(
            format!("8 MiB/s, today's defaults; {many} readers"),
            then,
            today,
            at_random(many),
            Said::Nothing,
        ),
        case(
            format!("{few} streams in order, 166 MB/s; l2arc_noprefetch 1, 0"),
            advised,
            ahead,
            in_order(few),
            Said::Nothing,
        ),
    ])
}

/// MB/s that reach the cache device.
fn one(parameters: &Parameters, ask: &Ask, feed: Feed, readers: Readers) -> Result<f64> {
    let record = parameters.count("record") << 10;
    let set = SET / record * record;
    let measured = Duration::from_secs(ask.scaled(MEASURED, 2));
    on_the_machine(
        parameters,
        ask.seed,
        feed,
        Shape { set, record, memory: MEMORY },
        move |pool, volume| async move {
            let blocks = set / record;
            let (count, in_order) = match readers {
                Readers::Random(count) => (count, false),
                Readers::Streams(count) => (count, true),
            };
            for number in 0..count {
                let volume = volume.clone();
                drop(world::spawn(async move {
                    let mut next = number * (blocks / count);
                    loop {
                        let block = if in_order { next } else { world::random_u64() } % blocks;
                        if volume.read(block * record, record).await.is_err() {
                            return;
                        }
                        next = block + 1;
                    }
                }));
            }
            world::sleep(Duration::from_secs_f64(WARM)).await;
            let written = || pool.pipeline().second_level().stats().counted.written_bytes;
            let before = written();
            world::sleep(measured).await;
            Ok((written() - before) as f64 / measured.as_secs_f64() / 1e6)
        },
    )
}

/// What is read: so many bytes, in blocks of so many; and the memory for it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub set: u64,
    pub record: u64,
    pub memory: u64,
}

/// Does `work` with a pool and a volume that is full, with an empty cache device that is fed so.
pub(super) fn on_the_machine<T, F>(
    parameters: &Parameters,
    seed: u64,
    feed: Feed,
    Shape { set, record, memory }: Shape,
    work: impl FnOnce(Pool, Volume) -> F + Send + 'static,
) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send,
{
    let disks = parameters.count("disks") as usize / 2 * 2;
    let paths: Vec<PathBuf> = (0..disks).map(|i| format!("/lab/disk{i:03}").into()).collect();
    let cache_path = Path::new("/lab/cache");
    // A little data stands for disks that are full: the arms move as far.
    let mut devices: Vec<Arc<dyn Disk>> = paths
        .iter()
        .map(|path| -> Arc<dyn Disk> { Arc::new(Drive::new(path, u64::MAX, parameters, "disk-", 1024)) })
        .collect();
    // A ring frees whole blocks: nothing is written more than once.
    let ring = parameters.with("ssd-random-writes", 0.0);
    devices.push(Arc::new(Flash::new(cache_path, 64 << 30, &ring, "ssd-")));
    in_lab(seed, &devices, async move {
        let groups = paths.chunks(2).map(<[PathBuf]>::to_vec).collect();
        let rig = Rig::new(Layout::Mirror, groups, memory);
        rig.set(Tunable::L2WriteMax, feed.rate as u64)?;
        rig.set(Tunable::L2WriteBoost, 0)?;
        rig.set(Tunable::L2Headroom, feed.headroom)?;
        rig.set(Tunable::L2FeedAgain, feed.again.into())?;
        rig.set(Tunable::L2NoPrefetch, feed.no_prefetch.into())?;
        rig.set(Tunable::L2RebuildMinSize, u64::MAX)?;
        let content = Content::Volume { size: set, block_size: record };
        let pool = rig.create(content, &[("compression", "off")]).await?;
        fill(&pool, set, record).await?;
        pool.add_side_devices(AuxKind::Cache, &[NewLeaf::look_at(cache_path)?]).await?;
        let volume = pool.open_volume(DATASET).await?;
        work(pool, volume).await
    })
}

async fn fill(pool: &Pool, set: u64, record: u64) -> Result<()> {
    let volume = pool.open_volume(DATASET).await?;
    for n in 0..set / record {
        // Pages of one word each: they take no room in the lab, and differ from block to block.
        let word = (n + 1).to_le_bytes();
        let block = Buf::copy_from(&word.repeat(record as usize / word.len()));
        volume.write(n * record, block).await?;
    }
    pool.sync().await
}
