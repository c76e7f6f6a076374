//! What one txg changed in one object, until it is synced.
//!
//! Frees come before writes: a block that the txg freed and then wrote is in `blocks`, one that it wrote and then freed
//! is only in `freed`.
//!
//! ```text
//!                  put           landed, in the sync
//!   not here ───────────▶ blocks ────────────────────▶ written          the data are in memory, then on the devices
//!                          │  ▲
//!              write_now   ▼  │ changed again
//!                    blocks, written                                    in both: early, for the intent log
//!                          or, by write_past_cache, `Block::Placed` in place of the data: they are in memory no more
//! ```
//!
//! From [`DirtyRecord::begin_sync`] on nothing changes but that blocks land, each when it is on its device: then its memory
//! is the cache's, which may drop it, and writers that wait for memory go on before the txg is at its end.

use crate::attrs::Attrs;
use crate::ranges::Ranges;
use crate::spill::Spill;
use ondisk::BlockPointer;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use txg::Tx;
use units::Txg;
use world::Buf;
use zio::BlockStore;

#[derive(Debug)]
pub(crate) struct DirtyRecord {
    pub txg: Txg,
    pub attrs: Attrs,
    pub bonus: Arc<[u8]>,
    /// Whole level-0 blocks that the sync has yet to put into the tree.
    pub blocks: BTreeMap<u64, Block>,
    /// Where blocks are that were written: by [`crate::Object::write_now`], [`crate::Object::write_past_cache`] or the sync.
    pub written: BTreeMap<u64, BlockPointer>,
    /// Bytes of this dirty record that [`txg::Tx::dirtied`] has counted.
    pub counted: u64,
    /// The sync has begun.
    pub syncing: bool,
    pub freed: Ranges,
    /// The object came to be in this txg, so its dnode is written even if it has no block.
    pub created: bool,
    /// The object goes in this txg, with all its blocks.
    pub destroyed: bool,
    pub spill: Spill,
}

#[derive(Debug)]
pub(crate) enum Block {
    /// In memory; if it was written before the sync, on its device besides.
    Data(Buf),
    /// On its device alone, where `written` says. So many bytes of it stay counted as dirty: they are what the dataset is
    /// charged by, and what the sync says that it has done.
    Placed(u64),
}

impl Block {
    pub fn data(&self) -> Option<&Buf> {
        match self {
            Block::Data(data) => Some(data),
            Block::Placed(_) => None,
        }
    }

    fn len(&self) -> u64 {
        match self {
            Block::Data(data) => data.len() as u64,
            Block::Placed(len) => *len,
        }
    }
}

pub(crate) enum Found<'a> {
    Data(&'a Buf),
    /// Or a hole.
    Written(&'a BlockPointer),
    Hole,
    NotHere,
}

/// What of a dirty record stays as it is while it is synced: all but the blocks.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub txg: Txg,
    pub attrs: Attrs,
    pub bonus: Arc<[u8]>,
    pub freed: Ranges,
    pub created: bool,
    pub destroyed: bool,
    pub spill: Spill,
}

impl DirtyRecord {
    /// What is counted as dirty for the object itself.
    pub const OWN_BYTES: u64 = 1024;

    pub fn new(txg: Txg, attrs: Attrs, bonus: Arc<[u8]>) -> DirtyRecord {
        DirtyRecord {
            txg,
            attrs,
            bonus,
            blocks: BTreeMap::new(),
            written: BTreeMap::new(),
            counted: 0,
            syncing: false,
            freed: Ranges::default(),
            created: false,
            destroyed: false,
            spill: Spill::Unchanged,
        }
    }

    pub fn find(&self, blkid: u64) -> Found<'_> {
        if let Some(data) = self.data(blkid) {
            return Found::Data(data);
        }
        if let Some(bp) = self.written.get(&blkid) {
            return Found::Written(bp);
        }
        if self.freed.contains(blkid) { Found::Hole } else { Found::NotHere }
    }

    /// The block, if it is in memory.
    pub fn data(&self, blkid: u64) -> Option<&Buf> {
        self.blocks.get(&blkid).and_then(Block::data)
    }

    /// The first block from `from` on that the txg has written.
    pub fn next_written(&self, from: u64) -> Option<u64> {
        let in_memory = self.blocks.range(from..).next().map(|(&blkid, _)| blkid);
        let on_devices = self.written.range(from..).next().map(|(&blkid, _)| blkid);
        in_memory.into_iter().chain(on_devices).min()
    }

    /// From now on blocks land, and nothing else changes.
    pub fn begin_sync(&mut self) -> Frozen {
        self.syncing = true;
        Frozen {
            txg: self.txg,
            attrs: self.attrs.clone(),
            bonus: self.bonus.clone(),
            freed: self.freed.clone(),
            created: self.created,
            destroyed: self.destroyed,
            spill: self.spill.clone(),
        }
    }

    /// The level-1 blocks above what the txg has written.
    pub fn groups(&self) -> BTreeSet<u64> {
        let shift = self.attrs.fan_out_shift();
        let mut groups = BTreeSet::new();
        let mut from = Some(0);
        while let Some(blkid) = from.and_then(|from| self.next_written(from)) {
            let group = blkid >> shift;
            groups.insert(group);
            from = (group + 1).checked_mul(1 << shift);
        }
        groups
    }

    /// A block that the sync has written is on its device. Returns how many bytes less wait in memory, of those counted.
    pub fn landed(&mut self, blkid: u64, bp: BlockPointer) -> u64 {
        let bytes = self.blocks.remove(&blkid).map_or(0, |block| block.len()).min(self.counted);
        self.counted -= bytes;
        self.written.insert(blkid, bp);
        bytes
    }

    /// A block is on its device before the sync, and stays in memory.
    pub fn note_written(&mut self, blkid: u64, bp: BlockPointer) {
        self.written.insert(blkid, bp);
    }

    /// A block that is in memory is on its device before the sync, and goes from memory.
    pub fn place(&mut self, blkid: u64, bp: BlockPointer) {
        if let Some(block) = self.blocks.get_mut(&blkid) {
            *block = Block::Placed(block.len());
            self.written.insert(blkid, bp);
        }
    }

    /// Sets a whole block. Returns by how many bytes more memory waits for the sync than before; see [`DirtyRecord::count`].
    pub fn put(&mut self, blkid: u64, data: Buf, store: &dyn BlockStore) -> u64 {
        self.disown(blkid, store);
        let len = data.len() as u64;
        let before = self.blocks.insert(blkid, Block::Data(data)).map_or(0, |before| before.len());
        len.saturating_sub(before)
    }

    /// Remembers what `tx` is about to count as dirty.
    pub fn count(&mut self, tx: &Tx, bytes: u64) {
        if !tx.is_syncing() {
            self.counted += bytes;
        }
    }

    /// The block to be changed in place, if this txg has written it and it is in memory.
    pub fn block_mut(&mut self, blkid: u64, store: &dyn BlockStore) -> Option<&mut Buf> {
        let Some(Block::Data(data)) = self.blocks.get_mut(&blkid) else { return None };
        if let Some(bp) = self.written.remove(&blkid) {
            store.free(&bp, self.txg);
        }
        Some(data)
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
