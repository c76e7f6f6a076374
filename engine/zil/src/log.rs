//! The log of one dataset while it is written to.
//!
//! ```text
//!   write(tx), truncate(tx)     a record in memory; nothing waits
//!   commit()                    ─▶ the writer: gather ─▶ take all records ─▶ block, block … ─▶ write, flush ─▶ waiters
//!   sync(tx)     in syncing context, before the dataset is written: frees blocks, moves the header
//!   synced(txg)                 what the txg left of records in memory is dropped
//! ```
//!
//! One writer at a time forms blocks (`writer`); one or two batches of them are being written and flushed. A caller that
//! comes meanwhile, waits in memory, and all that did go into the next batch together: one flush for many. Those whose
//! batch is done are given a moment to come back and join them; alone, a commit waits for no other.
//!
//! The first commit makes the log: it allocates a block and waits for its txg, after which the header on disk leads to it.
//! From then on a commit waits for one write and one flush.
//!
//! A commit is done when the blocks with all records that came before it are durable, or when the txgs of these are on
//! disk. If the log cannot be written, it waits for the txg: slower, but never less.
//!
//! Invariants: records go into the log in the order in which they were made; a block is reused only after the txg that
//! freed it, which is one that made all its records obsolete; nothing on disk names a block whose space is not the log's.

mod blocks;
mod files;
mod plan;
mod record;
mod sync;
#[cfg(test)]
mod tests;
mod writer;

use crate::settings::Settings;
use blocks::Blocks;
use dmu::{ObjSet, Object, SyncMode, Tx};
pub use files::Hint;
use ondisk::Plain;
use plan::Bursts;
pub use plan::divides_at;
pub(crate) use plan::largest_block;
use probe::Probe;
use record::{Change, Entry, Pieces};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tunables::Tunables;
use txg::Txgs;
use units::{ObjectId, Result, Txg};
use world::Buf;
use world::stages::{Course, Stage, following, stage};
use world::sync::Notify;
use zio::LogStore;

/// What a log is made of.
pub struct Parts {
    pub objset: ObjSet,
    pub txgs: Txgs,
    pub store: Arc<dyn LogStore>,
    pub tunables: Arc<Tunables>,
    /// Where commits are told.
    pub probe: Probe,
}

/// See the module. Clones are the same log.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    objset: ObjSet,
    txgs: Txgs,
    store: Arc<dyn LogStore>,
    tunables: Arc<Tunables>,
    probe: Probe,
    state: Mutex<State>,
    /// Told when blocks are done, a txg is on disk, the log is closed: the waiters for one of these.
    changed: Notify,
    /// Told when all that were expected have come, and when it may go on for another reason: the writer alone.
    arrived: Notify,
    counters: Counters,
    /// Of the writer's work, for the commits that wait for it.
    course: Course,
}

/// What a log has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits that were asked for, and those that had to wait for a txg.
    pub commits: u64,
    pub fallbacks: u64,
    /// Blocks written, and bytes of them.
    pub blocks: u64,
    pub bytes: u64,
    pub records: u64,
    /// Blocks of data that were written in advance, and named.
    pub indirect: u64,
}

#[derive(Debug, Default)]
struct Counters {
    commits: AtomicU64,
    fallbacks: AtomicU64,
    blocks: AtomicU64,
    bytes: AtomicU64,
    records: AtomicU64,
    indirect: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct State {
    pending: VecDeque<Entry>,
    /// What waits beside the sequence, by file: see [`files`].
    later: BTreeMap<ObjectId, VecDeque<(Txg, Change)>>,
    /// The last change's number, and the newest txg of all so far.
    last_id: u64,
    newest: Txg,
    /// The newest txg with a change that is not in the log at all.
    unlogged: Txg,
    /// Until that txg is on disk: changes that were in blocks which could not be written, and have gone with the chain.
    lost_in: Txg,
    /// While that txg is not on disk: the last change before the first that is not in the log.
    held_from: u64,
    synced: Txg,
    /// Commits wait for all changes up to `wanted`; up to `issued` they are in blocks; up to `durable` they are safe.
    wanted: u64,
    issued: u64,
    durable: u64,
    /// Commits since the last batch was taken, and how many there should be before the next is.
    gathered: usize,
    expected: usize,
    /// Batches under way.
    rounds: usize,
    /// The writer is at work.
    is_writing: bool,
    blocks: Blocks,
    /// The first block of a log that was left here, empty; freed when ours begins.
    left: Option<Plain>,
    /// The number of the last record in the log.
    seq: u64,
    bursts: Bursts,
    /// How long the last batch took, and what of that its flush.
    latency: Duration,
    flushing: Duration,
    /// No more records: the log is going.
    is_closed: bool,
    /// The txg whose sync frees the whole log.
    destroyed_in: Txg,
}

impl Log {
    /// The log of an open head dataset in which there is nothing to be replayed.
    pub fn open(parts: Parts) -> Log {
        let Parts { objset, txgs, store, tunables, probe } = parts;
        let left = objset.phys().zil_header.log.as_plain().cloned();
        let state = State { left, synced: txgs.synced_txg(), ..State::default() };
        Log(Arc::new(Inner {
            objset,
            txgs,
            store,
            tunables,
            probe,
            state: Mutex::new(state),
            changed: Notify::new(),
            arrived: Notify::new(),
            counters: Counters::default(),
            course: Course::shared(),
        }))
    }

