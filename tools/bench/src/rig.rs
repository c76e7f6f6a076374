//! A pool with one volume, and a bare file beside it.

use crate::Options;
use disk::NbdVolume;
use pool::{Content, CreateOptions, Host, Pool};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Error, Kind, Result};
use vdev::{Bias, Group, Layout, NewLeaf};
use workload::{Limit, Pattern, Report, Spec, Target, VolumeTarget};
use world::{Buf, OpenMode, Pending};

const POOL: &str = "bench";
pub const VOLUME: &str = "bench/vol";

/// See the module.
pub struct Rig {
    pub options: Options,
    layout: Layout,
    pub block: u64,
    compression: &'static str,
    /// Of its pools, and live.
    pub tunables: Arc<Tunables>,
    dir: PathBuf,
}

/// The files of a rig, while it measures.
pub struct Files<'a>(pub &'a Rig);

impl Drop for Files<'_> {
    fn drop(&mut self) {
        // What cannot be removed is replaced by the next run, which makes it anew.
        let _ = std::fs::remove_dir_all(&self.0.dir);
    }
}

impl Rig {
    pub fn new(dir: &Path, options: &Options, layout: Layout, block: u64, compression: &'static str) -> Rig {
        let dir = dir.join(format!("cenote-bench-{}", std::process::id()));
        let tunables = Tunables::new();
        // A share of a machine's memory is within the bounds of the tunable.
        let _ = tunables.set(Tunable::DirtyDataMax, appliance::dirty_data_max());
        Rig { options: options.clone(), layout, block, compression, tunables, dir }
    }

    /// A cache that holds everything.
    pub fn plenty(&self) -> u64 {
        4 * self.options.size
    }

    /// A cache in which random reads find metadata, and hardly any data.
    pub fn little(&self) -> u64 {
        self.options.size / 16
    }

    fn devices(&self) -> usize {
        match self.layout {
            Layout::Raidz { parity } => parity as usize + 2,
            other => *other.devices().start(),
        }
    }

    fn io(&self, doing: &'static str) -> impl Fn(std::io::Error) -> Error + '_ {
        move |e| Error::new(Kind::Io, doing).at(self.dir.display()).because(e)
    }

    pub fn make_file(&self, name: &str, len: u64) -> Result<PathBuf> {
        std::fs::create_dir_all(&self.dir).map_err(self.io("make"))?;
        let path = self.dir.join(name);
        std::fs::File::create(&path).and_then(|f| f.set_len(len)).map_err(self.io("make a file in"))?;
        Ok(path)
    }

    /// Devices' worth of data that a group of them holds.
    fn data_devices(&self) -> usize {
        match self.layout {
            Layout::Raidz { parity } => self.devices() - parity as usize,
            _ => 1,
        }
    }

    /// A file whose space is all there, as a disk's is. What the engine writes goes to another place each time: on a sparse
    /// file it would pay for pages that the kernel must find and clear, and the bare file, which is written over, would not.
    /// It is so large that what is in flight, which counts three times, fits beside the volume: else txgs would be made for
    /// want of space.
    fn make_disk(&self, name: &str) -> Result<PathBuf> {
        let len = (6 * self.options.size + (1 << 30)).div_ceil(self.data_devices() as u64);
        let path = self.make_file(name, len)?;
        let allocated = std::fs::File::options().write(true).open(&path).and_then(|file| {
            match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, len) {
                // There all files are as they are made.
                Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
                allocated => allocated.map_err(Into::into),
            }
        });
        allocated.map(|()| path).map_err(self.io("allocate the pool's file in"))
    }

