//! The paths of one initiator through one target: the units that it was given, and so those that it may copy between.
//!
//! A path is here from its beginning to its end, so a unit that is taken away from an initiator is out of the reach of
//! its copies at once, also of those under way.

use crate::device::{Device, ItNexus};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An initiator port, a target port and a unit. Commands under way have it too; the last of them detaches it from the
/// device.
#[derive(Debug)]
pub(crate) struct ItlNexus {
    pub device: Arc<Device>,
    pub it_nexus: Arc<ItNexus>,
    /// The other paths of this initiator, and this one.
    pub reach: Reach,
}

impl Drop for ItlNexus {
    fn drop(&mut self) {
        self.device.detach(&self.it_nexus);
    }
}

/// See the module. Clones are the same reach.
#[derive(Clone, Default)]
pub struct Reach(Arc<Mutex<Vec<Weak<ItlNexus>>>>);

impl Reach {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<ItlNexus>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, itl: &Arc<ItlNexus>) {
        self.lock().push(Arc::downgrade(itl));
    }

    pub(crate) fn remove(&self, itl: &Arc<ItlNexus>) {
        self.lock().retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(itl)));
    }

    /// The first path that is as asked for.
    pub(crate) fn find<T>(&self, look: impl FnMut(Arc<ItlNexus>) -> Option<T>) -> Option<T> {
        // Not under the lock: the last handle of a path may be dropped by looking.
        let itls: Vec<Arc<ItlNexus>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        itls.into_iter().find_map(look)
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reach({} paths)", self.lock().len())
    }
}
