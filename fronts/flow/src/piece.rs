//! What is read, as it lies: buffers that the volume has, and holes.

use std::ops::Range;
use world::Buf;

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

/// A stretch of a volume that is all data or all hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub len: u64,
    pub hole: bool,
}
