//! Reading ahead of a walk down a tree: blocks that lead to others, in the order in which the walk comes to them.
//!
//! ```text
//!   level 2            [ 1 2 3 4 5 6 … ]         a list for each block on the way down: what it leads to next
//!                          │ └─┴─┘ being read
//!   level 1          [ 1 2 3 4 5 … ]             the innermost list is needed first, and is filled first
//!                      │ └─┴─┘ being read
//!   the walk is here ──┘
//! ```
//!
//! A walk that reads one such block after the other waits for a device each time, whatever other devices there are. It knows
//! what it will need, so nothing is read in vain; and it needs each block once, so that the cache is asked and not filled:
//! the walk holds what was read until it comes there.
//!
//! Bounds: the blocks of one list (`zfs_traverse_indirect_prefetch_limit`), and the bytes of all (`zfs_pd_bytes_max`), from
//! when a block is asked for until the walk has taken it. A list may have half of what the lists around it leave, so that
//! one that is met later finds room.
//!
//! What cannot be read ahead is no error here, and leaves no trace: the walk reads it itself and says what it met. Of blocks
//! that a walk passes by after all, the bytes count until they have been read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ondisk::BlockPointer;
use world::{Buf, Task};
use zio::{BlockStore, Bookmark, ReadClass};

/// See the module. Of one walk.
pub struct WalkAhead {
    store: Arc<dyn BlockStore>,
    class: ReadClass,
    state: Mutex<State>,
    /// Bytes that are being read, or were and are not taken yet.
    held: Arc<AtomicU64>,
}

struct State {
    lists: Vec<List>,
    /// No list has more blocks, whatever the tunable says.
    most: u64,
}

#[derive(Default)]
struct List {
    next: VecDeque<(BlockPointer, Bookmark)>,
    begun: VecDeque<Begun>,
}

struct Begun {
    at: Bookmark,
    bytes: u64,
    block: Block,
}

enum Block {
    Cached(Buf),
    Reading(Task<(Option<Buf>, Held)>),
}

impl fmt::Debug for WalkAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalkAhead")
            .field("class", &self.class)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

/// Takes its bytes back when it goes.
struct Held(u64, Arc<AtomicU64>);

impl Drop for Held {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl List {
    fn bytes(&self) -> u64 {
        self.begun.iter().map(|begun| begun.bytes).sum()
    }

    /// Gives up what is before `at`; the block at `at`, if it was begun.
    fn take(&mut self, at: Bookmark) -> Option<Block> {
        if let Some(n) = self.begun.iter().position(|begun| begun.at == at) {
            return self.begun.drain(..=n).next_back().map(|begun| begun.block);
        }
        if let Some(n) = self.next.iter().position(|(_, next)| *next == at) {
            self.next.drain(..=n);
            self.begun.clear();
        }
        None
    }
}

impl WalkAhead {
    /// `class` is [`ReadClass::Ahead`] or [`ReadClass::ScanAhead`].
    pub fn new(store: Arc<dyn BlockStore>, class: ReadClass) -> WalkAhead {
        let state = Mutex::new(State { lists: Vec::new(), most: u64::MAX });
        WalkAhead { store, class, state, held: Arc::default() }
    }

    /// From now on no list has more than so many blocks: the walk will not need more.
    pub fn set_most(&self, blocks: u64) {
        self.lock().most = blocks;
    }

    /// The walk is about to go through these, in this order, and does nothing else until [`WalkAhead::close`].
    pub fn open(&self, blocks: impl IntoIterator<Item = (BlockPointer, Bookmark)>) {
        let list = List { next: blocks.into_iter().collect(), begun: VecDeque::new() };
        let mut state = self.lock();
        state.lists.push(list);
        self.fill(&mut state);
    }

    /// The walk has gone through what was opened last.
    pub fn close(&self) {
        self.lock().lists.pop();
    }

    /// The block that the walk has come to, if it was read ahead.
    pub async fn take(&self, at: Bookmark) -> Option<Buf> {
        let block = {
            let mut state = self.lock();
            let block = state.lists.last_mut().and_then(|list| list.take(at));
            self.fill(&mut state);
            block
        };
        match block? {
            Block::Cached(buf) => Some(buf),
            Block::Reading(task) => task.await.0,
        }
    }

    /// The walk is over: on return nothing is being read for it any more.
    pub async fn finish(&self) {
        let lists = std::mem::take(&mut self.lock().lists);
        for begun in lists.into_iter().flat_map(|list| list.begun) {
            if let Block::Reading(task) = begun.block {
                task.await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins what there is room for. A list is not looked at before all of those in it are begun.
    fn fill(&self, state: &mut State) {
        let limits = self.store.ahead().walk_limits();
        let most = limits.blocks.min(state.most);
        let mut around: u64 = state.lists.iter().map(List::bytes).sum();
        for list in state.lists.iter_mut().rev() {
            let mut own = list.bytes();
            around -= own;
            let share = limits.bytes.saturating_sub(around) / 2;
            while (list.begun.len() as u64) < most
                && let Some((bp, _)) = list.next.front()
            {
                let bytes = bp.lsize().0;
                let is_too_much = self.held.load(Ordering::Relaxed) + bytes > limits.bytes;
                if own + bytes > share || is_too_much {
                    return;
                }
                let Some((bp, at)) = list.next.pop_front() else { return };
                own += bytes;
                list.begun.push_back(Begun { at, bytes, block: self.begin(bp, at, bytes) });
            }
            if !list.next.is_empty() {
                return;
            }
        }
    }

    fn begin(&self, bp: BlockPointer, at: Bookmark, bytes: u64) -> Block {
        if let Some(buf) = self.store.cached(&bp) {
            return Block::Cached(buf);
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        let held = Held(bytes, self.held.clone());
        let read = self.store.read(&bp, at, self.class);
        Block::Reading(world::spawn(async move { (read.await.ok(), held) }))
    }
}

#[cfg(test)]
mod tests;
