//! Destroying file systems and volumes.
//!
//! A head dataset goes at once from the tree of names; its blocks follow in later txgs ([`crate::freeing`]), or at
//! once in pools without `async_destroy`. What is destroyed together is ordered so that nothing is in the way:
//! children before parents, snapshots before their dataset.

use std::sync::Arc;

use dmu::Tx;
use ondisk::mos::directory;
use ondisk::{BlockBookmark, BlockPointer, BookmarkPhys, Feature, ObjsetPhys, ZilHeader};
use units::{Error, Kind, ObjectId, Result, Txg};
use world::Pending;
use zio::{Bookmark, ReadClass};

use crate::counts;
use crate::dataset::BOOKMARKS;
use crate::deadlist::Deadlist;
use crate::dsl::Dsl;
use crate::phys::DirPhys;
use crate::space::{Delta, DirSpace, Used};
use crate::tree::Found;
use crate::walk::free_tree;
use crate::zaps;

/// Who writes the intent logs of head datasets.
pub trait LogKeeper: Send + Sync {
    /// Frees all blocks of the log of `dataset`, whose object set says `header`: the dataset goes with `txg`.
    fn destroy_log(&self, dataset: ObjectId, header: ZilHeader, txg: Txg) -> Pending<Result<()>>;
}

/// What `destroy -r` is to do, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestroyPlan {
    /// Full names of snapshots and datasets.
    pub names: Vec<String>,
}

impl Dsl {
    /// What must go for `name` to go; an error that says what is in the way if not all of it may. `recursive` takes
    /// children and snapshots as well.
    pub async fn plan_destroy(&self, name: &str, recursive: bool) -> Result<DestroyPlan> {
        let target = self.find(name).await?;
        if target.is_snapshot() {
            self.check_destroy_snapshot(&target).await?;
            return Ok(DestroyPlan { names: vec![name.into()] });
        }
        if target.dir.parent.some().is_none() {
            return Err(Error::invalid(format!(
                "cannot destroy '{name}': it is the pool; use 'zpool destroy'"
            )));
        }
        let mut plan = DestroyPlan::default();
        for dataset in self.descendants(name).await?.into_iter().rev() {
            if dataset != name && !recursive {
                return Err(in_the_way(name, "children", "use -r to destroy them too"));
            }
            let mut snapshots = self.snapshots(&dataset).await?;
            if !snapshots.is_empty() && !recursive {
                return Err(in_the_way(name, "snapshots", "use -r to destroy them too"));
            }
            snapshots.reverse();
            for (snapshot, _) in snapshots {
                let found = self.find(&snapshot).await?;
                self.check_destroy_snapshot(&found).await?;
                plan.names.push(snapshot);
            }
            let found = self.find(&dataset).await?;
            self.check_destroy_head(&found).await?;
            plan.names.push(dataset);
        }
        Ok(plan)
    }

    async fn check_destroy_head(&self, found: &Found) -> Result<()> {
        let doing = || format!("destroy dataset '{}'", found.name);
        if let Some(open) = self.opened().get(&found.id)
            && Arc::strong_count(open) > 1
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
    async fn free_log(&self, tx: &Tx, found: &Found) -> Result<()> {
        let bp = &found.phys.bp;
        if bp.is_hole() {
            return Ok(());
        }
        let at = Bookmark::root(units::ObjsetId(found.id.0));
        let store = self.core.store();
        let block = match store.cached(bp) {
            Some(block) => block,
            None => store.read(bp, at, ReadClass::Demand).await?,
        };
        let phys = ObjsetPhys::from_bytes(&block, bp.endian()).map_err(|e| e.at(at))?;
        match self.log_keeper() {
            Some(keeper) => keeper.destroy_log(found.id, phys.zil_header, tx.txg()).await,
            None => {
                // Nobody writes to logs: then there is no more of one than the block that it begins with.
                store.free(&phys.zil_header.log, tx.txg());
                Ok(())
            }
        }
    }

    /// Carries out a plan, or the part of it that is still there.
    pub async fn destroy(&self, tx: &Tx, plan: &DestroyPlan) -> Result<()> {
        for name in &plan.names {
            if name.contains('@') {
                self.destroy_snapshot(tx, name).await?;
            } else {
                self.destroy_head(tx, name).await?;
            }
        }
        Ok(())
    }

    async fn destroy_head(&self, tx: &Tx, name: &str) -> Result<()> {
        let found = self.find(name).await?;
        self.check_destroy_head(&found).await?;
        let has_snapshots = !self.core.table(found.phys.snapnames).await?.is_empty().await?;
        if has_snapshots || !self.child_dirs(&found.dir).await?.is_empty() {
            return Err(in_the_way(name, "children or snapshots", "use -r to destroy them too"));
        }
        let is_async = self.features().is_enabled(Feature::AsyncDestroy);
        let how = if is_async { "bptree" } else { "synchronous" };
        let text = format!("({how}, mintxg={})", found.phys.prev_snap_txg);
        self.record_event(tx, "destroy", &text, Some((name, found.id))).await?;
        self.close_dataset(found.id);
        self.drop_refreservation(tx, &found).await?;
        self.drop_livelist(tx, found.dir_id).await?;
        self.core.deactivate_all(tx, &found.object).await?;
        self.unlink_from_origin(tx, &found).await?;
        Deadlist::open(&self.core, found.phys.deadlist).await?.destroy(&self.core, tx).await?;
        self.free_log(tx, &found).await?;
        self.give_up_blocks(tx, &found, is_async).await?;
        self.drop_bookmarks(tx, &found).await?;
        self.core.mos().free(tx, found.phys.snapnames).await?;
        self.core.free_zapified(tx, found.id).await?;
        self.forget_bootfs(tx, found.id).await?;
        self.destroy_dir(tx, found.dir_id, name).await
    }

    async fn drop_refreservation(&self, tx: &Tx, found: &Found) -> Result<()> {
        let unused = self.head_space(found.dir_id, &found.phys).await?.unused_reservation();
        self.charge(tx, found.dir_id, Used::RefReserved, Delta::used(-(unused as i64))).await
    }

    /// The snapshot it began as, the pool's origin or a real one, loses a descendant.
    async fn unlink_from_origin(&self, tx: &Tx, found: &Found) -> Result<()> {
        let Some(origin) = found.phys.prev_snap.some() else { return Ok(()) };
        let (object, mut from) = self.core.dataset(origin).await?;
        if let Some(clones) = from.next_clones.some() {
            zaps::remove_number(&self.core.table(clones).await?, tx, found.id.0).await?;
        }
        from.num_children = from.num_children.saturating_sub(1);
        object.set_bonus(tx, &from.encode())?;
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
        free_tree(store, tx.txg(), root, since, BlockBookmark::default(), u64::MAX).await.map(drop)
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
    async fn forget_bootfs(&self, tx: &Tx, id: ObjectId) -> Result<()> {
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
        used: space.used as i64,
        compressed: space.compressed as i64,
        uncompressed: space.uncompressed as i64,
    }
}

fn in_the_way(name: &str, what: &str, advice: &str) -> Error {
    Error::new(Kind::Busy, format!("destroy '{name}'")).because(format!("it has {what}; {advice}"))
}
