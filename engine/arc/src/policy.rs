//! What leaves when room is needed: a window for what came lately, and a main part for what is used most often.
//!
//! ```text
//!   read ahead ─▶ AHEAD ── asked for ──┐           at most a quarter of what its kind has, for a cacheful of uses; no ghost
//!                                      ▼
//!   miss ───────────────────────▶ WINDOW ◀─┐       a sixty-fourth up to all of what its kind has
//!                                   │ └────┘ used since it came
//!                                   ▼ the oldest
//!              used more often than the one that would leave MAIN for it?
//!                 │ no, or as often                         │ yes
//!                 ▼                                         ▼
//!           ghost of window                               MAIN ◀─┐ used, or the others of the few that were looked at
//!                                                           │ └──┘
//!                                                           ▼ of the few that the hand is at the one used least
//!                                                     ghost of main
//! ```
//!
//! *Who is kept.* Each entry and each ghost counts its uses up to 15, halved after twenty cachefuls of uses (`lists`). What
//! is used as often does not replace what is there: of a loop that is larger than the memory, what fits stays.
//!
//! *How large the window is.* With a small one this is a cache by frequency, with one of all it is a clock, and both are
//! wrong at times: a loop wants the first, blocks that are wanted again soon and then never the second. The horizon tells
//! of each use whether LRU would have had the block:
//!
//! ```text
//!                    LRU would have it          LRU would not
//!   in memory        -                          a hit that recency would lose: smaller
//!   a ghost          larger: a miss that        smaller, at half of that: only what is kept long
//!                    recency would save         would have helped
//! ```
//!
//! Each moves the target by half of the block. While the first two come mostly from one side, as after a change of what
//! clients do, the step grows up to nine times: what speaks for a side is summed in bytes, so that the many blocks of one
//! file do not count as a change, and what contradicts counts four times. As the window becomes smaller, its oldest
//! go over to the main part until that has its share.
//!
//! *Data and metadata* are two such caches over one memory. A miss on a ghost moves the border between them to its own side;
//! of metadata by 11/8 of that, as a missing indirect block delays every read below it. It moves it by more when it is
//! one of few ghosts than when it is one of many, for it says that few bytes more would have been enough, and when the
//! block was used again before. And by more when the moves before it went the same way, with what they agree by squared:
//! both kinds miss all the time, and where these misses balance the border is to stay.
//!
//! *Cache devices.* While there are any, the window has room for what they were not fed from yet (`unseen`).
//!
//! *Cost.* A hit sets a bit, a count and an epoch. Each step of the hand clears a bit, shrinks the window, or ends in one
//! that leaves, with [`LOOKED_AT`] more at most.

use crate::block::Kind;
use crate::charge::OVERHEAD;
use crate::horizon::{EPOCHS, Epoch, Horizon, NEVER};
use crate::lists::Part;
use crate::near::TURN;
use crate::shard::{Leavers, Shard};

/// The window has at least this part of the memory,
const WINDOW_LEAST: u64 = 64;
/// and room for so many of its blocks: large ones are read in pieces, and not to leave between these.
const WINDOW_BLOCKS: u64 = 2;
/// Blocks from this size on do not leave while they are among the last that were asked for.
const PIECES_LEAST: u64 = 256 << 10;
/// While the window has this part of the memory at most.
const PIECES_SHARE: u64 = 2;
/// What was read ahead may have this part of what its kind has, and so may the blocks for which the window is made larger.
const AHEAD_SHARE: u64 = 4;
/// What was read ahead leaves after so many epochs, which are a cacheful of uses.
const AHEAD_EPOCHS: Epoch = EPOCHS as Epoch;
/// The window is made larger than it should be up to this part of what its kind has, until cache devices were fed from it.
const UNSEEN_SHARE: u64 = 2;
/// Of so many blocks of the main part the one used least leaves.
const LOOKED_AT: usize = 5;
/// A step becomes larger by up to so many times when misses and hits tell the same
const STEP_MORE: u64 = 8;
/// until they are this part of the memory.
const TREND_SHARE: u64 = 2;
/// What a miss of data and one of metadata move the border by, in blocks; twice that when it was used again.
const BORDER_STEP: [f64; 2] = [8.0 / 480.0, 11.0 / 480.0];
/// And how much more a miss on one of few ghosts weighs than on one of many, at most.
const BORDER_MORE: f64 = 256.0;
/// Moves become larger by up to so many times when those before them went the same way
const BORDER_STEP_MORE: f64 = 32.0;
/// until their sum is this part of the memory.
const BORDER_TREND_SHARE: u64 = 32;
/// Each kind may always have this part of the memory.
const BORDER_LEAST: u64 = 64;
/// Ghosts are names only, but names of many small blocks add up; each ghost list may take this part of the limit.
const GHOST_SHARE: u64 = 32;

