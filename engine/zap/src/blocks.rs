//! What a ZAP needs from the object it lives in.

use std::future::Future;
use std::ops::Range;
use units::Result;
use world::Buf;

/// An array of blocks of one size. `dmu::Object` is the one in production; tests use a vector.
///
/// Blocks come and go as raw bytes in the byte order of their writer; what this crate writes is little-endian.
pub trait Blocks: Send + Sync {
    /// The right to change the store.
    type Tx: Sync;

    /// How errors name the store: "object 36".
    fn name(&self) -> String;

    fn block_size(&self) -> usize;

    /// How many blocks there are, holes among them.
    fn block_count(&self) -> u64;

    /// One whole block; zeros where none was ever written.
    fn read_block(&self, blkid: u64) -> impl Future<Output = Result<Buf>> + Send;

    /// As [`Blocks::read_block`], with the [`Blocks::version`] that the block is of.
    fn read_versioned(&self, blkid: u64) -> impl Future<Output = Result<(Buf, u64)>> + Send;

    /// Counts changes, by any caller: while it is the same, so are all blocks. A change through this trait adds one;
    /// more if what is read after it is not what it wrote.
    fn version(&self) -> u64;

    /// Whether `data`, as it was read, is what was last written to the block and is in memory only.
    fn is_dirty_block(&self, blkid: u64, data: &Buf) -> bool;

    /// Replaces a whole block.
    fn write_block(&self, tx: &Self::Tx, blkid: u64, data: Buf) -> Result<()>;

    /// Replaces part of a block, in place if this is its only holder. What it has been handed out as stays as it was.
    fn patch_block(
        &self,
        tx: &Self::Tx,
        blkid: u64,
        within: usize,
        part: &[u8],
    ) -> impl Future<Output = Result<()>> + Send;

    /// Changes the size of the blocks. Called only while block 0 is the only one, which keeps what fits and has zeros
    /// behind it.
    fn set_block_size(&self, tx: &Self::Tx, size: usize) -> impl Future<Output = Result<()>> + Send;

    /// Makes holes.
    fn free_blocks(&self, tx: &Self::Tx, blocks: Range<u64>) -> Result<()>;
}
