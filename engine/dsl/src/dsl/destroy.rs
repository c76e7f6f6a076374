//! Destroying file systems and volumes.
//!
//! A head dataset goes at once from the tree of names; its blocks follow in later txgs ([`crate::freeing`]), or at
//! once in pools without `async_destroy`. What is destroyed together, and in which order, is `destroy_plan`'s to say.

use dmu::Tx;
use ondisk::mos::directory;
use ondisk::{BlockBookmark, BlockPointer, BookmarkPhys, Feature, ZilHeader};
use units::{Error, Kind, ObjectId, Result, Txg};
use world::{Boxed, Pending};

use crate::counts;
use crate::deadlist::Deadlist;
use crate::destroy_plan::{DestroyPlan, in_the_way};
use crate::dsl::Dsl;
use crate::dsl::dataset::{BOOKMARKS, is_used};
use crate::phys::DirPhys;
use crate::space::{self, Delta, DirSpace, Used};
use crate::tree::Found;
use crate::walk::free_tree;
use crate::zaps;

/// What writes the intent logs of head datasets.
pub trait LogKeeper: Send + Sync {
    /// Frees all blocks of the log of `dataset`, whose object set says `header`: the dataset goes with `txg`.
    fn destroy_log(&self, dataset: ObjectId, header: ZilHeader, txg: Txg) -> Pending<Result<()>>;
}

impl Dsl {
    pub(crate) async fn check_destroy_head(&self, found: &Found) -> Result<()> {
        let doing = || format!("destroy dataset '{}'", found.name);
        if let Some(open) = self.opened().get(&found.id)
            && is_used(open)
        {
            return Err(Error::new(Kind::Busy, doing()));
        }
        if let Some(table) = zaps::field(&found.object, BOOKMARKS).await? {
            for entry in self.core.table(ObjectId(table)).await?.entries().await? {
                let mark = BookmarkPhys::from_words(entry.value.as_u64s().unwrap_or_default())?;
                if mark.extension.is_some_and(|e| e.redaction.0 != 0) {
                    return Err(Error::unsupported(format!("{}: it has redaction bookmarks", doing())));
                }
            }
        }
        Ok(())
    }

    /// Frees the blocks of an intent log, which are not in the tree.
    pub(crate) async fn free_log(&self, tx: &Tx, found: &Found) -> Result<()> {
        let Some(phys) = self.root_block(found).await? else { return Ok(()) };
        match self.log_keeper() {
            Some(keeper) => keeper.destroy_log(found.id, phys.zil_header, tx.txg()).await,
            None => {
                // Nothing writes to logs: then there is no more of one than the block that it begins with.
                self.core.store().free(&phys.zil_header.log, tx.txg());
                Ok(())
            }
        }
    }