    /// A new pool with a volume in it.
    pub async fn create(&self) -> Result<Pool> {
        let mut leaves = Vec::new();
        for i in 0..self.devices() {
            let path = self.make_disk(&format!("disk{i}"))?;
            let geometry =
                world::open(&path, OpenMode::ReadOnly).map_err(self.io("open a file in"))?.geometry();
            leaves.push(NewLeaf { path: path.display().to_string(), geometry });
        }
        let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY);
        let pool = pool::create(CreateOptions {
            name: POOL.into(),
            groups: vec![Group { layout: self.layout, bias: Bias::Normal, leaves }],
            ashift: 12,
            features: features.into_iter().flatten().collect(),
            root_props: Vec::new(),
            root: Default::default(),
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: Host::new(1, "bench"),
            cache: cache_of(self.plenty()),
            hub: Default::default(),
            tunables: self.tunables.clone(),
        })
        .await?;
        self.add_volume(&pool, VOLUME).await?;
        Ok(pool)
    }

    pub async fn add_volume(&self, pool: &Pool, name: &str) -> Result<()> {
        let content = Content::Volume { size: self.options.size, block_size: self.block };
        pool.create_dataset(name, content, vec![setting("compression", self.compression)?]).await
    }

    /// The pool again, with nothing in its cache, which may hold so many bytes.
    pub async fn reopen(&self, pool: Pool, cache: u64) -> Result<Pool> {
        pool.export().await?;
        drop(pool);
        let dir = self.dir.clone();
        for _ in 0..100 {
            let found = pool::scan_dirs(&[&dir]).await?;
            let candidate = found.first().ok_or_else(|| Error::corrupt("the pool is gone"))?;
            let options = pool::OpenOptions {
                read_only: false,
                name: None,
                host: Host::new(1, "bench"),
                force: false,
                missing_log: false,
                copy_over: false,
                cache: cache_of(cache),
                hub: Default::default(),
                tunables: self.tunables.clone(),
            };
            match pool::open(candidate, options).await {
                Err(e) if e.kind() == Kind::Busy => world::sleep(Duration::from_millis(10)).await,
                other => return other,
            }
        }
        Err(Error::new(Kind::Busy, "open the pool again"))
    }

    /// The whole volume, block after block.
    pub fn spec(&self, read_percent: u8) -> Spec {
        Spec {
            pattern: Pattern::Sequential,
            block_size: self.block as u32,
            queue_depth: 8,
            read_percent,
            limit: Limit::Requests(self.options.size / self.block),
            compressible_percent: if self.compression == "off" { 0 } else { 50 },
            ..Spec::default()
        }
    }

    /// The same on the bare file.
    pub async fn raw(&self, spec: &Spec) -> Result<Report> {
        let path = self.dir.join("raw");
        let fresh = std::fs::metadata(&path).is_err();
        if fresh {
            self.make_file("raw", self.options.size)?;
            workload::run(workload::open(&path, OpenMode::ReadWrite)?, &self.spec(0)).await?;
        }
        workload::run(workload::open(&path, OpenMode::ReadWrite)?, spec).await
    }

    pub async fn lun(&self, pool: &Pool) -> Result<Arc<NbdVolume>> {
        Ok(Arc::new(NbdVolume::new(pool.open_volume(VOLUME).await?)))
    }

    pub async fn volume(&self, pool: &Pool) -> Result<Arc<dyn Target>> {
        self.target(pool, VOLUME).await
    }

    pub async fn target(&self, pool: &Pool, name: &str) -> Result<Arc<dyn Target>> {
        let volume = VolumeTarget(Arc::new(NbdVolume::new(pool.open_volume(name).await?)));
        Ok(Arc::new(Synced { volume, pool: pool.clone() }))
    }
}

/// A volume whose flush syncs the pool: what is measured is the way into the tree, not into the intent log.
#[derive(Debug)]
struct Synced {
    volume: VolumeTarget,
    pool: Pool,
}

impl Target for Synced {
    fn size(&self) -> u64 {
        self.volume.size()
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        self.volume.read(offset, len)
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        self.volume.write(offset, data)
    }

    fn flush(&self) -> Pending<Result<()>> {
        let pool = self.pool.clone();
        Box::pin(async move { pool.sync().await })
    }
}

/// A cache, with the bound on all buffers that a server sets with it.
fn cache_of(bytes: u64) -> Arc<arc::Cache> {
    world::buf::set_held_max(usize::try_from(bytes).unwrap_or(usize::MAX));
    Arc::new(arc::Cache::new(bytes))
}

fn setting(name: &str, value: &str) -> Result<(dsl::props::PropName, dsl::props::Value)> {
    use dsl::props::{Limits, Types, When, parse_setting};
    parse_setting(name, value, Types::VOLUME, When::Create, &Limits::default())
}

impl std::fmt::Debug for Rig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rig({:?}, {} bytes)", self.layout, self.block)
    }
}
