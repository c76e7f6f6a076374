//! Reads at random that memory does not have: from a cache device, and from the pool with that device offline.

use super::{Ran, median};
use crate::Progress;
use crate::rig::Rig;
use pool::{Offline, Pool};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use tunables::Tunable;
use units::{Error, Kind, Result, pretty_size};
use vdev::{AuxKind, NewLeaf};
use workload::{Limit, Pattern, Spec, run};

const DEPTHS: [usize; 2] = [1, 32];
/// Of the volume's bytes, on the cache device before it is measured.
const WARM_PERCENT: u64 = 95;
/// Tenths of a second that may take.
const PATIENCE: usize = 300;

/// One depth.
#[derive(Clone, Debug)]
pub struct Row {
    block: u64,
    depth: usize,
    cached: Vec<Ran>,
    /// Of what was not in memory, from the cache device; for each run.
    hits: Vec<f64>,
    pool: Vec<Ran>,
}

pub async fn measure(rig: &Rig, progress: Progress) -> Result<Vec<Row>> {
    let pool = rig.create().await?;
    run(rig.volume(&pool).await?, &rig.spec(0)).await?;
    let pool = rig.reopen(pool, rig.plenty()).await?;
    let device = rig.make_file("cache", 2 * rig.options.size + (256 << 20))?;
    pool.add_side_devices(AuxKind::Cache, &[leaf(&device)?]).await?;
    let guid = pool.tree().aux(AuxKind::Cache).first().map(|device| device.spec.guid);
    let guid = guid.ok_or_else(|| Error::corrupt("the pool has lost its cache device"))?;
    warm(rig, &pool).await?;
    let mut rows = DEPTHS.map(|depth| Row {
        block: rig.block,
        depth,
        cached: Vec::new(),
        hits: Vec::new(),
        pool: Vec::new(),
    });
    for round in 0..rig.options.rounds {
        progress(&format!("  cache device, {}, round {}", pretty_size(rig.block), round + 1));
        for row in &mut rows {
            let before = pool.pipeline().second_level().stats().counted;
            row.cached.push(read(rig, &pool, row.depth).await?);
            let after = pool.pipeline().second_level().stats().counted;
            let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
            row.hits.push(hits as f64 / (hits + misses).max(1) as f64);
            pool.offline(guid, Offline::Temporary).await?;
            row.pool.push(read(rig, &pool, row.depth).await?);
            pool.online(guid).await?;
        }
    }
    pool.export().await?;
    Ok(rows.into())
}

fn leaf(path: &Path) -> Result<NewLeaf> {
    NewLeaf::look_at(path)
}

/// Reads all of it into memory that has room for it, and waits until nearly all is on the device as well; then memory is
/// made small.
async fn warm(rig: &Rig, pool: &Pool) -> Result<()> {
    for (tunable, value) in [(Tunable::L2WriteMax, 1 << 30), (Tunable::L2NoPrefetch, 0)] {
        rig.tunables.set(tunable, value)?;
    }
    run(rig.volume(pool).await?, &rig.spec(100)).await?;
    let second_level = pool.pipeline().second_level();
    for _ in 0..PATIENCE {
        world::sleep(Duration::from_millis(100)).await;
        if second_level.stats().data.bytes >= rig.options.size / 100 * WARM_PERCENT {
            pool.pipeline().cache().set_max(rig.little());
            return Ok(());
        }
    }
    let held = pretty_size(second_level.stats().data.bytes);
    Err(Error::new(
        Kind::Invalid,
        format!("the cache device has {held} of {}", pretty_size(rig.options.size)),
    ))
}

async fn read(rig: &Rig, pool: &Pool, depth: usize) -> Result<Ran> {
    let limit = Limit::Time(Duration::from_secs(rig.options.seconds));
    let spec = Spec { pattern: Pattern::Random, queue_depth: depth, limit, ..rig.spec(100) };
    let report = run(rig.volume(pool).await?, &spec).await?;
    Ok(Ran { reads: report.requests(), elapsed: report.elapsed, cpu: report.cpu })
}

pub fn render(rows: &[Row]) -> String {
    let mut text = String::from(
        "| read, at once | cache device, /s | pool, /s | from the device | CPU us, device | CPU us, pool | x |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for Row { block, depth, cached, hits, pool } in rows {
        let [fast, slow] = [cached, pool].map(|runs| median(runs, Ran::per_second));
        let [device, own] = [cached, pool].map(|runs| median(runs, Ran::cpu_per_read) * 1e6);
        let hits = hits.iter().copied().fold(1.0, f64::min) * 100.0;
        let _ = writeln!(
            text,
            "| {}, qd{depth} | {fast:.0} | {slow:.0} | {hits:.0} % | {device:.1} | {own:.1} | {:.2} |",
            pretty_size(*block),
            device / own,
        );
    }
    text
}
