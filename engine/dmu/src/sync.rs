//! Writing one txg's dirty records out, leaves before parents.
//!
//! ```text
//!   level 0   [0 1 2 … ]  [1024 …]        blocks and frees, in groups under one level-1 block
//!                 │           │            a group: read its level-1 block, write the leaves, write it
//!   level 1       ▼           ▼
//!              [ 0          1 … ]          the new pointers, in groups under one level-2 block …
//!                   │
//!   roots           ▼                      … up to the roots, then the dnode, then the meta-dnode likewise
//! ```
//!
//! A block that has landed is given back at once: its memory to the cache, its bytes to the writers that wait for room.
//!
//! Groups run side by side, a bounded number at a time; how many blocks are written at once is bounded below, by the
//! pipeline. From the second pass on, blocks born in this txg are written in place (`zio`), so a repeated sync of the MOS
//! comes to rest.

use crate::accounting::{Account, BlockAccounting, Count};
use crate::alloc::count_dnodes;
use crate::attrs::{Attrs, SLOT};
use crate::cost;
use crate::dirty_record::{Block, DirtyRecord, Frozen};
use crate::lock::lock;
use crate::node::Node;
use crate::object::Object;
use crate::objset::ObjSet;
use crate::pointers::Pointers;
use crate::spill::{SPILL_BLKID, Spill};
use crate::tree::{Tree, entry};
use futures_util::stream::{FuturesUnordered, StreamExt};
use ondisk::{BlockPointer, DnodeFlags, DnodePhys, Feature, Hole, ObjectType};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use txg::{Dirty, Landed, Tx};
use units::{Endian, Lsize, Result, Txg};
use world::Buf;
use zio::{Bookmark, ReadClass, same_block};

/// How many groups of one object are under way at once: enough to keep the devices busy across group boundaries.
const GROUPS: usize = 4;
/// How many objects of one set are under way at once.
const OBJECTS: usize = 32;

/// One round of a txg's sync.
#[derive(Clone, Debug)]
pub struct SyncCtx {
    pub txg: Txg,
    /// From 1.
    pub pass: u32,
    pub block_accounting: Arc<dyn BlockAccounting>,
    /// Where is said what has reached the devices.
    pub dirty: Dirty,
}

impl ObjSet {
    /// Bytes of memory that wait for the sync of `txg`; those under way are not among them.
    pub fn dirty_bytes(&self, txg: Txg) -> u64 {
        self.0.shared.dirty_bytes(txg)
    }

    /// Writes what `ctx.txg` changed and returns the pointer to the new root block; `None` when nothing was dirty.
    pub async fn sync(&self, ctx: &SyncCtx) -> Result<Option<BlockPointer>> {
        let mut dirty = self.0.shared.take_dirty(ctx.txg);
        let meta_touched = dirty.remove(&units::ObjectId::META_DNODE).is_some();
        if dirty.is_empty() && !meta_touched {
            return Ok(None);
        }
        // These are written last, when the sums are known.
        let accounts = dirty.split_off(&Account::FIRST_ID);
        for feature in lock(&self.0.features).iter() {
            ctx.block_accounting.uses(*feature);
        }
        let count = self.count();
        let mut under_way = FuturesUnordered::new();
        let mut todo = dirty.into_values();
        loop {
            while under_way.len() < OBJECTS
                && let Some(node) = todo.next()
            {
                under_way.push(self.sync_object(node, ctx, count.as_ref()));
            }
            match under_way.next().await {
                Some(result) => result?,
                None => break,
            }
        }
        drop(under_way);
        self.sync_accounts(count, !accounts.is_empty(), ctx).await?;
        // Patching dnodes has listed the meta-dnode again.
        self.0.shared.take_dirty(ctx.txg);
        let meta = sync_node(&self.0.meta.node, ctx).await?;
        let phys = meta.phys();
        meta.settle(&self.0.meta.node, &ctx.dirty);
        let root = self.write_root(phys, ctx).await?;
        self.0.shared.synced();
        Ok(Some(root))
    }

    fn count(&self) -> Option<Count> {
        let user_accounting = lock(&self.0.user_accounting).clone()?;
        Count::new(user_accounting, lock(&self.0.phys).flags)
    }

