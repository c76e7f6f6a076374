//! Promoting a clone: it changes places with what it was cloned from.
//!
//! ```text
//!   before   s1 ── s2 ── s3 ── head            after   s1 ── s2 ── s3 ── head
//!                   └── c1 ── clone                           └── c1 ── clone
//!            s1, s2 and s3 are head's                   s1, s2 and c1 are the clone's, whose clone head is now
//! ```
//!
//! No block moves: the snapshots up to the origin go to the clone's directory, by name and by account.

use dmu::Tx;
use ondisk::ObjectType;
use units::{Error, Kind, ObjectId, Result, Txg};
use world::Boxed;

use crate::counts;
use crate::deadlist::Deadlist;
use crate::dsl::Dsl;
use crate::dsl::dataset::BOOKMARKS;
use crate::name;
use crate::phys::{DatasetPhys, DirPhys};
use crate::space::{self, Delta, Reach, Used};
use crate::tree::Found;
use crate::zaps;

/// What a promotion is to do.
struct Promotion {
    clone: Found,
    origin: ObjectId,
    origin_dir: ObjectId,
    origin_head: ObjectId,
    /// Where the origin's dataset was itself cloned from; the pool's, if it was not.
    origin_origin: ObjectId,
    /// The snapshots that move with their names, the origin first.
    shared: Vec<(String, ObjectId)>,
    /// The oldest in the clone's own line.
    first_own: ObjectId,
    /// What moves.
    space: Delta,
    /// What the origin will have alone.
    unique: u64,
    /// What the snapshots of each will hold.
    clone_snapshots: i64,
    origin_snapshots: i64,
}

const ALL: Txg = Txg(u64::MAX);

