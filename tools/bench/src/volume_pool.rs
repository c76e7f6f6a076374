//! A pool with one volume, for measuring synchronous writes: as small as it can be told.

use arc::Cache;
use pool::{Content, CreateOptions, Host, Pool};
use std::sync::Arc;
use tunables::{Tunable, Tunables};
use units::Result;
use vdev::{Bias, Group, Layout, NewLeaf};

const POOL: &str = "bench";
pub const VOLUME: &str = "bench/vol";

/// What the pool is to be.
#[derive(Clone, Debug)]
pub struct VolumePool {
    pub data: Vec<NewLeaf>,
    pub logs: Vec<NewLeaf>,
    pub size: u64,
    pub block_size: u64,
    /// `latency` or `throughput`.
    pub logbias: &'static str,
    pub cache: u64,
    /// `zfs_nocacheflush`.
    pub no_cache_flush: bool,
    /// `zfs_dirty_data_max`, if it is not to be the usual one.
    pub dirty_max: Option<u64>,
}

impl VolumePool {
    /// A volume of 1 GiB in blocks of 16 KiB, no log device.
    pub fn plain(data: Vec<NewLeaf>) -> VolumePool {
        VolumePool {
            data,
            logs: Vec::new(),
            size: 1 << 30,
            block_size: 16 << 10,
            logbias: "latency",
            cache: 256 << 20,
            no_cache_flush: false,
            dirty_max: None,
        }
    }

    pub async fn create(&self) -> Result<Pool> {
        let group =
            |bias, leaves: &Vec<NewLeaf>| Group { layout: Layout::Stripe, bias, leaves: leaves.clone() };
        let mut groups = vec![group(Bias::Normal, &self.data)];
        if !self.logs.is_empty() {
            groups.push(group(Bias::Log, &self.logs));
        }
        let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY);
        let tunables = Tunables::new();
        tunables.set(Tunable::NoCacheFlush, self.no_cache_flush.into())?;
        if let Some(dirty_max) = self.dirty_max {
            tunables.set(Tunable::DirtyDataMax, dirty_max)?;
        }
        let pool = pool::create(CreateOptions {
            name: POOL.into(),
            groups,
            ashift: 12,
            features: features.into_iter().flatten().collect(),
            root_props: Vec::new(),
            root: Default::default(),
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: Host::new(1, "bench"),
            cache: Arc::new(Cache::new(self.cache)),
            hub: Default::default(),
            tunables,
        })
        .await?;
        let content = Content::Volume { size: self.size, block_size: self.block_size };
        let props = vec![setting("compression", "off")?, setting("logbias", self.logbias)?];
        pool.create_dataset(VOLUME, content, props).await?;
        Ok(pool)
    }
}

fn setting(name: &str, value: &str) -> Result<(dsl::props::PropName, dsl::props::Value)> {
    use dsl::props::{Limits, Types, When, parse_setting};
    parse_setting(name, value, Types::VOLUME, When::Create, &Limits::default())
}
