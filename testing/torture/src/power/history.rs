//! What was done to the volumes of a pool, and when: from it follows what they may hold after the power is gone.
//!
//! ```text
//!   A  ├────┤                        done before the flush began: the flush promises it
//!   B     ├──────────┤               not yet done then: no promise
//!   C         ├──FUA──┤              promised by its own answer
//!   D                     ├───       under way at the cut: there or not, atom by atom
//!   flush        ├────────────┤
//!   time ───────────────────────▶ cut
//! ```
//!
//! Time is a counter: each beginning and each end takes the next number, so "before" has no ties. The history only
//! grows; a cut is one number, and whatever is younger has not happened. What a found state must agree with is
//! decided in [`mod@super::check`].
//!
//! An atom is what a log of this volume never divides: its blocks, or parts of them where they are larger than a log's.
//!
//! Invariant: deeds that are under way at the same time touch no block in common ([`History::begin`] refuses), so the
//! deeds of one block have one order.

use super::check::Found;
use crate::model::pattern;
use std::collections::BTreeMap;
use std::ops::Range;
use tunables::{Tunable, Tunables};

/// "Not yet."
pub const NEVER: u64 = u64::MAX;

/// A change of one volume. Bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Write { offset: u64, len: u64, seed: u64 },
    Zero { offset: u64, len: u64 },
    Resize { size: u64 },
}

/// From the call to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub begun: u64,
    pub done: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub deed: Deed,
    pub span: Span,
    /// Its answer promises that it is on disk.
    pub durable: bool,
}

#[derive(Clone, Debug)]
pub enum Snapshot {
    /// From before all time.
    Old(Found),
    Taken(Span),
}

/// One volume: what it held at the beginning, and all that happened to it since.
#[derive(Clone, Debug)]
pub struct Track {
    pub block: u64,
    /// Bytes: between multiples of this, what is under way at a cut is wholly there or wholly not.
    pub atom: u64,
    pub base: Vec<u8>,
    pub events: Vec<Event>,
    /// Those under way.
    open: Vec<EventId>,
    pub flushes: Vec<Span>,
    /// By their short names.
    pub snapshots: BTreeMap<String, Snapshot>,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    now: u64,
    pub volumes: BTreeMap<String, Track>,
    /// Whatever waits for a txg, on any volume: it promises all that was done before, in all of them.
    pub syncs: Vec<Span>,
}

/// Names one event.
pub type EventId = usize;

/// What a log of the default settings never divides in a volume with blocks of this size.
fn atom_of(block: u64) -> u64 {
    zil::divides_at(block, Tunables::default().get(Tunable::ZilMaxBlockSize)).min(block)
}

