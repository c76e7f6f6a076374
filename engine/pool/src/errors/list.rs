//! Listing data errors: which of them are still true, and of what.
//!
//! ```text
//!   an entry ─▶ the datasets that have this very block ─▶ none: it is gone, and is taken out of the log
//!                  with head_errlog: the head, its snapshots, its clones …       └ else by object ─▶ names
//!                  without: the one that it names
//! ```
//!
//! A block is shared by the snapshots taken since its birth, and by what was cloned from those: so the oldest snapshot that
//! may have it is looked for, back along the line of the head and of its origins, and from there on all that branches off.
//!
//! A listing looks at so many entries, and takes so many looks for blocks; what is left is only counted. It is remembered
//! until the next txg, or until something is met.

use super::state::{DataErrors, Memo};
use super::{bookmark, names};
use crate::pool::{Pool, lock};
use crate::walk::dataset_now;
use dsl::error_log::{ErrorLog, LoggedError};
use ondisk::BlockBookmark;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{Kind, ObjectId, ObjsetId, Result, Txg};
use world::Boxed;
use zio::Bookmark;

/// Entries that one listing looks at, and objects it names.
const ENTRIES_MAX: usize = 4096;
const NAMED_MAX: usize = 1000;
/// Looks for a block in a dataset; each is a walk down one tree, mostly in the cache.
const LOOKS_MAX: usize = 20_000;
/// Blocks read to see whether they are still bad.
const READS_MAX: usize = 256;

/// How much one listing may still do.
struct Budget {
    looks: usize,
    reads: usize,
}

/// A block of one listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    error: LoggedError,
    /// It is named by its very object set.
    is_exact: bool,
}

