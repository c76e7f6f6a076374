//! A database whose reads wait in the host: an elevator that anticipates, in front of solid-state disks.
//!
//! ```text
//!   processes, each with a few reads under way ─▶ elevator ─▶ volume, nothing in memory ─▶ device: 0.3 ms
//! ```

use crate::experiment::{Ask, Better, Case, Experiment, Pair, Row, Said};
use crate::hardware::drive::Drive;
use crate::hardware::elevator::{Elevator, Rules};
use crate::hardware::flash::Flash;
use crate::models::{DISK_7200, ELEVATOR_2011};
use crate::parameters::{Basis::Arithmetic, Parameter, Parameters, fixed};
use crate::rig::{DATASET, Rig, in_lab};
use pool::Content;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{Error, Result};
use vdev::Layout;
use world::{Buf, Disk};

pub const EXPERIMENT: Experiment = Experiment {
    name: "elevator",
    about: "S1, 2011: 10,000 operations/s at 2 ms through the elevator, more than 50,000/s at .3 ms without",
    modelled: "the elevator of Linux 2.6.18 (CFQ: slices, idling, the sign that a device queues), processes that keep a few \
               reads under way; the volume is the engine's, on a device of .3 ms",
    remark: "Only processes times depth follows from the document (Little: 10,000 × 2 ms = 20); how it divides is assumed. \
             Without the elevator the document's host was bound by its processors, which is not modelled: its 50,000 is a bound \
             from below.",
    chief: 0,
    quick: 0.25,
    parameters: || Parameters::of(&[ELEVATOR_2011, DEVICE, DISK_7200]),
    run,
};

/// As many channels as never wait for each other: the service time is an input, said by the document's own test.
const DEVICE: &[Parameter] = &[
    fixed(
        "flash-channels",
        4096.0,
        "",
        Arithmetic,
        "none waits for another, as in the document's synthetic test",
    ),
    fixed("flash-page", 8.0, "KiB", Arithmetic, "one page for a request"),
    fixed("flash-read", 0.0, "us", Arithmetic, "see ssd-service"),
    fixed("flash-program", 100.0, "us", Arithmetic, "only the data are laid out with it"),
    fixed("flash-erase", 0.0, "ms", Arithmetic, "not used"),
    fixed("flash-pages-per-block", 256.0, "", Arithmetic, "not used"),
    fixed("flash-spare", 0.3, "", Arithmetic, "not used"),
    fixed("flash-random-writes", 0.0, "", Arithmetic, "not used"),
    fixed("flash-buffer", 64.0, "MiB", Arithmetic, "only the data are laid out with it"),
    fixed("flash-overhead", 0.0, "us", Arithmetic, "see ssd-service"),
    fixed("flash-port", 5000.0, "MB/s", Arithmetic, "no bound"),
];

const SIZE: u64 = 64 << 20;
const SECONDS: f64 = 4.0;

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let both = |before, after| Said::Both(Pair { before, after });
    let waits = |parameters: &Parameters| {
        Ok::<_, Error>((load(parameters, ask, true, false)?, load(parameters, ask, false, false)?))
    };
    let mut cases: Vec<Case<'_>> = vec![
        Box::new(|| {
            let (with, without) = waits(parameters)?;
            let lab = Pair { before: with.rate, after: without.rate };
            Ok(row("operations", "/s", Better::More, lab, both(10_000.0, 50_000.0)))
        }),
        Box::new(|| {
            let (with, without) = waits(parameters)?;
            let lab = Pair { before: with.mean, after: without.mean };
            Ok(row("response time", "ms", Better::Less, lab, both(2.0, 0.3)))
        }),
        Box::new(|| {
            let (disks, with) = (load(parameters, ask, false, true)?, load(parameters, ask, true, false)?);
            let case = "48 disks, then solid state behind the elevator";
            let lab = Pair { before: disks.rate, after: with.rate };
            Ok(row(case, "/s", Better::More, lab, Said::Ratio(3.0)))
        }),
    ];
    for (processes, depth) in [(4.0, 5.0), (5.0, 4.0), (10.0, 2.0), (20.0, 1.0)] {
        cases.push(Box::new(move || {
            let (with, without) = waits(&parameters.with("processes", processes).with("depth", depth))?;
            let lab = Pair { before: with.rate, after: without.rate };
            let case = format!("operations, {processes} processes of {depth}");
            Ok(row(&case, "/s", Better::More, lab, Said::Nothing))
        }));
    }
    ask.rows(cases)
}

