//! What the handles of one ZAP keep of it, for one version of its bytes: of a micro ZAP an index, of a fat one which
//! leaves were proven sound.
//!
//! ```text
//!   first look at a version: search the block ── second look: make an index ── own change: version and index follow
//!            ▲                                                                          │
//!            └──────────── the version is another one: another caller changed it ───────┘
//! ```
//!
//! A ZAP that is opened for one question never pays for an index. The store counts its changes exactly
//! ([`Blocks::version`](crate::Blocks::version)): so what another handle has changed is noticed before the index is used,
//! and after a change of our own the index follows only if that was the only one.
//!
//! A leaf is proven before it changes, and what we write is sound: so while it is the newest in memory it need not be
//! proven again. One that was read from a device is.
//!
//! All indexes together take up to [`BYTES_MAX`]; past that the ones made first go.

use crate::index::{self, Index};
use crate::micro::Micro;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Of about ninety thousand names for each MiB.
pub(crate) const BYTES_MAX: usize = 16 << 20;
/// With fewer slots than this, looking at all of them is as fast.
const SLOTS_MIN: usize = 24;

/// How many leaves one handle remembers.
const LEAVES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What was looked at last; none before the first look.
    version: Option<u64>,
    /// Of that version.
    index: Option<Arc<Index>>,
    /// Blocks of that version that are sound leaves.
    leaves: BTreeSet<u64>,
    /// It is in [`MADE`].
    is_listed: bool,
}

/// The ZAPs that have an index, those made first in front.
static MADE: Mutex<VecDeque<Weak<Kept>>> = Mutex::new(VecDeque::new());

impl Kept {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever is done to an index is done to one that was taken out.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a block as it was read at `version`, if it is worth its while.
    pub fn look(self: &Arc<Kept>, version: u64, micro: &Micro) -> Option<Arc<Index>> {
        let slots = micro.slot_count();
        if slots < SLOTS_MIN {
            return None;
        }
        {
            let mut state = self.lock();
            if state.version < Some(version) {
                state.version = Some(version);
                state.index = None;
                state.leaves.clear();
                return None;
            }
            if state.version > Some(version) {
                return None; // a late caller looks for itself
            }
            if let Some(index) = &state.index {
                return Some(index.clone());
            }
        }
        let index = Arc::new(Index::of(micro)?);
        let is_new = {
            let mut state = self.lock();
            if state.version != Some(version) {
                return Some(index);
            }
            state.index = Some(index.clone());
            !std::mem::replace(&mut state.is_listed, true)
        };
        if is_new {
            self.list();
        }
        Some(index)
    }

    /// The caller has made version `to` of `from`, and no other change was made in between.
    pub fn follow(&self, from: u64, to: u64, change: impl FnOnce(&mut Index)) {
        let mut state = self.lock();
        let index = state.index.take().filter(|_| state.version == Some(from));
        state.version = Some(to);
        if let Some(mut index) = index {
            change(Arc::make_mut(&mut index));
            state.index = Some(index);
        }
    }

    /// Whether the leaf in this block was proven at `version`, or written by us.
    pub fn is_sound(&self, version: u64, blkid: u64) -> bool {
        let state = self.lock();
        state.version == Some(version) && state.leaves.contains(&blkid)
    }

    /// As [`Kept::follow`]: we have written leaves, and used other blocks for something else.
    pub fn follow_leaves(&self, from: u64, to: u64, leaves: &[u64], others: &[Range<u64>]) {
        let mut state = self.lock();
        state.index = None;
        if state.version != Some(from) || state.leaves.len() + leaves.len() > LEAVES_MAX {
            state.leaves.clear();
        }
        state.version = Some(to);
        if !others.is_empty() {
            state.leaves.retain(|blkid| !others.iter().any(|range| range.contains(blkid)));
        }
        state.leaves.extend(leaves);
    }

    /// There is nothing to look up in it any more.
    pub fn forget(&self) {
        self.lock().index = None;
    }

    #[cfg(test)]
    pub fn has_index(&self) -> bool {
        self.lock().index.is_some()
    }

    #[cfg(test)]
    pub fn has_index_of(&self, version: u64) -> bool {
        self.has_index() && self.lock().version == Some(version)
    }

    /// Puts this one behind all others, and takes the first ones' indexes while there are too many.
    fn list(self: &Arc<Kept>) {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() >= 256 && made.len() == made.capacity() {
            made.retain(|kept| kept.strong_count() > 0);
        }
        made.push_back(Arc::downgrade(self));
        while index::bytes() > BYTES_MAX
            && let Some(first) = made.pop_front()
        {
            if let Some(kept) = first.upgrade() {
                let mut state = kept.lock();
                state.is_listed = false;
                state.index = None;
            }
        }
    }
}
