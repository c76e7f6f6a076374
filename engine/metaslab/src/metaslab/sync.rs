//! Writing a txg's changes to the space map of a metaslab.
//!
//! ```text
//!   pass 1   [condense: ALLOC all, FREE what is free]   or   [flush what came from the pool's log]
//!            ALLOC allocating, FREE freeing
//!   pass 2.. ALLOC allocating, FREE freeing             what writing the maps themselves has changed; ever less
//!   done     freed ──▶ deferred ──▶ allocatable
//! ```
//!
//! A map grows with every change. When it has twice the size of a fresh description of the same state, it is condensed:
//! rewritten as that description. The condensed map says what the txgs *before* this one left, so that the entries
//! of this one follow in the usual way.
//!
//! [`State::plan_sync`] decides, changes the state and says what to write; the caller writes. If that fails, the txg
//! fails, and with it the pool: there is no going back.

use crate::entry::MapWriter;
use crate::free_space::FreeSpace;
use crate::histogram::Histogram;
use crate::metaslab::{DEFER, Load, State};
use crate::ranges::{Ranges, Segment};
use crate::space_log::{MapInfo, MapWrite};
use ondisk::{SpaceAction, SpaceMapLog, SpaceMapPhys};
use units::{Endian, Error, ObjectId, Result, Txg};

/// How many times the size of its optimum a map may have, in percent, and the blocks it may have in any case.
const CONDENSE_PERCENT: u64 = 200;
const CONDENSE_BLOCKS: u64 = 4;
/// The longest run of an entry of one word, in units.
const SHORT_RUN_MAX: u64 = 1 << 15;

/// How a metaslab's map is written this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) txg: Txg,
    pub(crate) pass: u32,
    /// Feature `spacemap_v2`.
    pub(crate) long_entries: bool,
}

/// What a finished txg changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) allocated: i64,
    pub(crate) deferred: i64,
}

impl State {
    /// Whether this pass has anything to write here.
    pub(crate) fn is_dirty(&self, txg: Txg) -> bool {
        !self.allocating[txg.slot()].is_empty()
            || !self.freeing[txg.slot()].is_empty()
            || self.has_unflushed()
    }

    pub(crate) fn has_unflushed(&self) -> bool {
        !self.unflushed_allocs.is_empty() || !self.unflushed_frees.is_empty()
    }

    /// Takes this txg's changes, and says what to write to which map. The map must exist.
    pub(crate) fn plan_sync(&mut self, how: Pass) -> Result<(ObjectId, MapWrite)> {
        let mut map = self.map.expect("a dirty metaslab was given a map before it is synced");
        let condensed = if how.pass == 1 { self.condense(&map, how) } else { None };
        let truncate = condensed.is_some();
        let at = if truncate { 0 } else { map.header.length };
        let mut writer = condensed.unwrap_or_else(|| self.writer(&map, at, how));
        self.flush(&mut writer);
        let allocating = std::mem::take(&mut self.allocating[how.txg.slot()]);
        let freeing = std::mem::take(&mut self.freeing[how.txg.slot()]);
        writer.write(SpaceAction::Alloc, allocating.iter());
        writer.write(SpaceAction::Free, freeing.iter());
        let change = allocating.space() as i64 - freeing.space() as i64;
        self.allocated = self.allocated.checked_add_signed(change).ok_or_else(|| {
            Error::corrupt(format!("txg {} frees more than is allocated", how.txg)).at(self.place)
        })?;
        self.allocated_now += allocating.space();

        let histogram = self.histogram_with(&freeing, &map.header, truncate);
        if self.freed.is_empty() {
            self.freed = freeing;
        } else {
            for segment in freeing.iter() {
                self.freed.add(segment).expect("a free was checked against what was freed before it");
            }
        }
        let log = writer.finish();
        let allocated = self.allocated as i64;
        map.header = SpaceMapPhys { object: map.object, length: log.length(), allocated, histogram };
        self.map = Some(map);
        let bytes = log.to_bytes(Endian::NATIVE);
        Ok((map.object, MapWrite { truncate, at, bytes, header: map.header }))
    }

    fn writer(&self, map: &MapInfo, at: u64, how: Pass) -> MapWriter {
        let log = SpaceMapLog::new(at, map.block_size, how.long_entries);
        MapWriter::new(log, self.place.region, self.place.shift, how.txg, how.pass)
    }

    /// Writes what stood only in the pool's log.
    fn flush(&mut self, writer: &mut MapWriter) {
        let allocs = std::mem::take(&mut self.unflushed_allocs);
        let frees = std::mem::take(&mut self.unflushed_frees);
        writer.write(SpaceAction::Alloc, allocs.iter());
        writer.write(SpaceAction::Free, frees.iter());
        if !allocs.is_empty() || !frees.is_empty() {
            (self.flushed_allocs, self.flushed_frees) = (allocs, frees);
        }
    }