    /// The object set that this is the log of.
    pub fn objset(&self) -> &ObjSet {
        &self.0.objset
    }

    /// What `sync` says now.
    pub fn mode(&self) -> SyncMode {
        self.0.objset.policy().sync
    }

    /// Logs a write of `parts`, one behind the other from `offset` on, which has just dirtied the blocks of `object` in
    /// `tx`.
    pub fn write(&self, tx: &Tx, object: &Object, offset: u64, parts: &[Buf]) {
        if self.mode() == SyncMode::Disabled {
            return self.unlogged(tx);
        }
        let size = object.block_size();
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if self.points(offset, len, size) {
            self.push(tx, by_block(tx, object, size, offset, len));
        } else {
            self.push(tx, [whole(tx, object, size, offset, parts)]);
        }
    }

    /// Whether a write of `len` bytes at `offset` into blocks of `size` is logged by pointer. Each pointer keeps the block
    /// as it is now, and the next write of it makes a copy: small writes into large blocks would fill the memory with them.
    pub fn points(&self, offset: u64, len: u64, size: u64) -> bool {
        let settings = self.settings();
        let is_large = match settings.whole_blocks_only {
            true if !(offset.is_multiple_of(size) && len.is_multiple_of(size)) => return false,
            true => size > settings.immediate_write_size,
            false => len >= settings.immediate_write_size && len >= size / 2,
        };
        let has_log_devices = self.0.store.has_log_devices();
        self.0.objset.policy().logbias_throughput || is_large && !has_log_devices
    }

    /// Logs that a range has become zeros.
    pub fn truncate(&self, tx: &Tx, object: ObjectId, offset: u64, length: u64) {
        if self.mode() == SyncMode::Disabled {
            return self.unlogged(tx);
        }
        self.push(tx, [Change::Truncate { object, offset, length }]);
    }

    /// Notes a change that only its txg makes durable: the next commit waits for that.
    pub fn unlogged(&self, tx: &Tx) {
        self.lock().note_unlogged(tx.txg());
    }

    fn push(&self, tx: &Tx, changes: impl IntoIterator<Item = Change>) {
        let mut state = self.lock();
        if state.is_closed {
            state.unlogged = state.unlogged.max(tx.txg());
            return;
        }
        state.newest = state.newest.max(tx.txg());
        for change in changes {
            state.append(tx.txg(), change);
        }
    }

    /// Makes durable all that was logged before; with `sync=disabled`, nothing.
    pub async fn commit(&self) -> Result<()> {
        self.commit_of(None).await
    }

    /// Makes durable what was logged of one file, and all names.
    pub async fn commit_file(&self, object: ObjectId) -> Result<()> {
        self.commit_of(Some(object)).await
    }

    async fn commit_of(&self, object: Option<ObjectId>) -> Result<()> {
        if self.mode() == SyncMode::Disabled {
            return Ok(());
        }
        Counters::add(&self.0.counters.commits, 1);
        match self.ask(object) {
            Asked::Done => Ok(()),
            Asked::Txg(txg) => self.wait_for(txg).await,
            Asked::Log { target, txg } => {
                let answered = self.0.changed.until(|| self.lock().answer(target, txg));
                let answer = stage(Stage::Log, following(Some(&self.0.course), answered)).await;
                match answer {
                    Answer::Durable => Ok(()),
                    Answer::Broken => self.wait_for(txg).await,
                }
            }
        }
    }

    async fn wait_for(&self, txg: Txg) -> Result<()> {
        Counters::add(&self.0.counters.fallbacks, 1);
        self.0.txgs.wait_synced(txg).await
    }

