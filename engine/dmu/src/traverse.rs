//! Walking every block of an object set on disk, for scrub, verification and destruction.
//!
//! A walk starts from a root pointer, not from an open set, so that it sees one txg's state and snapshots too. It reads
//! what leads to other blocks (roots, dnodes, indirect blocks); everything else is only named to the [`Visitor`], in
//! the order: object set root, accounting objects, then object after object, parents before children. A damaged block
//! is reported, and the walk goes on with its siblings.

use crate::attrs::SLOT;
use crate::objset::ObjSet;
use crate::policy::Policy;
use crate::spill::SPILL_BLKID as SPILL;
use crate::tree::{Tree, entry};
use crate::walk_ahead::WalkAhead;
use ondisk::{BlockPointer, DnodePhys, ObjectType, ObjsetPhys};
use std::sync::Arc;
use units::{Error, ObjectId, ObjsetId, Result, Txg};
use world::Buf;
use zio::{BlockStore, Bookmark, ReadClass};

/// What to do below a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    Descend,
    Skip,
}

pub trait Visitor: Send + Sync {
    /// A block that is no hole. Slow work is best spawned, bounded by the visitor; an error ends the walk.
    fn visit<'a>(
        &'a self,
        at: Bookmark,
        bp: &'a BlockPointer,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Visit>> + Send + 'a>>;

    /// A block that leads to others could not be read or makes no sense; what hangs from it is not visited.
    fn damaged(&self, at: Bookmark, error: Error);

    /// Whether blocks that lead to others are read before the walk comes to them.
    fn reads_ahead(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy)]
struct Walk<'a> {
    store: &'a Arc<dyn BlockStore>,
    visitor: &'a dyn Visitor,
    ahead: &'a WalkAhead,
    objset: ObjsetId,
    /// Blocks born at or before this txg are not visited: a snapshot's walk has met them.
    since: Txg,
}

type Steps<'a> = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Visits every block of the object set under `root` that was born after `since`.
pub async fn traverse_objset(
    store: &Arc<dyn BlockStore>,
    objset: ObjsetId,
    root: &BlockPointer,
    since: Txg,
    visitor: &dyn Visitor,
) -> Result<()> {
    let ahead = WalkAhead::new(store.clone(), ReadClass::ScanAhead);
    let walked = Walk { store, visitor, ahead: &ahead, objset, since }.set(root).await;
    ahead.finish().await;
    walked
}

/// The pointer to the block named `at` in the object set under `root`: a hole where there is none. A caller that met a
/// damaged block in a pool that is written to finds out with it whether the block is still in use.
pub async fn locate(store: &Arc<dyn BlockStore>, root: &BlockPointer, at: Bookmark) -> Result<BlockPointer> {
    if at.level < 0 {
        return Ok(root.clone());
    }
    let set = ObjSet::open(store.clone(), at.objset, root.clone(), Policy::mos()).await?;
    let phys = set.phys();
    let dnode = match at.object.0 {
        0 => Some(phys.meta_dnode),
        u64::MAX => Some(phys.user_used),
        n if n == u64::MAX - 1 => Some(phys.group_used),
        n if n == u64::MAX - 2 => Some(phys.project_used),
        _ => set.dnode_phys(at.object).await?,
    };
    let Some(tree) = dnode.filter(|d| !d.is_free()).map(|d| Tree::from_phys(&d)) else {
        return Ok(BlockPointer::HOLE);
    };
    if at.blkid == SPILL {
        return Ok(tree.spill.unwrap_or(BlockPointer::HOLE));
    }
    tree.find(&set.0.shared, at.object, at.level as u8, at.blkid).await
}

/// Visits the blocks of one object, as its dnode leads to them.
pub async fn traverse_tree(
    store: &Arc<dyn BlockStore>,
    objset: ObjsetId,
    object: ObjectId,
    dnode: &DnodePhys,
    since: Txg,
    visitor: &dyn Visitor,
) -> Result<()> {
    let ahead = WalkAhead::new(store.clone(), ReadClass::ScanAhead);
    let walked = Walk { store, visitor, ahead: &ahead, objset, since }.dnode(object, dnode).await;
    ahead.finish().await;
    walked
}

