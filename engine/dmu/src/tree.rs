//! The stable tree of one object: finding the pointer to a block.

use crate::blocks::Blocks;
use ondisk::{BlockPointer, DnodePhys};
use std::ops::Range;
use std::sync::OnceLock;
use units::{Endian, Error, ObjectId, Result};
use world::Buf;
use zio::{Bookmark, ReadClass};

/// Bytes of a block pointer on disk.
pub(crate) const BP_SIZE: usize = 128;

#[derive(Debug)]
pub(crate) struct Tree {
    /// Level 0 included.
    pub levels: u8,
    pub indirect_shift: u8,
    pub roots: Vec<BlockPointer>,
    pub spill: Option<BlockPointer>,
    /// What the object is charged for, in bytes.
    pub used: u64,
    pub generation: u64,
    /// Drawn when it is asked for ([`Tree::number`]).
    pub number: OnceLock<u64>,
}

impl Tree {
    pub fn empty(roots: u8, indirect_shift: u8) -> Tree {
        let roots = vec![BlockPointer::HOLE; roots.into()];
        Tree {
            levels: 1,
            indirect_shift,
            roots,
            spill: None,
            used: 0,
            generation: 0,
            number: OnceLock::new(),
        }
    }

    pub fn from_phys(phys: &DnodePhys) -> Tree {
        Tree {
            levels: phys.levels,
            indirect_shift: phys.indirect_shift,
            roots: phys.blkptrs.clone(),
            spill: phys.spill.clone(),
            used: phys.used_bytes(),
            generation: 0,
            number: OnceLock::new(),
        }
    }

    /// By which the blocks of the tree are named.
    pub fn number(&self, blocks: &Blocks) -> u64 {
        *self.number.get_or_init(|| blocks.store.number_tree())
    }

    pub fn fan_out_shift(&self) -> u32 {
        u32::from(self.indirect_shift) - 7
    }

    /// How far a block number of `level` is shifted to give its ancestor's at the top, and there its root.
    fn root_index(&self, level: u8, index: u64) -> usize {
        let shift = self.fan_out_shift() * u32::from(self.levels - 1 - level);
        index.checked_shr(shift).unwrap_or(0).try_into().unwrap_or(usize::MAX)
    }

    /// The number of the first block of level 0 that is not under the same indirect block as `blkid`.
    pub fn end_of_group(&self, blkid: u64) -> u64 {
        let shift = self.fan_out_shift();
        if self.levels == 1 { u64::MAX } else { ((blkid >> shift) + 1).saturating_mul(1 << shift) }
    }

    /// For what is read ahead: the pointers to blocks of level 0 that are under one indirect block
    /// ([`Tree::end_of_group`]), or to all where there is none.
    pub async fn find_side_by_side(
        &self,
        blocks: &Blocks,
        object: ObjectId,
        range: Range<u64>,
    ) -> Result<Vec<BlockPointer>> {
        if self.levels == 1 {
            let root =
                |blkid| self.roots.get(self.root_index(0, blkid)).cloned().unwrap_or(BlockPointer::HOLE);
            return Ok(range.map(root).collect());
        }
        let index = range.start >> self.fan_out_shift();
        let above = self.find_as(blocks, object, (1, index), ReadClass::Prefetch).await?;
        if above.is_hole() {
            return Ok(vec![BlockPointer::HOLE; (range.end - range.start) as usize]);
        }
        let place = Bookmark { objset: blocks.id, object, level: 1, blkid: index };
        let indirect = blocks.read(&above, place, ReadClass::Prefetch).await?;
        let child = |blkid| self.child(&indirect, above.endian(), object, (0, blkid));
        range.map(child).collect()
    }

    /// The pointer to block `index` of `level` in the indirect block above it.
    fn child(
        &self,
        indirect: &[u8],
        endian: Endian,
        object: ObjectId,
        (level, index): (u8, u64),
    ) -> Result<BlockPointer> {
        let slot = (index & ((1 << self.fan_out_shift()) - 1)) as usize;
        let bp = entry(indirect, slot, endian)?;
        if !bp.is_hole() && bp.level() != level {
            return Err(Error::corrupt(format!("block pointer {slot} claims level {}", bp.level())).at(
                format!(
                    "object {:x} level {} block {:x}",
                    object.0,
                    level + 1,
                    index >> self.fan_out_shift()
                ),
            ));
        }
        Ok(bp)
    }

    /// The pointer to block `index` of `level`, if every indirect block on the way is in memory.
    pub fn find_cached(
        &self,
        blocks: &Blocks,
        object: ObjectId,
        level: u8,
        index: u64,
    ) -> Option<Result<BlockPointer>> {
        Some(self.find_run_cached(blocks, object, level, index)?.map(|(bp, _)| bp))
    }

