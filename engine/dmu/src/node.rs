//! One object in memory: its attributes, the stable tree and the overlays.

use crate::attrs::Attrs;
use crate::overlay::Overlay;
use crate::shared::Shared;
use crate::spill::Spill;
use crate::tree::Tree;
use ondisk::DnodePhys;
use std::sync::{Arc, Mutex, MutexGuard};
use txg::Tx;
use units::{Error, Kind, ObjectId, Result, Txg};

pub(crate) struct Node {
    pub id: ObjectId,
    pub shared: Arc<Shared>,
    state: Mutex<State>,
}

pub(crate) struct State {
    /// The newest attributes and bonus, changes of the open txg included.
    pub attrs: Attrs,
    pub bonus: Arc<[u8]>,
    /// As of the last synced txg.
    pub stable: Arc<Tree>,
    pub overlays: [Option<Box<Overlay>>; Txg::SLOTS],
    /// The txg that frees the object; nobody may change it after that.
    pub freed_in: Option<Txg>,
    /// See [`crate::Object::version`].
    pub version: u64,
}

impl Node {
    pub fn new(id: ObjectId, shared: Arc<Shared>, attrs: Attrs, bonus: Arc<[u8]>, stable: Tree) -> Arc<Node> {
        let state = State {
            attrs,
            bonus,
            stable: Arc::new(stable),
            overlays: Default::default(),
            freed_in: None,
            version: 0,
        };
        Arc::new(Node { id, shared, state: Mutex::new(state) })
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
    /// The overlays that may differ from the stable tree, newest first.
    pub fn overlays_newest_first(&self) -> impl Iterator<Item = &Overlay> {
        let mut live: [Option<&Overlay>; Txg::SLOTS] = Default::default();
        for (to, from) in live.iter_mut().zip(&self.overlays) {
            *to = from.as_deref();
        }
        // Four slots at most: a sort costs less than remembering an order.
        live.sort_by_key(|o| std::cmp::Reverse(o.map_or(0, |o| o.txg.0)));
        live.into_iter().flatten()
    }

    /// The overlay of `tx`'s txg, to be changed; the flag says that it is new, so that the object must be listed as dirty.
    pub fn overlay_mut(&mut self, id: ObjectId, tx: &Tx) -> Result<(&mut Overlay, bool)> {
        let txg = tx.txg();
        if self.freed_in.is_some() {
            return Err(Error::new(Kind::NotFound, "change object").at(format!("{:x}", id.0)));
        }
        let slot = &mut self.overlays[txg.slot()];
        let fresh = slot.is_none();
        let overlay =
            slot.get_or_insert_with(|| Box::new(Overlay::new(txg, self.attrs.clone(), self.bonus.clone())));
        assert_eq!(overlay.txg, txg, "an overlay is synced before its slot comes round again");
        assert!(!overlay.syncing, "nothing changes an overlay while it is synced");
        if fresh {
            overlay.count(tx, Overlay::OWN_BYTES);
        }
        Ok((overlay, fresh))
    }

    /// The overlay of `txg`, if it has changed the object.
    pub fn overlay(&self, txg: Txg) -> Option<&Overlay> {
        self.overlays[txg.slot()].as_deref().filter(|overlay| overlay.txg == txg)
    }

    /// As [`State::overlay`], to be changed.
    pub fn existing_overlay_mut(&mut self, txg: Txg) -> Option<&mut Overlay> {
        let overlay = self.overlays[txg.slot()].as_deref_mut().filter(|overlay| overlay.txg == txg)?;
        assert!(!overlay.syncing, "nothing changes an overlay while it is synced");
        Some(overlay)
    }

    /// Whether there is a spill block, changes of the open txg included.
    pub fn has_spill(&self) -> bool {
        let changed = self.overlays_newest_first().find_map(|overlay| match &overlay.spill {
            Spill::Unchanged => None,
            Spill::Freed => Some(false),
            Spill::Written(_) => Some(true),
        });
        changed.unwrap_or_else(|| self.stable.spill.as_ref().is_some_and(|bp| !bp.is_hole()))
    }

    /// The data changed, in `txg`: see [`crate::Object::version`].
    pub fn data_changed(&mut self, txg: Txg) {
        let is_newest = self.overlays.iter().flatten().all(|overlay| overlay.txg <= txg);
        self.version += if is_newest { 1 } else { 2 };
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({}:{})", self.shared.id, self.id)
    }
}