    /// Writes the sums of what users take; their dnodes go into the root block.
    async fn sync_accounts(&self, count: Option<Count>, is_dirty: bool, ctx: &SyncCtx) -> Result<()> {
        let counted = count.map(Count::finish).filter(|(_, sums)| !sums.is_empty());
        if counted.is_none() && !is_dirty {
            return Ok(());
        }
        if let Some((user_accounting, sums)) = counted {
            user_accounting.settle(self, &Tx::syncing(ctx.txg), sums).await?;
        }
        for account in Account::ALL {
            let Some(object) = self.accounting_object(account) else { continue };
            let synced = sync_node(&object.node, ctx).await?;
            let dnode = synced.phys();
            {
                let mut phys = lock(&self.0.phys);
                match account {
                    Account::User => phys.user_used = dnode,
                    Account::Group => phys.group_used = dnode,
                    Account::Project => phys.project_used = dnode,
                }
            }
            synced.settle(&object.node, &ctx.dirty);
        }
        Ok(())
    }

    async fn sync_object(&self, node: Arc<Node>, ctx: &SyncCtx, count: Option<&Count>) -> Result<()> {
        let synced = sync_node(&node, ctx).await?;
        // The slot of one that came to be in this txg was free before.
        if let Some(count) = count.filter(|_| !synced.frozen.created)
            && let Some(old) = self.dnode_phys(node.id).await?
        {
            count.take_out(&old);
        }
        let slots = usize::from(synced.frozen.attrs.slots);
        if slots > 1 {
            ctx.block_accounting.uses(Feature::LargeDnode);
        }
        let mut bytes = vec![0; slots * SLOT as usize];
        if !synced.frozen.destroyed {
            let mut phys = synced.phys();
            if let Some(count) = count {
                count.put_in(&mut phys);
            }
            bytes = phys.to_bytes(Endian::NATIVE);
        }
        self.0.meta.patch_at(&Tx::syncing(ctx.txg), node.id.0 * SLOT, &bytes).await?;
        let destroyed = synced.frozen.destroyed;
        synced.settle(&node, &ctx.dirty);
        self.note_dnode(node.id, destroyed);
        if destroyed {
            lock(&self.0.search).was_freed(node.id);
        }
        Ok(())
    }

    async fn write_root(&self, meta: DnodePhys, ctx: &SyncCtx) -> Result<BlockPointer> {
        let shared = &self.0.shared;
        let fill = fill_of(&meta.blkptrs);
        let data = {
            let mut phys = lock(&self.0.phys);
            phys.meta_dnode = meta;
            Buf::copy_from(&phys.to_bytes(Endian::NATIVE))
        };
        let old = self.root();
        let choice = shared.policy().choose(ObjectType::OBJSET, 0, 0, 0);
        let mut spec = shared.spec(self.0.meta.node.id, choice, ObjectType::OBJSET, 0, 0, ctx.txg, ctx.pass);
        spec.at = Bookmark::root(shared.id);
        spec.fill = fill;
        let new = shared.store.write(data, &old, spec).await?;
        replace(ctx, &old, &new);
        *lock(&self.0.root) = new.clone();
        Ok(new)
    }
}

impl Object {
    /// Patches within one block of the meta-dnode.
    async fn patch_at(&self, tx: &Tx, offset: u64, bytes: &[u8]) -> Result<()> {
        let size = self.block_size();
        self.patch_block(tx, offset / size, (offset % size) as usize, bytes).await
    }
}

/// How many blocks are below these pointers, as far as they say so.
fn fill_of(entries: &[BlockPointer]) -> u64 {
    entries.iter().map(BlockPointer::fill).fold(0, u64::saturating_add)
}

/// Tells the block accounting that `new` took the place of `old`; both at the same place are one block written again.
fn replace(ctx: &SyncCtx, old: &BlockPointer, new: &BlockPointer) -> bool {
    if same_block(old, new) {
        return false;
    }
    if !old.is_hole() {
        ctx.block_accounting.killed(old);
    }
    if !new.is_hole() {
        ctx.block_accounting.born(new);
    }
    true
}

/// An object whose blocks are on disk, but whose dnode is not yet.
struct Synced {
    frozen: Frozen,
    tree: Tree,
}

