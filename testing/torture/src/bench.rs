//! A pool at work.

use crate::layout::Shape;
use crate::model::{Change, Content, Model, pattern};
use arc::Cache;
use dsl::DestroySpec;
use dsl::props::{PropName, Value};
use ondisk::{Feature, ObjsetType};
use pool::{CreateOptions, Host, OpenOptions, Pool};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Error, Kind, Result};
use vdev::Group;
use world::Buf;
use zvol::Volume;

/// How much of what.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub volumes: usize,
    pub size: u64,
    /// One operation in so many makes everything durable.
    pub flush_every: u64,
    /// One operation in so many makes or destroys a volume.
    pub admin_every: u64,
    /// One operation in so many exports the pool and imports it again.
    pub reopen_every: u64,
    /// One operation in so many is about snapshots, clones and rollbacks; 0 for none.
    pub branch_every: u64,
}

impl Default for Mix {
    fn default() -> Mix {
        Mix {
            volumes: 3,
            size: 2 << 20,
            flush_every: 20,
            admin_every: 60,
            reopen_every: 250,
            branch_every: 0,
        }
    }
}

/// A pool, its open volumes and its model.
pub struct Bench {
    /// Absent only in the midst of [`Bench::reopen`].
    pool: Option<Pool>,
    /// Shared with the workload that continues after a crash.
    model: Arc<Mutex<Model>>,
    pub(crate) volumes: BTreeMap<String, Volume>,
    dir: String,
    mix: Mix,
}

pub const POOL: &str = "tank";

/// The file systems that volumes are in, by turns.
const ABOVE: [&str; 3] = [POOL, "tank/n", "tank/n/deep"];

/// The name of the volume or clone that is made as the `made`-th thing.
pub(crate) fn volume_name(made: u64) -> String {
    format!("{}/v{made}", ABOVE[made as usize % ABOVE.len()])
}

pub(crate) fn host() -> Host {
    Host::new(7, "bench")
}

pub(crate) fn cache() -> Arc<Cache> {
    Arc::new(Cache::new(64 << 20))
}

pub(crate) fn random(below: u64) -> u64 {
    world::random_u64() % below
}

/// Every compressor and every checksum that a default pool may use, in turn.
const COMPRESSIONS: [&str; 9] =
    ["on", "off", "lzjb", "gzip-1", "gzip-9", "zle", "lz4", "zstd-3", "zstd-fast-5"];
const CHECKSUMS: [&str; 7] = ["on", "fletcher2", "fletcher4", "sha256", "sha512", "skein", "edonr"];

impl Bench {
    /// Makes a pool on the devices of `shape` in `dir`, which exist.
    pub async fn create(dir: &str, shape: &Shape, mix: Mix, model: Arc<Mutex<Model>>) -> Result<Bench> {
        let pool = create_pool(shape.groups(dir)?, shape.ashift).await?;
        for name in &ABOVE[1..] {
            let files = pool::Content::FileSystem(zpl::NewFileSystem::default());
            pool.create_dataset(name, files, Vec::new()).await?;
        }
        Ok(Bench { pool: Some(pool), model, volumes: BTreeMap::new(), dir: dir.into(), mix })
    }

    /// Opens the pool that a crash has left, and takes the model to what it holds.
    pub async fn recover(dir: &str, model: Arc<Mutex<Model>>, mix: Mix) -> Result<Bench> {
        let pool = import(dir).await?;
        let mut bench = Bench { pool: Some(pool), model, volumes: BTreeMap::new(), dir: dir.into(), mix };
        let found = bench.read_everything().await?;
        bench.model().resume(&found).map_err(Error::corrupt)?;
        Ok(bench)
    }

