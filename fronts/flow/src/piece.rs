//! What is read, as it lies: buffers that the volume has, and holes.

use std::fmt;
use std::ops::Range;
use units::Result;
use world::{Buf, Pending};

/// A part of what a read returns.
#[derive(Clone, Debug)]
pub enum Piece {
    Data(Buf),
    /// So many zeros that are stored nowhere.
    Hole(u32),
}

impl Piece {
    pub fn len(&self) -> usize {
        match self {
            Piece::Data(buf) => buf.len(),
            Piece::Hole(len) => *len as usize,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of it.
    ///
    /// # Panics
    /// When the range does not lie within the piece.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Piece {
        match self {
            Piece::Data(buf) => Piece::Data(buf.slice(range)),
            Piece::Hole(len) => {
                assert!(range.end <= *len as usize, "a slice lies within its piece");
                Piece::Hole(range.len() as u32)
            }
        }
    }
}

/// A read that has begun.
pub enum Reading {
    /// It took no waiting, and its pieces were appended where the reader said.
    Done(Result<()>),
    /// The pieces of the range, in order and without gaps.
    Waits(Pending<Result<Vec<Piece>>>),
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reading::Done(Ok(())) => "Done",
            Reading::Done(Err(_)) => "Failed",
            Reading::Waits(_) => "Waits",
        })
    }
}

/// A stretch of a volume that is all data or all hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub len: u64,
    pub hole: bool,
}
