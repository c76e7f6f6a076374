//! Taking a leaf out of use and bringing it back, at an administrator's word.
//!
//! ```text
//!   ONLINE ── take_out ──▶ OFFLINE or FAULTED, closed ── bring_back ──▶ opened again, its labels checked ──▶ ONLINE
//!                               │ every write is noted as missed             └ not there ──▶ UNAVAIL
//! ```
//!
//! What is not durable when it is taken out is of the txg being synced or of the log: noted as missed, and not written to
//! it again.

use super::{CLOSING, Leaf};
use crate::{Aux, Health, State};
use std::sync::Arc;
use units::{Error, Guid, Result, Txg};
use world::OpenMode;

impl Leaf {
    /// Refuses I/O from now on, waits for what is under way, though not forever, and closes the device.
    pub async fn take_out(&self, health: Health) {
        self.note_missed();
        let (disk, closed) = {
            let mut inner = self.lock();
            (inner.health, inner.detail) = (health, None);
            (inner.disk.take(), inner.closed.clone())
        };
        self.durability.abandon();
        if disk.is_some() {
            drop(disk);
            let _ = world::timeout(CLOSING, closed.wait()).await;
        }
    }

    /// Says how it is, and lets it be used on.
    pub fn mark(&self, health: Health) {
        self.set_health(health);
    }

    /// Opens a device again that was taken out, or that went away. It must carry the labels of this leaf of `pool`.
    ///
    /// # Errors
    /// `Io` when it is not there or is another one; it is UNAVAIL then.
    pub(crate) async fn bring_back(
        self: &Arc<Leaf>,
        pool: Guid,
        min_asize: u64,
        mode: OpenMode,
    ) -> Result<()> {
        if self.health().state.is_usable() && self.probe(mode).await.is_ok() {
            return Ok(());
        }
        self.reopen(pool, min_asize, mode).await.inspect_err(|e| {
            let mut inner = self.lock();
            inner.health = Health::new(State::CannotOpen, Aux::OpenFailed);
            inner.detail = Some(e.to_string());
        })?;
        self.durability.abandon();
        self.pardon();
        Ok(())
    }

    /// The device has just joined its group and has nothing of it: everything up to what the txg being synced may still
    /// bring by the log is missing.
    pub fn has_nothing(&self, syncing: Txg) {
        self.set_txg(syncing);
        self.missing.add(Txg::INITIAL..=Txg(syncing.0 + super::MISSED_AHEAD));
    }

    /// A new size was found to be there: the usable bytes grow to it.
    pub(crate) fn grow(&self) -> Result<()> {
        let disk = self.disk()?;
        let size = disk
            .current_size()
            .map_err(|e| Error::new(units::Kind::Io, "read the size of").at(self.device()).because(e))?;
        let psize = crate::geometry::leaf_psize(size);
        let mut inner = self.lock();
        inner.psize = inner.psize.max(psize);
        Ok(())
    }
}
