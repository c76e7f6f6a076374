//! The appliance as a service: every request has its function.

use crate::automatic::Keeper;
use crate::configuration::Configuration;
use crate::datasets::Doomed;
use crate::home::Home;
use crate::migration::Migrations;
use crate::mounts::Mounts;
use crate::offers::Offers;
use crate::pools::Pools;
use crate::san_directory::Iscsi;
use crate::services::Gates;
use crate::volumes::Volumes;
use api::{ApiError, Call, Daemon, ErrorKind, Reply, Request, Result, Service};
use pool::Host;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tunables::{Tunable, Tunables, Watcher};
use units::Guid;
use world::sync::Event;
use world::{Domain, Instant, Panic};

/// How an appliance works.
#[derive(Clone, Debug)]
pub struct Config {
    pub home: Home,
    /// It goes on after the command that started it: pools are opened at once, and kept.
    pub is_daemon: bool,
    /// It mounts file systems by itself, as OpenZFS does; only a daemon can.
    pub mounts: bool,
    /// Tunables that hold until it ends, whatever the home remembers.
    pub system: Vec<(Tunable, u64)>,
    /// What the home remembers of tunables does not hold.
    pub is_safe: bool,
}

/// See the crate. Clones are the same appliance.
#[derive(Clone)]
pub struct Appliance(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub config: Config,
    pub host: Host,
    pub cache: Arc<arc::Cache>,
    pub tunables: Arc<Tunables>,
    /// Keeps `zfs_arc_max`, as long as it lives.
    pub _cache_size: Arc<CacheSize>,
    /// Held while tunables are set and written down.
    pub tuning: Mutex<()>,
    /// Held while pools come and go.
    pub pools: world::sync::Mutex<Pools>,
    pub volumes: Volumes,
    pub mounts: Mounts,
    pub migrations: Migrations,
    pub keeper: Keeper,
    pub watch: crate::journal::Watch,
    pub gates: Gates,
    pub nbd: Mutex<Option<nbd::Server>>,
    pub offers: Mutex<Offers>,
    /// Where the API is, for requests that ask.
    pub api: Mutex<Vec<String>>,
    pub iscsi: Mutex<Option<Iscsi>>,
    pub configuration: Configuration,
    /// Held while LUNs are numbered, and while groups change on which their numbers depend.
    pub numbering: world::sync::Mutex<()>,
    pub asked_to_end: Event,
    pub started: Instant,
}

impl fmt::Debug for Appliance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Appliance({})", self.0.config.home.dir().display())
    }
}

impl Appliance {
    /// Starts with the pools that the home remembers.
    pub async fn start(config: Config) -> Result<Appliance> {
        let remembered = config.home.pools().map_err(|e| ApiError::new(e.kind().into(), e.to_string()))?;
        let tunables = crate::tunables::at_start(&config)?;
        let half = crate::memory::half();
        let cache = Arc::new(arc::Cache::new(half));
        let cache_size = Arc::new(CacheSize { cache: cache.clone(), half });
        tunables.watch(&cache_size);
        let appliance = Appliance(Arc::new(Inner {
            pools: world::sync::Mutex::new(Pools::of(remembered, config.is_daemon)),
            config,
            host: crate::host::host(),
            cache,
            tunables,
            _cache_size: cache_size,
            tuning: Mutex::default(),
            volumes: Volumes::default(),
            mounts: Mounts::default(),
            migrations: Migrations::default(),
            keeper: Keeper::default(),
            watch: Default::default(),
            gates: Gates::default(),
            nbd: Mutex::default(),
            offers: Mutex::default(),
            api: Mutex::default(),
            iscsi: Mutex::default(),
            configuration: Configuration::default(),
            numbering: world::sync::Mutex::new(()),
            asked_to_end: Event::new(),
            started: world::now(),
        }));
        if appliance.0.config.is_daemon {
            appliance.open_all().await;
        }
        Ok(appliance)
    }

