//! What the cache is asked: its size, its targets, and what its ghosts teach it.

use crate::cache::Cache;
use crate::stats::{Counts, Stats};
use probe::{Breakdown, Hub, Mark, Reading, Registration};
use std::sync::Arc;

/// The parts of a statistic, by the names of its components.
type Parts = fn(&Stats) -> Vec<(&'static str, u64)>;

const ASKED: [(&str, Parts); 5] = [
    ("arc.size", |stats| {
        let lists = |of: &Counts| (of.recent_bytes, of.frequent_bytes);
        let ((data, often), (metadata, metadata_often)) = (lists(&stats.data), lists(&stats.metadata));
        vec![
            ("data that came lately", data),
            ("data kept", often),
            ("metadata that came lately", metadata),
            ("metadata kept", metadata_often),
            ("kept compressed", stats.cold_bytes()),
            ("headers of cache devices", stats.beside),
        ]
    }),
    ("arc.target", |stats| {
        let metadata = stats.metadata_target.min(stats.limit);
        vec![("data", stats.limit - metadata), ("metadata", metadata)]
    }),
    ("arc.adaptive", |stats| {
        vec![("data", stats.data.recent_target), ("metadata", stats.metadata.recent_target)]
    }),
    ("arc.ahead", |stats| {
        let of = |of: fn(&Counts) -> u64| of(&stats.data) + of(&stats.metadata);
        vec![
            ("in time", of(|counts| counts.prefetched_used)),
            ("too late", of(|counts| counts.prefetched_late)),
            ("never used", of(|counts| counts.prefetched_unused)),
        ]
    }),
    ("arc.ghosts", |stats| {
        vec![
            ("data that came lately", stats.data.recent_ghost_hits),
            ("data kept", stats.data.frequent_ghost_hits),
            ("metadata that came lately", stats.metadata.recent_ghost_hits),
            ("metadata kept", stats.metadata.frequent_ghost_hits),
        ]
    }),
];

impl Cache {
    /// Has statistics of the cache ask it, until what is returned is dropped.
    pub fn register(self: &Arc<Cache>, hub: &Hub) -> Vec<Registration> {
        let register = |(statistic, parts): &(&str, Parts)| {
            let (cache, parts) = (Arc::downgrade(self), *parts);
            let ask = move || {
                let stats = cache.upgrade().map(|cache| cache.stats()).unwrap_or_default();
                parts(&stats).into_iter().map(reading).collect()
            };
            hub.readings(statistic, Arc::new(ask))
        };
        ASKED.iter().map(register).collect()
    }
}

fn reading((component, value): (&str, u64)) -> Reading {
    Reading { marks: vec![(Breakdown::Component, Mark::Word(component.into()))], value }
}
