//! The metaslabs of one vdev that serve one class, and the choice among them.
//!
//! ```text
//!   active[0] ── first copies     the metaslab in use for each copy of a block: copies on one vdev go to
//!   active[1] ── second copies    different metaslabs, far apart
//!   active[2] ── third copies
//! ```
//!
//! The active metaslab is used until it has no room for a block or its large segments are eaten up; then the metaslab with
//! the greatest weight takes its place. One that is not loaded is passed over while a loaded one will do: loading
//! waits for disks. A caller that gets [`Found::Load`] has to load and ask again.

use crate::class::Class;
use crate::metaslab::sync::Settled;
use crate::metaslab::{Attempt, Metaslab};
use crate::usage::Usage;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Txg, VdevId};

/// A block has up to three copies.
pub(crate) const COPIES_MAX: usize = 3;

/// Bytes a disk gets in one turn (`metaslab_aliquot`).
const ALIQUOT: u64 = 2 << 20;

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) vdev: VdevId,
    pub(crate) class: Class,
    members: Vec<Arc<Metaslab>>,
    active: Mutex<[Option<usize>; COPIES_MAX]>,
    data_disks: u64,
    deflate_ratio: u64,
    space: u64,
    allocated: AtomicI64,
    deferred: AtomicI64,
    quota: AtomicU64,
    closed: AtomicBool,
}

/// What a group answers.
#[derive(Debug)]
pub(crate) enum Found {
    At {
        metaslab: Arc<Metaslab>,
        offset: u64,
        dirtied: bool,
    },
    /// There may be room in this one, once it is loaded.
    Load(Arc<Metaslab>),
    NoRoom,
}

impl Group {
    pub(crate) fn new(
        vdev: VdevId,
        class: Class,
        members: Vec<Arc<Metaslab>>,
        data_disks: u64,
        deflate_ratio: u64,
    ) -> Group {
        let (mut allocated, mut deferred) = (0, 0);
        for state in members.iter().map(|m| m.lock()) {
            let settled = state.settled();
            allocated += settled.allocated;
            deferred += settled.deferred;
        }
        Group {
            vdev,
            class,
            active: Mutex::default(),
            data_disks,
            deflate_ratio,
            space: members.iter().map(|m| m.place.region.len()).sum(),
            allocated: AtomicI64::new(allocated + deferred),
            deferred: AtomicI64::new(deferred),
            quota: AtomicU64::new(ALIQUOT * data_disks),
            closed: AtomicBool::new(false),
            members,
        }
    }

