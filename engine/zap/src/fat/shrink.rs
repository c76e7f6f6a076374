//! Giving empty leaves back.
//!
//! Two leaves are siblings when their prefixes differ in the last bit only. When both are empty, the one whose bit is
//! 0 takes over for both and the other is freed; then it may have an empty sibling itself, and so on. Where only one
//! of them is empty nothing happens, as nothing would be won but work. The pointer table never shrinks.

use super::Edit;
use super::read::read_leaf;
use crate::blocks::Blocks;
use crate::leaf::prefix_of;
use units::Result;

impl<S: Blocks> Edit<'_, S> {
    /// Joins the empty leaf that `hash` leads to with its sibling for as long as that is empty too.
    pub(super) async fn shrink(&mut self, hash: u64) -> Result<()> {
        let mut freed_last = false;
        loop {
            let blkid = self.leaf_of(hash).await?;
            let len = self.leaf_mut(blkid).prefix_len();
            if len == 0 {
                break;
            }
            let sibling_hash = (prefix_of(hash, len) ^ 1) << (64 - len);
            if !self.is_empty_sibling(sibling_hash, len).await? {
                break;
            }
            let sibling = self.leaf_of(sibling_hash).await?;
            let own_is_low = prefix_of(hash, len) & 1 == 0;
            let (keep, drop) = if own_is_low { (blkid, sibling) } else { (sibling, blkid) };
            self.join(keep, drop, prefix_of(hash, len) | 1, len).await?;
            freed_last |= drop + 1 == self.header.free_block;
        }
        if freed_last { self.lower_free_block().await } else { Ok(()) }
    }

    async fn is_empty_sibling(&mut self, hash: u64, len: u32) -> Result<bool> {
        let blkid = self.pointer(self.header.index_of(hash)).await?;
        // A look first, so that a sibling that stays as it is does not become part of the change.
        let leaf = read_leaf(self.store, &self.header, blkid, hash).await?;
        Ok(leaf.prefix_len() == len && leaf.len() == 0)
    }

    async fn join(&mut self, keep: u64, drop: u64, dropped_prefix: u64, len: u32) -> Result<()> {
        let rules = self.header.rules;
        for index in self.range_of(dropped_prefix, len) {
            self.set_pointer(index, keep).await?;
        }
        self.leaf_mut(keep).widen(&rules);
        self.free(drop..drop + 1);
        self.header.leaves = self.header.leaves.saturating_sub(1);
        Ok(())
    }

    /// Lets the next allocation start behind the last block in use.
    async fn lower_free_block(&mut self) -> Result<()> {
        let table = self.header.table;
        let next_blocks = if table.next_first_block == 0 { 0 } else { 2 * table.blocks };
        let mut last =
            (table.first_block + table.blocks).max(table.next_first_block + next_blocks).max(1) - 1;
        for n in 0..table.blocks.max(1) {
            last = self.pointers(n).await?.into_iter().fold(last, u64::max);
        }
        self.header.free_block = last + 1;
        Ok(())
    }
}
