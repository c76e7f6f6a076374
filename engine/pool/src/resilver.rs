//! Bringing devices up to date that missed writes.
//!
//! ```text
//!   a device misses txgs 40..=52 ──▶ scan of what was born after 39 ──▶ each block that some device may miss:
//!                                                                       read elsewhere, written again to that device
//!   scan done, and no write to the device failed meanwhile ──▶ it misses nothing any more
//! ```
//!
//! A block that no device has any more is an error of the scan and not missed by a device: otherwise the scan would begin
//! anew for ever, and the device never be whole. Where a device could not be asked for it, there is one more try.
//!
//! It is a scrub with a lower bound and other eyes ([`crate::scrub`]): what a device may miss is written again without
//! asking what it has. It starts by itself, when a pool is opened and after a txg that some device missed. A scrub that
//! comes to its end makes good the same. After either, a device that misses something still, or again, has to wait for a
//! rest; its end is waited for by a task ([`Pool::consider_after`]), since an idle pool has no txg that would look.

use crate::pool::{Pool, lock};
use ondisk::{
    BlockPointer,
    dsl::{ScanFunc, ScanState},
};
use std::sync::Arc;
use units::{Guid, HashMap, Result, Txg};
use world::sync::Event;
use world::{Boxed, Instant};

impl Pool {
    /// The first and the last txg that some usable device misses something of.
    pub(crate) fn missing_span(&self) -> Option<(Txg, Txg)> {
        let leaves = self.tree().leaves();
        let spans = leaves.iter().filter(|l| l.missing().is_any() && l.is_usable());
        spans.filter_map(|l| l.missing().span()).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether some usable device may miss the block, or a copy of it. The parts of a gang may be on any device.
    pub(crate) fn is_missed(&self, bp: &BlockPointer) -> bool {
        let Some(plain) = bp.as_plain() else { return false };
        let born = plain.resolved_physical_birth();
        if plain.is_gang() {
            return self.tree().tops().iter().any(|top| top.misses(born));
        }
        plain.copies().any(|dva| self.tree().top(dva.vdev).is_some_and(|top| top.misses(born)))
    }

    /// The devices that a scan which begins now can make whole, each with how often it had failed by then.
    pub(crate) fn devices_to_heal(&self) -> HashMap<Guid, u64> {
        let leaves = self.tree().leaves();
        leaves.iter().filter(|l| l.is_usable()).map(|l| (l.guid(), l.missing().failures())).collect()
    }

    /// A scan has made good everything up to `txg`: on those devices that took all that was written to them.
    pub(crate) fn made_good(&self, began: &HashMap<Guid, u64>, txg: Txg) {
        for leaf in self.tree().leaves() {
            if leaf.is_usable() && began.get(&leaf.guid()) == Some(&leaf.missing().failures()) {
                leaf.missing().remove_to(txg);
            }
        }
    }

    /// Whether what a scan could not have anywhere may be there another time: a device was away, or did not answer. One
    /// that answered with other bytes has no others.
    pub(crate) fn may_return(&self) -> bool {
        let (began, failed_reads) = {
            let state = lock(&self.0.scrub.state);
            (state.began.clone(), state.failed_reads)
        };
        let was_there = |leaf: &Arc<vdev::Leaf>| {
            leaf.is_usable() && began.get(&leaf.guid()) == Some(&leaf.missing().failures())
        };
        failed_reads != Some(self.failed_reads()) || !self.tree().leaves().iter().all(was_there)
    }

    /// Reads that devices have failed.
    pub(crate) fn failed_reads(&self) -> u64 {
        self.tree().leaves().iter().map(|leaf| leaf.failed_reads()).sum()
    }

    /// Whether one is going, or will when what is missed is behind.
    pub fn is_resilvering(&self) -> bool {
        let scan = self.scan_status();
        let goes = scan.is_some_and(|s| s.func == ScanFunc::Resilver && s.state == ScanState::Scanning);
        goes || self.0.scrub.is_running() || self.0.scrub.is_wanted() || self.is_rebuilding()
    }

    /// Begins a resilver, or the one under way from its start; a scrub gives way. Where no device misses anything, nothing
    /// is to be done.
    ///
    /// # Errors
    /// `Busy` while a device is rebuilt.
    pub fn resilver(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            self.check_no_rebuild()?;
            if self.missing_span().is_some() {
                self.0.scrub.want_resilver_anew();
            }
            self.request_resilver().await;
            Ok(())
        })
    }

    /// Starts a resilver if a device needs one and nothing hinders it.
    pub(crate) fn consider_resilver(&self) {
        let Some((_, last)) = self.missing_span() else { return self.0.scrub.want_no_resilver() };
        // What others miss waits until devices that are copied to in the order of the disk have all.
        if self.is_rebuilding() {
            return;
        }
        // While a device still fails, there is no end to it.
        let is_over = last <= self.uberblock().txg;
        if !is_over || self.0.txgs.is_closing() || self.0.scrub.is_running() {
            return;
        }
        let rests = lock(&self.0.scrub.state).rests_until();
        match rests {
            Some(until) => self.consider_after(until),
            None => self.launch(ScanFunc::Resilver),
        }
    }

    /// Has it considered again at this time, once however often this is asked for.
    fn consider_after(&self, until: Instant) {
        let mut rest = lock(&self.0.scrub.rest);
        // Looked at under the lock: what closes the pool takes the task after it says so.
        if rest.is_some() || self.0.txgs.is_closing() {
            return;
        }
        let (stop, pool) = (Arc::new(Event::new()), self.clone());
        let stopped = stop.clone();
        let task = self.spawn(async move {
            let left = until.since(world::now());
            if world::timeout(left, stopped.wait()).await.is_none() {
                *lock(&pool.0.scrub.rest) = None;
                pool.consider_resilver();
            }
        });
        *rest = Some((stop, task));
    }

    /// On return nothing waits for the end of a rest. The pool is closing by then.
    pub(crate) async fn end_rest(&self) {
        let rest = lock(&self.0.scrub.rest).take();
        if let Some((stop, task)) = rest {
            stop.set();
            task.await;
        }
    }
}
