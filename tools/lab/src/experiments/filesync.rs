//! Small files, each written with O_DSYNC, on an array with a battery that destages everything when it is asked to flush;
//! with `zfs_nocacheflush=1` it is not asked.
//!
//! ```text
//!   create ─▶ write 255 bytes, durably ─▶ unlink        10,000 times: a log block, and a flush of the array, each
//! ```

use crate::experiment::{Ask, Better, Experiment, Pair, Row, Said};
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
use zpl::{FileKind, NewFile, Node};

pub const EXPERIMENT: Experiment = Experiment {
    name: "filesync",
    about: "2530 array, 2008: 10,000 small files with O_DSYNC, 59.04 s; with zfs_nocacheflush=1, 7.05 s",
    modelled: "array cache with a battery and mirrored controllers, twelve 15000 rpm disks with arm and platter, host \
               processor; intent log and file system are the engine's",
    remark: "The document names neither the RAID level nor the disks in use. Without flushes only the write into the cache \
             and the host are left, of which a range of .3 to .7 ms is known.",
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
    let seconds = |parameters: &Parameters, streams, quiet| {
        Ok::<_, units::Error>(one(parameters, ask, files, streams, quiet)? * FILES / files as f64)
    };
    let pair = |parameters: &Parameters, streams| {
        Ok::<_, units::Error>(Pair {
            before: seconds(parameters, streams, false)?,
            after: seconds(parameters, streams, true)?,
        })
    };
    let row = |case: &str, lab, said| Row { case: case.into(), unit: "s", better: Better::Less, lab, said };
    let mut rows = vec![row("one stream", pair(parameters, 1)?, Said::Both(DOCUMENT))];
    for (streams, case) in [(4, "4 streams"), (16, "16 streams"), (64, "64 streams")] {
        rows.push(row(case, pair(parameters, streams)?, Said::Nothing));
    }
    let other = if parameters.get("array-raid") == 5.0 { 1.0 } else { 5.0 };
    let case = format!("one stream, RAID {other}");
    rows.push(row(&case, pair(&parameters.with("array-raid", other), 1)?, Said::Nothing));
    let ignores = parameters.with("array-obeys-flush", 0.0);
    rows.push(row("an array that keeps its cache (6540)", pair(&ignores, 1)?, Said::Ratio(1.0)));
    Ok(rows)
}

/// Seconds of a run.
fn one(parameters: &Parameters, ask: &Ask, files: u64, streams: usize, quiet: bool) -> Result<f64> {
    let path = Path::new("/lab/array");
    let array = Array::new(path, ARRAY_SIZE, parameters, "disk15-");
    let host = Duration::from_secs_f64(parameters.get("host-per-file") / 1e3);
    let devices: [Arc<dyn Disk>; 1] = [Arc::new(array)];
    in_lab(ask.seed, &devices, async move {
        let rig = Rig { ashift: 9, ..Rig::new(Layout::Stripe, vec![vec![path.into()]], CACHE) };
        rig.set(Tunable::NoCacheFlush, quiet.into())?;
        let pool = rig.create(Content::FileSystem(Default::default()), &[]).await?;
        let fs = pool.open_file_system_for_writing(DATASET).await?;
        let root = Arc::new(fs.root().await?);
        // The log is made by its first commit, which waits for a txg.
        file(&root, b"first").await?;
        let next = AtomicU64::new(0);
        let begun = world::now();
        let stream = |number: usize| {
            let (root, next) = (root.clone(), &next);
            async move {
                let name = format!("filesync_test.{number}");
                while next.fetch_add(1, Ordering::Relaxed) < files {
                    world::sleep(host).await;
                    file(&root, name.as_bytes()).await?;
                }
                Ok::<_, units::Error>(())
            }
        };
        try_join_all((0..streams).map(stream)).await?;
        let seconds = world::now().since(begun).as_secs_f64();
        drop((root, fs));
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
