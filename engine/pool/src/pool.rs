//! An open pool: what it is made of.

pub(crate) use crate::lock::lock;

use crate::assemble::Knot;
use crate::intent_log::IntentLogs;
use crate::logs::WaitingLog;
use crate::mos_writing::MosWriting;
use crate::tasks::Tasks;
use dmu::ObjSet;
use dsl::Dsl;
use dsl::space::{Delta, PoolSpace};
use metaslab::{Class, Space};
use ondisk::{NvList, NvValue, Uberblock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tunables::Tunables;
use txg::{DeviceSpace, Txgs};
use units::{Guid, Result, Txg};
use vdev::Tree;
use vdev::label::config::PoolConfig;
use world::Boxed;
use world::Task;
use zio::Pipeline;

/// The host that opens pools: written into labels, so that another machine sees whose the pool is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    pub id: u64,
    pub name: String,
    /// Which process of the machine, as the caller can recognise it again; labels carry it while the pool is open.
    pub process: Option<String>,
}

impl Host {
    pub fn new(id: u64, name: impl Into<String>) -> Host {
        Host { id, name: name.into(), process: None }
    }

    /// A host without a number cannot be told from others.
    pub(crate) fn check_number(&self) -> Result<()> {
        if self.id != 0 {
            return Ok(());
        }
        Err(units::Error::invalid(
            "multihost=on needs a number of this host that no other has: make /etc/hostid with zgenhostid",
        ))
    }
}

/// What was set on each vdev that anything was set on.
pub type VdevProperties = BTreeMap<Guid, BTreeMap<String, String>>;

/// See the crate. Clones are the same pool.
#[derive(Clone)]
pub struct Pool(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub config: Mutex<PoolConfig>,
    /// What it is called on disk, when the name it has here is a temporary one.
    pub name_on_disk: Option<String>,
    /// What a pool that was split off knows of its former devices, until its first txg frees it.
    pub left_behind: Mutex<Option<crate::split_off::LeftBehind>>,
    pub tree: Arc<Tree>,
    pub space: Arc<Space>,
    pub space_log: Knot,
    pub pipeline: Pipeline,
    pub mos: ObjSet,
    pub dsl: Dsl,
    /// Of a pool opened read-only, only the last synced txg is true.
    pub txgs: Txgs,
    pub tunables: Arc<Tunables>,
    pub hub: probe::Hub,
    /// What statistics ask of this pool.
    pub asked: Mutex<Vec<probe::Registration>>,
    pub uberblock: Mutex<Uberblock>,
    /// The labels do not say what the configuration is now.
    pub config_dirty: AtomicBool,
    pub tasks: Tasks,
    /// What the MOS's own blocks are to be charged, see [`crate::assemble::MosBlockAccounting`].
    pub mos_delta: Arc<Mutex<Delta>>,
    pub read_only: bool,
    /// Readers of the MOS in open context, and the sync tasks that change it.
    pub admin: Arc<world::sync::RwLock<()>>,
    pub mos_writing: MosWriting,
    /// Held while vdevs are added or removed.
    pub reshaping: world::sync::Mutex<()>,
    /// Held while snapshots and clones are changed, until the change is on disk.
    pub branching: world::sync::Mutex<()>,
    pub syncing: Mutex<Option<Task<()>>>,
    /// On which loop; see [`crate::place`].
    pub syncs_on: AtomicUsize,
    /// See [`crate::heal`].
    pub healer: Mutex<Option<Task<()>>>,
    pub multihost: crate::multihost::Multihost,
    pub trimmer: crate::autotrim::Trimmer,
    pub device_watch: crate::device_watch::DeviceWatch,
    pub sweeps: crate::sweep::Sweeps,
    pub rebuilds: crate::rebuild::Rebuilds,
    pub spares: crate::spares::Spares,
    /// See [`crate::cache_devices`].
    pub feeder: Mutex<Option<l2arc::Feeder>>,
    pub scrub: crate::scrub::Scrub,
    pub error_scrub: crate::error_scrub::ErrorScrub,
    pub errors: crate::errors::Errors,
    pub intent_logs: Arc<IntentLogs>,
    /// What was set on single vdevs, as their ZAPs say.
    pub vdev_properties: Mutex<VdevProperties>,
    /// Tells this opening of the pool from others.
    pub load_guid: u64,
    /// Damage that was met, for the administrator.
    pub problems: Mutex<Vec<String>>,
    /// Those that are open for writing; each is opened once.
    pub file_systems: Mutex<BTreeMap<units::ObjectId, zpl::WeakFileSystem>>,
    /// What was touched in the DSL before this they follow; see [`dsl::Dsl::touched_since`].
    pub followed: world::sync::Mutex<Option<u64>>,
    /// Held while one is opened.
    pub opening: world::sync::Mutex<()>,
    pub waiting_logs: Mutex<Vec<WaitingLog>>,
    /// Panics in work for this pool.
    pub panics: Mutex<Vec<world::Panic>>,
    /// Those that were claimed in the first txg, until they are dealt with.
    pub claimed_logs: Mutex<Vec<units::ObjectId>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({})", self.name())
    }
}