    pub(crate) fn pool(&self) -> &Pool {
        self.pool.as_ref().expect("a pool is open between operations")
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Block size and size of a volume.
    fn shape_of(&self, name: &str) -> (u64, u64) {
        let model = self.model();
        let content = &model.volumes[name];
        (content.block, content.bytes.len() as u64)
    }

    /// One random operation.
    pub async fn step(&mut self) -> Result<()> {
        let mix = self.mix;
        if self.volumes.len() < mix.volumes && random(mix.admin_every) == 0 || self.volumes.is_empty() {
            return self.create_volume().await;
        }
        if random(mix.reopen_every) == 0 {
            return self.reopen().await;
        }
        if random(mix.flush_every) == 0 {
            return self.make_durable().await;
        }
        let name = self.any_volume();
        if mix.branch_every > 0 && random(mix.branch_every) == 0 {
            return self.branch(&name).await;
        }
        match random(mix.admin_every) {
            0 => return self.destroy_volume(&name).await,
            1 => return self.resize(&name).await,
            _ => {}
        }
        match random(10) {
            0..=5 => self.write(&name).await,
            6 | 7 => self.zero(&name, random(2) == 0).await,
            _ => self.check_some(&name).await,
        }
    }

    /// All of the pool, or one volume.
    async fn make_durable(&mut self) -> Result<()> {
        if random(3) == 0 {
            self.pool().sync().await?;
            self.model().acknowledge();
            return Ok(());
        }
        let name = self.any_volume();
        if sync_of(&name) == "disabled" {
            return self.volumes[&name].flush().await;
        }
        self.model().commit(&name);
        self.volumes[&name].flush().await?;
        self.model().committed();
        Ok(())
    }

    pub(crate) fn any_volume(&self) -> String {
        let n = random(self.volumes.len() as u64) as usize;
        self.volumes.keys().nth(n).cloned().unwrap_or_default()
    }

    async fn create_volume(&mut self) -> Result<()> {
        let made = self.model().count();
        let name = volume_name(made);
        let block = 512 << random(9);
        let size = self.mix.size.next_multiple_of(block);
        let turn = made as usize;
        let props = [
            ("compression", COMPRESSIONS[turn % COMPRESSIONS.len()]),
            ("checksum", CHECKSUMS[turn % CHECKSUMS.len()]),
            ("copies", ["1", "2", "3"][turn % 3]),
            ("sync", sync_of(&name)),
            ("logbias", ["latency", "throughput"][turn / 2 % 2]),
        ];
        let props =
            props.map(|(name, value)| setting(name, value)).into_iter().collect::<Result<Vec<_>>>()?;
        let content = pool::Content::Volume { size, block_size: block };
        self.model().begin(Change::Create { name: name.clone(), size, block });
        self.pool().create_dataset(&name, content, props).await?;
        self.model().done();
        // A change of the pool is durable when it returns, and so is all that came before it.
        self.model().acknowledge();
        self.volumes.insert(name.clone(), self.pool().open_volume(&name).await?);
        Ok(())
    }

    async fn destroy_volume(&mut self, name: &str) -> Result<()> {
        let plan = match self.pool().dsl().plan_destroy(name, true).await {
            // Clones are in the way.
            Err(e) if e.kind() == Kind::Busy => return Ok(()),
            plan => plan?,
        };
        self.volumes.remove(name);
        let gone = |name: &String| Change::Destroy { name: name.clone() };
        self.model().begin(Change::Together(plan.names.iter().map(gone).collect()));
        let spec = DestroySpec { names: vec![name.into()], recursive: true, ..DestroySpec::default() };
        self.pool().destroy_datasets(spec).await?;
        self.model().done();
        self.model().acknowledge();
        Ok(())
    }

    async fn resize(&mut self, name: &str) -> Result<()> {
        let (block, _) = self.shape_of(name);
        let size = (self.mix.size / 2 + random(self.mix.size)).next_multiple_of(block);
        self.model().begin(Change::Resize { name: name.into(), size });
        let volume = self.volumes[name].clone();
        self.pool().change("resize", move |_, tx| async move { volume.resize(&tx, size).await }).await?;
        self.model().done();
        self.model().acknowledge();
        Ok(())
    }

    fn range(&self, name: &str) -> (u64, u64) {
        let (block, size) = self.shape_of(name);
        let offset = random(size);
        let longest = [block, 4096, 100_000][random(3) as usize];
        match random(3) {
            0 => (offset / block * block, block.min(size - offset / block * block)),
            _ => (offset, (1 + random(longest)).min(size - offset)),
        }
    }

    async fn write(&mut self, name: &str) -> Result<()> {
        let ((offset, len), seed) = (self.range(name), world::random_u64());
        self.model().begin(Change::Write { name: name.into(), offset, len, seed });
        let durably = self.expect_promise(name, random(8) == 0);
        let parts = vec![Buf::copy_from(&pattern(seed, len))];
        self.volumes[name].write_parts(offset, parts, durably).await?;
        self.model().committed();
        Ok(())
    }

    /// A change of this volume has begun; if it is `durably` done, or the volume does so with every change, it is in the
    /// log when it is done. Passes `durably` on.
    fn expect_promise(&self, name: &str, durably: bool) -> bool {
        if sync_of(name) == "always" || (durably && sync_of(name) == "standard") {
            self.model().commit(name);
        }
        durably
    }

    async fn zero(&mut self, name: &str, trim: bool) -> Result<()> {
        let (offset, len) = self.range(name);
        if !trim {
            self.model().begin(Change::Zero { name: name.into(), offset, len });
            self.expect_promise(name, false);
            self.volumes[name].zero(offset, len).await?;
            self.model().committed();
            return Ok(());
        }
        let (block, size) = self.shape_of(name);
        let first = offset.next_multiple_of(block);
        let end = if offset + len == size { size } else { (offset + len) / block * block };
        if first < end {
            self.model().begin(Change::Zero { name: name.into(), offset: first, len: end - first });
        }
        if first < end {
            self.expect_promise(name, false);
        }
        self.volumes[name].trim(offset, len).await?;
        self.model().committed();
        Ok(())
    }

    async fn check_some(&self, name: &str) -> Result<()> {
        let (offset, len) = self.range(name);
        let got = bytes(&self.volumes[name], offset, len).await?;
        if got != self.model().volumes[name].bytes[offset as usize..(offset + len) as usize] {
            return Err(Error::corrupt(format!("volume '{name}' differs from its model at {offset}+{len}")));
        }
        Ok(())
    }

    /// Exports the pool, or just closes it, and opens it again; everything must be as it was.
    pub async fn reopen(&mut self) -> Result<()> {
        self.volumes.clear();
        if random(2) == 0 {
            self.pool().export().await?;
        } else {
            self.pool().close().await?;
        }
        self.complain()?;
        self.model().acknowledge();
        self.pool = None;
        let mut tries = 0;
        self.pool = loop {
            // The devices are free once the last task of the old pool has let go of them.
            match import(&self.dir).await {
                Err(e) if e.kind() == Kind::Busy && tries < 1000 => {
                    world::sleep(Duration::from_millis(1)).await
                }
                other => break Some(other?),
            }
            tries += 1;
        };
        let found = self.read_everything().await?;
        if found != self.model().volumes {
            return Err(Error::corrupt("the pool differs from its model after it was opened again"));
        }
        Ok(())
    }

    /// Ends the work: every block of the pool must be readable.
    pub async fn finish(mut self) -> Result<()> {
        self.reopen().await?;
        self.volumes.clear();
        let report = self.pool().verify(|_| ()).await?;
        if !report.is_sound() {
            return Err(Error::corrupt(format!("blocks are lost: {:?}", report.damage)));
        }
        self.pool().export().await?;
        self.complain()
    }

    fn complain(&self) -> Result<()> {
        match self.pool().problems().as_slice() {
            [] => Ok(()),
            problems => Err(Error::corrupt(format!("the pool complains: {problems:?}"))),
        }
    }

    /// Opens every volume and reads it whole.
    async fn read_everything(&mut self) -> Result<BTreeMap<String, Content>> {
        let mut found = BTreeMap::new();
        for name in volumes_of(self.pool()).await? {
            let volume = self.pool().open_volume(&name).await?;
            let content =
                Content { block: volume.block_size(), bytes: bytes(&volume, 0, volume.size()).await? };
            for (snapshot, _) in self.pool().dsl().snapshots(&name).await? {
                let volume = self.pool().open_volume(&snapshot).await?;
                let block = volume.block_size();
                let content = Content { block, bytes: bytes(&volume, 0, volume.size()).await? };
                found.insert(snapshot, content);
            }
            found.insert(name.clone(), content);
            self.volumes.insert(name, volume);
        }
        Ok(found)
    }
}

/// The volumes of a pool, wherever they are in it.
pub(crate) async fn volumes_of(pool: &Pool) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in pool.dsl().descendants(POOL).await? {
        if pool.dsl().objset_type(&pool.dsl().find(&name).await?).await? == ObjsetType::Zvol {
            names.push(name);
        }
    }
    Ok(names)
}

