//! The face of the cache: shards chosen by the block's name, and the waiting around misses.

mod cold;

use crate::ahead::AheadCounts;
use crate::block::{Access, BlockId, Kind, Opening, Request};
use crate::candidates::{List, Wanted};
use crate::charge::charge_of;
use crate::flight::{Failure, Flight, Outcome};
use crate::near::{Hit, Name, Near, Table};
use crate::shard::{Found, Leavers, Shard};
use crate::stats::Stats;
use probe::{Event, Family, Hub, Op, Probe};
use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Result;
use world::Buf;
use world::stages::{Stage, following, sharing, stage};

/// A shard is at least this large, so that the largest block (16 MiB) fits in one twice.
const SHARD_MIN: u64 = 40 << 20;
/// Their number stays when the cache is made smaller, and a block larger than half a shard is not admitted: of 64 MiB, in so
/// many shards, blocks of 512 KiB still are.
const SHARDS_MAX: u64 = 64;

/// Is told of blocks that leave memory although they are still valid: where a second-level cache begins. Not of those that
/// were kept compressed before.
pub trait EvictionListener: Send + Sync {
    /// Called without any lock; must not wait.
    fn evicted(&self, block: BlockId, kind: Kind, buf: &Buf);
}

/// A shard with its lock, the first of whose lines has all that a hit changes in it.
#[repr(align(64))]
struct Place(Mutex<Shard>);

/// The cache of one pool, or of all: each of them has an [`Opening`], by which its blocks are told apart from others'.
pub struct Cache {
    shards: Box<[Place]>,
    listener: Option<Box<dyn EvictionListener>>,
    openings: AtomicU32,
    /// Bytes that others hold of the limit.
    beside: Mutex<u64>,
    /// There was a time when it was full.
    is_warm: AtomicBool,
    ahead: Arc<AheadCounts>,
    pub(crate) near: Near,
    /// The number of the tree that was numbered last.
    trees: AtomicU64,
    /// `max` when the cache was made.
    made_for: u64,
    /// See [`Cache::set_cold`].
    cold_percent: AtomicU64,
    accesses: Probe,
    evictions: Probe,
}

impl Cache {
    /// A cache that holds at most `max` bytes (`zfs_arc_max`).
    pub fn new(max: u64) -> Cache {
        let wanted = (max / SHARD_MIN).clamp(1, SHARDS_MAX);
        Cache::with_shards(max, 1 << wanted.ilog2())
    }

    /// `count` is a power of two.
    fn with_shards(max: u64, count: usize) -> Cache {
        let part = max / count as u64;
        let ahead = Arc::new(AheadCounts::default());
        ahead.set_room(max);
        let shards = (0..count).map(|_| Place(Mutex::new(Shard::new(part, ahead.clone())))).collect();
        let (openings, accesses, evictions) = (AtomicU32::new(0), Probe::none(), Probe::none());
        let (beside, is_warm) = (Mutex::new(0), AtomicBool::new(false));
        let (near, trees, made_for) = (Near::new(count), AtomicU64::new(0), max);
        let cold_percent = AtomicU64::new(0);
        Cache {
            shards,
            listener: None,
            openings,
            beside,
            is_warm,
            ahead,
            near,
            trees,
            made_for,
            cold_percent,
            accesses,
            evictions,
        }
    }

    /// For a pool that is opened: no other opening has had it before.
    pub fn opening(&self) -> Opening {
        Opening(self.openings.fetch_add(1, Ordering::Relaxed))
    }

    /// Lets `listener` know of every eviction.
    #[must_use]
    pub fn listen(mut self, listener: Box<dyn EvictionListener>) -> Cache {
        self.listener = Some(listener);
        self
    }

    /// Tells lookups and evictions to `hub`.
    #[must_use]
    pub fn telling(mut self, hub: &Hub) -> Cache {
        self.accesses = hub.probe(Family::Arc, &[]);
        self.evictions = hub.probe(Family::Evict, &[]);
        self
    }

    fn tell_access(&self, kind: Kind, access: Access, is_hit: bool) {
        self.accesses
            .tell(|| Event { kind: crate::stats::access_name(kind, access, is_hit), ..Event::default() });
    }

    /// The block's bytes if they are in memory.
    pub fn get(&self, block: &BlockId, access: Access) -> Option<Buf> {
        let found = match access {
            Access::Demand => self.get_on_demand(block, None),
            Access::Prefetch | Access::Scan => self.shard(block).get(block, access),
        };
        let Some((buf, kind)) = found else { return self.get_cold(block, access) };
        self.tell_access(kind, access, true);
        Some(buf)
    }

