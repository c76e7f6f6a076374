//! What one txg changed in one object, until it is synced.
//!
//! Frees come before writes: a block that the txg freed and then wrote is in `blocks`, one that it wrote and then freed
//! is only in `freed`.

use crate::node::Attrs;
use crate::ranges::Ranges;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use units::Txg;
use world::Buf;

#[derive(Clone, Debug)]
pub(crate) struct Overlay {
    pub txg: Txg,
    pub attrs: Attrs,
    pub bonus: Arc<[u8]>,
    /// Whole level-0 blocks.
    pub blocks: BTreeMap<u64, Buf>,
    pub freed: Ranges,
    /// The object came to be in this txg, so its dnode is written even if it has no block.
    pub created: bool,
    /// The object goes in this txg, with all its blocks.
    pub destroyed: bool,
    /// Forget the spill block.
    pub spill_freed: bool,
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
            freed: Ranges::default(),
            created: false,
            destroyed: false,
            spill_freed: false,
        }
    }

    pub fn find(&self, blkid: u64) -> Found<'_> {
        match self.blocks.get(&blkid) {
            Some(data) => Found::Data(data),
            None if self.freed.contains(blkid) => Found::Hole,
            None => Found::NotHere,
        }
    }

    pub fn free(&mut self, blocks: Range<u64>) {
        let inside: Vec<u64> = self.blocks.range(blocks.clone()).map(|(&b, _)| b).collect();
        for blkid in inside {
            self.blocks.remove(&blkid);
        }
        self.freed.insert(blocks);
    }
}
