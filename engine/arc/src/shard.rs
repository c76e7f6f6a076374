//! One shard: its part of the blocks and of the memory, and the policy that chooses what leaves.
//!
//! Everything here is plain code under the shard's lock; nothing waits. Bytes that leave are handed out through
//! [`Leavers`], to be dropped when the lock is released.

use crate::ahead::AheadCounts;
use crate::block::{Access, BlockId, Kind, Origin, Request};
use crate::candidates::{Candidate, Wanted};
use crate::flight::Flight;
use crate::lists::{Lists, Part};
use crate::served::Served;
use crate::stats::Stats;
use std::sync::Arc;
use units::HashMap;
use world::Buf;

/// What is charged for a block beyond its bytes: its entry and its place in the map.
pub(crate) const OVERHEAD: u64 = 160;
const PAGE: u64 = 4096;
/// How much more a metadata miss weighs than a data miss when memory is divided between them.
const METADATA_BALANCE: u64 = 5;
/// And how much more a miss on one of few ghosts weighs than on one of many, at most.
const STEP_MAX: u64 = 16;
/// Ghosts are names only, but names of many small blocks add up; each ghost list may take this part of the limit.
const GHOST_SHARE: u64 = 32;

/// Bytes that one operation took out, to be dropped without the lock.
#[derive(Default)]
pub(crate) struct Leavers {
    /// Still valid; there was no room.
    pub(crate) evicted: Vec<(BlockId, Kind, Buf)>,
    /// Freed, or replaced by newer bytes.
    stale: Vec<Buf>,
}

/// What a request finds.
pub(crate) enum Found {
    Hit(Buf),
    /// It is being read already.
    Join(Arc<Flight>),
    /// The request is the first, and has to read.
    Lead(Arc<Flight>),
}

#[derive(Debug)]
pub(crate) struct Shard {
    map: HashMap<BlockId, u32>,
    lists: Lists,
    flights: HashMap<BlockId, Arc<Flight>>,
    served: Served,
    limit: u64,
    max: u64,
    /// The limit that was asked for, and what others hold of it.
    asked: u64,
    beside: u64,
    /// ARC's p for each kind.
    recent_target: [u64; 2],
    metadata_target: u64,
    stats: Stats,
    ahead: Arc<AheadCounts>,
}

/// The memory a buffer really takes, with what we need to remember it. Buffers are made of whole pages.
pub(crate) fn charge_of(buf: &Buf) -> u64 {
    (buf.len() as u64).next_multiple_of(PAGE) + OVERHEAD
}

/// The same with what is kept for a second level.
fn charge_with(buf: &Buf, origin: Option<&Origin>) -> u64 {
    charge_of(buf) + origin.map_or(0, |_| size_of::<Origin>() as u64)
}

impl Shard {
    pub(crate) fn new(max: u64, ahead: Arc<AheadCounts>) -> Shard {
        Shard {
            map: HashMap::default(),
            lists: Lists::new(),
            flights: HashMap::default(),
            served: Served::new(),
            limit: max,
            max,
            asked: max,
            beside: 0,
            recent_target: [max / 2; 2],
            metadata_target: max / 4,
            stats: Stats::default(),
            ahead,
        }
    }

    /// The hot path.
    pub(crate) fn get(&mut self, block: &BlockId, access: Access) -> Option<(Buf, Kind)> {
        let slot = *self.map.get(block)?;
        let entry = &mut self.lists[slot];
        let buf = entry.buf.clone()?;
        let kind = entry.kind;
        if access == Access::Demand {
            let new_use = self.served.note(slot);
            if entry.prefetched {
                entry.prefetched = false;
                self.stats.of(kind).prefetched_used += 1;
            } else if new_use {
                entry.used = true;
            }
        }
        self.stats.hit(kind, access);
        Some((buf, kind))
    }

