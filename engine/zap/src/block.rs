//! What kind of block it is, and the way from a foreign byte order into ours.
//!
//! A ZAP may have been written by a machine of either byte order, and block by block by different ones. Each block
//! but those of the pointer table starts with a word that tells its kind, and by that also its byte order
//! ([`ZapBlock`]).
//!
//! All code behind this module sees little-endian blocks only. A foreign block is turned when it is read, which costs
//! a copy; it is written back in our order when it changes. Entries of pointer tables are turned one by one
//! (`pointer`), because their blocks do not tell.

use crate::le;
use ondisk::zap::ZapBlock;
use units::{Endian, Error, Result};
use world::Buf;

/// Tells the kind of a block and returns it in little-endian order.
pub(crate) fn open(bytes: Buf) -> Result<(ZapBlock, Buf)> {
    if bytes.len() < 512 {
        return Err(Error::corrupt(format!("ZAP block of {} bytes", bytes.len())));
    }
    if let Some(kind) = ZapBlock::of(&bytes, Endian::Little) {
        return Ok((kind, bytes));
    }
    let Some(kind) = ZapBlock::of(&bytes, Endian::Big) else {
        return Err(Error::corrupt(format!("ZAP block of unknown kind {:#x}", le::u64_at(&bytes, 0))));
    };
    let mut turned = bytes.into_mut();
    match kind {
        ZapBlock::Micro => crate::micro::turn(&mut turned),
        ZapBlock::Header => le::swap_each(&mut turned, 8),
        ZapBlock::Leaf => crate::leaf::turn(&mut turned),
    }
    Ok((kind, turned.freeze()))
}

/// A block number out of a pointer table, in whichever order it was written: valid numbers lie in `1..end`, and
/// `end` is below 2^32, so at most one reading is valid.
pub(crate) fn pointer(raw: u64, end: u64) -> Option<u64> {
    [raw, raw.swap_bytes()].into_iter().find(|blkid| (1..end).contains(blkid))
}
