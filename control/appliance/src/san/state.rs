//! What the storage area network keeps while it runs.

use crate::san::iscsi::Iscsi;
use crate::shares::Claims;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct SanService {
    iscsi: Mutex<Option<Iscsi>>,
    /// Held while LUNs are numbered, and while groups change on which their numbers depend.
    pub numbering: world::sync::Mutex<()>,
    /// Held while it is decided which LUNs are served; of `numbering` and this, that is the first.
    pub claims: world::sync::Mutex<Claims>,
}

impl Default for SanService {
    fn default() -> SanService {
        SanService {
            iscsi: Mutex::default(),
            numbering: world::sync::Mutex::new(()),
            claims: world::sync::Mutex::new(Claims::default()),
        }
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
