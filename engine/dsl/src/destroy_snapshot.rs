//! Destroying snapshots: at once, or when they have no holds and no clones any more.
//!
//! ```text
//!        prev ──── goes ──── next            blocks that next's deadlist has, born since prev: only this one had them,
//!         │          │         │             they go to the free list; those of its own deadlist become next's
//!         ▼          ▼         ▼
//!       unique     free      unique          blocks that the neighbours now have alone become theirs
//! ```

use std::collections::BTreeSet;

use dmu::Tx;
use units::{Error, Kind, ObjectId, Result, Txg};
use world::Boxed;

use crate::core::versions;
use crate::counts;
use crate::deadlist::Deadlist;
use crate::dsl::Dsl;
use crate::phys::DatasetPhys;
use crate::space::{self, Delta, Used};
use crate::tree::Found;
use crate::zaps;

impl Dsl {
    /// Whether a snapshot may go now. Clones are no hindrance if they go before it.
    pub(crate) async fn check_destroy_snapshot(&self, found: &Found, clones_go: bool) -> Result<()> {
        let doing = || format!("destroy snapshot '{}'", found.name);
        let busy = |why: &str| Err(Error::new(Kind::Busy, doing()).because(why.to_string()));
        if self.is_held(&found.phys).await? {
            return busy("it is held; release the holds first, or use -d to destroy it when they are");
        }
        let (dataset, _) = found.name.split_once('@').unwrap_or_default();
        self.check_bookmarks(&self.find(dataset).await?, &found.name).await?;
        if found.phys.num_children > 1 && !clones_go {
            return busy("it has clones; destroy them first, or use -R");
        }
        if self.core.version() < versions::DEADLISTS {
            return Err(Error::unsupported(format!("{}: the pool is older than version 26", doing())));
        }
        Ok(())
    }

    /// Whether it has holds.
    pub(crate) async fn is_held(&self, phys: &DatasetPhys) -> Result<bool> {
        match phys.userrefs.some() {
            Some(holds) => Ok(!self.core.table(holds).await?.is_empty().await?),
            None => Ok(false),
        }
    }

    /// Whether a snapshot that was to be destroyed some day can be now, had it `clones` clones.
    pub(crate) async fn may_go(&self, phys: &DatasetPhys, clones: u64) -> Result<bool> {
        Ok(phys.has(DatasetPhys::DEFER_DESTROY) && clones == 0 && !self.is_held(phys).await?)
    }

    /// Lets a snapshot go when the last of its clones and holds does.
    pub(crate) async fn defer_destroy(&self, tx: &Tx, found: &Found) -> Result<()> {
        self.core.update_dataset(tx, found.id, |phys| phys.flags |= DatasetPhys::DEFER_DESTROY).await?;
        self.record_event(tx, "defer_destroy", " ", Some((&found.name, found.id))).await
    }

