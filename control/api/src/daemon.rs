//! The daemon itself.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    pub pid: u32,
    pub version: String,
    pub home: String,
    /// Seconds since it started.
    pub uptime: u64,
    /// Bytes that the cache has now, and may have at most: `zfs_arc_max`.
    pub arc_size: u64,
    pub arc_max: u64,
    /// What the cache may have now: less than `arc_max` while the machine, or the control group, has little memory left.
    #[serde(default)]
    pub arc_limit: u64,
    #[serde(default)]
    pub memory: Memory,
    /// Where the API is: `https://127.0.0.1:215`, `unix:/path`.
    #[serde(default)]
    pub api: Vec<String>,
}

/// Where the daemon's memory is, in bytes. Together the parts are what is resident, but for
/// stacks and the like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// What the kernel says that it has (`VmRSS`).
    pub resident: u64,
    /// Buffers of the cache, which are `arc_size`.
    pub cache: u64,
    /// What clients have written and no txg has brought to the devices.
    pub dirty: u64,
    /// Buffers of requests, of what is on its way to and from the devices, and what buffers are larger than their contents.
    pub requests: u64,
    /// Buffers that are kept for those to come, and go when no load needs them.
    pub kept: u64,
    /// All smaller things.
    pub heap: u64,
    /// Where smaller things were: holes of the heap, which go back when a load has ended.
    #[serde(default)]
    pub freed: u64,
    /// The program itself.
    pub program: u64,
}
