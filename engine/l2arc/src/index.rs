//! Which blocks are on cache devices and where: what is kept of each in memory.
//!
//! ```text
//!   map    block ─▶ device, place, size
//!   ring   of each device, in the order of writing: place, block      the oldest leave first, with what was on their place
//! ```
//!
//! A block that was freed leaves the map at once and its ring when the hand comes around.
//!
//! Invariant: what the map names is in the ring of its device.

use arc::{BlockId, Kind};
use std::collections::VecDeque;
use std::ops::Range;
use units::{HashMap, SECTOR};

/// Of one cache device, while it is one.
pub(crate) type DeviceId = u16;

/// Where a block is on a cache device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// From the very start of the device, in bytes.
    pub daddr: u64,
    /// In sectors of 512 bytes, less one.
    sectors: u16,
    pub device: DeviceId,
    pub kind: Kind,
}

impl Place {
    pub fn new(device: DeviceId, daddr: u64, psize: u64, kind: Kind) -> Place {
        // 32 MiB at most, as everywhere in the format.
        let sectors = u16::try_from((psize / SECTOR).saturating_sub(1)).unwrap_or(u16::MAX);
        Place { daddr, sectors, device, kind }
    }

    pub fn psize(&self) -> u64 {
        (u64::from(self.sectors) + 1) * SECTOR
    }
}

/// What is on the devices at present, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub blocks: u64,
    pub bytes: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Index {
    map: HashMap<BlockId, Place>,
    rings: Vec<VecDeque<(u64, BlockId)>>,
    held: [Held; 2],
}

/// A slot of the map: the pair and its byte of control, at the load of 7/8 that makes it grow.
const SLOT: u64 = ((size_of::<(BlockId, Place)>() + 1) * 8 / 7) as u64;
const TURN: u64 = size_of::<(u64, BlockId)>() as u64;

impl Index {
    pub fn get(&self, block: &BlockId) -> Option<Place> {
        self.map.get(block).copied()
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> u64 {
        let turns: usize = self.rings.iter().map(VecDeque::capacity).sum();
        self.map.capacity() as u64 * SLOT + turns as u64 * TURN
    }

    /// Whether `count` more blocks can be remembered within `limit` bytes.
    pub fn has_room(&self, count: usize, limit: u64) -> bool {
        let grows = self.map.len() + count > self.map.capacity()
            || self.rings.iter().any(|ring| ring.len() + count > ring.capacity());
        let more = count as u64 * (SLOT + TURN);
        let next = if grows { (self.bytes() * 2).max(self.bytes() + more) } else { self.bytes() };
        next <= limit
    }

    pub fn held(&self, kind: Kind) -> Held {
        self.held[kind as usize]
    }

    /// A block was written behind all others of its device.
    pub fn insert(&mut self, block: BlockId, place: Place) {
        self.forget(&block);
        self.ring(place.device).push_back((place.daddr, block));
        self.note(block, place);
    }

    /// A block was found that was written before all others that are known of its device. A newer copy of it stays.
    pub fn insert_older(&mut self, block: BlockId, place: Place) -> bool {
        if self.map.contains_key(&block) {
            return false;
        }
        self.ring(place.device).push_front((place.daddr, block));
        self.note(block, place);
        true
    }

    fn note(&mut self, block: BlockId, place: Place) {
        let held = &mut self.held[place.kind as usize];
        held.blocks += 1;
        held.bytes += place.psize();
        self.map.insert(block, place);
    }

    /// The block was freed, or is not where it should be.
    pub fn forget(&mut self, block: &BlockId) -> bool {
        let Some(place) = self.map.remove(block) else { return false };
        let held = &mut self.held[place.kind as usize];
        held.blocks -= 1;
        held.bytes -= place.psize();
        true
    }

    /// Forgets what lies in `range` of a device, which is about to be written over. Answers how many blocks that were.
    pub fn drop_range(&mut self, device: DeviceId, range: &Range<u64>) -> u64 {
        let mut dropped = 0;
        while let Some(&(daddr, block)) = self.ring(device).front() {
            let place = self.get(&block).filter(|p| p.device == device && p.daddr == daddr);
            let len = place.map_or(1, |p| p.psize());
            if daddr >= range.end || daddr + len <= range.start {
                break;
            }
            self.ring(device).pop_front();
            if place.is_some() {
                self.forget(&block);
                dropped += 1;
            }
        }
        dropped
    }

    /// Forgets all that is on a device, and gives the memory back.
    pub fn drop_device(&mut self, device: DeviceId) {
        for (daddr, block) in std::mem::take(self.ring(device)) {
            if self.get(&block).is_some_and(|p| p.device == device && p.daddr == daddr) {
                self.forget(&block);
            }
        }
        self.map.shrink_to_fit();
    }

    fn ring(&mut self, device: DeviceId) -> &mut VecDeque<(u64, BlockId)> {
        let at = usize::from(device);
        if self.rings.len() <= at {
            self.rings.resize_with(at + 1, VecDeque::new);
        }
        &mut self.rings[at]
    }
}

#[cfg(test)]
mod tests;
