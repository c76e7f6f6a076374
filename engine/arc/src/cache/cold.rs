//! What of the cold part is done without a lock: compressing what would leave, and decompressing what is asked for.

use super::Cache;
use crate::block::{Access, BlockId};
use crate::cold::Settled;
use crate::packed::Packed;
use crate::shard::Leavers;
use std::sync::atomic::Ordering;
use world::Buf;

impl Cache {
    /// Has blocks that would leave kept compressed where that gains, in up to so many percent of the limit, from now on. 0:
    /// none are, and those that are leave.
    pub fn set_cold(&self, percent: u64) {
        if self.cold_percent.swap(percent, Ordering::Relaxed) != percent {
            self.change_all(|shard, leavers| shard.set_cold(percent, leavers));
        }
    }

    /// Compresses what is on its way to the cold part, and what leaves for that in turn: each time less, as what is
    /// compressed takes less.
    pub(super) fn cool(&self, leavers: &mut Leavers) {
        self.is_warm.store(true, Ordering::Relaxed);
        while let Some(it) = leavers.cooling.pop() {
            let packed = Packed::of(&it.buf);
            let gains = packed.is_some();
            let settled = {
                let mut shard = self.shard(&it.block);
                shard.note_gain(gains);
                shard.cooled(&it, packed, leavers)
            };
            if settled == Settled::Left {
                leavers.evicted.push((it.block, it.kind, it.buf));
            }
        }
    }

    /// A miss among the blocks that are not compressed.
    pub(super) fn get_cold(&self, block: &BlockId, access: Access) -> Option<Buf> {
        let packed = self.packed(block)?;
        self.warm(block, &packed, access)
    }

    /// The bytes of a block that was found compressed, which is a use of it; `None` when it has left meanwhile.
    pub(super) fn warm(&self, block: &BlockId, packed: &Packed, access: Access) -> Option<Buf> {
        let Some(buf) = packed.unpack() else {
            // Memory that has changed by itself: the pool has the block.
            self.evict(block);
            return None;
        };
        let mut found = None;
        self.change(block, |shard, leavers| found = shard.warm(block, packed, buf, access, leavers));
        let (buf, kind) = found?;
        self.tell_access(kind, access, true);
        Some(buf)
    }

    pub(super) fn take_cold(&self, block: &BlockId) -> Option<Buf> {
        if self.cold_percent.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (packed, kind) = self.shard(block).take_packed(block)?;
        let buf = packed.unpack()?;
        self.tell_access(kind, Access::Demand, true);
        Some(buf)
    }

    pub(super) fn peek_cold(&self, block: &BlockId) -> Option<Buf> {
        self.packed(block)?.unpack()
    }

    fn packed(&self, block: &BlockId) -> Option<Packed> {
        if self.cold_percent.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.shard(block).packed(block)
    }
}

#[cfg(test)]
impl Cache {
    pub(crate) fn is_cold(&self, block: &BlockId) -> bool {
        self.packed(block).is_some()
    }

    /// Walks all of every shard.
    pub(crate) fn check(&self) {
        self.shards.iter().for_each(|shard| crate::shard::tests::check(&super::lock(shard)));
    }
}
