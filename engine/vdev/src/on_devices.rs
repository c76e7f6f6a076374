//! Where a range of a top-level vdev is on its devices, whatever it is used for.
//!
//! What is done to free space goes past the groups, one device at a time: it is trimmed, or written for the first time. A
//! range of whole sectors is on whole sectors of each device, and no byte of a device belongs to two ranges.

use crate::node::{Body, Node};
use crate::{Leaf, Top};
use std::sync::Arc;

/// A part of one device.
#[derive(Clone, Debug)]
pub struct DeviceRange {
    pub leaf: Arc<Leaf>,
    /// In bytes, from where the device's data begins.
    pub offset: u64,
    pub len: u64,
}

impl Top {
    /// The parts of the devices that hold `len` bytes at `offset`; both are whole allocation units. A group that is not
    /// there has none.
    pub fn on_devices(&self, offset: u64, len: u64) -> Vec<DeviceRange> {
        let mut found = Vec::new();
        collect(&self.node(), offset, len, &mut found);
        found
    }
}

fn collect(node: &Node, offset: u64, len: u64, found: &mut Vec<DeviceRange>) {
    match &node.body {
        Body::Leaf(leaf) => found.push(DeviceRange { leaf: leaf.clone(), offset, len }),
        Body::Group(group) => {
            for range in group.ops.ranges(group.children.len(), offset, len) {
                if let Some(child) = group.children.get(range.child) {
                    collect(child, range.offset, range.len, found);
                }
            }
        }
        Body::Absent(_) => {}
    }
}
