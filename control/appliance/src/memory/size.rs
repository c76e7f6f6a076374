//! How large the cache may be, and how much of it compressed, as an administrator has it.

use std::sync::Arc;
use tunables::{Tunable, Tunables, Watcher};

/// Bytes; `unset` while nothing else was set.
pub(crate) fn size_of_cache(tunables: &Tunables, unset: u64) -> u64 {
    match tunables.get(Tunable::ArcMax) {
        0 => unset,
        bytes => bytes,
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CacheSize {
    cache: Arc<arc::Cache>,
    /// What it may be while it was not set.
    unset: u64,
}

impl CacheSize {
    pub(crate) fn new(cache: Arc<arc::Cache>, unset: u64) -> CacheSize {
        CacheSize { cache, unset }
    }
}

impl Watcher for CacheSize {
    fn retuned(self: Arc<CacheSize>, tunables: &Tunables) {
        let max = size_of_cache(tunables, self.unset);
        self.cache.set_max(max);
        let is_compressed = tunables.is_on(Tunable::CompressedArc);
        self.cache.set_cold(if is_compressed { tunables.get(Tunable::ArcColdPercent) } else { 0 });
        super::bound_buffers(max, self.cache.stats().cold_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arc::{Access, BlockId, Kind, Request};
    use units::{Sectors, Txg, VdevId};

    /// Blocks of one word again and again, half more than fit, round and round.
    fn use_blocks(cache: &arc::Cache) {
        for n in (0..1500).cycle().take(10_000) {
            let opening = arc::Opening::default();
            let block = BlockId { opening, vdev: VdevId(0), offset: Sectors(n * 16), birth: Txg(7) };
            if cache.get(&block, Access::Demand).is_none() {
                cache.insert(Request::demand(block, Kind::Data), world::Buf::copy_from(&[b'x'; 8192]));
            }
        }
    }

    #[test]
    fn what_is_kept_compressed_follows_its_tunables_at_once() {
        let tunables = Tunables::new();
        let cache = Arc::new(arc::Cache::new(8 << 20));
        let size = Arc::new(CacheSize::new(cache.clone(), 8 << 20));
        tunables.watch(&size);
        use_blocks(&cache);
        assert!(cache.stats().data.cold_blocks > 100, "as a default: {:?}", cache.stats());
        tunables.set(Tunable::CompressedArc, 0).unwrap();
        assert_eq!(cache.stats().cold_bytes(), 0);
        use_blocks(&cache);
        assert_eq!(cache.stats().cold_bytes(), 0);
        tunables.set(Tunable::CompressedArc, 1).unwrap();
        tunables.set(Tunable::ArcColdPercent, 1).unwrap();
        use_blocks(&cache);
        let cold = cache.stats().cold_bytes();
        assert!(cold > 0 && cold <= (8 << 20) / 100, "{cold}");
        tunables.set(Tunable::ArcMax, 16 << 20).unwrap();
        assert_eq!(cache.stats().max, 16 << 20);
    }
}
