//! The walk of a scan: the parts in their order, each block looked at, what is bad repaired, the position kept.
//!
//! ```text
//!   part ─▶ the set that has it by now ─▶ walk ─▶ block: met ─▶ looked at ─▶ done ──────────────┐
//!                  ▲                                              └ bad ─▶ repaired by a txg ─▶ done ─▶ position
//!                  └── the snapshot was destroyed meanwhile: a later one has what was not seen
//! ```
//!
//! A block that is lost is counted once in a part, however often the part is walked because it changes.

use super::position::{HEALED_MAX, Kept, Part, Place, Position, Track};
use super::{GO, LISTS_MAX, POSITION, REPAIRS_AT_ONCE, SUSPENDED_LOOK};
use crate::heal::birth_of;
use crate::pool::{Pool, lock};
use crate::walk::{self, Check, Set, Suspect};
use dmu::Tx;
use ondisk::dsl::{ScanFunc, ScanState};
use ondisk::{BlockPointer, ScanPhys};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tunables::Tunable;
use units::{Guid, HashSet, ObjectId, ObjsetId, Result, Txg};
use world::Pending;
use zio::Bookmark;

/// Bad blocks that wait for their repair: with so many, the walk waits too.
const BAD_MAX: usize = 1024;
/// Lost blocks that a part remembers, so as not to count them again.
const TOLD_MAX: usize = 64 << 10;
/// Snapshots that were taken of a head since a scan began and are looked through for what was the head then.
const LINE_MAX: usize = 1 << 20;

/// How often it is looked whether the MOS is still being written.
const MOS_LOOK: Duration = Duration::from_millis(1);

impl Pool {
    /// Walks all that is behind the position.
    pub(super) async fn scan_parts(&self) -> Result<()> {
        let (phys, from) = {
            let state = lock(&self.0.scrub.state);
            (state.phys.unwrap_or_default(), state.position)
        };
        for part in self.parts(phys.max_txg).await? {
            if part < from.part {
                continue;
            }
            let start = if part == from.part { from.from } else { (0, 0) };
            if !self.scan_part(part, start, &phys).await? {
                return Ok(());
            }
            lock(&self.0.scrub.state).position = Position::behind(part);
        }
        Ok(())
    }

    /// What there is to be walked, in order.
    async fn parts(&self, max_txg: Txg) -> Result<Vec<Part>> {
        let _unchanged = self.reading().await;
        let mut parts = vec![Part::Mos];
        walk::for_each_dataset(self, |id, phys| match phys.is_snapshot() {
            true if phys.creation_txg <= max_txg => {
                parts.push(Part::Snapshot { created: phys.creation_txg, id });
            }
            // What was the head when the scan began is found by way of the head.
            true => {}
            false => parts.push(Part::Head { dir: phys.dir }),
        })
        .await?;
        parts.sort_unstable();
        Ok(parts)
    }

    /// The set that has the blocks of a part by now; `None` when they have gone to a later part, or are no more.
    async fn set_of(&self, part: Part, max_txg: Txg) -> Result<Option<Set>> {
        let _unchanged = self.reading().await;
        match part {
            Part::Mos => Ok(Some(walk::mos_set(self))),
            Part::Snapshot { created, id } => {
                let phys = walk::dataset_phys(self, id).await?;
                match phys.filter(|phys| phys.is_snapshot() && phys.creation_txg == created) {
                    Some(_) => walk::dataset_set(self, id).await,
                    None => Ok(None),
                }
            }
            Part::Head { dir } => match self.was_head(dir, max_txg).await? {
                Some(id) => walk::dataset_set(self, id).await,
                None => Ok(None),
            },
        }
    }

    /// As [`Pool::set_of`], read when the MOS was not being written. Meaningless once the scan is to end.
    async fn settled_set_of(&self, part: Part, max_txg: Txg) -> Result<Option<Set>> {
        loop {
            let before = self.0.mos_writing.turn();
            let set = self.set_of(part, max_txg).await;
            let is_settled = before.is_some() && before == self.0.mos_writing.turn();
            if is_settled || self.0.scrub.command() != GO {
                return set;
            }
            drop(set);
            world::sleep(if self.suspended().is_some() { SUSPENDED_LOOK } else { MOS_LOOK }).await;
        }
    }

