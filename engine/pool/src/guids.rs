//! Guids for new vdevs: drawn at random, and never one that is taken.
//!
//! Everything finds a device by its guid, labels and configuration included, so that two of the same in one pool are one
//! device that is opened twice. Chance alone keeps them apart only as far as its source is good: a machine that is started
//! from an image may draw the numbers it has drawn before.

use crate::pool::Pool;
use units::{Guid, HashSet};
use vdev::AuxKind;

/// Those that are taken.
#[derive(Debug, Default)]
pub(crate) struct Guids(HashSet<Guid>);

impl Guids {
    /// Those of the pool, its vdevs, and what stands beside them.
    pub fn of(pool: &Pool) -> Guids {
        let (tree, mut taken) = (pool.tree(), Guids::default());
        taken.0.extend(tree.spec().walk().map(|spec| spec.guid));
        for kind in [AuxKind::Spare, AuxKind::Cache] {
            taken.0.extend(tree.aux(kind).iter().map(|device| device.spec.guid));
        }
        taken.0.insert(pool.guid());
        taken
    }

    pub fn has(&self, guid: Guid) -> bool {
        self.0.contains(&guid)
    }

    /// One that is about to be the pool's.
    pub fn take(&mut self, guid: Guid) {
        self.0.insert(guid);
    }

    /// A new one, taken from now on.
    pub fn draw(&mut self) -> Guid {
        loop {
            let guid = Guid(world::random_u64());
            // 0 stands for none.
            if guid != Guid(0) && self.0.insert(guid) {
                return guid;
            }
        }
    }
}
