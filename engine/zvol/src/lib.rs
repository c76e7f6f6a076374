//! A dataset seen as a disk.
//!
//! A volume's object set holds two objects: 1 is the data, in blocks of `volblocksize`; 2 is a ZAP with one entry,
//! `size`, in bytes. Blocks never written, trimmed or written as zeros are holes.
//!
//! ```text
//!   pieces(offset, len)  whole blocks from the overlays or the cache, cut to size: no copy; holes as lengths
//!   write(offset, parts) begin a transaction (the throttle waits here) ─▶ lock the blocks ─▶ dirty them
//!   flush, FUA           commit the intent log; without one, wait until the last txg that was written to is on disk
//! ```
//!
//! Writers of one block take turns ([`world::sync::RangeLocks`]), because a block written in part is read, changed and put
//! back. Readers take no lock: blocks are replaced whole.
//!
//! What is written arrives in parts, cut by the front where blocks begin: a part that is exactly one block is kept as it
//! is, from the socket to the disk and in the cache. Others are copied block by block, so that one block that stays in
//! the cache does not keep the memory of a whole large request alive.
//!
//! Each change is logged in the transaction that makes it, while it holds its blocks: so records of one block are in the
//! order in which they were made. With `sync=always` each is committed before it is acknowledged.
//!
//! Not here: how the log is written and read (`zil`).

mod create;
mod replay;
mod volume;

pub use create::{check, create};
pub use replay::Replay;
pub use volume::{Begun, Extent, Piece, Volume, Waiting};

/// The object that holds the data.
pub const DATA: units::ObjectId = units::ObjectId(1);
/// The ZAP that holds the size.
pub const PROPERTIES: units::ObjectId = units::ObjectId(2);
/// The entry of [`PROPERTIES`] that is the size in bytes.
pub const SIZE: &str = "size";

#[cfg(test)]
mod tests;
