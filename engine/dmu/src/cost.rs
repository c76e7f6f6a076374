//! What a txg's sync will be charged for, at its worst, counted while the txg is dirtied.
//!
//! Each block of a dirty record is written once by its txg, with one copy or more, and so is each indirect block above it:
//!
//! ```text
//!   level 2   [            ]      dirtied by the first block below it, in this txg
//!   level 1   [    ] [    ]       likewise: blocks that lie together share it, scattered ones each bring their own
//!   level 0   a b       c         a: data + level 1 + level 2     b: data     c: data + level 1
//! ```
//!
//! Then the dnode's own block, with those above it, and the root. An indirect block is no larger than what it points to
//! makes it: zeros compress. Frees write the indirect blocks at the two ends of a range; what lies between goes.
//!
//! The sums go to [`txg::Tx::charge`]. In syncing context nothing is counted: what the pool writes of itself is what the
//! slop is for.

use crate::attrs::Attrs;
use crate::dirty_record::DirtyRecord;
use crate::first_in::{DNODES, FirstIn, INDIRECT};
use crate::node::State;
use crate::object::Object;
use crate::shared::Shared;
use ondisk::{BlockPointer, ObjectType};
use std::ops::Range;
use txg::Tx;

/// Entries of space maps, deadlists and lists of what is to be freed, for each block, in three copies.
const BOOKKEEPING: u64 = 512;
/// The root block, the upper levels of the meta-dnode, sums of what users take: once in a txg.
const ROOT: u64 = 128 << 10;

/// A block's place in the levels above: the blocks of level 0 that one block of `level` leads to.
fn group(blkid: u64, fan_out_shift: u32, level: u8) -> Range<u64> {
    let shift = (fan_out_shift * u32::from(level)).min(63);
    let first = blkid >> shift << shift;
    first..first.saturating_add(1 << shift)
}

/// Whether the txg writes the indirect block above these blocks in any case.
fn is_touched(dirty_record: Option<&DirtyRecord>, group: &Range<u64>) -> bool {
    dirty_record.is_some_and(|dirty_record| {
        dirty_record.blocks.range(group.clone()).next().is_some()
            || dirty_record.freed.overlap(group.clone()).any(|freed| freed != *group)
    })
}

/// One indirect block of `level`.
fn of_indirect(state: &State, shared: &Shared, level: u8) -> u64 {
    let attrs = &state.attrs;
    let size = 1u64 << attrs.indirect_shift;
    let children = group(attrs.max_blkid, attrs.fan_out_shift(), level - 1).start
        >> (attrs.fan_out_shift() * u32::from(level - 1)).min(63);
    let filled = (children + 1).saturating_mul(BlockPointer::SIZE as u64).saturating_add(size / 16);
    let copies = shared.policy().choose(attrs.kind, level, attrs.checksum, attrs.compression).copies;
    shared.store.charge_max(filled.min(size), copies)
}

fn levels(state: &State) -> u8 {
    state.stable.levels.max(state.attrs.levels_needed())
}

/// What [`of_block`] counts for a block of level 0 itself.
pub(crate) fn of_leaf(attrs: &Attrs, shared: &Shared) -> u64 {
    let copies = shared.policy().choose(attrs.kind, 0, attrs.checksum, attrs.compression).copies;
    shared.store.charge_max(attrs.block_size.into(), copies) + BOOKKEEPING
}

/// What putting block `blkid` into the dirty record of `tx` adds; to be asked before that is done.
pub(crate) fn of_block(state: &State, shared: &Shared, tx: &Tx, blkid: u64) -> u64 {
    if tx.is_syncing() {
        return 0;
    }
    let dirty_record = state.dirty_record(tx.txg());
    if dirty_record.is_some_and(|dirty_record| dirty_record.blocks.contains_key(&blkid)) {
        // One that was written already, for the log, is written again.
        let again = dirty_record.is_some_and(|dirty_record| dirty_record.written.contains_key(&blkid));
        return if again { of_leaf(&state.attrs, shared) } else { 0 };
    }
    let mut cost = of_leaf(&state.attrs, shared);
    for level in 1..levels(state) {
        if is_touched(dirty_record, &group(blkid, state.attrs.fan_out_shift(), level)) {
            break;
        }
        cost = cost.saturating_add(of_indirect(state, shared, level));
    }
    cost
}

