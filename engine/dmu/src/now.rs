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
//! The holder of a [`Tx`] of the block's txg keeps the sync away meanwhile.

use crate::attrs::Attrs;
use crate::object::Object;
use ondisk::BlockPointer;
use txg::Tx;
use units::Result;
use world::Buf;

impl Object {
    /// The buffer that holds block `blkid` as `tx`'s txg has written it.
    pub fn dirty_block(&self, tx: &Tx, blkid: u64) -> Option<Buf> {
        let state = self.node.lock();
        state.dirty_record(tx.txg())?.blocks.get(&blkid).cloned()
    }

    /// Writes a block that `tx`'s txg has dirtied, now, and returns its pointer: a hole for zeros. `None` when the block
    /// is not `data` any more (the very buffer, from [`Object::dirty_block`]), because it was changed since.
    pub async fn write_now(&self, tx: &Tx, blkid: u64, data: &Buf) -> Result<Option<BlockPointer>> {
        let node = &self.node;
        let attrs = match self.look(tx, blkid, data) {
            Look::Changed => return Ok(None),
            Look::Written(bp) => return Ok(Some(bp)),
            Look::Dirty(attrs) => attrs,
        };
        let Attrs { kind, checksum, compression, .. } = attrs;
        let choice = node.shared.policy().choose(kind, 0, checksum, compression);
        let mut spec = node.shared.spec(node.id, choice, kind, 0, blkid, tx.txg(), 1);
        spec.urgent = true;
        let bp = node.shared.store.write(data.clone(), &BlockPointer::HOLE, spec).await?;
        let kept = {
            let mut state = node.lock();
            let dirty_record = state.existing_dirty_record_mut(tx.txg());
            // Two logs of one object do not exist; two commits of one log take turns. So nothing else has written it.
            match dirty_record.filter(|o| is_still(o.blocks.get(&blkid), data)) {
                Some(dirty_record) => {
                    dirty_record.written.insert(blkid, bp.clone());
                    true
                }
                None => false,
            }
        };
        if !kept {
            node.shared.store.free(&bp, tx.txg());
        }
        Ok(kept.then_some(bp))
    }

    fn look(&self, tx: &Tx, blkid: u64, data: &Buf) -> Look {
        let state = self.node.lock();
        match state.dirty_record(tx.txg()).filter(|o| is_still(o.blocks.get(&blkid), data)) {
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
