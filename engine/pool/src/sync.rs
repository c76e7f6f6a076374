//! What a txg does to become the pool's state.
//!
//! ```text
//!   pass 1   intent logs ─▶ datasets ─▶ each sync task ─▶ datasets it changed ─▶ configuration
//!   each     MOS: dmu::sync ─▶ frees of gangs ─▶ space maps, which are objects of the MOS …
//!   until    … so again, until a pass leaves the MOS clean
//!   commit   flush ─▶ labels 0 2 ─▶ uberblock ─▶ flush ─▶ labels 1 3
//!   done     freed space ripens, the next txg may sync
//! ```
//!
//! A sync does not end by a device that fails: what it needs waits until the pool is resumed ([`crate::suspend`]).
//!
//! It comes to rest because from the second pass on a block that this txg has written is written again in the same
//! place, and later passes do not compress, so that its size stays the same.

use crate::assemble::MosBlockAccounting;
use crate::place::Place;
use crate::pool::{Pool, lock};
use dmu::{SyncCtx, Tx};
use dsl::Frees;
use futures_util::future::{Either, select};
use ondisk::BlockPointer;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tunables::Tunable;
use units::{Error, Kind, Result, Txg};
use vdev::label::commit::Commit;
use world::sync::OwnedWriteGuard;
use zio::suspend::steadfast;

/// A sync that has not come to rest by now never will: something is wrong with us.
const PASSES_MAX: u32 = 100;

impl Pool {
    /// Syncs from now on, on the loop `core`, first the txg that is due.
    pub(crate) fn sync_on(&self, core: usize, due: Option<Txg>) {
        let mut syncing = lock(&self.0.syncing);
        self.0.syncs_on.store(core, Ordering::Relaxed);
        *syncing = Some(self.spawn_on(core, self.clone().sync_loop(due)));
    }

    /// Waits until nothing is synced any more.
    pub(crate) async fn end_of_syncing(&self) {
        // It may go on elsewhere while the end of one is waited for.
        loop {
            let task = lock(&self.0.syncing).take();
            let Some(task) = task else { return };
            task.await;
        }
    }

    /// Syncs txg after txg, until the pool is closed or cannot be written any more, or that goes on on another loop. In a
    /// box, as it begins what it is itself.
    fn sync_loop(self, due: Option<Txg>) -> world::Pending<()> {
        Box::pin(async move {
            if let Some((core, due)) = self.sync_here(due).await {
                self.sync_on(core, Some(due));
            }
        })
    }

