//! What the storage area network keeps while it runs.

use crate::san::iscsi::Iscsi;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct SanService {
    iscsi: Mutex<Option<Iscsi>>,
    /// Held while LUNs are numbered, and while groups change on which their numbers depend.
    pub numbering: world::sync::Mutex<()>,
}

impl Default for SanService {
    fn default() -> SanService {
        SanService { iscsi: Mutex::default(), numbering: world::sync::Mutex::new(()) }
    }
}

impl SanService {
    /// The iSCSI service, once it has started.
    pub fn iscsi(&self) -> Option<Iscsi> {
        self.iscsi.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_iscsi(&self, iscsi: Iscsi) {
        *self.iscsi.lock().unwrap_or_else(PoisonError::into_inner) = Some(iscsi);
    }
}
