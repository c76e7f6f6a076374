//! The counters of a vdev since it was opened: what `zpool iostat` shows the differences of.

use serde::{Deserialize, Serialize};

/// Bucket n of a histogram counts what lies in `2^n ..= 2^(n+1) - 1`: nanoseconds, or bytes.
pub type Histogram = Vec<u64>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VdevStats {
    pub read: IoKind,
    pub write: IoKind,
    pub trim: IoKind,
    pub sync_read: IoClass,
    pub sync_write: IoClass,
    pub async_read: IoClass,
    pub async_write: IoClass,
    pub scrub: IoClass,
    pub trim_class: IoClass,
    pub rebuild: IoClass,
    #[serde(default)]
    pub flush: Flushes,
}

/// What it took to be sure of writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushes {
    /// How often a flush was asked for, and how often the device was asked for one.
    pub asked: u64,
    pub sent: u64,
    /// Nanoseconds, of all together.
    pub wait_ns: u64,
    /// From when the device was asked.
    pub wait: Histogram,
}

/// All reads, all writes or all trims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoKind {
    pub ops: u64,
    pub bytes: u64,
    /// From when it was asked for.
    pub total_wait: Histogram,
    /// From when the device was asked.
    pub disk_wait: Histogram,
}

/// The operations of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoClass {
    /// In the queue, and at the device, at this moment.
    pub pending: u64,
    pub active: u64,
    pub queue_wait: Histogram,
    /// Sizes of operations that went to the device by themselves, and of those made of several.
    pub individual: Histogram,
    pub aggregated: Histogram,
}