/// What is learned of one kind.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) horizon: Horizon,
    /// Bytes of the window.
    pub(crate) target: u64,
    /// Bytes of uses that spoke for a larger window, less those that spoke for a smaller one.
    trend: i64,
}

impl Side {
    pub(crate) fn new(max: u64) -> Side {
        Side { horizon: Horizon::new(max), target: max / 4, trend: 0 }
    }

    fn shrink(&mut self, step: u64, memory: u64) {
        self.target = self.target.saturating_sub(step).max(memory / WINDOW_LEAST);
    }

    /// How far the target moves when a block of `charge` bytes speaks for a larger or a smaller window.
    fn step(&mut self, charge: u64, is_larger: bool) -> u64 {
        let most = (self.horizon.memory() / TREND_SHARE).max(1) as i64;
        let sign = if is_larger { 1 } else { -1 };
        let by = if self.trend * sign < 0 { 4 * charge } else { charge };
        self.trend = (self.trend + sign * by as i64).clamp(-most, most);
        let agreed = (self.trend * sign).max(0) as u64;
        let more = u128::from(charge) * u128::from(STEP_MORE) * u128::from(agreed) / most as u128;
        (charge + more as u64) / 2
    }
}

/// What is learned of the border between data and metadata.
#[derive(Debug, Default)]
pub(crate) struct Border {
    /// Bytes of moves for metadata, less those for data.
    trend: i64,
}

impl Border {
    /// How far the border moves instead of by `by`.
    fn step(&mut self, by: u64, is_for_metadata: bool, memory: u64) -> u64 {
        let most = (memory / BORDER_TREND_SHARE).max(1) as i64;
        let sign = if is_for_metadata { 1 } else { -1 };
        let counted = if self.trend * sign < 0 { 4 * by } else { by };
        self.trend = (self.trend + sign * counted.min(most as u64) as i64).clamp(-most, most);
        let agreed = (self.trend * sign).max(0) as f64 / most as f64;
        by + (by as f64 * BORDER_STEP_MORE * agreed * agreed) as u64
    }
}

impl Shard {
    /// Tells the horizons what each kind has when the memory is full.
    fn note_shares(&mut self) {
        for (kind, other) in [(Kind::Data, Kind::Metadata), (Kind::Metadata, Kind::Data)] {
            let share = self.room().saturating_sub(self.resident(other));
            self.sides[kind.index()].horizon.set_memory(share);
        }
    }

    /// Notes a use of what has just come, or was read ahead.
    pub(crate) fn count(&mut self, slot: u32) {
        let entry = &mut self.lists[slot];
        let horizon = &mut self.sides[entry.kind.index()].horizon;
        entry.count(horizon.now());
        entry.epoch = horizon.touch(entry.epoch, entry.charge);
    }

    /// Notes a use of what was used before.
    pub(crate) fn use_again(&mut self, slot: u32) {
        let entry = &mut self.lists[slot];
        entry.used = true;
        if self.sides[entry.kind.index()].horizon.is_lately(entry.epoch) {
            entry.count_lately();
        } else {
            self.use_after_a_while(slot);
        }
    }

