//! Taking snapshots: of one dataset, or of many at one moment.
//!
//! ```text
//!   txg  … writes of clients ─▶ datasets written ─▶ sync task: snapshot ─▶ MOS written ─▶ uberblock
//! ```
//!
//! A snapshot is made between the last write of a txg and the commit of this txg, so it has all that was acknowledged
//! before it was asked for: what is in the intent log is also in memory, and goes into the tree first. Only where a log
//! of an earlier opening was not replayed yet there is more than that in it; then no snapshot is taken.
//!
//! The head of the log that the root block names is copied with it and means nothing: no snapshot's log is replayed,
//! and what begins as a copy of the snapshot begins with an empty one ([`Dsl::clear_log`]).

use dmu::Tx;
use ondisk::{Feature, ObjectType};
use units::{Error, Guid, Kind, ObjectId, Result, Txg};
use world::Boxed;

use crate::core::{Core, versions};
use crate::counts;
use crate::create::random_fsid;
use crate::deadlist::Deadlist;
use crate::dsl::{Dsl, ORIGIN_DIR};
use crate::name;
use crate::phys::DatasetPhys;
use crate::props::{PropName, Value};
use crate::space::{self, Delta, Reach, Used};
use crate::stats::SNAPSHOTS_CHANGED;
use crate::tree::Found;
use crate::zaps;

/// Blocks of the MOS that a snapshot takes.
const TAKEN: u64 = 3;

impl Core {
    /// Freezes the state of a head dataset as the snapshot `name`. The dataset must not be dirty.
    pub(crate) async fn make_snapshot(
        &self,
        tx: &Tx,
        head: ObjectId,
        name: &str,
        now: u64,
    ) -> Result<ObjectId> {
        let (head_object, mut phys) = self.dataset(head).await?;
        let creation_txg = if name == ORIGIN_DIR { Txg(1) } else { tx.txg() };
        let snapshot = DatasetPhys {
            fsid: random_fsid(),
            guid: Guid(world::random_u64()),
            next_snap: head,
            num_children: 1,
            creation_time: now,
            creation_txg,
            snapnames: ObjectId(0),
            // What the head has now, it has together with the snapshot.
            unique: 0,
            next_clones: ObjectId(0),
            props: ObjectId(0),
            userrefs: ObjectId(0),
            ..phys.clone()
        };
        let new = dmu::NewObject::new(ObjectType::DSL_DATASET, 512)
            .with_bonus(ObjectType::DSL_DATASET, snapshot.encode());
        let object = self.mos().allocate(tx, new).await?;
        for feature in self.active_in(&head_object).await? {
            self.activate(tx, &object, feature).await?;
        }
        self.relink_previous(tx, &phys, head, object.id()).await?;
        let old_deadlist = Deadlist::open(self, phys.deadlist).await?;
        let deadlist = old_deadlist.clone_keys(self, tx, Txg(u64::MAX)).await?;
        deadlist.add_key(self, tx, phys.prev_snap_txg).await?;
        phys.deadlist = deadlist.id();
        phys.prev_snap = object.id();
        phys.prev_snap_txg = creation_txg;
        phys.unique = 0;
        if self.version() >= versions::UNIQUE_ACCURATE {
            phys.flags |= DatasetPhys::UNIQUE_ACCURATE;
        }
        // Zapifying may have changed the head's object kind, never its bonus.
        head_object.set_bonus(tx, phys.encode())?;
        self.table(phys.snapnames).await?.insert(tx, name, object.id().0).await?;
        Ok(object.id())
    }

    /// The snapshot before the new one now comes before the new one, not before the head.
    async fn relink_previous(
        &self,
        tx: &Tx,
        phys: &DatasetPhys,
        head: ObjectId,
        new: ObjectId,
    ) -> Result<()> {
        let Some(prev_id) = phys.prev_snap.some() else { return Ok(()) };
        let (prev_object, mut prev) = self.dataset(prev_id).await?;
        if prev.next_snap == head {
            prev.next_snap = new;
            return prev_object.set_bonus(tx, prev.encode());
        }
        if let Some(clones) = prev.next_clones.some() {
            let clones = self.table(clones).await?;
            zaps::remove_number(&clones, tx, head.0).await?;
            zaps::add_number(&clones, tx, new.0).await?;
        }
        Ok(())
    }
}

impl Dsl {
    /// Checks what can be checked of snapshots that are to be taken together; answers their datasets.
    pub async fn check_snapshots(&self, names: &[String], props: &[(PropName, Value)]) -> Result<Vec<Found>> {
        if let Some((PropName::Native(prop), _)) =
            props.iter().find(|(name, _)| matches!(name, PropName::Native(_)))
        {
            return Err(Error::invalid(format!(
                "'{}': this property can not be set on snapshots",
                prop.name()
            )));
        }
        let mut heads: Vec<Found> = Vec::with_capacity(names.len());
        let mut again = 0;
        for full_name in names {
            let (head, more) = self.check_snapshot(full_name).await?;
            if heads.iter().any(|other| other.id == head.id) {
                return Err(Error::invalid(format!(
                    "create snapshot '{full_name}': one dataset cannot have two snapshots of the same moment"
                )));
            }
            again += more;
            heads.push(head);
        }
        if again > self.available_in(self.root).await? {
            return Err(Error::new(Kind::NoSpace, format!("create {} snapshots", names.len()))
                .because("the refreservations need their room again"));
        }
        Ok(heads)
    }

