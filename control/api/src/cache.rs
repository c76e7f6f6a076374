//! The cache of blocks: what is in it, what it was asked for since the daemon started, and what cache devices add.

use serde::{Deserialize, Serialize};

/// All sizes are in bytes, all else are counts since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheState {
    /// Seconds since then.
    pub uptime: u64,
    /// What it has, may have now, and may have at most (`zfs_arc_max`).
    pub size: u64,
    pub limit: u64,
    pub max: u64,
    /// Of the limit, what is remembered of cache devices.
    pub headers: u64,
    pub data: CachedKind,
    pub metadata: CachedKind,
    /// Blocks that left, and are remembered to know which of them come again.
    pub ghosts: u64,
    /// Blocks too large to be taken in.
    pub refused: u64,
    /// Of each pool that has cache devices.
    pub devices: Vec<CacheDevices>,
}

/// Blocks of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedKind {
    pub blocks: u64,
    /// Of blocks that were asked for once, and again.
    pub recent: u64,
    pub frequent: u64,
    /// How much the former may have before they leave first.
    pub recent_target: u64,
    /// What clients asked for.
    pub hits: u64,
    pub misses: u64,
    /// Misses that waited for the read of another request.
    pub joined: u64,
    /// What was to be read ahead: it was there, or it was read.
    pub ahead_hits: u64,
    pub ahead_misses: u64,
    /// Blocks that were read ahead and asked for then.
    pub ahead_used: u64,
    /// Misses of what had left not long before, from either list.
    pub recent_ghost_hits: u64,
    pub frequent_ghost_hits: u64,
    pub evicted: u64,
    pub evicted_bytes: u64,
}

/// The cache devices of a pool, since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheDevices {
    pub pool: String,
    pub blocks: u64,
    /// Of blocks as they are on disk.
    pub data: u64,
    pub metadata: u64,
    /// The memory that it takes to know what is where.
    pub headers: u64,
    /// What missed memory: it was there, it was not, or the device is not asked at present.
    pub hits: u64,
    pub misses: u64,
    pub passed_by: u64,
    pub read_bytes: u64,
    /// Blocks that were written, and the bytes with logs and headers.
    pub fed: u64,
    pub written_bytes: u64,
    /// Blocks that were written over before they were freed.
    pub evicted: u64,
    /// Blocks that were found again at import.
    pub rebuilt: u64,
    pub bad_checksums: u64,
    pub read_errors: u64,
    pub write_errors: u64,
    /// Times that nothing was written for want of memory to remember it.
    pub no_memory: u64,
}
