//! Feeding: blocks that are about to leave memory are written to cache devices ahead of it, by a task of their own.
//!
//! ```text
//!   every l2arc_feed_secs, for each device:
//!     look ─▶ what leaves next and is not there yet ── pack ─▶ its bytes on disk, proven ── write ─▶ known in the index
//!               (no block of a txg that is not on disk)         (compressed again)          at the hand of the ring
//! ```
//!
//! No request waits for it, and nothing that fails here is an error of the pool. A pass ends when `l2arc_write_max` bytes
//! were found, when nothing more is there, or when there is no memory to remember more blocks in. While nothing has changed
//! since a pass that found nothing, none is made.
//!
//! Invariant: what is written was proven against the checksum of the block's pointer; a block whose pointer has none is not
//! written, for a hit could not be told from rubbish.

use crate::L2arc;
use crate::device::Device;
use crate::index::Place;
use crate::journal::Frame;
use crate::l2arc::Setup;
use crate::{pack, rebuild};
use arc::{Candidate, Kind, List, Wanted};
use futures_util::future::select;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Error, Guid, Kind as ErrorKind, Result};
use vdev::Bias;
use world::Buf;
use world::sync::Event;

/// Blocks are written in pieces of about so many bytes.
const PIECE: u64 = 1 << 20;
/// A pass looks for no more blocks than this.
const BLOCKS_MAX: usize = 16 << 10;

/// The feeding task of a pool, while it runs.
#[derive(Debug)]
pub struct Feeder {
    stop: Arc<Event>,
    task: world::Task<()>,
}

impl Feeder {
    /// Starts to use the cache devices of an open pool. The task ends by itself when the pool is given up.
    pub fn start(l2: &Arc<L2arc>, pool: Guid, tunables: Arc<Tunables>) -> Result<Feeder> {
        l2.set_up(Setup { tunables, pool })?;
        let stop = l2.stop.clone();
        let task = world::spawn(run(Arc::downgrade(l2), stop.clone()));
        Ok(Feeder { stop, task })
    }

    /// Ends it. On return nothing more is asked of a device by it.
    pub async fn stop(self) {
        self.stop.set();
        self.task.await;
    }
}

async fn run(l2: Weak<L2arc>, stop: Arc<Event>) {
    let mut rested = Rested::default();
    loop {
        let pause = {
            let Some(l2) = l2.upgrade() else { return };
            let work = pin!(turn(&l2, &mut rested));
            match select(work, pin!(stop.wait())).await {
                futures_util::future::Either::Left((pause, _)) => (pause, l2.wake.notified()),
                futures_util::future::Either::Right(_) => return,
            }
        };
        let (pause, woken) = pause;
        let pause = pin!(async {
            match pause {
                Some(pause) => drop(world::timeout(pause, woken).await),
                None => woken.await,
            }
        });
        select(pause, pin!(stop.wait())).await;
        if stop.is_set() {
            return;
        }
    }
}

/// One turn over all devices. Answers how long to rest: without devices until there are some.
async fn turn(l2: &L2arc, rested: &mut Rested) -> Option<Duration> {
    let setup = l2.setup.get()?;
    let devices = l2.devices();
    if devices.is_empty() {
        return None;
    }
    let began = world::now();
    for device in devices.iter().filter(|device| !device.is_ready() && device.is_sound()) {
        // It is tried again in the next turn.
        let _ = rebuild::prepare(l2, device, setup).await;
    }
    for device in devices.iter().filter(|d| d.is_ready() && d.can_write() && d.is_sound()) {
        // The header is written with the next log as well.
        let _ = rebuild::follow(device, setup).await;
    }
    let now = Rested::of(l2, &setup.tunables);
    let (mut written, mut budget) = (0, 0);
    if now != *rested {
        l2.cache.look(l2.opening, taken_in(&setup.tunables).saturating_mul(devices.len() as u64));
        for device in devices.iter().filter(|d| d.is_ready() && d.can_write() && d.is_sound()) {
            budget = budget_of(l2, device, &setup.tunables).max(budget);
            device.is_writing.store(true, Ordering::Relaxed);
            let fed = feed(l2, device, setup).await;
            device.is_writing.store(false, Ordering::Relaxed);
            l2.recharge();
            match fed {
                Ok(bytes) => written += bytes,
                Err(_) => l2.counters.count(&l2.counters.write_errors),
            }
        }
        if written == 0 {
            *rested = now;
        }
    }
    let tunables = &setup.tunables;
    let soon = tunables.is_on(Tunable::L2FeedAgain) && written > budget / 2;
    let interval = match soon {
        true => Duration::from_millis(tunables.get(Tunable::L2FeedMinMs)),
        false => Duration::from_secs(tunables.get(Tunable::L2FeedSecs)),
    };
    Some(interval.saturating_sub(world::now().since(began)).max(Duration::from_millis(1)))
}

