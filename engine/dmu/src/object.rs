//! An open object: reading it, and changing it within a transaction.

mod spill;

use crate::attrs::Attrs;
use crate::cost;
use crate::dirty_record::{DirtyRecord, Found};
use crate::node::Node;
use crate::tree::Tree;
use ondisk::{BlockPointer, DnodePhys};
use std::ops::Range;
use std::sync::Arc;
use txg::Tx;
use units::{Checksum, Error, Kind, ObjectId, Result};
use world::{Buf, IoBuf};
use zio::{Bookmark, Name, ReadClass};

/// A handle; clones are the same object.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) node: Arc<Node>,
}

/// What is in memory about a block.
struct Looked {
    place: Lookup,
    /// Of the object's blocks.
    size: u32,
    /// Of the object's data.
    version: u64,
}

/// Where a block is to be had.
enum Lookup {
    Memory(Buf),
    Hole,
    /// On the devices, as the stable tree says; or, where there is a pointer, as the sync has written it, whose tree comes
    /// after this one.
    Device(Arc<Tree>, Option<BlockPointer>),
}

/// What a look for a block in memory found.
#[derive(Debug)]
pub enum Sought {
    /// `None`: the block is a hole.
    Found(Option<Buf>),
    Missed(Box<Missed>),
}

/// A block that is not in memory, and where it is: [`Object::read_missed`] goes on from there.
#[derive(Debug)]
pub struct Missed {
    blkid: u64,
    /// Of the object's blocks.
    size: u32,
    /// Of the object's data.
    version: u64,
    tree: Arc<Tree>,
    /// Unknown when the tree itself is not all in memory.
    bp: Option<BlockPointer>,
}

/// What was read from a device or found in the cache.
struct Read {
    buf: Buf,
    /// A checksum says that these are the bytes that were written.
    is_verified: bool,
    is_from_device: bool,
}

/// A block as a reader gets it.
struct Got {
    /// `None` for a hole.
    buf: Option<Buf>,
    /// Of the object's blocks.
    size: usize,
    /// Of the object's data.
    version: u64,
    is_from_device: bool,
}

/// How far an extent reaches, by what is in memory.
enum Reach {
    /// Whether it is data, and where it ends.
    Known(bool, u64),
    /// The tree knows, up to here.
    Tree(Arc<Tree>, u64),
}

impl Object {
    pub fn id(&self) -> ObjectId {
        self.node.id
    }

    pub fn attrs(&self) -> Attrs {
        self.node.attrs()
    }

    pub fn block_size(&self) -> u64 {
        u64::from(self.node.lock().attrs.block_size)
    }

    /// What the object is charged for, in bytes, as of the last sync.
    pub fn used(&self) -> u64 {
        self.node.lock().stable.used
    }

    /// The dnode's bonus area, changes of the open txg included.
    pub fn bonus(&self) -> Arc<[u8]> {
        self.node.lock().bonus.clone()
    }

    /// How often the data has changed since the object was opened: what was read at a version is what there is for as
    /// long as the version stays the same.
    ///
    /// Each of [`Object::write_block`], [`Object::patch_block`], [`Object::set_block_size`] and [`Object::free_blocks`]
    /// adds one when it changes something. A change in a txg before the newest that has changed the object adds two:
    /// what is read then need not show it. That a txg is synced changes nothing.
    pub fn version(&self) -> u64 {
        self.node.lock().version
    }

    fn lookup(&self, blkid: u64) -> Looked {
        let state = self.node.lock();
        let looked = |place| Looked { place, size: state.attrs.block_size, version: state.version };
        for dirty_record in state.dirty_records_newest_first() {
            match dirty_record.find(blkid) {
                Found::Data(data) => return looked(Lookup::Memory(data.clone())),
                Found::Written(bp) if bp.is_hole() => return looked(Lookup::Hole),
                Found::Written(bp) => {
                    return looked(Lookup::Device(state.stable.clone(), Some(bp.clone())));
                }
                Found::Hole => return looked(Lookup::Hole),
                Found::NotHere => {}
            }
        }
        state.note_clean(&self.node.shared);
        looked(Lookup::Device(state.stable.clone(), None))
    }

    /// One whole level-0 block, if no txg has changed the object since the last sync and the core has the block at hand.
    /// `None` says nothing of what is in memory.
    pub fn block_at_hand(&self, blkid: u64) -> Option<Buf> {
        let tree = self.node.clean_tree()?;
        self.node.shared.store.cached_named(Name { tree, index: blkid })
    }

