//! Whether and how far is read ahead, and what became of it.
//!
//! The layers that see readers ask here before they ask for a block in advance; each answer is what holds now. While the
//! pool is suspended nothing is read ahead: copies of its metadata may be on no device yet, and devices that are away fail
//! whatever is asked of them.

use crate::Suspension;
use arc::AheadCounts;
use std::sync::Arc;
use tunables::{Tunable, Tunables};

/// No reader has more of the cache before it than one part in so many: what is read ahead of one must not push out what was
/// read ahead of another.
const SHARE: u64 = 8;

/// See the module. Of one pool.
#[derive(Debug, Default)]
pub struct ReadAhead {
    tunables: Arc<Tunables>,
    counts: Arc<AheadCounts>,
    suspension: Arc<Suspension>,
}

/// How far ahead, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadLimits {
    /// Readers told apart in one object; 0: nothing is read ahead.
    pub streams: usize,
    /// In bytes: up to here as fast as a reader proves to be one, and at most.
    pub min: u64,
    pub max: u64,
    /// Bytes of which the pointers are fetched.
    pub indirect: u64,
    /// Of the cache, since it was made: blocks that came too late, and blocks that were fetched in vain.
    pub late: u64,
    pub unused: u64,
}

/// How far ahead of a walk, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimits {
    /// Of what one block leads to.
    pub blocks: u64,
    /// Of all that is ahead of the walk.
    pub bytes: u64,
}

impl ReadAhead {
    pub(crate) fn new(
        tunables: Arc<Tunables>,
        counts: Arc<AheadCounts>,
        suspension: Arc<Suspension>,
    ) -> ReadAhead {
        ReadAhead { tunables, counts, suspension }
    }

    /// Of a store without a cache.
    pub fn tuned(tunables: Arc<Tunables>) -> ReadAhead {
        ReadAhead { tunables, ..ReadAhead::default() }
    }

    /// As switched by an administrator (`zfs_prefetch_disable`).
    pub fn is_on(&self) -> bool {
        !self.tunables.is_on(Tunable::PrefetchDisable)
    }

    /// Whether there may be requests past the cache, for which nothing is asked in advance (`zfs_dio_enabled`).
    pub fn passes_cache(&self) -> bool {
        self.tunables.is_on(Tunable::DioEnabled)
    }

    /// After how many bytes in order what follows is written before it is asked for (`write_behind_min`).
    pub fn behind_from(&self) -> u64 {
        self.tunables.get(Tunable::WriteBehindMin)
    }

    /// Whether something may be asked for in advance just now.
    pub fn may_begin(&self) -> bool {
        self.is_on() && self.suspension.why().is_none()
    }

    /// A walk knows what it will need: that is no guess, and not for `zfs_prefetch_disable` to forbid.
    pub fn walk_limits(&self) -> WalkLimits {
        let is_suspended = self.suspension.why().is_some();
        let blocks = if is_suspended { 0 } else { self.tunables.get(Tunable::TraverseIndirectPrefetchLimit) };
        WalkLimits { blocks, bytes: self.tunables.get(Tunable::TraverseBytesMax) }
    }

    pub fn limits(&self) -> AheadLimits {
        let get = |tunable| self.tunables.get(tunable);
        let streams = if self.is_on() { get(Tunable::FetchMaxStreams) as usize } else { 0 };
        // A store without a cache has no limit of its own.
        let share = match self.counts.room() {
            0 => u64::MAX,
            room => room / SHARE,
        };
        AheadLimits {
            streams,
            min: get(Tunable::FetchMinDistance),
            max: get(Tunable::FetchMaxDistance).min(share),
            indirect: get(Tunable::FetchMaxIndirectDistance),
            late: self.counts.late(),
            unused: self.counts.unused(),
        }
    }
}