    /// The head of the directory, or the oldest snapshot of it that was taken after `max_txg`.
    async fn was_head(&self, dir: ObjectId, max_txg: Txg) -> Result<Option<ObjectId>> {
        // Gone, its object may be something else by now.
        let Some(dir) = walk::dir_now(self, dir).await? else { return Ok(None) };
        let Some(mut id) = dir.head.some() else { return Ok(None) };
        for _ in 0..LINE_MAX {
            let Some(phys) = walk::dataset_phys(self, id).await? else { return Ok(None) };
            match phys.prev_snap.some() {
                Some(previous) if phys.prev_snap_txg >= max_txg => id = previous,
                _ => return Ok(Some(id)),
            }
        }
        Ok(None)
    }

    /// Walks one part; false when the scan is to end here.
    async fn scan_part(&self, part: Part, start: Place, phys: &ScanPhys) -> Result<bool> {
        let scrub = &self.0.scrub;
        let (mut start, told) = (start, Arc::default());
        for _ in 0..LISTS_MAX {
            let set = self.settled_set_of(part, phys.max_txg).await;
            if scrub.command() != GO {
                return Ok(false);
            }
            let Some(mut set) = set? else { return Ok(true) };
            set.since = set.since.max(phys.min_txg);
            if set.root.is_hole() || set.since >= phys.max_txg {
                return Ok(true);
            }
            let scanner = Scanner(Arc::new(Shared {
                pool: self.clone(),
                func: phys.func,
                part,
                max_txg: phys.max_txg,
                bad: Mutex::default(),
                track: Mutex::new(Track::new(start)),
                told: Arc::clone(&told),
                examined: lock(&scrub.state).phys.map_or(0, |phys| phys.examined),
            }));
            let is_seen = walk::walk(self, &set, Arc::new(scanner.clone())).await?;
            scanner.repair().await?;
            if scanner.is_stopped() {
                return Ok(false);
            }
            lock(&scrub.state).is_incomplete |= !is_seen;
            let is_there = {
                let _unchanged = self.reading().await;
                walk::root_of(self, &set).await?.is_some()
            };
            if is_there {
                return Ok(true);
            }
            start = (0, 0);
        }
        lock(&scrub.state).is_incomplete = true;
        Ok(true)
    }

    /// Keeps how far the scan has come. In syncing context.
    pub(super) async fn keep_position(&self, tx: &Tx) -> Result<()> {
        let (phys, position, began) = {
            let mut state = lock(&self.0.scrub.state);
            state.saved_at = Some(world::now());
            (state.phys, state.position, state.began.clone())
        };
        let Some(phys) = phys.filter(|phys| phys.state == ScanState::Scanning) else { return Ok(()) };
        // What failed since may lack something that is before the position.
        let missing =
            self.tree().leaves().into_iter().filter(|leaf| leaf.is_usable() && leaf.missing().is_any());
        let healed: Vec<Guid> = missing
            .filter(|leaf| began.get(&leaf.guid()) == Some(&leaf.missing().failures()))
            .map(|leaf| leaf.guid())
            .take(HEALED_MAX)
            .collect();
        let kept = Kept { start_time: phys.start_time, max_txg: phys.max_txg, position, healed };
        self.store_scan(tx, &phys).await?;
        self.dsl().core().directory().update(tx, POSITION, &kept.to_words()[..]).await
    }

    /// A device joins that has nothing of what is before the position, though one with its guid may have been given it: a
    /// spare that left and comes back. In syncing context.
    pub(crate) async fn withdraw_from_scan(&self, tx: &Tx, device: Guid) -> Result<()> {
        lock(&self.0.scrub.state).began.remove(&device);
        let directory = self.dsl().core().directory();
        let stored = directory.lookup(POSITION).await?;
        match stored.as_ref().and_then(|v| v.as_u64s()).and_then(Kept::from_words) {
            Some(mut kept) if kept.healed.contains(&device) => {
                kept.healed.retain(|guid| *guid != device);
                directory.update(tx, POSITION, &kept.to_words()[..]).await
            }
            _ => Ok(()),
        }
    }

