//! Extended attributes: in a hidden directory, in a spill block, in a dnode of 1K.
//!
//! ```text
//!   files with one value each ─▶ export, import ─▶ single values, far apart: device reads of each
//!                                                ─▶ all values: blocks in the cache
//!   create + set, unlink      ─▶ on sixteen disks in mirrors, each operation with its time on a processor
//! ```

use crate::experiment::{Ask, Better, Experiment, Pair, Row, Said};
use crate::hardware::drive::Drive;
use crate::models::{DISK_7200, METADATA_2015};
use crate::parameters::Parameters;
use crate::rig::{DATASET, Rig, device_operations, in_lab};
use futures_util::future::try_join_all;
use ondisk::feature::Feature;
use pool::{Content, Pool};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Result};
use vdev::Layout;
use world::Disk;
use world::sync::Semaphore;
use zpl::{FileKind, NewFile, Node, NodeId};

pub const EXPERIMENT: Experiment = Experiment {
    name: "metadata",
    about: "OpenZFS, 2015: an extended attribute in 3, 2 or 1 reads, 16x fewer cached blocks, +30 % creates and destroys",
    modelled: "sixteen 7200 rpm disks in mirrors; reads and cached blocks are counted on the engine, whose time on a \
               processor for creates and destroys is the measured one",
    remark: "Creates and destroys wait for no disk: their ratio is that of the engine's time on a processor, which is a measured \
             parameter here and no result of mechanics. What a metadata server adds on both sides is not in the document: at 33 \
             us for each operation the ratio would be the document's 1.30. The document's three reads are the block of dnodes, \
             the hidden directory and the value. On a pool with the feature embedded_data, which new pools have today, a hidden \
             directory of one name is so small that it lies within its block pointer: one read less.",
    chief: 3,
    quick: 1.0,
    parameters: || Parameters::of(&[METADATA_2015, DISK_7200]),
    run,
};

/// What the pools of the document did not have yet.
const THEN: &[Feature] = &[Feature::EmbeddedData];
const CACHE: u64 = 2 << 30;
/// Files this far apart share no block of dnodes.
const APART: u64 = 256;
/// Files before this may share a block of dnodes with what every file needs.
const FIRST: u64 = 64;
const XATTR: &[u8] = b"user.lab";
/// Files of the whole run, before `--scale`: enough for sixteen values far apart.
const FILES: f64 = 4096.0;

/// Where a value is.
#[derive(Clone, Copy)]
struct Way {
    xattr: &'static str,
    dnode: &'static str,
}

const DIRECTORY: Way = Way { xattr: "dir", dnode: "legacy" };
const SPILL: Way = Way { xattr: "sa", dnode: "legacy" };
const DNODE: Way = Way { xattr: "sa", dnode: "1k" };

#[derive(Clone, Copy)]
struct Seen {
    reads: f64,
    cached: f64,
    creates: f64,
    destroys: f64,
}

fn run(parameters: &Parameters, ask: &Ask) -> Result<Vec<Row>> {
    let [directory, spill, dnode] = [
        one(parameters, ask, DIRECTORY, "legacy", THEN)?,
        one(parameters, ask, SPILL, "legacy", THEN)?,
        one(parameters, ask, DNODE, "large", THEN)?,
    ];
    let today = match ask.only {
        None => one(parameters, ask, DIRECTORY, "legacy", &[])?,
        Some(_) => directory,
    };
    let row = |case: &str, unit, better, before, after, said| Row {
        case: case.into(),
        unit,
        better,
        lab: Pair { before, after },
        said,
    };
    let reads = |before, after| Said::Both(Pair { before, after });
    let all = vec![
        row(
            "a value: hidden directory, spill block",
            "reads",
            Better::Less,
            directory.reads,
            spill.reads,
            reads(3.0, 2.0),
        ),
        row(
            "a value: spill block, dnode of 1K",
            "reads",
            Better::Less,
            spill.reads,
            dnode.reads,
            reads(2.0, 1.0),
        ),
        row(
            "blocks in the cache, all values read",
            "blocks",
            Better::Less,
            spill.cached,
            dnode.cached,
            Said::Ratio(16.0),
        ),
        row("creates with a value", "/s", Better::More, spill.creates, dnode.creates, Said::Ratio(1.3)),
        row("destroys", "/s", Better::More, spill.destroys, dnode.destroys, Said::Ratio(1.3)),
        row(
            "a value: hidden directory, without and with embedded data",
            "reads",
            Better::Less,
            directory.reads,
            today.reads,
            Said::Nothing,
        ),
    ];
    let wanted = |number: usize| ask.only.is_none_or(|only| only == number);
    Ok(all.into_iter().enumerate().filter(|(number, _)| wanted(*number)).map(|(_, row)| row).collect())
}

