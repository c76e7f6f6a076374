//! One shard: its part of the blocks and of the memory. What leaves, and what it learns from that, is in `policy`.
//!
//! Everything here is plain code under the shard's lock; nothing waits. Bytes that leave are handed out through
//! [`Leavers`], to be dropped when the lock is released.

use crate::ahead::AheadCounts;
use crate::block::{Access, BlockId, Kind, Opening, Request};
use crate::candidates::{Candidate, Wanted};
use crate::charge::charge_with;
use crate::cold::{Cold, Cooling};
use crate::flight::Flight;
use crate::horizon::{Epoch, NEVER};
use crate::lists::{Lists, Part};
use crate::packed::Packed;
use crate::policy::{Border, Side};
use crate::served::Served;
use crate::stats::Stats;
use crate::unseen::Unseen;
use std::sync::Arc;
use units::HashMap;
use world::Buf;

/// Bytes that one operation took out, to be dropped without the lock.
#[derive(Default)]
pub(crate) struct Leavers {
    /// Still valid; there was no room.
    pub(crate) evicted: Vec<(BlockId, Kind, Buf)>,
    /// Freed, or replaced by newer bytes.
    stale: Vec<Buf>,
    /// On their way to the cold part.
    pub(crate) cooling: Vec<Cooling>,
    /// What left that: the kind, and the bytes.
    pub(crate) dropped: Vec<(Kind, u64)>,
    /// What cores have at hand, with which of them.
    pub(crate) held: Vec<(BlockId, u64)>,
}

impl Leavers {
    pub(crate) fn let_go(&mut self, block: BlockId, holders: u64) {
        if holders != 0 {
            self.held.push((block, holders));
        }
    }
}

/// What a request finds.
pub(crate) enum Found {
    Hit(Buf),
    /// It is there, compressed.
    Cold(Packed),
    /// It is being read already.
    Join(Arc<Flight>),
    /// The request is the first, and has to read.
    Lead(Arc<Flight>),
}

/// What a hit changes comes first, to be in one line of the processor's cache with the lock ([`crate::cache`]): each line
/// that two cores change in turn costs a hit as much as the rest of it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shard {
    pub(crate) served: Served,
    /// Demand hits, by kind.
    hits: [u64; 2],
    pub(crate) map: HashMap<BlockId, u32>,
    pub(crate) lists: Lists,
    flights: HashMap<BlockId, Arc<Flight>>,
    pub(crate) limit: u64,
    /// How often a part of the memory was replaced, and how far the next time is ([`crate::near`]).
    pub(crate) turn: u32,
    pub(crate) turning: u64,
    max: u64,
    /// The limit that was asked for, and what others hold of it.
    asked: u64,
    beside: u64,
    pub(crate) sides: [Side; 2],
    pub(crate) metadata_target: u64,
    pub(crate) border: Border,
    pub(crate) stats: Stats,
    pub(crate) ahead: Arc<AheadCounts>,
    /// Of each pool that has cache devices.
    pub(crate) feeders: Vec<Unseen>,
    pub(crate) cold: Cold,
}

impl Shard {
    pub(crate) fn new(max: u64, ahead: Arc<AheadCounts>) -> Shard {
        Shard {
            served: Served::new(),
            hits: [0; 2],
            map: HashMap::default(),
            lists: Lists::new(),
            flights: HashMap::default(),
            limit: max,
            turn: 0,
            turning: 0,
            max,
            asked: max,
            beside: 0,
            sides: Kind::ALL.map(|_| Side::new(max)),
            metadata_target: max / 4,
            border: Border::default(),
            stats: Stats::default(),
            ahead,
            feeders: Vec::new(),
            cold: Cold::default(),
        }
    }

    /// The hot path.
    pub(crate) fn get(&mut self, block: &BlockId, access: Access) -> Option<(Buf, Kind)> {
        let slot = *self.map.get(block)?;
        let buf = self.lists.content(slot).buf.clone()?;
        let entry = &self.lists[slot];
        let kind = entry.kind;
        if access == Access::Demand {
            let is_new_use = self.served.note(slot);
            if entry.part == Part::Ahead {
                self.enter_window(slot);
                self.lists[slot].epoch = NEVER;
                self.stats.of(kind).prefetched_used += 1;
                self.count(slot);
            } else if is_new_use {
                self.use_again(slot);
            }
            self.hits[kind.index()] += 1;
        } else {
            self.stats.of(kind).prefetch_hits += 1;
        }
        Some((buf, kind))
    }

