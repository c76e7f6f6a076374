//! Whole pools in the simulated world: made, worked on, hurt and opened again.

mod ahead;
mod at_hand;
mod autotrim;
mod bounds;
mod cloned;
mod devices;
mod direct;
mod effects;
mod error_scrub;
mod errors;
mod expand;
mod faults;
mod file_logs;
mod forked;
mod frees;
mod full;
mod full_files;
mod given_up;
mod handover;
mod heal;
mod hosts;
mod in_use;
mod listing;
mod log_removal;
mod logs;
mod lost;
mod moved;
mod multihost;
mod nearly_full;
mod neighbours;
mod openings;
mod overwrites;
mod pulled;
mod readers;
mod rebuild;
mod reopen;
mod reshape;
mod resilver;
mod resize;
mod rounds;
mod scrub;
mod shared_spares;
mod special;
mod split;
mod stages;
mod statistics;
mod suspended;
mod sweep;
mod tuned;
mod vdev_properties;
mod walks;
mod xattrs;

use crate::{Candidate, Content, CreateOptions, Host, OpenOptions, Pool, VerifyReport};
use arc::Cache;
use sim::{Config, Disks, Model, Rng};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tunables::Tunables;
use units::Result;
use vdev::{Bias, Device, Group, Layout, NewLeaf};
use world::Buf;

pub(crate) const VOLUME: &str = "tank/v";
pub(crate) const BLOCK: u64 = 8 << 10;

/// Disks for a pool of one layout.
#[derive(Clone)]
pub(crate) struct Rig {
    pub disks: Disks,
    layout: Layout,
    count: usize,
}

impl Rig {
    pub fn new(layout: Layout, count: usize, size: u64) -> Rig {
        let rig = Rig { disks: Disks::new(), layout, count };
        for i in 0..count {
            rig.disks.add(rig.path(i), size, Model::NVME);
        }
        rig
    }

    /// One of each layout, with as few devices as it takes, and one to spare.
    pub fn all() -> Vec<Rig> {
        let raidz = |parity, count| (Layout::Raidz { parity }, count);
        [(Layout::Stripe, 1), (Layout::Mirror, 2), raidz(1, 3), raidz(2, 4), raidz(3, 5)]
            .into_iter()
            .map(|(layout, count)| Rig::new(layout, count, 96 << 20))
            .collect()
    }

    /// How many devices may be lost.
    pub fn redundancy(&self) -> usize {
        match self.layout {
            Layout::Stripe => 0,
            Layout::Mirror => self.count - 1,
            Layout::Raidz { parity } => parity as usize,
        }
    }

    /// On how many devices the data of a large block is spread.
    pub fn width(&self) -> u64 {
        match self.layout {
            Layout::Stripe => self.count as u64,
            Layout::Mirror => 1,
            Layout::Raidz { parity } => (self.count - parity as usize) as u64,
        }
    }

    pub fn path(&self, i: usize) -> String {
        format!("/sim/disk{i}")
    }

    pub fn run<T: Send + 'static>(&self, seed: u64, work: impl Future<Output = T> + Send + 'static) -> T {
        sim::run_with(&self.disks, seed, Config::default(), work)
    }

    pub async fn create(&self) -> Pool {
        self.create_with(|_| true).await
    }

    /// A pool with the features that are wanted.
    pub async fn create_with(&self, wanted: impl Fn(ondisk::Feature) -> bool) -> Pool {
        self.create_on("tank", 0..self.count, cache(), wanted).await
    }

    /// A pool as a certain release makes it.
    pub async fn create_as(&self, release: &str) -> Pool {
        let features = ondisk::feature::compatibility_set(release).unwrap();
        self.create_of("tank", 0..self.count, cache(), features.into_iter().collect()).await
    }

    /// A pool on some of the devices.
    pub async fn create_on(
        &self,
        name: &str,
        devices: Range<usize>,
        cache: Arc<Cache>,
        wanted: impl Fn(ondisk::Feature) -> bool,
    ) -> Pool {
        let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY).unwrap();
        let features = features.into_iter().filter(|feature| wanted(*feature)).collect();
        self.create_of(name, devices, cache, features).await
    }

    async fn create_of(
        &self,
        name: &str,
        devices: Range<usize>,
        cache: Arc<Cache>,
        features: Vec<ondisk::Feature>,
    ) -> Pool {
        let leaf = |i| NewLeaf::look_at(Path::new(&self.path(i))).unwrap();
        let leaves = devices.map(leaf).collect();
        let options = CreateOptions {
            name: name.into(),
            groups: vec![Group { layout: self.layout, bias: Bias::Normal, leaves }],
            ashift: 12,
            features,
            root_props: Vec::new(),
            root: Default::default(),
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: host(),
            cache,
            hub: Default::default(),
            tunables: Default::default(),
        };
        crate::create(options).await.unwrap()
    }

    async fn candidate(&self) -> Candidate {
        let devices = (0..self.count).map(|i| Device::whole(self.path(i))).collect();
        let mut found = crate::scan(devices).await;
        assert_eq!(found.len(), 1, "one pool is there");
        found.remove(0)
    }

    pub async fn open(&self, read_only: bool) -> Result<Pool> {
        self.open_tuned(read_only, Default::default()).await
    }

    pub async fn open_tuned(&self, read_only: bool, tunables: Arc<Tunables>) -> Result<Pool> {
        crate::open(&self.candidate().await, OpenOptions { read_only, tunables, ..plainly() }).await
    }

    /// Opens it where its labels call it so.
    pub async fn open_labelled(&self, name: &str) -> Result<Pool> {
        let mut candidate = self.candidate().await;
        candidate.config.name = name.into();
        crate::open(&candidate, plainly()).await
    }

    /// Overwrites part of a device, behind the labels.
    pub fn spoil(&self, device: usize, from: u64, len: usize, seed: u64) {
        let mut rng = Rng::new(seed);
        let rot: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        self.disks.get(self.path(device)).unwrap().poke(from, &rot);
    }
}

/// For writing, with nothing special.
fn plainly() -> OpenOptions {
    OpenOptions {
        read_only: false,
        name: None,
        host: host(),
        force: false,
        missing_log: false,
        copy_over: false,
        cache: cache(),
        hub: Default::default(),
        tunables: Default::default(),
    }
}

pub(crate) fn host() -> Host {
    Host::new(7, "sim")
}

pub(crate) fn cache() -> Arc<Cache> {
    Arc::new(Cache::new(32 << 20))
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(len).collect()
}

pub(crate) async fn make_volume(pool: &Pool, name: &str, size: u64) {
    pool.create_dataset(name, Content::Volume { size, block_size: BLOCK }, Vec::new()).await.unwrap();
}

/// Writes noise over the whole of a volume.
pub(crate) async fn fill(pool: &Pool, name: &str, seed: u64) {
    let volume = pool.open_volume(name).await.unwrap();
    let bytes = noise(seed, volume.size() as usize);
    for (i, chunk) in bytes.chunks(128 << 10).enumerate() {
        volume.write((i * (128 << 10)) as u64, Buf::copy_from(chunk)).await.unwrap();
    }
    volume.flush().await.unwrap();
}

pub(crate) async fn read_all(pool: &Pool, name: &str) -> Result<Vec<u8>> {
    let volume = pool.open_volume(name).await?;
    let parts = volume.read(0, volume.size()).await?;
    Ok(parts.iter().flat_map(|part| part.iter().copied()).collect())
}

pub(crate) async fn verify(pool: &Pool) -> VerifyReport {
    let report = pool.verify(|_| ()).await.unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
    report
}
