//! What a pool keeps of its search for spares while it is open.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use units::Guid;

/// See the module above. Belongs to one pool.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    pub(super) is_busy: AtomicBool,
    /// Pairs of device and spare that did not fit each other: not tried again.
    pub(super) refused: Mutex<BTreeSet<(Guid, Guid)>>,
}