    pub(crate) fn find(&mut self, request: &Request) -> Found {
        if let Some((buf, _)) = self.get(&request.block, request.access) {
            return Found::Hit(buf);
        }
        self.stats.miss(request.kind, request.access);
        if let Some(flight) = self.flights.get(&request.block) {
            self.stats.of(request.kind).joined += 1;
            if request.access == Access::Demand && flight.want() {
                self.ahead.note_late(request.kind);
            }
            return Found::Join(flight.clone());
        }
        let flight = Arc::new(Flight::new(request.access));
        self.flights.insert(request.block, flight.clone());
        Found::Lead(flight)
    }

    /// Takes a flight off the list; false when it was overtaken: the block was written or freed meanwhile.
    pub(crate) fn arrived(&mut self, block: &BlockId, flight: &Arc<Flight>) -> bool {
        let current = self.flights.get(block).is_some_and(|f| Arc::ptr_eq(f, flight));
        if current {
            self.flights.remove(block);
        }
        current
    }

    /// Puts a block in, or exchanges its bytes.
    pub(crate) fn admit(
        &mut self,
        Request { block, kind, access, origin, .. }: Request,
        buf: Buf,
        leavers: &mut Leavers,
    ) {
        // A read of the block that is still under way brings what is now old.
        self.flights.remove(&block);
        self.stats.admitted += 1;
        let charge = charge_with(&buf, origin.as_ref());
        if charge > self.limit / 2 {
            self.stats.refused += 1;
            self.remove(&block, leavers);
            return;
        }
        let part = match self.map.get(&block).copied() {
            Some(slot) if self.lists[slot].buf.is_some() => {
                let old = self.lists.replace(slot, buf, charge);
                self.lists[slot].origin = origin.map(Box::new);
                leavers.stale.extend(old);
                return self.shrink_to(self.limit, leavers);
            }
            Some(ghost) => {
                self.learn(ghost);
                self.lists.remove(ghost);
                Part::Frequent
            }
            None => Part::Recent,
        };
        self.shrink_to(self.limit - charge, leavers);
        let slot = self.lists.insert(block, kind, part, buf, charge);
        self.lists[slot].prefetched = access == Access::Prefetch;
        self.lists[slot].origin = origin.map(Box::new);
        self.map.insert(block, slot);
        self.served.note(slot);
    }

    /// Looks through one list for what a second level wants, until it has enough or `headroom` bytes were passed.
    pub(crate) fn candidates(&self, part: Part, kind: Kind, headroom: u64, wanted: &mut Wanted<'_>) {
        let mut passed = 0;
        for slot in self.lists.slots(kind, part, wanted.newest_first) {
            let entry = &self.lists[slot];
            passed += entry.charge;
            if passed > headroom || wanted.is_full() {
                return;
            }
            let Some(origin) = entry.origin.as_deref() else { continue };
            if entry.buf.is_some() && (wanted.prefetched || !entry.prefetched) {
                wanted.offer(Candidate {
                    block: entry.block,
                    kind,
                    origin: *origin,
                    is_prefetch: entry.prefetched,
                    is_frequent: part == Part::Frequent,
                });
            }
        }
    }

    /// The bytes of a block, without that being a use of it.
    pub(crate) fn peek(&self, block: &BlockId) -> Option<Buf> {
        self.lists[*self.map.get(block)?].buf.clone()
    }

    pub(crate) fn disown(&mut self, block: &BlockId) {
        if let Some(slot) = self.map.get(block) {
            self.lists[*slot].origin = None;
        }
    }

    /// A hit after which the block is not there.
    pub(crate) fn take(&mut self, block: &BlockId) -> Option<(Buf, Kind)> {
        let slot = *self.map.get(block)?;
        let kind = self.lists[slot].kind;
        // A ghost has no bytes, and stays.
        self.lists[slot].buf.as_ref()?;
        self.stats.hit(kind, Access::Demand);
        self.stats.of(kind).prefetched_used += u64::from(self.lists[slot].prefetched);
        self.map.remove(block);
        self.lists.remove(slot).map(|buf| (buf, kind))
    }