impl Synced {
    fn phys(&self) -> DnodePhys {
        let Attrs { kind, bonus_kind, block_size, slots, checksum, compression, flags, max_blkid, .. } =
            self.frozen.attrs;
        DnodePhys {
            kind,
            indirect_shift: self.tree.indirect_shift,
            levels: self.tree.levels,
            bonus_kind,
            checksum,
            compression,
            flags: match self.tree.spill {
                Some(_) => flags.with(DnodeFlags::USED_BYTES).with(DnodeFlags::SPILL_BLKPTR),
                None => flags.with(DnodeFlags::USED_BYTES).without(DnodeFlags::SPILL_BLKPTR),
            },
            data_block_sectors: (block_size >> 9) as u16,
            extra_slots: slots - 1,
            max_block_id: max_blkid,
            used: self.tree.used,
            blkptrs: self.tree.roots.clone(),
            bonus: self.frozen.bonus.to_vec(),
            spill: self.tree.spill.clone(),
        }
    }

    /// Makes the new tree the stable one, and drops the dirty record that it contains.
    fn settle(self, node: &Node, dirty: &Dirty) {
        let counted = {
            let mut state = node.lock();
            let dirty_record =
                state.dirty_records[self.frozen.txg.slot()].take().filter(|o| o.txg == self.frozen.txg);
            let dirty_record = dirty_record.expect("an overlay goes when its sync has come to its end");
            assert!(
                dirty_record.syncing && dirty_record.blocks.is_empty(),
                "all blocks of an overlay are written"
            );
            state.replace_tree(self.tree);
            dirty_record.counted
        };
        dirty.landed(Landed { memory: counted, ..Landed::default() });
    }
}

/// Writes the blocks of one object. The caller puts the dnode where it belongs, then settles.
async fn sync_node(node: &Arc<Node>, ctx: &SyncCtx) -> Result<Synced> {
    let (frozen, groups, stable) = {
        let mut state = node.lock();
        let (attrs, bonus) = (state.attrs.clone(), state.bonus.clone());
        state.is_changing();
        let dirty_record = state.dirty_records[ctx.txg.slot()]
            .get_or_insert_with(|| Box::new(DirtyRecord::new(ctx.txg, attrs, bonus)));
        assert_eq!(dirty_record.txg, ctx.txg, "an overlay is synced by its own txg");
        (dirty_record.begin_sync(), dirty_record.groups(), state.stable.clone())
    };
    let mut run = Run::new(node, ctx, &frozen, &stable);
    run.write_blocks(groups).await?;
    let Run { mut roots, levels, used, .. } = run;
    let mut used = stable.used.saturating_add_signed(used.into_inner());
    let (spill, spill_change) = sync_spill(node, ctx, &frozen, &stable).await?;
    used = used.saturating_add_signed(spill_change);
    if frozen.destroyed {
        roots.iter_mut().for_each(|bp| *bp = BlockPointer::HOLE);
    }
    let tree = Tree {
        levels,
        indirect_shift: frozen.attrs.indirect_shift,
        roots,
        spill,
        used,
        generation: stable.generation + 1,
        number: Default::default(),
    };
    Ok(Synced { frozen, tree })
}

/// The spill block as the txg leaves it, and by how much more or less the object is charged for that.
async fn sync_spill(
    node: &Arc<Node>,
    ctx: &SyncCtx,
    frozen: &Frozen,
    stable: &Tree,
) -> Result<(Option<BlockPointer>, i64)> {
    let store = &node.shared.store;
    let old = stable.spill.clone().unwrap_or(BlockPointer::HOLE);
    let new = match &frozen.spill {
        Spill::Written(data) if !frozen.destroyed => {
            let kind = frozen.attrs.bonus_kind;
            let choice = node.shared.policy().choose(kind, 0, 0, 0);
            let spec = node.shared.spec(node.id, choice, kind, 0, SPILL_BLKID, ctx.txg, ctx.pass);
            let new = store.write(data.clone(), &old, spec).await?;
            replace(ctx, &old, &new);
            Some(new)
        }
        Spill::Unchanged if !frozen.destroyed => return Ok((stable.spill.clone(), 0)),
        _ => {
            if !old.is_hole() {
                ctx.block_accounting.killed(&old);
            }
            None
        }
    };
    let charged = |bp: &BlockPointer| if bp.is_hole() { 0 } else { store.charged(bp) as i64 };
    let change = new.as_ref().map_or(0, charged) - charged(&old);
    Ok((new, change))
}

