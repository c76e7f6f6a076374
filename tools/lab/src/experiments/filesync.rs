//! Small files, each written with O_DSYNC, on an array with a battery that destages everything when it is asked to flush;
//! with `zfs_nocacheflush=1` it is not asked.
//!
//! ```text
//!   create ─▶ write 255 bytes, durably ─▶ unlink        10,000 times: a log block, and a flush of the array, each
//! ```

use crate::experiment::{Ask, Better, Case, Experiment, Pair, Row, Said};
use crate::hardware::array::Array;
use crate::models::{ARRAY_2530, DISK_15000, HOST_2008};
use crate::parameters::Parameters;
use crate::rig::{DATASET, Rig, in_lab};
use futures_util::future::try_join_all;
use pool::Content;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tunables::Tunable;
use units::Result;
use vdev::Layout;
use world::Disk;
use world::sync::Semaphore;
use zpl::{FileKind, NewFile, Node};

pub const EXPERIMENT: Experiment = Experiment {
    name: "filesync",
    about: "2530 array, 2008: 10,000 small files with O_DSYNC, 59.04 s; with zfs_nocacheflush=1, 7.05 s",
    modelled: "array cache with a battery and mirrored controllers, twelve 15000 rpm disks with arm and platter, host \
               processor; intent log and file system are the engine's",
    remark: "The baseline is NOT within a quarter: a file costs one turn of 4.0 ms on mirrored disks and two on RAID 5, and \
             the document's 5.9 ms are no multiple of a turn: a seek or the controller's time, neither of which the document \
             lets one know. Without flushes only the write into the cache and the host are left, of which a range of .3 to .7 \
             ms is known. The document expects more gain of several streams, and measured none. Streams of one file system share \
             commits with flushes and without, so that the ratio stays, until the host's processors are the bound of the quick \
             side alone, and it falls. Streams with a file system each share none: each flush waits for one queue at the array, \
             and the ratio grows with their number. Which of the two the document has in mind it does not say.",
    chief: 0,
    quick: 0.25,
    parameters: || Parameters::of(&[HOST_2008, ARRAY_2530, DISK_15000]),
    run,
};

/// What the document measured.
const FILES: f64 = 10_000.0;
const DOCUMENT: Pair = Pair { before: 59.041564, after: 7.050389 };

const ARRAY_SIZE: u64 = 64 << 30;
const CACHE: u64 = 256 << 20;

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let files = ask.scaled(FILES, 50);
    let other = if parameters.get("array-raid") == 5.0 { 1.0 } else { 5.0 };
    let (raid, ignores) = (parameters.with("array-raid", other), parameters.with("array-obeys-flush", 0.0));
    let case = |case: String, parameters: Parameters, streams: Streams, said: Said| -> Case<'_> {
        Box::new(move || {
            let seconds = |quiet| {
                let took = one(&parameters, ask, files, streams, quiet)?;
                Ok::<_, units::Error>(took * FILES / files as f64)
            };
            let lab = Pair { before: seconds(false)?, after: seconds(true)? };
            Ok(Row { case, unit: "s", better: Better::Less, lab, said })
        })
    };
    let one = Streams { count: 1, apart: false };
    let mut cases = vec![case("one stream".into(), parameters.clone(), one, Said::Both(DOCUMENT))];
    for count in [4, 16, 64] {
        let streams = Streams { count, apart: false };
        cases.push(case(format!("{count} streams"), parameters.clone(), streams, Said::Nothing));
    }
    for count in [4, 16] {
        let streams = Streams { count, apart: true };
        let name = format!("{count} streams, a file system each");
        cases.push(case(name, parameters.clone(), streams, Said::Nothing));
    }
    cases.push(case(format!("one stream, RAID {other}"), raid, one, Said::Nothing));
    cases.push(case("an array that keeps its cache (6540)".into(), ignores, one, Said::Ratio(1.0)));
    ask.rows(cases)
}

/// How many write at once, and whether each has a file system, and so an intent log, of its own.
#[derive(Clone, Copy)]
struct Streams {
    count: usize,
    apart: bool,
}

/// Seconds of a run.
fn one(parameters: &Parameters, ask: &Ask, files: u64, streams: Streams, quiet: bool) -> Result<f64> {
    let path = Path::new("/lab/array");
    let array = Array::new(path, ARRAY_SIZE, parameters, "disk15-");
    let host = Duration::from_secs_f64(parameters.get("host-per-file") / 1e3);
    let processors = Semaphore::new(parameters.count("host-processors") as usize);
    let devices: [Arc<dyn Disk>; 1] = [Arc::new(array)];
    in_lab(ask.seed, &devices, async move {
        let rig = Rig { ashift: 9, ..Rig::new(Layout::Stripe, vec![vec![path.into()]], CACHE) };
        rig.set(Tunable::NoCacheFlush, quiet.into())?;
        let pool = rig.create_empty().await?;
        let mut roots = Vec::new();
        for number in 0..if streams.apart { streams.count } else { 1 } {
            let name = format!("{DATASET}{number}");
            rig.add(&pool, &name, Content::FileSystem(Default::default()), &[]).await?;
            let root = pool.open_file_system_for_writing(&name).await?.root().await?;
            // The log is made by its first commit, which waits for a txg.
            file(&root, b"first").await?;
            roots.push(root);
        }
        let next = AtomicU64::new(0);
        let begun = world::now();
        let stream = |number: usize| {
            let (roots, next, processors) = (&roots, &next, &processors);
            async move {
                let name = format!("filesync_test.{number}");
                while next.fetch_add(1, Ordering::Relaxed) < files {
                    {
                        let _held = processors.acquire(1).await;
                        world::sleep(host).await;
                    }
                    file(&roots[number % roots.len()], name.as_bytes()).await?;
                }
                Ok::<_, units::Error>(())
            }
        };
        try_join_all((0..streams.count).map(stream)).await?;
        let seconds = world::now().since(begun).as_secs_f64();
        drop(roots);
        pool.export().await?;
        Ok(seconds)
    })
}

async fn file(root: &Node, name: &[u8]) -> Result<()> {
    let node = root.create(name, &NewFile::new(FileKind::Regular, 0o644)).await?;
    node.write_durable(0, &[0x5a; 255]).await?;
    node.release().await?;
    root.unlink(name).await
}
