//! What a pool knows of the rebuilds of its vdevs while it is open.

use ondisk::RebuildPhys;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{Guid, HashMap, VdevId};
use world::sync::Event;
use world::{Instant, Task};

/// The last rebuild of a top-level vdev, or the one under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildStatus {
    pub vdev: VdevId,
    pub guid: Guid,
    pub phys: RebuildPhys,
    /// Of this pass, that is since the pool was opened: how long, and bytes.
    pub pass_ms: u64,
    pub pass_scanned: u64,
    pub pass_issued: u64,
}

/// See the module above. Belongs to one pool.
#[derive(Debug, Default)]
pub(crate) struct Rebuilds {
    pub(super) known: Mutex<BTreeMap<VdevId, Known>>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    pub phys: RebuildPhys,
    /// Counts how often one was begun: a task that is not of the last does nothing any more.
    pub epoch: u64,
    /// The devices that were given all that is before the position, each with how often it had failed by then.
    pub began: HashMap<Guid, u64>,
    /// When this pass began, and how long those before it took.
    pub pass_start: Option<Instant>,
    pub passes_before_ms: u64,
    pub pass_scanned: u64,
    pub pass_issued: u64,
    pub at_work: Option<(Arc<Event>, Task<()>)>,
}

impl Known {
    pub fn pass_ms(&self) -> u64 {
        let elapsed = self.pass_start.map(|start| world::now().since(start).as_millis());
        elapsed.map_or(0, |ms| u64::try_from(ms).unwrap_or(u64::MAX))
    }

    /// With the time that all passes took until now.
    pub fn phys_now(&self) -> RebuildPhys {
        RebuildPhys { scan_time_ms: self.passes_before_ms.saturating_add(self.pass_ms()), ..self.phys }
    }
}
