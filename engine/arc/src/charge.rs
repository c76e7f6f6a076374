//! What of the memory a block is charged.

use crate::block::Origin;
use world::Buf;

/// What is charged for a block beyond its bytes: its entry and its place in the map.
pub(crate) const OVERHEAD: u64 = 160;
const PAGE: u64 = 4096;

/// The memory a buffer of that length really takes, with what we need to remember it. Buffers are made of whole pages.
pub(crate) fn charge_of(len: usize) -> u64 {
    (len as u64).next_multiple_of(PAGE) + OVERHEAD
}

/// The same with what is kept for a second level.
pub(crate) fn charge_with(buf: &Buf, origin: Option<&Origin>) -> u64 {
    charge_of(buf.len()) + origin.map_or(0, |_| size_of::<Origin>() as u64)
}
