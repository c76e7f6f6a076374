//! Making and unmaking objects: finding a free dnode slot.

use crate::attrs::{Attrs, SLOT};
use crate::lock::lock;
use crate::node::Node;
use crate::object::Object;
use crate::objset::ObjSet;
use crate::tree::Tree;
use ondisk::{DnodeFlags, ObjectType};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use txg::Tx;
use units::{Error, Kind, ObjectId, Result};

/// What a new object is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    pub kind: ObjectType,
    pub block_size: u32,
    /// log2 of the bytes of an indirect block; 0 for the usual 128 KiB.
    pub indirect_shift: u8,
    pub bonus_kind: ObjectType,
    pub bonus: Arc<[u8]>,
    /// How many 512-byte slots the dnode takes: 1 to 32.
    pub slots: u8,
}

impl NewObject {
    pub fn new(kind: ObjectType, block_size: u32) -> NewObject {
        NewObject {
            kind,
            block_size,
            indirect_shift: 0,
            bonus_kind: ObjectType::NONE,
            bonus: Arc::default(),
            slots: 1,
        }
    }

    #[must_use]
    pub fn with_bonus(mut self, kind: ObjectType, bonus: impl Into<Arc<[u8]>>) -> NewObject {
        self.bonus_kind = kind;
        self.bonus = bonus.into();
        self
    }

    #[must_use]
    pub fn with_indirect_shift(mut self, shift: u8) -> NewObject {
        self.indirect_shift = shift;
        self
    }

    pub(crate) fn attrs(&self) -> Attrs {
        // The roots take what the bonus leaves of the dnode: its 512-byte slots less 64 bytes of header.
        let room = usize::from(self.slots) * SLOT as usize - 64 - self.bonus.len();
        let roots = if self.bonus_kind == ObjectType::SA { 1 } else { (room / 128).clamp(1, 3) as u8 };
        Attrs {
            kind: self.kind,
            bonus_kind: self.bonus_kind,
            block_size: self.block_size,
            indirect_shift: if self.indirect_shift == 0 { 17 } else { self.indirect_shift },
            roots,
            slots: self.slots,
            checksum: 0,
            compression: 0,
            flags: DnodeFlags::USED_BYTES,
            max_blkid: 0,
        }
    }
}

impl ObjSet {
    /// Makes an object under the next free number.
    pub async fn allocate(&self, tx: &Tx, new: NewObject) -> Result<Object> {
        let per_block = self.dnodes_per_block();
        loop {
            let found = {
                let mut search = lock(&self.0.search);
                match search.take(per_block, new.slots) {
                    Some(id) => Ok(self.register(&search, id, &new)),
                    None => Err((search.next / per_block, search.changes)),
                }
            };
            match found {
                Ok(Some(node)) => return self.begin(tx, node),
                // It has an object already; the search goes on behind it.
                Ok(None) => {}
                Err((blkid, changes)) => {
                    let taken = self.taken_slots(blkid, per_block as usize).await?;
                    lock(&self.0.search).look_into(blkid, taken, changes);
                }
            }
        }
    }

    /// Makes an object under a number that is known to be free, as the fixed objects of a new object set have.
    pub fn claim(&self, tx: &Tx, id: ObjectId, new: &NewObject) -> Result<Object> {
        let node = {
            let mut search = lock(&self.0.search);
            search.was_claimed();
            self.register(&search, id, new)
        };
        self.begin(tx, node.ok_or_else(|| self.exists(id))?)
    }

    /// Makes an object under a number that the caller knows to be free.
    ///
    /// # Errors
    /// `Exists` when one of its slots is taken, or was until a txg that has not synced.
    pub async fn claim_free(&self, tx: &Tx, id: ObjectId, new: &NewObject) -> Result<Object> {
        let per_block = self.dnodes_per_block();
        let first = (id.0 % per_block) as usize;
        loop {
            let before = lock(&self.0.search).registered;
            let taken = self.taken_slots(id.0 / per_block, per_block as usize).await?;
            let is_free =
                taken.get(first..first + usize::from(new.slots)).is_some_and(|slots| !slots.contains(&true));
            if !is_free {
                return Err(self.exists(id));
            }
            let node = {
                let mut search = lock(&self.0.search);
                // Another number was given out while we looked, maybe one of these slots.
                if search.registered != before {
                    continue;
                }
                search.was_claimed();
                self.register(&search, id, new)
            };
            return self.begin(tx, node.ok_or_else(|| self.exists(id))?);
        }
    }

    fn exists(&self, id: ObjectId) -> Error {
        Error::new(Kind::Exists, "make object").at(format!("{}:{:x}", self.id(), id.0))
    }

    fn dnodes_per_block(&self) -> u64 {
        u64::from(self.0.meta.attrs().block_size) / SLOT
    }

    /// Lists a new object as open, and so its slots as taken, while the search is locked: no other search finds
    /// the same slots free before they are taken. `None` when there is an object of this number.
    fn register(&self, _: &MutexGuard<'_, Search>, id: ObjectId, new: &NewObject) -> Option<Arc<Node>> {
        let attrs = new.attrs();
        let tree = Tree::empty(attrs.roots, attrs.indirect_shift);
        let node = Node::new(id, self.0.shared.clone(), attrs, new.bonus.clone(), tree);
        Arc::ptr_eq(&self.adopt(node.clone()), &node).then_some(node)
    }