    #[inline(never)]
    fn use_after_a_while(&mut self, slot: u32) {
        let (memory, entry) = (self.room(), &self.lists[slot]);
        let side = &mut self.sides[entry.kind.index()];
        if !side.horizon.holds(entry.epoch) {
            let step = side.step(entry.charge, false);
            side.shrink(step, memory);
        }
        self.count(slot);
    }

    /// Room for one more block.
    pub(crate) fn make_room(&mut self, charge: u64, leavers: &mut Leavers) {
        self.evict_to(self.limit - charge, charge, leavers);
    }

    pub(crate) fn shrink_to(&mut self, size: u64, leavers: &mut Leavers) {
        self.evict_to(size, 0, leavers);
    }

    /// `coming`: what the window is about to get.
    fn evict_to(&mut self, size: u64, coming: u64, leavers: &mut Leavers) {
        self.cool_to(size + coming, leavers);
        while self.size() > size {
            if self.size() > self.cold.bytes() {
                self.evict_one(self.kind_to_evict(), coming, leavers);
            } else if !self.drop_least_cold(leavers) {
                break;
            }
        }
        self.note_shares();
    }

    /// Metadata gives way only when it has more than its part, or when there is no data left.
    fn kind_to_evict(&self) -> Kind {
        let metadata = self.resident(Kind::Metadata);
        let target = self.metadata_target.min(self.room() - self.room() / BORDER_LEAST);
        if metadata > 0 && (metadata > target || self.resident(Kind::Data) == 0) {
            Kind::Metadata
        } else {
            Kind::Data
        }
    }

    fn evict_one(&mut self, kind: Kind, coming: u64, leavers: &mut Leavers) {
        let leaving = loop {
            if let Some(slot) = self.surplus_ahead(kind) {
                break slot;
            }
            let (window, in_window) = (self.window(kind), self.lists.bytes(kind, Part::Window));
            let oldest = self.lists.oldest(kind, Part::Window);
            let Some(oldest) =
                oldest.filter(|_| in_window > window || self.lists.count(kind, Part::Main) == 0)
            else {
                break self.least_used(kind).expect("what has bytes in memory is in one of three lists");
            };
            if in_window <= self.room() / PIECES_SHARE
                && self.is_in_pieces(oldest)
                && let Some(least) = self.least_used(kind)
            {
                break least;
            }
            if in_window >= window + self.lists[oldest].charge + coming {
                // It became smaller: the main part has not got its share yet.
                self.settle(oldest);
                continue;
            }
            if std::mem::take(&mut self.lists[oldest].used) {
                self.enter_window(oldest);
                continue;
            }
            let Some(least) = self.least_used(kind) else { break oldest };
            let now = self.now(kind);
            if self.lists[oldest].uses(now) <= self.lists[least].uses(now) {
                break oldest;
            }
            self.settle(oldest);
            break least;
        };
        // While memory becomes less nothing is compressed.
        if coming == 0 || !self.cools(leaving, leavers) {
            self.make_ghost(leaving, leavers);
        }
    }

    /// What was read ahead leaves when there is too much of it, or nothing else, or nothing has asked for it for long.
    fn surplus_ahead(&self, kind: Kind) -> Option<u32> {
        let (ahead, all) = (self.lists.bytes(kind, Part::Ahead), self.resident(kind));
        let oldest = self.lists.oldest(kind, Part::Ahead)?;
        let one = self.lists[oldest].charge;
        let age = self.sides[kind.index()].horizon.now() - self.lists[oldest].epoch;
        let is_stale = age > AHEAD_EPOCHS;
        (ahead > (all / AHEAD_SHARE).max(one) || ahead == all || is_stale).then_some(oldest)
    }