    /// Answers the dataset of a snapshot that is to be taken, and what must be reserved again for it.
    async fn check_snapshot(&self, full_name: &str) -> Result<(Found, u64)> {
        name::check_snapshot(full_name)?;
        let doing = || format!("create snapshot '{full_name}'");
        let (dataset, _) = full_name.split_once('@').expect("checked: it has an '@'");
        if self.exists(full_name).await? {
            return Err(Error::new(Kind::Exists, doing()));
        }
        let head = self.find(dataset).await?;
        self.check_bookmarks(&head, full_name).await?;
        if head.phys.has(DatasetPhys::INCONSISTENT) {
            return Err(Error::new(Kind::Busy, doing()).because("it is half received"));
        }
        // What is only in the log was promised to a client, and would be missing.
        if self.log_header(&head).await?.claim_txg != Txg::NONE {
            let why =
                format!("synchronous writes wait in its intent log; mount '{dataset}' once, then try again");
            return Err(Error::new(Kind::Busy, doing()).because(why));
        }
        // The unused reservation must still be there for the head, beside what the snapshot will hold.
        let space = self.head_space(head.dir_id, &head.phys).await?;
        let more = head.phys.unique.min(space.refreservation);
        if more > self.available_in(head.dir_id).await? {
            return Err(Error::new(Kind::NoSpace, doing()).because("the refreservation needs its room again"));
        }
        Ok((head, more))
    }

    /// Takes the snapshot `pool/a@s`, of what is on disk: called when this txg's datasets have been written.
    pub async fn snapshot(&self, tx: &Tx, full_name: &str) -> Result<ObjectId> {
        Ok(self.snapshot_all(tx, &[full_name.to_string()], &[]).await?[0])
    }

    /// Takes snapshots of several datasets, all of one moment; see [`Dsl::snapshot`].
    pub fn snapshot_all<'a>(
        &'a self,
        tx: &'a Tx,
        names: &'a [String],
        props: &'a [(PropName, Value)],
    ) -> Boxed<'a, Result<Vec<ObjectId>>> {
        Box::pin(async move {
            let heads = self.check_snapshots(names, props).await?;
            for (head, full_name) in heads.iter().zip(names) {
                let is_dirty =
                    self.opened().get(&head.id).is_some_and(|open| open.objset().is_dirty(tx.txg()));
                if is_dirty || head.phys.prev_snap_txg >= tx.txg() {
                    return Err(Error::new(Kind::Busy, format!("create snapshot '{full_name}'"))
                        .because("another change is under way; try again"));
                }
            }
            let first = || format!("create snapshot '{}'", names.first().map_or("", String::as_str));
            self.admit(Reach::Normal, TAKEN * names.len() as u64, first).await?;
            let mut taken = Vec::with_capacity(names.len());
            for (head, full_name) in heads.iter().zip(names) {
                taken.push(self.take(tx, head, full_name, props).await?);
            }
            Ok(taken)
        })
    }

    async fn take(
        &self,
        tx: &Tx,
        head: &Found,
        full_name: &str,
        props: &[(PropName, Value)],
    ) -> Result<ObjectId> {
        let (_, last) = full_name.split_once('@').expect("checked: it has an '@'");
        let space = self.head_space(head.dir_id, &head.phys).await?;
        let id = self.core.make_snapshot(tx, head.id, last, self.now()).await?;
        self.adjust_count(tx, head.dir_id, counts::SNAPSHOTS, 1).await?;
        let again = head.phys.unique.min(space.refreservation);
        self.charge(tx, head.dir_id, Used::RefReserved, Delta::used(space::signed(again))).await?;
        self.note_snapshots_changed(tx, head.dir_id).await?;
        if !props.is_empty() {
            let found = self.find(full_name).await?;
            for (prop, value) in props {
                // The first one makes the table, which the others need to know of.
                let found = Found { phys: self.core.dataset(found.id).await?.1, ..found.clone() };
                self.set_on_snapshot(tx, &found, prop, value).await?;
            }
        }
        self.record_event(tx, "snapshot", " ", Some((full_name, id))).await?;
        Ok(id)
    }

    /// Notes when a dataset's snapshots came, went or changed their names.
    pub(crate) async fn note_snapshots_changed(&self, tx: &Tx, dir: ObjectId) -> Result<()> {
        if !self.features().is_enabled(Feature::ExtensibleDataset) {
            return Ok(());
        }
        let now = world::wall_clock();
        let object = self.core.mos().object(dir).await?;
        let table = self.core.zapify(tx, &object).await?;
        table.update(tx, SNAPSHOTS_CHANGED, &[now.seconds, u64::from(now.nanos)][..]).await
    }

    /// Bookmarks that keep count of what is freed have ranges of their own in the deadlists.
    pub(crate) async fn check_bookmarks(&self, head: &Found, name: &str) -> Result<()> {
        if self.counting_bookmarks(head.id, Txg::NONE).await?.is_empty() {
            return Ok(());
        }
        Err(Error::unsupported(format!("'{name}': snapshots of a dataset with bookmarks cannot change yet")))
    }
}
