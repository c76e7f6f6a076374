//! Where the sectors of a block lie on the children of a RAIDZ vdev. Pure arithmetic, and part of the format.
//!
//! The vdev's address space is laid across the children row by row, one sector each. A block begins at any sector
//! and takes as many as it needs: for each row of data its own parity, all parity columns first.
//!
//! ```text
//!   4 children, 1 parity, 5 sectors of data, beginning at sector 5 of the vdev
//!
//!          c0  c1  c2  c3
//!   row 0   .   .   .   .         columns  child  first sector  data
//!   row 1   .   P0  D0  D2          0  P     1        1         P0 P1
//!   row 2  D4   P1  D1  D3 ...      1        2        1         D0 D1
//!   row 3   X   .   .   .           2        3        1         D2 D3
//!                                   3        0        2         D4
//! ```
//!
//! Data runs *down* the columns, so each child serves one contiguous read. The first `remainder` data columns are one
//! sector longer than the others. The total is rounded up to a multiple of parity + 1 (X is the skip sector), so that
//! no hole is left that is too small for the smallest block.
//!
//! One oddity is format for ever: with single parity the first two columns change places in every second MiB of the
//! vdev. It was meant to spread parity over the children.
//!
//! Invariants: each child appears at most once in a map; the data columns, one after the other, are the block.

use crate::node::ChildRange;
use std::ops::Range;
use units::{Error, Result};

/// What a RAIDZ vdev is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    children: u32,
    parity: u32,
    ashift: u32,
}

/// A run of sectors on one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub child: usize,
    /// In bytes, from where the child's data starts.
    pub offset: u64,
    /// Which bytes of the block it holds; of a parity column only the length means something.
    pub bytes: Range<usize>,
}

impl Column {
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// All columns of one block: `parity` parity columns, then the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    pub columns: Vec<Column>,
    pub parity: usize,
}

impl Map {
    pub fn data(&self) -> &[Column] {
        &self.columns[self.parity..]
    }
}

impl Shape {
    pub fn new(children: usize, parity: u64, ashift: u32) -> Result<Shape> {
        if !(1..=3).contains(&parity) {
            return Err(Error::corrupt(format!("raidz with parity {parity}")));
        }
        if children as u64 <= parity || children > 255 {
            return Err(Error::corrupt(format!("raidz{parity} with {children} children")));
        }
        Ok(Shape { children: children as u32, parity: parity as u32, ashift })
    }

    pub fn parity(&self) -> usize {
        self.parity as usize
    }

    /// The space that a block of `psize` bytes takes.
    pub fn asize(&self, psize: u64) -> u64 {
        let (children, parity) = (u64::from(self.children), u64::from(self.parity));
        let data = psize.div_ceil(1 << self.ashift);
        let total = data + parity * data.div_ceil(children - parity);
        total.next_multiple_of(parity + 1) << self.ashift
    }

    /// What a range of the vdev, such as one that became free, is on each child.
    pub fn ranges(&self, offset: u64, asize: u64) -> Vec<ChildRange> {
        let children = u64::from(self.children);
        let (first, end) = (offset >> self.ashift, (offset + asize) >> self.ashift);
        // The number of this child's sectors that lie before sector `b` of the vdev.
        let rows_before = |b: u64, child: u64| (b + children - 1 - child) / children;
        let range = |child| {
            let (from, to) = (rows_before(first, child), rows_before(end, child));
            ChildRange { child: child as usize, offset: from << self.ashift, len: (to - from) << self.ashift }
        };
        (0..children).map(range).filter(|r| r.len > 0).collect()
    }

    /// The columns of the block of `psize` bytes at `offset`; both are multiples of the sector size.
    ///
    /// # Panics
    /// When they are not, or the block is empty: callers round to sectors first.
    pub fn map(&self, offset: u64, psize: usize) -> Map {
        let sector = 1u64 << self.ashift;
        assert!(psize > 0 && offset.is_multiple_of(sector) && (psize as u64).is_multiple_of(sector));
        let (children, parity) = (u64::from(self.children), u64::from(self.parity));
        let first = offset >> self.ashift;
        let sectors = psize as u64 >> self.ashift;
        let full_rows = sectors / (children - parity);
        let remainder = sectors % (children - parity);
        let longer = if remainder == 0 { 0 } else { remainder + parity };
        let count = if full_rows == 0 { longer } else { children };

        let mut at = 0;
        let mut columns: Vec<Column> = (0..count)
            .map(|c| {
                let (row, child) = ((first + c) / children, (first + c) % children);
                let len = ((full_rows + u64::from(c < longer)) << self.ashift) as usize;
                let bytes = if c < parity { 0..len } else { at..at + len };
                at = if c < parity { 0 } else { at + len };
                Column { child: child as usize, offset: row << self.ashift, bytes }
            })
            .collect();
        if parity == 1 && offset & (1 << 20) != 0 {
            swap_places(&mut columns);
        }
        Map { columns, parity: self.parity() }
    }
}

/// The first two columns change places on the children but keep their roles. They are equally long: a parity column
/// is as long as the longest data column, which comes right after it.
fn swap_places(columns: &mut [Column]) {
    let (parity, data) = columns.split_at_mut(1);
    let (parity, data) = (&mut parity[0], &mut data[0]);
    std::mem::swap(&mut parity.child, &mut data.child);
    std::mem::swap(&mut parity.offset, &mut data.offset);
}

#[cfg(test)]
mod tests;
