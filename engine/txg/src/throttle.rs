//! How long a writer waits, given how much is dirty. Pure.
//!
//! ```text
//!   delay
//!     │                                   │ wall: wait for a txg to sync
//!     │                                 ╱ │
//!     │                            __─╱   │
//!     └────────────────────────────┴──────┴──▶ dirty
//!     0          start syncing    60 %   100 % of zfs_dirty_data_max
//! ```
//!
//! Past 60 % dirty, writers wait a little rather than stop dead at 100 %: the curve is
//! `zfs_delay_scale * (dirty - start) / (max - dirty)`, flat at first and steep near the wall, so that the rate of
//! writers settles where the disks keep up, and p99 stays smooth where a wall alone would give a sawtooth.

use std::time::Duration;
use tunables::{Tunable, Tunables};

/// The tunables, by OpenZFS's names.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `zfs_dirty_data_max`, bytes.
    pub dirty_max: u64,
    /// `zfs_delay_min_dirty_percent`.
    pub delay_min_percent: u64,
    /// `zfs_delay_scale`, nanoseconds.
    pub delay_scale_ns: u64,
    /// `zfs_dirty_data_sync_percent`: a txg this dirty is synced without waiting for its time-out.
    pub sync_percent: u64,
    /// `zfs_per_txg_dirty_frees_percent`.
    pub frees_percent: u64,
    /// `zfs_txg_timeout`, seconds.
    pub txg_timeout: Duration,
}

impl Limits {
    /// As the tunables are now.
    pub fn of(tunables: &Tunables) -> Limits {
        Limits {
            dirty_max: tunables.get(Tunable::DirtyDataMax),
            delay_min_percent: tunables.get(Tunable::DelayMinDirtyPercent),
            delay_scale_ns: tunables.get(Tunable::DelayScale),
            sync_percent: tunables.get(Tunable::DirtyDataSyncPercent),
            frees_percent: tunables.get(Tunable::PerTxgDirtyFreesPercent),
            txg_timeout: Duration::from_secs(tunables.get(Tunable::TxgTimeout)),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::of(&Tunables::default())
    }
}

/// No single wait is longer than this (`zfs_delay_max_ns`).
const DELAY_MAX_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Go,
    Delay(Duration),
    /// Nothing more until a txg has synced.
    Wall,
}

impl Limits {
    pub fn admit(&self, dirty: u64) -> Admission {
        if dirty >= self.dirty_max {
            return Admission::Wall;
        }
        let start = self.dirty_max / 100 * self.delay_min_percent;
        if dirty <= start {
            return Admission::Go;
        }
        let ns =
            u128::from(self.delay_scale_ns) * u128::from(dirty - start) / u128::from(self.dirty_max - dirty);
        Admission::Delay(Duration::from_nanos(ns.min(DELAY_MAX_NS.into()) as u64))
    }

    /// The open txg has grown enough to be synced now. One that nothing has dirtied never has.
    pub fn is_full(&self, dirty_in_open: u64) -> bool {
        dirty_in_open >= (self.dirty_max / 100 * self.sync_percent).max(1)
    }
}
