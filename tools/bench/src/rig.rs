//! A pool with one volume, and a bare file beside it.

use crate::Options;
use crate::cell::Cell;
use appliance::Lun;
use pool::{Content, CreateOptions, Host, Pool};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Kind, Result};
use vdev::{Bias, Group, Layout, NewLeaf};
use workload::{Limit, Pattern, Report, Spec, Target, VolumeTarget};
use world::OpenMode;

const POOL: &str = "bench";
const VOLUME: &str = "bench/vol";
const CACHE: u64 = 2 << 30;

/// See the module. The files are removed with it.
pub struct Rig {
    options: Options,
    layout: Layout,
    block: u64,
    compression: &'static str,
    dir: PathBuf,
}

/// The files of a rig, while it measures.
struct Files<'a>(&'a Rig);

impl Drop for Files<'_> {
    fn drop(&mut self) {
        // What cannot be removed is in the way of nobody but the next run, which makes it anew.
        let _ = std::fs::remove_dir_all(&self.0.dir);
    }
}

impl Rig {
    pub async fn new(
        dir: &Path,
        options: Options,
        layout: Layout,
        block: u64,
        compression: &'static str,
    ) -> Result<Rig> {
        let dir = dir.join(format!("cenote-bench-{}", std::process::id()));
        Ok(Rig { options, layout, block, compression, dir })
    }

    fn devices(&self) -> usize {
        match self.layout {
            Layout::Stripe => 1,
            Layout::Mirror => 2,
            Layout::Raidz { parity } => parity as usize + 2,
        }
    }

    fn io(&self, doing: &'static str) -> impl Fn(std::io::Error) -> Error + '_ {
        move |e| Error::new(Kind::Io, doing).at(self.dir.display()).because(e)
    }

    fn make_file(&self, name: &str, len: u64) -> Result<PathBuf> {
        std::fs::create_dir_all(&self.dir).map_err(self.io("make"))?;
        let path = self.dir.join(name);
        std::fs::File::create(&path).and_then(|f| f.set_len(len)).map_err(self.io("make a file in"))?;
        Ok(path)
    }

    async fn create(&self) -> Result<Pool> {
        let mut leaves = Vec::new();
        for i in 0..self.devices() {
            let path = self.make_file(&format!("disk{i}"), 3 * self.options.size + (1 << 30))?;
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
            pool_props: Vec::new(),
            compatibility: None,
            comment: None,
            host: Host { id: 1, name: "bench".into() },
            cache: Arc::new(arc::Cache::new(CACHE)),
            tunables: Default::default(),
        })
        .await?;
        let content = Content::Volume { size: self.options.size, block_size: self.block };
        let props = vec![setting("compression", self.compression)?];
        pool.create_dataset(VOLUME, content, props).await?;
        Ok(pool)
    }

    /// The pool again, with nothing in its cache.
    async fn reopen(&self, pool: Pool) -> Result<Pool> {
        pool.export().await?;
        drop(pool);
        let dir = self.dir.clone();
        for _ in 0..100 {
            let found = pool::scan_dirs(&[&dir]).await?;
            let candidate = found.first().ok_or_else(|| Error::corrupt("the pool is gone"))?;
            let options = pool::OpenOptions {
                read_only: false,
                name: None,
                host: Host { id: 1, name: "bench".into() },
                force: false,
                missing_log: false,
                cache: Arc::new(arc::Cache::new(CACHE)),
                tunables: Default::default(),
            };
            match pool::open(candidate, options).await {
                Err(e) if e.kind() == Kind::Busy => world::sleep(Duration::from_millis(10)).await,
                other => return other,
            }
        }
        Err(Error::new(Kind::Busy, "open the pool again"))
    }

    fn spec(&self, read_percent: u8) -> Spec {
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

    async fn raw(&self, spec: &Spec) -> Result<Report> {
        let path = self.dir.join("raw");
        let fresh = std::fs::metadata(&path).is_err();
        if fresh {
            self.make_file("raw", self.options.size)?;
            workload::run(workload::open(&path, OpenMode::ReadWrite)?, &self.spec(0)).await?;
        }
        workload::run(workload::open(&path, OpenMode::ReadWrite)?, spec).await
    }

    async fn volume(&self, pool: &Pool) -> Result<Arc<dyn Target>> {
        Ok(Arc::new(VolumeTarget(Arc::new(Lun::new(pool.open_volume(VOLUME).await?)))))
    }

    /// Writing everything and syncing, reading it cold, reading it warm.
    pub async fn sequential(&self, progress: &impl Fn(&str)) -> Result<Vec<Cell>> {
        let _files = Files(self);
        let (write, read) = (self.spec(0), self.spec(100));
        let mut raw: [Vec<Report>; 2] = Default::default();
        let mut own: [Vec<Report>; 3] = Default::default();
        for round in 0..self.options.rounds {
            progress(&format!("sequential {}, round {}", units::pretty_size(self.block), round + 1));
            raw[0].push(self.raw(&write).await?);
            raw[1].push(self.raw(&read).await?);
            let pool = self.create().await?;
            own[0].push(workload::run(self.volume(&pool).await?, &write).await?);
            let pool = self.reopen(pool).await?;
            own[1].push(workload::run(self.volume(&pool).await?, &read).await?);
            own[2].push(workload::run(self.volume(&pool).await?, &read).await?);
            pool.export().await?;
        }
        Ok(vec![
            Cell::new("write+sync", self.block, &raw[0], &own[0]),
            Cell::new("read, cold", self.block, &raw[1], &own[1]),
            Cell::new("read, warm", self.block, &raw[1], &own[2]),
        ])
    }

    /// Only writing everything and syncing.
    pub async fn write_only(&self, name: &str, progress: &impl Fn(&str)) -> Result<Vec<Cell>> {
        let _files = Files(self);
        let (mut raw, mut own) = (Vec::new(), Vec::new());
        for round in 0..self.options.rounds {
            progress(&format!("{name}, round {}", round + 1));
            raw.push(self.raw(&self.spec(0)).await?);
            let pool = self.create().await?;
            own.push(workload::run(self.volume(&pool).await?, &self.spec(0)).await?);
            pool.export().await?;
        }
        Ok(vec![Cell::new(name, self.block, &raw, &own)])
    }

    /// Reads of a cold pool and writes, at random, one at a time and 32 at once.
    pub async fn random(&self, progress: &impl Fn(&str)) -> Result<Vec<Cell>> {
        let _files = Files(self);
        let mut cells = Vec::new();
        for (name, read_percent, queue_depth) in [
            ("random read qd1", 100, 1),
            ("random read qd32", 100, 32),
            ("random write qd1", 0, 1),
            ("random write qd32", 0, 32),
        ] {
            let limit = Limit::Time(Duration::from_secs(self.options.seconds));
            let spec = Spec { pattern: Pattern::Random, queue_depth, limit, ..self.spec(read_percent) };
            let (mut raw, mut own) = (Vec::new(), Vec::new());
            for round in 0..self.options.rounds {
                progress(&format!("{name} {}, round {}", units::pretty_size(self.block), round + 1));
                raw.push(self.raw(&spec).await?);
                let pool = self.create().await?;
                workload::run(self.volume(&pool).await?, &self.spec(0)).await?;
                let pool = self.reopen(pool).await?;
                own.push(workload::run(self.volume(&pool).await?, &spec).await?);
                pool.export().await?;
            }
            cells.push(Cell::new(name, self.block, &raw, &own));
        }
        Ok(cells)
    }
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
