//! Rolling a dataset back to its newest snapshot.
//!
//! ```text
//!   head ─ tree, deadlist, sums ─┐      1. a clone of the snapshot, under a name that cannot be given
//!                                ✕      2. head and clone exchange trees, deadlists and sums
//!   %rollback ─ of the snapshot ─┘      3. the clone goes, and with it all that came after the snapshot
//! ```
//!
//! The head keeps its number, name, snapshots and properties. An opener of it looks at a tree that is no more, so
//! none may be left; a writer is known by the space that it has reserved.

use std::sync::Arc;

use dmu::Tx;
use units::{Error, Kind, ObjectId, Result, Txg};
use world::Boxed;

use crate::counts;
use crate::deadlist::Deadlist;
use crate::dsl::Dsl;
use crate::dsl::dataset::{BOOKMARKS, Dataset};
use crate::space::{self, Delta, Used};
use crate::tree::Found;
use crate::zaps;

/// No name that can be given has a percent sign.
const TEMPORARY: &str = "%rollback";

impl Dsl {
    /// The snapshots of a dataset that are newer than `snapshot`, newest first. It may also be what the dataset was
    /// cloned from: then they are all.
    pub async fn snapshots_after(&self, dataset: &str, snapshot: &str) -> Result<Vec<String>> {
        let (head, target) = (self.find(dataset).await?, self.find_snapshot(snapshot).await?);
        if target.dir_id != head.dir_id && head.dir.origin != target.id {
            return Err(Error::invalid(format!("'{snapshot}' is not a snapshot of '{dataset}'")));
        }
        let mut newer = Vec::new();
        for (name, id) in self.snapshots(dataset).await?.into_iter().rev() {
            if id != target.id && self.core.dataset(id).await?.1.creation_txg >= target.phys.creation_txg {
                newer.push(name);
            }
        }
        Ok(newer)
    }

    /// Checks what can be checked of a rollback; answers the head. Newer snapshots are the caller's business.
    pub async fn check_rollback(&self, dataset: &str, snapshot: &str) -> Result<Found> {
        let doing = || format!("roll '{dataset}' back to '{snapshot}'");
        let (head, target) = (self.find(dataset).await?, self.find_snapshot(snapshot).await?);
        self.snapshots_after(dataset, snapshot).await?;
        self.check_new_enough(doing())?;
        self.check_bookmarks(&head, dataset).await?;
        if self.is_encrypted(head.dir_id).await? {
            return Err(Error::unsupported(format!(
                "{}: encrypted datasets cannot be rolled back yet",
                doing()
            )));
        }
        if self.newest_bookmark(&head).await? > target.phys.creation_txg {
            return Err(Error::new(Kind::Busy, doing()).because("there are newer bookmarks"));
        }
        let space = self.head_space(head.dir_id, &head.phys).await?;
        if space.refquota != 0 && target.phys.referenced > space.refquota {
            return Err(
                Error::new(Kind::NoSpace, doing()).because("the snapshot is larger than the refquota")
            );
        }
        // What the head has alone counted against its reservation, and is freed only little by little.
        if head.phys.unique.min(space.refreservation) > self.available_in(head.dir_id).await? {
            return Err(Error::new(Kind::NoSpace, doing()).because("the refreservation needs its room again"));
        }
        Ok(head)
    }

    /// Refuses while a dataset is open for writing, or held.
    pub async fn check_unused(&self, dataset: &str) -> Result<()> {
        let id = self.find(dataset).await?.id;
        let is_used = |open: &Arc<Dataset>| {
            Arc::strong_count(open) > 1 || Arc::strong_count(open.space_reservation()) > 1
        };
        match self.opened().get(&id).is_some_and(is_used) {
            true => Err(Error::new(Kind::Busy, format!("change '{dataset}'")).because("it is open")),
            false => Ok(()),
        }
    }

    async fn newest_bookmark(&self, head: &Found) -> Result<Txg> {
        let Some(table) = zaps::field(&head.object, BOOKMARKS).await? else { return Ok(Txg::NONE) };
        let mut newest = Txg::NONE;
        for entry in self.core.table(ObjectId(table)).await?.entries().await? {
            let mark = ondisk::BookmarkPhys::from_words(entry.value.as_u64s().unwrap_or_default())?;
            newest = newest.max(mark.creation_txg);
        }
        Ok(newest)
    }