/// What a volume's property `sync` was set to; its name says it.
pub(crate) fn sync_of(name: &str) -> &'static str {
    let number: usize = name.rsplit('v').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    ["standard", "always", "standard", "disabled"][number % 4]
}

/// A pool with the usual features.
pub(crate) async fn create_pool(groups: Vec<Group>, ashift: u32) -> Result<Pool> {
    create_pool_with(groups, ashift, &[]).await
}

/// As [`create_pool`], with more features.
pub(crate) async fn create_pool_with(groups: Vec<Group>, ashift: u32, more: &[Feature]) -> Result<Pool> {
    create_named(POOL, groups, ashift, more).await
}

/// As [`create_pool_with`], of another name.
pub(crate) async fn create_named(
    name: &str,
    groups: Vec<Group>,
    ashift: u32,
    more: &[Feature],
) -> Result<Pool> {
    let features = ondisk::feature::compatibility_set(ondisk::feature::DEFAULT_COMPATIBILITY)
        .ok_or_else(|| Error::invalid("the default set of features is not known"))?;
    let options = CreateOptions {
        name: name.into(),
        groups,
        ashift,
        features: features.into_iter().chain(more.iter().copied()).collect(),
        root_props: Vec::new(),
        root: Default::default(),
        pool_props: Vec::new(),
        compatibility: None,
        comment: None,
        host: host(),
        cache: cache(),
        hub: Default::default(),
        tunables: tunables(),
    };
    pool::create(options).await
}

