//! What each core has at hand of the cache: a hit there changes nothing that another core changes.
//!
//! ```text
//!   core 0                        core 1
//!   ┌ table, its lock ─┐          ┌ table, its lock ─┐
//!   │ name ─▶ place    │          │                  │      a name: a tree that nothing is written to, and the number of
//!   │ block ─▶ bytes ──┼─ lent ─┐ │ bytes ── lent ─┐ │      a block in it, so that no indirect block need be looked at
//!   └──────────────────┘        ▼ └────────────────┼─┘
//!                          shard: block ─▶ bytes ◀─┘ holders: the tables that have it
//! ```
//!
//! A table's bytes are lent ([`Buf::lend`]), with a count of holders of their own. A block is in a table only while the
//! shard has it: what leaves the shard is taken out of all tables before the operation that removed it ends, and the shard's
//! entry says which these are. So tables hold no memory but their own, and what is freed or replaced is found no more.
//!
//! *Uses.* The shard must know what is used, or it would let go of it. It need know no sooner than it matters: a table
//! tells it of a block's uses once for each [`TURN`] of the shard's memory that was replaced. While nothing leaves, nothing
//! is told.
//!
//! Sizes: a hundred and twenty-eighth part of the cache for all tables, charged to it; four places for each hash. What finds
//! no place pushes another one out, and is found in the shard.
//!
//! Not here: what was not in memory, or was read ahead and not asked for yet: the first demand hit is the shard's.

use crate::block::{BlockId, Kind};
use crate::served::Served;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use world::Buf;

/// This part of a shard's memory is replaced between two reports of a block.
pub(crate) const TURN: u64 = 16;
/// Of the cache, what all tables together may take.
const SHARE: u64 = 128;
/// More cores than this share tables. One bit each in an entry's holders.
const TABLES: usize = 64;
const WAYS: usize = 4;
/// A table has no more places: their numbers are the lower half of a word.
const PLACES_MAX: usize = 1 << 16;
const PLACES_MIN: usize = 64;
/// No place: no tag is zero.
const NOWHERE: u32 = 0;

/// A block by where it is in a tree that does not change: the tree's number ([`crate::Cache::number_tree`]), and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub tree: u64,
    pub index: u64,
}

impl Name {
    const NONE: Name = Name { tree: 0, index: 0 };

