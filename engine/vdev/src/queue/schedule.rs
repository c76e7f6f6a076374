//! Which waiting operation a leaf does next. Pure: no I/O, no waiting, no clock of its own.
//!
//! ```text
//!   push ──▶ waiting, one queue per class ── next ──▶ active, counted per class ── done ──▶
//! ```
//!
//! First every class gets its minimum, in turns, so that none starves; then, in the order of the classes, up to the
//! maximum. Background classes (scrub and the like) have no more than their minimum while others are active, and
//! that only on credit which others earn by completing: a disk that prefers long sequential runs would otherwise
//! never come back to the interactive ones.
//!
//! Operations of one class that lie next to each other leave together, as a batch that becomes one operation on the
//! device.
//!
//! Asynchronous writes are fewer, and smaller, on a device where clients would wait for them ([`courtesy`]).

mod courtesy;

use crate::{Limits, Priority};
use courtesy::{Courtesy, Waited};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    Trim,
}

/// What the schedule knows of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub class: Priority,
    pub direction: Direction,
    pub offset: u64,
    pub len: u64,
}

impl Shape {
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// Operations that were pushed within about half a second are sorted by place; older ones go first.
const AGE_SHIFT: u32 = 29;

/// On devices that do not seek neighbours are asked for together up to here, though less is merged: blocks of 128K, each by
/// itself, cost twice as much. No more, since what a client waits for may have to wait behind it.
const TOGETHER_MAX: u64 = 512 << 10;

/// Age, place, arrival. First come, first served is the same with the arrival as age.
type Rank = (u64, u64, u64);

#[derive(Debug)]
pub(crate) struct Schedule<T> {
    limits: Limits,
    rotational: bool,
    waiting: [BTreeMap<Rank, (Shape, T)>; Priority::COUNT],
    active: [u32; Priority::COUNT],
    total: u32,
    interactive: u32,
    credit: u32,
    arrivals: u64,
    last_class: usize,
    courtesy: Courtesy,
}

/// Neighbours that go to the device as one operation. Never empty.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    pub class: Priority,
    pub parts: Vec<(Shape, T)>,
}

impl<T> Batch<T> {
    /// The first byte and the length of the whole.
    pub fn span(&self) -> (u64, u64) {
        let (first, last) = (&self.parts[0].0, &self.parts[self.parts.len() - 1].0);
        (first.offset, last.end() - first.offset)
    }
}

impl<T> Schedule<T> {
    pub fn new(limits: Limits, rotational: bool) -> Schedule<T> {
        Schedule {
            limits,
            rotational,
            waiting: std::array::from_fn(|_| BTreeMap::new()),
            active: [0; Priority::COUNT],
            total: 0,
            interactive: 0,
            credit: 0,
            arrivals: 0,
            last_class: Priority::COUNT - 1,
            courtesy: Courtesy::new(rotational),
        }
    }

    /// New limits, for what is let go from now on. How many asynchronous writes may be active is said anew with the next
    /// txg; until then it is no more than before.
    pub fn set_limits(&mut self, limits: Limits) {
        let i = Priority::AsyncWrite.index();
        let async_writes = self.limits.max_active[i]
            .clamp(limits.min_active[i].min(limits.max_active[i]), limits.max_active[i]);
        self.limits = limits;
        self.set_async_writes(async_writes);
    }

    /// How many asynchronous writes may be active: more of them as more dirty data waits.
    pub fn set_async_writes(&mut self, max_active: u32) {
        self.limits.max_active[Priority::AsyncWrite.index()] = max_active.max(1);
    }

    /// Lets an operation of `class` go at once when nothing stands in its way; it counts as active then.
    pub fn try_start(&mut self, class: Priority) -> bool {
        let i = class.index();
        self.comes(class);
        let nobody_waits = self.waiting.iter().all(BTreeMap::is_empty);
        let free = nobody_waits && self.total < self.limits.total && self.active[i] < self.max_active(class);
        if free {
            self.started(class);
        }
        free
    }

    pub fn push(&mut self, shape: Shape, now_ns: u64, item: T) {
        self.comes(shape.class);
        self.arrivals += 1;
        let age = if shape.class.is_first_come() { self.arrivals } else { now_ns >> AGE_SHIFT };
        self.waiting[shape.class.index()].insert((age, shape.offset, self.arrivals), (shape, item));
    }

    /// The next batch that may go to the device; it counts as one active operation.
    pub fn next(&mut self) -> Option<Batch<T>> {
        let class = self.choose()?;
        self.last_class = class.index();
        self.started(class);
        Some(Batch { class, parts: self.take_neighbours(class) })
    }

    /// An operation of `class` has completed, or was given up.
    pub fn done(&mut self, class: Priority) {
        self.active[class.index()] -= 1;
        self.total -= 1;
        if class == Priority::AsyncWrite {
            self.courtesy.wrote();
        }
        if class.is_background() {
            self.credit = if self.interactive == 0 { self.credit.saturating_add(1) } else { self.credit };
            return;
        }
        self.interactive -= 1;
        self.credit = if self.interactive == 0 { 0 } else { self.limits.credit };
    }

