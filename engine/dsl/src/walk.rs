//! Freeing a whole tree of blocks, bit by bit over many txgs.
//!
//! The tree of a destroyed dataset is walked leaves first, in the order of objects and block numbers. A parent is freed
//! only when everything below it is, so the walk can stop at any leaf, be remembered as that leaf's place, and go on
//! from there after a restart:
//!
//! ```text
//!            root            5
//!          ┌──┴──┐
//!          a     b           a: 3, b: 4        freed in this order; stopped before 2, the place of 2 is kept,
//!        ┌─┴─┐               leaves: 1, 2      and the next walk passes over 1
//!        1   2
//! ```
//!
//! The order and the meaning of the place are OpenZFS's, which may go on where this program stopped. A block that
//! cannot be read is passed over with all below it, which then stays allocated and unused; better than never
//! getting to the end.

use std::pin::Pin;
use std::sync::Arc;

use dmu::WalkAhead;
use ondisk::{BlockBookmark, BlockPointer, DNODE_SIZE, DnodePhys, ObjectType, ObjsetPhys};
use units::{Error, ObjectId, ObjsetId, Result, Txg};
use world::Buf;
use zio::{BlockStore, Bookmark, ReadClass};

use crate::core::weigh;
use crate::space::Delta;

/// The object set number that bookmarks of destroyed trees carry.
const DESTROYED: u64 = u64::MAX;
const DNODES_PER_BLOCK: u64 = 32;

/// What a walk did, and where it stopped; `resume` is empty when it is done.
#[derive(Debug, Default)]
pub struct Progress {
    pub freed: u64,
    pub space: Delta,
    pub resume: Option<BlockBookmark>,
}

struct Walk {
    store: Arc<dyn BlockStore>,
    ahead: WalkAhead,
    txg: Txg,
    /// Blocks born up to here belong to another dataset.
    since: Txg,
    resume: Option<BlockBookmark>,
    budget: u64,
    /// Bytes that can be freed at all.
    most: u64,
    progress: Progress,
}

type Steps<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// How far one call of [`free_tree`] may go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Blocks; then it stops, to be resumed.
    pub blocks: u64,
    /// Bytes; a tree of more leads to the same blocks again and again, and is an error.
    pub bytes: u64,
}

/// Frees blocks under `root` that were born after `since`, from `resume` on, within `bounds`.
pub async fn free_tree(
    store: &Arc<dyn BlockStore>,
    txg: Txg,
    root: &BlockPointer,
    since: Txg,
    resume: BlockBookmark,
    bounds: Bounds,
) -> Result<Progress> {
    let resume = (resume != BlockBookmark::default()).then_some(resume);
    let Bounds { blocks: budget, bytes: most } = bounds;
    let ahead = WalkAhead::new(store.clone(), ReadClass::Ahead);
    let mut walk =
        Walk { store: store.clone(), ahead, txg, since, resume, budget, most, progress: Progress::default() };
    let walked = walk.root(root).await;
    walk.ahead.finish().await;
    walked.map(|()| walk.progress)
}

/// A block on the way down: its object, the dnode's geometry, and its place.
#[derive(Clone, Copy)]
struct Place {
    object: ObjectId,
    level: u8,
    blkid: u64,
    /// log2 of how many pointers an indirect block holds.
    fan_out: u32,
    is_spill: bool,
}

impl Place {
    /// Of the first block that a dnode leads to.
    fn of(object: ObjectId, dnode: &DnodePhys) -> Place {
        let (level, fan_out) = (dnode.levels.saturating_sub(1), dnode.pointers_shift());
        Place { object, level, blkid: 0, fan_out, is_spill: false }
    }

    /// The number of the first block after all that hang from this one, at level 0.
    fn end(&self) -> u64 {
        let shift = u32::from(self.level) * self.fan_out;
        (self.blkid + 1).checked_shl(shift).filter(|_| shift < 64).unwrap_or(u64::MAX)
    }

