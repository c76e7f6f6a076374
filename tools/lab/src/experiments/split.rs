//! Requests of a megabyte that the hosts send as two halves, to LUNs of 1 MiB blocks that are written synchronously.
//!
//! ```text
//!   client ─▶ link, 70 % reads of what is in memory, 30 % writes ─▶ volume, sync ─▶ intent log ─▶ disks
//!                                                                         whole block: written once, the log points to it
//!                                                                         half: copied into the log, and written again
//! ```
//!
//! One client with its four LUNs and its share of the disks is run, and stands for all four.

use crate::experiment::{Ask, Better, Experiment, Pair, Row, Said};
use crate::hardware::drive::Drive;
use crate::hardware::link::{Link, divided};
use crate::models::{APPLIANCE_2014, DISK_7200};
use crate::parameters::Parameters;
use crate::rig::{DATASET, Rig, in_lab};
use futures_util::future::try_join_all;
use pool::Content;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tunables::Tunable;
use units::Result;
use vdev::Layout;
use world::{Buf, Disk, Instant};

pub const EXPERIMENT: Experiment = Experiment {
    name: "split",
    about: "ZS3-4, 2014: 1 MiB requests, 70 % reads, 16 LUNs; sent as 512K halves 2.1 GB/s, whole 10.9 GB/s",
    modelled: "96 disks of 7200 rpm with arm, platter and cache, 16 Gb FC links, clients that divide requests; volumes, \
               intent log, txgs and cache are the engine's, with the logging rule of 2013",
    remark: "Neither the vdevs nor whether the LUNs' write cache was on are in the document. With it on, or with today's rule \
             (a pointer from half a block on), the rows beside show what is left of the gain.",
    parameters: || Parameters::of(&[APPLIANCE_2014, DISK_7200]),
    run,
};

const DOCUMENT: Pair = Pair { before: 2.1, after: 10.9 };
const BLOCK: u64 = 1 << 20;
/// One client's part of the whole, before `--scale`.
const CLIENTS: f64 = 4.0;
/// Of it, what is run: half its disks, LUNs and ports.
const PART: f64 = 0.5;
/// A LUN need only outlast a txg: smaller ones take less memory.
const LUN: u64 = 128 << 20;
const WARM: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(4);

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let pair = |parameters: &Parameters| {
        Ok::<_, units::Error>(Pair {
            before: rate(parameters, ask, parameters.get("split-before"))?,
            after: rate(parameters, ask, parameters.get("split-after"))?,
        })
    };
    let row =
        |case: &str, lab, said| Row { case: case.into(), unit: "GB/s", better: Better::More, lab, said };
    let main =
        if parameters.get("width") > 2.0 { "raidz2, write cache off" } else { "mirrors, write cache off" };
    let other = if parameters.get("width") > 2.0 { 2.0 } else { 12.0 };
    let other_case = if other > 2.0 { "raidz2 of 12, write cache off" } else { "mirrors, write cache off" };
    Ok(vec![
        row(main, pair(parameters)?, Said::Both(DOCUMENT)),
        row(other_case, pair(&parameters.with("width", other))?, Said::Both(DOCUMENT)),
        row("today's rule of the log", pair(&parameters.with("whole-blocks-only", 0.0))?, Said::Nothing),
        row("write cache on", pair(&parameters.with("write-cache-off", 0.0))?, Said::Nothing),
    ])
}

