//! A picture of the tree for `zpool status`, `zpool list -v` and `zpool iostat -v`.

use crate::leaf::Leaf;
use crate::node::Node;
use crate::pace::is_slow;
use crate::stats::Snapshot;
use crate::{Bias, Errors, Health, Spec, Top, VdevType};
use units::Guid;

/// One vdev, and those below it.
#[derive(Clone, Debug)]
pub struct VdevStatus {
    /// `mirror-0`, `sda`, a path: see [`Spec::name`].
    pub name: String,
    pub vdev_type: VdevType,
    pub guid: Guid,
    pub id: Option<u64>,
    pub path: Option<String>,
    /// How many of its devices are for parity.
    pub parity: u64,
    pub bias: Bias,
    pub health: Health,
    /// What the operating system said when a device could not be opened.
    pub detail: Option<String>,
    pub errors: Errors,
    /// Operations of a device that took longer than `zio_slow_io_ms`; of a group, of all its devices.
    pub slow_operations: u64,
    /// A device that works and has not yet all it should have.
    pub is_behind: bool,
    /// Much slower at reads lately than those beside it, which are asked instead.
    pub is_avoided: bool,
    /// Of a group: the sum over its leaves.
    pub stats: Snapshot,
    /// The allocatable bytes of a top-level vdev, or of a device.
    pub asize: u64,
    /// How many bytes more a top-level vdev would have if it took all that its devices have now.
    pub expandable: u64,
    pub ashift: Option<u32>,
    /// Of a device: the smallest unit that it writes without reading first, if that is known.
    pub physical_block: Option<u32>,
    pub children: Vec<VdevStatus>,
    /// Of the root only.
    pub spares: Vec<VdevStatus>,
    pub caches: Vec<VdevStatus>,
}

impl VdevStatus {
    pub(crate) fn of_root(spec: &Spec, health: Health) -> VdevStatus {
        VdevStatus::blank(spec, health)
    }

    pub(crate) fn of(spec: &Spec, node: &Node, top: Option<&Top>) -> VdevStatus {
        let mut status = match node.leaf() {
            Some(leaf) => VdevStatus::of_leaf(spec, leaf),
            None => VdevStatus { errors: node.errors(), ..VdevStatus::blank(spec, node.health()) },
        };
        let usual = node.usual_read();
        for (spec, child) in spec.children.iter().zip(node.children()) {
            let is_avoided = child.is_usable() && is_slow(child.typical_read(), usual);
            let child = VdevStatus { is_avoided, ..VdevStatus::of(spec, child, None) };
            status.stats.add(&child.stats);
            status.slow_operations += child.slow_operations;
            status.children.push(child);
        }
        if let Some(top) = top {
            status.asize = top.asize();
            status.expandable = top.expandable();
            status.bias = top.bias();
            status.ashift = Some(top.ashift);
        }
        status
    }

    pub(crate) fn of_leaf(spec: &Spec, leaf: &Leaf) -> VdevStatus {
        let mut stats = leaf.stats.snapshot();
        for (class, (waiting, active)) in stats.classes.iter_mut().zip(leaf.depths()) {
            (class.waiting, class.active) = (waiting as u64, active.into());
        }
        VdevStatus {
            errors: leaf.errors(),
            slow_operations: leaf.slow_operations(),
            stats,
            asize: leaf.asize(),
            physical_block: leaf.physical_block(),
            detail: leaf.detail(),
            is_behind: leaf.is_usable() && leaf.missing().is_any(),
            ..VdevStatus::blank(spec, leaf.health())
        }
    }

    fn blank(spec: &Spec, health: Health) -> VdevStatus {
        VdevStatus {
            name: spec.name(),
            vdev_type: spec.vdev_type,
            guid: spec.guid,
            id: spec.id,
            path: spec.path.clone(),
            parity: spec.parity(),
            bias: spec.bias,
            health,
            detail: None,
            errors: Errors::default(),
            slow_operations: 0,
            is_behind: false,
            is_avoided: false,
            stats: Snapshot::default(),
            asize: 0,
            expandable: 0,
            ashift: None,
            physical_block: None,
            children: Vec::new(),
            spares: Vec::new(),
            caches: Vec::new(),
        }
    }
}
