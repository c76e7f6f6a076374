//! The pools that are forged: their disks, their structures, and the places that seal them.

use super::index::Index;
use super::own;
use arc::Cache;
use interop::golden;
use ondisk::label::{LABELS, NVLIST_OFFSET, NVLIST_SIZE};
use ondisk::{LabelLayout, NvList, Uberblock, UberblockRing};
use pool::{Host, OpenOptions, Pool};
use sim::{Config, Disks, Model, run_with};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Result};
use vdev::Tree;

pub const DIR: &str = "/sim";

/// Golden pools that this program opens, each whole in memory. `gpt` is one of them inside a partition.
const GOLDEN: [&str; 20] = [
    "aux", "basic", "ckpt", "dsl", "enc", "gang", "grub", "matrix", "mir2", "nofeat", "rz1", "rz2", "snd",
    "st", "v1", "v28", "zila", "zilb", "zilc", "zvol",
];

/// The names of all there are on this machine.
pub fn names() -> Vec<String> {
    let golden = GOLDEN.into_iter().filter(|name| golden::is_available(name)).map(str::to_string);
    own::NAMES.iter().map(|name| name.to_string()).chain(golden).collect()
}

/// A part of a label: where it is.
#[derive(Clone, Debug)]
pub struct Part {
    pub path: PathBuf,
    pub at: u64,
    pub len: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Base {
    pub disks: Disks,
    pub index: Index,
    /// What the places of blocks are taken from; never asked for I/O, as its world is gone.
    tree: Option<Arc<Tree>>,
    pub uberblock: Uberblock,
    /// Every slot that has this uberblock, and the configuration of every label.
    pub slots: Vec<Part>,
    pub configs: Vec<Part>,
}

/// More time than this in the simulated world, and something waits for ever.
pub fn config() -> Config {
    Config { limit: Duration::from_secs(3600), ..Config::default() }
}

pub fn host() -> Host {
    Host { id: 7, name: "bench".into(), process: None }
}

/// Opens the pool that is on the disks.
pub async fn open(read_only: bool) -> Result<Pool> {
    let found = pool::scan_dirs(&[DIR]).await?;
    let candidate = found.first().ok_or_else(|| Error::corrupt("the pool is not found on its devices"))?;
    let options = OpenOptions {
        read_only,
        name: None,
        host: host(),
        force: true,
        missing_log: false,
        copy_over: false,
        cache: Arc::new(Cache::new(16 << 20)),
        hub: Default::default(),
        tunables: Default::default(),
    };
    pool::open(candidate, options).await
}

impl Base {
    /// Loads or makes a pool.
    pub fn of(name: &str) -> Result<Base> {
        let disks = match own::make(name) {
            Some(made) => made?,
            None => load(name).map_err(|e| Error::invalid(format!("golden pool '{name}': {e}")))?,
        };
        let (index, tree, uberblock) = run_with(&disks.fork(), 1, config(), async {
            let pool = open(true).await?;
            let found = (Index::of(&pool).await?, pool.tree().clone(), pool.uberblock());
            Ok::<_, Error>((found.0, Some(found.1), found.2))
        })?;
        let mut base = Base { disks, index, tree, uberblock, slots: Vec::new(), configs: Vec::new() };
        base.find_labels();
        Ok(base)
    }

    pub fn tree(&self) -> &Tree {
        self.tree.as_deref().expect("it is there until the end")
    }

    fn find_labels(&mut self) {
        let ashift: BTreeSet<(PathBuf, u32)> = self
            .tree()
            .tops()
            .iter()
            .flat_map(|top| top.leaves().into_iter().map(|leaf| (leaf.device().path, top.ashift)))
            .collect();
        for (path, ashift) in ashift {
            let Some(disk) = self.disks.get(&path) else { continue };
            let Some(layout) = LabelLayout::new(disk.size()) else { continue };
            let ring = UberblockRing::new(ashift);
            for label in (0..LABELS).map(|i| layout.label(i)) {
                self.configs.push(Part {
                    path: path.clone(),
                    at: label + NVLIST_OFFSET,
                    len: NVLIST_SIZE as usize,
                });
                for slot in 0..ring.slots() {
                    let at = label + ring.slot_offset(slot);
                    let bytes = disk.peek(at, ring.slot_size() as usize);
                    if Uberblock::from_slot(&bytes).is_ok_and(|u| u.txg == self.uberblock.txg) {
                        self.slots.push(Part { path: path.clone(), at, len: bytes.len() });
                    }
                }
            }
        }
    }

    /// The packed configuration of the first label, as far as it is in use.
    pub fn packed_config(&self) -> Vec<u8> {
        let Some(part) = self.configs.first() else { return Vec::new() };
        let bytes = self.disks.get(&part.path).map_or(Vec::new(), |disk| disk.peek(part.at, part.len));
        NvList::decode(&bytes).map_or(Vec::new(), |list| list.encode())
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        // Its devices are closed by tasks, which need a world.
        let tree = self.tree.take();
        run_with(&Disks::new(), 1, config(), async move { drop(tree) });
    }
}

/// The images of a golden pool as disks.
fn load(name: &str) -> io::Result<Disks> {
    let disks = Disks::new();
    for image in golden::pool(name).images {
        let file = File::open(&image)?;
        let size = file.metadata()?.len();
        let name = image.file_name().map(Path::new).unwrap_or(Path::new("image"));
        let disk = disks.add(Path::new(DIR).join(name), size, Model::NVME);
        let mut chunk = vec![0; 1 << 20];
        let mut at = 0;
        while at < size {
            let len = chunk.len().min((size - at) as usize);
            file.read_exact_at(&mut chunk[..len], at)?;
            for (i, page) in chunk[..len].chunks(4096).enumerate() {
                if page.iter().any(|b| *b != 0) {
                    disk.poke(at + i as u64 * 4096, page);
                }
            }
            at += len as u64;
        }
    }
    Ok(disks)
}