    /// As [`Tree::find_run`], under the same condition.
    pub fn find_run_cached(
        &self,
        blocks: &Blocks,
        object: ObjectId,
        level: u8,
        index: u64,
    ) -> Option<Result<(BlockPointer, u64)>> {
        let mut walk = Walk::start(self, object, level, index);
        loop {
            match walk.next_indirect() {
                Step::Found(bp) => return Some(Ok((bp, walk.end_of_run()))),
                Step::Needs(bp, _) => {
                    let buf = blocks.store.cached(bp)?;
                    if let Err(e) = walk.descend(&buf) {
                        return Some(Err(e));
                    }
                }
            }
        }
    }

    /// The pointer to block `index` of `level`: a hole where there is none.
    pub async fn find(
        &self,
        blocks: &Blocks,
        object: ObjectId,
        level: u8,
        index: u64,
    ) -> Result<BlockPointer> {
        self.find_as(blocks, object, (level, index), ReadClass::Demand).await
    }

    /// As [`Tree::find`], reading indirect blocks for this reason.
    pub async fn find_as(
        &self,
        blocks: &Blocks,
        object: ObjectId,
        (level, index): (u8, u64),
        class: ReadClass,
    ) -> Result<BlockPointer> {
        self.find_run_as(blocks, object, (level, index), class).await.map(|(bp, _)| bp)
    }

    /// As [`Tree::find`], with the number of the first block after it that may be different: a hole high up in the
    /// tree answers for many blocks.
    pub async fn find_run(
        &self,
        blocks: &Blocks,
        object: ObjectId,
        level: u8,
        index: u64,
    ) -> Result<(BlockPointer, u64)> {
        self.find_run_as(blocks, object, (level, index), ReadClass::Demand).await
    }

    async fn find_run_as(
        &self,
        blocks: &Blocks,
        object: ObjectId,
        (level, index): (u8, u64),
        class: ReadClass,
    ) -> Result<(BlockPointer, u64)> {
        let mut walk = Walk::start(self, object, level, index);
        loop {
            match walk.next_indirect() {
                Step::Found(bp) => return Ok((bp, walk.end_of_run())),
                Step::Needs(bp, place) => {
                    let place = Bookmark { objset: blocks.id, ..place };
                    let buf = blocks.read(bp, place, class).await?;
                    walk.descend(&buf)?;
                }
            }
        }
    }
}

/// A walk from a root down to one pointer.
struct Walk<'a> {
    tree: &'a Tree,
    object: ObjectId,
    /// Where we are, and where we go.
    at: u8,
    level: u8,
    index: u64,
    bp: BlockPointer,
}

enum Step<'a> {
    Found(BlockPointer),
    Needs(&'a BlockPointer, Bookmark),
}

impl<'a> Walk<'a> {
    fn start(tree: &'a Tree, object: ObjectId, level: u8, index: u64) -> Walk<'a> {
        let (at, bp) = if level >= tree.levels {
            (level, BlockPointer::HOLE)
        } else {
            (
                tree.levels - 1,
                tree.roots.get(tree.root_index(level, index)).cloned().unwrap_or(BlockPointer::HOLE),
            )
        };
        Walk { tree, object, at, level, index, bp }
    }

    /// Past what the roots lead to there is nothing, however far: else a file that is larger than its tree, as one is that
    /// waits for its txg, would be crossed block by block.
    fn end_of_run(&self) -> u64 {
        let is_past_roots = self.level >= self.tree.levels
            || self.tree.root_index(self.level, self.index) >= self.tree.roots.len();
        if is_past_roots {
            return u64::MAX;
        }
        let shift = self.tree.fan_out_shift() * u32::from(self.at - self.level);
        let next = self.index.checked_shr(shift).unwrap_or(0) + 1;
        if shift >= next.leading_zeros() { u64::MAX } else { next << shift }
    }

    fn next_indirect(&self) -> Step<'_> {
        if self.at == self.level || self.bp.is_hole() {
            let bp = if self.at == self.level { self.bp.clone() } else { BlockPointer::HOLE };
            return Step::Found(bp);
        }
        let blkid = self.index >> (self.tree.fan_out_shift() * u32::from(self.at - self.level));
        let place = Bookmark {
            object: self.object,
            level: self.at as i8,
            blkid,
            ..Bookmark::root(units::ObjsetId::MOS)
        };
        Step::Needs(&self.bp, place)
    }

    fn descend(&mut self, indirect: &Buf) -> Result<()> {
        let below = self.at - 1;
        let index = self.index >> (self.tree.fan_out_shift() * u32::from(below - self.level));
        let bp = self.tree.child(indirect, self.bp.endian(), self.object, (below, index))?;
        self.bp = bp;
        self.at = below;
        Ok(())
    }
}

/// Entry `slot` of an indirect block.
pub(crate) fn entry(indirect: &[u8], slot: usize, endian: Endian) -> Result<BlockPointer> {
    let bytes = indirect.get(slot * BP_SIZE..(slot + 1) * BP_SIZE).ok_or_else(|| {
        Error::corrupt(format!("indirect block of {} bytes has no entry {slot}", indirect.len()))
    })?;
    BlockPointer::from_bytes(bytes, endian)
}