    /// Forgets a block, as after a free.
    pub(crate) fn remove(&mut self, block: &BlockId, leavers: &mut Leavers) {
        self.flights.remove(block);
        if let Some(slot) = self.map.remove(block) {
            if self.lists[slot].prefetched {
                self.ahead.note_unused(self.lists[slot].kind);
            }
            leavers.stale.extend(self.lists.remove(slot));
        }
    }

    /// Sets the limit for now; [`Shard::set_max`] sets it for good.
    pub(crate) fn set_limit(&mut self, limit: u64, leavers: &mut Leavers) {
        self.asked = limit;
        self.apply_limit(leavers);
    }

    /// What others hold that is charged to this memory.
    pub(crate) fn set_beside(&mut self, beside: u64, leavers: &mut Leavers) {
        self.beside = beside;
        self.apply_limit(leavers);
    }

    fn apply_limit(&mut self, leavers: &mut Leavers) {
        self.limit = self.asked.min(self.max).saturating_sub(self.beside);
        self.metadata_target = self.metadata_target.min(self.limit);
        self.shrink_to(self.limit, leavers);
        Kind::ALL.into_iter().for_each(|kind| self.trim_ghosts(kind));
    }

    pub(crate) fn set_max(&mut self, max: u64, leavers: &mut Leavers) {
        self.max = max;
        self.set_limit(max, leavers);
    }

    pub(crate) fn clear(&mut self, leavers: &mut Leavers) {
        self.shrink_to(0, leavers);
        let fresh = Shard::new(self.max, self.ahead.clone());
        let stats = self.stats;
        let (limit, asked, beside) = (self.limit, self.asked, self.beside);
        *self = Shard { stats, limit, asked, beside, flights: std::mem::take(&mut self.flights), ..fresh };
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.stats;
        for kind in Kind::ALL {
            let target = self.recent_target[kind.index()];
            let ghosts = self.ghosts(kind);
            let counts = stats.of(kind);
            counts.recent_bytes = self.lists.bytes(kind, Part::Recent);
            counts.frequent_bytes = self.lists.bytes(kind, Part::Frequent);
            counts.blocks =
                (self.lists.count(kind, Part::Recent) + self.lists.count(kind, Part::Frequent)) as u64;
            counts.recent_target = target;
            stats.ghosts += ghosts as u64;
        }
        stats.size = self.size();
        stats.beside = self.beside;
        stats.limit = self.limit;
        stats.max = self.max;
        stats.metadata_target = self.metadata_target;
        stats
    }

    fn resident(&self, kind: Kind) -> u64 {
        self.lists.bytes(kind, Part::Recent) + self.lists.bytes(kind, Part::Frequent)
    }

    fn size(&self) -> u64 {
        Kind::ALL.into_iter().map(|kind| self.resident(kind)).sum()
    }

    fn ghosts(&self, kind: Kind) -> usize {
        self.lists.count(kind, Part::GhostRecent) + self.lists.count(kind, Part::GhostFrequent)
    }

    fn ghost_bytes(&self, kind: Kind) -> u64 {
        self.lists.bytes(kind, Part::GhostRecent) + self.lists.bytes(kind, Part::GhostFrequent)
    }

    fn shrink_to(&mut self, size: u64, leavers: &mut Leavers) {
        while self.size() > size {
            let kind = self.kind_to_evict();
            self.evict_one(kind, leavers);
        }
    }

    /// Metadata gives way only when it has more than its part, or when there is no data left.
    fn kind_to_evict(&self) -> Kind {
        let metadata = self.resident(Kind::Metadata);
        if metadata > 0 && (metadata > self.metadata_target || self.resident(Kind::Data) == 0) {
            Kind::Metadata
        } else {
            Kind::Data
        }
    }

    /// Moves the hand until a block leaves. Each step clears a bit or ends, so it comes to an end; and since only a hit
    /// sets a bit, the steps are paid for by hits.
    fn evict_one(&mut self, kind: Kind, leavers: &mut Leavers) {
        loop {
            let part = self.part_to_evict(kind);
            let slot =
                self.lists.oldest(kind, part).expect("a kind with resident bytes has a resident block");
            if std::mem::take(&mut self.lists[slot].used) {
                self.lists.move_to(slot, Part::Frequent);
                continue;
            }
            return self.make_ghost(slot, leavers);
        }
    }