/// What can make a pass find something that the last one did not.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rested {
    admitted: u64,
    used: u64,
    synced: u64,
    larder: u64,
    settings: [u64; 5],
    devices: usize,
}

impl Rested {
    fn of(l2: &L2arc, tunables: &Tunables) -> Rested {
        let stats = l2.cache.stats();
        let get = |t| tunables.get(t);
        let ready = l2.devices().iter().filter(|d| d.is_ready() && d.is_sound()).count();
        Rested {
            admitted: stats.admitted,
            used: stats.data.demand_hits + stats.metadata.demand_hits,
            synced: l2.synced().0,
            larder: l2.larder.bytes(),
            settings: [
                get(Tunable::L2NoPrefetch),
                get(Tunable::L2MfuOnly),
                get(Tunable::L2ExcludeSpecial),
                get(Tunable::L2Headroom) * get(Tunable::L2HeadroomBoost),
                get(Tunable::L2MetaPercent),
            ],
            devices: ready,
        }
    }
}

/// How many bytes one pass may write to a device.
fn budget_of(l2: &L2arc, device: &Device, tunables: &Tunables) -> u64 {
    let boost = if l2.cache.is_warm() { 0 } else { tunables.get(Tunable::L2WriteBoost) };
    let wanted = tunables.get(Tunable::L2WriteMax) + boost;
    // Not so much of a small device that a pass would write over what the last one wrote.
    let len = device.journal().as_ref().map_or(0, |journal| journal.ring.end - journal.ring.start);
    wanted.min(len / 4)
}

/// Bytes in memory of what one device takes in by two passes; blocks are smaller there.
fn taken_in(tunables: &Tunables) -> u64 {
    let get = |t| tunables.get(t);
    get(Tunable::L2WriteMax).saturating_mul(2).saturating_mul(get(Tunable::L2HeadroomBoost)) / 100
}

/// Whether `l2arc_mfuonly` lets a block go there.
fn is_used_enough(candidate: &Candidate, mfu_only: u64) -> bool {
    match mfu_only {
        0 => true,
        1 => candidate.is_frequent,
        _ => candidate.is_frequent || candidate.kind == Kind::Metadata,
    }
}

fn look(l2: &L2arc, budget: u64, tunables: &Tunables) -> Vec<Candidate> {
    let synced = l2.synced();
    let mfu_only = tunables.get(Tunable::L2MfuOnly);
    let no_special = tunables.is_on(Tunable::L2ExcludeSpecial);
    let is_special = |candidate: &Candidate| {
        let bias = l2.tree.top(candidate.block.vdev).map(|top| top.bias());
        matches!(bias, Some(Bias::Special | Bias::Dedup))
    };
    let mut wanted = Wanted {
        opening: l2.opening,
        newest_first: !l2.cache.is_warm(),
        prefetched: !tunables.is_on(Tunable::L2NoPrefetch),
        is_wanted: &|candidate| {
            candidate.block.birth <= synced
                && is_used_enough(candidate, mfu_only)
                && !(no_special && is_special(candidate))
                && !l2.holds(&candidate.block)
        },
        bytes_max: budget,
        blocks_max: BLOCKS_MAX,
        found: Vec::new(),
        bytes: 0,
    };
    let headroom = match tunables.get(Tunable::L2Headroom) {
        0 => u64::MAX,
        times => {
            tunables
                .get(Tunable::L2WriteMax)
                .saturating_mul(times)
                .saturating_mul(tunables.get(Tunable::L2HeadroomBoost))
                / 100
        }
    };
    for list in List::BY_WORTH {
        l2.cache.candidates(list, headroom, &mut wanted);
    }
    wanted.found
}