    /// A block of the tree from memory. It is named, to be [at hand](Object::block_at_hand) from then on.
    fn cached_in(&self, tree: &Tree, bp: &BlockPointer, blkid: u64, size: u32) -> Option<Buf> {
        let shared = &self.node.shared;
        if bp.lsize().0 != u64::from(size) {
            // Blocks are longer by now.
            return shared.store.cached(bp);
        }
        shared.store.cached_and_named(bp, Name { tree: tree.number(shared), index: blkid })
    }

    /// Whether `data`, the very buffer, is the newest of a block and in memory only: what is on disk by now is another
    /// matter.
    pub fn is_dirty_block(&self, blkid: u64, data: &Buf) -> bool {
        match self.lookup(blkid).place {
            Lookup::Memory(newest) => newest.as_ptr() == data.as_ptr() && newest.len() == data.len(),
            Lookup::Hole | Lookup::Device(..) => false,
        }
    }

    /// One whole level-0 block, shared, not copied. Zeros for a hole.
    pub async fn read_block(&self, blkid: u64) -> Result<Buf> {
        match self.block_at_hand(blkid) {
            Some(buf) => Ok(buf),
            None => Ok(self.read_versioned(blkid).await?.0),
        }
    }

    /// As [`Object::read_block`], with the [`Object::version`] of the data that the block is from.
    pub async fn read_versioned(&self, blkid: u64) -> Result<(Buf, u64)> {
        let Got { buf, size, version, .. } = self.get_block(blkid, ReadClass::Demand).await?;
        Ok((buf.unwrap_or_else(|| self.node.shared.zeros(size)), version))
    }

    /// As [`Object::read_block`], of a block that is not to stay in the cache: it is had from there, or from a txg that is
    /// not synced, where it is; else it is read from its device and leaves nothing. Says too whether a device was asked.
    pub async fn read_block_past_cache(&self, blkid: u64) -> Result<(Buf, bool)> {
        if let Some(buf) = self.block_at_hand(blkid) {
            return Ok((buf, false));
        }
        let Got { buf, size, is_from_device, .. } = self.get_block(blkid, ReadClass::Passing).await?;
        Ok((buf.unwrap_or_else(|| self.node.shared.zeros(size)), is_from_device))
    }

    /// One whole level-0 block, or `None` for a hole.
    pub async fn read_block_if_any(&self, blkid: u64) -> Result<Option<Buf>> {
        Ok(self.get_block(blkid, ReadClass::Demand).await?.buf)
    }

    /// One whole level-0 block, or `None` for a hole, if no device need be asked.
    pub fn seek_block(&self, blkid: u64) -> Sought {
        match self.seek(blkid) {
            Ok(Got { buf, .. }) => Sought::Found(buf),
            Err(missed) => Sought::Missed(missed),
        }
    }

    /// Reads a block that was [not in memory](Object::seek_block) just now; `None` for a hole.
    pub async fn read_missed(&self, missed: Box<Missed>) -> Result<Option<Buf>> {
        let blkid = missed.blkid;
        match self.read_from(missed, ReadClass::Demand).await? {
            Some(got) => Ok(got.buf),
            None => self.read_block_if_any(blkid).await,
        }
    }

    async fn get_block(&self, blkid: u64, class: ReadClass) -> Result<Got> {
        loop {
            match self.seek(blkid) {
                Ok(got) => return Ok(got),
                Err(missed) => {
                    if let Some(got) = self.read_from(missed, class).await? {
                        return Ok(got);
                    }
                }
            }
        }
    }

    fn seek(&self, blkid: u64) -> std::result::Result<Got, Box<Missed>> {
        let Looked { place, size, version } = self.lookup(blkid);
        let (tree, written) = match place {
            Lookup::Memory(buf) => return Ok(Got::of(Some(buf), size, version)),
            Lookup::Hole => return Ok(Got::of(None, size, version)),
            Lookup::Device(tree, written) => (tree, written),
        };
        let node = &self.node;
        let is_of_tree = written.is_none();
        // What is wrong in the tree is said by the read.
        let found = written.or_else(|| tree.find_cached(&node.shared, node.id, 0, blkid)?.ok());
        let cached = match &found {
            None => None,
            Some(bp) if bp.is_hole() => return Ok(Got::of(None, size, version)),
            Some(bp) if is_of_tree => self.cached_in(&tree, bp, blkid, size),
            Some(bp) => node.shared.store.cached(bp),
        };
        match cached {
            Some(buf) => Ok(Got::of(Some(buf), size, version)),
            None => Err(Box::new(Missed { blkid, size, version, tree, bp: found })),
        }
    }

