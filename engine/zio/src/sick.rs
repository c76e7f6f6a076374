//! Blocks of which a read met something bad: a copy that fails its checksum, a column that cannot be read, no good copy
//! at all.
//!
//! ```text
//!   read ── good bytes, or an error ─▶ its caller, at once
//!     └ note(name, pointer) ─▶ waiting, bounded ─▶ take ─▶ still in its tree? ─▶ Pipeline::heal_block
//!                                                          (asked in a txg's sync, by the pool)
//! ```
//!
//! A reader may hold a pointer that is older than the tree by now, and its place another block's. So it repairs
//! nothing: it says what it met.
//!
//! Invariant: a note is only ever lost, never wrong; what is lost is met again by the next read or scrub.

use crate::store::Bookmark;
use ondisk::BlockPointer;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::HashMap;
use world::Instant;
use world::sync::Notify;

/// More do not wait: whoever reads a device full of rot is better served by a scrub.
const WAITING_MAX: usize = 1024;
/// A block is not noted again so soon: one that cannot be repaired would make the pool write for ever.
const AGAIN_AFTER: Duration = Duration::from_secs(600);
const KNOWN_MAX: usize = 16 * WAITING_MAX;

/// First copy and birth: what tells a block from all others there ever were.
type Identity = (u32, u64, u64);

/// See the module.
#[derive(Debug)]
pub struct Sick {
    state: Mutex<State>,
    noted: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Bookmark, BlockPointer)>,
    known: HashMap<Identity, Instant>,
    is_closed: bool,
}

impl Sick {
    /// `is_open`: somebody will repair what is noted.
    pub(crate) fn new(is_open: bool) -> Sick {
        let state = State { is_closed: !is_open, ..State::default() };
        Sick { state: Mutex::new(state), noted: Notify::new() }
    }

    pub(crate) fn note(&self, at: Bookmark, bp: &BlockPointer) {
        let Some(plain) = bp.as_plain() else { return };
        let dva = plain.dvas[0];
        let identity = (dva.vdev.0, dva.offset.0, plain.resolved_physical_birth().0);
        let now = world::now();
        let mut state = self.lock();
        if state.is_closed || state.waiting.len() >= WAITING_MAX {
            return;
        }
        if state.known.get(&identity).is_some_and(|&noted| now.since(noted) < AGAIN_AFTER) {
            return;
        }
        if state.known.len() >= KNOWN_MAX {
            state.known.clear();
        }
        state.known.insert(identity, now);
        state.waiting.push_back((at, bp.clone()));
        drop(state);
        self.noted.notify_all();
    }

    /// Waits for some, at most `max` of them. `None` once closed.
    pub async fn take(&self, max: usize) -> Option<Vec<(Bookmark, BlockPointer)>> {
        self.noted
            .until(|| {
                let mut state = self.lock();
                if state.is_closed {
                    return Some(None);
                }
                let n = state.waiting.len().min(max);
                (n > 0).then(|| Some(state.waiting.drain(..n).collect()))
            })
            .await
    }

    /// Nobody repairs any more; what waits is forgotten.
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
