//! The spill block: where the bonus area goes on when it is too small.
//!
//! ```text
//!   dnode   header │ root │ bonus ......... │ spill pointer ──▶ one block of 512 bytes to 128 KiB
//! ```
//!
//! It is no part of the object's tree and has a number of its own in bookmarks. As blocks do, it waits in the dirty record
//! of the txg that changed it and is written by that txg's sync; what is in it is the owner's affair (`zpl`'s attributes).

use world::Buf;

/// The number of the spill block in bookmarks (`DMU_SPILL_BLKID`).
pub(crate) const SPILL_BLKID: u64 = u64::MAX - 1;

/// The largest that other implementations read, and the unit of its size.
pub const SPILL_MAX: usize = 128 << 10;
pub const SPILL_UNIT: usize = 512;

/// What a txg does to it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Spill {
    #[default]
    Unchanged,
    Freed,
    Written(Buf),
}
