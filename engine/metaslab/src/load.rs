//! Loading: from the entries of a space map to the segments that may be allocated.
//!
//! ```text
//!   the whole region  - ALLOC + FREE entries, in order     what the map says is free
//!                     - unflushed allocs + unflushed frees   what the pool's log adds to that; while the first txg
//!                                                            writes it into the map, what it writes
//!                     - deferred                             free, but not to be touched yet
//! ```
//!
//! A map comes from a disk: an entry that allocates what is allocated or frees what is free is damage, as is one outside
//! of the region. The metaslab is then broken and gives no more space; what is in use in it stays readable.

use crate::entry::{Entry, entries};
use crate::free_space::FreeSpace;
use crate::metaslab::{DEFER, Load, Place, State};
use crate::ranges::{Ranges, Segment};
use ondisk::SpaceAction;
use units::{Error, ObjectId, Result};

/// What a load starts from, taken at one moment under the lock.
#[derive(Debug)]
pub(crate) struct LoadPlan {
    place: Place,
    /// The map and how much of it to read; `None` when there is none: all is free.
    pub(crate) source: Option<(ObjectId, u64)>,
    unflushed_allocs: Ranges,
    unflushed_frees: Ranges,
    deferred: [Ranges; DEFER],
}

impl State {
    /// Begins a load, unless there is nothing to load or a load is under way.
    pub(crate) fn begin_load(&mut self) -> Option<LoadPlan> {
        if !matches!(self.load, Load::Unloaded) {
            return None;
        }
        self.load = Load::Away(Vec::new());
        // Nothing is added to the log while the pool is open: one of both is empty.
        let either = |unflushed: &Ranges, flushed: &Ranges| {
            if unflushed.is_empty() { flushed.clone() } else { unflushed.clone() }
        };
        Some(LoadPlan {
            place: self.place,
            source: self.map.map(|map| (map.object, self.synced_length)).filter(|&(_, length)| length > 0),
            unflushed_allocs: either(&self.unflushed_allocs, &self.flushed_allocs),
            unflushed_frees: either(&self.unflushed_frees, &self.flushed_frees),
            deferred: self.deferred.clone(),
        })
    }

    /// Ends a load. What failed for damage stays closed; what failed otherwise may be tried again.
    pub(crate) fn end_load(&mut self, result: Result<FreeSpace>) -> Result<()> {
        let free = result.inspect_err(|e| {
            let damaged = e.kind() == units::Kind::Corrupt;
            self.load = if damaged { Load::Broken } else { Load::Unloaded };
        })?;
        self.come_back(Box::new(free))
    }

    /// Called off half-way.
    pub(crate) fn abandon_load(&mut self) {
        if matches!(self.load, Load::Away(_)) {
            self.load = Load::Unloaded;
        }
    }

    /// Forgets allocatable space, to save memory.
    pub(crate) fn unload(&mut self) {
        if self.is_loaded() && self.is_idle() {
            self.load = Load::Unloaded;
        }
    }
}

/// Applies a map's entries in pieces, so that the caller can let others run in between.
#[derive(Debug)]
pub(crate) struct Loader {
    plan: LoadPlan,
    free: Ranges,
}

impl Loader {
    pub(crate) fn new(plan: LoadPlan) -> Loader {
        let mut free = Ranges::default();
        free.add(plan.place.region).expect("an empty set overlaps nothing");
        Loader { plan, free }
    }

    pub(crate) fn apply<'a>(&'a mut self, bytes: &'a [u8]) -> impl Iterator<Item = Result<()>> + 'a {
        let place = self.plan.place;
        entries(bytes, place.region, place.shift).map(move |entry| {
            let Entry { action, segment, .. } = entry.map_err(|e| e.at(place))?;
            self.apply_one(action, segment, "space map")
        })
    }

    fn apply_one(&mut self, action: SpaceAction, segment: Segment, source: &str) -> Result<()> {
        let place = self.plan.place;
        match action {
            SpaceAction::Alloc => self.free.remove(segment).map_err(|_| {
                Error::corrupt(format!("{source}: {segment:?} is allocated, but not all of it was free"))
                    .at(place)
            }),
            SpaceAction::Free => self.free.add(segment).map(drop).map_err(|taken| {
                Error::corrupt(format!("{source}: {segment:?} is freed, but {taken:?} was free")).at(place)
            }),
        }
    }

    /// The segments the map says are free, before anything else is applied.
    pub(crate) fn finish(mut self) -> Result<FreeSpace> {
        let unflushed_allocs = std::mem::take(&mut self.plan.unflushed_allocs);
        let unflushed_frees = std::mem::take(&mut self.plan.unflushed_frees);
        let deferred = std::mem::take(&mut self.plan.deferred);
        for segment in unflushed_allocs.iter().chain(deferred.iter().flat_map(|set| set.iter())) {
            self.apply_one(SpaceAction::Alloc, segment, "log space map")?;
        }
        for segment in unflushed_frees.iter() {
            self.apply_one(SpaceAction::Free, segment, "log space map")?;
        }
        Ok(FreeSpace::new(self.free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use crate::metaslab::{Metaslab, sync::Pass};
    use crate::space_log::MapInfo;
    use ondisk::SpaceMapPhys;
    use units::{Txg, VdevId};

    /// A pool of OpenZFS that was opened while its devices were being initialized: a load that began while the first txg
    /// wrote the log into the map read neither, took what was in use for free, and gave it out again.
    #[test]
    fn a_load_that_begins_while_the_log_is_written_into_the_map_knows_what_the_log_said() {
        let region = Segment::new(0, 1 << 20);
        let place = Place { vdev: VdevId(0), index: 0, region, shift: 9, class: Class::Normal };
        let object = ObjectId(7);
        let header = SpaceMapPhys { object, length: 0, allocated: 8192, histogram: None };
        let metaslab = Metaslab::new(place, Some(MapInfo { object, block_size: 4096, header })).unwrap();
        let used = Segment::new(4096, 8192);
        let mut state = metaslab.lock();
        state.unflushed_allocs.add(used).unwrap();
        state.plan_sync(Pass { txg: Txg(5), pass: 1, long_entries: true }).unwrap();
        assert!(!state.has_unflushed(), "it is in the map, behind what was there");
        let plan = state.begin_load().unwrap();
        assert_eq!(plan.source, None, "the map is read as the txg before left it");
        let free = Loader::new(plan).finish().unwrap();
        assert_eq!(free.ranges().overlapping(used), None);
        state.end_load(Ok(free)).unwrap();
        state.plan_sync(Pass { txg: Txg(5), pass: 2, long_entries: true }).unwrap();
        state.sync_done(Txg(5), true).unwrap();
        assert!(state.flushed_allocs.is_empty());
        assert_eq!(state.allocatable().unwrap().ranges().overlapping(used), None);
    }
}