/// Imports the pool that is on the devices of `dir`.
pub(crate) async fn import(dir: &str) -> Result<Pool> {
    import_without(dir, false).await
}

/// As [`import`], even when the log devices are gone.
pub(crate) async fn import_without(dir: &str, missing_log: bool) -> Result<Pool> {
    let found = pool::scan_dirs(&[dir]).await?;
    let candidate = found.first().ok_or_else(|| Error::corrupt("the pool is not found on its devices"))?;
    let options = OpenOptions {
        read_only: false,
        name: None,
        host: host(),
        force: false,
        missing_log,
        copy_over: false,
        cache: cache(),
        hub: Default::default(),
        tunables: tunables(),
    };
    pool::open(candidate, options).await
}

pub(crate) async fn bytes(volume: &Volume, offset: u64, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len as usize);
    for piece in volume.read(offset, len).await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

pub(crate) fn setting(name: &str, value: &str) -> Result<(PropName, Value)> {
    use dsl::props::{Limits, Types, When, parse_setting};
    parse_setting(name, value, Types::VOLUME, When::Create, &Limits::default())
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bench({:?}, {} volumes)", self.pool, self.volumes.len())
    }
}

/// A sequential rebuild goes in small pieces, so that something can happen in between.
fn tunables() -> Arc<Tunables> {
    let tunables = Tunables::default();
    for (tunable, value) in [(Tunable::RebuildMaxSegment, 64 << 10), (Tunable::RebuildVdevLimit, 1 << 20)] {
        tunables.set(tunable, value).expect("within the bounds of the tunable");
    }
    Arc::new(tunables)
}
