//! Direct writes: whole blocks are on their devices before the answer, and in memory no more.
//!
//! ```text
//!   file's lock     blocks dirty, attributes, record in the log, which names the blocks (`EarlyBlock`)
//!        │          ── given back ──
//!   transaction     each block ─▶ its device ─▶ dirty record and log have its pointer, and its memory goes
//!        │
//!      answer       the sync of the txg puts the pointers into the tree; a commit needs no data, only a flush
//! ```
//!
//! So direct writes of one file go to the devices side by side. Nothing is flushed for them: after a crash there is what the
//! last txg or commit has left, as of any write.
//!
//! A block that cannot be written now, or is changed meanwhile, stays dirty in memory: the sync sees to it. Parts of blocks
//! are always written so; and so is the only block of a file, while it may grow.

use super::log::Change;
use crate::file_system::node::Node;
use dmu::{EarlyBlock, Tx};
use std::sync::atomic::{AtomicU64, Ordering};
use world::stages::carried;
use world::sync::join_all_bounded;

/// How many blocks of one write are under way at once.
const AT_ONCE: usize = 32;

/// How a write is to be done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writing {
    /// It is durable before the answer, with all that was changed of the file before (`O_DSYNC`, `O_SYNC`).
    pub durably: bool,
    /// The client's file is open with `O_DIRECT`.
    pub is_direct: bool,
}

impl Node {
    /// The blocks that lie within a range which `tx` has just written, if blocks of the file keep their size.
    pub(super) fn whole_dirty_blocks(&self, tx: &Tx, offset: u64, end: u64) -> Vec<(u64, EarlyBlock)> {
        let (object, record) = (self.object(), self.file_system().settings().record_size);
        let attrs = object.attrs();
        let size = u64::from(attrs.block_size);
        if attrs.max_blkid == 0 && size < record {
            return Vec::new();
        }
        let whole = offset.div_ceil(size)..end / size;
        whole.filter_map(|blkid| Some((blkid, object.dirty_block(tx, blkid)?.into()))).collect()
    }

    /// Writes blocks that `tx` has dirtied to their devices. Returns how many bytes of them are there.
    pub(super) async fn write_past_cache(&self, tx: Change, blocks: Vec<(u64, EarlyBlock)>) -> u64 {
        let object = self.object().clone();
        let work = async move {
            let (size, written) = (object.block_size(), AtomicU64::new(0));
            let write = async |(blkid, block): (u64, EarlyBlock)| {
                if object.write_past_cache(&tx, blkid, &block).await {
                    written.fetch_add(size, Ordering::Relaxed);
                }
            };
            join_all_bounded(AT_ONCE, blocks.into_iter().map(write)).await;
            written.into_inner()
        };
        // A task of its own: the request may be given up, and what was allocated must find its way into the dirty record.
        world::spawn(carried(work)).await
    }
}
