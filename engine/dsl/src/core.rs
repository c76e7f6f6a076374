//! What every part of the DSL works with: the MOS, the blocks below it, the pool's version and features, and the
//! object directory, which is object 1 of the MOS and names the objects from which all others are found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dmu::{ObjSet, Object, Tx};
use ondisk::mos::{OBJECT_DIRECTORY, directory};
use ondisk::{BlockPointer, Feature};
use units::{Error, Kind, ObjectId, Result};
use zio::BlockStore;

use crate::features::{self, Features};
use crate::phys::{DatasetPhys, DirPhys};
use crate::ranges::Remembered;
use crate::space::{self, Delta};
use crate::zaps::{self, Table};

/// Pool versions from which on something is done.
pub mod versions {
    pub const BPOBJ_ACCOUNT: u64 = 3;
    pub const ORIGIN: u64 = 11;
    pub const NEXT_CLONES: u64 = 11;
    pub const USED_BREAKDOWN: u64 = 13;
    pub const UNIQUE_ACCURATE: u64 = 15;
    pub const RECEIVED_PROPS: u64 = 22;
    pub const DIR_CLONES: u64 = 26;
    pub const DEADLISTS: u64 = 26;
    pub const FEATURES: u64 = 5000;
}

/// See the module. Clones share everything.
#[derive(Clone)]
pub struct Core(Arc<Inner>);

struct Inner {
    mos: ObjSet,
    version: u64,
    features: Features,
    directory: Table,
    /// The one bpobj that all empty deadlist entries share.
    empty_bpobj: Mutex<Option<ObjectId>>,
    /// See [`Core::asked`].
    asked: AtomicU64,
    /// Of deadlists.
    ranges: Remembered,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Core(version {})", self.0.version)
    }
}

impl Core {
    pub async fn open(mos: ObjSet, version: u64) -> Result<Core> {
        let directory = zaps::open(&mos, OBJECT_DIRECTORY).await?;
        let features = Features::open(&mos, &directory).await?;
        let empty = directory.lookup_u64(directory::EMPTY_BPOBJ).await?.map(ObjectId);
        Ok(Core::assemble(mos, version, features, directory, empty))
    }

    pub fn assemble(
        mos: ObjSet,
        version: u64,
        features: Features,
        directory: Table,
        empty: Option<ObjectId>,
    ) -> Core {
        let empty_bpobj = Mutex::new(empty);
        let asked = AtomicU64::new(0);
        let ranges = Remembered::default();
        Core(Arc::new(Inner { mos, version, features, directory, empty_bpobj, asked, ranges }))
    }

    /// What is remembered of deadlists.
    pub(crate) fn ranges(&self) -> &Remembered {
        &self.0.ranges
    }

    pub fn mos(&self) -> &ObjSet {
        &self.0.mos
    }

    pub fn store(&self) -> &Arc<dyn BlockStore> {
        self.0.mos.store()
    }

    pub fn version(&self) -> u64 {
        self.0.version
    }

    pub fn features(&self) -> &Features {
        &self.0.features
    }

    pub fn directory(&self) -> &Table {
        &self.0.directory
    }

    pub fn empty_bpobj(&self) -> Option<ObjectId> {
        *self.0.empty_bpobj.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_empty_bpobj(&self, id: Option<ObjectId>) {
        *self.0.empty_bpobj.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// What a block counts for.
    pub fn weigh(&self, bp: &BlockPointer) -> Delta {
        weigh(self.store().as_ref(), bp)
    }

    pub async fn table(&self, id: ObjectId) -> Result<Table> {
        zaps::open(self.mos(), id).await
    }

    /// How often a directory, a dataset or a table of properties was looked at: what changes cost, without a clock.
    pub fn asked(&self) -> u64 {
        self.0.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn count_asked(&self) {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub async fn dir(&self, id: ObjectId) -> Result<(Object, DirPhys)> {
        self.count_asked();
        let object = self.mos().object(id).await?;
        let phys = DirPhys::decode(&object.bonus()).map_err(|e| e.at(format!("object {id}")))?;
        Ok((object, phys))
    }

    pub async fn dataset(&self, id: ObjectId) -> Result<(Object, DatasetPhys)> {
        self.count_asked();
        let object = self.mos().object(id).await?;
        let phys = DatasetPhys::decode(&object.bonus()).map_err(|e| e.at(format!("object {id}")))?;
        Ok((object, phys))
    }

    pub async fn update_dir(&self, tx: &Tx, id: ObjectId, change: impl FnOnce(&mut DirPhys)) -> Result<()> {
        let (object, mut phys) = self.dir(id).await?;
        change(&mut phys);
        object.set_bonus(tx, phys.encode())
    }

    pub async fn update_dataset(
        &self,
        tx: &Tx,
        id: ObjectId,
        change: impl FnOnce(&mut DatasetPhys),
    ) -> Result<()> {
        let (object, mut phys) = self.dataset(id).await?;
        change(&mut phys);
        object.set_bonus(tx, phys.encode())
    }

    /// Makes an object a ZAP besides, and counts it.
    pub async fn zapify(&self, tx: &Tx, object: &Object) -> Result<Table> {
        if zaps::zapify(object, tx)? {
            self.features().add(tx, Feature::ExtensibleDataset, 1).await?;
        }
        Ok(zap::Zap::open(object.clone()))
    }

    /// Frees an object that may have become a ZAP besides.
    pub async fn free_zapified(&self, tx: &Tx, id: ObjectId) -> Result<()> {
        let object = self.mos().object(id).await?;
        if zaps::is_zapified(&object) {
            self.features().add(tx, Feature::ExtensibleDataset, -1).await?;
        }
        self.mos().free(tx, id).await
    }

    /// Records that a dataset uses a feature, if it is not yet recorded.
    pub async fn activate(&self, tx: &Tx, dataset: &Object, feature: Feature) -> Result<()> {
        if zaps::is_zapified(dataset) && zap::Zap::open(dataset.clone()).contains(feature.guid()).await? {
            return Ok(());
        }
        let table = self.zapify(tx, dataset).await?;
        self.features().add(tx, feature, 1).await?;
        table.insert(tx, feature.guid(), 0u64).await
    }

    /// The per-dataset features recorded with a dataset.
    pub async fn active_in(&self, dataset: &Object) -> Result<Vec<Feature>> {
        let mut active = Vec::new();
        if zaps::is_zapified(dataset) {
            let entries = zap::Zap::open(dataset.clone()).entries().await?;
            active.extend(features::per_dataset().filter(|f| entries.iter().any(|e| e.name() == f.guid())));
        }
        Ok(active)
    }

    /// Gives back the counts of a dataset that is about to go.
    pub async fn deactivate_all(&self, tx: &Tx, dataset: &Object) -> Result<()> {
        for feature in self.active_in(dataset).await? {
            zap::Zap::open(dataset.clone()).remove(tx, feature.guid()).await?;
            self.features().add(tx, feature, -1).await?;
        }
        Ok(())
    }
}

/// What a block counts for: on the devices, compressed, and as the caller sees it. Metadata counts as if it were
/// not compressed at all.
pub fn weigh(store: &dyn BlockStore, bp: &BlockPointer) -> Delta {
    let compressed = bp.psize().0 as i64;
    let uncompressed = if bp.is_metadata() { compressed } else { bp.lsize().0 as i64 };
    Delta { used: space::signed(store.charged(bp)), compressed, uncompressed }
}

/// The error of a request on a dataset that is not there.
pub fn no_such(name: &str) -> Error {
    Error::new(Kind::NotFound, format!("open dataset '{name}'"))
}