/// One object's sync under way.
struct Run<'a> {
    node: &'a Arc<Node>,
    ctx: &'a SyncCtx,
    frozen: &'a Frozen,
    stable: &'a Tree,
    levels: u8,
    fan_out_shift: u32,
    roots: Vec<BlockPointer>,
    used: AtomicI64,
    /// What each block of level 0 was promised of the devices.
    worst_leaf: u64,
}

/// A block of level 0 that the sync comes to.
enum Leaf {
    Data(Buf),
    Written(BlockPointer),
}

/// New pointers of one level, by block number.
type Changed = BTreeMap<u64, BlockPointer>;

impl<'a> Run<'a> {
    fn new(node: &'a Arc<Node>, ctx: &'a SyncCtx, frozen: &'a Frozen, stable: &'a Tree) -> Run<'a> {
        let levels = stable.levels.max(frozen.attrs.levels_needed());
        let roots = if levels > stable.levels {
            vec![BlockPointer::HOLE; stable.roots.len()]
        } else {
            stable.roots.clone()
        };
        let fan_out_shift = frozen.attrs.fan_out_shift();
        let worst_leaf = cost::of_leaf(&frozen.attrs, &node.shared);
        Run { node, ctx, frozen, stable, levels, fan_out_shift, roots, used: AtomicI64::new(0), worst_leaf }
    }

    fn fan_out(&self) -> u64 {
        1 << self.fan_out_shift
    }

    /// `groups` are the level-1 blocks under which blocks are written.
    async fn write_blocks(&mut self, groups: BTreeSet<u64>) -> Result<()> {
        if self.levels == 1 {
            return self.write_leaves_under_roots().await;
        }
        let groups = self.touched_groups(groups).await?;
        let this = &*self;
        let mut changed = this.run_groups(groups.into_iter(), |index| this.sync_leaf_group(index)).await?;
        for level in 2..self.levels {
            let parents = self.parents_of(&changed, level);
            let this = &*self;
            let children = &changed;
            changed = this
                .run_groups(parents.into_iter(), |index| this.sync_parent(level, index, children))
                .await?;
        }
        for (index, bp) in changed {
            self.roots[index as usize] = bp;
        }
        Ok(())
    }

    /// Runs `work` for each group, [`GROUPS`] at a time, and collects the pointers that changed.
    async fn run_groups<F: Future<Output = Result<Option<BlockPointer>>>>(
        &self,
        mut groups: impl Iterator<Item = u64>,
        work: impl Fn(u64) -> F,
    ) -> Result<Changed> {
        let mut changed = Changed::new();
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < GROUPS
                && let Some(index) = groups.next()
            {
                let work = work(index);
                under_way.push(async move { (index, work.await) });
            }
            let Some((index, result)) = under_way.next().await else { return Ok(changed) };
            if let Some(bp) = result? {
                changed.insert(index, bp);
            }
        }
    }

    /// The level-1 blocks under which something changes: those with blocks that are written, and with what is freed.
    async fn touched_groups(&self, mut groups: BTreeSet<u64>) -> Result<BTreeSet<u64>> {
        for range in self.frozen.freed.iter() {
            let last = range.end.saturating_sub(1) >> self.fan_out_shift;
            self.existing_groups(range.start >> self.fan_out_shift, last, &mut groups).await?;
        }
        if self.stable.levels == 1 {
            groups.insert(0); // the old roots move into it
        }
        Ok(groups)
    }

    /// Adds the level-1 blocks from `first` to `last` that the stable tree has.
    async fn existing_groups(&self, first: u64, last: u64, groups: &mut BTreeSet<u64>) -> Result<()> {
        if self.stable.levels < 2 {
            return Ok(());
        }
        // Descend from the roots, level by level, keeping only what exists.
        let top = self.stable.levels - 1;
        let mut here: Vec<(u64, BlockPointer)> =
            self.stable.roots.iter().cloned().enumerate().map(|(i, bp)| (i as u64, bp)).collect();
        for level in (1..=top).rev() {
            let shift = self.fan_out_shift * u32::from(level - 1);
            let (from, to) = (first.checked_shr(shift).unwrap_or(0), last.checked_shr(shift).unwrap_or(0));
            here.retain(|(index, bp)| !bp.is_hole() && (from..=to).contains(index));
            if level == 1 {
                break;
            }
            let mut below = Vec::new();
            for (index, bp) in &here {
                let buf = self.read_indirect(bp, level, *index).await?;
                for slot in 0..self.fan_out() {
                    below.push((
                        (index << self.fan_out_shift) + slot,
                        entry(&buf, slot as usize, bp.endian())?,
                    ));
                }
            }
            here = below;
        }
        groups.extend(here.into_iter().map(|(index, _)| index));
        Ok(())
    }

    async fn read_indirect(&self, bp: &BlockPointer, level: u8, blkid: u64) -> Result<Buf> {
        let at = Bookmark { objset: self.node.shared.id, object: self.node.id, level: level as i8, blkid };
        self.node.shared.read(bp, at, ReadClass::Demand).await
    }

    /// An indirect block as this txg finds it, with the pointer to it.
    async fn load_indirect(&self, level: u8, index: u64) -> Result<(BlockPointer, Pointers)> {
        let count = self.fan_out() as usize;
        if level >= self.stable.levels {
            let mut pointers = Pointers::holes(count);
            // A level that the tree has only from now on; its first block takes over the old roots.
            if level == self.stable.levels && index == 0 {
                for (slot, root) in self.stable.roots.iter().enumerate() {
                    pointers.set(slot, root);
                }
            }
            return Ok((BlockPointer::HOLE, pointers));
        }
        let old = self.stable.find(&self.node.shared, self.node.id, level, index).await?;
        if old.is_hole() {
            return Ok((old, Pointers::holes(count)));
        }
        let buf = self.read_indirect(&old, level, index).await?;
        let pointers = Pointers::of(&buf, count, old.endian())?;
        Ok((old, pointers))
    }

    /// Frees and writes the level-0 blocks under one level-1 block, then writes that. `None` when nothing changed.
    async fn sync_leaf_group(&self, index: u64) -> Result<Option<BlockPointer>> {
        let (old, mut pointers) = self.load_indirect(1, index).await?;
        let first = index << self.fan_out_shift;
        let mut touched = self.stable.levels == 1 && index == 0;
        for range in self.frozen.freed.overlap(first..first + self.fan_out()) {
            for blkid in range {
                let slot = (blkid - first) as usize;
                let mut bp = pointers.get(slot)?;
                if self.kill(&mut bp, 0) {
                    pointers.set(slot, &bp);
                    touched = true;
                }
            }
            world::breathe().await;
        }
        for (slot, new) in self.write_leaves(first, self.fan_out(), |slot| pointers.get(slot)).await? {
            pointers.set(slot, &new);
            touched = true;
        }
        if !touched {
            return Ok(None);
        }
        self.write_indirect(1, index, old, pointers).await.map(Some)
    }

    async fn write_leaves_under_roots(&mut self) -> Result<()> {
        let mut roots = std::mem::take(&mut self.roots);
        for range in self.frozen.freed.overlap(0..roots.len() as u64) {
            for blkid in range {
                self.kill(&mut roots[blkid as usize], 0);
            }
        }
        let count = roots.len() as u64;
        for (slot, new) in self.write_leaves(0, count, |slot| Ok(roots[slot].clone())).await? {
            roots[slot] = new;
        }
        self.roots = roots;
        Ok(())
    }

    /// Writes the dirty ones of `count` level-0 blocks from `first` on, to which the pointers `old` led. Answers the new
    /// pointers with their slots.
    async fn write_leaves(
        &self,
        first: u64,
        count: u64,
        old: impl Fn(usize) -> Result<BlockPointer>,
    ) -> Result<Vec<(usize, BlockPointer)>> {
        let mut under_way = FuturesUnordered::new();
        for (blkid, leaf) in self.dirty_blocks(first..first + count) {
            let slot = (blkid - first) as usize;
            let old = old(slot)?;
            under_way.push(async move { (slot, self.write_leaf(blkid, leaf, &old).await) });
        }
        let mut written = Vec::with_capacity(under_way.len());
        while let Some((slot, new)) = under_way.next().await {
            written.push((slot, new?));
        }
        Ok(written)
    }

    /// The blocks to be put into the tree: as data, or by the pointer where they were written before.
    fn dirty_blocks(&self, range: Range<u64>) -> Vec<(u64, Leaf)> {
        let state = self.node.lock();
        let Some(dirty_record) = state.dirty_record(self.ctx.txg) else { return Vec::new() };
        let leaf = |blkid, block: &Block| match (dirty_record.written.get(blkid), block.data()) {
            (Some(bp), _) => Leaf::Written(bp.clone()),
            (None, Some(data)) => Leaf::Data(data.clone()),
            (None, None) => panic!("a block that is not in memory is on its device"),
        };
        dirty_record.blocks.range(range).map(|(blkid, block)| (*blkid, leaf(blkid, block))).collect()
    }

    /// Writes a block, unless it was written before, and gives its memory back.
    async fn write_leaf(&self, blkid: u64, leaf: Leaf, old: &BlockPointer) -> Result<BlockPointer> {
        let new = match leaf {
            Leaf::Written(new) => new,
            Leaf::Data(data) => self.write_block(blkid, data, old).await?,
        };
        self.charge(old, &new);
        let charged = self.node.shared.store.charged(&new);
        let memory = {
            let mut state = self.node.lock();
            let dirty_record = state.dirty_records[self.ctx.txg.slot()].as_mut();
            dirty_record.map_or(0, |dirty_record| dirty_record.landed(blkid, new.clone()))
        };
        let unneeded = self.worst_leaf.saturating_sub(charged);
        self.ctx.dirty.landed(Landed { memory, unneeded, charged });
        world::breathe().await;
        Ok(new)
    }

    async fn write_block(&self, blkid: u64, data: Buf, old: &BlockPointer) -> Result<BlockPointer> {
        let Attrs { kind, checksum, compression, .. } = self.frozen.attrs;
        let shared = &self.node.shared;
        let choice = shared.policy().choose(kind, 0, checksum, compression);
        let mut spec = shared.spec(self.node.id, choice, kind, 0, blkid, self.ctx.txg, self.ctx.pass);
        if kind == ObjectType::DNODE {
            spec.fill = count_dnodes(&data);
        }
        shared.store.write(data, old, spec).await
    }

    /// The blocks of `level` whose children changed.
    fn parents_of(&self, children: &Changed, level: u8) -> BTreeSet<u64> {
        let mut parents: BTreeSet<u64> = children.keys().map(|c| c >> self.fan_out_shift).collect();
        if level == self.stable.levels {
            parents.insert(0); // the old roots move into it
        }
        parents
    }

    async fn sync_parent(&self, level: u8, index: u64, children: &Changed) -> Result<Option<BlockPointer>> {
        let (old, mut pointers) = self.load_indirect(level, index).await?;
        let first = index << self.fan_out_shift;
        for (child, bp) in children.range(first..first + self.fan_out()) {
            pointers.set((child - first) as usize, bp);
        }
        self.write_indirect(level, index, old, pointers).await.map(Some)
    }

    /// Writes an indirect block, or frees it when it has become all holes.
    async fn write_indirect(
        &self,
        level: u8,
        index: u64,
        old: BlockPointer,
        pointers: Pointers,
    ) -> Result<BlockPointer> {
        let Some(fill) = pointers.fill()? else {
            let mut bp = old;
            self.kill(&mut bp, level);
            return Ok(bp);
        };
        let Attrs { kind, checksum, compression, .. } = self.frozen.attrs;
        let shared = &self.node.shared;
        let choice = shared.policy().choose(kind, level, checksum, compression);
        let mut spec = shared.spec(self.node.id, choice, kind, level, index, self.ctx.txg, self.ctx.pass);
        spec.fill = fill;
        let new = shared.store.write(pointers.into_buf(), &old, spec).await?;
        self.charge(&old, &new);
        Ok(new)
    }

    /// Makes `bp` a hole. A hole that was a block remembers since when it is one, for incremental send.
    fn kill(&self, bp: &mut BlockPointer, level: u8) -> bool {
        if bp.is_hole() {
            return false;
        }
        let hole = if self.node.shared.policy().hole_birth && !self.frozen.destroyed {
            // What a damaged pointer holds within itself may claim any number of bytes.
            let lsize = Lsize(bp.lsize().0.max(1).next_multiple_of(SLOT));
            BlockPointer::Hole(Hole { lsize, kind: bp.kind(), level, birth: self.ctx.txg })
        } else {
            BlockPointer::HOLE
        };
        let old = std::mem::replace(bp, hole);
        self.charge(&old, bp);
        true
    }

    fn charge(&self, old: &BlockPointer, new: &BlockPointer) {
        if replace(self.ctx, old, new) {
            let store = &self.node.shared.store;
            self.used.fetch_add(store.charged(new) as i64 - store.charged(old) as i64, Ordering::Relaxed);
        }
    }
}
