//! Writing a block of a txg before its sync.
//!
//! The intent log may name a block of data instead of repeating the data. For that the block is written at once, where
//! the sync would write it, and the dirty record remembers where:
//!
//! ```text
//!   write(tx) ─▶ dirty record: block ──write_now──▶ dirty record: block, pointer ──sync──▶ the pointer goes into the tree
//!                                                       │
//!                                 written or freed again: the pointer is dropped, its space freed in this txg
//! ```
//!
//! Until the sync nothing but the log names the block, and no dataset is charged for it. What is freed in the txg that it
//! was allocated in stays as it is until that txg is on disk, so that a log which names it is good for as long as it
//! counts.
//!
//! A direct write of a client goes the same way, and its block is in memory no more when it is on its device
//! ([`Object::write_past_cache`]); a reader then has it from there, as one that the sync has written. What a client writes
//! from front to back is written behind it ([`Object::write_behind`]), and stays in memory.
//!
//! ```text
//!   EarlyBlock, shared with the log's record:   Data ──written──▶ Written
//! ```
//!
//! The holder of a [`Tx`] of the block's txg keeps the sync away meanwhile.

use crate::attrs::Attrs;
use crate::dirty_record::DirtyRecord;
use crate::lock::lock;
use crate::object::Object;
use ondisk::BlockPointer;
use std::sync::{Arc, Mutex};
use txg::Tx;
use units::Result;
use world::Buf;
use zio::WriteSpec;

/// A block that may be written before its sync. Clones are the same block.
#[derive(Clone, Debug)]
pub struct EarlyBlock(Arc<Mutex<Early>>);

/// What there is of it now.
#[derive(Clone, Debug)]
pub enum Early {
    Data(Buf),
    Written(BlockPointer),
}

/// How a block is written.
#[derive(Clone, Copy)]
struct How {
    /// In memory, until the sync and then in the cache.
    stays: bool,
    is_waited_for: bool,
    /// Tells the dirty record.
    settle: fn(&mut DirtyRecord, u64, BlockPointer),
}

impl How {
    const LOGGED: How = How { stays: true, is_waited_for: true, settle: DirtyRecord::note_written };
    const PAST_CACHE: How = How { stays: false, is_waited_for: true, settle: DirtyRecord::place };
    const BEHIND: How = How { stays: true, is_waited_for: false, settle: DirtyRecord::note_written };
}

impl EarlyBlock {
    pub fn now(&self) -> Early {
        lock(&self.0).clone()
    }

    fn is_written(&self, bp: BlockPointer) {
        *lock(&self.0) = Early::Written(bp);
    }
}

impl From<Buf> for EarlyBlock {
    fn from(data: Buf) -> EarlyBlock {
        EarlyBlock(Arc::new(Mutex::new(Early::Data(data))))
    }
}

impl Object {
    /// The buffer that holds block `blkid` as `tx`'s txg has written it.
    pub fn dirty_block(&self, tx: &Tx, blkid: u64) -> Option<Buf> {
        let state = self.node.lock();
        state.dirty_record(tx.txg())?.data(blkid).cloned()
    }

    /// Writes a block that `tx`'s txg has dirtied, now, and returns its pointer: a hole for zeros. `None` when the block
    /// is not `data` any more (the very buffer, from [`Object::dirty_block`]), because it was changed since.
    pub async fn write_now(&self, tx: &Tx, blkid: u64, data: &Buf) -> Result<Option<BlockPointer>> {
        let attrs = match self.look(tx, blkid, data) {
            Look::Changed => return Ok(None),
            Look::Written(bp) => return Ok(Some(bp)),
            Look::Dirty(attrs) => attrs,
        };
        let bp = self.write_dirty(tx, blkid, data, attrs, How::LOGGED).await?;
        Ok(self.settle(tx, blkid, data, &bp, How::LOGGED.settle))
    }

