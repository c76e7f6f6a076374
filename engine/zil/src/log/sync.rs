//! The log and the txgs: moving the header on, and the end of a log.

use super::Log;
use dmu::Tx;
use ondisk::{BlockPointer, Plain, ZilHeader};
use units::Txg;

impl Log {
    /// In syncing context, once in a txg, before the object set is written: frees blocks whose records this txg makes
    /// obsolete, and lets the header lead to the first of the others.
    pub async fn sync(&self, tx: &Tx) {
        let txg = tx.txg();
        // What this txg has allocated is found only through blocks that must not be lost with a crash after it.
        let retire = || {
            let mut state = self.lock();
            if !state.blocks.is_settled(txg) {
                return None;
            }
            if state.blocks.is_broken() {
                // The chain may be forgotten now, and that it was broken; not so what it was to keep.
                state.lost_in = state.newest;
            }
            let is_destroyed = state.destroyed_in == txg;
            let mut freed = if is_destroyed { state.blocks.take_all() } else { state.blocks.retire(txg) };
            // A chain that began in a later txg is nothing to this one.
            let first =
                state.blocks.first().filter(|first| first.birth <= txg || first.checksum[3] > 1).cloned();
            if first.is_some() || is_destroyed {
                freed.extend(state.left.take());
            }
            Some((freed, first, is_destroyed))
        };
        let (freed, first, is_destroyed) = self.0.changed.until(retire).await;
        freed.iter().for_each(|place| self.0.store.free_log(place, txg));
        self.point_to(tx, first, is_destroyed);
    }

    fn point_to(&self, tx: &Tx, first: Option<Plain>, is_destroyed: bool) {
        let old = self.0.objset.phys().zil_header;
        let new = match (first, is_destroyed) {
            (_, true) => ZilHeader::default(),
            (Some(first), _) => ZilHeader { log: BlockPointer::Plain(first), ..old.clone() },
            // A log that was left here stays until our own begins.
            (None, _) if self.lock().left.is_some() => old.clone(),
            (None, _) => ZilHeader { log: BlockPointer::HOLE, ..old.clone() },
        };
        if new != old {
            self.0.objset.update_phys(tx, |phys| phys.zil_header = new);
        }
    }

    /// `txg` is on disk: its records are obsolete.
    pub fn synced(&self, txg: Txg) {
        {
            let mut state = self.lock();
            state.synced = txg;
            state.pending.retain(|entry| entry.txg > txg);
            state.drop_later(txg);
        }
        self.0.changed.notify_all();
    }

    /// Takes no more records, and waits for what is under way. What must be on disk is waited for by its txg.
    pub async fn close(&self) {
        self.shut();
        self.0
            .changed
            .until(|| {
                let state = self.lock();
                (!state.is_writing && state.blocks.in_flight() == 0).then_some(())
            })
            .await;
    }

    fn shut(&self) {
        {
            let mut state = self.lock();
            state.is_closed = true;
            // They will not be written any more: their waiters wait for their txg.
            state.unlogged = state.unlogged.max(state.newest);
            state.pending.clear();
            state.later.clear();
        }
        self.0.arrived.notify_all();
        self.0.changed.notify_all();
    }

    /// Lets the sync of `tx`'s txg, which is open, free a closed log and clear its header.
    pub fn destroy(&self, tx: &Tx) {
        let mut state = self.lock();
        assert!(state.is_closed, "a log is closed first");
        state.destroyed_in = tx.txg();
        tx.dirtied(1);
    }

    /// Takes records again, when the txg that freed a closed log is on disk: as if it had just been opened.
    pub fn resume(&self) {
        let mut state = self.lock();
        if state.synced >= state.destroyed_in {
            state.is_closed = false;
            state.destroyed_in = Txg::NONE;
        }
    }

    /// In syncing context: frees the whole log of a dataset that goes with this txg, after [`Log::sync`].
    pub async fn destroy_with_dataset(&self, tx: &Tx) {
        self.shut();
        // Not for the writer, which may wait for this very txg: it finds the chain gone.
        self.0.changed.until(|| (self.lock().blocks.in_flight() == 0).then_some(())).await;
        let freed = {
            let mut state = self.lock();
            let left = state.left.take();
            state.blocks.take_all().into_iter().chain(left).collect::<Vec<_>>()
        };
        // The last block may belong to a txg that is still open.
        freed.iter().for_each(|place| self.0.store.free_log(place, place.birth.max(tx.txg())));
    }
}
