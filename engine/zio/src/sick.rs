//! Blocks of which a read met something bad: a copy that fails its checksum, a column that cannot be read, no good copy
//! at all.
//!
//! ```text
//!   read ── good bytes ─▶ its caller     note(name, pointer)       waiting ┐
//!        └─ an error ───▶ its caller     note_lost(name, pointer)  lost ───┴▶ take ─▶ still in its tree? ─▶ heal_block
//!                                                                    ▲               (asked in a txg's sync, by the pool)
//!                              seen by each list of errors, until settled ◀─────────┘
//! ```
//!
//! A reader may hold a pointer that is older than the tree by now, and its place another block's. So it repairs
//! nothing: it says what it met. What it could not have at all is lost until the pool knows better.
//!
//! Both lists are bounded. What does not fit is met again by the next read or scrub; how much of what was lost did not
//! fit is counted.

use crate::store::Bookmark;
use ondisk::BlockPointer;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{HashMap, Txg};
use world::Instant;
use world::sync::Notify;

/// More do not wait: a reader of a device full of rot is better served by a scrub.
const WAITING_MAX: usize = 1024;
/// A block is not noted again so soon: one that cannot be repaired would make the pool write for ever.
const AGAIN_AFTER: Duration = Duration::from_secs(600);
const KNOWN_MAX: usize = 16 * WAITING_MAX;
/// Some 3 MB.
const LOST_MAX: usize = 16 * WAITING_MAX;

const SICK: usize = 0;
const LOST: usize = 1;

/// First copy and birth: what tells a block from all others there ever were.
type Identity = (u32, u64, u64);

/// Why a block could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No copy passed its checksum, or could be read.
    NoCopy,
    /// The bytes are those that were written, and make no sense: there is nothing to repair them with.
    Garbled,
}

/// A block that a read could not have.
#[derive(Clone, Debug)]
pub struct Lost {
    pub at: Bookmark,
    pub bp: BlockPointer,
    pub loss: Loss,
}

impl Lost {
    /// The physical birth.
    pub fn birth(&self) -> Txg {
        self.bp.as_plain().map_or(Txg::NONE, |plain| plain.resolved_physical_birth())
    }
}

/// What is to be looked at.
#[derive(Debug, Default)]
pub struct Batch {
    /// Blocks that can be had, though not from everywhere.
    pub sick: Vec<(Bookmark, BlockPointer)>,
    pub lost: Vec<Lost>,
}

/// See the module.
#[derive(Debug)]
pub struct Sick {
    state: Mutex<State>,
    noted: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Bookmark, BlockPointer)>,
    lost: BTreeMap<Bookmark, Held>,
    /// Of those in `lost`, how many are not taken yet.
    untaken: usize,
    dropped: u64,
    /// When a block was noted last: one to be repaired, and one that is lost.
    known: [HashMap<Identity, Instant>; 2],
    is_closed: bool,
}

#[derive(Debug)]
struct Held {
    lost: Lost,
    is_taken: bool,
}

impl Sick {
    /// `is_open`: what is noted will be repaired.
    pub(crate) fn new(is_open: bool) -> Sick {
        let state = State { is_closed: !is_open, ..State::default() };
        Sick { state: Mutex::new(state), noted: Notify::new() }
    }

    pub(crate) fn note(&self, at: Bookmark, bp: &BlockPointer) {
        let mut state = self.lock();
        if state.is_closed || state.waiting.len() >= WAITING_MAX || !state.is_new(SICK, bp) {
            return;
        }
        state.waiting.push_back((at, bp.clone()));
        drop(state);
        self.noted.notify_all();
    }

    pub(crate) fn note_lost(&self, at: Bookmark, bp: &BlockPointer, loss: Loss) {
        let mut state = self.lock();
        let is_held = state.lost.get(&at).is_some_and(|held| held.lost.bp == *bp);
        if is_held || !state.is_new(LOST, bp) {
            return;
        }
        let held = Held { lost: Lost { at, bp: bp.clone(), loss }, is_taken: false };
        let is_full = state.lost.len() >= LOST_MAX && !state.lost.contains_key(&at);
        if is_full {
            state.dropped += 1;
            state.forget(bp);
            return;
        }
        if state.lost.insert(at, held).is_none_or(|old| old.is_taken) {
            state.untaken += 1;
        }
        drop(state);
        self.noted.notify_all();
    }

    /// Waits for some, at most `max` of them. `None` once closed.
    pub async fn take(&self, max: usize) -> Option<Batch> {
        self.noted
            .until(|| {
                let mut state = self.lock();
                if state.is_closed {
                    return Some(None);
                }
                let batch = state.take(max);
                (!batch.sick.is_empty() || !batch.lost.is_empty()).then_some(Some(batch))
            })
            .await
    }

    /// What waits now, at most `max`.
    pub fn take_now(&self, max: usize) -> Batch {
        self.lock().take(max)
    }

    /// What became of lost blocks is known. `healed`: they can be had again, and are noted anew if that changes.
    pub fn settle(&self, lost: &[Lost], healed: bool) {
        let mut state = self.lock();
        for Lost { at, bp, .. } in lost {
            if state.lost.get(at).is_some_and(|held| held.lost.bp == *bp && held.is_taken) {
                state.lost.remove(at);
            }
            if healed {
                state.forget(bp);
            }
        }
    }

    /// A block that was bad is good, or no more.
    pub fn forget(&self, bp: &BlockPointer) {
        self.lock().forget(bp);
    }

    /// The lost blocks of which it is not yet known what became of them, at most `max`.
    pub fn lost(&self, max: usize) -> Vec<Lost> {
        self.lock().lost.values().take(max).map(|held| held.lost.clone()).collect()
    }

    /// How many those are, and how many more did not fit since the pool was opened.
    pub fn lost_count(&self) -> (u64, u64) {
        let state = self.lock();
        (state.lost.len() as u64, state.dropped)
    }

    /// Nothing is repaired any more; what waits for that is forgotten, what is lost is not.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting.clear();
        drop(state);
        self.noted.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the block was not noted lately; from now on it was.
    fn is_new(&mut self, list: usize, bp: &BlockPointer) -> bool {
        let Some(identity) = identity(bp) else { return false };
        let (now, known) = (world::now(), &mut self.known[list]);
        if known.get(&identity).is_some_and(|&noted| now.since(noted) < AGAIN_AFTER) {
            return false;
        }
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(identity, now);
        true
    }

    fn forget(&mut self, bp: &BlockPointer) {
        if let Some(identity) = identity(bp) {
            self.known[LOST].remove(&identity);
        }
    }

    fn take(&mut self, max: usize) -> Batch {
        let n = self.waiting.len().min(max);
        let sick = self.waiting.drain(..n).collect();
        let mut lost = Vec::new();
        if self.untaken > 0 {
            for held in self.lost.values_mut().filter(|held| !held.is_taken).take(max) {
                held.is_taken = true;
                lost.push(held.lost.clone());
            }
            self.untaken -= lost.len();
        }
        Batch { sick, lost }
    }
}

fn identity(bp: &BlockPointer) -> Option<Identity> {
    let plain = bp.as_plain()?;
    let dva = plain.dvas.first()?;
    Some((dva.vdev.0, dva.offset.0, plain.resolved_physical_birth().0))
}
