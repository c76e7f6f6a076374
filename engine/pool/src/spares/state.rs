//! What a pool keeps of its search for spares while it is open.

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
}