    /// Whether the tree that was walked is not the stable one any more. Then its blocks may have been reused meanwhile,
    /// and what was read says nothing.
    pub(crate) fn is_replaced(&self, tree: &Arc<Tree>) -> bool {
        !Arc::ptr_eq(tree, &self.node.lock().stable)
    }

    /// `None`: what was read says nothing, and the block must be looked for again.
    async fn read_from(&self, missed: Box<Missed>, class: ReadClass) -> Result<Option<Got>> {
        let Missed { size, version, .. } = *missed;
        match self.read_at(&missed, class).await {
            Ok(Some(Read { is_verified: false, .. })) | Err(_) if self.is_replaced(&missed.tree) => Ok(None),
            Ok(None) => Ok(Some(Got::of(None, size, version))),
            Ok(Some(Read { buf, is_from_device, .. })) => {
                Ok(Some(Got { is_from_device, ..Got::of(Some(buf), size, version) }))
            }
            Err(e) => Err(e),
        }
    }

    async fn read_at(&self, missed: &Missed, class: ReadClass) -> Result<Option<Read>> {
        let (node, &Missed { blkid, size, ref tree, .. }) = (&self.node, missed);
        let found;
        let bp = match &missed.bp {
            Some(bp) => bp,
            None => {
                found = tree.find(&node.shared, node.id, 0, blkid).await?;
                if found.is_hole() {
                    return Ok(None);
                }
                if let Some(buf) = self.cached_in(tree, &found, blkid, size) {
                    return Ok(Some(Read { buf, is_verified: is_verified(&found), is_from_device: false }));
                }
                &found
            }
        };
        let at = Bookmark { objset: node.shared.id, object: node.id, level: 0, blkid };
        let buf = node.shared.fetch(bp, at, class).await?;
        let is_from_device = bp.as_plain().is_some();
        Ok(Some(Read { buf, is_verified: is_verified(bp), is_from_device }))
    }

    /// Whether the block is a hole, without reading its data.
    pub async fn is_hole(&self, blkid: u64) -> Result<bool> {
        loop {
            let tree = match self.lookup(blkid).place {
                Lookup::Memory(_) | Lookup::Device(_, Some(_)) => return Ok(false),
                Lookup::Hole => return Ok(true),
                Lookup::Device(tree, None) => tree,
            };
            match tree.find(&self.node.shared, self.node.id, 0, blkid).await {
                Err(_) if self.is_replaced(&tree) => continue,
                found => return Ok(found?.is_hole()),
            }
        }
    }

    /// Whether `blkid` holds data, and the number of the first block after it that may be different. It asks no more
    /// than the indirect blocks; a large hole is one answer.
    pub async fn extent(&self, blkid: u64) -> Result<(bool, u64)> {
        loop {
            let (tree, end) = match self.dirty_extent(blkid) {
                Reach::Known(is_data, end) => return Ok((is_data, end)),
                Reach::Tree(tree, end) => (tree, end),
            };
            match tree.find_run(&self.node.shared, self.node.id, 0, blkid).await {
                Err(_) if self.is_replaced(&tree) => continue,
                found => return found.map(|(bp, run)| (!bp.is_hole(), end.min(run))),
            }
        }
    }

    /// As [`Object::extent`] if no device need be asked.
    pub fn cached_extent(&self, blkid: u64) -> Option<(bool, u64)> {
        let (tree, end) = match self.dirty_extent(blkid) {
            Reach::Known(is_data, end) => return Some((is_data, end)),
            Reach::Tree(tree, end) => (tree, end),
        };
        let (bp, run) = tree.find_run_cached(&self.node.shared, self.node.id, 0, blkid)?.ok()?;
        Some((!bp.is_hole(), end.min(run)))
    }

    /// What the txgs that are not synced yet know of an extent.
    fn dirty_extent(&self, blkid: u64) -> Reach {
        let state = self.node.lock();
        let mut end = u64::MAX;
        for dirty_record in state.dirty_records_newest_first() {
            let next_write = dirty_record.next_written(blkid).unwrap_or(u64::MAX);
            if next_write == blkid {
                let is_data = !matches!(dirty_record.find(blkid), Found::Written(bp) if bp.is_hole());
                return Reach::Known(is_data, blkid + 1);
            }
            end = end.min(next_write);
            if let Some(freed) = dirty_record.freed.overlap(blkid..u64::MAX).next() {
                if freed.start == blkid {
                    return Reach::Known(false, end.min(freed.end));
                }
                end = end.min(freed.start);
            }
        }
        Reach::Tree(state.stable.clone(), end)
    }

