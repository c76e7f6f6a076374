//! The stable tree of one object: finding the pointer to a block.

use crate::blocks::Blocks;
use ondisk::{BlockPointer, DnodePhys};
use units::{Error, ObjectId, Result};
use world::Buf;
use zio::{Bookmark, ReadClass};

/// Bytes of a block pointer on disk.
pub(crate) const BP_SIZE: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Level 0 included.
    pub levels: u8,
    pub indirect_shift: u8,
    pub roots: Vec<BlockPointer>,
    pub spill: Option<BlockPointer>,
    /// What the object is charged for, in bytes.
    pub used: u64,
    pub generation: u64,
}

impl Tree {
    pub fn empty(roots: u8, indirect_shift: u8) -> Tree {
        let roots = vec![BlockPointer::HOLE; roots.into()];
        Tree { levels: 1, indirect_shift, roots, spill: None, used: 0, generation: 0 }
    }

    pub fn from_phys(phys: &DnodePhys) -> Tree {
        Tree {
            levels: phys.levels,
            indirect_shift: phys.indirect_shift,
            roots: phys.blkptrs.clone(),
            spill: phys.spill.clone(),
            used: phys.used_bytes(),
            generation: 0,
        }
    }

    pub fn fan_out_shift(&self) -> u32 {
        u32::from(self.indirect_shift) - 7
    }

    /// How far a block number of `level` is shifted to give its ancestor's at the top, and there its root.
    fn root_index(&self, level: u8, index: u64) -> usize {
        let shift = self.fan_out_shift() * u32::from(self.levels - 1 - level);
        index.checked_shr(shift).unwrap_or(0).try_into().unwrap_or(usize::MAX)
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
        self.find_run(blocks, object, level, index).await.map(|(bp, _)| bp)
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
        let mut walk = Walk::start(self, object, level, index);
        loop {
            match walk.next_indirect() {
                Step::Found(bp) => return Ok((bp, walk.end_of_run())),
                Step::Needs(bp, place) => {
                    let place = Bookmark { objset: blocks.id, ..place };
                    let buf = blocks.read(bp, place, ReadClass::Demand).await?;
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

    fn end_of_run(&self) -> u64 {
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
        let child = self.index >> (self.tree.fan_out_shift() * u32::from(below - self.level));
        let slot = (child & ((1 << self.tree.fan_out_shift()) - 1)) as usize;
        let bp = entry(indirect, slot, self.bp.endian())?;
        if !bp.is_hole() && bp.level() != below {
            return Err(Error::corrupt(format!("block pointer {slot} claims level {}", bp.level())).at(
                format!(
                    "object {:x} level {} block {:x}",
                    self.object.0,
                    self.at,
                    child >> self.tree.fan_out_shift()
                ),
            ));
        }
        self.bp = bp;
        self.at = below;
        Ok(())
    }
}

/// Entry `slot` of an indirect block.
pub(crate) fn entry(indirect: &[u8], slot: usize, endian: units::Endian) -> Result<BlockPointer> {
    let bytes = indirect.get(slot * BP_SIZE..(slot + 1) * BP_SIZE).ok_or_else(|| {
        Error::corrupt(format!("indirect block of {} bytes has no entry {slot}", indirect.len()))
    })?;
    BlockPointer::from_bytes(bytes, endian)
}
