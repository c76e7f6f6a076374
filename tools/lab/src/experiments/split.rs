//! Requests of a megabyte that the hosts send as two halves, to LUNs of 1 MiB blocks that are written synchronously.
//!
//! ```text
//!   client ─▶ link, 70 % reads of what is in memory, 30 % writes ─▶ volume, sync ─▶ intent log ─▶ disks
//!                                                                         whole block: written once, the log points to it
//!                                                                         half: copied into the log, and written again
//! ```
//!
//! A part of the LUNs with their share of the disks is run, and stands for all. LUNs are smaller than the document's, and so
//! are the time and the size of a txg: then as large a part of a LUN is written again in a txg as in the document. Smaller
//! LUNs alone would be overwritten many times in a txg, and reach the disks once.

use crate::experiment::{Ask, Better, Case, Experiment, Pair, Row, Said};
use crate::hardware::drive::Drive;
use crate::hardware::link::{Link, divided};
use crate::hardware::spindle::Work;
use crate::models::{APPLIANCE_2014, DISK_7200};
use crate::parameters::Parameters;
use crate::rig::{DATASET, Rig, device_work, in_lab};
use futures_util::future::{join, try_join_all};
use pool::Content;
use std::cell::Cell;
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
               intent log, txgs and cache are the engine's, with the logging rule of 2013 and neighbours merged up to 128K",
    remark: "Neither the vdevs nor whether the LUNs' write cache was on are in the document. LUNs, txgs and dirty data are on one \
             scale, and neighbours are merged up to 128K as in 2013; before both were so the gain was 1.03x, and which of the \
             two counts more was not separated. The scale still counts: with everything 5 times smaller rather than 2.5, half as \
             long, mirrors gave 3.67 → 13.5 GB/s. Halves cost because of what reaches the devices, 6.1 bytes rather than 2.3 \
             for each that clients write: 2 are the log's, 2 the block's on both sides of a mirror, and the rest is not \
             explained; halves cost with the write cache on as well. The rule of 2013 is not the cause: today's gives nearly the \
             same. The document's 2.1 GB/s would need the arm to move for every piece of a log; this engine writes those of a \
             batch in a row.",
    chief: 0,
    quick: 0.5,
    parameters: || Parameters::of(&[APPLIANCE_2014, DISK_7200]),
    run,
};

const DOCUMENT: Pair = Pair { before: 2.1, after: 10.9 };
const BLOCK: u64 = 1 << 20;
const CLIENTS: f64 = 4.0;
/// Of the whole, what is run: an eighth of its disks, LUNs and ports.
const PART: f64 = 1.0 / 8.0;
const WARM: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(4);

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let name = |parameters: &Parameters| match parameters.get("width") {
        2.0 => "mirrors".to_string(),
        width => format!("raidz2 of {width}"),
    };
    let other = if parameters.get("width") > 2.0 { 2.0 } else { 12.0 };
    let both = |parameters: &Parameters| {
        let run = |split: &str| run_one(parameters, ask, parameters.get(split));
        Ok::<_, units::Error>((run("split-before")?, run("split-after")?))
    };
    let case = |what: &str, parameters: Parameters, said: Said| -> Case<'_> {
        let case = format!("{}{what}", name(&parameters));
        Box::new(move || {
            let (halves, whole) = both(&parameters)?;
            let lab = Pair { before: halves.rate, after: whole.rate };
            Ok(Row { case, unit: "GB/s", better: Better::More, lab, said })
        })
    };
    let (raid, today) = (parameters.with("width", other), parameters.with("whole-blocks-only", 0.0));
    // Several figures of one pair of runs.
    let looked = &Cell::new(None::<(Seen, Seen)>);
    let seen = |what: &'static str, unit, better, said: Said, get: fn(&Seen) -> f64| -> Case<'_> {
        Box::new(move || {
            let (halves, whole) = match looked.get() {
                Some(seen) => seen,
                None => both(parameters)?,
            };
            looked.set(Some((halves, whole)));
            let lab = Pair { before: get(&halves), after: get(&whole) };
            Ok(Row { case: format!("{}{what}", name(parameters)), unit, better, lab, said })
        })
    };
    let (more, less) = (Better::More, Better::Less);
    ask.rows(vec![
        seen(", write cache off", "GB/s", more, Said::Both(DOCUMENT), |seen| seen.rate),
        case(", write cache off", raid, Said::Both(DOCUMENT)),
        case(", today's rule of the log", today, Said::Nothing),
        case(", write cache on", parameters.with("write-cache-off", 0.0), Said::Nothing),
        seen(": size of a device's writes", "K", more, Said::Nothing, |seen| seen.write_size / 1024.0),
        seen(": written to devices for a byte of clients", "bytes", less, Said::Nothing, |seen| {
            seen.amplification
        }),
        seen(": of the arms' time, in motion or waiting", "%", less, Said::Nothing, |seen| {
            seen.positioning * 100.0
        }),
        seen(": of the arms' time, at work", "%", less, Said::Nothing, |seen| seen.busy * 100.0),
    ])
}

/// What is seen of a run.
#[derive(Clone, Copy)]
struct Seen {
    /// GB/s of all clients together.
    rate: f64,
    /// Bytes, in the mean.
    write_size: f64,
    /// Bytes that reached devices for each byte that clients wrote.
    amplification: f64,
    /// Parts of the time of all arms.
    positioning: f64,
    busy: f64,
}