    /// Decides what a commit waits for, and sees to it that the writer is at work.
    fn ask(&self, object: Option<ObjectId>) -> Asked {
        let (start, is_complete, target, txg) = {
            let mut state = self.lock();
            match object {
                Some(object) => state.promote(object),
                None => state.promote_all(),
            }
            let (target, txg) = (state.last_id, state.newest);
            if state.unlogged > state.synced {
                return Asked::Txg(txg.max(state.unlogged));
            }
            if state.durable >= target || state.synced >= txg {
                return Asked::Done;
            }
            if state.is_closed || state.blocks.is_broken() || state.has_lost() {
                return Asked::Txg(txg);
            }
            if state.issued >= target {
                return Asked::Log { target, txg };
            }
            state.wanted = state.wanted.max(target);
            state.gathered += 1;
            let start = !std::mem::replace(&mut state.is_writing, true);
            (start, state.gathered >= state.expected, target, txg)
        };
        if start {
            world::spawn(self.clone().write_blocks());
        } else if is_complete {
            self.0.arrived.notify_all();
        }
        Asked::Log { target, txg }
    }

    pub fn stats(&self) -> Stats {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let c = &self.0.counters;
        Stats {
            commits: read(&c.commits),
            fallbacks: read(&c.fallbacks),
            blocks: read(&c.blocks),
            bytes: read(&c.bytes),
            records: read(&c.records),
            indirect: read(&c.indirect),
        }
    }

    fn settings(&self) -> Settings {
        Settings::of(&self.0.tunables)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change under this lock is a few assignments; a broken promise of ours shows as a panic of its own.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Asked {
    Done,
    Txg(Txg),
    Log { target: u64, txg: Txg },
}

enum Answer {
    Durable,
    Broken,
}

impl State {
    /// Changes that the log was to have must reach the disk with their txg.
    fn has_lost(&self) -> bool {
        self.lost_in > self.synced
    }

    fn answer(&self, target: u64, txg: Txg) -> Option<Answer> {
        if self.durable >= target || self.synced >= txg {
            Some(Answer::Durable)
        } else if self.is_closed || self.blocks.is_broken() || self.has_lost() {
            Some(Answer::Broken)
        } else {
            None
        }
    }
}

/// A record for each block: the block as the overlay has it now. One that is written in part is counted as dirty once more,
/// since it stays in memory beside those that later writes make of it.
fn by_block(tx: &Tx, object: &Object, size: u64, offset: u64, len: u64) -> Vec<Change> {
    let change = |(blkid, offset, length): (u64, u64, u64)| match object.dirty_block(tx, blkid) {
        Some(block) => {
            if length < size {
                tx.dirtied(size);
            }
            Change::Block { object: object.clone(), blkid, block: block.into(), offset, length }
        }
        None => Change::Truncate { object: object.id(), offset, length },
    };
    cut(size, offset, len).map(change).collect()
}

/// One record with all the data. Whole blocks are those of the overlay, so that they are in memory once.
fn whole(tx: &Tx, object: &Object, size: u64, offset: u64, parts: &[Buf]) -> Change {
    // The most frequent one: part of one block, in a buffer that holds little else.
    if let [part] = parts
        && (1..size).contains(&(part.len() as u64))
        && offset / size == (offset + part.len() as u64 - 1) / size
        && part.capacity() < 2 * part.len()
    {
        tx.dirtied(part.len() as u64);
        let data = Pieces::from(part.clone());
        return Change::Bytes { object: object.id(), block_size: size, offset, data };
    }
    let (mut rest, mut data) = (Pieces::default(), Pieces::default());
    parts.iter().for_each(|part| rest.push(part.clone()));
    for (blkid, _, length) in cut(size, offset, rest.len() as u64) {
        let own = rest.take_front(length as usize);
        match (length == size).then(|| object.dirty_block(tx, blkid)).flatten() {
            Some(shared) => data.push(shared),
            None => {
                tx.dirtied(length);
                own.into_small().for_each(|buf| data.push(buf));
            }
        }
    }
    Change::Bytes { object: object.id(), block_size: size, offset, data }
}

/// A range cut at the boundaries of blocks: block number, offset, length.
fn cut(size: u64, offset: u64, length: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let end = offset + length;
    (offset / size..end.div_ceil(size)).map(move |blkid| {
        let (from, to) = (offset.max(blkid * size), end.min((blkid + 1) * size));
        (blkid, from, to - from)
    })
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        write!(f, "Log({}: {} of {} durable)", self.0.objset.id(), state.durable, state.last_id)
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Parts({})", self.objset.id())
    }
}
