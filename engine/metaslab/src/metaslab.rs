//! One metaslab: a region of a top-level vdev, and the way of each byte through it.
//!
//! ```text
//!                       allocate                       sync writes ALLOC entries
//!   allocatable ───────────────────▶ allocating[txg] ──────────────────────────▶ (in use)
//!     ▲     ▲          unallocate          │                                        │ free
//!     │     └──────────────────────────────┘                                        ▼
//!     │       sync_done, two txgs later            sync_done         sync       freeing[txg]
//!     └────────────────────────────── deferred[2] ◀───────── freed ◀───────────────┘ writes FREE entries
//! ```
//!
//! What was freed in a txg stays untouched for two more: the pool can go back to either of the two uberblocks before, and
//! find every block it knows of.
//!
//! Allocatable space is known in memory only while the metaslab is *loaded*. Freeing needs no load: it appends to the
//! map. While allocatable space is *away* (being read, or written out whole), what becomes allocatable is noted as
//! arrivals and added when it comes back.
//!
//! This file holds the state and what changes it at once; `load` and `sync` hold the two longer walks.

pub(crate) mod sync;

use crate::class::Class;
use crate::free_space::FreeSpace;
use crate::histogram::{Histogram, Weight, fragmentation};
use crate::ranges::{Ranges, Segment};
use crate::space_log::MapInfo;
use ondisk::SpaceMapPhys;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Error, Result, Txg, VdevId};

/// For how many txgs freed space stays as it was.
pub(crate) const DEFER: usize = 2;

/// An active metaslab is left when its largest segments have halved this often since it was chosen.
const SWITCH_AFTER_HALVINGS: u32 = 2;

/// What never changes about a metaslab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) vdev: VdevId,
    pub(crate) index: usize,
    pub(crate) region: Segment,
    /// The vdev's ashift: the unit of everything in the metaslab and in its map.
    pub(crate) shift: u32,
    pub(crate) class: Class,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "vdev {} metaslab {}", self.vdev, self.index)
    }
}

#[derive(Debug)]
pub(crate) struct Metaslab {
    pub(crate) place: Place,
    /// The weight as last computed, readable without the lock.
    weight: AtomicU64,
    state: Mutex<State>,
}

/// Where knowledge of allocatable space is.
#[derive(Debug)]
pub(crate) enum Load {
    Unloaded,
    /// Being read or written; what becomes allocatable meanwhile.
    Away(Vec<Segment>),
    Loaded(Box<FreeSpace>),
    /// Its map makes no sense: nothing is allocated here any more.
    Broken,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) place: Place,
    pub(crate) load: Load,
    pub(crate) map: Option<MapInfo>,
    /// The length of the map when the last txg was done: what lies beyond belongs to the txg being synced.
    pub(crate) synced_length: u64,
    /// Allocated according to the map and the unflushed changes.
    pub(crate) allocated: u64,
    pub(crate) allocating: [Ranges; Txg::SLOTS],
    pub(crate) freeing: [Ranges; Txg::SLOTS],
    pub(crate) freed: Ranges,
    pub(crate) deferred: [Ranges; DEFER],
    /// Changes that stand in the pool's log space maps and not yet in the map of this metaslab.
    pub(crate) unflushed_allocs: Ranges,
    pub(crate) unflushed_frees: Ranges,
    /// What the txg being synced has written from the log into the map, until that is done: a load that begins meanwhile
    /// reads the map only as far as the txg before had written it.
    pub(crate) flushed_allocs: Ranges,
    pub(crate) flushed_frees: Ranges,
    /// Entries of log space maps older than this are in the map already.
    pub(crate) unflushed_txg: Txg,
    /// Allocated by the passes of the txg being synced.
    pub(crate) allocated_now: u64,
    /// Free segments that were handed out to be discarded: free, but not allocatable.
    pub(crate) trimming: Ranges,
    /// Freed ranges worth discarding; `None` when no device is told.
    pub(crate) trim: Option<Ranges>,
    /// The size (log) of the largest segments when this became the active metaslab.
    active_log: u32,
    /// The txg in which it was last allocated from.
    pub(crate) used_txg: Txg,
}