    /// As [`Cache::get`] on demand, after which the block is found by this name as well while this core has it at hand.
    pub fn get_and_name(&self, block: &BlockId, name: Name) -> Option<Buf> {
        let found = self.get_on_demand(block, Some(name));
        let Some((buf, kind)) = found else { return self.get_cold(block, Access::Demand) };
        self.tell_access(kind, Access::Demand, true);
        Some(buf)
    }

    /// The bytes of what has this name, if this core has it at hand. `None` says nothing of what is in memory.
    pub fn get_named(&self, name: Name) -> Option<Buf> {
        let (table, _) = self.table()?;
        let hit = table.lock().get_named(name, |block| self.near.turn(self.index(block)))?;
        let (buf, kind) = self.report(hit);
        self.tell_access(kind, Access::Demand, true);
        Some(buf)
    }

    /// A number for a tree that nothing is written to, which no other has.
    pub fn number_tree(&self) -> u64 {
        self.trees.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn get_on_demand(&self, block: &BlockId, name: Option<Name>) -> Option<(Buf, Kind)> {
        match self.table() {
            Some(table) => self.get_near(table, block, name),
            None => self.shard(block).get(block, Access::Demand),
        }
    }

    fn get_near(
        &self,
        (table, bit): (&Table, u64),
        block: &BlockId,
        name: Option<Name>,
    ) -> Option<(Buf, Kind)> {
        let index = self.index(block);
        let turn = self.near.turn(index);
        let hit = {
            let mut places = table.lock();
            let hit = places.get(block, turn);
            if let (Some(_), Some(name)) = (&hit, name) {
                places.name(block, name);
            }
            hit
        };
        if let Some(hit) = hit {
            return Some(self.report(hit));
        }
        let mut shard = lock(&self.shards[index]);
        let (buf, kind) = shard.get(block, Access::Demand)?;
        shard.lend(block, bit);
        // Before the shard can let go of it, so that it is here to be taken out then.
        let mut places = table.lock();
        let left = places.keep(block, buf.lend(), kind, turn);
        if let Some(name) = name {
            places.name(block, name);
        }
        drop((places, shard));
        drop(left);
        Some((buf, kind))
    }

    /// As [`Cache::get`] on demand, by a core that is said.
    #[cfg(test)]
    pub(crate) fn get_at(&self, core: usize, cores: usize, block: &BlockId) -> Option<Buf> {
        Some(self.get_near(self.near.of(core, cores, self.made_for, |_| ()), block, None)?.0)
    }

    fn report(&self, Hit { buf, kind, report }: Hit) -> (Buf, Kind) {
        if let Some((block, uses)) = report {
            self.shard(&block).used(&block, uses);
        }
        (buf, kind)
    }

    /// What this core has at hand, with its bit; a thread that works for none has nothing.
    pub(crate) fn table(&self) -> Option<(&Table, u64)> {
        let (core, cores) = world::core_if_any()?;
        Some(self.near.of(core, cores, self.made_for, |bytes| self.charge_beside(0, bytes)))
    }

    /// The block's bytes: from memory, or by `load`, which at most one request for a block does at a time.
    ///
    /// # Errors
    /// Those of `load`; a request that waited for another one's read gets an error of the same kind.
    pub async fn get_or_load<F>(&self, request: Request, load: impl FnOnce() -> F) -> Result<Buf>
    where
        F: Future<Output = Result<Buf>>,
    {
        loop {
            let found = self.shard(&request.block).find(&request);
            if !matches!(found, Found::Cold(_)) {
                self.tell_access(request.kind, request.access, matches!(found, Found::Hit(_)));
            }
            match found {
                Found::Hit(buf) => return Ok(buf),
                Found::Cold(packed) => {
                    if let Some(buf) = self.warm(&request.block, &packed, request.access) {
                        return Ok(buf);
                    }
                }
                Found::Join(flight) => {
                    let landed = following(flight.course.as_ref(), flight.wait());
                    match stage(Stage::Cache, landed).await {
                        Outcome::Landed(result) => return result.map_err(Failure::into_error),
                        Outcome::Abandoned => continue,
                    }
                }
                Found::Lead(flight) => {
                    let course = flight.course.clone();
                    let lead = Lead { cache: self, request, flight };
                    return lead.land(sharing(course, load()).await);
                }
            }
        }
    }

    /// Takes it upon the caller to read a block; `None` when it is in memory, or is being read. Requests that come for it
    /// meanwhile wait until it has [landed](Lead::land).
    pub fn begin(self: &Arc<Cache>, request: Request) -> Option<Loading> {
        let found = self.shard(&request.block).find(&request);
        self.tell_access(request.kind, request.access, matches!(found, Found::Hit(_) | Found::Cold(_)));
        match found {
            Found::Lead(flight) => Some(Lead { cache: self.clone(), request, flight }),
            Found::Hit(_) | Found::Cold(_) | Found::Join(_) => None,
        }
    }

    /// Puts a block in that was just written (or read without [`Cache::get_or_load`]).
    pub fn insert(&self, request: Request, buf: Buf) {
        if request.may_stay() {
            self.change(&request.block, |shard, leavers| shard.admit(request, buf, leavers));
        } else {
            // What may not stay must not leave its former content behind either.
            self.evict(&request.block);
        }
    }

    /// As [`Cache::get`], and forgets the block: the caller is about to replace it.
    pub fn take(&self, block: &BlockId) -> Option<Buf> {
        let mut leavers = Leavers::default();
        let found = self.shard(block).take(block, &mut leavers);
        self.dismiss(leavers);
        let Some((buf, kind)) = found else { return self.take_cold(block) };
        self.tell_access(kind, Access::Demand, true);
        Some(buf)
    }

    /// Forgets a block: it was freed, or its bytes on disk have changed.
    pub fn evict(&self, block: &BlockId) {
        self.change(block, |shard, leavers| shard.remove(block, leavers));
    }

    /// Gives memory back now, and takes no more than `bytes` until [`Cache::relax`].
    pub fn shrink_to(&self, bytes: u64) {
        let part = bytes / self.shards.len() as u64;
        self.change_all(|shard, leavers| shard.set_limit(part, leavers));
    }

    /// The memory pressure is over: the configured maximum holds again.
    pub fn relax(&self) {
        self.shrink_to(u64::MAX);
    }

    /// Changes the configured maximum.
    pub fn set_max(&self, bytes: u64) {
        self.ahead.set_room(bytes);
        let part = bytes / self.shards.len() as u64;
        self.change_all(|shard, leavers| shard.set_max(part, leavers));
    }

    /// Charges this memory with what others hold, `before` bytes until now and `after` from now on: it holds so much less.
    pub fn charge_beside(&self, before: u64, after: u64) {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        *beside = beside.saturating_sub(before).saturating_add(after);
        let part = beside.div_ceil(self.shards.len() as u64);
        self.change_all(|shard, leavers| shard.set_beside(part, leavers));
    }

    /// Whether blocks have had to leave for want of room.
    pub fn is_warm(&self) -> bool {
        self.is_warm.load(Ordering::Relaxed)
    }

    /// Has `feeder` begin or cease to feed cache devices. While it does, blocks that came into memory stay until it has
    /// [looked](Cache::look) at them.
    pub fn set_feeder(&self, feeder: Opening, is_there: bool) {
        self.shards.iter().for_each(|shard| lock(shard).set_feeder(feeder, is_there));
    }

    /// `feeder` is about to look for [candidates](Cache::candidates). Until it has looked twice again it takes in no more
    /// than `bound` bytes: beyond these nothing stays for it.
    pub fn look(&self, feeder: Opening, bound: u64) {
        let bound = bound / self.shards.len() as u64;
        self.shards.iter().for_each(|shard| lock(shard).look(feeder, bound));
    }

    /// Looks through one list of each shard for what a second level wants: through `headroom` bytes in all.
    pub fn candidates(&self, list: List, headroom: u64, wanted: &mut Wanted<'_>) {
        let headroom = headroom / self.shards.len() as u64;
        for shard in &self.shards {
            lock(shard).candidates(list.is_frequent, list.kind, headroom, wanted);
        }
    }

    /// The block's bytes if they are in memory; that is no use of it.
    pub fn peek(&self, block: &BlockId) -> Option<Buf> {
        let found = self.shard(block).peek(block);
        found.or_else(|| self.peek_cold(block))
    }

    /// Offers a block to a second level no more: it cannot take it.
    pub fn disown(&self, block: &BlockId) {
        self.shard(block).disown(block);
    }

    /// Forgets everything, as when a pool is closed or a cold cache is wanted.
    pub fn clear(&self) {
        self.change_all(|shard, leavers| shard.clear(leavers));
    }

    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        self.shards.iter().for_each(|shard| sum += lock(shard).stats());
        let near;
        (near, sum.at_hand_bytes) = self.near.sums();
        sum.at_hand = near.iter().sum();
        for kind in Kind::ALL {
            let counts = sum.of(kind);
            counts.demand_hits += near[kind.index()];
            counts.prefetched_late = self.ahead.late_of(kind);
            counts.prefetched_unused = self.ahead.unused_of(kind);
        }
        sum
    }