    /// An operation of `class` was with the device for so long.
    pub fn took(&mut self, class: Priority, ns: u64) {
        if let Some(what) = waited(class) {
            self.courtesy.took(what, ns, self.active(Priority::AsyncWrite) > 0);
        }
    }

    /// How long a batch may be, in bytes.
    pub fn aggregation(&self) -> u64 {
        let Limits { aggregation, aggregation_non_rotating, .. } = self.limits;
        if self.rotational { aggregation } else { aggregation_non_rotating }
    }

    /// How long an operation may be that is asked for as neighbours, in bytes: as a batch; on devices that do not seek, as a
    /// batch on those that do, within [`TOGETHER_MAX`].
    pub fn together_max(&self) -> u64 {
        match self.aggregation() {
            0 => 0,
            merged if self.rotational => merged,
            merged => merged.max(self.limits.aggregation.min(TOGETHER_MAX)),
        }
    }

    pub fn waiting(&self, class: Priority) -> usize {
        self.waiting[class.index()].len()
    }

    pub fn active(&self, class: Priority) -> u32 {
        self.active[class.index()]
    }

    /// How busy the device is: everything with it or waiting for it.
    pub fn load(&self) -> usize {
        self.total as usize + self.waiting.iter().map(BTreeMap::len).sum::<usize>()
    }

    fn comes(&mut self, class: Priority) {
        let i = Priority::AsyncWrite.index();
        let meets_writes = self.active[i] > 0 || !self.waiting[i].is_empty();
        // A reader is known to come again; a write may be of the labels, which nothing is beside.
        if class == Priority::SyncRead || class == Priority::SyncWrite && meets_writes {
            self.courtesy.client_comes();
        }
    }

    fn started(&mut self, class: Priority) {
        self.active[class.index()] += 1;
        self.total += 1;
        if class.is_background() {
            if self.interactive > 0 {
                self.credit = self.credit.saturating_sub(1);
            }
            return;
        }
        self.interactive += 1;
        if self.interactive == 1 {
            self.credit = 1;
        }
    }

    fn choose(&self) -> Option<Priority> {
        if self.total >= self.limits.total {
            return None;
        }
        let waits = |p: &Priority| !self.waiting[p.index()].is_empty();
        // In turns from the class after the last one, so that a low limit on the total starves no class.
        let (before, after) = Priority::ALL.split_at(self.last_class + 1);
        let mut turns = after.iter().chain(before).copied().filter(waits);
        turns.find(|&p| self.active[p.index()] < self.min_active(p)).or_else(|| {
            let mut all = Priority::ALL.into_iter().filter(waits);
            all.find(|&p| self.active[p.index()] < self.max_active(p))
        })
    }

    fn min_active(&self, class: Priority) -> u32 {
        let min = self.limits.min_active[class.index()];
        if class == Priority::AsyncWrite {
            return min.min(self.max_active(class));
        }
        if class.is_background() && self.interactive > 0 { min.min(self.credit) } else { min }
    }

    fn max_active(&self, class: Priority) -> u32 {
        if !class.is_background() {
            let max = self.limits.max_active[class.index()];
            return if class == Priority::AsyncWrite { self.courtesy.writes(max) } else { max };
        }
        if self.interactive > 0 {
            return self.min_active(class);
        }
        if self.credit < self.limits.idle_after {
            return self.limits.min_active[class.index()].max(1);
        }
        self.limits.max_active[class.index()]
    }

    /// The first in the class's order, and those that follow it on the device.
    fn take_neighbours(&mut self, class: Priority) -> Vec<(Shape, T)> {
        let (aggregation, read_gap) = (self.aggregation(), self.limits.read_gap);
        let aggregation =
            if class == Priority::AsyncWrite { self.courtesy.piece(aggregation) } else { aggregation };
        let waiting = &mut self.waiting[class.index()];
        let (_, first) = waiting.pop_first().expect("the class was chosen because somebody waits");
        let start = first.0.offset;
        let mut parts = vec![first];
        while let Some(next) = waiting.first_entry() {
            let (shape, last) = (next.get().0, parts[parts.len() - 1].0);
            let fits = shape.end().saturating_sub(start) <= aggregation;
            if !fits || !are_neighbours(&last, &shape, read_gap) {
                break;
            }
            parts.push(next.remove());
        }
        parts
    }
}

/// What of this class a client waits for.
fn waited(class: Priority) -> Option<Waited> {
    match class {
        Priority::SyncRead => Some(Waited::Read),
        Priority::SyncWrite => Some(Waited::Write),
        _ => None,
    }
}

fn are_neighbours(a: &Shape, b: &Shape, read_gap: u64) -> bool {
    let gap = match (a.direction, b.direction) {
        (Direction::Read, Direction::Read) => read_gap,
        (Direction::Write, Direction::Write) => 0,
        _ => return false,
    };
    b.offset >= a.end() && b.offset - a.end() <= gap
}

#[cfg(test)]
mod tests;
