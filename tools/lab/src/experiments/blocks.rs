//! Reads of a megabyte at random from a cold pool, in blocks of 128K and of 1M.
//!
//! ```text
//!   64 readers ─▶ a volume that stands for 64 files of 4G ─▶ 8 blocks, or one ─▶ mirror, or raidz over ten disks
//!                                                            └ indirect blocks, cold as well
//! ```
//!
//! A part of the data is laid out, and the disks are stretched: 16 MiB stay together, and between them the arm moves as far
//! as over all data. As many reads are made of the part as a run over all would make of the whole, so that the same share of
//! the indirect blocks is met cold.

use crate::experiment::{Ask, Better, Case, Experiment, Pair, Row, Said};
use crate::hardware::drive::Drive;
use crate::models::{DISK_7200, LARGE_BLOCKS_2015};
use crate::parameters::Parameters;
use crate::rig::{DATASET, Rig, in_lab};
use futures_util::future::try_join_all;
use pool::Content;
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tunables::Tunable;
use units::{Error, Result, pretty_size};
use vdev::Layout;
use world::{Buf, Disk};

pub const EXPERIMENT: Experiment = Experiment {
    name: "blocks",
    about: "OpenZFS, 2015: 1M random reads from blocks of 1M instead of 128K: mirror +63 %, 10-disk raidz +100 %",
    modelled: "7200 rpm disks with arm, platter, read-ahead and queue; mirror and raidz, merging of neighbours, indirect \
               blocks and checksums are the engine's, with the settings of 2015 (merging up to 128K, 16K indirect blocks, no \
               prefetch), and with today's beside them",
    remark: "The document gives ratios alone. Which child of a mirror a read goes to follows today's rule, not that of 2015.",
    chief: 0,
    quick: 0.5,
    parameters: || Parameters::of(&[LARGE_BLOCKS_2015, DISK_7200]),
    run,
};

pub const CURVE: Experiment = Experiment {
    name: "blocks-curve",
    about: "OpenZFS, 2015: the same reads by block size, 16K to 16M, before: 128K",
    modelled: "as blocks, with the settings of 2015",
    remark: "The document shows curves without figures.",
    chief: 8,
    quick: 0.5,
    parameters: || Parameters::of(&[LARGE_BLOCKS_2015, DISK_7200]),
    run: curve,
};

/// Layouts, their disks, and the ratio that the document says.
const LAYOUTS: [(&str, Layout, usize, f64); 3] = [
    ("mirror of 2", Layout::Mirror, 2, 1.63),
    ("raidz1 of 10", Layout::Raidz { parity: 1 }, 10, 2.0),
    ("raidz2 of 10", Layout::Raidz { parity: 2 }, 10, 2.0),
];
/// The part of the data that is laid out at scale 1.
const PART: f64 = 1.0 / 64.0;
const SMALL: u64 = 128 << 10;
const LARGE: u64 = 1 << 20;

#[derive(Clone, Copy)]
struct Settings {
    aggregation: f64,
    indirect: f64,
}

fn settings(parameters: &Parameters, of: &str) -> Settings {
    let get = |key: &str| parameters.get(&format!("{key}-{of}"));
    Settings { aggregation: get("aggregation"), indirect: get("indirect") }
}

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (of, case) in [("2015", "settings of 2015"), ("now", "today's settings")] {
        for (name, layout, width, said) in LAYOUTS {
            cases.push(Box::new(move || {
                let settings = settings(parameters, of);
                let rate = |block| rate(parameters, ask, (layout, width), settings, block);
                let said = if of == "2015" { Said::Ratio(said) } else { Said::Nothing };
                let lab = Pair { before: rate(SMALL)?, after: rate(LARGE)? };
                Ok(Row { case: format!("{name}, {case}"), unit: "MB/s", better: Better::More, lab, said })
            }));
        }
    }
    ask.rows(cases)
}

