//! What the cache and the cache devices tell of themselves, in the words of the API.

use crate::appliance::Appliance;
use api::{CacheDevices, CacheState, CachedKind, DeviceWear};
use arc::Counts;
use pool::Pool;
use std::sync::Arc;
use units::Guid;
use vdev::{AuxKind, Leaf};

impl Appliance {
    /// Of pools that are being opened the cache devices are not told: the answer does not wait for them.
    pub(crate) fn cache_state(&self) -> CacheState {
        let pools = self.0.pools.try_lock();
        let (devices, wear) = pools.map_or_else(Default::default, |pools| {
            (
                pools.opened().filter_map(devices_of).collect(),
                pools.opened().flat_map(wear_of).map(|(_, wear)| wear).collect(),
            )
        });
        let stats = self.0.cache.stats();
        CacheState {
            uptime: world::now().since(self.0.started).as_secs(),
            size: stats.size,
            limit: stats.limit + stats.beside,
            max: stats.max,
            headers: stats.beside.saturating_sub(stats.at_hand_bytes),
            data: kind(&stats.data),
            metadata: kind(&stats.metadata),
            ghosts: stats.ghosts,
            refused: stats.refused,
            devices,
            wear,
        }
    }
}

fn kind(counts: &Counts) -> CachedKind {
    CachedKind {
        blocks: counts.blocks,
        recent: counts.recent_bytes,
        frequent: counts.frequent_bytes,
        recent_target: counts.recent_target,
        hits: counts.demand_hits,
        misses: counts.demand_misses,
        joined: counts.joined,
        ahead_hits: counts.prefetch_hits,
        ahead_misses: counts.prefetch_misses,
        ahead_used: counts.prefetched_used,
        ahead_late: counts.prefetched_late,
        ahead_unused: counts.prefetched_unused,
        cold_hits: counts.cold_hits,
        cold_blocks: counts.cold_blocks,
        cold: counts.cold_bytes,
        cold_full: counts.cold_full_bytes,
        recent_ghost_hits: counts.recent_ghost_hits,
        frequent_ghost_hits: counts.frequent_ghost_hits,
        evicted: counts.evicted,
        evicted_bytes: counts.evicted_bytes,
    }
}

/// What its cache and log devices were given to write, by their guids.
pub(crate) fn wear_of(pool: &Pool) -> Vec<(Guid, DeviceWear)> {
    let of = |leaf: &Arc<Leaf>, is_log| {
        let wear = DeviceWear {
            pool: pool.name(),
            device: leaf.device().to_string(),
            is_log,
            size: leaf.psize(),
            seconds: world::now().since(leaf.opened()).as_secs(),
            written_bytes: leaf.stats.snapshot().write.bytes,
            again_bytes: pool.pipeline().second_level().served(leaf.guid()),
        };
        (leaf.guid(), wear)
    };
    let caches = pool.tree().aux(AuxKind::Cache).into_iter().map(|cache| of(&cache.leaf, false));
    let logs = pool.tree().tops().into_iter().filter(|top| top.is_log);
    let logs = logs.flat_map(|log| log.leaves()).map(|leaf| of(&leaf, true));
    caches.chain(logs).collect()
}

fn devices_of(pool: &Pool) -> Option<CacheDevices> {
    let second = pool.pipeline().second_level();
    if !second.is_active() {
        return None;
    }
    let stats = second.stats();
    let counted = stats.counted;
    Some(CacheDevices {
        pool: pool.name(),
        blocks: stats.data.blocks + stats.metadata.blocks,
        data: stats.data.bytes,
        metadata: stats.metadata.bytes,
        headers: stats.header_bytes,
        hits: counted.hits,
        misses: counted.misses,
        passed_by: counted.passed_by,
        read_bytes: counted.read_bytes,
        fed: counted.fed,
        written_bytes: counted.written_bytes,
        evicted: counted.evicted,
        rebuilt: counted.rebuilt,
        bad_checksums: counted.bad_checksums,
        read_errors: counted.read_errors,
        write_errors: counted.write_errors,
        no_memory: counted.no_memory,
        passes: counted.passes,
        cut_short: counted.cut_short,
    })
}
