//! The paths of one initiator through one target: the units that it was given, and so those that it may copy between.
//!
//! A path is here from its beginning to its end, so a unit that is taken away from an initiator is out of the reach of
//! its copies at once, also of those under way.

use crate::path::Way;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// See the module. Clones are the same reach.
#[derive(Clone, Default)]
pub struct Reach(Arc<Mutex<Vec<Weak<Way>>>>);

impl Reach {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Way>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, way: &Arc<Way>) {
        self.lock().push(Arc::downgrade(way));
    }

    pub(crate) fn remove(&self, way: &Arc<Way>) {
        self.lock().retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(way)));
    }

    /// The first path that is as asked for.
    pub(crate) fn find<T>(&self, look: impl FnMut(Arc<Way>) -> Option<T>) -> Option<T> {
        // Not under the lock: the last handle of a path may be dropped by looking.
        let ways: Vec<Arc<Way>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        ways.into_iter().find_map(look)
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reach({} paths)", self.lock().len())
    }
}
