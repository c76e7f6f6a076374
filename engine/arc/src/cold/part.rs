//! What is done with the cold part under the shard's lock.

use super::{Cooling, Held, LOOKED_AT, MARGIN, STALE, Settled, TRIED, TURNED, USES_LEAST};
use crate::block::{Access, BlockId, Kind};
use crate::charge::charge_of;
use crate::lists::Part;
use crate::packed::{LARGEST, Packed};
use crate::shard::{Leavers, Shard};
use std::collections::hash_map::Entry as Slot;
use world::Buf;

impl Shard {
    /// Sets the share of the limit that the part may have, in percent.
    pub(crate) fn set_cold(&mut self, percent: u64, leavers: &mut Leavers) {
        self.cold.percent = percent;
        self.cold.begin(self.limit);
        self.cool_to(self.limit, leavers);
    }

    /// What blocks that are not compressed may have.
    pub(crate) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.cold.bytes())
    }

    /// Lets a block that would leave go here, if it is worth it. It is a ghost until then.
    pub(crate) fn cools(&mut self, slot: u32, leavers: &mut Leavers) -> bool {
        if self.cold.percent == 0 || !self.is_worth_cooling(slot) {
            return false;
        }
        self.let_go(slot, leavers);
        let content = self.lists.content_mut(slot);
        let (block, Some(buf)) = (content.block, content.buf.take()) else { return false };
        let entry = &mut self.lists[slot];
        let (kind, part) = (entry.kind, entry.part);
        entry.used = false;
        self.cold.stamp += 1;
        let stamp = self.cold.stamp;
        self.cold.pending.insert(block, stamp);
        leavers.cooling.push(Cooling { block, kind, buf, stamp });
        self.lists.move_to(slot, part.ghost());
        self.trim_ghosts(kind);
        true
    }

    fn is_worth_cooling(&mut self, slot: u32) -> bool {
        let entry = &self.lists[slot];
        let uses = entry.uses(self.now(entry.kind));
        let is_fit = entry.part != Part::Ahead
            && uses >= USES_LEAST
            && self.lists.content(slot).buf.as_ref().is_some_and(|buf| buf.len() <= LARGEST);
        let (charge, may_have) = (entry.charge, self.cold.may_have(self.limit));
        if !is_fit || charge > may_have || !self.cold.tries() {
            return false;
        }
        if self.cold.bytes() + charge / 2 <= may_have {
            return true;
        }
        let gives_way = self.least_cold().is_none_or(|(least, slot)| {
            let entry = &self.lists[slot];
            let age = self.now(entry.kind).saturating_sub(entry.epoch);
            age > STALE || uses > least + MARGIN
        });
        self.cold.refused = self.cold.refused.wrapping_add(u32::from(!gives_way));
        gives_way || self.cold.refused.is_multiple_of(TURNED)
    }

    /// Takes in what was compressed, if it gained.
    pub(crate) fn cooled(&mut self, it: &Cooling, packed: Option<Packed>, leavers: &mut Leavers) -> Settled {
        let Slot::Occupied(pending) = self.cold.pending.entry(it.block) else { return Settled::Overtaken };
        if *pending.get() != it.stamp {
            return Settled::Overtaken;
        }
        pending.remove();
        let is_in = packed.is_some_and(|packed| self.take_in(&it.block, packed, leavers));
        if !is_in {
            self.note_evicted(it.kind, charge_of(it.buf.len()));
            if let Some(&slot) = self.map.get(&it.block) {
                self.lists.content_mut(slot).origin = None;
            }
        }
        if is_in { Settled::Kept } else { Settled::Left }
    }

    pub(crate) fn note_gain(&mut self, gains: bool) {
        self.cold.in_vain = if gains { 0 } else { self.cold.in_vain.saturating_add(1).min(TRIED) };
    }

    fn take_in(&mut self, block: &BlockId, packed: Packed, leavers: &mut Leavers) -> bool {
        let (charge, may_have) = (packed.charge(), self.cold.may_have(self.limit));
        while self.cold.bytes() + charge > may_have {
            let Some((_, slot)) = self.least_cold().filter(|_| charge <= may_have) else { return false };
            let full = self.lists[slot].charge;
            self.cold.shrink(full);
            self.drop_cold(slot, leavers);
        }
        self.make_room(charge, leavers);
        // Its ghost may have had to go.
        let Some(&slot) = self.map.get(block) else { return false };
        self.lists.move_to(slot, Part::Cold);
        let entry = &self.lists[slot];
        self.cold.bytes[entry.kind.index()] += charge;
        self.cold.passed += entry.charge;
        self.cold.held.insert(slot, Held { packed, passed: self.cold.passed });
        true
    }

    /// The compressed bytes of a block that is here.
    pub(crate) fn packed(&self, block: &BlockId) -> Option<Packed> {
        if self.cold.held.is_empty() {
            return None;
        }
        Some(self.cold.held.get(self.map.get(block)?)?.packed.clone())
    }

    /// A use of a block that is here and was decompressed to `buf`: it comes back to the window. Answers its bytes.
    pub(crate) fn warm(
        &mut self,
        block: &BlockId,
        packed: &Packed,
        buf: Buf,
        access: Access,
        leavers: &mut Leavers,
    ) -> Option<(Buf, Kind)> {
        let slot = *self.map.get(block)?;
        if !self.cold.held.get(&slot).is_some_and(|held| held.packed.is(packed)) {
            // Another request was faster, or it was written.
            return self.get(block, access);
        }
        let kind = self.lists[slot].kind;
        if access != Access::Demand {
            self.stats.of(kind).prefetch_hits += 1;
            return Some((buf, kind));
        }
        self.note_cold_hit(slot);
        if self.is_worth_warming(slot) {
            self.bring_back(slot, buf.clone(), leavers);
        } else {
            self.lists[slot].used = true;
            self.served.note(slot);
            self.count(slot);
        }
        Some((buf, kind))
    }

    /// Whether it is used more, or again sooner, than what would be compressed for it.
    fn is_worth_warming(&self, slot: u32) -> bool {
        let entry = &self.lists[slot];
        let (kind, now) = (entry.kind, self.now(entry.kind));
        let is_again = self.served.is_recent(slot) || self.sides[kind.index()].horizon.is_lately(entry.epoch);
        let next = self.lists.slots(kind, Part::Main, false).take(LOOKED_AT);
        is_again || next.map(|next| self.lists[next].uses(now) + MARGIN).min() <= Some(entry.uses(now))
    }

    /// Decompressed, it is in the window.
    fn bring_back(&mut self, slot: u32, buf: Buf, leavers: &mut Leavers) {
        let uses = self.learn_of_window(slot);
        let (kind, charge) = (self.lists[slot].kind, self.lists[slot].charge);
        let content = self.lists.content_mut(slot);
        let (block, origin) = (content.block, content.origin.take());
        self.forget(slot);
        if charge > self.limit / 2 {
            return;
        }
        self.make_room(charge, leavers);
        let slot = self.lists.insert(block, kind, Part::Window, buf, charge);
        self.lists[slot].remember(uses);
        self.lists.content_mut(slot).origin = origin;
        self.map.insert(block, slot);
        self.served.note(slot);
        self.note_unseen(slot);
        self.count(slot);
    }

    /// A use after which the block is not there.
    pub(crate) fn take_packed(&mut self, block: &BlockId) -> Option<(Packed, Kind)> {
        let slot = *self.map.get(block)?;
        let packed = self.cold.held.get(&slot)?.packed.clone();
        let kind = self.lists[slot].kind;
        self.note_cold_hit(slot);
        self.forget(slot);
        Some((packed, kind))
    }

    fn note_cold_hit(&mut self, slot: u32) {
        let (kind, full) = (self.lists[slot].kind, self.lists[slot].charge);
        self.note_hit(kind);
        self.cold.hits[kind.index()] += 1;
        let since = self.cold.held.get(&slot).map_or(0, |held| self.cold.passed - held.passed);
        if since < self.cold.bytes() {
            self.cold.shrink(full);
        } else {
            self.cold.grow(full, self.limit);
        }
    }

    /// What is put in is here: how often it was used.
    pub(crate) fn replace_cold(&mut self, slot: u32) -> u8 {
        let uses = self.lists[slot].uses(self.now(self.lists[slot].kind));
        self.forget(slot);
        uses
    }

    /// A miss of a block that was used so often before.
    pub(crate) fn miss_cold(&mut self, charge: u64, uses: u8) {
        if uses >= USES_LEAST {
            self.cold.grow(charge, self.limit);
        }
    }

    /// Lets blocks leave until the part has its share of `size`.
    pub(crate) fn cool_to(&mut self, size: u64, leavers: &mut Leavers) {
        while self.cold.bytes() > self.cold.may_have(size) && self.drop_least_cold(leavers) {}
    }

    /// Whether there was one.
    pub(crate) fn drop_least_cold(&mut self, leavers: &mut Leavers) -> bool {
        let Some((_, slot)) = self.least_cold() else { return false };
        self.drop_cold(slot, leavers);
        true
    }

    fn drop_cold(&mut self, slot: u32, leavers: &mut Leavers) {
        let (kind, full) = (self.lists[slot].kind, self.lists[slot].charge);
        self.lists.content_mut(slot).origin = None;
        self.cold.forget(slot, kind);
        self.note_evicted(kind, full);
        leavers.dropped.push((kind, full));
        self.lists.move_to(slot, Part::GhostMain);
        self.trim_ghosts(kind);
    }

    /// The block that would leave, and how often it was used.
    fn least_cold(&mut self) -> Option<(u8, u32)> {
        let [data, metadata] = Kind::ALL.map(|kind| self.least_used_of(kind, Part::Cold, LOOKED_AT));
        match (data, metadata) {
            (Some(data), Some(metadata)) => Some(if metadata.0 < data.0 { metadata } else { data }),
            _ => data.or(metadata),
        }
    }
}
