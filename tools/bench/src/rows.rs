//! The rows of the engine's table.

use crate::cell::Cell;
use crate::rig::{Files, Rig};
use crate::{Options, Progress};
use std::path::Path;
use std::time::Duration;
use units::{Result, pretty_size};
use vdev::Layout;
use workload::{Limit, Pattern, Report, Spec, run};

/// Reads of what is in memory, at the least.
const LOOK_UPS: u64 = 200_000;

/// Every row, with its files in `dir`.
pub async fn all(dir: &Path, options: &Options, progress: Progress) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for block in [16 << 10, 128 << 10, 1 << 20] {
        let rig = Rig::new(dir, options, Layout::Stripe, block, "off");
        cells.extend(sequential(&rig, progress).await?);
    }
    for block in [4 << 10, 16 << 10] {
        let rig = Rig::new(dir, options, Layout::Stripe, block, "off");
        cells.extend(random(&rig, progress).await?);
    }
    for (name, layout, compression) in [
        ("lz4", Layout::Stripe, "lz4"),
        ("zstd-3", Layout::Stripe, "zstd-3"),
        ("mirror", Layout::Mirror, "off"),
        ("raidz1", Layout::Raidz { parity: 1 }, "off"),
        ("raidz2", Layout::Raidz { parity: 2 }, "off"),
    ] {
        let rig = Rig::new(dir, options, layout, 128 << 10, compression);
        cells.extend(write_and_read(&rig, name, progress).await?);
    }
    Ok(cells)
}

/// Writing everything and syncing, reading it cold, reading it warm.
async fn sequential(rig: &Rig, progress: Progress) -> Result<Vec<Cell>> {
    let _files = Files(rig);
    let (write, read) = (rig.spec(0), rig.spec(100));
    // A look-up takes a microsecond: those of large blocks once would be over before anything is measured.
    let again_and_again =
        Spec { limit: Limit::Requests(LOOK_UPS.max(rig.options.size / rig.block)), ..rig.spec(100) };
    let mut raw: [Vec<Report>; 2] = Default::default();
    let mut own: [Vec<Report>; 3] = Default::default();
    for round in 0..rig.options.rounds {
        progress(&format!("  sequential {}, round {}", pretty_size(rig.block), round + 1));
        raw[0].push(rig.raw(&write).await?);
        raw[1].push(rig.raw(&read).await?);
        let pool = rig.create().await?;
        own[0].push(run(rig.volume(&pool).await?, &write).await?);
        let pool = rig.reopen(pool, rig.plenty()).await?;
        own[1].push(run(rig.volume(&pool).await?, &read).await?);
        own[2].push(run(rig.volume(&pool).await?, &again_and_again).await?);
        pool.export().await?;
    }
    Ok(vec![
        Cell::new("write+sync", rig.block, &raw[0], &own[0]),
        Cell::new("read, cold", rig.block, &raw[1], &own[1]),
        Cell::new("read, warm", rig.block, &raw[1], &own[2]),
    ])
}

/// Writing everything and syncing, and reading it cold.
async fn write_and_read(rig: &Rig, name: &str, progress: Progress) -> Result<Vec<Cell>> {
    let _files = Files(rig);
    let (write, read) = (rig.spec(0), rig.spec(100));
    let mut raw: [Vec<Report>; 2] = Default::default();
    let mut own: [Vec<Report>; 2] = Default::default();
    for round in 0..rig.options.rounds {
        progress(&format!("  {name}, round {}", round + 1));
        raw[0].push(rig.raw(&write).await?);
        raw[1].push(rig.raw(&read).await?);
        let pool = rig.create().await?;
        own[0].push(run(rig.volume(&pool).await?, &write).await?);
        let pool = rig.reopen(pool, rig.plenty()).await?;
        own[1].push(run(rig.volume(&pool).await?, &read).await?);
        pool.export().await?;
    }
    Ok(vec![
        Cell::new(&format!("write+sync, {name}"), rig.block, &raw[0], &own[0]),
        Cell::new(&format!("read, cold, {name}"), rig.block, &raw[1], &own[1]),
    ])
}

/// Reads of a cold pool and writes, at random, one at a time and 32 at once.
async fn random(rig: &Rig, progress: Progress) -> Result<Vec<Cell>> {
    const ROWS: [(&str, u8, usize); 4] = [
        ("random read, qd1", 100, 1),
        ("random read, qd32", 100, 32),
        ("random write, qd1", 0, 1),
        ("random write, qd32", 0, 32),
    ];
    let _files = Files(rig);
    let mut sides: [[Vec<Report>; 2]; 4] = Default::default();
    for round in 0..rig.options.rounds {
        let mut pool = rig.create().await?;
        run(rig.volume(&pool).await?, &rig.spec(0)).await?;
        for ((name, read_percent, queue_depth), [raw, own]) in ROWS.iter().zip(&mut sides) {
            progress(&format!("  {name} {}, round {}", pretty_size(rig.block), round + 1));
            let limit = Limit::Time(Duration::from_secs(rig.options.seconds));
            let spec = Spec {
                pattern: Pattern::Random,
                queue_depth: *queue_depth,
                limit,
                ..rig.spec(*read_percent)
            };
            raw.push(rig.raw(&spec).await?);
            pool = rig.reopen(pool, if *read_percent > 0 { rig.little() } else { rig.plenty() }).await?;
            own.push(run(rig.volume(&pool).await?, &spec).await?);
        }
        pool.export().await?;
    }
    let cells = ROWS.iter().zip(&sides);
    Ok(cells.map(|((name, ..), [raw, own])| Cell::new(name, rig.block, raw, own)).collect())
}