    pub(crate) fn find(&mut self, request: &Request) -> Found {
        if let Some((buf, _)) = self.get(&request.block, request.access) {
            return Found::Hit(buf);
        }
        if let Some(packed) = self.packed(&request.block) {
            return Found::Cold(packed);
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
        self.cold.overtake(&block);
        self.stats.admitted += 1;
        let charge = charge_with(&buf, origin.as_ref());
        if charge > self.limit / 2 {
            self.stats.refused += 1;
            self.remove(&block, leavers);
            return;
        }
        let uses = match self.map.get(&block).copied() {
            Some(slot) if self.lists.content(slot).buf.is_some() => {
                let old = self.exchange(slot, buf, charge);
                leavers.let_go(block, std::mem::take(&mut self.lists.content_mut(slot).holders));
                self.lists.content_mut(slot).origin = origin.map(Box::new);
                leavers.stale.extend(old);
                return self.shrink_to(self.limit, leavers);
            }
            Some(slot) if self.lists[slot].part == Part::Cold => self.replace_cold(slot),
            Some(ghost) => self.learn(ghost),
            None => 0,
        };
        self.make_room(charge, leavers);
        let is_ahead = access == Access::Prefetch;
        let part = if is_ahead { Part::Ahead } else { Part::Window };
        let slot = self.lists.insert(block, kind, part, buf, charge);
        self.lists[slot].remember(uses);
        self.lists.content_mut(slot).origin = origin.map(Box::new);
        self.map.insert(block, slot);
        self.served.note(slot);
        if is_ahead {
            self.lists[slot].epoch = self.sides[kind.index()].horizon.now();
        } else {
            self.note_unseen(slot);
            self.count(slot);
        }
    }

    /// Lends a block that is here to the core of this bit. The caller has just got it.
    pub(crate) fn lend(&mut self, block: &BlockId, holder: u64) {
        if let Some(&slot) = self.map.get(block) {
            self.lists.content_mut(slot).holders |= holder;
        }
    }

    /// Notes uses that a core counted.
    pub(crate) fn used(&mut self, block: &BlockId, uses: u8) {
        let Some(&slot) = self.map.get(block) else { return };
        if self.lists.content(slot).buf.is_none() || uses == 0 {
            return;
        }
        self.served.note(slot);
        self.use_again(slot);
        (1..uses).for_each(|_| self.lists[slot].count_lately());
    }

    /// Looks through what was kept, or what came lately, for what a second level wants, until it has enough or `headroom`
    /// bytes were passed.
    pub(crate) fn candidates(&self, is_main: bool, kind: Kind, headroom: u64, wanted: &mut Wanted<'_>) {
        let parts: &[Part] = if is_main { &[Part::Main] } else { &[Part::Ahead, Part::Window] };
        let slots = |&part: &Part| self.lists.slots(kind, part, wanted.newest_first);
        let slots: Vec<_> = parts.iter().map(slots).collect();
        let now = self.sides[kind.index()].horizon.now();
        let mut passed = 0;
        for slot in slots.into_iter().flatten() {
            let entry = &self.lists[slot];
            passed += entry.charge;
            if passed > headroom || wanted.is_full() {
                return;
            }
            let content = self.lists.content(slot);
            let Some(origin) = content.origin.as_deref() else { continue };
            if content.buf.is_some() && (wanted.prefetched || entry.part != Part::Ahead) {
                wanted.offer(Candidate {
                    block: content.block,
                    kind,
                    origin: *origin,
                    is_prefetch: entry.part == Part::Ahead,
                    is_frequent: entry.uses(now) > 1,
                });
            }
        }
    }

    /// The bytes of a block, without that being a use of it.
    pub(crate) fn peek(&self, block: &BlockId) -> Option<Buf> {
        self.lists.content(*self.map.get(block)?).buf.clone()
    }

    /// Whether a pool has cache devices.
    pub(crate) fn set_feeder(&mut self, feeder: Opening, is_there: bool) {
        self.feeders.retain(|unseen| !unseen.is_of(feeder));
        if is_there {
            self.feeders.push(Unseen::new(feeder));
        }
    }

    pub(crate) fn look(&mut self, feeder: Opening, bound: u64) {
        let unseen = self.feeders.iter_mut().find(|unseen| unseen.is_of(feeder));
        unseen.into_iter().for_each(|unseen| unseen.look(bound));
    }

    pub(crate) fn disown(&mut self, block: &BlockId) {
        if let Some(slot) = self.map.get(block) {
            self.lists.content_mut(*slot).origin = None;
        }
    }

    /// A hit after which the block is not there.
    pub(crate) fn take(&mut self, block: &BlockId, leavers: &mut Leavers) -> Option<(Buf, Kind)> {
        let slot = *self.map.get(block)?;
        let kind = self.lists[slot].kind;
        // A ghost has no bytes, and stays.
        self.lists.content(slot).buf.as_ref()?;
        self.note_hit(kind);
        self.stats.of(kind).prefetched_used += u64::from(self.lists[slot].part == Part::Ahead);
        leavers.let_go(*block, self.lists.content(slot).holders);
        self.map.remove(block);
        self.unlink(slot).map(|buf| (buf, kind))
    }

    /// Forgets a block, as after a free.
    pub(crate) fn remove(&mut self, block: &BlockId, leavers: &mut Leavers) {
        self.flights.remove(block);
        self.cold.overtake(block);
        if let Some(slot) = self.map.remove(block) {
            if self.lists[slot].part == Part::Ahead {
                self.ahead.note_unused(self.lists[slot].kind);
            }
            leavers.let_go(*block, self.lists.content(slot).holders);
            leavers.stale.extend(self.unlink(slot));
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
        if std::mem::replace(&mut self.max, max) != max {
            self.cold.begin(max);
        }
        self.set_limit(max, leavers);
    }

    pub(crate) fn clear(&mut self, leavers: &mut Leavers) {
        self.shrink_to(0, leavers);
        let fresh = Shard::new(self.max, self.ahead.clone());
        let (stats, hits) = (self.stats, self.hits);
        let (limit, asked, beside, turn) = (self.limit, self.asked, self.beside, self.turn);
        let (flights, feeders) = (std::mem::take(&mut self.flights), std::mem::take(&mut self.feeders));
        let cold = self.cold.emptied();
        *self = Shard { stats, hits, limit, asked, beside, turn, flights, feeders, cold, ..fresh };
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.stats;
        for kind in Kind::ALL {
            let target = self.sides[kind.index()].target;
            let ghosts = self.ghosts(kind);
            let counts = stats.of(kind);
            counts.demand_hits = self.hits[kind.index()];
            counts.frequent_bytes = self.lists.bytes(kind, Part::Main);
            counts.recent_bytes = self.resident(kind) - counts.frequent_bytes;
            counts.blocks = self.blocks(kind) as u64;
            counts.cold_hits = self.cold.hits[kind.index()];
            counts.cold_bytes = self.cold.bytes_of(kind);
            counts.cold_full_bytes = self.lists.bytes(kind, Part::Cold);
            counts.cold_blocks = self.lists.count(kind, Part::Cold) as u64;
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

    pub(crate) fn resident(&self, kind: Kind) -> u64 {
        Part::RESIDENT.into_iter().map(|part| self.lists.bytes(kind, part)).sum()
    }

    pub(crate) fn blocks(&self, kind: Kind) -> usize {
        Part::RESIDENT.into_iter().map(|part| self.lists.count(kind, part)).sum()
    }

    pub(crate) fn size(&self) -> u64 {
        Kind::ALL.into_iter().map(|kind| self.resident(kind)).sum::<u64>() + self.cold.bytes()
    }

    fn ghosts(&self, kind: Kind) -> usize {
        self.lists.count(kind, Part::GhostWindow) + self.lists.count(kind, Part::GhostMain)
    }

    pub(crate) fn ghost_bytes(&self, kind: Kind) -> u64 {
        self.lists.bytes(kind, Part::GhostWindow) + self.lists.bytes(kind, Part::GhostMain)
    }

    /// A demand hit that did not go by [`Shard::get`].
    pub(crate) fn note_hit(&mut self, kind: Kind) {
        self.hits[kind.index()] += 1;
    }

    /// Takes an entry out of its list; its name is out of the map already.
    pub(crate) fn unlink(&mut self, slot: u32) -> Option<Buf> {
        let (kind, charge) = (self.lists[slot].kind, self.lists[slot].charge);
        let epoch = self.used_in(slot);
        self.sides[kind.index()].horizon.leave(epoch, charge);
        if self.lists[slot].part == Part::Cold {
            self.cold.forget(slot, kind);
        }
        self.lists.remove(slot)
    }

    /// The epoch of a block's last use.
    fn used_in(&self, slot: u32) -> Epoch {
        let entry = &self.lists[slot];
        if entry.part == Part::Ahead { NEVER } else { entry.epoch }
    }

    fn exchange(&mut self, slot: u32, buf: Buf, charge: u64) -> Option<Buf> {
        let (kind, before) = (self.lists[slot].kind, self.lists[slot].charge);
        let epoch = self.used_in(slot);
        let horizon = &mut self.sides[kind.index()].horizon;
        horizon.leave(epoch, before);
        horizon.join(epoch, charge);
        self.lists.replace(slot, buf, charge)
    }
}

#[cfg(test)]
pub(crate) mod tests;
