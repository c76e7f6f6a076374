//! An open head dataset or snapshot: its object set, and writing it out.
//!
//! ```text
//!   Dsl::open_dataset ─▶ Dataset ─ objset ─▶ zvol, zpl change it in the open txg
//!   Dsl::sync_datasets ─▶ objset.sync(block accounting) ─▶ new root pointer, tally ─▶ bonus, deadlist, space of directories
//! ```
//!
//! A dataset stays open while it is used or dirty, so that what a txg dirtied is never lost from sight. One that is neither
//! is closed when a txg has synced ([`Dsl::close_idle`]): what is done for each open dataset is done for those in use, not
//! for all that were ever made or looked at. Datasets are opened between sync tasks and never during one
//! ([`Dsl::hold_off_openings`]), so that what is listed as open is there, and is what the MOS says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use dmu::{ObjSet, Policy, SyncCtx, Tx};
use futures_util::future::try_join_all;
use ondisk::{BlockPointer, BookmarkPhys, Feature};
use txg::SpaceReservation;
use units::{Error, Kind, ObjectId, ObjsetId, Result, Txg};
use world::Boxed;

use crate::block_accounting::{Bounds, DatasetBlockAccounting, Tally};
use crate::deadlist::Deadlist;
use crate::dsl::Dsl;
use crate::phys::DatasetPhys;
use crate::props::{Prop, write::WritePolicy};
use crate::space::{self, Delta, HeadSpace, Used};
use crate::tree::Found;
use crate::zaps;

/// In a dataset's ZAP: the ZAP of its bookmarks.
pub(crate) const BOOKMARKS: &str = "com.delphix:bookmarks";
/// In a directory's ZAP: the list of blocks that a clone wrote.
pub(crate) const LIVELIST: &str = "com.delphix:livelist";
/// In a directory's ZAP: its master key. The dataset is encrypted.
pub(crate) const CRYPTO_KEY: &str = "com.datto:crypto_key_obj";

/// See the module.
#[derive(Debug)]
pub struct Dataset {
    id: ObjectId,
    /// That of a snapshot is another after a promotion.
    dir: AtomicU64,
    objset: ObjSet,
    is_snapshot: bool,
    is_encrypted: bool,
    space_reservation: Arc<SpaceReservation>,
    /// Syncs that write it now, which have it by an `Arc` as its users do.
    syncs: AtomicUsize,
}

/// A dataset while a sync writes it.
struct Syncing(Arc<Dataset>);