    /// Rolls a dataset back to `snapshot`, its newest, when this txg's datasets have been written.
    pub fn rollback<'a>(&'a self, tx: &'a Tx, dataset: &'a str, snapshot: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            self.check_unused(dataset).await?;
            let head = self.check_rollback(dataset, snapshot).await?;
            let target = self.find_snapshot(snapshot).await?;
            let doing = || format!("roll '{dataset}' back to '{snapshot}'");
            if head.phys.prev_snap != target.id {
                return Err(Error::new(Kind::Busy, doing()).because("there are newer snapshots"));
            }
            let is_dirty = self.opened().get(&head.id).is_some_and(|open| {
                let txg = tx.txg();
                [txg, txg.next(), txg.next().next()].into_iter().any(|txg| open.objset().is_dirty(txg))
            });
            if is_dirty || target.phys.creation_txg >= tx.txg() {
                return Err(Error::new(Kind::Busy, doing()).because("another change is under way; try again"));
            }
            self.free_log(tx, &head).await?;
            self.end_dataset(head.id);
            let temporary = format!("{dataset}/{TEMPORARY}");
            let dir = self.core.make_dir(tx, Some((head.dir_id, TEMPORARY)), self.now()).await?;
            self.core.make_head(tx, dir, Some(target.id), self.now()).await?;
            self.start_counts(tx, dir).await?;
            self.adjust_count(tx, head.dir_id, counts::FILESYSTEMS, 1).await?;
            self.exchange(tx, &self.find(&temporary).await?, &self.find(dataset).await?).await?;
            self.unmake_head(tx, &self.find(&temporary).await?).await?;
            self.clear_log(tx, &self.find(dataset).await?).await?;
            self.touch(dataset, None);
            self.record_event(tx, "rollback", &format!("to {snapshot}"), Some((dataset, head.id))).await
        })
    }

    /// Gives a head what its unchanged clone has, and the clone what the head had.
    async fn exchange(&self, tx: &Tx, clone: &Found, head: &Found) -> Result<()> {
        let core = &self.core;
        self.drop_livelist(tx, head.dir_id).await?;
        let features = core.active_in(&clone.object).await?;
        core.deactivate_all(tx, &head.object).await?;
        for feature in features {
            core.activate(tx, &head.object, feature).await?;
        }
        let (_, mut old) = core.dataset(head.id).await?;
        let (_, mut new) = core.dataset(clone.id).await?;
        let old_dead = Deadlist::open(core, old.deadlist).await?;
        let new_dead = Deadlist::open(core, new.deadlist).await?;
        let reserved = self.head_space(head.dir_id, &old).await?.refreservation;
        let reserve = space::difference(old.unique.min(reserved), new.unique.min(reserved));
        // The snapshot has nothing alone any more; that of another dataset has what its own line leaves to it.
        let (_, snapshot) = core.dataset(new.prev_snap).await?;
        if snapshot.next_snap == head.id {
            let alone = new_dead.space_range(core, snapshot.prev_snap_txg, Txg(u64::MAX)).await?.used;
            core.update_dataset(tx, new.prev_snap, |phys| phys.unique = alone.max(0) as u64).await?;
        }
        let (old_space, new_space) = (old_dead.space(core).await?, new_dead.space(core).await?);
        let grown = Delta {
            used: space::difference(new.referenced, old.referenced),
            compressed: space::difference(new.compressed, old.compressed),
            uncompressed: space::difference(new.uncompressed, old.uncompressed),
        };
        let change = grown - (old_space - new_space);
        self.charge(tx, head.dir_id, Used::Head, change).await?;
        self.charge(tx, clone.dir_id, Used::Head, -change).await?;
        let origin = self.origin_txg(&head.dir).await?;
        let all = Txg(u64::MAX);
        let to_snapshots = new_dead.space_range(core, origin, all).await?.used
            - old_dead.space_range(core, origin, all).await?.used;
        self.change_space(tx, head.dir_id, |chain| {
            if let Some(dir) = chain.first_mut() {
                dir.transfer(to_snapshots, Used::Head, Used::Snapshots);
            }
        })
        .await?;
        self.charge(tx, head.dir_id, Used::RefReserved, Delta::used(reserve)).await?;
        std::mem::swap(&mut old.bp, &mut new.bp);
        std::mem::swap(&mut old.deadlist, &mut new.deadlist);
        std::mem::swap(&mut old.referenced, &mut new.referenced);
        std::mem::swap(&mut old.compressed, &mut new.compressed);
        std::mem::swap(&mut old.uncompressed, &mut new.uncompressed);
        std::mem::swap(&mut old.unique, &mut new.unique);
        head.object.set_bonus(tx, old.encode())?;
        clone.object.set_bonus(tx, new.encode())
    }
}
