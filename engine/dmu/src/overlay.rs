//! What one txg changed in one object, until it is synced.
//!
//! Frees come before writes: a block that the txg freed and then wrote is in `blocks`, one that it wrote and then freed
//! is only in `freed`.

use crate::node::Attrs;
use crate::ranges::Ranges;
use crate::spill::Spill;
use ondisk::BlockPointer;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use units::Txg;
use world::Buf;
use zio::BlockStore;

#[derive(Clone, Debug)]
pub(crate) struct Overlay {
    pub txg: Txg,
    pub attrs: Attrs,
    pub bonus: Arc<[u8]>,
    /// Whole level-0 blocks.
    pub blocks: BTreeMap<u64, Buf>,
    /// Where those of `blocks` are that were written before the sync, see [`crate::Object::write_now`].
    pub written: BTreeMap<u64, BlockPointer>,
    pub freed: Ranges,
    /// The object came to be in this txg, so its dnode is written even if it has no block.
    pub created: bool,
    /// The object goes in this txg, with all its blocks.
    pub destroyed: bool,
    pub spill: Spill,
}

pub(crate) enum Found<'a> {
    Data(&'a Buf),
    Hole,
    NotHere,
}

impl Overlay {
    pub fn new(txg: Txg, attrs: Attrs, bonus: Arc<[u8]>) -> Overlay {
        Overlay {
            txg,
            attrs,
            bonus,
            blocks: BTreeMap::new(),
            written: BTreeMap::new(),
            freed: Ranges::default(),
            created: false,
            destroyed: false,
            spill: Spill::Unchanged,
        }
    }

    pub fn find(&self, blkid: u64) -> Found<'_> {
        match self.blocks.get(&blkid) {
            Some(data) => Found::Data(data),
            None if self.freed.contains(blkid) => Found::Hole,
            None => Found::NotHere,
        }
    }

    /// Sets a whole block. Returns by how many bytes more memory waits for the sync than before.
    pub fn put(&mut self, blkid: u64, data: Buf, store: &dyn BlockStore) -> u64 {
        self.disown(blkid, store);
        let len = data.len() as u64;
        let before = self.blocks.insert(blkid, data).map_or(0, |before| before.len() as u64);
        len.saturating_sub(before)
    }

    /// The block to be changed in place, if this txg has written it.
    pub fn block_mut(&mut self, blkid: u64, store: &dyn BlockStore) -> Option<&mut Buf> {
        if self.blocks.contains_key(&blkid) {
            self.disown(blkid, store);
        }
        self.blocks.get_mut(&blkid)
    }

    pub fn free(&mut self, blocks: Range<u64>, store: &dyn BlockStore) {
        let inside: Vec<u64> = self.blocks.range(blocks.clone()).map(|(&b, _)| b).collect();
        for blkid in inside {
            self.disown(blkid, store);
            self.blocks.remove(&blkid);
        }
        self.freed.insert(blocks);
    }

    /// A block that was written already is not what the txg will leave: its space is given back with the same txg.
    fn disown(&mut self, blkid: u64, store: &dyn BlockStore) {
        if let Some(bp) = self.written.remove(&blkid) {
            store.free(&bp, self.txg);
        }
    }
}
