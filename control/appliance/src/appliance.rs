//! The appliance: what each room keeps while it runs, and how it starts.
//!
//! ```text
//!   home ──▶ Config ──▶ Appliance::start ──▶ Inner { pools, volumes, mounts, migrations, keeper, gates, … }
//!                                               ▲
//!   service ──▶ the rooms' functions for requests, each on `Appliance`
//! ```
//!
//! The states are here and what is asked of them is not: a room's state knows nothing of the appliance, and what a room
//! does for a request knows the whole of it.

use crate::alerts::state::Desk;
use crate::analytics::exporting::Exporting;
use crate::analytics::histograms::Histograms;
use crate::analytics::state::Kept;
use crate::analytics::traces::Traces;
use crate::config::Config;
use crate::configuration::Configuration;
use crate::datasets::migration::Migrations;
use crate::memory::size::{CacheSize, size_of_cache};
use crate::mounts::Mounts;
use crate::pools::{Events, Pools, Watch};
use crate::san::state::SanService;
use crate::schedules::Keeper;
use crate::services::Gates;
use crate::services::offers::Offers;
use crate::shares::Claims;
use crate::turns::Turns;
use api::{ApiError, Daemon, Result};
use disk::Volumes;
use pool::{Host, Hub};
use probe::Registration;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tunables::Tunables;
use world::Instant;
use world::sync::Event;

/// See the crate. Clones are the same appliance.
#[derive(Clone)]
pub struct Appliance(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub config: Config,
    pub host: Host,
    pub cache: Arc<arc::Cache>,
    /// The statistics that are open, of pools and fronts.
    pub hub: Hub,
    /// Of the cache, as long as it lives.
    pub _asked: Vec<Registration>,
    pub tunables: Arc<Tunables>,
    /// Keeps `zfs_arc_max` and `zfs_compressed_arc_enabled`, as long as it lives.
    pub _cache_size: Arc<CacheSize>,
    /// Held while tunables are set and written down.
    pub tuning: Mutex<()>,
    /// Held for a look or a note.
    pub pools: world::sync::Mutex<Pools>,
    /// Of pools that are changed as a whole, and of those that are being opened.
    pub turns: Turns,
    pub openings: Turns,
    pub volumes: Arc<Volumes>,
    pub mounts: Mounts,
    pub migrations: Migrations,
    pub keeper: Keeper,
    pub analytics: Kept,
    pub histograms: Histograms,
    pub exporting: Exporting,
    pub traces: Traces,
    pub watch: Watch,
    pub events: Events,
    pub alerts: Desk,
    pub gates: Gates,
    pub nbd: Mutex<Option<nbd::Server>>,
    pub offers: Mutex<Offers>,
    /// Where the API is, for requests that ask.
    pub api: Mutex<Vec<String>>,
    pub configuration: Configuration,
    pub san: SanService,
    /// Held while it is decided which LUNs are served; taken after `san.numbering`.
    pub claims: world::sync::Mutex<Claims>,
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
        let unset = crate::memory::Defaults::of_this_machine().cache;
        let hub = Hub::new();
        // It is made for the size that it is to have: the number of its parts follows from that.
        let cache = Arc::new(arc::Cache::new(size_of_cache(&tunables, unset)).telling(&hub));
        let asked = cache.register(&hub);
        let cache_size = Arc::new(CacheSize::new(cache.clone(), unset));
        tunables.watch(&cache_size);
        let host = crate::pools::host::host();
        let alerts = Desk::new(host.name.clone());
        let appliance = Appliance(Arc::new(Inner {
            pools: world::sync::Mutex::new(Pools::of(remembered, config.is_daemon)),
            turns: Turns::default(),
            openings: Turns::default(),
            config,
            host,
            cache,
            hub,
            _asked: asked,
            tunables,
            _cache_size: cache_size,
            tuning: Mutex::default(),
            volumes: Arc::default(),
            mounts: Mounts::default(),
            migrations: Migrations::default(),
            keeper: Keeper::default(),
            analytics: Kept::default(),
            histograms: Histograms::default(),
            exporting: Exporting::default(),
            traces: Traces::default(),
            watch: Default::default(),
            events: Events::default(),
            alerts,
            gates: Gates::default(),
            nbd: Mutex::default(),
            offers: Mutex::default(),
            api: Mutex::default(),
            configuration: Configuration::default(),
            san: SanService::default(),
            claims: world::sync::Mutex::new(Claims::default()),
            asked_to_end: Event::new(),
            started: world::now(),
        }));
        if appliance.0.config.is_daemon {
            appliance.open_all().await;
        }
        Ok(appliance)
    }

    /// Waits until the end is asked for.
    pub async fn ended(&self) {
        self.0.asked_to_end.wait().await;
    }

    /// What the requests of all clients of one protocol may hold together, in bytes, beside the base of each connection.
    pub fn request_bytes(&self) -> usize {
        crate::memory::request_bytes(self.0.cache.stats().max)
    }

    /// What the daemon says of itself.
    pub(crate) fn describe(&self) -> Daemon {
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
            arc_limit: cache.limit + cache.beside,
            memory: crate::memory::account(cache.size, cache.cold_bytes(), dirty),
            api: self.0.api.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Lets the cache follow the memory that is left, for ever; for programs that serve.
    pub async fn follow_memory(self) {
        crate::memory::pressure::follow(&self.0.cache).await;
    }

    /// Where statistics are opened, and where sources of them are registered.
    pub fn hub(&self) -> &Hub {
        &self.0.hub
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
}

/// Who asks, and in which words: for the history.
#[derive(Clone, Debug)]
pub(crate) struct By {
    pub command: String,
    pub uid: u64,
}
