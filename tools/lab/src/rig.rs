//! A pool of the engine on modelled devices.
//!
//! ```text
//!   devices ─▶ in_lab: a world in virtual time ─▶ Rig::create: pool, dataset ─▶ work ─▶ Rig::again: empty cache
//! ```

use dsl::props::{PropName, Types, Value, When, parse_setting};
use ondisk::feature::Feature;
use pool::{Content, CreateOptions, Host, OpenOptions, Pool};
use std::path::PathBuf;
use std::sync::Arc;
use trace::present::DeviceWork;
use tunables::{Tunable, Tunables};
use units::{Error, Result};
use vdev::{Bias, Device, Group, Layout, NewLeaf};
use world::Disk;

const POOL: &str = "lab";
pub const DATASET: &str = "lab/set";
/// Bytes of buffers up to which those of a run are used again in the next: a page that was never touched costs more than
/// all that is done with it.
const BUFFERS: usize = 4 << 30;

/// Runs `work` in a world that has these devices, whose time is theirs. Not to be called from within a world.
pub fn in_lab<T: Send + 'static>(
    seed: u64,
    devices: &[Arc<dyn Disk>],
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    world::buf::set_held_max(BUFFERS);
    let disks = sim::Disks::new();
    devices.iter().for_each(|device| disks.attach(device.clone()));
    sim::run_with(&disks, seed, sim::Config { shuffle: false, ..sim::Config::default() }, work)
}

/// What the pool is to be.
#[derive(Clone, Debug)]
pub struct Rig {
    /// Each group is a top-level vdev of the layout.
    pub layout: Layout,
    pub groups: Vec<Vec<PathBuf>>,
    pub ashift: u32,
    /// Bytes of the cache.
    pub cache: u64,
    pub tunables: Arc<Tunables>,
    /// Features that the pool does not have, of those that new pools do.
    pub without: &'static [Feature],
    /// Devices for the intent log alone, each group a mirror.
    pub logs: Vec<Vec<PathBuf>>,
}

impl Rig {
    pub fn new(layout: Layout, groups: Vec<Vec<PathBuf>>, cache: u64) -> Rig {
        Rig { layout, groups, ashift: 12, cache, tunables: Tunables::new(), without: &[], logs: Vec::new() }
    }

    pub fn set(&self, tunable: Tunable, value: u64) -> Result<()> {
        self.tunables.set(tunable, value)
    }

    /// A new pool with one dataset.
    pub async fn create(&self, content: Content, props: &[(&str, &str)]) -> Result<Pool> {
        let pool = self.create_empty().await?;
        self.add(&pool, DATASET, content, props).await?;
        Ok(pool)
    }

    /// A new pool.
    pub async fn create_empty(&self) -> Result<Pool> {
        let group = |paths: &Vec<PathBuf>, layout, bias| {
            let leaves = paths.iter().map(|path| NewLeaf::look_at(path)).collect::<Result<_>>()?;
            Ok::<_, Error>(Group { layout, bias, leaves })
        };
        let data = self.groups.iter().map(|paths| group(paths, self.layout, Bias::Normal));
        let logs = self.logs.iter().map(|paths| {
            let layout = if paths.len() > 1 { Layout::Mirror } else { Layout::Stripe };
            group(paths, layout, Bias::Log)
        });
        let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY);
        pool::create(CreateOptions {
            name: POOL.into(),
            groups: data.chain(logs).collect::<Result<_>>()?,
            ashift: self.ashift,
            features: features.into_iter().flatten().filter(|one| !self.without.contains(one)).collect(),
            root_props: Vec::new(),
            root: Default::default(),
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: host(),
            cache: Arc::new(arc::Cache::new(self.cache)),
            hub: Default::default(),
            tunables: self.tunables.clone(),
        })
        .await
    }

    /// One more dataset.
    pub async fn add(&self, pool: &Pool, name: &str, content: Content, props: &[(&str, &str)]) -> Result<()> {
        let props = props.iter().map(|(name, value)| setting(content, name, value));
        pool.create_dataset(name, content, props.collect::<Result<_>>()?).await
    }

    /// The pool after an export and an import: with nothing in its cache.
    pub async fn again(&self, pool: Pool) -> Result<Pool> {
        self.again_as(pool, false).await
    }

    pub async fn again_as(&self, pool: Pool, read_only: bool) -> Result<Pool> {
        pool.export().await?;
        drop(pool);
        let devices = self.groups.iter().chain(&self.logs).flatten().map(Device::whole).collect();
        let found = pool::scan(devices).await;
        let candidate = found.first().ok_or_else(|| Error::corrupt("the pool of the lab is gone"))?;
        let options = OpenOptions {
            read_only,
            name: None,
            host: host(),
            force: false,
            missing_log: false,
            copy_over: false,
            cache: Arc::new(arc::Cache::new(self.cache)),
            hub: Default::default(),
            tunables: self.tunables.clone(),
        };
        pool::open(candidate, options).await
    }
}

/// Reads and writes that the pool's devices have done; merged ones count once.
pub fn device_operations(pool: &Pool) -> (u64, u64) {
    pool.tree().leaves().iter().fold((0, 0), |(reads, writes), leaf| {
        let stats = leaf.stats.snapshot();
        (reads + stats.read.ops, writes + stats.write.ops)
    })
}

/// What the pool's devices have done so far.
pub fn device_work(pool: &Pool) -> DeviceWork {
    pool.tree().leaves().iter().fold(DeviceWork::default(), |sum, leaf| {
        let stats = leaf.stats.snapshot();
        DeviceWork {
            reads: sum.reads + stats.read.ops,
            read_bytes: sum.read_bytes + stats.read.bytes,
            writes: sum.writes + stats.write.ops,
            written_bytes: sum.written_bytes + stats.write.bytes,
            flushes: sum.flushes + stats.flushes,
        }
    })
}

fn host() -> Host {
    Host::new(1, POOL)
}

fn setting(content: Content, name: &str, value: &str) -> Result<(PropName, Value)> {
    let types = match content {
        Content::FileSystem(_) => Types::FILESYSTEM,
        Content::Volume { .. } => Types::VOLUME,
    };
    parse_setting(name, value, types, When::Create, &Default::default())
}
