//! The audit log: who changed what, from where, and what came of it.

use serde::{Deserialize, Serialize};

/// One change, or one attempt at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since 1970.
    pub time: u64,
    pub user: String,
    /// `10.0.0.7`, or `local` for the Unix socket.
    pub address: String,
    /// In whose name the session or token goes; empty without one.
    pub session: String,
    /// `PUT /api/storage/v1/pools/p0/projects/mysql`.
    pub action: String,
    /// What was asked for. Secrets in it are stars, see [`crate::Secret`].
    pub detail: String,
    /// The status that was answered; [`Record::BEGUN`] before anything was done.
    pub status: u16,
}

impl Record {
    /// It is about to be done. A record with the answer follows, unless we are cut off.
    pub const BEGUN: u16 = 102;
}