impl History {
    /// The present, as a number to compare with.
    pub fn now(&self) -> u64 {
        self.now
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A volume that exists, is on disk, and holds `base`.
    pub fn add_volume(&mut self, name: &str, block: u64, base: Vec<u8>) {
        let track = Track {
            block,
            atom: atom_of(block),
            base,
            events: Vec::new(),
            open: Vec::new(),
            flushes: Vec::new(),
            snapshots: BTreeMap::new(),
        };
        self.volumes.insert(name.to_string(), track);
    }

    /// The volume may have `block` bytes for a block too, sooner or later: what may then be torn, may be torn.
    pub fn allow_block(&mut self, name: &str, block: u64) {
        if let Some(track) = self.volumes.get_mut(name) {
            track.atom = track.atom.min(atom_of(block));
        }
    }

    /// Begins a deed, unless another that is under way touches the same blocks.
    pub fn begin(&mut self, volume: &str, deed: Deed, durable: bool) -> Option<EventId> {
        let track = self.volumes.get(volume)?;
        if track.open.iter().any(|&e| track.collide(&track.events[e].deed, &deed)) {
            return None;
        }
        let span = Span { begun: self.tick(), done: NEVER };
        let track = self.volumes.get_mut(volume)?;
        let id = track.events.len();
        track.events.push(Event { deed, span, durable });
        track.open.push(id);
        Some(id)
    }

    /// The answer to a deed has come.
    pub fn end(&mut self, volume: &str, event: EventId) {
        let now = self.tick();
        if let Some(track) = self.volumes.get_mut(volume) {
            track.open.retain(|&e| e != event);
            track.events[event].span.done = now;
        }
    }

    pub fn begin_flush(&mut self) -> Span {
        Span { begun: self.tick(), done: NEVER }
    }

    pub fn end_flush(&mut self, volume: &str, span: Span) {
        let done = self.tick();
        if let Some(track) = self.volumes.get_mut(volume) {
            track.flushes.push(Span { done, ..span });
        }
    }

    pub fn begin_sync(&mut self) -> Span {
        self.begin_flush()
    }

    pub fn end_sync(&mut self, span: Span) {
        let done = self.tick();
        self.syncs.push(Span { done, ..span });
    }

    /// A snapshot is about to be taken; there may be one from here on.
    pub fn begin_snapshot(&mut self, volume: &str, name: &str) {
        let span = Span { begun: self.tick(), done: NEVER };
        if let Some(track) = self.volumes.get_mut(volume) {
            track.snapshots.insert(name.to_string(), Snapshot::Taken(span));
        }
    }

    /// It was refused: there is none.
    pub fn drop_snapshot(&mut self, volume: &str, name: &str) {
        if let Some(track) = self.volumes.get_mut(volume) {
            track.snapshots.remove(name);
        }
    }

    pub fn end_snapshot(&mut self, volume: &str, name: &str) {
        let done = self.tick();
        let snapshot = self.volumes.get_mut(volume).and_then(|t| t.snapshots.get_mut(name));
        if let Some(Snapshot::Taken(span)) = snapshot {
            span.done = done;
            let span = *span;
            self.syncs.push(span);
        }
    }
}

impl Track {
    /// No volume of this history was ever larger.
    pub fn size_max(&self) -> u64 {
        let sizes = self.events.iter().filter_map(|e| match e.deed {
            Deed::Resize { size } => Some(size),
            _ => None,
        });
        sizes.chain([self.base.len() as u64]).max().unwrap_or(0)
    }

    /// The blocks that a deed changes; what is beyond the end is nothing and stays nothing.
    pub fn blocks(&self, deed: &Deed) -> Range<u64> {
        deed.touches(self.block)
    }

    /// As [`Track::blocks`], in atoms.
    pub fn atoms(&self, deed: &Deed) -> Range<u64> {
        deed.touches(self.atom)
    }

    /// A resize runs alone on the volume.
    fn collide(&self, a: &Deed, b: &Deed) -> bool {
        let is_resize = |deed: &Deed| matches!(deed, Deed::Resize { .. });
        let (x, y) = (self.blocks(a), self.blocks(b));
        is_resize(a) || is_resize(b) || (x.start < y.end && y.start < x.end)
    }
}

impl Deed {
    /// Which of the units of so many bytes it changes.
    fn touches(&self, unit: u64) -> Range<u64> {
        match *self {
            Deed::Write { offset, len, .. } | Deed::Zero { offset, len } => {
                offset / unit..(offset + len).div_ceil(unit)
            }
            Deed::Resize { size } => size / unit..NEVER,
        }
    }

    /// Carries the deed out on an array of bytes that is as long as the volume ever was.
    pub fn apply(&self, bytes: &mut [u8]) {
        match *self {
            Deed::Write { offset, len, seed } => {
                bytes[offset as usize..(offset + len) as usize].copy_from_slice(&pattern(seed, len));
            }
            Deed::Zero { offset, len } => bytes[offset as usize..(offset + len) as usize].fill(0),
            Deed::Resize { size } => bytes[size as usize..].fill(0),
        }
    }
}