    fn spread(self) -> u64 {
        (self.index ^ self.tree.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// See the module.
pub(crate) struct Near {
    tables: [OnceLock<Box<Table>>; TABLES],
    /// How far each shard is ([`TURN`]).
    turns: Box<[AtomicU32]>,
}

/// Two lines of the processor's cache, as it fetches them in pairs.
#[repr(align(128))]
pub(crate) struct Table(Mutex<Places>);

/// What a hit changes comes first, in one line with the lock.
#[repr(C)]
pub(crate) struct Places {
    served: Served,
    /// Demand hits, by kind.
    hits: [u64; 2],
    hand: u8,
    held: Box<[Held]>,
    /// Of the block at each place, [`NOWHERE`] where there is none: what is not here is so without a look at [`Held`].
    tags: Box<[u32]>,
    /// Tag and number of a place, in groups of [`WAYS`].
    names: Box<[u32]>,
}

#[derive(Debug)]
struct Held {
    block: BlockId,
    buf: Option<Buf>,
    /// Of tree 0 when it has none.
    name: Name,
    turn: u32,
    /// Since they were told the shard.
    uses: u8,
    kind: Kind,
}

/// What a table has.
pub(crate) struct Hit {
    pub(crate) buf: Buf,
    pub(crate) kind: Kind,
    /// So many uses of the block, which the shard is to be told.
    pub(crate) report: Option<(BlockId, u8)>,
}

impl Near {
    pub(crate) fn new(shards: usize) -> Near {
        let turns = (0..shards).map(|_| AtomicU32::new(0)).collect();
        Near { tables: [const { OnceLock::new() }; TABLES], turns }
    }

    /// The table of a core, with its bit. `made` is told how many bytes a new one takes.
    pub(crate) fn of(&self, core: usize, cores: usize, max: u64, made: impl FnOnce(u64)) -> (&Table, u64) {
        let core = core % TABLES;
        let mut bytes = None;
        let table = self.tables[core].get_or_init(|| {
            let count = places(max, cores);
            bytes = Some(bytes_of(count));
            Box::new(Table::new(count))
        });
        if let Some(bytes) = bytes {
            made(bytes);
        }
        (table, 1 << core)
    }

    pub(crate) fn turn(&self, shard: usize) -> u32 {
        self.turns[shard].load(Ordering::Relaxed)
    }

    pub(crate) fn set_turn(&self, shard: usize, turn: u32) {
        self.turns[shard].store(turn, Ordering::Relaxed);
    }

    /// Takes a block out of the tables that have it. The caller holds no shard.
    pub(crate) fn forget(&self, block: &BlockId, holders: u64) {
        for (core, table) in self.tables.iter().enumerate() {
            if holders & (1 << core) != 0
                && let Some(table) = table.get()
            {
                // Its bytes may be the last: they are dropped without the lock.
                let left = table.lock().forget(block);
                drop(left);
            }
        }
    }

    /// Demand hits of all cores, by kind, and the bytes of their tables.
    pub(crate) fn sums(&self) -> ([u64; 2], u64) {
        let (mut hits, mut bytes) = ([0; 2], 0);
        for table in self.tables.iter().filter_map(OnceLock::get) {
            let places = table.lock();
            (0..2).for_each(|kind| hits[kind] += places.hits[kind]);
            bytes += bytes_of(places.held.len());
        }
        (hits, bytes)
    }
}

/// What a table of so many places takes.
fn bytes_of(places: usize) -> u64 {
    (places * size_of::<Held>() + 3 * places * size_of::<u32>()) as u64
}

/// Places of one core's table.
fn places(max: u64, cores: usize) -> usize {
    let all = (max / SHARE) as usize / size_of::<Held>();
    let one = (all / cores.clamp(1, TABLES)).clamp(PLACES_MIN, PLACES_MAX);
    one / WAYS * WAYS
}

/// The first of the [`WAYS`] places of a hash, of so many places.
fn group(spread: u64, places: usize) -> usize {
    // The upper half of a product: a division would cost more than the rest.
    (((spread >> 32) * (places / WAYS) as u64) >> 32) as usize * WAYS
}

impl Table {
    fn new(count: usize) -> Table {
        let nothing =
            || Held { block: BlockId::NONE, buf: None, name: Name::NONE, turn: 0, uses: 0, kind: Kind::Data };
        let (tags, names) = (vec![NOWHERE; count].into(), vec![NOWHERE; 2 * count].into());
        let held = (0..count).map(|_| nothing()).collect();
        Table(Mutex::new(Places { served: Served::new(), hits: [0; 2], hand: 0, held, tags, names }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// The place of a block, if it has one.
    fn place(&self, block: &BlockId) -> Option<usize> {
        let (first, tag) = self.first_place(block);
        (first..first + WAYS).find(|&at| self.tags[at] == tag && self.held[at].block == *block)
    }

    fn first_place(&self, block: &BlockId) -> (usize, u32) {
        let spread = block.spread();
        (group(spread, self.held.len()), spread as u32 | 1)
    }

    /// The place of what has this name.
    fn named(&self, name: Name) -> Option<usize> {
        let (first, tag) = self.first_name(name);
        self.names[first..first + WAYS].iter().find_map(|&known| {
            let at = (known & 0xffff) as usize;
            (known >> 16 == tag && self.held[at].name == name && self.held[at].buf.is_some()).then_some(at)
        })
    }

    fn first_name(&self, name: Name) -> (usize, u32) {
        let spread = name.spread();
        let first = group(spread, self.names.len());
        (first, spread as u32 >> 16 | 1)
    }

    /// The bytes of a block, a use of it.
    pub(crate) fn get(&mut self, block: &BlockId, turn: u32) -> Option<Hit> {
        let at = self.place(block)?;
        Some(self.serve(at, turn))
    }

    /// The same by a name; `turn` is that of a block's shard.
    pub(crate) fn get_named(&mut self, name: Name, turn: impl FnOnce(&BlockId) -> u32) -> Option<Hit> {
        let at = self.named(name)?;
        let turn = turn(&self.held[at].block);
        Some(self.serve(at, turn))
    }

    fn serve(&mut self, at: usize, turn: u32) -> Hit {
        let held = &mut self.held[at];
        if self.served.note(at as u32) {
            held.uses = held.uses.saturating_add(1);
        }
        self.hits[held.kind.index()] += 1;
        let is_due = held.turn != turn && held.uses > 0;
        let report = is_due.then(|| (held.block, std::mem::take(&mut held.uses)));
        if is_due {
            held.turn = turn;
        }
        Hit { buf: held.buf.clone().unwrap_or_else(Buf::empty), kind: held.kind, report }
    }

    /// Takes a block in, lent by the shard, which knows that it is here. Returns what had to go for it.
    pub(crate) fn keep(&mut self, block: &BlockId, buf: Buf, kind: Kind, turn: u32) -> Option<Buf> {
        let (first, tag) = self.first_place(block);
        let at = self.place(block).or_else(|| (first..first + WAYS).find(|&at| self.tags[at] == NOWHERE));
        let at = at.unwrap_or_else(|| {
            self.hand = self.hand.wrapping_add(1);
            first + self.hand as usize % WAYS
        });
        let held = Held { block: *block, buf: Some(buf), name: Name::NONE, turn, uses: 0, kind };
        // What has just been asked for is being served.
        self.served.note(at as u32);
        self.tags[at] = tag;
        std::mem::replace(&mut self.held[at], held).buf
    }

    /// Gives a block that is here a name; it has one at a time.
    pub(crate) fn name(&mut self, block: &BlockId, name: Name) {
        let Some(at) = self.place(block) else { return };
        if self.named(name) == Some(at) {
            return;
        }
        self.held[at].name = name;
        let (first, tag) = self.first_name(name);
        let is_void = |known: u32| {
            let of = self.held[(known & 0xffff) as usize].name;
            known == NOWHERE || of == Name::NONE || self.first_name(of) != (first, known >> 16)
        };
        let void = (first..first + WAYS).find(|&i| is_void(self.names[i]));
        let i = void.unwrap_or_else(|| {
            self.hand = self.hand.wrapping_add(1);
            first + self.hand as usize % WAYS
        });
        self.names[i] = tag << 16 | at as u32;
    }

    fn forget(&mut self, block: &BlockId) -> Option<Buf> {
        let at = self.place(block)?;
        self.held[at].name = Name::NONE;
        self.tags[at] = NOWHERE;
        self.held[at].buf.take()
    }
}

#[cfg(test)]
mod tests;
