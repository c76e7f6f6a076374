//! What is open is not destroyed.
//!
//! ```text
//!   plan ─▶ close_to_openers ─▶ fronts give up what they have ─▶ wait_unused ─▶ sync task: is one open? Busy : all go
//!                  │                                                                              │
//!   open_by_name ──┴─▶ Busy                                        dropped: open to openers ◀─────┘
//! ```
//!
//! The blocks of a snapshot that goes are others' soon. A handle of it would read these: as damage of a healthy device
//! where there are checksums, and as another dataset's data where there are none. So a snapshot goes only while there is
//! none, whatever makes it go: a destroy, the release of its last hold, the end of its last clone, a rollback. It is the
//! sync task that looks, since nothing is opened during one ([`Dsl::hold_off_openings`]); it refuses before it changes
//! anything.
//!
//! That alone would starve a destroy of what is opened again and again. So what is to go is closed to openers first, and
//! those that have it open are waited for.
//!
//! What gets another name is closed as well: what came in under the old one would be taken for what has that name next.
//!
//! Of a head dataset handles may be left: it has a log, and what replaces it may still be told of them. They are ended
//! ([`dmu::ObjSet::end`]), and read and change nothing from then on.

use crate::closed::ClosedToOpeners;
use crate::dsl::Dsl;
use crate::dsl::dataset::{Dataset, is_used};
use crate::tree::Found;
use dmu::ObjSet;
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Kind, Result};

const LOOK: Duration = Duration::from_millis(5);

impl Dsl {
    /// From now on these datasets and snapshots are not opened by name, until what comes back is dropped; openings that
    /// were under way are done. Names of nothing are passed over. Must not be called by a sync task.
    pub async fn close_to_openers(&self, names: &[String]) -> Result<ClosedToOpeners> {
        let mut ids = Vec::new();
        for name in names {
            match self.find(name).await {
                Ok(found) => ids.push(found.id),
                Err(e) if e.kind() == Kind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        let closed = self.closed.close(ids);
        drop(self.hold_off_openings().await);
        Ok(closed)
    }

    pub(crate) fn check_open_to_openers(&self, found: &Found) -> Result<()> {
        match self.closed.has(found.id) {
            true => Err(Error::new(Kind::Busy, format!("open '{}'", found.name))
                .because("it is being destroyed, renamed or rolled back")),
            false => Ok(()),
        }
    }

    /// Whether any snapshot is open.
    pub fn has_open_snapshots(&self) -> bool {
        self.opened().values().any(is_open_snapshot)
    }

    /// Whether one of the snapshots that are closed is still open.
    pub fn has_open_snapshot(&self, closed: &ClosedToOpeners) -> bool {
        let open = self.opened();
        closed.ids().iter().filter_map(|id| open.get(id)).any(is_open_snapshot)
    }

    /// Waits until none of the snapshots that are closed is open, or for so long.
    pub async fn wait_unused(&self, closed: &ClosedToOpeners, patience: Duration) {
        let unused = async {
            while self.has_open_snapshot(closed) {
                world::sleep(LOOK).await;
            }
        };
        world::timeout(patience, unused).await;
    }

    /// Refuses while a handle of a snapshot is left. In a sync task that is so until its end.
    pub(crate) fn check_unused_snapshot(&self, found: &Found) -> Result<()> {
        match self.opened().get(&found.id).is_some_and(is_open_snapshot) {
            true => Err(Error::new(Kind::Busy, format!("destroy snapshot '{}'", found.name))
                .because(format!("'{}' is being read", found.name))),
            false => Ok(()),
        }
    }

    /// As [`Dsl::check_unused_snapshot`], of those of the names that are snapshots and there.
    pub(crate) async fn check_snapshots_unused(&self, names: &[String]) -> Result<()> {
        for name in names.iter().filter(|name| name.contains('@')) {
            match self.find(name).await {
                Ok(found) => self.check_unused_snapshot(&found)?,
                Err(e) if e.kind() == Kind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

fn is_open_snapshot(open: &Arc<Dataset>) -> bool {
    open.is_snapshot() && (is_used(open) || !ObjSet::is_idle(open.objset()))
}