fn run_one(parameters: &Parameters, ask: &Ask, split: f64) -> Result<Seen> {
    let width = parameters.count("width") as usize;
    let groups = ((parameters.get("disks") * PART / width as f64).round() as usize).max(1);
    // What is run, of the whole.
    let run_share = (groups * width) as f64 / parameters.get("disks");
    let luns = (parameters.get("luns") * run_share).round().max(1.0) as u64;
    let threads = luns as usize * parameters.count("threads") as usize;
    let shrunk = parameters.get("shrunk");
    let lun = (parameters.get("lun-size") / shrunk) as u64 * BLOCK;
    let paths: Vec<PathBuf> = (0..groups * width).map(|i| format!("/lab/disk{i:02}").into()).collect();
    let drives: Vec<Drive> =
        paths.iter().map(|path| Drive::new(path, u64::MAX, parameters, "disk-", 1)).collect();
    let devices: Vec<Arc<dyn Disk>> =
        drives.iter().map(|d| -> Arc<dyn Disk> { Arc::new(d.clone()) }).collect();
    let ports = parameters.get("client-ports") * parameters.get("port-rate");
    let link = Link::new(ports * CLIENTS * run_share);
    let layout = if width == 2 { Layout::Mirror } else { Layout::Raidz { parity: 2 } };
    let measured = Duration::from_secs_f64(MEASURED.as_secs_f64() * ask.scale);
    let (parameters, split) = (parameters.clone(), (split * 1024.0) as u64);
    in_lab(ask.seed, &devices, async move {
        let rig = Rig::new(layout, paths.chunks(width).map(<[PathBuf]>::to_vec).collect(), 4 * luns * lun);
        rig.set(Tunable::VdevAggregationLimit, parameters.count("aggregation-2013"))?;
        rig.set(Tunable::TxgTimeout, (parameters.get("txg") / shrunk).round().max(1.0) as u64)?;
        rig.set(Tunable::ZilWholeBlocksOnly, parameters.count("whole-blocks-only"))?;
        let dirty = parameters.get("dirty-max") * 1048576.0 * run_share / shrunk;
        rig.set(Tunable::DirtyDataMax, dirty as u64)?;
        let durable = parameters.is_on("write-cache-off");
        let content = Content::Volume { size: lun, block_size: BLOCK };
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
            for at in (0..lun).step_by(BLOCK as usize) {
                volume.write(at, payload.clone()).await?;
            }
        }
        pool.sync().await?;
        let (moved, written) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (from, to) = (world::now().after(WARM), world::now().after(WARM + measured));
        let cursors: Arc<Vec<AtomicU64>> = Arc::new((0..luns).map(|_| AtomicU64::new(0)).collect());
        let read_percent = parameters.count("read-percent");
        // In a buffer of its own, so that it is kept as it is.
        let piece_of_payload = Buf::copy_from(&payload[..BLOCK.min(split) as usize]);
        let one = |thread: usize| {
            let number = thread % luns as usize;
            let (volume, link) = (volumes[number].clone(), link.clone());
            let piece_of_payload = piece_of_payload.clone();
            let (moved, written, cursors) = (moved.clone(), written.clone(), cursors.clone());
            async move {
                while world::now() < to {
                    // One sequential stream for each LUN, shared by its threads.
                    let at = cursors[number].fetch_add(BLOCK, Ordering::Relaxed) % lun;
                    let reads = world::random_u64() % 100 < read_percent;
                    let piece = |range: std::ops::Range<u64>| {
                        let (volume, link, piece_of_payload) = (&volume, &link, &piece_of_payload);
                        async move {
                            let len = range.end - range.start;
                            if reads {
                                volume.read(range.start, len).await?;
                                link.to_host(len).await;
                                return Ok(());
                            }
                            link.from_host(len).await;
                            let data = piece_of_payload.slice(0..len as usize);
                            match durable {
                                true => volume.write_durable(range.start, data).await,
                                false => volume.write(range.start, data).await,
                            }
                        }
                    };
                    try_join_all(divided(at, BLOCK, split).map(piece)).await?;
                    if within(from, to) {
                        moved.fetch_add(BLOCK, Ordering::Relaxed);
                        written.fetch_add(if reads { 0 } else { BLOCK }, Ordering::Relaxed);
                    }
                }
                Ok::<_, units::Error>(())
            }
        };
        let work = || drives.iter().map(Drive::work).fold(Work::default(), Work::and);
        let watch = async {
            world::sleep_until(from).await;
            let before = (device_work(&pool), work());
            world::sleep_until(to).await;
            (device_work(&pool).since(&before.0), work().since(before.1))
        };
        let clients = try_join_all((0..threads).map(|thread| world::spawn(one(thread))));
        let (clients, (devices, arms)) = join(clients, watch).await;
        clients?;
        let (bytes, written) = (moved.load(Ordering::Relaxed) as f64, written.load(Ordering::Relaxed) as f64);
        drop(volumes);
        pool.export().await?;
        let all = measured.as_secs_f64() * drives.len() as f64;
        Ok(Seen {
            rate: bytes / measured.as_secs_f64() / 1e9 / run_share,
            write_size: devices.written_bytes as f64 / devices.writes.max(1) as f64,
            amplification: devices.written_bytes as f64 / written.max(1.0),
            positioning: arms.positioning / all,
            busy: (arms.positioning + arms.transferring) / all,
        })
    })
}

fn within(from: Instant, to: Instant) -> bool {
    (from..to).contains(&world::now())
}
