//! A pool with one file system, made for the work and gone with it.

use super::{Backing, Way};
use dsl::props::{PropName, Types, Value, When, parse_setting};
use pool::{Content, CreateOptions, Host, OpenOptions, Pool};
use sim::{Config, Disks, Model};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Error, Kind, Result};
use vdev::{Bias, Device, Group, Layout, NewLeaf};

pub const FILE_SYSTEM: &str = "bench/fs";
/// Holds everything, so that what is cached is what was needed.
const CACHE: u64 = 2 << 30;
/// Of each simulated disk. The file is larger by what the files need.
const DEVICE: u64 = 4 << 30;
/// Of the simulated disks, two to a mirror.
const DISKS: usize = 16;
/// What a file takes at most, metadata and all copies of it.
const PER_FILE: u64 = 64 << 10;
/// Of simulated chance; the figures are the same in every run.
const SEED: u64 = 512;

/// The devices of the pool.
#[derive(Clone, Debug)]
pub struct Rig {
    layout: Layout,
    paths: Vec<PathBuf>,
}

/// Runs `work` where the pool's devices are.
pub fn with_rig<T, W>(backing: &Backing, files: u64, work: impl FnOnce(Rig) -> W) -> Result<T>
where
    T: Send + 'static,
    W: Future<Output = Result<T>> + Send + 'static,
{
    match backing {
        Backing::Simulated => {
            let paths: Vec<PathBuf> = (0..DISKS).map(|i| format!("/lab/disk{i}").into()).collect();
            let disks = Disks::new();
            paths.iter().for_each(|path| drop(disks.add(path, DEVICE, Model::HDD)));
            let work = work(Rig { layout: Layout::Mirror, paths });
            sim::run_with(&disks, SEED, Config { shuffle: false, ..Config::default() }, work)
        }
        Backing::File(dir) => {
            let own = dir.join(format!("cenote-metadata-{}", std::process::id()));
            let failed = |e| Error::new(Kind::Io, "make a pool's file").at(own.display()).because(e);
            let path = own.join("disk");
            let len = DEVICE + files * PER_FILE;
            std::fs::create_dir(&own).map_err(failed)?;
            let _own = Own(&own);
            std::fs::File::create(&path).and_then(|file| file.set_len(len)).map_err(failed)?;
            linux::block_on(work(Rig { layout: Layout::Stripe, paths: vec![path] }))
        }
    }
}

/// The directory of a run, which goes with it.
struct Own<'a>(&'a Path);

impl Drop for Own<'_> {
    fn drop(&mut self) {
        // What cannot be removed is in no way harmful: the next run has another directory.
        let _ = std::fs::remove_dir_all(self.0);
    }
}

impl Rig {
    /// A pool on files that are there already: pairs of mirrors, or one group of all.
    pub fn on(layout: Layout, paths: Vec<PathBuf>) -> Rig {
        Rig { layout, paths }
    }

    pub async fn create(&self, way: &Way) -> Result<Pool> {
        self.create_with(settings(way)?).await
    }

    /// A new pool with a file system that has these properties.
    pub async fn create_with(&self, props: Vec<(PropName, Value)>) -> Result<Pool> {
        let leaves = self.paths.iter().map(|path| NewLeaf::look_at(path)).collect::<Result<Vec<_>>>()?;
        let width = match self.layout {
            Layout::Raidz { .. } => leaves.len(),
            other => *other.devices().start(),
        };
        let group =
            |some: &[NewLeaf]| Group { layout: self.layout, bias: Bias::Normal, leaves: some.to_vec() };
        let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY);
        let pool = pool::create(CreateOptions {
            name: "bench".into(),
            groups: leaves.chunks(width).map(group).collect(),
            ashift: 12,
            features: features.into_iter().flatten().collect(),
            root_props: Vec::new(),
            root: Default::default(),
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: host(),
            cache: Arc::new(arc::Cache::new(CACHE)),
            hub: Default::default(),
            tunables: Default::default(),
        })
        .await?;
        pool.create_dataset(FILE_SYSTEM, Content::FileSystem(Default::default()), props).await?;
        Ok(pool)
    }

    /// The pool, with nothing in its cache.
    pub async fn open(&self, read_only: bool) -> Result<Pool> {
        let found = pool::scan(self.paths.iter().map(Device::whole).collect()).await;
        let candidate = found.first().ok_or_else(|| Error::corrupt("the pool is gone"))?;
        let options = OpenOptions {
            read_only,
            name: None,
            host: host(),
            force: false,
            missing_log: false,
            copy_over: false,
            cache: Arc::new(arc::Cache::new(CACHE)),
            hub: Default::default(),
            tunables: Default::default(),
        };
        pool::open(candidate, options).await
    }
}

fn host() -> Host {
    Host::new(1, "bench")
}

/// The properties of a way, if they make sense.
pub fn settings(way: &Way) -> Result<Vec<(PropName, Value)>> {
    Ok(vec![setting("xattr", &way.xattr)?, setting("dnodesize", &way.dnode_size)?])
}

pub fn setting(name: &str, value: &str) -> Result<(PropName, Value)> {
    parse_setting(name, value, Types::FILESYSTEM, When::Create, &Default::default())
}
