//! Log space maps (feature `log_spacemap`): what a pool that was not exported cleanly left in its log.
//!
//! ```text
//!   log of txg 8   log of txg 9   log of txg 10        each: entries of all vdevs, in units of 512 bytes
//!        \              |              /
//!         entries from a metaslab's unflushed txg on ──▶ unflushed allocs and frees of that metaslab
//! ```
//!
//! OpenZFS appends changes to one log for the whole pool and brings them to the metaslabs' own maps later. We read such
//! logs and write none: the first txg after opening flushes every unflushed change ([`crate::Space::sync`], pass 1). In
//! that same txg the pool removes the logs and what refers to them (`com.delphix:log_spacemap_zap` in the object
//! directory, `com.delphix:ms_unflushed_phys_txgs` in each top-level vdev's ZAP, the feature's reference).
//!
//! Within a log and between logs, a free cancels the allocation before it and the other way round; what remains is the
//! difference to the map.

use crate::entry::{Entry, entries};
use crate::metaslab::sync::segment_in;
use crate::metaslab::{Load, State};
use crate::ranges::Segment;
use crate::space::Space;
use ondisk::SpaceAction;
use units::{Error, Result, SECTOR_SHIFT, Txg, VdevId};

/// A log speaks of any place of any vdev.
const EVERYWHERE: Segment = Segment { start: 0, end: u64::MAX };

impl State {
    fn apply_unflushed(&mut self, action: SpaceAction, segment: Segment) -> Result<()> {
        assert!(matches!(self.load, Load::Unloaded), "logs are applied before anything is loaded");
        let (allocs, frees) = (&mut self.unflushed_allocs, &mut self.unflushed_frees);
        let (done, change) = match action {
            SpaceAction::Alloc => (frees.cancel_or_add(segment, allocs), segment.len() as i64),
            SpaceAction::Free => (allocs.cancel_or_add(segment, frees), -(segment.len() as i64)),
        };
        done.map_err(|twice| {
            Error::corrupt(format!("log space map: {action:?} of {segment:?} after that of {twice:?}"))
                .at(self.place)
        })?;
        let allocated = self.allocated.checked_add_signed(change).filter(|&a| a <= self.place.region.len());
        self.allocated = allocated.ok_or_else(|| {
            Error::corrupt(format!("log space map: {action:?} of {segment:?} leaves an impossible sum"))
                .at(self.place)
        })?;
        Ok(())
    }
}

impl Space {
    /// Tells from which txg on the log speaks for each metaslab of a vdev (the array `ms_unflushed_phys_txgs`). To be
    /// called before [`Space::apply_log`].
    pub fn set_unflushed_txgs(&self, vdev: VdevId, txgs: &[Txg]) {
        let Some(top) = self.vdev(vdev) else { return };
        for (metaslab, &txg) in top.metaslabs.iter().zip(txgs) {
            metaslab.lock().unflushed_txg = txg;
        }
    }

    /// Applies the log of `txg`. Logs are applied in the order of their txgs, before anything is allocated
    /// or freed.
    pub fn apply_log(&self, txg: Txg, bytes: &[u8]) -> Result<()> {
        for entry in entries(bytes, EVERYWHERE, SECTOR_SHIFT) {
            let entry = entry.map_err(|e| e.at(format!("log space map of txg {txg}")))?;
            self.apply_entry(txg, entry).map_err(|e| e.at(format!("log space map of txg {txg}")))?;
        }
        Ok(())
    }

    fn apply_entry(&self, txg: Txg, entry: Entry) -> Result<()> {
        let Entry { action, vdev, segment } = entry;
        let vdev = vdev.ok_or_else(|| Error::corrupt(format!("entry for {segment:?}: no vdev")))?;
        // A vdev that was removed since: what it held has moved elsewhere.
        let Some(top) = self.vdev(vdev) else { return Ok(()) };
        let index = (segment.start >> top.spec.metaslab_shift) as usize;
        let metaslab = top.metaslabs.get(index);
        let within = metaslab.and_then(|m| {
            let segment = segment_in(m.place.region, top.spec.ashift, segment.start, segment.len())?;
            Some((m, segment))
        });
        let (metaslab, segment) = within.ok_or_else(|| {
            Error::corrupt(format!("entry for {segment:?} on vdev {vdev}: not in one metaslab"))
        })?;
        let mut state = metaslab.lock();
        if txg < state.unflushed_txg {
            return Ok(());
        }
        let before = state.allocated as i64;
        state.apply_unflushed(action, segment)?;
        metaslab.reweigh(&state);
        top.group_of(metaslab).note_allocated(state.allocated as i64 - before);
        top.mark_unflushed(index);
        Ok(())
    }
}