    /// Writes a block that `tx`'s txg has dirtied, now, and takes it out of memory: `early` is its pointer from then on.
    /// When it cannot be written, or was changed since, it stays what it is. Answers whether it is on its device.
    ///
    /// Once begun it must come to its end: space is allocated by then.
    pub async fn write_past_cache(&self, tx: &Tx, blkid: u64, early: &EarlyBlock) -> bool {
        self.write_early(tx, blkid, early, How::PAST_CACHE).await
    }

    /// As [`Object::write_past_cache`], for a block that no client waits for, and that stays in memory.
    pub async fn write_behind(&self, tx: &Tx, blkid: u64, early: &EarlyBlock) -> bool {
        self.write_early(tx, blkid, early, How::BEHIND).await
    }

    /// As [`zio::BlockStore::hasten`].
    pub fn hasten(&self) {
        self.node.shared.store.hasten();
    }

    async fn write_early(&self, tx: &Tx, blkid: u64, early: &EarlyBlock, how: How) -> bool {
        let Early::Data(data) = early.now() else { return true };
        let attrs = match self.look(tx, blkid, &data) {
            Look::Changed => return false,
            // By a commit of the log, which was faster. It stays in memory, too.
            Look::Written(_) => return true,
            Look::Dirty(attrs) => attrs,
        };
        let Ok(bp) = self.write_dirty(tx, blkid, &data, attrs, how).await else { return false };
        let kept = self.settle(tx, blkid, &data, &bp, how.settle);
        let is_there = kept.is_some();
        // The log may name it even if it was changed since: what a txg frees of its own stays as it is until it is synced.
        early.is_written(kept.unwrap_or(bp));
        is_there
    }

    async fn write_dirty(
        &self,
        tx: &Tx,
        blkid: u64,
        data: &Buf,
        attrs: Attrs,
        how: How,
    ) -> Result<BlockPointer> {
        let (node, Attrs { kind, checksum, compression, .. }) = (&self.node, attrs);
        let choice = node.shared.policy().choose(kind, 0, checksum, compression);
        let spec = node.shared.spec(node.id, choice, kind, 0, blkid, tx.txg(), 1);
        let spec = WriteSpec { urgent: how.is_waited_for, keep: spec.keep && how.stays, ..spec };
        node.shared.store.write(data.clone(), &BlockPointer::HOLE, spec).await
    }

    /// A block was written to `bp`, and `settle` says so to the dirty record, if the block is still `data`. If it was
    /// written elsewhere meanwhile, it is there; the one that is not needed is freed. Answers where the block is, `None` if
    /// it was changed.
    fn settle(
        &self,
        tx: &Tx,
        blkid: u64,
        data: &Buf,
        bp: &BlockPointer,
        settle: impl FnOnce(&mut DirtyRecord, u64, BlockPointer),
    ) -> Option<BlockPointer> {
        let kept = {
            let mut state = self.node.lock();
            let dirty_record = state.existing_dirty_record_mut(tx.txg());
            dirty_record.filter(|record| is_still(record.data(blkid), data)).map(|record| {
                let kept = record.written.get(&blkid).unwrap_or(bp).clone();
                settle(record, blkid, kept.clone());
                kept
            })
        };
        if kept.as_ref() != Some(bp) {
            self.node.shared.store.free(bp, tx.txg());
        }
        kept
    }

    fn look(&self, tx: &Tx, blkid: u64, data: &Buf) -> Look {
        let state = self.node.lock();
        match state.dirty_record(tx.txg()).filter(|o| is_still(o.data(blkid), data)) {
            None => Look::Changed,
            Some(dirty_record) => match dirty_record.written.get(&blkid) {
                Some(bp) => Look::Written(bp.clone()),
                None => Look::Dirty(dirty_record.attrs.clone()),
            },
        }
    }
}

enum Look {
    Changed,
    Written(BlockPointer),
    Dirty(Attrs),
}

/// The same memory: while we hold it, it cannot have been changed.
fn is_still(block: Option<&Buf>, data: &Buf) -> bool {
    block.is_some_and(|b| b.as_ptr() == data.as_ptr() && b.len() == data.len())
}
