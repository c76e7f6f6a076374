//! The DSL of an open pool: the special directories, the datasets that are open, and what is charged to whom.

pub(crate) mod dataset;
pub(crate) mod destroy;
pub(crate) mod touched;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dmu::{ObjSet, Tx};
use ondisk::NvList;
use ondisk::mos::directory;
use units::{Error, ObjectId, Result, Txg};
use world::sync::{RwLock, WriteGuard};

use crate::bpobj::Bpobj;
use crate::core::{Core, versions};
use crate::dsl::dataset::Dataset;
use crate::dsl::destroy::LogKeeper;
use crate::dsl::touched::Touched;
use crate::history::{self, History, Stamp};
use crate::space::{self, Delta, PoolSpace, Used};

pub const MOS_DIR: &str = "$MOS";
pub const FREE_DIR: &str = "$FREE";
pub const ORIGIN_DIR: &str = "$ORIGIN";

/// See the module. One per pool, shared.
pub struct Dsl {
    pub(crate) core: Core,
    /// The pool's name is that of the root directory; it is kept in the label, not in the MOS.
    pool: Mutex<String>,
    host: String,
    pub(crate) root: ObjectId,
    pub(crate) mos_dir: ObjectId,
    /// Where blocks are charged that are on the free list or in the bptree.
    pub(crate) free_dir: Option<ObjectId>,
    pub(crate) free_list: Option<Bpobj>,
    /// The empty snapshot that everything which is no clone is "cloned" from.
    pub(crate) origin: Option<ObjectId>,
    history: Mutex<Option<History>>,
    pub(crate) open: Mutex<BTreeMap<ObjectId, Arc<Dataset>>>,
    /// Openings of datasets share it; see [`Dsl::hold_off_openings`].
    pub(crate) opening: RwLock<()>,
    pub(crate) closed: crate::closed::Closed,
    /// What the pool can give, as its owner says.
    space: Mutex<PoolSpace>,
    /// Bytes of the MOS that changes of the txg being synced were let in for.
    pub(crate) admitted: AtomicU64,
    log_keeper: Mutex<Option<Arc<dyn LogKeeper>>>,
    pub(crate) touched: Mutex<Touched>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these locks guard is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Dsl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dsl({})", self.pool_name())
    }
}

impl Dsl {
    /// Opens the DSL of the pool `pool`, whose label says `version`; `host` goes into history records.
    pub async fn open(mos: ObjSet, version: u64, pool: &str, host: &str) -> Result<Dsl> {
        let core = Core::open(mos, version).await?;
        let root = ObjectId(core.directory().require_u64(directory::ROOT_DATASET).await?);
        Dsl::assemble(core, root, pool, host).await
    }

    pub(crate) async fn assemble(core: Core, root: ObjectId, pool: &str, host: &str) -> Result<Dsl> {
        let (_, root_phys) = core.dir(root).await?;
        let children = core.table(root_phys.children).await?;
        let mos_dir = ObjectId(children.require_u64(MOS_DIR).await?);
        let origin = match core.version() >= versions::ORIGIN {
            true => Some(find_origin(&core, ObjectId(children.require_u64(ORIGIN_DIR).await?)).await?),
            false => None,
        };
        let (mut free_dir, mut free_list) = (None, None);
        if core.version() >= versions::DEADLISTS {
            free_dir = Some(ObjectId(children.require_u64(FREE_DIR).await?));
            let id = core.directory().require_u64(directory::FREE_BPOBJ).await?;
            free_list = Some(Bpobj::open(&core, ObjectId(id)).await?);
        }
        let history = match core.directory().lookup_u64(directory::HISTORY).await? {
            Some(id) => Some(History::open(core.mos(), ObjectId(id)).await?),
            None => None,
        };
        Ok(Dsl {
            core,
            pool: Mutex::new(pool.into()),
            host: host.into(),
            root,
            mos_dir,
            free_dir,
            free_list,
            origin,
            history: Mutex::new(history),
            open: Mutex::default(),
            opening: RwLock::new(()),
            closed: Default::default(),
            space: Mutex::default(),
            admitted: AtomicU64::new(0),
            log_keeper: Mutex::default(),
            touched: Mutex::default(),
        })
    }

    /// Ties the knot with the layer above that writes intent logs.
    pub fn set_log_keeper(&self, keeper: Arc<dyn LogKeeper>) {
        *lock(&self.log_keeper) = Some(keeper);
    }

    pub(crate) fn log_keeper(&self) -> Option<Arc<dyn LogKeeper>> {
        lock(&self.log_keeper).clone()
    }

    /// Waits for the openings of datasets that are under way, and holds off others until the guard is dropped. Sync tasks
    /// run under it: an opening reads the MOS in several steps, and a destroy or rollback between two of them would leave
    /// a dataset listed as open that is gone, or that is not as it was read.
    pub async fn hold_off_openings(&self) -> WriteGuard<'_, ()> {
        self.opening.write().await
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    pub fn features(&self) -> &crate::features::Features {
        self.core.features()
    }