    /// A registered object comes to be in `tx`.
    fn begin(&self, tx: &Tx, node: Arc<Node>) -> Result<Object> {
        node.lock().dirty_record_mut(&node, tx)?.0.created = true;
        let object = Object { node };
        object.account(tx, true, 0, 0);
        self.0.objects.fetch_add(1, Ordering::Relaxed);
        Ok(object)
    }

    /// Frees an object and all its blocks.
    pub async fn free(&self, tx: &Tx, id: ObjectId) -> Result<()> {
        let object = self.object(id).await?;
        {
            let mut state = object.node.lock();
            let (dirty_record, _) = state.dirty_record_mut(&object.node, tx)?;
            dirty_record.destroyed = true;
            dirty_record.free(0..u64::MAX, &*self.0.shared.store);
            state.data_changed(tx.txg());
            state.freed_in = Some(tx.txg());
        }
        object.account(tx, true, 0, 0);
        self.0.objects.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Which slots of a block of dnodes are in use, by objects on disk or in memory.
    async fn taken_slots(&self, blkid: u64, per_block: usize) -> Result<Vec<bool>> {
        loop {
            let before = self.dnode_changes();
            let mut taken = vec![false; per_block];
            if let Some(block) = self.0.meta.read_block_if_any(blkid).await? {
                mark_allocated(&block, &mut taken);
            }
            let first = blkid * per_block as u64;
            for i in 0..per_block {
                let id = ObjectId(first + i as u64);
                let slots = self.open_node(id).map_or(0, |node| node.attrs().slots.into());
                taken[i..per_block.min(i + slots)].fill(true);
                taken[i] |= id.0 == 0;
            }
            // One that was new may have been synced and left while we looked.
            if self.dnode_changes() == before {
                return Ok(taken);
            }
        }
    }
}

/// The search for free numbers: upwards, a block of dnodes at a time.
///
/// All numbers that the search has given out are below `next`. A slot from there on that was free in the block and in
/// memory stays so until a number is claimed beside the search: then the block is looked at again. A number is given out
/// and its object registered ([`ObjSet::register`]) in one step, under the lock of the search: when a neighbour is freed
/// and the search begins again before it, the slots are seen to be taken.
#[derive(Debug)]
pub(crate) struct Search {
    next: u64,
    /// Which slots are taken, of the block that `next` is in.
    taken: Option<(u64, Vec<bool>)>,
    /// How often what is known of a block may have become untrue.
    changes: u64,
    /// How many numbers were given out or claimed.
    registered: u64,
}

impl Search {
    pub fn from(next: u64) -> Search {
        Search { next, taken: None, changes: 0, registered: 0 }
    }

    /// The next number with so many free slots in the block that was looked into. `None` when it has none, or none was.
    fn take(&mut self, per_block: u64, slots: u8) -> Option<ObjectId> {
        let (blkid, taken) = self.taken.as_ref().filter(|(blkid, _)| *blkid == self.next / per_block)?;
        let first = (self.next % per_block) as usize;
        let is_free = |run: &[bool]| !run.contains(&true);
        match taken[first..].windows(slots.into()).position(is_free) {
            Some(i) => {
                let id = self.next + i as u64;
                self.next = id + u64::from(slots);
                self.registered += 1;
                Some(ObjectId(id))
            }
            None => {
                self.next = (*blkid + 1) * per_block;
                None
            }
        }
    }

    /// What a block was like since there were so many `changes`.
    fn look_into(&mut self, blkid: u64, taken: Vec<bool>, changes: u64) {
        if self.changes == changes {
            self.taken = Some((blkid, taken));
        }
    }

    fn was_claimed(&mut self) {
        self.registered += 1;
        self.look_again();
    }

    fn look_again(&mut self) {
        self.taken = None;
        self.changes += 1;
    }

    /// The search begins there again, if it is past it.
    pub fn was_freed(&mut self, id: ObjectId) {
        if id.0 < self.next {
            self.next = id.0;
            self.look_again();
        }
    }
}

/// Marks the slots that dnodes on disk take, the further slots of large ones included.
fn mark_allocated(block: &[u8], taken: &mut [bool]) {
    let mut i = 0;
    while i < taken.len() {
        let at = i * SLOT as usize;
        let extra = if block[at] == 0 { 0 } else { usize::from(block[at + 12]) };
        let end = (i + 1 + extra).min(taken.len());
        if block[at] != 0 {
            taken[i..end].fill(true);
        }
        i = end;
    }
}

/// How many dnodes a block holds: the `fill` of the pointer to it.
pub(crate) fn count_dnodes(block: &[u8]) -> u64 {
    let (mut at, mut count) = (0, 0);
    while at < block.len() {
        let kind = block[at];
        count += u64::from(kind != 0);
        at += SLOT as usize * (1 + if kind == 0 { 0 } else { usize::from(block[at + 12]) });
    }
    count
}