    /// The scan is over: nothing goes on.
    pub(super) async fn forget_position(&self, tx: &Tx) -> Result<()> {
        let directory = self.dsl().core().directory();
        match directory.contains(POSITION).await? {
            true => directory.remove(tx, POSITION).await,
            false => Ok(()),
        }
    }

    /// Finds where the scan that is under way in the pool was.
    pub(super) async fn load_position(&self) -> Result<()> {
        let stored = self.dsl().core().directory().lookup(POSITION).await?;
        let Some(kept) = stored.as_ref().and_then(|v| v.as_u64s()).and_then(Kept::from_words) else {
            return Ok(());
        };
        let mut state = lock(&self.0.scrub.state);
        let is_its = |phys: ScanPhys| (phys.start_time, phys.max_txg) == (kept.start_time, kept.max_txg);
        if state.phys.is_some_and(|phys| phys.state == ScanState::Scanning && is_its(phys)) {
            let leaves = self.tree().leaves().into_iter();
            let healed = leaves.filter(|leaf| leaf.is_usable() && kept.healed.contains(&leaf.guid()));
            state.began = healed.map(|leaf| (leaf.guid(), leaf.missing().failures())).collect();
            state.position = kept.position;
        }
        Ok(())
    }

    /// From time to time a scan keeps its position, though nothing else is written.
    fn keep_position_soon(&self) {
        let every = Duration::from_secs(self.0.tunables.get(Tunable::ScanCheckpointInterval));
        {
            let mut state = lock(&self.0.scrub.state);
            let now = world::now();
            if state.saved_at.is_some_and(|at| now.since(at) < every) {
                return;
            }
            state.saved_at = Some(now);
        }
        if self.suspended().is_some() || self.0.txgs.is_closing() {
            return;
        }
        let pool = self.clone();
        drop(self.spawn(async move {
            let kept = pool.change("keep the position of a scan", |pool, tx| async move {
                pool.keep_position(&tx).await
            });
            // A pool that takes no changes goes on from where it was last kept.
            let _ = kept.await;
        }));
    }
}

/// Looks at the blocks of one part. Clones share everything.
#[derive(Clone)]
struct Scanner(Arc<Shared>);

struct Shared {
    pool: Pool,
    func: ScanFunc,
    part: Part,
    /// The last txg of the scan.
    max_txg: Txg,
    /// Blocks that have something wrong somewhere, though they can be read.
    bad: Mutex<Vec<Bad>>,
    track: Mutex<Track>,
    /// Lost blocks of this part that were counted.
    told: Arc<Mutex<HashSet<Bookmark>>>,
    /// Bytes looked at before this walk.
    examined: u64,
}

struct Bad {
    at: Bookmark,
    bp: BlockPointer,
    turn: Place,
}

/// Where a block is among those that a walk meets in order; `None` for what leads to others, which is seen each time.
fn place_of(at: Bookmark) -> Option<Place> {
    let is_data = at.level == 0 && at.object.0 > 0 && at.object.0 < u64::MAX >> 1 && at.blkid < u64::MAX >> 1;
    is_data.then_some((at.object.0, at.blkid))
}

impl Scanner {
    /// In how many places the block is bad. Of a suspended pool this cannot be said: it waits until that goes on.
    async fn check(&self, bp: &BlockPointer, at: Bookmark) -> Result<u64> {
        let pool = &self.0.pool;
        loop {
            match pool.pipeline().check_block(bp, at).await {
                Err(_) if pool.suspended().is_some() && !self.is_stopped() => {
                    world::sleep(SUSPENDED_LOOK).await;
                }
                checked => return Ok(checked?.bad),
            }
        }
    }

    /// Looks at one block. What is bad waits for its repair.
    async fn look(&self, at: Bookmark, bp: BlockPointer, turn: Place) -> Result<()> {
        let pool = &self.0.pool;
        if bp.as_plain().is_some() {
            self.count_examined(at, bp.asize().0);
            // A resilver knows what is to be written without looking, and looks at nothing else.
            let is_bad = match self.0.func {
                ScanFunc::Resilver => pool.is_missed(&bp),
                _ => self.check(&bp, at).await? > 0,
            };
            if is_bad {
                lock(&self.0.bad).push(Bad { at, bp, turn });
                if lock(&self.0.bad).len() >= BAD_MAX {
                    self.repair().await?;
                }
                return Ok(());
            }
        }
        self.done(turn);
        Ok(())
    }