impl Pool {
    /// The data errors that are true by now, by name. What turns out to be gone is taken out of the log.
    pub fn data_errors(&self) -> Boxed<'_, Arc<DataErrors>> {
        Box::pin(async move {
            if self.data_error_count() == 0 {
                return Arc::default();
            }
            let txg = self.uberblock().txg;
            let version = {
                let state = lock(&self.0.errors.state);
                let lost = self.0.pipeline.sick().lost_count().0;
                match &state.listed {
                    Some(memo) if memo.version == state.version && memo.txg == txg && lost == 0 => {
                        return memo.errors.clone();
                    }
                    _ => state.version,
                }
            };
            let errors = {
                let _reading = self.reading().await;
                Arc::new(self.list_errors().await)
            };
            lock(&self.0.errors.state).listed = Some(Memo { version, txg, errors: errors.clone() });
            errors
        })
    }

    async fn list_errors(&self) -> DataErrors {
        let (entries, left) = self.entries().await;
        let mut budget = Budget { looks: LOOKS_MAX, reads: READS_MAX };
        let (mut gone, mut objects, mut more) = (Vec::new(), Objects::new(), left);
        let mut blocks = 0;
        for entry in &entries {
            if budget.looks == 0 {
                more += 1;
                continue;
            }
            let error = entry.error;
            let sets = match entry.is_exact {
                true => self
                    .is_still_bad(&error, &mut budget)
                    .await
                    .then_some(error.at.objset)
                    .into_iter()
                    .collect(),
                false => self.holders(&error, &mut budget).await,
            };
            if sets.is_empty() {
                gone.push(error);
                continue;
            }
            let is_known = |set: &ObjsetId| objects.contains_key(&(*set, error.at.object));
            if objects.len() >= NAMED_MAX && !sets.iter().any(is_known) {
                more += 1;
                continue;
            }
            blocks += 1;
            for set in sets {
                objects.entry((set, error.at.object)).or_default().insert((error.at.level, error.at.block));
            }
        }
        self.note_data_errors_gone(&gone);
        // With a dataset that was destroyed, its entries went.
        if let Ok(logged) = self.dsl().logged_errors_len().await {
            lock(&self.0.errors.state).logged = logged;
        }
        DataErrors { errors: names::name(self, objects).await, blocks, more }
    }

    /// What is known, each once, and how much more there is.
    async fn entries(&self) -> (Vec<Entry>, u64) {
        let by_head = self.dsl().logs_errors_by_head();
        let mut entries = BTreeSet::new();
        let mut more = 0;
        for lost in self.0.pipeline.sick().lost(ENTRIES_MAX) {
            let error = LoggedError { at: super::block_bookmark(lost.at), birth: lost.birth() };
            entries.insert(Entry { error, is_exact: true });
        }
        for (at, birth) in lock(&self.0.errors.state).met.iter().take(ENTRIES_MAX) {
            entries.insert(Entry {
                error: LoggedError { at: super::block_bookmark(*at), birth: *birth },
                is_exact: true,
            });
        }
        for log in ErrorLog::BOTH {
            let room = ENTRIES_MAX.saturating_sub(entries.len());
            match self.dsl().logged_errors(log, room).await {
                Ok(found) => {
                    let taken = found.errors.len() as u64;
                    entries.extend(found.errors.into_iter().map(|error| Entry { error, is_exact: !by_head }));
                    more += found.senseless;
                    if found.is_cut {
                        let len = self.dsl().error_log_len(log).await.unwrap_or(taken);
                        more += len.saturating_sub(taken + found.senseless);
                    }
                }
                // What cannot be read is not known to be good.
                Err(_) => more += 1,
            }
        }
        // Of what was just met the log may know the place, but not the birth.
        let births: BTreeSet<BlockBookmark> =
            entries.iter().filter(|e| e.error.birth != Txg::NONE).map(|e| e.error.at).collect();
        if !by_head {
            entries.retain(|e| e.error.birth != Txg::NONE || !births.contains(&e.error.at));
        }
        (entries.into_iter().collect(), more)
    }

    /// Whether the block that stands in this place, in this object set, is the one that is bad.
    async fn is_still_bad(&self, error: &LoggedError, budget: &mut Budget) -> bool {
        let known = match error.birth {
            Txg::NONE => lock(&self.0.errors.state).births.get(&error.at).copied().unwrap_or(Txg::NONE),
            birth => birth,
        };
        if known != Txg::NONE {
            return self.has_block(error, known, budget).await;
        }
        budget.looks = budget.looks.saturating_sub(1);
        let at = bookmark(&error.at);
        let birth = match self.birth_at(at).await {
            Ok(Some(birth)) => birth,
            Ok(None) => return false,
            Err(_) => return true,
        };
        if budget.reads == 0 {
            return true;
        }
        budget.reads -= 1;
        let is_bad = self.reads_badly(at).await;
        if is_bad {
            let mut state = lock(&self.0.errors.state);
            if state.births.len() < super::BIRTHS_MAX {
                state.births.insert(error.at, birth);
            }
        }
        is_bad
    }

    async fn reads_badly(&self, at: Bookmark) -> bool {
        match self.block_at(at).await {
            Ok(Some(bp)) => self.pipeline().check_block(&bp, at).await.is_err(),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// What cannot be looked up is not known to be gone.
    async fn has_block(&self, error: &LoggedError, birth: Txg, budget: &mut Budget) -> bool {
        budget.looks = budget.looks.saturating_sub(1);
        self.birth_at(bookmark(&error.at)).await.map_or(true, |now| now == Some(birth))
    }

    /// A dataset that has the block of an entry by now; none when it is no more, or another one.
    pub(crate) async fn holder_of(&self, error: &LoggedError) -> Option<ObjsetId> {
        let mut budget = Budget { looks: LOOKS_MAX, reads: 1 };
        self.holders(error, &mut budget).await.first().copied()
    }

    /// The datasets that have the block, of an entry that names a head.
    async fn holders(&self, error: &LoggedError, budget: &mut Budget) -> Vec<ObjsetId> {
        if error.at.objset == ObjsetId::MOS || error.birth == Txg::NONE {
            return self.is_still_bad(error, budget).await.then_some(error.at.objset).into_iter().collect();
        }
        match self.branch(error, budget).await {
            Ok(sets) => sets,
            Err(e) if e.kind() == Kind::NotFound => Vec::new(),
            // Damaged itself: not known to be gone.
            Err(_) => vec![error.at.objset],
        }
    }

    async fn branch(&self, error: &LoggedError, budget: &mut Budget) -> Result<Vec<ObjsetId>> {
        let core = self.dsl().core();
        // Gone, its object may be something else by now.
        let found = dataset_now(self, ObjectId(error.at.objset.0)).await?;
        let Some(mut oldest) = found else { return Ok(Vec::new()) };
        let mut steps = 0;
        // Snapshots go back in time; one that does not is damage, and ends the way.
        while let Some(before) = oldest.prev_snap.some().filter(|_| oldest.prev_snap_txg >= error.birth) {
            let (_, phys) = core.dataset(before).await?;
            steps += 1;
            if steps > 1 && phys.creation_txg >= oldest.creation_txg {
                break;
            }
            oldest = phys;
        }
        let mut heads = vec![core.dir(oldest.dir).await?.1.head];
        let mut seen = BTreeSet::new();
        let mut holders = Vec::new();
        while let Some(head) = heads.pop() {
            if seen.insert(head) {
                heads.extend(self.holders_in_line(error, head, &mut holders, budget).await?);
            }
        }
        Ok(holders)
    }

    /// Adds a head and its snapshots that have the block. Answers the clones of those.
    async fn holders_in_line(
        &self,
        error: &LoggedError,
        head: ObjectId,
        holders: &mut Vec<ObjsetId>,
        budget: &mut Budget,
    ) -> Result<Vec<ObjectId>> {
        let core = self.dsl().core();
        let mut next = Some(head);
        let mut snapshots = BTreeSet::new();
        let mut dir = None;
        let mut seen = BTreeSet::new();
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            let (_, phys) = core.dataset(id).await?;
            if *dir.get_or_insert(phys.dir) != phys.dir {
                break;
            }
            let at = BlockBookmark { objset: ObjsetId(id.0), ..error.at };
            if budget.looks == 0 || self.has_block(&LoggedError { at, ..*error }, error.birth, budget).await {
                holders.push(ObjsetId(id.0));
                if id != head {
                    snapshots.insert(id);
                }
            }
            next = phys.prev_snap.some().filter(|_| phys.prev_snap_txg >= error.birth);
        }
        let mut clones = Vec::new();
        let list = match dir {
            Some(dir) if !snapshots.is_empty() => core.dir(dir).await?.1.clones.some(),
            _ => None,
        };
        if let Some(list) = list {
            for (_, clone) in dsl::zaps::numbers(&core.table(list).await?).await? {
                let (_, phys) = core.dataset(ObjectId(clone)).await?;
                if snapshots.contains(&core.dir(phys.dir).await?.1.origin) {
                    clones.push(ObjectId(clone));
                }
            }
        }
        Ok(clones)
    }
}

/// Bad blocks by object: levels and numbers.
pub(super) type Objects = BTreeMap<(ObjsetId, ObjectId), BTreeSet<(i64, u64)>>;