    /// A description of the state before this txg, when the map is so much longer than that.
    fn condense(&mut self, map: &MapInfo, how: Pass) -> Option<MapWriter> {
        let Load::Loaded(free) = &self.load else { return None };
        if !should_condense(free, map, self.place.shift, how.long_entries) {
            return None;
        }
        let mut writer = self.writer(map, 0, how);
        writer.write(SpaceAction::Alloc, [self.place.region]);
        writer.write(SpaceAction::Free, free.ranges().iter());
        writer.write(SpaceAction::Free, self.free_until_now().iter());
        self.unflushed_allocs = Ranges::default();
        self.unflushed_frees = Ranges::default();
        Some(writer)
    }

    /// What the txgs before this one left free, but is not allocatable: deferred, handed out since, being discarded.
    fn free_until_now(&self) -> Ranges {
        assert!(self.freed.is_empty(), "before the first pass of a txg nothing is freed in it");
        let mut sum = Ranges::default();
        let parts = self.deferred.iter().chain(&self.allocating).chain([&self.trimming]);
        for segment in parts.flat_map(Ranges::iter) {
            sum.add(segment).expect("a free segment is in one set only");
        }
        sum
    }

    /// Exact when allocatable space is known; else what was there, and what this pass frees.
    fn histogram_with(
        &self,
        freeing: &Ranges,
        header: &SpaceMapPhys,
        recreated: bool,
    ) -> Option<[u64; SpaceMapPhys::BUCKETS]> {
        let old = header.histogram?;
        let shift = self.place.shift;
        let mut histogram = match &self.load {
            Load::Loaded(free) => {
                let mut all = free.histogram();
                all.add(&self.freed);
                all.add(&self.trimming);
                self.deferred.iter().for_each(|set| all.add(set));
                // Log blocks that later txgs have taken already: to the map of this txg they are free.
                self.allocating.iter().for_each(|set| all.add(set));
                all
            }
            _ => {
                assert!(!recreated, "only a loaded metaslab is condensed");
                Histogram::from_map(&old, shift)
            }
        };
        histogram.add(freeing);
        Some(histogram.to_map(shift))
    }

    /// What the txgs that are done have left here: not yet what the present one has synced.
    pub(crate) fn settled(&self) -> Settled {
        Settled {
            allocated: self.allocated as i64 + self.freed.space() as i64 - self.allocated_now as i64,
            deferred: self.deferred_space() as i64,
        }
    }

    /// The txg is on disk: what it freed is deferred, what was deferred two txgs ago becomes allocatable.
    ///
    /// With little space left, waiting is a luxury: `defer` is false, and everything becomes allocatable at once.
    pub(crate) fn sync_done(&mut self, txg: Txg, defer: bool) -> Result<Settled> {
        let slot = (txg.0 % DEFER as u64) as usize;
        let freed = std::mem::take(&mut self.freed);
        let mut settled = Settled {
            allocated: self.allocated_now as i64 - freed.space() as i64,
            deferred: -(self.deferred[slot].space() as i64),
        };
        self.allocated_now = 0;
        self.synced_length = self.map.map_or(0, |map| map.header.length);
        (self.flushed_allocs, self.flushed_frees) = Default::default();
        let ripe = std::mem::take(&mut self.deferred[slot]);
        self.release(&ripe)?;
        if defer {
            settled.deferred += freed.space() as i64;
            self.deferred[slot] = freed;
        } else {
            self.release(&freed)?;
        }
        Ok(settled)
    }

    fn release(&mut self, ripe: &Ranges) -> Result<()> {
        for segment in ripe.iter() {
            self.make_allocatable(segment)?;
            if let Some(trim) = &mut self.trim {
                // What is discarded twice does no harm; overlaps are rare and not worth a merge.
                let _ = trim.add(segment);
            }
        }
        Ok(())
    }
}

fn should_condense(free: &FreeSpace, map: &MapInfo, shift: u32, long_entries: bool) -> bool {
    if free.ranges().is_empty() && map.header.length > 4 * 8 {
        return true;
    }
    let optimum = map_size(&free.histogram(), shift, long_entries);
    let block = map.block_size.max(1 << shift);
    map.header.length >= optimum * CONDENSE_PERCENT / 100 && map.header.length > CONDENSE_BLOCKS * block
}

/// An upper bound, in bytes, for entries that describe these segments.
fn map_size(histogram: &Histogram, shift: u32, long_entries: bool) -> u64 {
    let entry_bytes = |(log, count): (u32, u64)| {
        let units = 1u64 << (log.saturating_sub(shift) + 1).min(40);
        let each = match (units <= SHORT_RUN_MAX, long_entries) {
            (true, _) => 8,
            (false, true) => 16,
            (false, false) => 8 * units.div_ceil(SHORT_RUN_MAX),
        };
        count.saturating_mul(each)
    };
    histogram.buckets().map(entry_bytes).sum::<u64>() + 4 * 8
}

/// The segment a DVA covers, if it lies within one metaslab and on sector boundaries.
pub(crate) fn segment_in(region: Segment, shift: u32, offset: u64, size: u64) -> Option<Segment> {
    let aligned = (offset | size).trailing_zeros() >= shift;
    let fits =
        size > 0 && offset.checked_add(size).is_some_and(|end| offset >= region.start && end <= region.end);
    (aligned && fits).then(|| Segment::new(offset, size))
}