fn curve(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (name, layout, width, _) in [LAYOUTS[0], LAYOUTS[2]] {
        let rate = move |block| rate(parameters, ask, (layout, width), settings(parameters, "2015"), block);
        let small = Rc::new(Cell::new(None::<f64>));
        for shift in [14, 15, 16, 18, 19, 20, 21, 22, 24] {
            let small = small.clone();
            cases.push(Box::new(move || {
                let before = match small.get() {
                    Some(before) => before,
                    None => rate(SMALL)?,
                };
                small.set(Some(before));
                let block = 1u64 << shift;
                let lab = Pair { before, after: rate(block)? };
                let case = format!("{name}, {}", pretty_size(block));
                Ok(Row { case, unit: "MB/s", better: Better::More, lab, said: Said::Nothing })
            }));
        }
    }
    ask.rows(cases)
}

/// MB/s of reads from a cold pool.
fn rate(
    parameters: &Parameters,
    ask: &Ask,
    (layout, width): (Layout, usize),
    settings: Settings,
    block: u64,
) -> Result<f64> {
    let part = PART * ask.scale;
    let request = parameters.count("request") << 10;
    let size = (((parameters.get("data") * part) * (1u64 << 30) as f64) as u64).next_multiple_of(16 << 20);
    let stretch = (1.0 / part).round().max(1.0) as u64;
    let paths: Vec<PathBuf> = (0..width).map(|i| format!("/lab/disk{i}").into()).collect();
    let devices: Vec<Arc<dyn Disk>> = paths
        .iter()
        .map(|path| -> Arc<dyn Disk> { Arc::new(Drive::new(path, u64::MAX, parameters, "disk-", stretch)) })
        .collect();
    let cache = ((parameters.get("memory") * part * (1u64 << 30) as f64) as u64).max(64 << 20);
    let (readers, seconds) = (parameters.count("threads"), parameters.get("seconds") * part);
    in_lab(ask.seed, &devices, async move {
        let rig = Rig::new(layout, vec![paths], cache);
        rig.set(Tunable::DefaultIndirectShift, settings.indirect as u64)?;
        rig.set(Tunable::VdevAggregationLimit, settings.aggregation as u64)?;
        let props = [("compression", "off"), ("prefetch", "none")];
        let pool = rig.create(Content::Volume { size, block_size: block }, &props).await?;
        let volume = pool.open_volume(DATASET).await?;
        let piece = block.max(1 << 20);
        // Blocks that are kept as they are: all of them are this one.
        let payload = Buf::copy_from(&vec![0x5a; block as usize]);
        for at in (0..size).step_by(piece as usize) {
            let parts = vec![payload.clone(); (piece / block) as usize];
            volume.write_parts(at, parts, false).await?;
        }
        pool.sync().await?;
        drop(volume);
        let pool = rig.again(pool).await?;
        let volume = pool.open_volume(DATASET).await?;
        let begun = world::now();
        // Readers go on until the time is over, so that the queue is as deep at the end as before; a request counts block by
        // block, so that those under way at the end do not weigh in a run that is short.
        let until = begun.after(std::time::Duration::from_secs_f64(seconds));
        let done = Arc::new(AtomicU64::new(0));
        for _ in 0..readers {
            let (volume, done) = (volume.clone(), done.clone());
            drop(world::spawn(async move {
                while world::now() < until {
                    let at = world::random_u64() % (size / request) * request;
                    let piece = request.min(block);
                    let pieces = (0..request / piece).map(|i| {
                        let (volume, done) = (&volume, &done);
                        async move {
                            volume.read(at + i * piece, piece).await?;
                            if world::now() <= until {
                                done.fetch_add(piece, Ordering::Relaxed);
                            }
                            Ok::<_, Error>(())
                        }
                    });
                    try_join_all(pieces).await?;
                }
                Ok::<_, Error>(())
            }));
        }
        world::sleep_until(until).await;
        let bytes = done.load(Ordering::Relaxed);
        if bytes == 0 {
            return Err(Error::invalid("the scale is too small: no read was done in the time"));
        }
        Ok(bytes as f64 / seconds / 1e6)
    })
}