/// What an only block of `size` bytes more adds.
pub(crate) fn of_size(state: &State, shared: &Shared, tx: &Tx, size: u32) -> u64 {
    let attrs = &state.attrs;
    let copies = shared.policy().choose(attrs.kind, 0, attrs.checksum, attrs.compression).copies;
    if tx.is_syncing() { 0 } else { shared.store.charge_max(size.into(), copies) }
}

/// What freeing `blocks` in the dirty record of `tx` adds; to be asked before that is done.
pub(crate) fn of_freeing(state: &State, shared: &Shared, tx: &Tx, blocks: &Range<u64>) -> u64 {
    if tx.is_syncing() { 0 } else { at_the_ends(state, shared, state.dirty_record(tx.txg()), blocks) }
}

/// The indirect blocks that stay, at both ends of a range that goes.
fn at_the_ends(
    state: &State,
    shared: &Shared,
    dirty_record: Option<&DirtyRecord>,
    blocks: &Range<u64>,
) -> u64 {
    let end = blocks.end.min(state.attrs.max_blkid.saturating_add(1));
    if blocks.start >= end {
        return 0;
    }
    let mut cost: u64 = 0;
    for level in 1..levels(state) {
        let at = |blkid| group(blkid, state.attrs.fan_out_shift(), level);
        let (first, last) = (at(blocks.start), at(end - 1));
        let ends = [Some(&first), Some(&last).filter(|last| **last != first)];
        let stays = |group: &&Range<u64>| group.start < blocks.start || group.end > blocks.end;
        for group in ends.into_iter().flatten().filter(stays) {
            if !is_touched(dirty_record, group) {
                cost = cost.saturating_add(of_indirect(state, shared, level));
            }
        }
    }
    cost
}

/// What a dnode adds that the txg had not dirtied before. `first_in` says of how many dnodes around it that it is the
/// first of them.
pub(crate) fn of_dnode(shared: &Shared, first_in: FirstIn) -> u64 {
    let choose = |level| shared.policy().choose(ObjectType::DNODE, level, 0, 0).copies;
    let of = |is_first: bool, bytes, level| {
        if is_first { shared.store.charge_max(bytes, choose(level)) } else { 0 }
    };
    of(first_in.block, DNODES, 0) + of(first_in.group, INDIRECT, 1) + of(first_in.set, ROOT, 2)
}

impl Object {
    /// The most that writing these level-0 blocks may charge a txg that has not dirtied anything near them, in bytes with
    /// redundancy divided out.
    pub fn cost_of_writing(&self, blocks: Range<u64>) -> u64 {
        let (state, shared) = (self.node.lock(), &self.node.shared);
        let all_firsts = FirstIn { block: true, group: true, set: true };
        let mut cost = of_dnode(shared, all_firsts);
        cost = cost.saturating_add(
            blocks.end.saturating_sub(blocks.start).saturating_mul(of_leaf(&state.attrs, shared)),
        );
        for level in 1..levels(&state) {
            let shift = (state.attrs.fan_out_shift() * u32::from(level)).min(63);
            let count = (blocks.end.saturating_sub(1) >> shift) - (blocks.start >> shift) + 1;
            cost = cost.saturating_add(count.saturating_mul(of_indirect(&state, shared, level)));
        }
        cost
    }

    /// As [`Object::cost_of_writing`], for freeing them.
    pub fn cost_of_freeing(&self, blocks: Range<u64>) -> u64 {
        let (state, shared) = (self.node.lock(), &self.node.shared);
        let all_firsts = FirstIn { block: true, group: true, set: true };
        // Blocks that are freed in part, at both ends, are written.
        let partly = 2 * of_leaf(&state.attrs, shared);
        of_dnode(shared, all_firsts) + partly + at_the_ends(&state, shared, None, &blocks)
    }
}