    pub(crate) fn members(&self) -> &[Arc<Metaslab>] {
        &self.members
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Relaxed)
    }

    /// Whether blocks may be put here: not on a vdev that is failing or being removed.
    pub(crate) fn set_open(&self, open: bool) {
        self.closed.store(!open, Relaxed);
    }

    /// Takes `size` bytes for the `nth` copy of a block, not in a metaslab of `avoid` (by index on the vdev) unless
    /// `hard`.
    pub(crate) fn allocate(&self, size: u64, nth: usize, avoid: &[usize], hard: bool, txg: Txg) -> Found {
        if !self.is_open() {
            return Found::NoRoom;
        }
        let active = self.active()[nth];
        if let Some(index) = active.filter(|&i| !self.is_one_of(i, avoid)) {
            match self.try_member(index, size, nth, txg, false) {
                Some(Found::Load(_)) | None => self.passivate(index, nth),
                Some(found) => return found,
            }
        }
        self.choose(size, nth, avoid, hard, txg)
    }

    /// Tries all in the order of their weights.
    fn choose(&self, size: u64, nth: usize, avoid: &[usize], hard: bool, txg: Txg) -> Found {
        let in_use = *self.active();
        let taken = |i: &usize| self.is_one_of(*i, avoid) || in_use.contains(&Some(*i));
        let mut candidates: Vec<usize> = (0..self.members.len())
            .filter(|&i| self.members[i].weight().may_hold(size))
            .filter(|i| hard || !taken(i))
            .collect();
        // The sort is stable: of equals the first on the device, where disks are fastest.
        candidates.sort_by_key(|&i| (taken(&i), std::cmp::Reverse(self.members[i].weight())));
        let mut to_load = None;
        for index in candidates {
            match self.try_member(index, size, nth, txg, true) {
                Some(Found::Load(metaslab)) => {
                    to_load.get_or_insert(metaslab);
                }
                Some(found) => {
                    self.active()[nth] = Some(index);
                    return found;
                }
                None => {}
            }
        }
        to_load.map_or(Found::NoRoom, Found::Load)
    }

    fn try_member(&self, index: usize, size: u64, nth: usize, txg: Txg, activate: bool) -> Option<Found> {
        let metaslab = &self.members[index];
        let mut state = metaslab.lock();
        if activate {
            state.activate();
        }
        match state.allocate(size, txg) {
            Attempt::Placed { offset, dirtied, tired } => {
                if tired {
                    metaslab.reweigh(&state);
                    drop(state);
                    self.passivate(index, nth);
                }
                Some(Found::At { metaslab: metaslab.clone(), offset, dirtied })
            }
            Attempt::NotLoaded => Some(Found::Load(metaslab.clone())),
            Attempt::NoRoom => {
                metaslab.reweigh(&state);
                None
            }
        }
    }

    fn is_one_of(&self, member: usize, indices: &[usize]) -> bool {
        indices.contains(&self.members[member].place.index)
    }

    fn passivate(&self, index: usize, nth: usize) {
        let mut active = self.active();
        if active[nth] == Some(index) {
            active[nth] = None;
        }
    }

    /// The `count` metaslabs that will be chosen next.
    pub(crate) fn best(&self, count: usize) -> Vec<Arc<Metaslab>> {
        let mut order: Vec<_> = self.members.iter().filter(|m| m.weight().0 > 0).collect();
        order.sort_by_key(|m| std::cmp::Reverse(m.weight()));
        order.into_iter().take(count).cloned().collect()
    }

    /// Whether blocks are being put there now.
    pub(crate) fn is_active(&self, metaslab: &Metaslab) -> bool {
        let active = *self.active();
        active.into_iter().flatten().any(|i| self.members[i].place.index == metaslab.place.index)
    }

    /// Counts what a log says of this vdev beyond its maps.
    pub(crate) fn note_allocated(&self, change: i64) {
        self.allocated.fetch_add(change, Relaxed);
    }

    pub(crate) fn settle(&self, settled: Settled) {
        self.allocated.fetch_add(settled.allocated + settled.deferred, Relaxed);
        self.deferred.fetch_add(settled.deferred, Relaxed);
    }

    pub(crate) fn usage(&self) -> Usage {
        let positive = |n: &AtomicI64| n.load(Relaxed).max(0) as u64;
        Usage::of(self.space, positive(&self.allocated), positive(&self.deferred), self.deflate_ratio)
    }

    /// The mean over free bytes, in percent; `None` when too little is known.
    pub(crate) fn fragmentation(&self) -> Option<u64> {
        let (mut known, mut free, mut weighted) = (0, 0u128, 0u128);
        for member in &self.members {
            let state = member.lock();
            let Some(fragmentation) = state.fragmentation() else { continue };
            let bytes = u128::from(member.place.region.len().saturating_sub(state.allocated));
            known += 1;
            free += bytes;
            weighted += bytes * u128::from(fragmentation);
        }
        if known * 2 < self.members.len() {
            return None;
        }
        weighted.checked_div(free).map(|percent| percent as u64)
    }

    pub(crate) fn quota(&self) -> u64 {
        self.quota.load(Relaxed)
    }

    /// Twice as large or twice as empty as the others: twice the quota.
    pub(crate) fn set_quota(&self, mean_space: u64, class_space: u64, class_free: u64) {
        let usage = self.usage();
        let base = (ALIQUOT * self.data_disks) as f64;
        let size = self.space as f64 / mean_space.max(1) as f64;
        let emptiness = usage.free() as f64 / self.space.max(1) as f64;
        let class_emptiness = class_free.max(1) as f64 / class_space.max(1) as f64;
        let quota = base * size * emptiness / class_emptiness;
        self.quota.store((quota as u64).max(units::SECTOR), Relaxed);
    }

    fn active(&self) -> MutexGuard<'_, [Option<usize>; COPIES_MAX]> {
        // No code that can panic runs under this lock.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