    /// Whether a walk that stopped at `stop` had freed this block and everything below.
    fn is_done(&self, stop: &BlockBookmark) -> bool {
        if self.object == ObjectId::META_DNODE {
            let stopped_in =
                if stop.object.0 == 0 { stop.block.saturating_mul(DNODES_PER_BLOCK) } else { stop.object.0 };
            return self.end().saturating_mul(DNODES_PER_BLOCK) <= stopped_in;
        }
        if self.object != stop.object {
            return self.object < stop.object;
        }
        !self.is_spill && self.end() <= stop.block
    }

    fn bookmark(&self) -> Bookmark {
        Bookmark {
            objset: ObjsetId(DESTROYED),
            object: self.object,
            level: self.level as i8,
            blkid: self.blkid,
        }
    }
}

impl Walk {
    fn stopped(&self) -> bool {
        self.progress.resume.is_some()
    }

    fn wants(&self, bp: &BlockPointer) -> bool {
        !bp.is_hole() && !bp.is_redacted() && bp.birth() > self.since
    }

    /// The block's bytes; nothing if it cannot be read.
    async fn read(&self, bp: &BlockPointer, at: Bookmark) -> Option<Buf> {
        match self.ahead.take(at).await.or_else(|| self.store.cached(bp)) {
            Some(buf) => Some(buf),
            None => self.store.read(bp, at, ReadClass::Scan).await.ok(),
        }
    }

    fn free(&mut self, bp: &BlockPointer) {
        self.progress.space += weigh(self.store.as_ref(), bp);
        self.progress.freed += 1;
        self.store.free(bp, self.txg);
    }

    async fn root(&mut self, bp: &BlockPointer) -> Result<()> {
        if !self.wants(bp) {
            return Ok(());
        }
        let at = Bookmark { objset: ObjsetId(DESTROYED), object: ObjectId(0), level: -1, blkid: 0 };
        let phys = self.read(bp, at).await.and_then(|buf| ObjsetPhys::from_bytes(&buf, bp.endian()).ok());
        if let Some(phys) = phys {
            // The accounting objects have the numbers -3, -2 and -1: the largest there are.
            let dnodes = [
                (ObjectId::META_DNODE, &phys.meta_dnode),
                (ObjectId(u64::MAX - 2), &phys.project_used),
                (ObjectId(u64::MAX - 1), &phys.group_used),
                (ObjectId(u64::MAX), &phys.user_used),
            ];
            for (object, dnode) in dnodes {
                self.dnode(object, dnode).await?;
            }
        }
        if !self.stopped() {
            self.free(bp);
        }
        Ok(())
    }

    async fn dnode(&mut self, object: ObjectId, dnode: &DnodePhys) -> Result<()> {
        if self.stopped() || dnode.is_free() {
            return Ok(());
        }
        let place = Place::of(object, dnode);
        for (i, bp) in dnode.blkptrs.iter().enumerate() {
            self.block(bp, Place { blkid: i as u64, ..place }, dnode.kind).await?;
        }
        if let Some(spill) = &dnode.spill {
            let place = Place { level: 0, blkid: u64::MAX - 1, is_spill: true, ..place };
            self.block(spill, place, dnode.kind).await?;
        }
        Ok(())
    }

    /// Boxed, for it calls itself.
    fn block<'a>(&'a mut self, bp: &'a BlockPointer, place: Place, kind: ObjectType) -> Steps<'a> {
        Box::pin(self.block_inner(bp, place, kind))
    }

    async fn block_inner(&mut self, bp: &BlockPointer, place: Place, kind: ObjectType) -> Result<()> {
        if self.stopped() || self.is_done(place) || !self.wants(bp) {
            return Ok(());
        }
        if !self.is_resumed_at(place) {
            self.below(bp, place, kind).await?;
        }
        if self.stopped() {
            return Ok(());
        }
        // Only at leaves, so that the place need not tell how far an indirect block had come.
        if place.level == 0 && self.progress.freed >= self.budget {
            let block = if place.is_spill { u64::MAX } else { place.blkid };
            self.progress.resume =
                Some(BlockBookmark { objset: ObjsetId(DESTROYED), object: place.object, level: 0, block });
            return Ok(());
        }
        self.free(bp);
        if self.progress.space.used.unsigned_abs() > self.most {
            return Err(Error::corrupt(
                "its blocks take more than the pool has: it leads to the same ones again and again",
            ));
        }
        world::breathe().await;
        Ok(())
    }