impl Dsl {
    /// Checks whether a clone can be promoted.
    pub fn check_promote<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move { self.plan_promote(name).await.map(drop) })
    }

    /// The txg of the snapshot that a directory was cloned from.
    pub(crate) async fn origin_txg(&self, dir: &DirPhys) -> Result<Txg> {
        match dir.origin.some().filter(|origin| Some(*origin) != self.origin) {
            Some(origin) => Ok(self.core.dataset(origin).await?.1.creation_txg),
            None => Ok(Txg::NONE),
        }
    }

    /// A dataset and those before it, down to the one after `until`.
    async fn line(&self, from: ObjectId, until: ObjectId) -> Result<Vec<(ObjectId, DatasetPhys)>> {
        let mut line: Vec<(ObjectId, DatasetPhys)> = Vec::new();
        let mut next = from;
        while next != until {
            let (_, phys) = self.core.dataset(next).await?;
            // A head may be younger than its snapshots; these go back in time, and so come to an end.
            let is_older = line.last().is_none_or(|(_, after)| phys.creation_txg < after.creation_txg);
            if line.len() > 1 && !is_older {
                return Err(Error::corrupt("snapshots out of order").at(format!("object {next}")));
            }
            let before = phys.prev_snap;
            line.push((next, phys));
            next = before
                .some()
                .ok_or_else(|| Error::corrupt(format!("dataset {from} does not lead to {until}")))?;
        }
        Ok(line)
    }

    async fn plan_promote(&self, name: &str) -> Result<Promotion> {
        let doing = || format!("promote '{name}'");
        let clone = self.find(name).await?;
        let origin = clone.dir.origin.some().filter(|id| Some(*id) != self.origin);
        let Some(origin) = origin.filter(|_| !clone.is_snapshot()) else {
            return Err(Error::invalid(format!("{}: it is not a clone", doing())));
        };
        self.check_new_enough(doing())?;
        let core = &self.core;
        let (_, origin_phys) = core.dataset(origin).await?;
        let origin_dir = origin_phys.dir;
        let (_, origin_dir_phys) = core.dir(origin_dir).await?;
        let origin_head = origin_dir_phys.head;
        if self.is_encrypted(clone.dir_id).await? || self.is_encrypted(origin_dir).await? {
            return Err(Error::unsupported(format!(
                "{}: encrypted datasets cannot be promoted yet",
                doing()
            )));
        }
        let (head_object, _) = core.dataset(origin_head).await?;
        if zaps::field(&head_object, BOOKMARKS).await?.is_some() {
            return Err(Error::unsupported(format!("{}: its origin's dataset has bookmarks", doing())));
        }
        let shared = self.line(origin, origin_dir_phys.origin).await?;
        let own = self.line(clone.id, origin).await?;
        let rest = self.line(origin_head, origin).await?;
        // A damaged clone may be its own origin.
        let nothing = || Error::corrupt(format!("dataset {} was cloned from itself", clone.id));
        let (first_own, first_phys) = own.last().ok_or_else(nothing)?;
        let first_dead = Deadlist::open(core, first_phys.deadlist).await?;
        let unique = first_dead.space_range(core, origin_phys.prev_snap_txg, ALL).await?.used.max(0) as u64;

        let mut space = Delta {
            used: space::signed(origin_phys.referenced),
            compressed: space::signed(origin_phys.compressed),
            uncompressed: space::signed(origin_phys.uncompressed),
        };
        for (_, phys) in &shared {
            space += Deadlist::open(core, phys.deadlist).await?.space(core).await?;
        }
        let (_, oldest) = core.dataset(origin_dir_phys.origin).await?;
        space += -Delta {
            used: space::signed(oldest.referenced),
            compressed: space::signed(oldest.compressed),
            uncompressed: space::signed(oldest.uncompressed),
        };
        let since = self.origin_txg(&origin_dir_phys).await?;
        let clone_snapshots =
            i64::saturating_add(self.dead_since(&shared, since).await?, self.dead_since(&own, since).await?);
        let origin_snapshots = self.dead_since(&rest, origin_phys.creation_txg).await?;
        let shared = self.names_of(&clone, origin_head, &shared, doing()).await?;
        self.check_move(origin_dir, clone.dir_id, space.used, doing()).await?;
        Ok(Promotion {
            first_own: *first_own,
            clone,
            origin,
            origin_dir,
            origin_head,
            origin_origin: origin_dir_phys.origin,
            shared,
            space,
            unique,
            clone_snapshots,
            origin_snapshots,
        })
    }

    /// What datasets have on their deadlists, as far as born after `since`.
    async fn dead_since(&self, line: &[(ObjectId, DatasetPhys)], since: Txg) -> Result<i64> {
        let mut sum = 0;
        for (_, phys) in line {
            let deadlist = Deadlist::open(&self.core, phys.deadlist).await?;
            sum = i64::saturating_add(sum, deadlist.space_range(&self.core, since, ALL).await?.used);
        }
        Ok(sum)
    }

    /// The names of snapshots that move, which must be free where they go.
    async fn names_of(
        &self,
        clone: &Found,
        head: ObjectId,
        line: &[(ObjectId, DatasetPhys)],
        doing: String,
    ) -> Result<Vec<(String, ObjectId)>> {
        let (_, head) = self.core.dataset(head).await?;
        let names = zaps::numbers(&self.core.table(head.snapnames).await?).await?;
        let taken = self.core.table(clone.phys.snapnames).await?;
        let (mut named, mut conflicts) = (Vec::new(), Vec::new());
        for (id, _) in line {
            let name = names.iter().find(|(_, of)| *of == id.0).map(|(name, _)| name.clone());
            let name =
                name.ok_or_else(|| Error::corrupt(format!("snapshot {id} is not among its dataset's")))?;
            name::check_entity(&format!("{}@{name}", clone.name))?;
            if taken.contains(&*name).await? {
                conflicts.push(name.clone());
            }
            named.push((name, *id));
        }
        if conflicts.is_empty() {
            return Ok(named);
        }
        let why = format!("both have snapshots called {}; rename them first", conflicts.join(", "));
        Err(Error::new(Kind::Exists, doing).because(why))
    }

    /// Whether `used` bytes may be charged to another directory.
    async fn check_move(&self, from: ObjectId, to: ObjectId, used: i64, doing: String) -> Result<()> {
        let leaving = self.chain(from).await?;
        let mut gone: Vec<_> = leaving.iter().map(|(_, phys)| phys.space).collect();
        space::charge_chain(&mut gone, Used::Head, Delta::used(used.saturating_neg()));
        let mut entering = Vec::new();
        for (id, phys) in self.chain(to).await? {
            let left = leaving.iter().position(|(other, _)| *other == id);
            entering.push(left.map_or(phys.space, |i| gone[i]));
        }
        if space::available(&entering, self.pool_space().usable(Reach::Reserved)) < used.max(0) as u64 {
            return Err(Error::new(Kind::NoSpace, doing));
        }
        Ok(())
    }

    /// Makes a clone the owner of the snapshots up to the one it was made from.
    pub fn promote<'a>(&'a self, tx: &'a Tx, name: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let plan = self.plan_promote(name).await?;
            let core = &self.core;
            let after = self.relink(tx, &plan).await?;
            for (snapshot, id) in &plan.shared {
                self.adopt_snapshot(tx, &plan, snapshot, *id, after).await?;
            }
            self.transfer(tx, &plan).await?;
            let (_, origin) = core.dataset(plan.origin).await?;
            self.move_errors(tx, plan.origin_head, plan.clone.id, origin.creation_txg).await?;
            core.update_dataset(tx, plan.origin, |phys| phys.unique = plan.unique).await?;
            self.drop_livelist(tx, plan.clone.dir_id).await?;
            self.drop_livelist(tx, plan.origin_dir).await?;
            self.note_snapshots_changed(tx, plan.clone.dir_id).await?;
            self.note_snapshots_changed(tx, plan.origin_dir).await?;
            self.record_event(tx, "promote", " ", Some((name, plan.clone.id))).await
        })
    }

    /// Turns the branch round: the origin's own line is the clone's, and what came after it there is the branch.
    /// Answers that.
    async fn relink(&self, tx: &Tx, plan: &Promotion) -> Result<ObjectId> {
        let core = &self.core;
        let (_, origin) = core.dataset(plan.origin).await?;
        let after = origin.next_snap;
        core.update_dataset(tx, plan.origin, |phys| phys.next_snap = plan.first_own).await?;
        if let Some(clones) = origin.next_clones.some() {
            let clones = core.table(clones).await?;
            zaps::remove_number(&clones, tx, plan.first_own.0).await?;
            zaps::add_number(&clones, tx, after.0).await?;
        }
        core.update_dir(tx, plan.clone.dir_id, |dir| dir.origin = plan.origin_origin).await?;
        core.update_dir(tx, plan.origin_dir, |dir| dir.origin = plan.origin).await?;
        self.move_clone(tx, plan.clone.id, plan.origin_dir, None).await?;
        let (_, oldest) = core.dataset(plan.origin_origin).await?;
        self.move_clone(tx, plan.origin_head, oldest.dir, Some(plan.clone.dir_id)).await?;
        let (_, dir) = core.dir(oldest.dir).await?;
        let clones = self.core.add_to_set(tx, dir.clones, ObjectType::DSL_CLONES, plan.clone.id).await?;
        core.update_dir(tx, oldest.dir, |dir| dir.clones = clones).await?;
        Ok(after)
    }

    /// Takes a head off one directory's list of clones, and puts it on another's.
    async fn move_clone(&self, tx: &Tx, head: ObjectId, from: ObjectId, to: Option<ObjectId>) -> Result<()> {
        let core = &self.core;
        let (_, dir) = core.dir(from).await?;
        if let Some(clones) = dir.clones.some() {
            zaps::remove_number(&core.table(clones).await?, tx, head.0).await?;
        }
        let Some(to) = to else { return Ok(()) };
        let (_, dir) = core.dir(to).await?;
        let clones = self.core.add_to_set(tx, dir.clones, ObjectType::DSL_CLONES, head).await?;
        core.update_dir(tx, to, |dir| dir.clones = clones).await
    }

    /// One snapshot becomes the clone's, with those that were cloned from it.
    async fn adopt_snapshot(
        &self,
        tx: &Tx,
        plan: &Promotion,
        name: &str,
        id: ObjectId,
        after: ObjectId,
    ) -> Result<()> {
        let core = &self.core;
        let (_, head) = core.dataset(plan.origin_head).await?;
        core.table(head.snapnames).await?.remove(tx, name).await?;
        core.table(plan.clone.phys.snapnames).await?.insert(tx, name, id.0).await?;
        self.adjust_count(tx, plan.origin_dir, counts::SNAPSHOTS, -1).await?;
        self.adjust_count(tx, plan.clone.dir_id, counts::SNAPSHOTS, 1).await?;
        core.update_dataset(tx, id, |phys| phys.dir = plan.clone.dir_id).await?;
        let open = self.opened().get(&id).cloned();
        if let Some(open) = open {
            // It stays listed: what has it open keeps it from being destroyed.
            open.move_to(plan.clone.dir_id, self.policy_of(plan.clone.dir_id).await?);
        }
        let (_, phys) = core.dataset(id).await?;
        let Some(clones) = phys.next_clones.some() else { return Ok(()) };
        for (_, clone) in zaps::numbers(&core.table(clones).await?).await? {
            // That of the branch point has moved already.
            if clone == after.0 {
                continue;
            }
            let (_, clone) = core.dataset(ObjectId(clone)).await?;
            let (_, dir) = core.dir(clone.dir).await?;
            self.move_clone(tx, dir.head, plan.origin_dir, Some(plan.clone.dir_id)).await?;
        }
        Ok(())
    }

    async fn transfer(&self, tx: &Tx, plan: &Promotion) -> Result<()> {
        let held = async |dir: ObjectId| {
            let (_, dir) = self.core.dir(dir).await?;
            Ok::<_, Error>(dir.space.breakdown.map(|parts| space::signed(parts[Used::Snapshots as usize])))
        };
        let sides = [
            (plan.clone.dir_id, plan.clone_snapshots, plan.space),
            (plan.origin_dir, plan.origin_snapshots, -plan.space),
        ];
        for (dir, snapshots, space) in sides {
            let more = held(dir).await?.map_or(0, |now| snapshots - now);
            self.charge(tx, dir, Used::Snapshots, Delta::used(more)).await?;
            self.charge(tx, dir, Used::Head, Delta { used: space.used - more, ..space }).await?;
        }
        Ok(())
    }
}
