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
    }
}

/// How long a device has had work.
fn reading(leaf: &Arc<Leaf>, of_pool: &(Breakdown, Mark)) -> Reading {
    let disk = (Breakdown::Disk, Mark::Word(leaf.device().to_string().into()));
    Reading { marks: vec![of_pool.clone(), disk], value: leaf.busy_nanos() }
}
