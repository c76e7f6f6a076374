//! What there is to know of how a group holds blocks on its children: one object for each open group, of its kind.
//!
//! Leaves have none: reading and writing a device goes past this.

use super::{Ask, Node};
use crate::Priority;
use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use units::Result;
use world::Buf;

/// A part of one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildRange {
    pub child: usize,
    /// In bytes, from where the child's data starts.
    pub offset: u64,
    pub len: u64,
}

/// Where a part of a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub child: usize,
    /// In bytes, from where the child's data starts.
    pub offset: u64,
    /// Which bytes of the block it holds; of parity only the length means something.
    pub bytes: Range<usize>,
    pub is_parity: bool,
}

/// See the module. Offsets are those of the group, lengths are whole sectors; `children` are those of the group.
pub(crate) trait VdevOps: Debug + Send + Sync {
    /// The space that a block of `psize` bytes takes in units of `min_alloc`, parity included.
    fn asize(&self, psize: u64, min_alloc: u64) -> u64 {
        psize.next_multiple_of(min_alloc)
    }

    /// How many of so many children take data of a large block at the same time.
    fn data_disks(&self, _children: usize) -> usize {
        1
    }

    /// The allocatable bytes of a group of so many children, of which the smallest has `child_asize`.
    fn capacity(&self, _children: usize, child_asize: u64) -> u64 {
        child_asize
    }

    /// What each of so many children must have at least for the group to have `asize` allocatable bytes.
    fn child_asize(&self, _children: usize, asize: u64) -> u64 {
        asize
    }

    /// Reads a block, as thoroughly as asked, and repairs it on the way if it is asked to.
    fn read<'a>(&'a self, children: &'a [Arc<Node>], ask: Ask) -> BoxFuture<'a, Result<Buf>>;

    /// Writes a block. Good when it can be read again, see [`super::enough`].
    fn write<'a>(
        &'a self,
        children: &'a [Arc<Node>],
        offset: u64,
        data: Buf,
        priority: Priority,
    ) -> BoxFuture<'a, Result<()>>;

    /// What a range, such as one that became free, is on so many children.
    fn ranges(&self, children: usize, offset: u64, asize: u64) -> Vec<ChildRange>;

    /// Where the first `len` bytes of a block at `offset` are on so many children.
    fn parts(&self, children: usize, offset: u64, len: usize) -> Vec<Part>;
}
