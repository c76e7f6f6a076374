//! What kind of block it is, and the way from a foreign byte order into ours.
//!
//! A ZAP may have been written by a machine of either byte order, and block by block by different ones. Each block
//! but those of the pointer table starts with a word that tells its kind, and by that also its byte order:
//!
//! ```text
//!   1 << 63 | 0   leaf of a fat ZAP
//!   1 << 63 | 1   header of a fat ZAP
//!   1 << 63 | 3   micro ZAP
//! ```
//!
//! All code behind this module sees little-endian blocks only. A foreign block is turned when it is read, which costs
//! a copy; it is written back in our order when it changes. Entries of pointer tables are turned one by one
//! ([`pointer`]), because their blocks do not tell.

use crate::le;
use units::{Error, Result};
use world::Buf;

pub(crate) const LEAF: u64 = 1 << 63;
pub(crate) const HEADER: u64 = (1 << 63) + 1;
pub(crate) const MICRO: u64 = (1 << 63) + 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Micro,
    Header,
    Leaf,
}

/// Tells the kind of a block and returns it in little-endian order.
pub(crate) fn open(bytes: Buf) -> Result<(BlockKind, Buf)> {
    if bytes.len() < 512 {
        return Err(Error::corrupt(format!("ZAP block of {} bytes", bytes.len())));
    }
    let word = le::u64_at(&bytes, 0);
    if let Some(kind) = kind_of(word) {
        return Ok((kind, bytes));
    }
    let Some(kind) = kind_of(word.swap_bytes()) else {
        return Err(Error::corrupt(format!("ZAP block of unknown kind {word:#x}")));
    };
    let mut turned = bytes.into_mut();
    match kind {
        BlockKind::Micro => crate::micro::turn(&mut turned),
        BlockKind::Header => le::swap_each(&mut turned, 8),
        BlockKind::Leaf => crate::leaf::turn(&mut turned),
    }
    Ok((kind, turned.freeze()))
}

fn kind_of(word: u64) -> Option<BlockKind> {
    match word {
        MICRO => Some(BlockKind::Micro),
        HEADER => Some(BlockKind::Header),
        LEAF => Some(BlockKind::Leaf),
        _ => None,
    }
}

/// A block number out of a pointer table, in whichever order it was written: valid numbers lie in `1..end`, and
/// `end` is below 2^32, so at most one reading is valid.
pub(crate) fn pointer(raw: u64, end: u64) -> Option<u64> {
    [raw, raw.swap_bytes()].into_iter().find(|blkid| (1..end).contains(blkid))
}