impl Metaslab {
    pub(crate) fn new(place: Place, map: Option<MapInfo>) -> Result<Metaslab> {
        let header = map.map(|m| m.header).unwrap_or_default();
        let allocated = u64::try_from(header.allocated).ok().filter(|&a| a <= place.region.len());
        let allocated = allocated.ok_or_else(|| {
            let size = place.region.len();
            Error::corrupt(format!("space map header: {} of {size} bytes allocated", header.allocated))
                .at(place)
        })?;
        let block_size = map.map_or(units::SECTOR, |m| m.block_size);
        if !header.length.is_multiple_of(8) || block_size == 0 || !block_size.is_multiple_of(units::SECTOR) {
            let what = format!("space map: {} bytes in blocks of {block_size}", header.length);
            return Err(Error::corrupt(what).at(place));
        }
        let state = State {
            place,
            load: Load::Unloaded,
            map,
            synced_length: header.length,
            allocated,
            allocating: Default::default(),
            freeing: Default::default(),
            freed: Ranges::default(),
            deferred: Default::default(),
            unflushed_allocs: Ranges::default(),
            unflushed_frees: Ranges::default(),
            flushed_allocs: Ranges::default(),
            flushed_frees: Ranges::default(),
            unflushed_txg: Txg::NONE,
            allocated_now: 0,
            trimming: Ranges::default(),
            trim: None,
            active_log: 0,
            used_txg: Txg::NONE,
        };
        let weight = AtomicU64::new(state.weight().0);
        Ok(Metaslab { place, weight, state: Mutex::new(state) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this lock is a broken promise of ours; the next caller must not allocate from here as if
        // nothing had happened, but a pool has other metaslabs, and a poisoned lock would stop them all.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn weight(&self) -> Weight {
        Weight(self.weight.load(Relaxed))
    }

    /// Takes it out of the choice until its weight is computed again.
    pub(crate) fn shun(&self) {
        self.weight.store(0, Relaxed);
    }

    pub(crate) fn reweigh(&self, state: &State) {
        self.weight.store(state.weight().0, Relaxed);
    }
}

/// What became of an attempt to allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// At this offset; whether it is the first of its txg in this metaslab.
    Placed {
        offset: u64,
        dirtied: bool,
        tired: bool,
    },
    NoRoom,
    NotLoaded,
}

impl State {
    pub(crate) fn is_loaded(&self) -> bool {
        matches!(self.load, Load::Loaded(_))
    }

    pub(crate) fn is_away(&self) -> bool {
        matches!(self.load, Load::Away(_))
    }

    /// Allocatable space, when it is known.
    pub(crate) fn allocatable(&self) -> Option<&FreeSpace> {
        match &self.load {
            Load::Loaded(free) => Some(free),
            _ => None,
        }
    }

    pub(crate) fn allocate(&mut self, size: u64, txg: Txg) -> Attempt {
        let Load::Loaded(free) = &mut self.load else {
            return if matches!(self.load, Load::Broken) { Attempt::NoRoom } else { Attempt::NotLoaded };
        };
        let Some(offset) = free.allocate(size, self.place.region.len()) else { return Attempt::NoRoom };
        let tired = free.largest_log().is_none_or(|log| log + SWITCH_AFTER_HALVINGS < self.active_log);
        let segment = Segment::new(offset, size);
        self.used_txg = txg;
        Attempt::Placed { offset, dirtied: self.note_allocated(segment, txg), tired }
    }

    /// Remembers how large its segments are, now that it becomes the active metaslab.
    pub(crate) fn activate(&mut self) {
        if let Load::Loaded(free) = &self.load {
            self.active_log = free.largest_log().unwrap_or(0);
        }
    }

    /// True when this dirties the metaslab in `txg`.
    fn note_allocated(&mut self, segment: Segment, txg: Txg) -> bool {
        if let Some(trim) = &mut self.trim {
            let mut rest = Ranges::default();
            trim.cancel_or_add(segment, &mut rest).expect("an empty set overlaps nothing");
        }
        let allocating = &mut self.allocating[txg.slot()];
        let dirtied = allocating.is_empty();
        allocating.add(segment).expect("what was allocatable is not being allocated already");
        dirtied
    }

    /// Takes back an allocation of this txg, which has not been written to the map.
    pub(crate) fn unallocate(&mut self, segment: Segment, txg: Txg) -> Result<()> {
        let taken = self.allocating[txg.slot()].remove(segment);
        taken.map_err(|_| {
            Error::invalid(format!("unallocate {segment:?}, which was not allocated in txg {txg}"))
                .at(self.place)
        })?;
        self.make_allocatable(segment)
    }

    /// Takes a segment that the intent log wrote to and no txg knows of. True when this dirties the metaslab.
    pub(crate) fn claim(&mut self, segment: Segment, txg: Txg) -> Result<bool> {
        let Load::Loaded(free) = &mut self.load else {
            return Err(Error::corrupt(format!("claim log block {segment:?}: the space map is damaged"))
                .at(self.place));
        };
        free.remove(segment).map_err(|_| {
            Error::corrupt(format!("claim log block {segment:?}: the space is not free")).at(self.place)
        })?;
        Ok(self.note_allocated(segment, txg))
    }

