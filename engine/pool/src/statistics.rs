//! What statistics ask of a pool, from when it is assembled until it is gone.

use crate::pool::{Pool, lock};
use probe::{Breakdown, Mark, Reading};
use std::sync::Arc;
use vdev::{Leaf, Tree};

impl Pool {
    pub(crate) fn tell_statistics(&self) {
        let (inner, name) = (&self.0, self.name());
        let dirty = inner.txgs.tell_to(&inner.hub, &name);
        let (tree, pool) = (Arc::downgrade(&inner.tree), inner.hub.label(&name));
        let busy = move || {
            let of_pool = (Breakdown::Pool, Mark::from(&pool));
            let leaves = tree.upgrade().map(|tree: Arc<Tree>| tree.leaves()).unwrap_or_default();
            leaves.iter().map(|leaf| reading(leaf, &of_pool)).collect()
        };
        let disks = inner.hub.readings("io.disks", Arc::new(busy));
        lock(&inner.asked).extend([dirty, disks]);
        lock(&inner.asked).extend(SECOND_LEVEL.iter().map(|(statistic, parts)| {
            let (second, pool) = (Arc::downgrade(inner.pipeline.second_level()), inner.hub.label(&name));
            let ask = move || {
                // A pool without cache devices is not spoken of.
                let Some(second) = second.upgrade().filter(|second| second.is_active()) else {
                    return Vec::new();
                };
                let part = |(component, value): (&'static str, u64)| Reading {
                    marks: vec![
                        (Breakdown::Component, Mark::Word(component.into())),
                        (Breakdown::Pool, Mark::from(&pool)),
                    ],
                    value,
                };
                parts(&second.stats()).into_iter().map(part).collect()
            };
            inner.hub.readings(statistic, Arc::new(ask))
        }));
    }
}

/// The parts of a statistic of cache devices, by the names of its components.
type Parts = fn(&l2arc::Stats) -> Vec<(&'static str, u64)>;

const SECOND_LEVEL: [(&str, Parts); 4] = [
    ("arc.l2_accesses", |stats| {
        let of = &stats.counted;
        vec![("hits", of.hits), ("misses", of.misses), ("passed by", of.passed_by)]
    }),
    ("arc.l2_bytes", |stats| {
        vec![("read", stats.counted.read_bytes), ("write", stats.counted.written_bytes)]
    }),
    ("arc.l2_size", |stats| {
        vec![("data", stats.data.bytes), ("metadata", stats.metadata.bytes), ("headers", stats.header_bytes)]
    }),
    ("arc.l2_errors", |stats| {
        let of = &stats.counted;
        vec![
            ("reads", of.read_errors),
            ("checksums", of.bad_checksums),
            ("writes", of.write_errors),
            ("want of memory", of.no_memory),
        ]
    }),
];

/// How long a device has had work.
fn reading(leaf: &Arc<Leaf>, of_pool: &(Breakdown, Mark)) -> Reading {
    let disk = (Breakdown::Disk, Mark::Word(leaf.device().to_string().into()));
    Reading { marks: vec![of_pool.clone(), disk], value: leaf.busy_nanos() }
}