    /// `len` bytes from `offset`; zeros in holes and past the end.
    pub async fn read(&self, offset: u64, len: usize) -> Result<Buf> {
        let size = self.block_size();
        let (first, within) = (offset / size, (offset % size) as usize);
        if within + len <= size as usize {
            return Ok(self.read_block(first).await?.slice(within..within + len));
        }
        let mut out = IoBuf::scratch(len);
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let (blkid, within) = (at / size, (at % size) as usize);
            let n = (size as usize - within).min(len - done);
            let block = self.read_block(blkid).await?;
            out[done..done + n].copy_from_slice(&block[within..within + n]);
            done += n;
        }
        Ok(out.freeze())
    }

    /// Replaces one whole level-0 block.
    ///
    /// # Panics
    /// When `data` is not exactly one block: blocks are written whole or by [`Object::write`].
    pub fn write_block(&self, tx: &Tx, blkid: u64, data: Buf) -> Result<()> {
        let node = &self.node;
        let len = data.len() as u64;
        let (fresh, more, cost) = {
            let mut state = node.lock();
            assert_eq!(len, u64::from(state.attrs.block_size), "a block is written whole");
            state.attrs.max_blkid = state.attrs.max_blkid.max(blkid);
            let cost = cost::of_block(&state, &node.shared, tx, blkid);
            let max = state.attrs.max_blkid;
            let (dirty_record, fresh) = state.dirty_record_mut(node, tx)?;
            dirty_record.attrs.max_blkid = dirty_record.attrs.max_blkid.max(blkid).min(max);
            let more = dirty_record.put(blkid, data, &*node.shared.store);
            dirty_record.count(tx, more);
            state.data_changed(tx.txg());
            (fresh, more, cost)
        };
        self.account(tx, fresh, more, cost);
        Ok(())
    }

    /// Writes `bytes` at `offset`. Blocks written in part are read first, so writers of one block take turns: that is
    /// the caller's to see to.
    pub async fn write(&self, tx: &Tx, offset: u64, bytes: &[u8]) -> Result<()> {
        let size = self.block_size();
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (blkid, within) = (at / size, (at % size) as usize);
            let n = (size as usize - within).min(bytes.len() - done);
            let part = &bytes[done..done + n];
            if n == size as usize {
                self.write_block(tx, blkid, Buf::copy_from(part))?;
            } else {
                self.patch_block(tx, blkid, within, part).await?;
            }
            done += n;
        }
        Ok(())
    }

    /// Changes part of one block. A block that this txg has already dirtied is changed in place.
    pub async fn patch_block(&self, tx: &Tx, blkid: u64, within: usize, part: &[u8]) -> Result<()> {
        if self.patch_dirty(tx, blkid, within, part) {
            return Ok(());
        }
        let mut block = match self.take_block(blkid) {
            Some(block) => block,
            None => self.read_block(blkid).await?,
        };
        // A patch of another part of the same block may have come first while we read.
        if self.patch_dirty(tx, blkid, within, part) {
            return Ok(());
        }
        if block.capacity() >= 2 * block.len() {
            // A slice: its memory would live as long as the block does.
            block = Buf::copy_from(&block);
        }
        block.make_mut()[within..within + part.len()].copy_from_slice(part);
        self.write_block(tx, blkid, block)
    }

    /// The block if no device need be asked, to be replaced by the caller: out of the cache, so that it is changed where it
    /// is if no reader has it, and is not in memory twice. A snapshot that has the block reads it from its device again.
    fn take_block(&self, blkid: u64) -> Option<Buf> {
        let Looked { place, size, .. } = self.lookup(blkid);
        let (node, zeros) = (&self.node, || self.node.shared.zeros(size as usize));
        let bp = match place {
            Lookup::Memory(buf) => return Some(fit(buf, size)),
            Lookup::Hole => return Some(zeros()),
            Lookup::Device(_, Some(bp)) => bp,
            Lookup::Device(tree, None) => tree.find_cached(&node.shared, node.id, 0, blkid)?.ok()?,
        };
        if bp.is_hole() {
            return Some(zeros());
        }
        node.shared.store.take_cached(&bp).map(|buf| fit(buf, size))
    }

    fn patch_dirty(&self, tx: &Tx, blkid: u64, within: usize, part: &[u8]) -> bool {
        let cost = {
            let mut state = self.node.lock();
            let Some(dirty_record) = state.dirty_record(tx.txg()) else { return false };
            // A block that waits in memory alone costs nothing more: that is how most are, and they are looked up once.
            let cost = match dirty_record.written.contains_key(&blkid) {
                true => cost::of_block(&state, &self.node.shared, tx, blkid),
                false => 0,
            };
            let store = &*self.node.shared.store;
            let dirty_record = state.existing_dirty_record_mut(tx.txg());
            let Some(slot) = dirty_record.and_then(|o| o.block_mut(blkid, store)) else { return false };
            slot.make_mut()[within..within + part.len()].copy_from_slice(part);
            state.data_changed(tx.txg());
            cost
        };
        tx.charge(cost);
        true
    }

    /// Frees `len` bytes from `offset`, to the end with `u64::MAX`: whole blocks become holes, parts become zeros.
    pub async fn free_range(&self, tx: &Tx, offset: u64, len: u64) -> Result<()> {
        let size = self.block_size();
        let end = offset.saturating_add(len).min(self.attrs().size_bound());
        if offset >= end {
            return Ok(());
        }
        let (first_whole, end_whole) = (offset.div_ceil(size), end / size);
        if first_whole > end_whole {
            return self.zero(tx, offset, end - offset).await;
        }
        if offset < first_whole * size {
            self.zero(tx, offset, first_whole * size - offset).await?;
        }
        if end > end_whole * size {
            self.zero(tx, end_whole * size, end - end_whole * size).await?;
        }
        self.free_blocks(tx, first_whole..end_whole)
    }

    /// Zeros part of one block, unless it is a hole already.
    async fn zero(&self, tx: &Tx, offset: u64, len: u64) -> Result<()> {
        let size = self.block_size();
        if self.is_hole(offset / size).await? {
            return Ok(());
        }
        self.patch_block(tx, offset / size, (offset % size) as usize, &self.node.shared.zeros(len as usize))
            .await
    }

    /// Makes whole blocks holes.
    pub fn free_blocks(&self, tx: &Tx, blocks: Range<u64>) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let node = &self.node;
        let (fresh, cost) = {
            let mut state = node.lock();
            let cost = cost::of_freeing(&state, &node.shared, tx, &blocks);
            let to_the_end = blocks.end > state.attrs.max_blkid;
            if to_the_end {
                state.attrs.max_blkid = blocks.start.saturating_sub(1).min(state.attrs.max_blkid);
            }
            let max = state.attrs.max_blkid;
            let (dirty_record, fresh) = state.dirty_record_mut(node, tx)?;
            // The range may reach past what this txg's tree has; what is not there need not be freed.
            dirty_record.free(blocks, &*node.shared.store);
            if to_the_end {
                dirty_record.attrs.max_blkid = max;
            }
            state.data_changed(tx.txg());
            (fresh, cost)
        };
        self.account(tx, fresh, 0, cost);
        Ok(())
    }

    /// Replaces the bonus area.
    pub fn set_bonus(&self, tx: &Tx, bytes: impl Into<Arc<[u8]>>) -> Result<()> {
        let bytes = bytes.into();
        self.change(tx, |_, bonus| bonus.clone_from(&bytes))
    }

    /// Marks the bonus area as another kind of structure, with new content.
    pub fn set_bonus_kind(
        &self,
        tx: &Tx,
        kind: ondisk::ObjectType,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<()> {
        let bytes = bytes.into();
        self.change(tx, |attrs, bonus| {
            attrs.bonus_kind = kind;
            bonus.clone_from(&bytes);
        })
    }

    /// Changes the kind of an object, as when it becomes a ZAP besides.
    pub fn set_kind(&self, tx: &Tx, kind: ondisk::ObjectType) -> Result<()> {
        self.change(tx, |attrs, _| attrs.kind = kind)
    }

    pub(crate) fn change(&self, tx: &Tx, change: impl Fn(&mut Attrs, &mut Arc<[u8]>)) -> Result<()> {
        let node = &self.node;
        let fresh = {
            let mut guard = node.lock();
            let state = &mut *guard;
            let (mut attrs, mut bonus) = (state.attrs.clone(), state.bonus.clone());
            change(&mut attrs, &mut bonus);
            self.check_room(&attrs, bonus.len(), state.has_spill())?;
            (state.attrs, state.bonus) = (attrs, bonus);
            let (dirty_record, fresh) = state.dirty_record_mut(node, tx)?;
            change(&mut dirty_record.attrs, &mut dirty_record.bonus);
            fresh
        };
        self.account(tx, fresh, 0, 0);
        Ok(())
    }

    /// The dnode must hold its bonus area beside its pointers. A damaged one may have more pointers, or fewer slots, than
    /// what is in its bonus area leaves room for.
    pub(crate) fn check_room(&self, attrs: &Attrs, bonus: usize, has_spill: bool) -> Result<()> {
        let room = DnodePhys::bonus_max(attrs.slots.into(), attrs.roots.into(), has_spill);
        if bonus > room {
            let node = &self.node;
            return Err(Error::corrupt(format!("dnode: a bonus of {bonus} bytes where {room} fit"))
                .at(format!("object {}:{:x}", node.shared.id, node.id.0)));
        }
        Ok(())
    }

    /// Changes the size of an object's only block, keeping its content. A block that this txg has already dirtied grows
    /// in place, as long as its memory has the room.
    pub async fn set_block_size(&self, tx: &Tx, size: u32) -> Result<()> {
        let attrs = self.attrs();
        if attrs.block_size == size {
            return Ok(());
        }
        if attrs.max_blkid > 0 {
            return Err(Error::new(Kind::Invalid, "change the block size of an object of several blocks"));
        }
        if self.resize_dirty(tx, size) {
            return Ok(());
        }
        let mut old = self.read_block_if_any(0).await?;
        if self.resize_dirty(tx, size) {
            return Ok(());
        }
        if let Some(old) = &mut old {
            old.resize(size as usize);
        }
        let node = &self.node;
        let (fresh, more, cost) = {
            let mut state = node.lock();
            let (dirty_record, fresh) = state.dirty_record_mut(node, tx)?;
            dirty_record.attrs.block_size = size;
            let more = old.map_or(0, |block| dirty_record.put(0, block, &*node.shared.store));
            dirty_record.count(tx, more);
            state.attrs.block_size = size;
            state.data_changed(tx.txg());
            (fresh, more, cost::of_size(&state, &node.shared, tx, size))
        };
        self.account(tx, fresh, more, cost);
        Ok(())
    }

    fn resize_dirty(&self, tx: &Tx, size: u32) -> bool {
        let (more, cost) = {
            let mut state = self.node.lock();
            let Some(dirty_record) = state.existing_dirty_record_mut(tx.txg()) else { return false };
            let Some(block) = dirty_record.block_mut(0, &*self.node.shared.store) else { return false };
            let had = block.len();
            block.resize(size as usize);
            let more = (size as usize).saturating_sub(had);
            dirty_record.attrs.block_size = size;
            dirty_record.count(tx, more as u64);
            state.attrs.block_size = size;
            state.data_changed(tx.txg());
            (more, cost::of_size(&state, &self.node.shared, tx, more as u32))
        };
        self.account(tx, false, more as u64, cost);
        true
    }

    /// Counts what `tx` has dirtied: whether it is the first change of the object in its txg, bytes of memory, and the
    /// [`cost`] of its blocks.
    pub(crate) fn account(&self, tx: &Tx, fresh: bool, bytes: u64, mut cost: u64) {
        if fresh {
            let first_in = self.node.shared.list_dirty(&self.node, tx.txg());
            cost += cost::of_dnode(&self.node.shared, first_in);
        }
        tx.changed(bytes + if fresh { DirtyRecord::OWN_BYTES } else { 0 }, cost);
    }
}

impl Got {
    /// What was had from memory.
    fn of(buf: Option<Buf>, size: u32, version: u64) -> Got {
        Got { buf: buf.map(|buf| fit(buf, size)), size: size as usize, version, is_from_device: false }
    }
}

/// Whether a checksum tells that bytes are those of this pointer.
fn is_verified(bp: &BlockPointer) -> bool {
    bp.as_plain().is_none_or(|plain| plain.checksum_kind != Checksum::Off)
}

/// A block as long as blocks are now: one written before the block size changed is extended with zeros.
fn fit(mut buf: Buf, size: u32) -> Buf {
    buf.resize(size as usize);
    buf
}