    fn count_examined(&self, at: Bookmark, asize: u64) {
        let is_first_time = place_of(at).is_some() || lock(&self.0.track).is_new_ground();
        let mut state = lock(&self.0.pool.0.scrub.state);
        state.pass_examined += asize;
        if let Some(phys) = state.phys.as_mut().filter(|_| is_first_time) {
            // A count from disk may be at its end.
            phys.examined = phys.examined.saturating_add(asize);
        }
    }

    fn done(&self, turn: Place) {
        let safe = {
            let mut track = lock(&self.0.track);
            track.done(turn);
            track.safe()
        };
        let own = Position { part: self.0.part, from: safe };
        let mut state = lock(&self.0.pool.0.scrub.state);
        state.position = state.position.max(own);
    }

    /// Whether a lost block was not counted yet.
    fn is_news(&self, at: Bookmark) -> bool {
        let mut told = lock(&self.0.told);
        match told.len() < TOLD_MAX {
            true => told.insert(at),
            false => !told.contains(&at),
        }
    }

    async fn repair(&self) -> Result<()> {
        loop {
            let batch: Vec<Bad> = {
                let mut bad = lock(&self.0.bad);
                let n = bad.len().min(REPAIRS_AT_ONCE);
                bad.drain(..n).collect()
            };
            if batch.is_empty() {
                return Ok(());
            }
            let (blocks, turns): (Vec<_>, Vec<Place>) =
                batch.into_iter().map(|bad| ((bad.at, bad.bp), bad.turn)).unzip();
            // A device that missed a block is not to blame for what it has in its place.
            let blame = self.0.func == ScanFunc::Scrub;
            let (part, max_txg) = (self.0.part, self.0.max_txg);
            let healed = self.0.pool.change("repair", move |pool, tx| async move {
                // The txg that waits for the repair is not an empty one.
                pool.0.touch(&tx).await?;
                // Met in a head, a block may have been overwritten there since, and be in a snapshot that was taken before.
                let later = match part {
                    Part::Head { dir } => pool.was_head(dir, max_txg).await?.map(|id| ObjsetId(id.0)),
                    Part::Mos | Part::Snapshot { .. } => None,
                };
                let healed = pool.heal_blocks(blocks, blame, later).await;
                pool.note_lost(&healed);
                Ok(healed)
            });
            let healed = healed.await?;
            let lost = healed.lost.iter().filter(|lost| self.is_news(lost.at)).count() as u64;
            // With the position, which is kept together with these: what is done again counts again.
            self.0.pool.0.scrub.change(|phys| {
                phys.processed = phys.processed.saturating_add(healed.bytes);
                phys.errors = phys.errors.saturating_add(lost);
            });
            turns.into_iter().for_each(|turn| self.done(turn));
        }
    }
}

impl Check for Scanner {
    fn begins(&self) {
        lock(&self.0.track).begin();
        // What a walk that is begun again has looked at does not count twice.
        self.0.pool.0.scrub.change(|phys| phys.examined = self.0.examined);
    }

    fn block(&self, _set: &Set, at: Bookmark, bp: &BlockPointer) -> Pending<Result<()>> {
        let (own, bp) = (self.clone(), bp.clone());
        let turn = lock(&self.0.track).meet(place_of(at));
        Box::pin(async move {
            let Some(turn) = turn else { return Ok(()) };
            own.0.pool.keep_position_soon();
            own.look(at, bp, turn).await.inspect_err(|_| lock(&own.0.track).freeze())
        })
    }

    fn missed(&self) {
        lock(&self.0.track).freeze();
    }

    fn damaged(&self, _set: &Set, suspect: Suspect) {
        if self.is_news(suspect.at) {
            self.0.pool.0.scrub.change(|phys| phys.errors = phys.errors.saturating_add(1));
        }
        self.0.pool.note_data_error(suspect.at, suspect.bp.as_ref().map_or(Txg::NONE, birth_of));
    }

    fn is_stopped(&self) -> bool {
        self.0.pool.0.scrub.command() != GO
    }
}