    fn window(&self, kind: Kind) -> u64 {
        let count = self.lists.count(kind, Part::Window).max(1) as u64;
        let blocks = WINDOW_BLOCKS * self.lists.bytes(kind, Part::Window) / count;
        self.sides[kind.index()]
            .target
            .max(self.room() / WINDOW_LEAST)
            .max(blocks.min(self.room() / AHEAD_SHARE))
            .max(self.unseen(kind))
    }

    /// What cache devices have not been fed from, in so far as the window is made larger for it.
    fn unseen(&self, kind: Kind) -> u64 {
        let most = self.feeders.iter().map(|unseen| unseen.bytes(kind)).max().unwrap_or(0);
        most.min(self.resident(kind) / UNSEEN_SHARE)
    }

    /// What goes to this end of the window pushes what is there to the other.
    pub(crate) fn enter_window(&mut self, slot: u32) {
        self.lists.move_to(slot, Part::Window);
        self.note_unseen(slot);
    }

    pub(crate) fn note_unseen(&mut self, slot: u32) {
        let (kind, charge) = (self.lists[slot].kind, self.lists[slot].charge);
        self.feeders.iter_mut().for_each(|unseen| unseen.came(kind, charge));
    }

    /// Whether a client may be in the midst of reading a block in pieces.
    fn is_in_pieces(&self, slot: u32) -> bool {
        self.lists[slot].charge >= PIECES_LEAST && self.served.is_recent(slot)
    }

    fn settle(&mut self, slot: u32) {
        self.lists[slot].used = false;
        self.lists.move_to(slot, Part::Main);
    }

    /// The block of the main part that would leave; it is where the hand comes next.
    fn least_used(&mut self, kind: Kind) -> Option<u32> {
        self.least_used_of(kind, Part::Main, LOOKED_AT).map(|(_, slot)| slot)
    }

    /// Of the next `few` blocks of a part that were not used since the hand last passed, the one used least, and how often.
    pub(crate) fn least_used_of(&mut self, kind: Kind, part: Part, few: usize) -> Option<(u8, u32)> {
        let now = self.now(kind);
        let mut least: Option<(u8, u32)> = None;
        let mut looked_at = 0;
        while looked_at < few.min(self.lists.count(kind, part)) {
            let slot = self.lists.oldest(kind, part)?;
            self.lists.move_to(slot, part);
            if std::mem::take(&mut self.lists[slot].used) {
                continue;
            }
            looked_at += 1;
            let uses = self.lists[slot].uses(now);
            if least.is_none_or(|(fewest, _)| uses < fewest) {
                least = Some((uses, slot));
            }
        }
        self.lists.move_to_head(least?.1);
        least
    }

    fn make_ghost(&mut self, slot: u32, leavers: &mut Leavers) {
        self.let_go(slot, leavers);
        let content = self.lists.content_mut(slot);
        let (block, buf) = (content.block, content.buf.take());
        content.origin = None;
        let entry = &mut self.lists[slot];
        let (kind, part) = (entry.kind, entry.part);
        entry.used = false;
        if part == Part::Ahead {
            entry.epoch = NEVER;
        }
        let charge = entry.charge;
        leavers.evicted.extend(buf.map(|buf| (block, kind, buf)));
        self.note_evicted(kind, charge);
        self.lists.move_to(slot, part.ghost());
        if part == Part::Ahead {
            // A block that was read ahead for nothing says nothing about the sizes of the lists.
            self.ahead.note_unused(kind);
            self.forget(slot);
        }
        self.trim_ghosts(kind);
    }

    /// A block is about to have no bytes here: cores have it at hand no more, and are to report what they use when that was
    /// often enough.
    pub(crate) fn let_go(&mut self, slot: u32, leavers: &mut Leavers) {
        let content = self.lists.content_mut(slot);
        leavers.let_go(content.block, std::mem::take(&mut content.holders));
        self.turning += self.lists[slot].charge;
        if self.turning >= self.limit / TURN {
            (self.turning, self.turn) = (0, self.turn.wrapping_add(1));
        }
    }

