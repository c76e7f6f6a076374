//! What the cache counts. Counters live in the shards, under their locks, and are summed when they are asked for.

use crate::block::{Access, Kind};
use std::ops::AddAssign;

/// Hits and misses of one kind of block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub demand_hits: u64,
    pub demand_misses: u64,
    pub prefetch_hits: u64,
    pub prefetch_misses: u64,
    /// Demand hits on blocks that were read ahead and not asked for until then: what prefetching was good for.
    pub prefetched_used: u64,
    /// Blocks that were asked for while they were read ahead, and blocks that were read ahead, not asked for, and left.
    pub prefetched_late: u64,
    pub prefetched_unused: u64,
    /// Misses that waited for the read of another request.
    pub joined: u64,
    /// Misses on a ghost of the window and of the main part.
    pub recent_ghost_hits: u64,
    pub frequent_ghost_hits: u64,
    pub evicted: u64,
    pub evicted_bytes: u64,
    /// Bytes in memory now: in the window or read ahead, and in the main part.
    pub recent_bytes: u64,
    pub frequent_bytes: u64,
    pub blocks: u64,
    /// Demand hits on blocks that were kept compressed; `demand_hits` has them as well.
    pub cold_hits: u64,
    /// Blocks that are kept compressed now, the bytes that they take, and those that they would take uncompressed.
    pub cold_blocks: u64,
    pub cold_bytes: u64,
    pub cold_full_bytes: u64,
    /// The target of the window, in bytes.
    pub recent_target: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub data: Counts,
    pub metadata: Counts,
    /// Bytes in memory now, the present limit on them (ARC's c), and the limit that was configured.
    pub size: u64,
    pub limit: u64,
    pub max: u64,
    pub ghosts: u64,
    /// The bytes metadata may take while data wants them too.
    pub metadata_target: u64,
    /// Blocks too large to be admitted.
    pub refused: u64,
    /// Blocks that were put in.
    pub admitted: u64,
    /// Bytes that others hold and that are charged to this memory: the headers of a second level, and what cores find blocks
    /// at hand by.
    pub beside: u64,
    /// Demand hits of what a core had at hand.
    pub at_hand: u64,
    /// What cores find blocks at hand by, bytes.
    pub at_hand_bytes: u64,
}

impl Stats {
    /// Bytes of blocks that are kept compressed.
    pub fn cold_bytes(&self) -> u64 {
        self.data.cold_bytes + self.metadata.cold_bytes
    }

    pub(crate) fn of(&mut self, kind: Kind) -> &mut Counts {
        match kind {
            Kind::Data => &mut self.data,
            Kind::Metadata => &mut self.metadata,
        }
    }

    pub(crate) fn miss(&mut self, kind: Kind, access: Access) {
        let counts = self.of(kind);
        match access {
            Access::Demand => counts.demand_misses += 1,
            Access::Prefetch | Access::Scan => counts.prefetch_misses += 1,
        }
    }
}

/// What a lookup is called.
pub(crate) fn access_name(kind: Kind, access: Access, is_hit: bool) -> &'static str {
    match (access, kind, is_hit) {
        (Access::Demand, Kind::Data, true) => "data hits",
        (Access::Demand, Kind::Data, false) => "data misses",
        (Access::Demand, Kind::Metadata, true) => "metadata hits",
        (Access::Demand, Kind::Metadata, false) => "metadata misses",
        (_, Kind::Data, true) => "prefetched data hits",
        (_, Kind::Data, false) => "prefetched data misses",
        (_, Kind::Metadata, true) => "prefetched metadata hits",
        (_, Kind::Metadata, false) => "prefetched metadata misses",
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, o: Counts) {
        self.demand_hits += o.demand_hits;
        self.demand_misses += o.demand_misses;
        self.prefetch_hits += o.prefetch_hits;
        self.prefetch_misses += o.prefetch_misses;
        self.prefetched_used += o.prefetched_used;
        self.prefetched_late += o.prefetched_late;
        self.prefetched_unused += o.prefetched_unused;
        self.joined += o.joined;
        self.recent_ghost_hits += o.recent_ghost_hits;
        self.frequent_ghost_hits += o.frequent_ghost_hits;
        self.evicted += o.evicted;
        self.evicted_bytes += o.evicted_bytes;
        self.recent_bytes += o.recent_bytes;
        self.frequent_bytes += o.frequent_bytes;
        self.blocks += o.blocks;
        self.cold_hits += o.cold_hits;
        self.cold_blocks += o.cold_blocks;
        self.cold_bytes += o.cold_bytes;
        self.cold_full_bytes += o.cold_full_bytes;
        self.recent_target += o.recent_target;
    }
}

impl AddAssign for Stats {
    fn add_assign(&mut self, o: Stats) {
        self.data += o.data;
        self.metadata += o.metadata;
        self.size += o.size;
        self.limit += o.limit;
        self.max += o.max;
        self.ghosts += o.ghosts;
        self.metadata_target += o.metadata_target;
        self.refused += o.refused;
        self.admitted += o.admitted;
        self.beside += o.beside;
    }
}