    /// Answers on which loop it goes on, with which txg.
    async fn sync_here(&self, mut due: Option<Txg>) -> Option<(usize, Txg)> {
        let mut place = Place::begin();
        loop {
            let txg = match due.take() {
                Some(txg) => txg,
                None => {
                    let txg = self.0.txgs.next_to_sync().await?;
                    if let Some(core) = place.better() {
                        return Some((core, txg));
                    }
                    txg
                }
            };
            let given_up = pin!(self.0.pipeline.suspension().given_up());
            let sync = pin!(steadfast(self.sync_txg(txg)));
            let outcome = match select(sync, given_up).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(_) => Err(Error::new(Kind::Io, "sync").because(self.why_given_up())),
            };
            let frees = match outcome {
                Ok(frees) => frees,
                Err(e) => {
                    self.fail(&e.at(format!("txg {txg}")));
                    return None;
                }
            };
            self.0.txgs.done(txg);
            self.consider_resilver();
            self.consider_spares();
            if self.0.txgs.is_closing() {
                continue;
            }
            if frees == Frees::More || self.has_errors_to_log() || self.is_freeing().await {
                self.0.txgs.begin_unthrottled().dirtied(1);
            }
            if frees == Frees::More {
                self.0.txgs.hasten();
            }
        }
    }

    /// Txgs are to come even if nothing is written: they free the blocks of destroyed datasets, and what was freed
    /// becomes free. Without them a pool that was full stayed so, however much was removed, until the next write.
    async fn is_freeing(&self) -> bool {
        self.0.ripening() > 0 || self.0.dsl.has_frees().await.unwrap_or(false)
    }

    /// Answers whether more waits to be freed than this txg could see to.
    pub(crate) async fn sync_txg(&self, txg: Txg) -> Result<Frees> {
        let inner = &self.0;
        let tx = Arc::new(inner.txgs.syncing(txg));
        let block_accounting = Arc::new(MosBlockAccounting {
            pipeline: inner.pipeline.clone(),
            txg,
            delta: inner.mos_delta.clone(),
        });
        // So that a device that misses writes knows which txgs it missed.
        inner.tree.set_txg(txg);
        let dirty = inner.txgs.dirty_bytes() * 100 / inner.txgs.limits().dirty_max.max(1);
        inner.tree.set_dirty(dirty);
        let mut root = None;
        let mut pass = 0;
        // Held until the uberblock is on disk, where a task asked for that.
        let mut unseen = None;
        let mut frees = Frees::Done;
        loop {
            pass += 1;
            if pass > PASSES_MAX {
                return Err(Error::corrupt(format!("txg {txg} does not come to rest")));
            }
            if pass == 1 {
                (unseen, frees) = self.first_pass(&tx).await?;
            } else {
                inner.dsl.sync_datasets(&tx, pass).await?;
                self.sync_missing(&tx, false).await?;
            }
            let ctx = SyncCtx { txg, pass, block_accounting: block_accounting.clone(), dirty: tx.dirty() };
            let writing = inner.mos_writing.begin();
            if let Some(bp) = inner.mos.sync(&ctx).await? {
                root = Some(bp);
            }
            drop(writing);
            inner.pipeline.settle_frees().await?;
            inner.space.sync(txg, pass).await?;
            if !inner.mos.is_dirty(txg) {
                break;
            }
        }
        if let Some(root) = root {
            self.commit(txg, root).await?;
        }
        drop(unseen);
        inner.pipeline.txg_synced(txg);
        self.logs_synced(txg);
        inner.space.sync_done(txg).await?;
        // What the next txg will allocate from is read in between, not in its midst.
        inner.space.preload().await;
        inner.note_problems();
        inner.publish_space();
        inner.dsl.close_idle().await;
        inner.dsl.publish_space_reservations(txg).await?;
        Ok(frees)
    }

    /// Answers what keeps readers away until the txg is on disk, if a task wants them to be, and what is left to be freed.
    async fn first_pass(&self, tx: &Arc<Tx>) -> Result<(Option<OwnedWriteGuard<()>>, Frees)> {
        let inner = &self.0;
        let delta = std::mem::take(&mut *lock(&inner.mos_delta));
        self.sync_logs(tx).await;
        inner.dsl.sync_datasets(tx, 1).await?;
        let due = inner.tasks.take(tx.txg());
        // Readers wait for a task, not for the devices; but what must not be seen before it is on disk keeps them away.
        let mut unseen = None;
        if due.unseen {
            unseen = Some(inner.admin.write_owned().await);
        }
        for task in due.tasks {
            let changing = match unseen {
                Some(_) => None,
                None => Some(inner.admin.write_owned().await),
            };
            let closed = inner.dsl.hold_off_openings().await;
            task(self.clone(), tx.clone()).await;
            drop((closed, changing));
            // The next one finds what this one filled on disk, as it finds all else.
            inner.dsl.sync_datasets(tx, 1).await?;
        }
        self.sync_errors(tx).await;
        self.free_what_stayed_behind(tx).await?;
        inner.dsl.sync_datasets(tx, 1).await?;
        // More than so many would hold up what waits for the txg.
        let at_once = inner.tunables.get(Tunable::AsyncBlockMaxBlocks);
        let frees = inner.dsl.process_frees(tx, at_once).await?;
        self.drop_log_space_maps(tx).await?;
        self.note_states();
        self.sync_missing(tx, true).await?;
        if inner.config_dirty.load(Ordering::Acquire) {
            self.write_config_object(tx).await?;
        }
        if inner.mos.is_dirty(tx.txg()) {
            inner.dsl.charge_mos(tx, delta).await?;
        } else {
            // An empty txg stays empty; the sums wait for one that is not.
            *lock(&inner.mos_delta) += delta;
        }
        Ok((unseen, frees))
    }

    async fn commit(&self, txg: Txg, root: BlockPointer) -> Result<()> {
        let inner = &self.0;
        let config_dirty = inner.config_dirty.swap(false, Ordering::AcqRel);
        let uberblock = {
            let mut uberblock = lock(&inner.uberblock).clone();
            uberblock.txg = txg;
            uberblock.timestamp = world::wall_clock().seconds;
            uberblock.root = root;
            uberblock.guid_sum = inner.tree.spec().guid_sum();
            uberblock.mmp = inner.multihost.of_txg(&uberblock, &inner.tunables);
            uberblock
        };
        let config = config_dirty.then(|| inner.config_at(txg));
        let commit = Commit { uberblock: uberblock.clone(), config, multihost: inner.multihost.is_on() };
        let persist = inner.pipeline.suspension().persist(|| inner.tree.commit(&commit));
        if let Err(e) = persist.await {
            inner.config_dirty.store(config_dirty, Ordering::Release);
            return Err(e);
        }
        lock(&inner.config).txg = txg;
        *lock(&inner.uberblock) = uberblock;
        Ok(())
    }

    /// Writes the configuration into the MOS, where `import` will find the whole tree.
    async fn write_config_object(&self, tx: &Tx) -> Result<()> {
        let inner = &self.0;
        let id = inner.dsl.core().directory().require_u64(ondisk::mos::directory::CONFIG).await?;
        let object = inner.mos.object(units::ObjectId(id)).await?;
        let packed = inner.config_at(tx.txg()).mos(&inner.tree.spec()).encode();
        object.write(tx, 0, &packed).await?;
        object.set_bonus(tx, (packed.len() as u64).to_ne_bytes())
    }
}