impl Pool {
    pub fn name(&self) -> String {
        lock(&self.0.config).name.clone()
    }

    /// What it is called on disk, when the name it has here is a temporary one.
    pub fn name_on_disk(&self) -> Option<String> {
        self.0.name_on_disk.clone()
    }

    pub fn guid(&self) -> Guid {
        lock(&self.0.config).guid
    }

    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    pub fn dsl(&self) -> &Dsl {
        &self.0.dsl
    }

    pub fn mos(&self) -> &ObjSet {
        &self.0.mos
    }

    pub fn tree(&self) -> &Arc<Tree> {
        &self.0.tree
    }

    pub fn space(&self) -> &Arc<Space> {
        &self.0.space
    }

    pub fn pipeline(&self) -> &Pipeline {
        &self.0.pipeline
    }

    pub fn txgs(&self) -> &Txgs {
        &self.0.txgs
    }

    pub fn config(&self) -> PoolConfig {
        lock(&self.0.config).clone()
    }

    pub fn uberblock(&self) -> Uberblock {
        lock(&self.0.uberblock).clone()
    }

    /// Waits until everything changed so far is on disk.
    ///
    /// # Errors
    /// What the pool is suspended for: this does not wait for it to go on.
    pub fn sync(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if self.0.read_only {
                return Ok(());
            }
            self.0.txgs.wait_synced_unless_suspended(self.0.txgs.open_txg()).await
        })
    }

    /// Keeps sync tasks from changing the MOS while it is read.
    pub fn reading(&self) -> Boxed<'_, world::sync::OwnedReadGuard<()>> {
        Box::pin(async move { self.0.admin.read_owned().await })
    }

    /// Changes the configuration in the labels with the next txg.
    pub(crate) fn update_config(&self, change: impl FnOnce(&mut PoolConfig)) {
        change(&mut lock(&self.0.config));
        self.0.config_dirty.store(true, Ordering::Release);
    }

    /// All there is to complain of: what [`Pool::problems`] tells, and how many blocks are lost.
    pub fn complaints(&self) -> Vec<String> {
        let lost = Some(self.data_error_count()).filter(|count| *count > 0);
        let lost = lost.map(|count| format!("{count} blocks cannot be read"));
        self.problems().into_iter().chain(lost).collect()
    }

    /// What else than lost blocks was met since the pool was opened, in sentences.
    pub fn problems(&self) -> Vec<String> {
        self.0.note_problems();
        lock(&self.0.problems).clone()
    }
}

/// At most so many problems are kept: the first ones tell the story.
const PROBLEMS_MAX: usize = 1000;

impl Inner {
    pub fn note_problem(&self, problem: impl ToString) {
        let problem = problem.to_string();
        let mut problems = lock(&self.problems);
        if problems.len() < PROBLEMS_MAX && !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    pub fn note_problems(&self) {
        let found = self.space.take_problems().into_iter().chain(self.pipeline.take_problems());
        found.for_each(|e| self.note_problem(e));
    }

    /// Bytes that were freed, and will be free in a few txgs.
    pub fn ripening(&self) -> u64 {
        let of = |class| self.space.usage(class).deferred_deflated;
        of(Class::Normal) + of(Class::EmbeddedLog)
    }

    /// Tells the DSL how much there is to be given out.
    pub fn publish_space(&self) {
        let normal = self.space.usage(Class::Normal);
        let log = self.space.usage(Class::EmbeddedLog);
        let space = PoolSpace {
            size: normal.space_deflated + log.space_deflated,
            everything: self.space.usage_total().space_deflated,
            slop: self.space.slop(),
            deferred: normal.deferred_deflated + log.deferred_deflated,
        };
        self.dsl.set_pool_space(space);
        self.txgs.set_space(DeviceSpace {
            free: normal.space_deflated.saturating_sub(normal.allocated_deflated),
            ripening: normal.deferred_deflated,
            slop: space.slop,
        });
    }

    /// The configuration as it is in `txg`.
    pub fn config_at(&self, txg: Txg) -> PoolConfig {
        let mut config = lock(&self.config).clone();
        config.txg = txg;
        if let Some(name) = &self.name_on_disk {
            config.name = name.clone();
        }
        config.features_for_read = self
            .dsl
            .features()
            .for_labels()
            .into_iter()
            .fold(NvList::new(), |list, guid| list.with(guid, NvValue::Boolean));
        config
    }
}