/// GB/s of all clients together.
fn rate(parameters: &Parameters, ask: &Ask, split: f64) -> Result<f64> {
    let share = PART / CLIENTS;
    let width = parameters.count("width") as usize;
    let groups = ((parameters.get("disks") * share / width as f64).round() as usize).max(1);
    let luns = (parameters.get("luns") * share).round().max(1.0) as u64;
    let threads = luns as usize * parameters.count("threads") as usize;
    // What is run, of the whole.
    let run_share = (groups * width) as f64 / parameters.get("disks");
    let paths: Vec<PathBuf> = (0..groups * width).map(|i| format!("/lab/disk{i:02}").into()).collect();
    let devices: Vec<Arc<dyn Disk>> = paths
        .iter()
        .map(|path| -> Arc<dyn Disk> { Arc::new(Drive::new(path, u64::MAX, parameters, "disk-", 1)) })
        .collect();
    let link = Link::new(parameters.get("client-ports") * parameters.get("port-rate") * CLIENTS * run_share);
    let layout = if width == 2 { Layout::Mirror } else { Layout::Raidz { parity: 2 } };
    let measured = Duration::from_secs_f64(MEASURED.as_secs_f64() * ask.scale);
    let (parameters, split) = (parameters.clone(), (split * 1024.0) as u64);
    in_lab(ask.seed, &devices, async move {
        let rig = Rig::new(layout, paths.chunks(width).map(<[PathBuf]>::to_vec).collect(), 4 * luns * LUN);
        rig.set(Tunable::ZilWholeBlocksOnly, parameters.count("whole-blocks-only"))?;
        rig.set(Tunable::DirtyDataMax, (parameters.get("dirty-max") * 1048576.0 * run_share) as u64)?;
        let durable = parameters.is_on("write-cache-off");
        let content = Content::Volume { size: LUN, block_size: BLOCK };
        let props = [("compression", "off")];
        let pool = rig.create(content, &props).await?;
        let payload = Buf::copy_from(&vec![0x5a; BLOCK as usize]);
        // Each LUN has an intent log of its own.
        let mut volumes = vec![pool.open_volume(DATASET).await?];
        for n in 1..luns {
            let name = format!("{DATASET}{n}");
            rig.add(&pool, &name, content, &props).await?;
            volumes.push(pool.open_volume(&name).await?);
        }
        for volume in &volumes {
            for at in (0..LUN).step_by(BLOCK as usize) {
                volume.write(at, payload.clone()).await?;
            }
        }
        pool.sync().await?;
        let moved = Arc::new(AtomicU64::new(0));
        let (from, to) = (world::now().after(WARM), world::now().after(WARM + measured));
        let cursors: Arc<Vec<AtomicU64>> = Arc::new((0..luns).map(|_| AtomicU64::new(0)).collect());
        let read_percent = parameters.count("read-percent");
        let one = |thread: usize| {
            let lun = thread % luns as usize;
            let (volume, link, payload) = (volumes[lun].clone(), link.clone(), payload.clone());
            let (moved, cursors) = (moved.clone(), cursors.clone());
            async move {
                while world::now() < to {
                    // One sequential stream for each LUN, shared by its threads.
                    let at = cursors[lun].fetch_add(BLOCK, Ordering::Relaxed) % LUN;
                    let reads = world::random_u64() % 100 < read_percent;
                    let piece = |range: std::ops::Range<u64>| {
                        let (volume, link, payload) = (&volume, &link, &payload);
                        async move {
                            let len = range.end - range.start;
                            if reads {
                                volume.read(range.start, len).await?;
                                link.to_host(len).await;
                                return Ok(());
                            }
                            link.from_host(len).await;
                            let data = Buf::copy_from(&payload[..len as usize]);
                            match durable {
                                true => volume.write_durable(range.start, data).await,
                                false => volume.write(range.start, data).await,
                            }
                        }
                    };
                    try_join_all(divided(at, BLOCK, split).map(piece)).await?;
                    if within(from, to) {
                        moved.fetch_add(BLOCK, Ordering::Relaxed);
                    }
                }
                Ok::<_, units::Error>(())
            }
        };
        try_join_all((0..threads).map(|thread| world::spawn(one(thread)))).await?;
        let bytes = moved.load(Ordering::Relaxed) as f64;
        drop(volumes);
        pool.export().await?;
        Ok(bytes / measured.as_secs_f64() / 1e9 / run_share)
    })
}

fn within(from: Instant, to: Instant) -> bool {
    (from..to).contains(&world::now())
}
