//! One object in memory: its attributes, the stable tree and the dirty records.

use crate::attrs::Attrs;
use crate::dirty_record::DirtyRecord;
use crate::shared::Shared;
use crate::spill::Spill;
use crate::tree::Tree;
use ondisk::DnodePhys;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use txg::Tx;
use units::{Error, Kind, ObjectId, Result, Txg};

pub(crate) struct Node {
    pub id: ObjectId,
    pub shared: Arc<Shared>,
    state: Mutex<State>,
    /// The number of the stable tree while no txg that is not synced has changed the object, else 0: then what is under that
    /// tree is the newest, and can be had without the lock. Set and cleared under the lock; apart from it, as each reader
    /// reads it.
    clean: Arc<Clean>,
}

/// In a line of its own.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Clean(AtomicU64);

pub(crate) struct State {
    /// The newest attributes and bonus, changes of the open txg included.
    pub attrs: Attrs,
    pub bonus: Arc<[u8]>,
    /// As of the last synced txg.
    pub stable: Arc<Tree>,
    /// Changed by [`State::dirty_record_mut`] and the sync only.
    pub dirty_records: [Option<Box<DirtyRecord>>; Txg::SLOTS],
    /// The txg that frees the object; it does not change after that.
    pub freed_in: Option<Txg>,
    /// See [`crate::Object::version`].
    pub version: u64,
    clean: Arc<Clean>,
}

impl Node {
    pub fn new(id: ObjectId, shared: Arc<Shared>, attrs: Attrs, bonus: Arc<[u8]>, stable: Tree) -> Arc<Node> {
        let state = State {
            attrs,
            bonus,
            stable: Arc::new(stable),
            dirty_records: Default::default(),
            freed_in: None,
            version: 0,
            clean: Arc::default(),
        };
        let clean = state.clean.clone();
        Arc::new(Node { id, shared, state: Mutex::new(state), clean })
    }

    /// The number of the tree that says all, if there is one.
    pub fn clean_tree(&self) -> Option<u64> {
        Some(self.clean.0.load(Ordering::Acquire)).filter(|&number| number != 0)
    }

    /// A node as a dnode on disk describes it.
    pub fn from_phys(id: ObjectId, shared: Arc<Shared>, phys: &DnodePhys) -> Arc<Node> {
        let attrs = Attrs {
            kind: phys.kind,
            bonus_kind: phys.bonus_kind,
            block_size: phys.data_block_size().0 as u32,
            indirect_shift: phys.indirect_shift,
            roots: phys.blkptrs.len() as u8,
            slots: phys.slots() as u8,
            checksum: phys.checksum,
            compression: phys.compression,
            flags: phys.flags,
            max_blkid: phys.max_block_id,
        };
        Node::new(id, shared, attrs, phys.bonus.as_slice().into(), Tree::from_phys(phys))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is a few assignments that leave it whole.
        crate::lock::lock(&self.state)
    }

    pub fn attrs(&self) -> Attrs {
        self.lock().attrs.clone()
    }
}

impl State {
    /// Notes that the stable tree says all, if it does.
    pub fn note_clean(&self, shared: &Shared) {
        if self.freed_in.is_some() || self.dirty_records.iter().any(Option::is_some) {
            return;
        }
        let number = self.stable.number(shared);
        if self.clean.0.load(Ordering::Relaxed) != number {
            self.clean.0.store(number, Ordering::Release);
        }
    }

    /// From now on the stable tree does not say all.
    pub fn is_changing(&mut self) {
        self.clean.0.store(0, Ordering::Release);
    }

    pub fn replace_tree(&mut self, tree: Tree) {
        self.is_changing();
        self.stable = Arc::new(tree);
    }

    /// The dirty records that may differ from the stable tree, newest first.
    pub fn dirty_records_newest_first(&self) -> impl Iterator<Item = &DirtyRecord> {
        let mut live: [Option<&DirtyRecord>; Txg::SLOTS] = Default::default();
        for (to, from) in live.iter_mut().zip(&self.dirty_records) {
            *to = from.as_deref();
        }
        // Four slots at most: a sort costs less than remembering an order.
        live.sort_by_key(|o| std::cmp::Reverse(o.map_or(0, |o| o.txg.0)));
        live.into_iter().flatten()
    }

    /// The dirty record of `tx`'s txg, to be changed; the flag says that it is new, so that the object must be listed as
    /// dirty. `node` is the object's.
    ///
    /// # Errors
    /// `NotFound` when the object was freed, or its object set is gone: no sync would come for it.
    pub fn dirty_record_mut(&mut self, node: &Node, tx: &Tx) -> Result<(&mut DirtyRecord, bool)> {
        let txg = tx.txg();
        if self.freed_in.is_some() || node.shared.is_gone() {
            return Err(Error::new(Kind::NotFound, "change object").at(format!("{:x}", node.id.0)));
        }
        self.is_changing();
        let slot = &mut self.dirty_records[txg.slot()];
        let fresh = slot.is_none();
        let dirty_record = slot
            .get_or_insert_with(|| Box::new(DirtyRecord::new(txg, self.attrs.clone(), self.bonus.clone())));
        assert_eq!(dirty_record.txg, txg, "an overlay is synced before its slot comes round again");
        assert!(!dirty_record.syncing, "nothing changes an overlay while it is synced");
        if fresh {
            dirty_record.count(tx, DirtyRecord::OWN_BYTES);
        }
        Ok((dirty_record, fresh))
    }

    /// The dirty record of `txg`, if it has changed the object.
    pub fn dirty_record(&self, txg: Txg) -> Option<&DirtyRecord> {
        self.dirty_records[txg.slot()].as_deref().filter(|dirty_record| dirty_record.txg == txg)
    }

    /// As [`State::dirty_record`], to be changed.
    pub fn existing_dirty_record_mut(&mut self, txg: Txg) -> Option<&mut DirtyRecord> {
        let dirty_record =
            self.dirty_records[txg.slot()].as_deref_mut().filter(|dirty_record| dirty_record.txg == txg)?;
        assert!(!dirty_record.syncing, "nothing changes an overlay while it is synced");
        Some(dirty_record)
    }

    /// Whether there is a spill block, changes of the open txg included.
    pub fn has_spill(&self) -> bool {
        let changed = self.dirty_records_newest_first().find_map(|dirty_record| match &dirty_record.spill {
            Spill::Unchanged => None,
            Spill::Freed => Some(false),
            Spill::Written(_) => Some(true),
        });
        changed.unwrap_or_else(|| self.stable.spill.as_ref().is_some_and(|bp| !bp.is_hole()))
    }

    /// The data changed, in `txg`: see [`crate::Object::version`].
    pub fn data_changed(&mut self, txg: Txg) {
        let is_newest = self.dirty_records.iter().flatten().all(|dirty_record| dirty_record.txg <= txg);
        self.version += if is_newest { 1 } else { 2 };
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({}:{})", self.shared.id, self.id)
    }
}