    pub(crate) fn note_evicted(&mut self, kind: Kind, charge: u64) {
        let counts = self.stats.of(kind);
        counts.evicted += 1;
        counts.evicted_bytes += charge;
    }

    pub(crate) fn now(&self, kind: Kind) -> Epoch {
        self.sides[kind.index()].horizon.now()
    }

    pub(crate) fn forget(&mut self, slot: u32) {
        self.map.remove(&self.lists.content(slot).block);
        self.unlink(slot);
    }

    /// Each list remembers as much of what left it as the shard can hold, so a block missed again within about two
    /// cachefuls is noticed, and its uses are known.
    pub(crate) fn trim_ghosts(&mut self, kind: Kind) {
        let names_max = (self.limit / GHOST_SHARE / OVERHEAD) as usize;
        while let Some(slot) = self.surplus_ghost(kind, names_max) {
            self.forget(slot);
        }
    }

    fn surplus_ghost(&self, kind: Kind, names_max: usize) -> Option<u32> {
        let surplus =
            |part| self.lists.bytes(kind, part) > self.limit || self.lists.count(kind, part) > names_max;
        let part = [Part::GhostWindow, Part::GhostMain].into_iter().find(|&part| surplus(part))?;
        self.lists.oldest(kind, part)
    }

    /// A miss on a ghost, which is forgotten: what should have been otherwise. Returns how often it was used.
    pub(crate) fn learn(&mut self, ghost: u32) -> u8 {
        let entry = &self.lists[ghost];
        let (kind, part, charge) = (entry.kind, entry.part, entry.charge);
        let counts = self.stats.of(kind);
        match part {
            Part::GhostWindow => counts.recent_ghost_hits += 1,
            _ => counts.frequent_ghost_hits += 1,
        }
        let uses = self.learn_of_window(ghost);
        self.miss_cold(charge, uses);
        self.move_border(kind, if uses > 1 { 2.0 } else { 1.0 });
        self.forget(ghost);
        uses
    }

    /// A use of what had left the window or the main part: what the window should have been. Returns how often it was used.
    pub(crate) fn learn_of_window(&mut self, gone: u32) -> u8 {
        let (memory, entry) = (self.room(), &self.lists[gone]);
        let (charge, epoch) = (entry.charge, entry.epoch);
        let side = &mut self.sides[entry.kind.index()];
        if side.horizon.holds(epoch) {
            side.target = (side.target + side.step(charge, true)).min(memory);
        } else {
            side.shrink(charge / 4, memory);
        }
        entry.uses(side.horizon.now())
    }

    fn move_border(&mut self, kind: Kind, weight: f64) {
        let blocks: usize = Kind::ALL.into_iter().map(|kind| self.blocks(kind)).sum();
        let block = self.size() / blocks.max(1) as u64;
        let (metadata, data) = (self.ghost_bytes(Kind::Metadata).max(1), self.ghost_bytes(Kind::Data).max(1));
        // As many times more as there are fewer is too much for metadata, of which there is little; the root is too little.
        let more = |few: u64, many: u64| {
            let fewer = many as f64 / few as f64;
            (fewer * fewer.sqrt()).sqrt().clamp(1.0, BORDER_MORE)
        };
        let step = |few, many| (block as f64 * weight * BORDER_STEP[kind.index()] * more(few, many)) as u64;
        let target = match kind {
            Kind::Metadata => {
                let step = self.border.step(step(metadata, data), true, self.limit);
                self.metadata_target.saturating_add(step)
            }
            Kind::Data => {
                let step = self.border.step(step(data, metadata), false, self.limit);
                self.metadata_target.saturating_sub(step)
            }
        };
        let least = self.limit / BORDER_LEAST;
        self.metadata_target = target.clamp(least, self.limit - least);
    }
}
