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
    /// Where the API is: `https://127.0.0.1:215`, `unix:/path`.
    #[serde(default)]
    pub api: Vec<String>,
}
