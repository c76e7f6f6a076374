//! An object's spill block: reading it, and replacing it within a transaction.

use super::Object;
use crate::spill::{SPILL_BLKID, SPILL_MAX, SPILL_UNIT, Spill};
use crate::tree::Tree;
use std::sync::Arc;
use txg::Tx;
use units::Result;
use world::Buf;
use zio::{Bookmark, ReadClass};

enum Place {
    Known(Option<Buf>),
    Tree(Arc<Tree>),
}

impl Object {
    fn spill_place(&self) -> Place {
        let state = self.node.lock();
        for dirty_record in state.dirty_records_newest_first() {
            match &dirty_record.spill {
                Spill::Unchanged => {}
                Spill::Freed => return Place::Known(None),
                Spill::Written(buf) => return Place::Known(Some(buf.clone())),
            }
        }
        Place::Tree(state.stable.clone())
    }

    /// Whether there is a spill block, changes of the open txg included.
    pub fn has_spill(&self) -> bool {
        self.node.lock().has_spill()
    }

    /// The whole spill block, if there is one.
    pub async fn read_spill(&self) -> Result<Option<Buf>> {
        loop {
            let tree = match self.spill_place() {
                Place::Known(buf) => return Ok(buf),
                Place::Tree(tree) => tree,
            };
            let Some(bp) = tree.spill.as_ref().filter(|bp| !bp.is_hole()) else { return Ok(None) };
            let node = &self.node;
            let at = Bookmark { objset: node.shared.id, object: node.id, level: 0, blkid: SPILL_BLKID };
            match node.shared.read(bp, at, ReadClass::Demand).await {
                Ok(buf) => return Ok(Some(buf)),
                Err(_) if self.is_replaced(&tree) => continue,
                Err(e) => return Err(e),
            }
        }
    }

    /// Replaces the spill block, or takes it away.
    ///
    /// # Panics
    /// When it is longer than [`SPILL_MAX`] or no multiple of [`SPILL_UNIT`].
    pub fn set_spill(&self, tx: &Tx, spill: Option<Buf>) -> Result<()> {
        let len = spill.as_ref().map_or(0, |buf| buf.len());
        assert!(len <= SPILL_MAX && len.is_multiple_of(SPILL_UNIT), "a spill block of {len} bytes");
        if spill.is_none() && !self.has_spill() {
            return Ok(());
        }
        let fresh = {
            let mut state = self.node.lock();
            self.check_room(&state.attrs, state.bonus.len(), spill.is_some())?;
            let (dirty_record, fresh) = state.dirty_record_mut(&self.node, tx)?;
            dirty_record.spill = spill.map_or(Spill::Freed, Spill::Written);
            fresh
        };
        let cost = self.node.shared.store.charge_max(len as u64, 3);
        self.account(tx, fresh, len as u64, cost);
        Ok(())
    }
}
