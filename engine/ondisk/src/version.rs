//! Pool versions: how the format grew before features took over.
//!
//! A pool of version 1 to 28 has what its version and all before it brought; of version 5000, everything here and
//! the features that its MOS names.

/// From here on, features say what a pool has.
pub const FEATURES: u64 = 5000;
/// The last one without features.
pub const LAST_NUMBERED: u64 = 28;

/// Whether we know what a pool of this version may contain.
pub fn is_known(version: u64) -> bool {
    (1..=LAST_NUMBERED).contains(&version) || version == FEATURES
}

/// Extra copies of metadata.
pub const DITTO_BLOCKS: u64 = 2;
/// Hot spares, raidz2, space counted without parity, dnodes that count bytes, bpobjs with sizes.
pub const SPARES: u64 = 3;
pub const RAIDZ2: u64 = 3;
pub const BPOBJ_ACCOUNTING: u64 = 3;
pub const DEFLATE: u64 = 3;
pub const DNODE_BYTES: u64 = 3;
pub const HISTORY: u64 = 4;
pub const GZIP: u64 = 5;
pub const BOOTFS: u64 = 6;
/// Separate log devices.
pub const LOG_DEVICES: u64 = 7;
pub const DELEGATION: u64 = 8;
/// Also refquota, refreservation, and `unique` of heads that can be trusted.
pub const REFQUOTA: u64 = 9;
pub const UNIQUE_ACCURATE: u64 = 9;
pub const L2CACHE: u64 = 10;
/// Snapshots know the clones after them; every dataset descends from `$ORIGIN`.
pub const NEXT_CLONES: u64 = 11;
pub const ORIGIN: u64 = 11;
pub const SNAPSHOT_PROPERTIES: u64 = 12;
pub const USED_BREAKDOWN: u64 = 13;
/// Accounting by user and group: object sets of 2048 bytes.
pub const USERSPACE: u64 = 15;
pub const RAIDZ3: u64 = 17;
pub const HOLDS: u64 = 18;
/// Log devices can be removed, leaving holes in the list of vdevs.
pub const HOLES: u64 = 19;
pub const ZLE: u64 = 20;
pub const DEDUP: u64 = 21;
pub const RECEIVED_PROPERTIES: u64 = 22;
/// Log blocks with the chain at their start.
pub const SLIM_ZIL: u64 = 23;
pub const SYSTEM_ATTRIBUTES: u64 = 24;
/// Scrub state in one structure.
pub const SCAN: u64 = 25;
/// Deadlists sorted by birth; directories know their clones.
pub const DEADLISTS: u64 = 26;
pub const DIR_CLONES: u64 = 26;
pub const FAST_SNAPSHOTS: u64 = 27;
pub const MULTI_REPLACE: u64 = 28;
