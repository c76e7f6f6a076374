//! What a pool keeps of its search for spares while it is open.

use super::TAKEN;
use crate::pool::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use units::Guid;
use world::Instant;

/// See the module above. Belongs to one pool.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    pub(super) is_busy: AtomicBool,
    /// Pairs of device and spare that did not fit each other: not tried again.
    pub(super) refused: Mutex<BTreeSet<(Guid, Guid)>>,
    /// Spares that were in use by another pool, and when that was seen.
    pub(super) taken: Mutex<BTreeMap<Guid, Instant>>,
    /// Whether it will be looked again by itself.
    pub(super) is_waiting: AtomicBool,
}

impl Spares {
    /// Whether another pool had it a moment ago.
    pub(super) fn is_taken(&self, spare: Guid) -> bool {
        lock(&self.taken).get(&spare).is_some_and(|at| world::now().since(*at) < TAKEN)
    }
}
