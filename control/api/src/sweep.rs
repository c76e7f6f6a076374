//! `zpool trim` and `zpool initialize`: what is asked for, and how far a device has come.

use serde::{Deserialize, Serialize};

/// What is done to the free space of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepKind {
    Trim,
    Initialize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepAction {
    /// Or go on with one that is suspended; `rate` in bytes a second.
    Start {
        rate: Option<u64>,
    },
    Suspend,
    Cancel,
    /// Forget that it was ever done.
    Forget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepState {
    Active,
    Canceled,
    Suspended,
    Complete,
}

/// The last sweep of a kind on a device; a device that never had one has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    pub kind: SweepKind,
    pub state: SweepState,
    /// When it got into this state, in seconds since 1970.
    pub since: u64,
    /// Bytes of the device that are behind it, used ones included.
    pub done: u64,
}
