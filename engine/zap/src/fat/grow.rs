//! Splitting a full leaf, and doubling the pointer table when its bits run out.

use super::Edit;
use crate::blocks::Blocks;
use std::ops::Range;
use units::{Error, Kind, Result};

/// With fewer free chunks than this (of 638 in 16 KiB), a leaf that cannot be split will soon need a larger table: about
/// two directory entries with the longest names.
const LOW_WATER: usize = 20;

impl<S: Blocks> Edit<'_, S> {
    /// Splits the full leaf that `hash` leads to, after which the caller tries again.
    pub(super) async fn split(&mut self, blkid: u64, hash: u64) -> Result<()> {
        let old_len = self.leaf_mut(blkid).prefix_len();
        self.check_split_helps(blkid, hash)?;
        while self.header.table_shift() == old_len {
            self.grow_table().await?;
        }
        let rules = self.header.rules;
        let new_blkid = self.header.allocate(1)?;
        let new = self.leaf_mut(blkid).split(&rules);
        let range = self.range_of(new.prefix(), new.prefix_len());
        self.add_leaf(new_blkid, new);
        for index in range {
            self.set_pointer(index, new_blkid).await?;
        }
        Ok(())
    }

    /// Where all hashes are alike, splitting only doubles the table again and again: someone has made names that
    /// collide. OpenZFS would end at a table of 2^26 pointers; we see the end coming.
    fn check_split_helps(&mut self, blkid: u64, hash: u64) -> Result<()> {
        let needed = self.leaf_mut(blkid).common_bits(hash)? + 1;
        if needed > self.header.prefix_len_max() {
            return Err(
                Error::new(Kind::NoSpace, "split ZAP leaf: too many keys of one hash").at(self.store.name())
            );
        }
        Ok(())
    }

    /// Which pointers lead to the leaf of this prefix.
    pub(super) fn range_of(&self, prefix: u64, len: u32) -> Range<u64> {
        let free_bits = self.header.table_shift() - len;
        prefix << free_bits..(prefix + 1) << free_bits
    }

    /// Takes the next step of a table that is growing, and starts to grow it when the leaf just written will need
    /// that soon: so the cost is spread over many changes.
    pub(super) async fn grow_ahead(&mut self, blkid: u64) -> Result<()> {
        let shift = self.header.table_shift();
        let leaf = self.leaf_mut(blkid);
        let is_nearly_full = leaf.prefix_len() == shift && leaf.free_chunks() < LOW_WATER;
        let may_grow = shift < self.header.prefix_len_max();
        if may_grow && (is_nearly_full || self.header.table.next_first_block != 0) {
            self.grow_table().await?;
        }
        Ok(())
    }

    /// One step of doubling the table: moves the embedded one out, or copies one block.
    async fn grow_table(&mut self) -> Result<()> {
        let mut table = self.header.table;
        if self.header.table_shift() >= self.header.prefix_len_max() {
            return Err(Error::new(Kind::NoSpace, "grow ZAP pointer table").at(self.store.name()));
        }
        if table.blocks == 0 {
            let pointers = self.pointers(0).await?;
            table.first_block = self.header.allocate(1)?;
            table.blocks = 1;
            table.shift += 1;
            self.put_table(table.first_block, doubled(&pointers));
            self.header.table = table;
            return Ok(());
        }
        if table.next_first_block == 0 {
            table.next_first_block = self.header.allocate(2 * table.blocks)?;
            table.blocks_copied = 0;
        }
        let pointers = self.pointers(table.blocks_copied).await?;
        let (low, high) = pointers.split_at(pointers.len() / 2);
        self.put_table(table.next_first_block + 2 * table.blocks_copied, doubled(low));
        self.put_table(table.next_first_block + 2 * table.blocks_copied + 1, doubled(high));
        table.blocks_copied += 1;
        if table.blocks_copied == table.blocks {
            self.free(table.first_block..table.first_block + table.blocks);
            table.first_block = table.next_first_block;
            table.blocks *= 2;
            table.shift += 1;
            table.next_first_block = 0;
            table.blocks_copied = 0;
        }
        self.header.table = table;
        Ok(())
    }
}

/// With one more bit of index, each pointer stands twice.
fn doubled(pointers: &[u64]) -> impl Iterator<Item = u64> {
    pointers.iter().flat_map(|p| [*p, *p])
}
