//! What kinds of I/O a device is asked for, and how many of each may be with it at once.

use tunables::{Tunable, Tunables};

/// Why an operation is made: it decides when the leaf's queue lets it go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A client waits for this block.
    SyncRead,
    /// The intent log, labels, and all else that a caller waits for.
    SyncWrite,
    /// Prefetch.
    AsyncRead,
    /// The writing of a transaction group, and repairs.
    AsyncWrite,
    /// Scrub and resilver by block pointer.
    Scrub,
    /// The evacuation of a device.
    Removal,
    /// Writing to space never used, so that a thin device allocates it.
    Initializing,
    Trim,
    /// Sequential resilver.
    Rebuild,
}

impl Priority {
    pub const COUNT: usize = 9;
    pub const ALL: [Priority; Priority::COUNT] = [
        Priority::SyncRead,
        Priority::SyncWrite,
        Priority::AsyncRead,
        Priority::AsyncWrite,
        Priority::Scrub,
        Priority::Removal,
        Priority::Initializing,
        Priority::Trim,
        Priority::Rebuild,
    ];

    pub fn index(self) -> usize {
        self as usize
    }

    /// The word in the tunables `zfs_vdev_WORD_min_active` and `zfs_vdev_WORD_max_active`.
    pub fn name(self) -> &'static str {
        match self {
            Priority::SyncRead => "sync_read",
            Priority::SyncWrite => "sync_write",
            Priority::AsyncRead => "async_read",
            Priority::AsyncWrite => "async_write",
            Priority::Scrub => "scrub",
            Priority::Removal => "removal",
            Priority::Initializing => "initializing",
            Priority::Trim => "trim",
            Priority::Rebuild => "rebuild",
        }
    }

    /// How many of the class are served first, and at most. Classes whose limits are fixed have none.
    fn tunables(self) -> Option<(Tunable, Tunable)> {
        use Tunable::*;
        match self {
            Priority::SyncRead => Some((VdevSyncReadMinActive, VdevSyncReadMaxActive)),
            Priority::SyncWrite => Some((VdevSyncWriteMinActive, VdevSyncWriteMaxActive)),
            Priority::AsyncRead => Some((VdevAsyncReadMinActive, VdevAsyncReadMaxActive)),
            Priority::AsyncWrite => Some((VdevAsyncWriteMinActive, VdevAsyncWriteMaxActive)),
            Priority::Scrub => Some((VdevScrubMinActive, VdevScrubMaxActive)),
            Priority::Trim => Some((VdevTrimMinActive, VdevTrimMaxActive)),
            Priority::Removal | Priority::Initializing | Priority::Rebuild => None,
        }
    }

    fn max_active_fixed(self) -> u32 {
        match self {
            Priority::Removal => 2,
            Priority::Rebuild => 3,
            _ => 1,
        }
    }

    /// Background work gives way to the others and is throttled while they are active.
    pub(crate) fn is_background(self) -> bool {
        use Priority::*;
        matches!(self, Scrub | Removal | Initializing | Rebuild)
    }

    /// Served in the order of arrival; the others in the order of their place on the device.
    pub(crate) fn is_first_come(self) -> bool {
        matches!(self, Priority::SyncRead | Priority::SyncWrite | Priority::Trim)
    }
}

/// The tunables of every leaf's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `zfs_vdev_*_min_active`: served before any class gets more than this.
    pub min_active: [u32; Priority::COUNT],
    /// `zfs_vdev_*_max_active`.
    pub max_active: [u32; Priority::COUNT],
    /// `zfs_vdev_max_active`: all classes together.
    pub total: u32,
    /// `zfs_vdev_aggregation_limit`, and the same for devices that do not seek.
    pub aggregation: u64,
    pub aggregation_non_rotating: u64,
    /// `zfs_vdev_read_gap_limit`: neighbours this close are read in one sweep.
    pub read_gap: u64,
    /// `zfs_vdev_nia_delay`: a device is idle after so many background operations without others in between.
    pub idle_after: u32,
    /// `zfs_vdev_nia_credit`: background operations let through per completed other one, while those are active.
    pub credit: u32,
}

impl Limits {
    /// As the tunables are now.
    pub fn of(tunables: &Tunables) -> Limits {
        let get = |t: Tunable| tunables.get(t);
        // Their ranges end below 2^32.
        let count = |t: Tunable| u32::try_from(get(t)).unwrap_or(u32::MAX);
        Limits {
            min_active: Priority::ALL.map(|p| p.tunables().map_or(1, |(min, _)| count(min))),
            max_active: Priority::ALL
                .map(|p| p.tunables().map_or(p.max_active_fixed(), |(_, max)| count(max))),
            total: count(Tunable::VdevMaxActive),
            aggregation: get(Tunable::VdevAggregationLimit),
            aggregation_non_rotating: get(Tunable::VdevAggregationLimitNonRotating),
            read_gap: get(Tunable::VdevReadGapLimit),
            idle_after: count(Tunable::VdevNiaDelay),
            credit: count(Tunable::VdevNiaCredit),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::of(&Tunables::default())
    }
}