    /// Frees what a block pointer says is in use. True when this dirties the metaslab in `txg`.
    pub(crate) fn free(&mut self, segment: Segment, txg: Txg) -> Result<bool> {
        if let Some(free) = self.known_free(segment) {
            return Err(Error::corrupt(format!("free {segment:?}: {free:?} is free already")).at(self.place));
        }
        let freeing = &mut self.freeing[txg.slot()];
        let dirtied = freeing.is_empty();
        freeing.add(segment).expect("what is not free overlaps nothing that is being freed");
        Ok(dirtied)
    }

    /// A segment in `segment` that is surely free, as far as is known without loading.
    fn known_free(&self, segment: Segment) -> Option<Segment> {
        let waiting = self.freeing.iter().chain(&self.deferred).chain([&self.freed, &self.trimming]);
        let loaded = match &self.load {
            Load::Loaded(free) => free.ranges().overlapping(segment),
            _ => None,
        };
        loaded.or_else(|| waiting.filter(|set| !set.is_empty()).find_map(|set| set.overlapping(segment)))
    }

    /// Adds a segment to allocatable space, wherever that is.
    pub(crate) fn make_allocatable(&mut self, segment: Segment) -> Result<()> {
        match &mut self.load {
            Load::Loaded(free) => free.add(segment).map_err(|taken| {
                Error::corrupt(format!("{segment:?} becomes free, but {taken:?} is free already"))
                    .at(self.place)
            }),
            Load::Away(arrivals) => {
                arrivals.push(segment);
                Ok(())
            }
            Load::Unloaded | Load::Broken => Ok(()),
        }
    }

    /// Puts allocatable space back after it was away.
    pub(crate) fn come_back(&mut self, mut free: Box<FreeSpace>) -> Result<()> {
        let Load::Away(arrivals) = std::mem::replace(&mut self.load, Load::Broken) else {
            panic!("only what is away comes back");
        };
        for segment in arrivals {
            free.add(segment).map_err(|taken| {
                Error::corrupt(format!("{segment:?} became free, but {taken:?} was free already"))
                    .at(self.place)
            })?;
        }
        self.load = Load::Loaded(free);
        Ok(())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.allocating.iter().all(Ranges::is_empty) && self.trimming.is_empty() && self.allocated_now == 0
    }

    /// Nothing is in it, nothing is on its way in or out, and its map says so.
    pub(crate) fn is_empty(&self) -> bool {
        self.allocated == 0
            && self.is_idle()
            && self.freeing.iter().all(Ranges::is_empty)
            && self.freed.is_empty()
            && self.deferred_space() == 0
            && !self.has_unflushed()
    }

    /// What waits until it may be used again.
    pub(crate) fn deferred_space(&self) -> u64 {
        self.deferred.iter().map(Ranges::space).sum()
    }

    fn header_histogram(&self) -> Option<[u64; SpaceMapPhys::BUCKETS]> {
        self.map.and_then(|map| map.header.histogram)
    }

    /// In percent; `None` when its map is of a pool that keeps no histograms.
    pub(crate) fn fragmentation(&self) -> Option<u64> {
        match self.map {
            None => Some(0),
            Some(_) => self.header_histogram().map(|h| fragmentation(&h, self.place.shift)),
        }
    }

    pub(crate) fn weight(&self) -> Weight {
        match &self.load {
            Load::Broken => Weight(0),
            Load::Loaded(free) => Weight::of_histogram(&free.histogram()),
            Load::Unloaded | Load::Away(_) => self.weight_from_map(),
        }
    }

    fn weight_from_map(&self) -> Weight {
        let free = self.place.region.len() - self.allocated.min(self.place.region.len());
        match self.header_histogram() {
            Some(map) if self.allocated > 0 => {
                let mut histogram = Histogram::from_map(&map, self.place.shift);
                for waiting in self.deferred.iter().chain([&self.freed]) {
                    histogram = histogram.without(waiting);
                }
                let known = Weight::of_histogram(&histogram);
                // A histogram that lost count must not hide the last free bytes: they rank last instead.
                if known == Weight(0) && free > self.deferred_space() {
                    return Weight::of_segments(self.place.shift, 1);
                }
                known
            }
            _ => Weight::of_space(free),
        }
    }
}