    fn part_to_evict(&self, kind: Kind) -> Part {
        let recent = self.lists.bytes(kind, Part::Recent);
        let frequent = self.lists.bytes(kind, Part::Frequent);
        if recent > 0
            && (frequent == 0 || recent >= self.recent_target[kind.index()].min(self.resident(kind)))
        {
            Part::Recent
        } else {
            Part::Frequent
        }
    }

    fn make_ghost(&mut self, slot: u32, leavers: &mut Leavers) {
        let (block, kind, ghost) = {
            let entry = &self.lists[slot];
            (entry.block, entry.kind, entry.part.ghost())
        };
        self.lists.move_to(slot, ghost);
        let entry = &mut self.lists[slot];
        let counts = self.stats.of(kind);
        counts.evicted += 1;
        counts.evicted_bytes += entry.charge;
        // A block that was read ahead for nothing says nothing about the sizes of the lists.
        let forget = std::mem::take(&mut entry.prefetched);
        entry.origin = None;
        leavers.evicted.extend(entry.buf.take().map(|buf| (block, kind, buf)));
        if forget {
            self.ahead.note_unused(kind);
            self.forget(slot);
        }
        self.trim_ghosts(kind);
    }

    fn forget(&mut self, slot: u32) {
        self.map.remove(&self.lists[slot].block);
        self.lists.remove(slot);
    }

    /// Each list remembers as much of what left it as the shard can hold, so a block missed again within about two
    /// cachefuls is noticed. (The original ARC remembers nothing of a recent list that fills the whole cache.)
    fn trim_ghosts(&mut self, kind: Kind) {
        let names_max = (self.limit / GHOST_SHARE / OVERHEAD) as usize;
        while let Some(slot) = self.surplus_ghost(kind, names_max) {
            self.forget(slot);
        }
    }

    fn surplus_ghost(&self, kind: Kind, names_max: usize) -> Option<u32> {
        let surplus =
            |part| self.lists.bytes(kind, part) > self.limit || self.lists.count(kind, part) > names_max;
        let part = [Part::GhostRecent, Part::GhostFrequent].into_iter().find(|&part| surplus(part))?;
        self.lists.oldest(kind, part)
    }

    /// A miss on a ghost: the list it was pushed out of should have been larger.
    fn learn(&mut self, ghost: u32) {
        let (kind, part, charge) = {
            let entry = &self.lists[ghost];
            (entry.kind, entry.part, entry.charge)
        };
        let recent = self.lists.bytes(kind, Part::GhostRecent).max(1);
        let frequent = self.lists.bytes(kind, Part::GhostFrequent).max(1);
        let target = &mut self.recent_target[kind.index()];
        let counts = self.stats.of(kind);
        match part {
            Part::GhostRecent => {
                counts.recent_ghost_hits += 1;
                *target =
                    target.saturating_add(charge.saturating_mul((frequent / recent).max(1))).min(self.limit);
            }
            _ => {
                counts.frequent_ghost_hits += 1;
                *target = target.saturating_sub(charge.saturating_mul((recent / frequent).max(1)));
            }
        }
        // As with the border between the lists: a miss among few ghosts tells more than one among many, for it says that few
        // bytes would have been enough.
        let (metadata, data) = (self.ghost_bytes(Kind::Metadata).max(1), self.ghost_bytes(Kind::Data).max(1));
        self.metadata_target = match kind {
            Kind::Metadata => {
                let weight = METADATA_BALANCE.saturating_mul((data / metadata).clamp(1, STEP_MAX));
                self.metadata_target.saturating_add(charge.saturating_mul(weight))
            }
            Kind::Data => self
                .metadata_target
                .saturating_sub(charge.saturating_mul((metadata / data).clamp(1, STEP_MAX))),
        }
        .clamp(self.limit / 16, self.limit / 16 * 15);
    }
}