/// One pass over one device. Answers how many bytes of blocks were written.
async fn feed(l2: &L2arc, device: &Arc<Device>, setup: &Setup) -> Result<u64> {
    let budget = budget_of(l2, device, &setup.tunables);
    let Some(frame) = device.journal().as_ref().map(|journal| journal.frame) else { return Ok(0) };
    let mut todo: VecDeque<(Candidate, Option<Buf>)> = VecDeque::new();
    for (candidate, raw) in l2.larder.take(budget) {
        if candidate.block.birth <= l2.synced() && !l2.holds(&candidate.block) {
            todo.push_back((candidate, Some(raw)));
        }
    }
    let of_larder: u64 = todo.iter().map(|(candidate, _)| candidate.origin.psize.0).sum();
    let found = look(l2, budget.saturating_sub(of_larder), &setup.tunables);
    todo.extend(found.into_iter().map(|candidate| (candidate, None)));
    let mut left: u64 = todo.iter().map(|(c, _)| frame.asize(c.origin.psize.0)).sum();
    count_pass(
        l2,
        todo.iter().map(|(c, _)| c.origin.psize.0),
        budget,
        setup.tunables.get(Tunable::L2WriteMax),
    );
    let (mut written, mut names_logs) = (0, false);
    while !todo.is_empty() {
        let most = device.journal().as_ref().map_or(1, |journal| journal.left_in_log());
        let piece = next_piece(l2, &mut todo, most, &frame);
        left = left.saturating_sub(piece.iter().map(|(c, ..)| frame.asize(c.origin.psize.0)).sum());
        if !l2.has_room(piece.len()) {
            l2.counters.count(&l2.counters.no_memory);
            break;
        }
        let checksummer = l2.checksummer();
        let packed = world::compute(move || pack::pack(piece, &frame, &checksummer)).await;
        for block in &packed.foreign {
            l2.counters.count(&l2.counters.foreign);
            l2.cache.disown(block);
        }
        written += packed.data.len() as u64;
        names_logs |= write(l2, device, packed, left, &setup.tunables).await?;
    }
    if names_logs {
        device.write_header().await?;
    }
    Ok(written)
}

/// A pass found blocks of these sizes, and was allowed `budget` bytes: less than `write_max` is the size of the device.
fn count_pass(l2: &L2arc, found: impl Iterator<Item = u64>, budget: u64, write_max: u64) {
    let (bytes, largest) = found.fold((0, 0), |(sum, most), psize| (sum + psize, psize.max(most)));
    if bytes > 0 {
        l2.counters.count(&l2.counters.passes);
    }
    // One more block would not have been taken.
    if bytes + largest > budget && budget >= write_max && bytes > 0 {
        l2.counters.count(&l2.counters.cut_short);
    }
}

/// The next blocks that are still in memory, at most `most` and about [`PIECE`] bytes of them.
fn next_piece(
    l2: &L2arc,
    todo: &mut VecDeque<(Candidate, Option<Buf>)>,
    most: usize,
    frame: &Frame,
) -> Vec<pack::Item> {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    while piece.len() < most
        && bytes < PIECE
        && let Some((candidate, raw)) = todo.pop_front()
    {
        let is_raw = raw.is_some();
        let Some(buf) = raw.or_else(|| l2.cache.peek(&candidate.block)) else { continue };
        bytes += frame.asize(candidate.origin.psize.0);
        piece.push((candidate, buf, is_raw));
    }
    piece
}

/// Writes one piece. Answers whether a log was complete with it, which the header does not name yet.
async fn write(
    l2: &L2arc,
    device: &Arc<Device>,
    packed: pack::Packed,
    ahead: u64,
    tunables: &Tunables,
) -> Result<bool> {
    let pack::Packed { mut data, entries, blocks, .. } = packed;
    if blocks.is_empty() {
        return Ok(false);
    }
    let trims = tunables.get(Tunable::L2TrimAhead);
    let ahead = ahead.saturating_add(tunables.get(Tunable::L2WriteMax) / 100 * trims);
    let gone = || Error::new(ErrorKind::Cancelled, "feed cache device");
    let room = {
        let mut journal = device.journal();
        let journal = journal.as_mut().ok_or_else(gone)?;
        let len = journal.ring.end - journal.ring.start;
        journal.make_room(data.len() as u64, blocks.len(), ahead.min(len / 4))
    };
    // A block that is larger than the device stays in memory.
    let Some(room) = room else { return Ok(false) };
    for range in &room.dropped {
        let evicted = l2.index().drop_range(device.id, range);
        l2.counters.evicted.fetch_add(evicted, Ordering::Relaxed);
    }
    if room.has_moved {
        device.write_header().await?;
        l2.counters.written_bytes.fetch_add(1 << device.ashift, Ordering::Relaxed);
    }
    if trims > 0 {
        for range in &room.dropped {
            let from = range.start - ondisk::label::DATA_OFFSET;
            // A hint: what a device refuses is no error.
            let _ =
                world::timeout(crate::device::WORK_LIMIT, device.leaf.trim(from, range.end - range.start))
                    .await;
        }
    }
    let staged = {
        let journal = device.journal();
        journal.as_ref().ok_or_else(gone)?.stage(entries, &mut data)
    };
    device.write(staged.at, Buf::copy_from(&data)).await?;
    device.journal().as_mut().ok_or_else(gone)?.commit(&staged);
    let mut index = l2.index();
    if device.is_gone.load(Ordering::Relaxed) {
        return Err(gone());
    }
    for (entry, (block, kind)) in staged.entries.iter().zip(&blocks) {
        index.insert(*block, Place::new(device.id, entry.daddr, entry.prop.psize.0, *kind));
    }
    l2.counters.fed.fetch_add(blocks.len() as u64, Ordering::Relaxed);
    l2.counters.written_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
    Ok(staged.has_log())
}