    pub fn pool_name(&self) -> String {
        lock(&self.pool).clone()
    }

    /// The pool was imported under another name.
    pub fn set_pool_name(&self, name: &str) {
        *lock(&self.pool) = name.into();
    }

    /// What the pool can give, of which `available` is what is left; its owner says so at open and after each txg.
    pub fn set_pool_space(&self, space: PoolSpace) {
        *lock(&self.space) = space;
    }

    pub fn pool_space(&self) -> PoolSpace {
        *lock(&self.space)
    }

    pub(crate) fn opened(&self) -> MutexGuard<'_, BTreeMap<ObjectId, Arc<Dataset>>> {
        lock(&self.open)
    }

    /// The directories from `id` to the pool's.
    pub(crate) async fn chain(&self, id: ObjectId) -> Result<Vec<(ObjectId, crate::phys::DirPhys)>> {
        let mut chain = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            if chain.len() > 2 * crate::name::MAX_NESTING + 200 {
                return Err(Error::corrupt("DSL directories nested without end").at(format!("object {id}")));
            }
            let (_, phys) = self.core.dir(id).await?;
            next = phys.parent.some();
            chain.push((id, phys));
        }
        Ok(chain)
    }

    /// Changes the space of a directory and of those above it, as `change` says.
    pub(crate) async fn change_space(
        &self,
        tx: &Tx,
        dir: ObjectId,
        change: impl FnOnce(&mut [space::DirSpace]),
    ) -> Result<()> {
        let chain = self.chain(dir).await?;
        let mut spaces: Vec<_> = chain.iter().map(|(_, phys)| phys.space).collect();
        change(&mut spaces);
        for ((id, phys), space) in chain.into_iter().zip(spaces) {
            if phys.space != space {
                self.core.update_dir(tx, id, |phys| phys.space = space).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn charge(&self, tx: &Tx, dir: ObjectId, kind: Used, delta: Delta) -> Result<()> {
        if delta == Delta::default() {
            return Ok(());
        }
        self.change_space(tx, dir, |chain| space::charge_chain(chain, kind, delta)).await
    }

    /// Charges the pool for blocks of the MOS that came and went.
    pub async fn charge_mos(&self, tx: &Tx, delta: Delta) -> Result<()> {
        self.charge(tx, self.mos_dir, Used::Head, delta).await
    }

    /// Charges, or with a negative delta discharges, blocks that wait on the free list.
    pub(crate) async fn charge_free(&self, tx: &Tx, delta: Delta) -> Result<()> {
        match self.free_dir {
            Some(dir) => self.charge(tx, dir, Used::Head, delta).await,
            None => Ok(()),
        }
    }

    /// What waits to be freed: the pool's `freeing` property.
    pub async fn freeing(&self) -> Result<u64> {
        match self.free_dir {
            Some(dir) => Ok(self.core.dir(dir).await?.1.space.used),
            None => Ok(0),
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp { host: self.host.clone(), time: world::wall_clock() }
    }

    pub(crate) fn now(&self) -> u64 {
        world::wall_clock().seconds
    }

    pub fn history(&self) -> Option<History> {
        lock(&self.history).clone()
    }

    async fn record(&self, tx: &Tx, record: &NvList) -> Result<()> {
        let history = match self.history() {
            Some(history) => history,
            None => {
                let size = self.pool_space().size;
                let history = History::create(self.core.mos(), tx, size).await?;
                self.core.directory().insert(tx, directory::HISTORY, history.id().0).await?;
                *lock(&self.history) = Some(history.clone());
                history
            }
        };
        history.append(tx, record).await
    }

    /// Records a command line that somebody gave.
    pub async fn record_command(&self, tx: &Tx, line: &str, uid: u64) -> Result<()> {
        self.record(tx, &history::command(line, uid, &self.stamp())).await
    }

    /// Records something the pool did, to a dataset or at all.
    pub async fn record_event(
        &self,
        tx: &Tx,
        name: &str,
        text: &str,
        dataset: Option<(&str, ObjectId)>,
    ) -> Result<()> {
        self.record(tx, &history::internal(name, text, dataset, tx.txg(), &self.stamp())).await
    }

    /// The first txg's datasets say that they were created in txg 1.
    pub(crate) fn creation_txg(tx: &Tx) -> Txg {
        if tx.txg() == Txg::INITIAL { Txg(1) } else { tx.txg() }
    }
}

/// The snapshot `$ORIGIN@$ORIGIN`.
async fn find_origin(core: &Core, dir: ObjectId) -> Result<ObjectId> {
    let (_, dir) = core.dir(dir).await?;
    let (_, head) = core.dataset(dir.head).await?;
    let missing = || Error::corrupt("$ORIGIN has no snapshot");
    head.prev_snap.some().ok_or_else(missing)
}