    /// Carries out a plan, or the part of it that is still there. `Busy`, and nothing is done, if a snapshot of it is open.
    pub fn destroy<'a>(&'a self, tx: &'a Tx, plan: &'a DestroyPlan) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            self.check_snapshots_unused(&plan.names).await?;
            self.check_snapshots_unused(&plan.origins).await?;
            for name in &plan.deferred {
                let found = self.find(name).await?;
                self.defer_destroy(tx, &found).await?;
            }
            for name in &plan.names {
                if !name.contains('@') {
                    self.destroy_head(tx, name).await?;
                } else if self.exists(name).await? {
                    // It may have gone with the last of its clones.
                    self.destroy_snapshot(tx, name).await?;
                }
            }
            Ok(())
        })
    }

    async fn destroy_head(&self, tx: &Tx, name: &str) -> Result<()> {
        let found = self.find(name).await?;
        self.check_destroy_head(&found).await?;
        let has_snapshots = !self.core.table(found.phys.snapnames).await?.is_empty().await?;
        if has_snapshots || !self.child_dirs(&found.dir).await?.is_empty() {
            return Err(in_the_way(name, "children or snapshots", "use -r to destroy them too"));
        }
        let how = if self.frees_later() { "bptree" } else { "synchronous" };
        let text = format!("({how}, mintxg={})", found.phys.prev_snap_txg);
        self.record_event(tx, "destroy", &text, Some((name, found.id))).await?;
        self.touch(name, None);
        self.end_dataset(found.id);
        self.free_log(tx, &found).await?;
        let origin = self.origin_that_goes(&found).await?;
        self.unmake_head(tx, &found).await?;
        match origin {
            Some(origin) => self.destroy_snapshot(tx, &origin).await,
            None => Ok(()),
        }
    }

    fn frees_later(&self) -> bool {
        self.features().is_enabled(Feature::AsyncDestroy)
    }

    /// The snapshot that a clone was made from, if that waits for its last clone to go.
    async fn origin_that_goes(&self, found: &Found) -> Result<Option<String>> {
        let Some(origin) = found.dir.origin.some().filter(|id| Some(*id) != self.origin) else {
            return Ok(None);
        };
        let (_, phys) = self.core.dataset(origin).await?;
        // Its children are the next in its own line, and this clone.
        match self.may_go(&phys, phys.num_children.saturating_sub(2)).await? {
            true => Ok(Some(self.dataset_name(origin).await?)),
            false => Ok(None),
        }
    }

    /// Unmakes a closed head dataset that nothing depends on, and its directory.
    pub(crate) fn unmake_head<'a>(&'a self, tx: &'a Tx, found: &'a Found) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            self.drop_refreservation(tx, found).await?;
            self.drop_livelist(tx, found.dir_id).await?;
            self.core.deactivate_all(tx, &found.object).await?;
            self.unlink_from_origin(tx, found).await?;
            Deadlist::open(&self.core, found.phys.deadlist).await?.destroy(&self.core, tx).await?;
            self.give_up_blocks(tx, found, self.frees_later()).await?;
            self.drop_bookmarks(tx, found).await?;
            self.drop_errors_of(tx, found.id).await?;
            self.core.mos().free(tx, found.phys.snapnames).await?;
            self.core.free_zapified(tx, found.id).await?;
            self.forget_bootfs(tx, found.id).await?;
            self.destroy_dir(tx, found.dir_id, &found.name).await
        })
    }

    async fn drop_refreservation(&self, tx: &Tx, found: &Found) -> Result<()> {
        let unused = self.head_space(found.dir_id, &found.phys).await?.unused_reservation();
        self.charge(tx, found.dir_id, Used::RefReserved, Delta::used(-space::signed(unused))).await
    }

    /// The snapshot it began as, the pool's origin or a real one, loses a descendant.
    async fn unlink_from_origin(&self, tx: &Tx, found: &Found) -> Result<()> {
        let Some(origin) = found.phys.prev_snap.some() else { return Ok(()) };
        let (object, mut from) = self.core.dataset(origin).await?;
        if let Some(clones) = from.next_clones.some() {
            zaps::remove_number(&self.core.table(clones).await?, tx, found.id.0).await?;
        }
        from.num_children = from.num_children.saturating_sub(1);
        object.set_bonus(tx, from.encode())?;
        let (_, from_dir) = self.core.dir(from.dir).await?;
        if let Some(clones) = from_dir.clones.some() {
            zaps::remove_number(&self.core.table(clones).await?, tx, found.id.0).await?;
        }
        Ok(())
    }

    /// Frees the blocks, now or later, and takes them off the directory's account.
    async fn give_up_blocks(&self, tx: &Tx, found: &Found, is_async: bool) -> Result<()> {
        let (_, dir) = self.core.dir(found.dir_id).await?;
        let space = whole(&dir.space);
        let root = &found.phys.bp;
        let since = found.phys.prev_snap_txg;
        self.charge(tx, found.dir_id, Used::Head, -space).await?;
        if is_async {
            return self.queue_tree(tx, root, since, space).await;
        }
        self.free_now(tx, root, since).await
    }

    async fn free_now(&self, tx: &Tx, root: &BlockPointer, since: Txg) -> Result<()> {
        let store = self.core.store();
        free_tree(store, tx.txg(), root, since, BlockBookmark::default(), self.free_bounds(u64::MAX))
            .await
            .map(drop)
    }

    async fn drop_bookmarks(&self, tx: &Tx, found: &Found) -> Result<()> {
        let Some(id) = zaps::field(&found.object, BOOKMARKS).await? else { return Ok(()) };
        let table = self.core.table(ObjectId(id)).await?;
        for entry in table.entries().await? {
            let mark = BookmarkPhys::from_words(entry.value.as_u64s().unwrap_or_default())?;
            if mark.extension.is_some_and(|e| e.flags.0 & ondisk::BookmarkFlags::HAS_FREED.0 != 0) {
                self.features().add(tx, Feature::BookmarkWritten, -1).await?;
            }
        }
        self.core.mos().free(tx, ObjectId(id)).await?;
        self.features().add(tx, Feature::Bookmarks, -1).await
    }

    /// A pool does not boot from what is gone.
    pub(crate) async fn forget_bootfs(&self, tx: &Tx, id: ObjectId) -> Result<()> {
        let Some(props) = self.core.directory().lookup_u64(directory::POOL_PROPERTIES).await? else {
            return Ok(());
        };
        let props = self.core.table(ObjectId(props)).await?;
        if props.lookup_u64("bootfs").await? == Some(id.0) {
            props.remove(tx, "bootfs").await?;
        }
        Ok(())
    }

    /// Unmakes a directory whose head is gone.
    async fn destroy_dir(&self, tx: &Tx, id: ObjectId, name: &str) -> Result<()> {
        self.change_space(tx, id, |chain| crate::space::set_reservation(chain, 0)).await?;
        let core = &self.core;
        let (_, dir) = core.dir(id).await?;
        let (_, parent) = core.dir(dir.parent).await?;
        let last = name.rsplit('/').next().unwrap_or(name);
        core.table(parent.children).await?.remove(tx, last).await?;
        self.adjust_count(tx, dir.parent, counts::FILESYSTEMS, -1).await?;
        for zap in [dir.children, dir.props, dir.clones] {
            if let Some(zap) = zap.some() {
                core.mos().free(tx, zap).await?;
            }
        }
        self.destroy_permissions(tx, &dir).await?;
        core.free_zapified(tx, id).await
    }

    /// Delegated permissions: a ZAP of ZAPs.
    async fn destroy_permissions(&self, tx: &Tx, dir: &DirPhys) -> Result<()> {
        let Some(permissions) = dir.permissions.some() else { return Ok(()) };
        for (_, set) in zaps::numbers(&self.core.table(permissions).await?).await? {
            self.core.mos().free(tx, ObjectId(set)).await?;
        }
        self.core.mos().free(tx, permissions).await
    }
}

fn whole(space: &DirSpace) -> Delta {
    Delta {
        used: space::signed(space.used),
        compressed: space::signed(space.compressed),
        uncompressed: space::signed(space.uncompressed),
    }
}