impl Walk<'_> {
    async fn set(&self, root: &BlockPointer) -> Result<()> {
        let at = Bookmark::root(self.objset);
        let Some(buf) = self.enter(at, root).await? else { return Ok(()) };
        let phys = match ObjsetPhys::from_bytes(&buf, root.endian()) {
            Ok(phys) => phys,
            Err(e) => {
                self.visitor.damaged(at, e);
                return Ok(());
            }
        };
        // The accounting objects go by the last three object numbers there are.
        let accounting = [&phys.user_used, &phys.group_used, &phys.project_used];
        for (id, dnode) in (1..).map(|n: u64| ObjectId(n.wrapping_neg())).zip(accounting) {
            if !dnode.is_free() {
                self.dnode(id, dnode).await?;
            }
        }
        self.dnode(ObjectId::META_DNODE, &phys.meta_dnode).await
    }

    /// Visits a block that leads to others, and reads it if it is to be descended into.
    async fn enter(&self, at: Bookmark, bp: &BlockPointer) -> Result<Option<Buf>> {
        if !self.wants(bp) || self.visitor.visit(at, bp).await? == Visit::Skip {
            return Ok(None);
        }
        let in_memory = self.ahead.take(at).await.or_else(|| self.store.cached(bp));
        let read = match in_memory {
            Some(buf) => Ok(buf),
            None => self.store.read(bp, at, ReadClass::Walk).await,
        };
        match read {
            Ok(buf) => Ok(Some(buf)),
            Err(e) => {
                self.visitor.damaged(at, e);
                Ok(None)
            }
        }
    }

    fn wants(&self, bp: &BlockPointer) -> bool {
        !bp.is_hole() && bp.birth() > self.since
    }

    async fn dnode(&self, object: ObjectId, dnode: &DnodePhys) -> Result<()> {
        for (i, bp) in dnode.blkptrs.iter().enumerate() {
            let level = dnode.levels.saturating_sub(1);
            self.block(object, dnode.kind, level, i as u64, bp, dnode.indirect_shift).await?;
        }
        if let Some(spill) = dnode.spill.as_ref().filter(|bp| self.wants(bp)) {
            let at = Bookmark { objset: self.objset, object, level: 0, blkid: SPILL };
            self.visitor.visit(at, spill).await?;
        }
        Ok(())
    }

    /// Boxed, for it calls itself.
    fn block<'b>(
        &'b self,
        object: ObjectId,
        kind: ObjectType,
        level: u8,
        blkid: u64,
        bp: &'b BlockPointer,
        shift: u8,
    ) -> Steps<'b> {
        Box::pin(self.block_inner(object, kind, level, blkid, bp, shift))
    }

    async fn block_inner(
        &self,
        object: ObjectId,
        kind: ObjectType,
        level: u8,
        blkid: u64,
        bp: &BlockPointer,
        shift: u8,
    ) -> Result<()> {
        let at = Bookmark { objset: self.objset, object, level: level as i8, blkid };
        if level == 0 && kind != ObjectType::DNODE {
            if self.wants(bp) {
                self.visitor.visit(at, bp).await?;
            }
            return Ok(());
        }
        if self.wants(bp) && bp.level() != level {
            self.visitor.damaged(at, Error::corrupt(format!("block pointer claims level {}", bp.level())));
            return Ok(());
        }
        let Some(buf) = self.enter(at, bp).await? else { return Ok(()) };
        if level == 0 {
            return self.dnodes(at, &buf, bp).await;
        }
        let entries = 1u64 << (shift - 7);
        if leads(kind, level - 1) {
            self.open((0..entries).filter_map(|slot| {
                let child = entry(&buf, slot as usize, bp.endian()).ok()?;
                let blkid = blkid.checked_mul(entries)?.checked_add(slot)?;
                let at = Bookmark { level: level as i8 - 1, blkid, ..at };
                (child.level() == level - 1).then_some((child, at))
            }));
        }
        for slot in 0..entries {
            let child = match entry(&buf, slot as usize, bp.endian()) {
                Ok(child) => child,
                Err(e) => {
                    self.visitor.damaged(at, e);
                    continue;
                }
            };
            if self.wants(&child) {
                let child_id = blkid.checked_mul(entries).and_then(|b| b.checked_add(slot));
                let child_id = child_id.ok_or_else(|| Error::corrupt("block number overflows").at(at))?;
                self.block(object, kind, level - 1, child_id, &child, shift).await?;
            }
        }
        if leads(kind, level - 1) {
            self.ahead.close();
        }
        Ok(())
    }

    /// The walk goes through these next, as far as it wants them.
    fn open(&self, blocks: impl Iterator<Item = (BlockPointer, Bookmark)>) {
        let is_on = self.visitor.reads_ahead();
        self.ahead.open(blocks.take_while(|_| is_on).filter(|(bp, _)| self.wants(bp)));
    }

    /// The objects whose dnodes one block of the meta-dnode holds.
    async fn dnodes(&self, at: Bookmark, buf: &Buf, bp: &BlockPointer) -> Result<()> {
        let per_block = buf.len() as u64 / SLOT;
        let (mut slot, mut dnodes) = (0, Vec::new());
        while slot < per_block {
            let object = ObjectId(at.blkid * per_block + slot);
            match DnodePhys::from_bytes(&buf[(slot * SLOT) as usize..], bp.endian()) {
                Ok(dnode) => {
                    slot += dnode.slots() as u64;
                    if dnode.kind != ObjectType::NONE {
                        dnodes.push((object, dnode));
                    }
                }
                Err(e) => {
                    self.visitor.damaged(Bookmark { object, ..at }, e);
                    slot += 1;
                }
            }
        }
        self.open(dnodes.iter().flat_map(|(object, dnode)| {
            let level = dnode.levels.saturating_sub(1);
            let leading = dnode
                .blkptrs
                .iter()
                .enumerate()
                .filter(move |(_, bp)| leads(dnode.kind, level) && bp.level() == level);
            let place = Bookmark { object: *object, level: level as i8, ..at };
            leading.map(move |(i, bp)| (bp.clone(), Bookmark { blkid: i as u64, ..place }))
        }));
        for (object, dnode) in &dnodes {
            self.dnode(*object, dnode).await?;
        }
        self.ahead.close();
        Ok(())
    }
}

/// Whether blocks of an object lead to others at this level.
fn leads(kind: ObjectType, level: u8) -> bool {
    level > 0 || kind == ObjectType::DNODE
}
