//! What the device server needs from the owner of the blocks.
//!
//! Offsets and lengths are bytes within the size the unit had when the command was admitted.

use flow::{Extent, Piece, Reading};
use std::fmt::Debug;
use units::Result;
use world::{Buf, Pending};

/// A disk to serve. Shared by all the paths to it, on all cores.
///
/// Each operation is started by the call or by the first poll of its future, as suits the unit. Writes that completed
/// before a flush was asked for are covered by it, whichever path they came by.
pub trait LogicalUnit: Send + Sync + Debug {
    /// In bytes; it may change while it is served. What lies beyond the last whole logical block is not seen.
    fn size(&self) -> u64;

    /// The size at which aligned requests cost least: volblocksize. A power of two, at least 512.
    fn block_size(&self) -> u32;

    fn read_only(&self) -> bool;

    /// The dataset that it is, for statistics; empty when it is none.
    fn dataset(&self) -> &str {
        ""
    }

    /// Its pool is suspended, and what comes waits for it until an administrator acts, rather than fail.
    fn is_suspended(&self) -> bool {
        false
    }

    fn rotational(&self) -> bool {
        false
    }

    /// As [`LogicalUnit::read`]; appends the pieces to `pieces` when that takes no waiting, else leaves it as it was.
    fn begin_read(&self, offset: u64, len: u32, pieces: &mut Vec<Piece>) -> Reading {
        let _ = pieces;
        Reading::Waits(self.read(offset, len))
    }

    /// The pieces of a range, in order and without gaps.
    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Piece>>>;

    /// Writes `parts` one behind the other. A whole block in a buffer of its own may be kept as it is.
    fn write(&self, offset: u64, parts: Vec<Buf>, durable: bool) -> Pending<Result<()>>;

    /// Makes a range read as zeros, giving back the space of the whole blocks in it.
    fn zero(&self, offset: u64, len: u64, durable: bool) -> Pending<Result<()>>;

    /// Makes every write that completed before this call durable.
    fn flush(&self) -> Pending<Result<()>>;

    /// A range will be wanted soon.
    fn prefetch(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// What is allocated from `offset` on: at least one extent, at most `max`, and not necessarily up to `len`.
    fn extents(&self, offset: u64, len: u64, max: usize) -> Pending<Result<Vec<Extent>>>;
}