    fn is_done(&self, place: Place) -> bool {
        self.resume.as_ref().is_some_and(|stop| place.is_done(stop))
    }

    /// Whether the walk will read this block on its way down.
    fn is_entered(&self, bp: &BlockPointer, place: Place, kind: ObjectType) -> bool {
        let leads = place.level > 0 || kind == ObjectType::DNODE;
        let is_ahead = !self.is_done(place) && !self.is_resumed_at(place);
        leads && is_ahead && self.wants(bp) && bp.level() == place.level
    }

    /// What is left of the budget is spent below so many indirect blocks, if these are full.
    fn limit_ahead(&self, fan_out: u32) {
        let left = self.budget.saturating_sub(self.progress.freed);
        self.ahead.set_most(left.checked_shr(fan_out).unwrap_or(0) + 1);
    }

    /// The walk before stopped at this very block: what is below it is free already.
    fn is_resumed_at(&self, place: Place) -> bool {
        let same = |stop: &BlockBookmark| stop.object == place.object && stop.block == place.blkid;
        place.level == 0 && self.resume.as_ref().is_some_and(same)
    }

    async fn below(&mut self, bp: &BlockPointer, place: Place, kind: ObjectType) -> Result<()> {
        let is_dnodes = kind == ObjectType::DNODE && place.level == 0;
        if place.level == 0 && !is_dnodes {
            return Ok(());
        }
        let Some(buf) = self.read(bp, place.bookmark()).await else { return Ok(()) };
        if is_dnodes {
            return self.dnodes(&buf, bp, place.blkid).await;
        }
        let children = || {
            let all = BlockPointer::all_in(&buf, bp.endian()).enumerate();
            all.filter_map(move |(slot, child)| {
                let child = child.ok()?;
                let blkid = place.blkid.checked_shl(place.fan_out).map(|first| first | slot as u64)?;
                let is_its = child.is_hole() || child.level() + 1 == place.level;
                is_its.then_some((child, Place { level: place.level - 1, blkid, ..place }))
            })
        };
        self.limit_ahead(place.fan_out);
        let entered = children().filter(|(child, place)| self.is_entered(child, *place, kind));
        self.ahead.open(entered.map(|(child, place)| (child, place.bookmark())));
        for (child, place) in children() {
            self.block(&child, place, kind).await?;
        }
        self.ahead.close();
        Ok(())
    }

    async fn dnodes(&mut self, buf: &Buf, bp: &BlockPointer, blkid: u64) -> Result<()> {
        let (mut at, mut dnodes) = (0, Vec::new());
        while let Some(bytes) = buf.get(at..).filter(|bytes| bytes.len() >= DNODE_SIZE) {
            let object = ObjectId(blkid * DNODES_PER_BLOCK + (at / DNODE_SIZE) as u64);
            at += match DnodePhys::from_bytes(bytes, bp.endian()) {
                Ok(dnode) => {
                    let slots = dnode.slots();
                    dnodes.push((object, dnode));
                    slots * DNODE_SIZE
                }
                Err(_) => DNODE_SIZE,
            };
        }
        let roots = dnodes.iter().filter(|(_, dnode)| !dnode.is_free()).flat_map(|(object, dnode)| {
            let place = Place::of(*object, dnode);
            let numbered = dnode.blkptrs.iter().enumerate();
            numbered.map(move |(i, bp)| (bp, Place { blkid: i as u64, ..place }, dnode.kind))
        });
        let entered = roots.filter(|(bp, place, kind)| self.is_entered(bp, *place, *kind));
        self.ahead.open(entered.map(|(bp, place, _)| (bp.clone(), place.bookmark())));
        for (object, dnode) in &dnodes {
            self.dnode(*object, dnode).await?;
        }
        self.ahead.close();
        Ok(())
    }
}
