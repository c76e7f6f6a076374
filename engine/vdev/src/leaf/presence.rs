//! Taking a leaf out of use and bringing it back, at an administrator's word.
//!
//! ```text
//!   ONLINE ── take_out ──▶ OFFLINE or FAULTED, closed ── bring_back ──▶ opened again, its labels checked ──▶ ONLINE
//!                               │ every write is noted as missed             └ not there ──▶ UNAVAIL
//!   ONLINE ── its I/O fails, and there is nothing at its place any more ──▶ REMOVED ── bring_back ──▶ as above
//! ```
//!
//! A device beside the tree, as a cache is, has no group that examines it: [`Leaf::judge_alone`] is asked instead. Its
//! label names no pool.
//!
//! What is not durable when it is taken out is of the txg being synced or of the log: noted as missed, and not written to
//! it again.

use super::{CLOSING, Expected, Leaf};
use crate::diagnosis::Verdict;
use crate::label::read::Labels;
use crate::{Aux, Health, State};
use std::sync::Arc;
use units::{Result, Txg};
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

    /// Whether there is nothing at its place any more, as when a disk was pulled. Its descriptor may still be open.
    pub(crate) async fn has_vanished(&self) -> bool {
        let place = self.device();
        matches!(place.open(OpenMode::ReadOnly).await, Err(e) if e.kind() == std::io::ErrorKind::NotFound)
    }

    /// Says how it is, and lets it be used on.
    pub fn mark(&self, health: Health) {
        self.set_health(health);
    }

    /// Opens a device again that was taken out, or that went away. It must be as expected.
    ///
    /// # Errors
    /// `Io` when it is not there, is another one or went on alone; it is UNAVAIL then.
    pub(crate) async fn bring_back(self: &Arc<Leaf>, expected: &Expected<'_>) -> Result<()> {
        if self.health().state.is_usable() && self.probe(expected.mode).await.is_ok() {
            return Ok(());
        }
        self.reopen(expected).await.inspect_err(|e| self.note_not_open(e))?;
        self.durability.abandon();
        self.pardon();
        Ok(())
    }

    /// As [`Leaf::bring_back`], for a device beside the tree. Its errors are forgotten.
    pub(crate) async fn bring_back_alone(self: &Arc<Leaf>, mode: OpenMode) -> Result<()> {
        let is_well = self.health().state.is_usable()
            && matches!(world::timeout(CLOSING, self.probe(mode)).await, Some(Ok(())));
        if !is_well {
            let is_it = |labels: &Labels| {
                let label = labels.best(None);
                let is_aux = label.is_some_and(|l| l.guid("pool_guid").is_err());
                is_aux && label.is_some_and(|l| l.guid("guid").ok() == Some(self.guid()))
            };
            let opened = self.open_anew(0, mode, is_it).await;
            self.take(opened.inspect_err(|e| self.note_not_open(e))?.0);
        }
        self.forget_errors();
        self.pardon();
        Ok(())
    }

    /// Takes a device beside the tree out of use that failed too often, or that has no sign of life left.
    pub async fn judge_alone(&self, mode: OpenMode) {
        let Some(suspicion) = self.take_suspicion() else { return };
        if suspicion.verdict == Verdict::TooManyErrors {
            self.set_health(Health::new(State::Faulted, Aux::ErrorsExceeded));
        } else if suspicion.failed_io
            && matches!(world::timeout(CLOSING, self.probe(mode)).await, None | Some(Err(_)))
        {
            self.set_health(Health::new(State::CannotOpen, Aux::OpenFailed));
        }
    }

    /// As [`Leaf::close`], without waiting forever for a device that gives nothing back.
    pub(crate) async fn close_alone(&self) {
        // The disk is taken at once: dropping the rest leaves it closed as soon as it answers.
        let _ = world::timeout(CLOSING, self.close()).await;
    }

    /// The device has just joined its group and has nothing of it: everything up to what the txg being synced may still
    /// bring by the log is missing.
    pub fn has_nothing(&self, syncing: Txg) {
        self.set_txg(syncing);
        self.missing.add(Txg::INITIAL..=Txg(syncing.0 + super::MISSED_AHEAD));
    }
}
