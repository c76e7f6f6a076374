//! How soon cache devices are full, at the rate of then and at the one that the document advises.
//!
//! ```text
//!   readers at random ─▶ memory (too small) ─▶ disks          the feed copies what is about to leave memory,
//!                             └▶ cache device ◀── feed        so many bytes in each second
//! ```
//!
//! Everything but rates is made smaller by the same factor: then all of it happens that much sooner.

use crate::experiment::{Ask, Better, Experiment, Pair, Row, Said};
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
use units::{Error, Result};
use vdev::{AuxKind, Layout, NewLeaf};
use world::{Buf, Disk};

pub const EXPERIMENT: Experiment = Experiment {
    name: "warm-up",
    about: "S1, 2011: cache devices of 700 GB fill at 8 MB/s; the document advises twice the endurance rate, 166 MB/s",
    modelled: "7200 rpm disks in mirrors, a cache device of flash, readers at random; cache, feed and cache device's ring are \
               the engine's, at a thousandth of the sizes, so that hours are seconds",
    remark: "The document gives rates and no times. A feed cannot be faster than memory is turned over: with few readers the \
             disks are the bound, long before 166 MB/s.",
    parameters: || Parameters::of(&[WARM_UP, DISK_7200, SSD_SATA]),
    run,
};

/// Sizes are divided by this, before `--scale`.
const SMALLER: f64 = 2000.0;
/// The device counts as warm with so much of the part of the working set that memory does not hold.
const WARM: f64 = 0.8;
/// Hours after which the wait is given up.
const PATIENCE: f64 = 60.0;

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let then = parameters.get("feed-then") * 1048576.0;
    let advised = parameters.get("feed-advised") * 1e6;
    let headroom = parameters.count("headroom-then");
    let hours = |rate: f64, headroom, readers: f64| {
        one(&parameters.with("readers", readers), ask, rate as u64, headroom)
    };
    let row = |case: &str, before, after| Row {
        case: case.into(),
        unit: "h",
        better: Better::Less,
        lab: Pair { before, after },
        said: Said::Nothing,
    };
    let (few, many) = (parameters.get("readers"), 2000.0);
    let (slow, slow_many) = (hours(then, headroom, few)?, hours(then, headroom, many)?);
    Ok(vec![
        row("8 MB/s, 166 MB/s; 20 readers", slow, hours(advised, headroom, few)?),
        row("8 MB/s, 166 MB/s; 2000 readers", slow_many, hours(advised, headroom, many)?),
        row("8 MB/s, today's 32 MiB/s; 2000 readers", slow_many, hours(33_554_432.0, 8, many)?),
    ])
}

/// Hours until the device is warm, at the real sizes.
fn one(parameters: &Parameters, ask: &Ask, rate: u64, headroom: u64) -> Result<f64> {
    let smaller = SMALLER / ask.scale;
    let bytes = |key: &str| (parameters.get(key) * 1e9 / smaller) as u64 / 65536 * 65536;
    let (set, memory, device) = (bytes("working-set"), bytes("memory"), bytes("cache-device"));
    let record = parameters.count("record") << 10;
    // Fewer disks would be fewer arms: all of them, stretched over what they hold in truth.
    let disks = parameters.count("disks") as usize / 2 * 2;
    let readers = parameters.count("readers");
    let paths: Vec<PathBuf> = (0..disks).map(|i| format!("/lab/disk{i:03}").into()).collect();
    let cache_path = Path::new("/lab/cache");
    let mut devices: Vec<Arc<dyn Disk>> = paths
        .iter()
        .map(|path| -> Arc<dyn Disk> { Arc::new(Drive::new(path, 2 << 30, parameters, "disk-", 1)) })
        .collect();
    // A ring frees whole blocks: nothing is written more than once.
    let ring = parameters.with("ssd-random-writes", 0.0);
    devices.push(Arc::new(Flash::new(cache_path, device.max(80 << 20), &ring, "ssd-")));
    let patience = Duration::from_secs_f64(PATIENCE * 3600.0 / smaller);
    in_lab(ask.seed, &devices, async move {
        let groups = paths.chunks(2).map(<[PathBuf]>::to_vec).collect();
        let rig = Rig::new(Layout::Mirror, groups, memory.max(16 << 20));
        rig.set(Tunable::L2WriteMax, rate)?;
        rig.set(Tunable::L2WriteBoost, rate)?;
        rig.set(Tunable::L2Headroom, headroom)?;
        rig.set(Tunable::L2RebuildMinSize, u64::MAX)?;
        let content = Content::Volume { size: set, block_size: record };
        let pool = rig.create(content, &[("compression", "off"), ("checksum", "fletcher4")]).await?;
        pool.add_side_devices(AuxKind::Cache, &[NewLeaf::look_at(cache_path)?]).await?;
        fill(&pool, set, record).await?;
        let pool = rig.again(pool).await?;
        let volume = pool.open_volume(DATASET).await?;
        let begun = world::now();
        for _ in 0..readers {
            let volume = volume.clone();
            drop(world::spawn(async move {
                loop {
                    let at = world::random_u64() % (set / record) * record;
                    volume.read(at, record).await?;
                }
                #[allow(unreachable_code)]
                Ok::<_, Error>(())
            }));
        }
        let wanted = ((set - memory.min(set)).min(device) as f64 * WARM / record as f64) as u64;
        loop {
            world::sleep(Duration::from_millis(250)).await;
            let fed = pool.pipeline().second_level().stats().counted.fed;
            let elapsed = world::now().since(begun);
            if fed >= wanted || elapsed > patience {
                return Ok(elapsed.as_secs_f64() * smaller / 3600.0);
            }
        }
    })
}

async fn fill(pool: &Pool, set: u64, record: u64) -> Result<()> {
    let volume = pool.open_volume(DATASET).await?;
    for n in 0..set / record {
        // Pages of one word each: they take no room in the lab, and differ from block to block.
        let word = (n + 1).to_le_bytes();
        let block: Vec<u8> = word.iter().copied().cycle().take(record as usize).collect();
        volume.write(n * record, Buf::copy_from(&block)).await?;
    }
    pool.sync().await
}