impl Syncing {
    fn new(dataset: &Arc<Dataset>) -> Syncing {
        dataset.syncs.fetch_add(1, Ordering::AcqRel);
        Syncing(dataset.clone())
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.0.syncs.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether anything but the list of what is open and a sync has this dataset.
pub(crate) fn is_used(open: &Arc<Dataset>) -> bool {
    Arc::strong_count(open) > 1 + open.syncs.load(Ordering::Acquire)
}

impl Dataset {
    pub fn id(&self) -> ObjectId {
        self.id
    }

    pub fn dir(&self) -> ObjectId {
        ObjectId(self.dir.load(Ordering::Relaxed))
    }

    pub(crate) fn move_to(&self, dir: ObjectId, policy: Policy) {
        self.dir.store(dir.0, Ordering::Relaxed);
        self.objset.set_policy(policy);
    }

    pub fn objset(&self) -> &ObjSet {
        &self.objset
    }

    /// Its blocks never change.
    pub fn is_snapshot(&self) -> bool {
        self.is_snapshot
    }

    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// What may still be written to it; see [`Dsl::publish_space_reservations`].
    pub fn space_reservation(&self) -> &Arc<SpaceReservation> {
        &self.space_reservation
    }
}

impl Dsl {
    /// Opens a head dataset or a snapshot by name. Waits while sync tasks run; they must not call it. `Busy` while it is
    /// closed to openers ([`Dsl::close_to_openers`]).
    pub async fn open_by_name(&self, name: &str) -> Result<Arc<Dataset>> {
        Ok(self.find_and_open(name).await?.1)
    }

    /// As [`Dsl::open_by_name`], with what was found under the name.
    pub async fn find_and_open(&self, name: &str) -> Result<(Found, Arc<Dataset>)> {
        let _turn = self.opening.read().await;
        let found = self.find(name).await?;
        self.check_open_to_openers(&found)?;
        let dataset = self.open_in_turn(found.id).await?;
        Ok((found, dataset))
    }

    /// Opens a dataset, or answers the one that is open. Waits while sync tasks run; they must not call it.
    pub fn open_dataset(&self, id: ObjectId) -> Boxed<'_, Result<Arc<Dataset>>> {
        Box::pin(async move {
            let _turn = self.opening.read().await;
            self.open_in_turn(id).await
        })
    }

    /// As [`Dsl::open_dataset`], for a caller that has its turn, or is a sync task.
    pub(crate) async fn open_in_turn(&self, id: ObjectId) -> Result<Arc<Dataset>> {
        if let Some(open) = self.opened().get(&id) {
            return Ok(open.clone());
        }
        let (_, phys) = self.core.dataset(id).await?;
        if phys.bp.is_hole() {
            return Err(
                Error::new(Kind::NotFound, "open dataset without contents").at(format!("object {id}"))
            );
        }
        let policy = self.policy_of(phys.dir).await?;
        let store = self.core.store().clone();
        let objset = ObjSet::open(store, ObjsetId(id.0), phys.bp.clone(), policy).await?;
        let dataset = self.adopt(id, &phys, objset, self.is_encrypted(phys.dir).await?);
        self.publish_space_reservation(&dataset).await?;
        Ok(dataset)
    }

    /// Updates the [`SpaceReservation`] of each open dataset, from which writers learn how much is left, now that `txg` has
    /// synced.
    pub async fn publish_space_reservations(&self, txg: Txg) -> Result<()> {
        self.admitted.store(0, Ordering::Relaxed);
        let open: Vec<_> = self.opened().values().filter(|ds| !ds.is_snapshot).cloned().collect();
        for dataset in open {
            self.publish_space_reservation(&dataset).await?;
            dataset.space_reservation.synced(txg);
        }
        Ok(())
    }

    async fn publish_space_reservation(&self, dataset: &Dataset) -> Result<()> {
        let (_, phys) = self.core.dataset(dataset.id).await?;
        let free = self.available(dataset.dir(), &phys).await?;
        let is_quota = free == 0 && self.available_in(self.root).await? > 0;
        dataset.space_reservation.set_free(free);
        dataset.space_reservation.set_quota(is_quota);
        dataset.space_reservation.set_ripens(self.pool_space().deferred > 0 && !is_quota);
        Ok(())
    }

    /// Closes the datasets that are neither used nor dirty, after a txg has synced. Waits for the openings under way: one
    /// that has read where a dataset begins would else list it as it was before it was opened, written to and closed.
    pub async fn close_idle(&self) {
        let is_idle = |dataset: &Arc<Dataset>| {
            if Arc::strong_count(dataset) > 1 {
                return false;
            }
            // A former holder may have kept the room or the object set.
            fence(Ordering::Acquire);
            Arc::strong_count(&dataset.space_reservation) == 1 && dataset.objset.is_idle()
        };
        if self.opened().values().any(is_idle) {
            let _alone = self.hold_off_openings().await;
            self.opened().retain(|_, dataset| !is_idle(dataset));
        }
    }

    /// Lists a dataset as open; if another caller was faster, returns that one.
    pub(crate) fn adopt(
        &self,
        id: ObjectId,
        phys: &DatasetPhys,
        objset: ObjSet,
        is_encrypted: bool,
    ) -> Arc<Dataset> {
        let space_reservation = SpaceReservation::new();
        let dataset = Dataset {
            id,
            dir: AtomicU64::new(phys.dir.0),
            objset,
            is_snapshot: phys.is_snapshot(),
            is_encrypted,
            space_reservation,
            syncs: AtomicUsize::new(0),
        };
        self.opened().entry(id).or_insert(Arc::new(dataset)).clone()
    }

    /// Closes a dataset that goes, or gets other contents. What still has it open
    /// reads nothing of the devices any more, and changes nothing.
    pub(crate) fn end_dataset(&self, id: ObjectId) {
        let open = self.opened().remove(&id);
        open.iter().for_each(|dataset| dataset.objset.end());
    }

    /// Closes a dataset that is not used any more and not dirty.
    pub fn close_dataset(&self, id: ObjectId) {
        self.opened().remove(&id);
    }

    pub(crate) async fn is_encrypted(&self, dir: ObjectId) -> Result<bool> {
        let object = self.core.mos().object(dir).await?;
        Ok(zaps::field(&object, CRYPTO_KEY).await?.is_some())
    }

    /// How the blocks of a directory's dataset are written, by its properties.
    pub(crate) async fn policy_of(&self, dir: ObjectId) -> Result<Policy> {
        let lz4 = self.features().is_enabled(Feature::Lz4Compress);
        let hole_birth = self.features().is_enabled(Feature::HoleBirth);
        let levels = self.prop_levels(dir).await?;
        let policy = WritePolicy::of(&levels.chain(), crate::props::write::PoolCan { lz4 });
        Ok(Policy {
            compression: policy.compression,
            checksum: policy.checksum,
            copies: policy.copies,
            redundant_metadata: policy.redundant_metadata,
            special_small_blocks: policy.special_small_blocks,
            hole_birth,
            lz4,
            sync: policy.sync,
            logbias_throughput: policy.logbias_throughput,
            primary_cache: policy.primary_cache,
            secondary_cache: policy.secondary_cache,
            prefetch: policy.prefetch,
            direct: policy.direct,
            read_only: policy.read_only,
        })
    }

    /// Lets open datasets at and below a directory follow their properties again, after some changed or it moved.
    pub(crate) fn refresh_policies(&self, top: ObjectId) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let open: Vec<_> = self.opened().values().cloned().collect();
            if open.is_empty() {
                return Ok(());
            }
            let below = self.dirs_below(top).await?;
            for dataset in open.iter().filter(|dataset| below.contains(&dataset.dir())) {
                dataset.objset.set_policy(self.policy_of(dataset.dir()).await?);
            }
            Ok(())
        })
    }

    /// Writes out every open dataset that `tx`'s txg changed. Called in every pass, before the MOS is written; in the
    /// first one before the sync tasks.
    pub fn sync_datasets<'a>(&'a self, tx: &'a Tx, pass: u32) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let txg = tx.txg();
            let dirty: Vec<_> =
                self.opened().values().filter(|ds| ds.objset.is_dirty(txg)).map(Syncing::new).collect();
            let mut runs = Vec::with_capacity(dirty.len());
            for Syncing(dataset) in &dirty {
                runs.push(self.sync_one(dataset, tx, pass));
            }
            let synced = try_join_all(runs).await?;
            for (Syncing(dataset), synced) in dirty.iter().zip(synced) {
                if let Some((root, tally, marks)) = synced {
                    self.settle(tx, dataset, root, tally, marks).await?;
                    world::breathe().await;
                }
            }
            Ok(())
        })
    }

    async fn sync_one(
        &self,
        dataset: &Dataset,
        tx: &Tx,
        pass: u32,
    ) -> Result<Option<(BlockPointer, Tally, Vec<(String, BookmarkPhys)>)>> {
        if dataset.is_snapshot {
            let e = Error::corrupt("write dataset: it says that it is a snapshot, and those never change");
            return Err(e.at(format!("object {}", dataset.id)));
        }
        let bounds = self.bounds_of(dataset.id).await?;
        let marks = self.counting_bookmarks(dataset.id, bounds.prev_snap).await?;
        let at = marks.iter().map(|(_, mark)| mark.creation_txg).collect();
        let block_accounting =
            Arc::new(DatasetBlockAccounting::new(self.core.store().clone(), tx.txg(), bounds, at));
        let dirty =
            tx.dirty().of_dataset(dataset.space_reservation.clone(), dataset.objset.dirty_bytes(tx.txg()));
        let ctx = SyncCtx { txg: tx.txg(), pass, block_accounting: block_accounting.clone(), dirty };
        let root = dataset.objset.sync(&ctx).await?;
        Ok(root.map(|root| (root, block_accounting.take(), marks)))
    }

    /// The txgs that decide about the blocks of a head dataset.
    pub(crate) async fn bounds_of(&self, id: ObjectId) -> Result<Bounds> {
        let (_, phys) = self.core.dataset(id).await?;
        let (mut prev_prev_snap, mut prev_is_own) = (Txg::NONE, false);
        if let Some(prev) = phys.prev_snap.some() {
            let (_, prev) = self.core.dataset(prev).await?;
            prev_prev_snap = prev.prev_snap_txg;
            prev_is_own = prev.next_snap == id;
        }
        let (_, dir) = self.core.dir(phys.dir).await?;
        let origin = match dir.origin.some().filter(|origin| Some(*origin) != self.origin) {
            Some(origin) => self.core.dataset(origin).await?.1.creation_txg,
            None => Txg::NONE,
        };
        Ok(Bounds { prev_snap: phys.prev_snap_txg, prev_prev_snap, prev_is_own, origin })
    }

    /// Bookmarks at or after `since` that keep count of what was freed after them.
    pub(crate) async fn counting_bookmarks(
        &self,
        id: ObjectId,
        since: Txg,
    ) -> Result<Vec<(String, BookmarkPhys)>> {
        if !self.features().is_active(Feature::BookmarkWritten) {
            return Ok(Vec::new());
        }
        let object = self.core.mos().object(id).await?;
        let Some(table) = zaps::field(&object, BOOKMARKS).await? else { return Ok(Vec::new()) };
        let mut marks = Vec::new();
        for entry in self.core.table(ObjectId(table)).await?.entries().await? {
            let mark = BookmarkPhys::from_words(entry.value.as_u64s().unwrap_or_default())?;
            let counts = mark.extension.is_some_and(|e| e.flags.0 & ondisk::BookmarkFlags::HAS_FREED.0 != 0);
            if counts && mark.creation_txg >= since {
                marks.push((entry.name().into_owned(), mark));
            }
        }
        Ok(marks)
    }

    /// Records in the MOS what a txg did to a dataset.
    async fn settle(
        &self,
        tx: &Tx,
        dataset: &Dataset,
        root: BlockPointer,
        tally: Tally,
        marks: Vec<(String, BookmarkPhys)>,
    ) -> Result<()> {
        let (object, mut phys) = self.core.dataset(dataset.id).await?;
        let fresh = tally.born - tally.freed;
        let head = self.head_space(dataset.dir(), &phys).await?;
        let charged = Delta { used: head.charged(fresh.used), ..fresh };
        let change = tally.born - tally.freed - tally.dead;
        add(&mut phys.referenced, change.used);
        add(&mut phys.compressed, change.compressed);
        add(&mut phys.uncompressed, change.uncompressed);
        add(&mut phys.unique, fresh.used);
        phys.bp = root;
        object.set_bonus(tx, phys.encode())?;
        self.change_space(tx, dataset.dir(), |chain| {
            space::shift_chain(chain, charged, fresh.used, Used::RefReserved, Used::Head);
            if let Some(dir) = chain.first_mut() {
                dir.transfer(tally.to_snapshots, Used::Head, Used::Snapshots);
            }
        })
        .await?;
        if !tally.dead_list.is_empty() {
            let deadlist = Deadlist::open(&self.core, phys.deadlist).await?;
            deadlist.insert(&self.core, tx, &tally.dead_list).await?;
        }
        if tally.newly_unique != 0 {
            self.core
                .update_dataset(tx, phys.prev_snap, |prev| add(&mut prev.unique, tally.newly_unique))
                .await?;
        }
        for feature in tally.features {
            self.core.activate(tx, &object, feature).await?;
        }
        self.drop_livelist(tx, dataset.dir()).await?;
        self.store_marks(tx, dataset.id, marks, &tally.marks).await
    }

    async fn store_marks(
        &self,
        tx: &Tx,
        id: ObjectId,
        marks: Vec<(String, BookmarkPhys)>,
        sums: &[Delta],
    ) -> Result<()> {
        let object = self.core.mos().object(id).await?;
        for ((name, mut mark), sum) in marks.into_iter().zip(sums) {
            let Some(extension) = mark.extension.as_mut().filter(|_| *sum != Delta::default()) else {
                continue;
            };
            let freed = &mut extension.freed_before_next;
            add(&mut freed.used, sum.used);
            add(&mut freed.compressed, sum.compressed);
            add(&mut freed.uncompressed, sum.uncompressed);
            let Some(table) = zaps::field(&object, BOOKMARKS).await? else { return Ok(()) };
            let table = self.core.table(ObjectId(table)).await?;
            table.update(tx, &name, &mark.to_words()[..]).await?;
        }
        Ok(())
    }

    /// Gives up the list of blocks that a clone wrote, which makes destroying it quicker: this program does not keep it
    /// up, and one that lags behind would free too little.
    pub(crate) async fn drop_livelist(&self, tx: &Tx, dir: ObjectId) -> Result<()> {
        let object = self.core.mos().object(dir).await?;
        let Some(list) = zaps::field(&object, LIVELIST).await? else { return Ok(()) };
        zap::Zap::open(object).remove(tx, LIVELIST).await?;
        Deadlist::open(&self.core, ObjectId(list)).await?.destroy(&self.core, tx).await?;
        self.features().add(tx, Feature::Livelist, -1).await
    }

    /// The space of a head dataset with what its properties reserve and allow.
    pub(crate) async fn head_space(&self, dir: ObjectId, phys: &DatasetPhys) -> Result<HeadSpace> {
        let levels = self.own_level(dir).await?;
        let chain = levels.chain();
        Ok(HeadSpace {
            referenced: phys.referenced,
            unique: phys.unique,
            refreservation: chain.number(Prop::RefReservation),
            refquota: chain.number(Prop::RefQuota),
        })
    }
}

fn add(to: &mut u64, delta: i64) {
    *to = to.saturating_add_signed(delta);
}