fn row(case: &str, unit: &'static str, better: Better, lab: Pair, said: Said) -> Row {
    Row { case: case.into(), unit, better, lab, said }
}

struct Load {
    rate: f64,
    /// Milliseconds that an operation takes, its wait in the elevator included.
    mean: f64,
}

fn load(parameters: &Parameters, ask: &Ask, has_elevator: bool, on_disks: bool) -> Result<Load> {
    let request = parameters.count("request") << 10;
    let service = parameters.get("ssd-service") * 1e3;
    let flash = parameters.with("flash-read", service);
    let count = if on_disks { parameters.count("disks") } else { parameters.count("ssd-devices") };
    let paths: Vec<PathBuf> = (0..count).map(|i| format!("/lab/disk{i:02}").into()).collect();
    // A database fills its disks: a small one is spread over them.
    let device = |path: &Path| -> Arc<dyn Disk> {
        match on_disks {
            true => Arc::new(Drive::new(path, u64::MAX, parameters, "disk-", 1024)),
            false => Arc::new(Flash::new(path, 8 << 30, &flash, "flash-")),
        }
    };
    let devices: Vec<Arc<dyn Disk>> = paths.iter().map(|path| device(path)).collect();
    let (processes, depth) = (parameters.count("processes"), parameters.count("depth"));
    let rules = has_elevator.then(|| Rules {
        slice: parameters.get("slice") / 1e3,
        idle: parameters.get("idle") / 1e3,
        shows_queueing: parameters.count("shows-queueing") as usize,
    });
    let seconds = SECONDS * ask.scale;
    // Large enough for many places on each disk's stretched surface.
    let size = if on_disks { count * (64 << 20) } else { SIZE };
    in_lab(ask.seed, &devices, async move {
        let (layout, groups) = match on_disks {
            true => (Layout::Mirror, paths.chunks(2).map(<[PathBuf]>::to_vec).collect()),
            false => (Layout::Stripe, paths.into_iter().map(|path| vec![path]).collect()),
        };
        let rig = Rig::new(layout, groups, 64 << 20);
        let block = if on_disks { 1 << 20 } else { request };
        let content = Content::Volume { size, block_size: if on_disks { 64 << 10 } else { request } };
        let props = [("compression", "off"), ("primarycache", "metadata"), ("prefetch", "none")];
        let pool = rig.create(content, &props).await?;
        let volume = pool.open_volume(DATASET).await?;
        let payload = Buf::copy_from(&vec![0x5a; block as usize]);
        for at in (0..size).step_by(block as usize) {
            volume.write(at, payload.clone()).await?;
        }
        pool.sync().await?;
        let elevator = Elevator::new(rules);
        let begun = world::now();
        let until = begun.after(Duration::from_secs_f64(seconds));
        let done = Arc::new(AtomicU64::new(0));
        for n in 0..processes * depth {
            let (volume, elevator) = (volume.clone(), elevator.clone());
            let done = done.clone();
            drop(world::spawn(async move {
                while world::now() < until {
                    let at = world::random_u64() % (size / request) * request;
                    let read = async { volume.read(at, request).await };
                    elevator.submit((n % processes) as usize, read).await?;
                    if world::now() <= until {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok::<_, Error>(())
            }));
        }
        world::sleep_until(until).await;
        let count = done.load(Ordering::Relaxed).max(1) as f64;
        // So many are always under way: what each takes follows (Little), those that still wait included.
        let rate = count / seconds;
        Ok(Load { rate, mean: (processes * depth) as f64 / rate * 1e3 })
    })
}
