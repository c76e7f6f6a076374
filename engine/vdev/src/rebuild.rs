//! Copying extents of a mirror to the devices that miss them, without looking at what is in them.
//!
//! ```text
//!   extent ─▶ its turn ─▶ read from a device that has everything ─▶ written to each that misses something
//!                              └ it cannot be read there: another one; nowhere: half of it at a time, down to a sector
//! ```
//!
//! In a mirror, and in groups that are mirrors for a time (a replacement, a spare), a byte is at the same place of each
//! device. Nothing tells whether what is read is what was written: so the source is, if it can be, the device that is being
//! replaced, and a block that is bad on one of the others is not made bad on two.
//!
//! Not here: which extents, how far it has come, and what a device that took all of them does not miss any more (the pool).

use crate::leaf::Leaf;
use crate::node::{Body, Node};
use crate::{Priority, Top};
use ondisk::MAX_BLOCK_SIZE;
use std::sync::Arc;
use units::{Error, Guid, Kind, Result};
use world::Buf;

/// What became of an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes that were written, on all devices together.
    pub written: u64,
    /// Pieces that no device could give.
    pub lost: u64,
}

impl Top {
    /// Whether each byte is at the same place of all its devices: a mirror, or one that is to become a mirror.
    pub fn is_mirrored(&self) -> bool {
        fn is_mirror(node: &Node) -> bool {
            match &node.body {
                Body::Leaf(_) => true,
                Body::Group(group) => {
                    node.vdev_type.is_mirror() && group.children.iter().all(|c| is_mirror(c))
                }
                Body::Absent(_) => false,
            }
        }
        is_mirror(&self.node())
    }

    /// Has writes take turns with copies from now on, or no more. To be called a txg before the first copy.
    pub fn set_copying(&self, is_copying: bool) {
        self.turns().set_on(is_copying);
    }

    /// Whether writes take turns with copies.
    pub fn is_copying(&self) -> bool {
        self.turns().is_on()
    }

    /// Copies an extent to each device that misses anything.
    ///
    /// # Errors
    /// `Io` when no device has everything.
    pub async fn copy_extent(&self, offset: u64, len: u64) -> Result<Copied> {
        debug_assert!(
            self.is_copying(),
            "writes take turns with copies, or an old copy could come after a new write"
        );
        let _turn = self.turns().copy(offset..offset.saturating_add(len)).await;
        let node = self.node();
        let misses = |leaf: &&Arc<Leaf>| leaf.is_usable() && leaf.missing().is_any();
        let mut copied = Copied::default();
        for target in node.leaves().iter().filter(misses) {
            let mut left = vec![(offset, len.min(MAX_BLOCK_SIZE))];
            while let Some((at, len)) = left.pop() {
                match self.read_for(&node, target.guid(), at, len).await? {
                    Some(bytes) => {
                        // A device that does not take it notes that by itself.
                        if target.write(at, bytes, Priority::Rebuild).await.is_ok() {
                            copied.written += len;
                        }
                    }
                    None if len > self.min_alloc() => {
                        let half = (len / 2).next_multiple_of(self.min_alloc());
                        left.extend([(at + half, len - half), (at, half)]);
                    }
                    None => copied.lost += 1,
                }
            }
        }
        Ok(copied)
    }

    /// What a device that has everything has there; none when it cannot be read.
    async fn read_for(&self, node: &Node, target: Guid, at: u64, len: u64) -> Result<Option<Buf>> {
        let mut sources = Vec::new();
        nearest(node, target, &mut sources);
        sources.retain(|leaf| leaf.is_usable() && !leaf.missing().is_any());
        for source in &sources {
            if let Ok(bytes) = source.read(at, len as usize, Priority::Rebuild).await {
                return Ok(Some(bytes));
            }
        }
        // One that is gone by now would have had it.
        match sources.iter().any(|leaf| leaf.is_usable()) {
            true => Ok(None),
            false => Err(Error::new(Kind::Io, "rebuild").because("no device has everything")),
        }
    }
}

/// The other devices, those of the same group first.
fn nearest(node: &Node, target: Guid, found: &mut Vec<Arc<Leaf>>) -> bool {
    if let Some(leaf) = node.leaf() {
        return leaf.guid() == target;
    }
    let Some(own) = node.children().iter().position(|child| nearest(child, target, found)) else {
        return false;
    };
    let others = node.children().iter().enumerate().filter(|(i, _)| *i != own);
    found.extend(others.flat_map(|(_, child)| child.leaves()));
    true
}
