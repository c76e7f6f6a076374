//! What an object set and all its objects share: its blocks, and which objects are dirty.

use crate::blocks::Blocks;
use crate::first_in::FirstIn;
use crate::lock::lock;
use crate::node::Node;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use units::{ObjectId, Txg};

/// What an object set and all its objects share.
pub(crate) struct Shared {
    pub blocks: Blocks,
    /// Objects with a dirty record, by txg: held here so that they outlive their users.
    dirty: [Mutex<BTreeMap<ObjectId, Arc<Node>>>; Txg::SLOTS],
    /// Those that are being synced. When a sync does not come to its end they stay: what they hold is on no device, and a
    /// reader that opened them anew would find what was there before.
    syncing: Mutex<Vec<Arc<Node>>>,
}

impl Deref for Shared {
    type Target = Blocks;

    fn deref(&self) -> &Blocks {
        &self.blocks
    }
}

impl Shared {
    pub fn new(blocks: Blocks) -> Shared {
        Shared { blocks, dirty: Default::default(), syncing: Mutex::default() }
    }

    pub fn end(&self) {
        self.blocks.end();
        self.forget_dirty();
    }

    /// Lets go of everything that is dirty, which no sync will come for.
    pub fn forget_dirty(&self) {
        for dirty in &self.dirty {
            drop(std::mem::take(&mut *lock(dirty)));
        }
        self.synced();
    }

    /// Lists a node with a dirty record. Answers of which dnodes it is the first to be dirty.
    pub fn list_dirty(&self, node: &Arc<Node>, txg: Txg) -> FirstIn {
        let mut dirty = lock(&self.dirty[txg.slot()]);
        let first_in = FirstIn::of(node.id, |ids| dirty.range(ids).next().is_some());
        // It may have gone since the change was admitted; nothing would take the node out again.
        if !self.is_gone() {
            dirty.insert(node.id, node.clone());
        }
        first_in
    }

    pub fn take_dirty(&self, txg: Txg) -> BTreeMap<ObjectId, Arc<Node>> {
        let mut dirty = lock(&self.dirty[txg.slot()]);
        lock(&self.syncing).extend(dirty.values().cloned());
        std::mem::take(&mut *dirty)
    }

    pub fn dirty_bytes(&self, txg: Txg) -> u64 {
        let dirty: Vec<_> = lock(&self.dirty[txg.slot()]).values().cloned().collect();
        dirty
            .iter()
            .map(|node| node.lock().dirty_record(txg).map_or(0, |dirty_record| dirty_record.counted))
            .sum()
    }

    /// All that was taken is on disk, as far as this pass goes.
    pub fn synced(&self) {
        let nodes = std::mem::take(&mut *lock(&self.syncing));
        drop(nodes);
    }

    pub fn is_dirty(&self, txg: Txg) -> bool {
        !lock(&self.dirty[txg.slot()]).is_empty()
    }

    /// Whether something is not on disk yet, of whatever txg.
    pub fn is_dirty_at_all(&self) -> bool {
        self.dirty.iter().any(|dirty| !lock(dirty).is_empty()) || !lock(&self.syncing).is_empty()
    }
}