    /// Destroys a snapshot: blocks that only it had go to the free list, the others to its neighbours.
    pub fn destroy_snapshot<'a>(&'a self, tx: &'a Tx, full_name: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let found = self.find(full_name).await?;
            self.check_destroy_snapshot(&found, false).await?;
            self.check_unused_snapshot(&found)?;
            self.record_event(tx, "destroy", " ", Some((full_name, found.id))).await?;
            self.end_dataset(found.id);
            let core = &self.core;
            let (id, ds) = (found.id, &found.phys);
            core.deactivate_all(tx, &found.object).await?;
            let after_branch = self.unlink_from_previous(tx, id, ds).await?;
            let (next_object, mut next) = core.dataset(ds.next_snap).await?;
            let old_unique = next.unique;
            next.prev_snap = ds.prev_snap;
            next.prev_snap_txg = ds.prev_snap_txg;
            let next_dead = Deadlist::open(core, next.deadlist).await?;
            if let (Some(prev), false) = (ds.prev_snap.some(), after_branch) {
                let (_, prev_phys) = core.dataset(prev).await?;
                let range = next_dead.space_range(core, prev_phys.prev_snap_txg, ds.prev_snap_txg).await?;
                core.update_dataset(tx, prev, |prev| {
                    prev.unique = prev.unique.saturating_add_signed(range.used);
                })
                .await?;
            }
            let free_list = self.free_list.as_ref().expect("checked: the pool's version has a free list");
            let moved = next_dead.move_to(core, tx, free_list, ds.prev_snap_txg).await?;
            self.charge(tx, found.dir_id, Used::Snapshots, -moved).await?;
            self.charge_free(tx, moved).await?;
            let own_dead = Deadlist::open(core, ds.deadlist).await?;
            next_dead.merge(core, tx, own_dead).await?;
            next_object.set_bonus(tx, next.encode())?;
            self.collapse_clone_ranges(tx, found.dir_id, ds.creation_txg).await?;
            if next.is_snapshot() {
                self.widen_next(tx, &found, ds.next_snap, &next).await?;
            } else {
                self.recount_head(tx, &found, ds.next_snap, old_unique).await?;
            }
            self.forget_snapshot(tx, &found).await
        })
    }

    /// Takes a snapshot out of the chain below it. Answers whether it hung from a branch of its predecessor.
    async fn unlink_from_previous(&self, tx: &Tx, id: ObjectId, ds: &DatasetPhys) -> Result<bool> {
        let Some(prev_id) = ds.prev_snap.some() else { return Ok(false) };
        let (prev_object, mut prev) = self.core.dataset(prev_id).await?;
        if prev.next_snap == id {
            prev.next_snap = ds.next_snap;
            prev_object.set_bonus(tx, prev.encode())?;
            return Ok(false);
        }
        if let Some(clones) = prev.next_clones.some() {
            let clones = self.core.table(clones).await?;
            zaps::remove_number(&clones, tx, id.0).await?;
            zaps::add_number(&clones, tx, ds.next_snap.0).await?;
        }
        Ok(true)
    }

    /// Clones of this directory's snapshots had a range that began with the snapshot that goes.
    async fn collapse_clone_ranges(&self, tx: &Tx, dir: ObjectId, txg: Txg) -> Result<()> {
        let (mut todo, mut seen) = (vec![dir], BTreeSet::new());
        while let Some(dir) = todo.pop() {
            if !seen.insert(dir) {
                return Err(
                    Error::corrupt("it was cloned from a clone of itself").at(format!("DSL directory {dir}"))
                );
            }
            let (_, dir) = self.core.dir(dir).await?;
            let Some(clones) = dir.clones.some() else { continue };
            for (_, clone) in zaps::numbers(&self.core.table(clones).await?).await? {
                let (_, clone) = self.core.dataset(ObjectId(clone)).await?;
                let (_, clone_dir) = self.core.dir(clone.dir).await?;
                let origin_txg = match clone_dir.origin.some() {
                    Some(origin) => self.core.dataset(origin).await?.1.creation_txg,
                    None => Txg::NONE,
                };
                if origin_txg > txg {
                    let head = self.core.dataset(clone_dir.head).await?.1;
                    let deadlist = Deadlist::open(&self.core, head.deadlist).await?;
                    deadlist.remove_key(&self.core, tx, txg).await?;
                    todo.push(clone.dir);
                }
            }
        }
        Ok(())
    }

    /// The next snapshot now has alone what it shared only with the one that goes.
    async fn widen_next(&self, tx: &Tx, found: &Found, next: ObjectId, phys: &DatasetPhys) -> Result<()> {
        let core = &self.core;
        let (_, after) = core.dataset(phys.next_snap).await?;
        let after_dead = Deadlist::open(core, after.deadlist).await?;
        let (from, to) = (found.phys.prev_snap_txg, found.phys.creation_txg);
        let shared = after_dead.space_range(core, from, to).await?;
        core.update_dataset(tx, next, |next| next.unique = next.unique.saturating_add_signed(shared.used))
            .await?;
        let (_, head) = core.dataset(found.dir.head).await?;
        let head_dead = Deadlist::open(core, head.deadlist).await?;
        head_dead.remove_key(core, tx, to).await
    }

    /// The head now has alone what it shared only with the snapshot that goes.
    async fn recount_head(&self, tx: &Tx, found: &Found, head: ObjectId, old_unique: u64) -> Result<()> {
        let core = &self.core;
        let (object, mut phys) = core.dataset(head).await?;
        let prev_used = match phys.prev_snap.some() {
            Some(prev) => core.dataset(prev).await?.1.referenced,
            None => 0,
        };
        let dead = Deadlist::open(core, phys.deadlist).await?.space(core).await?.used.max(0) as u64;
        phys.unique = phys.referenced.saturating_sub(prev_used.saturating_sub(dead));
        object.set_bonus(tx, phys.encode())?;
        let reserved = self.head_space(found.dir_id, &phys).await?.refreservation;
        if old_unique < reserved {
            let less = phys.unique.saturating_sub(old_unique).min(reserved - old_unique);
            self.charge(tx, found.dir_id, Used::RefReserved, Delta::used(-space::signed(less))).await?;
        }
        Ok(())
    }

    /// Removes the name and the objects of a snapshot that nothing refers to any more.
    async fn forget_snapshot(&self, tx: &Tx, found: &Found) -> Result<()> {
        let core = &self.core;
        let (_, head) = core.dataset(found.dir.head).await?;
        let (_, last) = found.name.split_once('@').expect("a snapshot's name has an '@'");
        core.table(head.snapnames).await?.remove(tx, last).await?;
        self.adjust_count(tx, found.dir_id, counts::SNAPSHOTS, -1).await?;
        self.note_snapshots_changed(tx, found.dir_id).await?;
        for zap in [found.phys.next_clones, found.phys.props, found.phys.userrefs] {
            if let Some(id) = zap.some() {
                core.mos().free(tx, id).await?;
            }
        }
        self.forget_bootfs(tx, found.id).await?;
        core.free_zapified(tx, found.id).await
    }
}
