//! What this front needs from the owner of the disks.
//!
//! Offsets and lengths are bytes, already checked against the size the volume had when the request arrived. They need
//! not be multiples of anything: a volume that can only write whole blocks reads and merges on its own.

use flow::{Extent, Piece, Reading};
use std::fmt::Debug;
use std::sync::Arc;
use units::{Error, Result};
use world::{Address, Buf, Pending};

/// A disk to serve. Shared by all the connections to it, on all cores.
///
/// Each operation is started by the call or by the first poll of its future, as suits the volume; a future that is
/// ready at its first poll costs no task. Writes that completed before a flush was asked for are covered by it,
/// whichever connection they came from.
pub trait Volume: Send + Sync + Debug {
    /// In bytes. It may grow while clients are connected; they learn it when they connect again.
    fn size(&self) -> u64;

    /// The size at which aligned requests cost least: volblocksize. A power of two.
    fn block_size(&self) -> u32;

    fn read_only(&self) -> bool;

    /// The dataset that it is, for statistics; empty when it is none.
    fn dataset(&self) -> &str {
        ""
    }

    fn rotational(&self) -> bool {
        false
    }

    /// Its pool is suspended, and what comes waits for it until an administrator acts, rather than fail.
    fn is_suspended(&self) -> bool {
        false
    }

    /// For people, in one line.
    fn description(&self) -> String {
        String::new()
    }

    /// As [`Volume::read`]; appends the pieces to `pieces` when that takes no waiting (the blocks are cached, or holes),
    /// else leaves it as it was.
    fn begin_read(&self, offset: u64, len: u32, pieces: &mut Vec<Piece>) -> Reading {
        let _ = pieces;
        Reading::Waits(self.read(offset, len))
    }

    /// The pieces of a range, in order and without gaps.
    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Piece>>>;

    /// Writes `parts` one behind the other. They are cut where blocks begin (unless blocks are very small), each is a
    /// buffer of its own that begins at a page boundary, and nothing else holds it: the volume may keep whole blocks as
    /// they are.
    fn write(&self, offset: u64, parts: Vec<Buf>, fua: bool) -> Pending<Result<()>>;

    /// Makes a range read as zeros. Unless `may_be_hole`, later writes there must not run out of space.
    fn zero(&self, offset: u64, len: u32, may_be_hole: bool, fua: bool) -> Pending<Result<()>>;

    /// Zeroing costs less than writing zeros would. Else a client that only wants it fast is refused.
    fn zeroes_fast(&self, may_be_hole: bool) -> bool {
        may_be_hole
    }

    /// A range is no longer needed; what it reads as afterwards is up to the volume.
    fn trim(&self, offset: u64, len: u32, fua: bool) -> Pending<Result<()>>;

    /// Makes every write that completed before this call durable.
    fn flush(&self) -> Pending<Result<()>>;

    /// A range will be wanted soon.
    fn prefetch(&self, offset: u64, len: u32) {
        let _ = (offset, len);
    }

    /// What is allocated from `offset` on: at least one extent, at most `max`, and not necessarily up to `len`.
    fn extents(&self, offset: u64, len: u32, max: usize) -> Pending<Result<Vec<Extent>>>;
}

/// Keeps an opened volume from being destroyed; dropped when its client has gone and the last request is done.
pub type Hold = Box<dyn Send + Sync>;

/// An export as `nbdinfo --list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub description: String,
}

/// The disks there are, by name.
pub trait Exports: Send + Sync + Debug {
    fn list(&self) -> Pending<Result<Vec<Listed>>>;

    /// Looks at a volume without keeping it: a client asks what it would get.
    fn find(&self, name: &str) -> Pending<Result<Arc<dyn Volume>>>;

    /// `client` begins to use the volume, which is busy until the hold is dropped.
    fn open(&self, name: &str, client: &Address) -> Pending<Result<(Arc<dyn Volume>, Hold)>>;

    /// TLS could not be made with `client`, which comes no further: for a log.
    fn refused(&self, client: &Address, why: &Error) {
        let _ = (client, why);
    }
}