    /// Waits until somebody asks for the end.
    pub async fn ended(&self) {
        self.0.asked_to_end.wait().await;
    }

    /// What the requests of all clients of one protocol may hold together, in bytes, beside the base of each connection.
    pub fn request_bytes(&self) -> usize {
        crate::memory::request_bytes(self.0.cache.stats().max)
    }

    /// Tells which server serves the volumes.
    pub fn set_nbd(&self, server: nbd::Server) {
        *self.0.nbd.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
    }

    /// Tells where the API is.
    pub fn set_api(&self, addresses: Vec<String>) {
        *self.0.api.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }

    pub(crate) fn nbd(&self) -> Option<nbd::Server> {
        self.0.nbd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_iscsi(&self, iscsi: Iscsi) {
        *self.0.iscsi.lock().unwrap_or_else(PoisonError::into_inner) = Some(iscsi);
    }

    pub(crate) fn iscsi(&self) -> Option<Iscsi> {
        self.0.iscsi.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn carry_out(&self, call: Call) -> Result<Reply> {
        let is_question = call.request.is_question();
        let reply = self.answer(call).await;
        // Whatever was changed, a LUN may have come, gone, or be another: also when it ended with an error half-way.
        if !is_question {
            self.san_changed();
            if let Some(iscsi) = self.iscsi() {
                iscsi.followed(self.san_generation()).await;
            }
        }
        reply
    }

    async fn answer(&self, call: Call) -> Result<Reply> {
        let Call { command, uid, request } = call;
        let by = By { command, uid };
        match request {
            Request::Ping => {
                Ok(Reply::Pong { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_string() })
            }
            Request::Daemon => Ok(Reply::Daemon(self.describe())),
            Request::Shutdown => self.shut_down(),
            Request::PoolCreate(new) => self.create_pool(new, &by).await,
            Request::PoolAdd(new) => self.add_vdevs(new, &by).await,
            Request::PoolRemove { name, guid, device } => {
                self.remove_vdev(&name, Guid(guid), &device, &by).await
            }
            Request::PoolDestroy { name, force } => self.destroy_pool(&name, force, &by).await,
            Request::PoolImportable { search, destroyed } => self.importable(&search, destroyed).await,
            Request::PoolImport(import) => self.import_pool(import, &by).await,
            Request::PoolExport { name, force } => self.export_pool(&name, force, &by).await,
            Request::Pools { names } => self.describe_pools(&names).await,
            Request::PoolSet { name, vdev: None, property, value } => {
                self.set_pool(&name, &property, &value, &by).await
            }
            Request::PoolSet { name, vdev: Some(vdev), property, value } => {
                self.set_vdev(&name, &vdev, &property, &value, &by).await
            }
            Request::PoolHistory { names } => self.histories(&names).await,
            Request::PoolSync { names } => self.sync_pools(&names).await,
            Request::PoolClear { name, device } => self.clear_pool(&name, device.as_deref(), &by).await,
            Request::PoolDevice { name, device, action } => {
                self.handle_device(&name, &device, action, &by).await
            }
            Request::PoolScrub { name, action } => self.scrub_pool(&name, action, &by).await,
            Request::LabelClear { device, force } => self.clear_labels(&device, force).await,
            Request::Datasets(query) => self.query_datasets(query).await,
            Request::DatasetCreate(new) => self.create_dataset(new, &by).await,
            Request::DatasetDestroy { name, recursive, clones, defer, force, dry_run } => {
                let doomed = Doomed { recursive, clones, defer, force, dry_run };
                self.destroy_dataset(&name, doomed, &by).await
            }
            Request::DatasetRename { from, to, recursive: true, .. } => {
                self.rename_snapshots(&from, &to, &by).await
            }
            Request::DatasetRename { from, to, parents, .. } => {
                self.rename_dataset(&from, &to, parents, &by).await
            }
            Request::Snapshots(asked) => self.snapshots(asked, &by).await,
            Request::DatasetSet { name, properties } => {
                let reply = self.set_dataset(&name, &properties, &by).await?;
                self.remount(&name).await.map(|()| reply)
            }
            Request::DatasetUsage { name, whose } => self.usage(&name, whose).await,
            Request::FileProject(asked) => self.file_project(asked).await,
            Request::DatasetInherit { name, property, received } => {
                let reply = self.inherit_property(&name, &property, received, &by).await?;
                self.remount(&name).await.map(|()| reply)
            }
            Request::NbdExports => self.nbd_exports().await,
            Request::Mounts => Ok(self.mounts()),
            Request::Mount(asked) => self.mount(&asked).await,
            Request::Unmount(asked) => self.unmount(&asked).await,
            Request::Tunables { names } => self.tell_tunables(&names),
            Request::TunableSet { settings } => self.set_tunables(&settings),
            Request::San(asked) => self.san(asked).await,
            Request::Shares(asked) => self.shares(asked, &by).await,
            Request::Services(asked) => self.services(asked).await,
            Request::Schema(asked) => self.ask_schema(asked),
            Request::DeferredUpdates { pools } => self.deferred_updates(&pools).await,
            Request::ApplyUpdates { pool, features } => self.apply_updates(&pool, &features, &by).await,
            Request::ConfigurationBackup { to } => self.back_up(&to),
            Request::ConfigurationTell => self.tell_configuration(),
            Request::ConfigurationRestore { from } => {
                let reply = self.restore(&from).await?;
                self.follow_services().await;
                Ok(reply)
            }
            Request::ConfigurationTake { text } => {
                let reply = self.take_configuration(&text).await?;
                self.follow_services().await;
                Ok(reply)
            }
        }
    }

    fn describe(&self) -> Daemon {
        // The answer does not wait for a pool that is being opened.
        let pools = self.0.pools.try_lock();
        let dirty = pools.map_or(0, |pools| pools.opened().map(|pool| pool.txgs().dirty_bytes()).sum());
        let cache = self.0.cache.stats();
        Daemon {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            home: self.0.config.home.dir().display().to_string(),
            uptime: world::now().since(self.0.started).as_secs(),
            arc_size: cache.size,
            arc_max: cache.max,
            memory: crate::memory::account(cache.size, dirty),
            api: self.0.api.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn shut_down(&self) -> Result<Reply> {
        if !self.0.config.is_daemon {
            return Err(ApiError::new(ErrorKind::NotFound, "no daemon runs in this home"));
        }
        self.0.asked_to_end.set();
        Ok(Reply::Done)
    }
}

/// How large the cache may be.
#[derive(Debug)]
pub(crate) struct CacheSize {
    cache: Arc<arc::Cache>,
    /// Of the memory: what it may be when nobody says.
    half: u64,
}

impl Watcher for CacheSize {
    fn retuned(self: Arc<CacheSize>, tunables: &Tunables) {
        let max = match tunables.get(Tunable::ArcMax) {
            0 => self.half,
            bytes => bytes,
        };
        self.cache.set_max(max);
        world::buf::set_kept_max(crate::memory::kept_bytes(max));
    }
}

/// Who asks, and in which words: for the history.
#[derive(Clone, Debug)]
pub(crate) struct By {
    pub command: String,
    pub uid: u64,
}

impl Service for Appliance {
    fn call(&self, call: Call) -> Pin<Box<dyn Future<Output = Result<Reply>> + Send>> {
        let appliance = self.clone();
        Box::pin(async move {
            world::within(Arc::new(Requests), appliance.carry_out(call)).await.unwrap_or_else(|panic| {
                Err(ApiError::new(ErrorKind::Cancelled, format!("the request was not carried out: {panic}")))
            })
        })
    }
}

/// What is told of panics in requests that concern no pool alone.
#[derive(Debug)]
struct Requests;

impl Domain for Requests {
    fn panicked(&self, panic: &Panic) {
        tracing::error!("{panic}");
    }
}