fn one(
    parameters: &Parameters,
    ask: &Ask,
    way: Way,
    cost: &str,
    without: &'static [Feature],
) -> Result<Seen> {
    let disks = parameters.count("disks") as usize;
    let paths: Vec<PathBuf> = (0..disks).map(|i| format!("/lab/disk{i:02}").into()).collect();
    let devices: Vec<Arc<dyn Disk>> = paths
        .iter()
        .map(|path| -> Arc<dyn Disk> { Arc::new(Drive::new(path, u64::MAX, parameters, "disk-", 1)) })
        .collect();
    let files = ask.scaled(FILES, 2 * APART);
    let streams = parameters.count("processes").min(files / 8).max(1);
    let above = parameters.get("above");
    let time = |key: &str| Duration::from_secs_f64((parameters.get(&format!("{cost}-{key}")) + above) / 1e6);
    let (create, destroy) = (time("create"), time("destroy"));
    // Chance does not compress: a value that did would need no block of its own.
    let mut rng = sim::Rng::new(ask.seed);
    let value: Vec<u8> = (0..parameters.count("value")).map(|_| rng.next_u64() as u8).collect();
    in_lab(ask.seed, &devices, async move {
        let groups = paths.chunks(2).map(<[PathBuf]>::to_vec).collect();
        let rig = Rig { without, ..Rig::new(Layout::Mirror, groups, CACHE) };
        let content = Content::FileSystem(Default::default());
        let pool = rig.create(content, &[("xattr", way.xattr), ("dnodesize", way.dnode)]).await?;
        let fs = pool.open_file_system_for_writing(DATASET).await?;
        let root = fs.root().await?;
        let directories = try_join_all((0..streams).map(|n| {
            let root = &root;
            async move {
                root.create(format!("dir-{n}").as_bytes(), &NewFile::new(FileKind::Directory, 0o755)).await
            }
        }))
        .await?;
        pool.sync().await?;
        let begun = world::now();
        let processor = Semaphore::new(1);
        let mine = |stream: u64| (stream..files).step_by(streams as usize);
        let made = try_join_all(directories.iter().zip(0..).map(|(directory, stream)| {
            let (processor, value) = (&processor, &value);
            async move {
                let mut ids: Vec<(u64, NodeId)> = Vec::new();
                for file in mine(stream) {
                    on(processor, create).await?;
                    let new = NewFile::new(FileKind::Regular, 0o644);
                    let node = directory.create(name(file).as_bytes(), &new).await?;
                    node.set_xattr(XATTR, value).await?;
                    ids.push((file, node.id()));
                    node.release().await?;
                }
                Ok::<_, Error>(ids)
            }
        }))
        .await?;
        let creates = files as f64 / world::now().since(begun).as_secs_f64();
        let mut ids: Vec<(u64, NodeId)> = made.into_iter().flatten().collect();
        ids.sort_unstable_by_key(|(_, id)| *id);
        let ids: Vec<NodeId> = ids.into_iter().map(|(_, id)| id).collect();
        let directory_ids: Vec<NodeId> = directories.iter().map(Node::id).collect();
        drop((root, directories, fs));

        let pool = rig.again_as(pool, true).await?;
        let reads = single_values(&pool, &ids).await?;
        let pool = rig.again_as(pool, false).await?;
        let fs = pool.open_file_system_for_writing(DATASET).await?;
        for id in &ids {
            let found = fs.node(*id).await?.xattr(XATTR).await?;
            if found.as_deref() != Some(&value[..]) {
                return Err(Error::corrupt("a value is not what was set"));
            }
        }
        let stats = pool.pipeline().cache().stats();
        let cached = (stats.data.blocks + stats.metadata.blocks) as f64;

        let directories = try_join_all(directory_ids.iter().map(|id| fs.node(*id))).await?;
        let begun = world::now();
        try_join_all(directories.iter().zip(0..).map(|(directory, stream)| {
            let processor = &processor;
            async move {
                for file in mine(stream) {
                    on(processor, destroy).await?;
                    directory.unlink(name(file).as_bytes()).await?;
                }
                Ok::<_, Error>(())
            }
        }))
        .await?;
        let destroys = files as f64 / world::now().since(begun).as_secs_f64();
        drop((directories, fs));
        pool.export().await?;
        Ok(Seen { reads, cached, creates, destroys })
    })
}

fn name(file: u64) -> String {
    format!("file-{file}")
}

/// Occupies the processor.
async fn on(processor: &Semaphore, time: Duration) -> Result<()> {
    let _held = processor.acquire(1).await;
    world::sleep(time).await;
    Ok(())
}

/// Device reads of one value, in the mean of values that are far from each other. Before each another one is read, half the
/// way to the next: it brings what many files share, indirect blocks above all.
async fn single_values(pool: &Pool, ids: &[NodeId]) -> Result<f64> {
    let fs = pool.open_file_system(DATASET).await?;
    let (mut count, mut reads) = (0, 0);
    let mut at = FIRST;
    while at + APART / 2 < ids.len() as u64 {
        fs.node(ids[(at + APART / 2) as usize]).await?.xattr(XATTR).await?;
        let before = device_operations(pool).0;
        fs.node(ids[at as usize]).await?.xattr(XATTR).await?;
        reads += device_operations(pool).0 - before;
        count += 1;
        at += APART;
    }
    Ok(reads as f64 / f64::from(count.max(1)))
}