    /// What became of blocks that were read ahead.
    pub fn ahead(&self) -> &Arc<AheadCounts> {
        &self.ahead
    }

    fn index(&self, block: &BlockId) -> usize {
        (block.spread() >> 32) as usize & (self.shards.len() - 1)
    }

    pub(crate) fn shard(&self, block: &BlockId) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.index(block)])
    }

    fn change(&self, block: &BlockId, change: impl FnOnce(&mut Shard, &mut Leavers)) {
        self.change_one(self.index(block), change);
    }

    fn change_all(&self, change: impl Fn(&mut Shard, &mut Leavers)) {
        (0..self.shards.len()).for_each(|index| self.change_one(index, &change));
    }

    fn change_one(&self, index: usize, change: impl FnOnce(&mut Shard, &mut Leavers)) {
        let mut leavers = Leavers::default();
        let mut shard = lock(&self.shards[index]);
        change(&mut shard, &mut leavers);
        if shard.turn != self.near.turn(index) {
            self.near.set_turn(index, shard.turn);
        }
        drop(shard);
        self.dismiss(leavers);
    }

    /// The lock is released by now: freeing large buffers takes its time.
    fn dismiss(&self, mut leavers: Leavers) {
        if !leavers.cooling.is_empty() {
            self.cool(&mut leavers);
        }
        leavers.held.iter().for_each(|(block, holders)| self.near.forget(block, *holders));
        if !leavers.evicted.is_empty() && !self.is_warm() {
            self.is_warm.store(true, Ordering::Relaxed);
        }
        if self.evictions.is_open() {
            for (_, kind, buf) in &leavers.evicted {
                let (kind, bytes) = (kind.name(), charge_of(buf.len()));
                self.evictions.tell(|| Event { op: Op::Evict, kind, bytes, ..Event::default() });
            }
            for (kind, bytes) in leavers.dropped {
                self.evictions.tell(|| Event { op: Op::Evict, kind: kind.name(), bytes, ..Event::default() });
            }
        }
        if let Some(listener) = &self.listener {
            leavers.evicted.iter().for_each(|(block, kind, buf)| listener.evicted(*block, *kind, buf));
        }
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

fn lock(Place(shard): &Place) -> MutexGuard<'_, Shard> {
    // A shard asserts only what it has just made true; a panic there is a bug that the next caller meets as well.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block that the holder has begun to read, for all that ask for it: [`Cache::begin`].
pub type Loading = Lead<Arc<Cache>>;

/// The request that reads for all. Dropped before it landed, it leaves the lead to another.
pub struct Lead<C: Deref<Target = Cache>> {
    cache: C,
    request: Request,
    flight: Arc<Flight>,
}

impl<C: Deref<Target = Cache>> Lead<C> {
    /// Lands what `load` reads, whose stages are those of all that wait.
    pub async fn land_from(self, load: impl Future<Output = Result<Buf>>) -> Result<Buf> {
        let course = self.flight.course.clone();
        let result = sharing(course, load).await;
        self.land(result)
    }

    /// What was read: it is put in unless it was overtaken, and handed to all that wait.
    ///
    /// What was read ahead and failed is left to those that wait: one of them reads it, and meets the error itself.
    pub fn land(self, result: Result<Buf>) -> Result<Buf> {
        let request = self.request;
        self.cache.change(&request.block, |shard, leavers| {
            let current = shard.arrived(&request.block, &self.flight);
            let was_wanted = request.access == Access::Prefetch && !self.flight.is_ahead();
            let access = if was_wanted { Access::Demand } else { request.access };
            let request = Request { access, ..request };
            if let (true, true, Ok(buf)) = (current, request.may_stay(), &result) {
                shard.admit(request, buf.clone(), leavers);
            }
        });
        let was_a_guess = self.request.access == Access::Prefetch;
        self.flight.end(match &result {
            Ok(buf) => Outcome::Landed(Ok(buf.clone())),
            Err(_) if was_a_guess => Outcome::Abandoned,
            Err(e) => Outcome::Landed(Err(Failure::of(e))),
        });
        result
    }
}

impl<C: Deref<Target = Cache>> std::fmt::Debug for Lead<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lead({:?})", self.request.block)
    }
}

impl<C: Deref<Target = Cache>> Drop for Lead<C> {
    fn drop(&mut self) {
        self.cache.shard(&self.request.block).arrived(&self.request.block, &self.flight);
        self.flight.end(Outcome::Abandoned);
    }
}

#[cfg(test)]
mod tests;
