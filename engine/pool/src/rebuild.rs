//! Sequential rebuild: a device that joins a mirror gets all that is allocated in the order of the disk.
//!
//! ```text
//!            attach -s                       all metaslabs copied
//!   (none) ───────────▶ ACTIVE ─────────────────────────────────────▶ COMPLETE ─▶ scrub
//!                       │    ▲ attach -s: from the beginning
//!                       │    └──────────
//!                       └──▶ CANCELED: its devices have left or failed; a resilver does what is left
//! ```
//!
//! No block is looked at, so large extents are copied ([`vdev::Top::copy_extent`]) and no checksum is verified: the scrub
//! does that later. What is written meanwhile reaches the new device as it reaches the others; writes and copies take turns
//! where they meet. What was under way when the device joined belongs to txgs that it is known to miss, and no extent is
//! copied before the last of them is on disk.
//!
//! The state is kept as OpenZFS keeps it, a [`RebuildPhys`] in the ZAP of the top-level vdev, and the feature
//! `device_rebuild` is active meanwhile; so a rebuild goes on when the pool is opened again, by this program or by OpenZFS.
//! Beside it is kept which devices took all that they were given ([`KEPT`]): one that did not begins anew.
//!
//! Invariants: a position is kept only when what is before it was flushed; a device is whole at the end only if none of its
//! writes failed; while a rebuild is under way there is no scrub and no resilver.
//!
//! [`run`] does the copying.

mod run;
mod state;

pub use state::RebuildStatus;
pub(crate) use state::Rebuilds;

use crate::attach::no_such;
use crate::pool::{Pool, lock};
use dmu::Tx;
use dsl::zaps;
use ondisk::dsl::{ScanFunc, ScanState};
use ondisk::mos::{top_vdev, vdev as pair};
use ondisk::{Feature, RebuildPhys, RebuildState};
use state::Known;
use tunables::Tunable;
use units::{Error, Guid, HashMap, Kind, ObjectId, Result, VdevId};
use vdev::{Leaf, Top};

/// In the ZAP of a top-level vdev: start time and last txg of the rebuild it belongs to, then the guids of the devices that
/// took all that they were given.
const KEPT: &str = "org.cenote:vdev_rebuild";
/// More devices than a mirror being rebuilt has.
const KEPT_MAX: usize = 64;

impl Pool {
    /// The last rebuild of each top-level vdev that ever had one.
    pub fn rebuilds(&self) -> Vec<RebuildStatus> {
        let known = lock(&self.0.rebuilds.known);
        let of = |(id, known): (&VdevId, &Known)| {
            let top = self.tree().top(*id).filter(|_| known.phys.state != RebuildState::None)?;
            let (pass_scanned, pass_issued) = (known.pass_scanned, known.pass_issued);
            let is_going = known.phys.state == RebuildState::Active;
            Some(RebuildStatus {
                vdev: *id,
                guid: top.guid(),
                phys: if is_going { known.phys_now() } else { known.phys },
                pass_ms: if is_going { known.pass_ms() } else { 0 },
                pass_scanned,
                pass_issued,
            })
        };
        known.iter().filter_map(of).collect()
    }

    /// Whether a device is being rebuilt.
    pub fn is_rebuilding(&self) -> bool {
        lock(&self.0.rebuilds.known).values().any(|known| known.phys.state == RebuildState::Active)
    }

    /// Whether a device can join `old` and be rebuilt.
    pub(crate) fn check_rebuild(&self, old: Guid) -> Result<()> {
        let top = self.tree().top_of(old).ok_or_else(no_such)?;
        if !top.is_mirrored() {
            return Err(Error::invalid("only mirror and dRAID vdevs support sequential reconstruction"));
        }
        let (features, has_room) = (self.dsl().features(), self.zap_of(&top).is_some());
        if !features.is_enabled(Feature::DeviceRebuild) || !has_room {
            let name = self.name();
            let hint = format!(
                "sequential reconstruction needs a feature: 'zpool set feature@device_rebuild=enabled {name}'"
            );
            return Err(Error::invalid(hint));
        }
        let scan = self.scan_status().filter(|scan| scan.state == ScanState::Scanning);
        if scan.is_some_and(|scan| scan.func == ScanFunc::Resilver)
            || (!self.is_rebuilding() && self.missing_span().is_some())
        {
            return Err(self.is_busy("currently resilvering"));
        }
        Ok(())
    }

    /// A device that is to be resilvered cannot join now.
    pub(crate) fn check_no_rebuild(&self) -> Result<()> {
        match self.is_rebuilding() {
            true => Err(self.is_busy("currently sequentially resilvering")),
            false => Ok(()),
        }
    }

    fn is_busy(&self, why: &str) -> Error {
        Error::new(Kind::Busy, format!("pool '{}'", self.name())).because(why)
    }

    fn zap_of(&self, top: &Top) -> Option<ObjectId> {
        let spec = self.tree().spec();
        spec.children
            .iter()
            .find(|s| s.id == Some(u64::from(top.id.0)))?
            .top_zap
            .and_then(|z| ObjectId(z).some())
    }

    /// Begins a rebuild of the vdev that `device` has joined, or the one under way from its start. In syncing context, in
    /// the txg in which it joins.
    pub(crate) async fn record_rebuild(&self, tx: &Tx, device: Guid) -> Result<VdevId> {
        let top = self.tree().top_of(device).ok_or_else(no_such)?;
        let spans = targets(&top).into_iter().filter_map(|leaf| leaf.missing().span());
        let (first, last) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).ok_or_else(no_such)?;
        let before = lock(&self.0.rebuilds.known).get(&top.id).map(|known| known.phys).unwrap_or_default();
        let is_under_way = before.state == RebuildState::Active;
        let phys = RebuildPhys {
            state: RebuildState::Active,
            min_txg: first.back(1),
            max_txg: last,
            start_time: if is_under_way { before.start_time } else { world::wall_clock().seconds },
            ..RebuildPhys::default()
        };
        top.set_copying(true);
        self.store_rebuild(tx, &top, &phys, &[]).await?;
        if !is_under_way {
            self.dsl().core().features().add(tx, Feature::DeviceRebuild, 1).await?;
        }
        self.record_rebuild_event(tx, &top, if is_under_way { "reset" } else { "started" }).await?;
        let mut all = lock(&self.0.rebuilds.known);
        let known = all.entry(top.id).or_default();
        if let Some((stop, _)) = &known.at_work {
            stop.set();
        }
        let epoch = known.epoch + 1;
        let began = targets(&top).iter().map(|leaf| (leaf.guid(), leaf.missing().failures())).collect();
        *known = Known { phys, epoch, began, ..Known::default() };
        Ok(top.id)
    }

    async fn record_rebuild_event(&self, tx: &Tx, top: &Top, what: &str) -> Result<()> {
        let text = format!("vdev_id={} vdev_guid={} {what}", top.id.0, top.guid().0);
        self.dsl().record_event(tx, "rebuild", &text, None).await
    }

    async fn store_rebuild(&self, tx: &Tx, top: &Top, phys: &RebuildPhys, took_all: &[Guid]) -> Result<()> {
        let zap = self.zap_of(top).ok_or_else(|| Error::corrupt(format!("vdev {} has no ZAP", top.id)))?;
        let table = zaps::open(self.mos(), zap).await?;
        table.update(tx, top_vdev::REBUILD, &phys.to_words()[..]).await?;
        if phys.state != RebuildState::Active {
            return zaps::remove_if_any(&table, tx, KEPT).await;
        }
        let own = [phys.start_time, phys.max_txg.0];
        let words: Vec<u64> =
            own.into_iter().chain(took_all.iter().take(KEPT_MAX).map(|guid| guid.0)).collect();
        table.update(tx, KEPT, &words[..]).await
    }

    /// A device joins that has nothing of what was copied so far, though one with its guid may have been given it: a spare
    /// that left and comes back. In syncing context.
    pub(crate) async fn withdraw_from_rebuild(&self, tx: &Tx, top: &Top, device: Guid) -> Result<()> {
        let of = |known: &mut Known| {
            known.began.remove(&device);
            known.phys.state == RebuildState::Active
        };
        let is_active = lock(&self.0.rebuilds.known).get_mut(&top.id).is_some_and(of);
        let Some(zap) = self.zap_of(top).filter(|_| is_active) else { return Ok(()) };
        let table = zaps::open(self.mos(), zap).await?;
        let kept = table.lookup(KEPT).await?;
        match kept.as_ref().and_then(|v| v.as_u64s()) {
            Some([start, max, guids @ ..]) if guids.contains(&device.0) => {
                let others = guids.iter().copied().filter(|guid| *guid != device.0);
                let words: Vec<u64> = [*start, *max].into_iter().chain(others).collect();
                table.update(tx, KEPT, &words[..]).await
            }
            _ => Ok(()),
        }
    }

    /// Keeps how far the rebuild of a vdev has come.
    async fn keep_rebuild(&self, id: VdevId, epoch: u64) -> Result<()> {
        let Some(top) = self.tree().top(id) else { return Ok(()) };
        let Some(phys) = self.of_epoch(id, epoch, |known| known.phys_now()) else { return Ok(()) };
        // A device that does not flush has failed, and is not among those that took all.
        let _ = top.flush().await;
        self.change("keep the position of a rebuild", move |pool, tx| async move {
            let Some(began) = pool.of_epoch(id, epoch, |known| known.began.clone()) else { return Ok(()) };
            let took_all: Vec<Guid> = healthy(&top, &began).iter().map(|leaf| leaf.guid()).collect();
            pool.store_rebuild(&tx, &top, &phys, &took_all).await
        })
        .await
    }

    /// Records how it ended. Devices that took all miss nothing any more.
    async fn finish_rebuild(&self, id: VdevId, epoch: u64, end: RebuildState) -> Result<()> {
        let Some(top) = self.tree().top(id) else { return Ok(()) };
        let _ = top.flush().await;
        self.change(
            "rebuild",
            move |pool, tx| async move { pool.record_rebuild_end(&tx, &top, epoch, end).await },
        )
        .await
    }

    async fn record_rebuild_end(&self, tx: &Tx, top: &Top, epoch: u64, end: RebuildState) -> Result<()> {
        let end_time = world::wall_clock().seconds;
        let of = |known: &mut Known| {
            let phys = RebuildPhys { state: end, end_time, ..known.phys_now() };
            (phys, known.began.clone())
        };
        let Some((phys, began)) = self.of_epoch(top.id, epoch, of) else { return Ok(()) };
        self.store_rebuild(tx, top, &phys, &[]).await?;
        self.dsl().core().features().add(tx, Feature::DeviceRebuild, -1).await?;
        let word = if end == RebuildState::Complete { "complete" } else { "canceled" };
        self.record_rebuild_event(tx, top, word).await?;
        if end == RebuildState::Complete && phys.errors == 0 {
            healthy(top, &began).iter().for_each(|leaf| leaf.missing().remove_to(phys.max_txg));
        }
        self.tree().update_spec(|root| {
            for leaf in top.leaves() {
                root.find_mut(leaf.guid()).into_iter().for_each(|spec| spec.other.remove(pair::REBUILD_TXG));
            }
        });
        self.update_config(|_| ());
        top.set_copying(false);
        self.of_epoch(top.id, epoch, |known| known.phys = phys);
        if end == RebuildState::Complete && self.scrubs_after_rebuilds() {
            self.record_scrub(tx).await?;
        }
        Ok(())
    }

    /// Every device has all that was written to it, and what was copied unseen is to be verified. The scrub is recorded in
    /// the txg that ends the last rebuild, so that a pool which is closed or loses its power then does it when it is opened.
    fn scrubs_after_rebuilds(&self) -> bool {
        let is_hindered = self.is_rebuilding() || self.0.scrub.is_running() || self.is_error_scrubbing();
        let is_wanted = self.0.tunables.is_on(Tunable::RebuildScrubEnabled);
        is_wanted && !is_hindered && self.missing_span().is_none()
    }

    /// What is known of the rebuild, if it is still that one.
    fn of_epoch<T>(&self, id: VdevId, epoch: u64, look: impl FnOnce(&mut Known) -> T) -> Option<T> {
        lock(&self.0.rebuilds.known).get_mut(&id).filter(|known| known.epoch == epoch).map(look)
    }

    /// A resilver begins: as in OpenZFS, rebuilds that have ended are not told of any more, since a scrub that comes after
    /// it would stand beside one that is older than both.
    pub(crate) async fn forget_rebuilds(&self, tx: &Tx) -> Result<()> {
        let has_ended =
            |known: &Known| matches!(known.phys.state, RebuildState::Complete | RebuildState::Canceled);
        let ended: Vec<VdevId> = {
            let known = lock(&self.0.rebuilds.known);
            known.iter().filter(|(_, known)| has_ended(known)).map(|(id, _)| *id).collect()
        };
        for top in ended.into_iter().filter_map(|id| self.tree().top(id)) {
            self.store_rebuild(tx, &top, &RebuildPhys::default(), &[]).await?;
            if let Some(known) = lock(&self.0.rebuilds.known).get_mut(&top.id) {
                known.phys = RebuildPhys::default();
            }
        }
        Ok(())
    }

    /// Reads what the pool knows of its rebuilds.
    pub(crate) async fn load_rebuilds(&self) -> Result<()> {
        for top in self.tree().tops() {
            let Some(zap) = self.zap_of(&top) else { continue };
            let table = zaps::open(self.mos(), zap).await?;
            let stored = table.lookup(top_vdev::REBUILD).await?;
            // What has no meaning is no rebuild: the device still misses what it misses.
            let phys = stored.as_ref().and_then(|v| RebuildPhys::from_words(v.as_u64s()?).ok());
            let Some(mut phys) = phys.filter(|phys| phys.state != RebuildState::None) else { continue };
            let mut began = HashMap::default();
            if phys.state == RebuildState::Active {
                let kept = table.lookup(KEPT).await?;
                let kept = kept.as_ref().and_then(|v| v.as_u64s()).unwrap_or_default();
                let took_all = |leaf: &Leaf| match kept {
                    [start, max, guids @ ..] if (*start, *max) == (phys.start_time, phys.max_txg.0) => {
                        guids.contains(&leaf.guid().0)
                    }
                    // OpenZFS keeps no such list: what it began it would go on with.
                    _ => true,
                };
                if !targets(&top).iter().all(|leaf| took_all(leaf)) {
                    (phys.last_offset, phys.bytes_scanned, phys.bytes_issued) = (0, 0, 0);
                }
                began = targets(&top).iter().map(|leaf| (leaf.guid(), leaf.missing().failures())).collect();
                top.set_copying(!self.is_read_only());
            }
            let known = Known { phys, passes_before_ms: phys.scan_time_ms, began, ..Known::default() };
            lock(&self.0.rebuilds.known).insert(top.id, known);
        }
        Ok(())
    }
}

/// The devices of a vdev that are to be rebuilt.
fn targets(top: &Top) -> Vec<std::sync::Arc<Leaf>> {
    top.leaves().into_iter().filter(|leaf| leaf.is_usable() && leaf.missing().is_any()).collect()
}

/// Those that took all that they were given since.
fn healthy(top: &Top, began: &HashMap<Guid, u64>) -> Vec<std::sync::Arc<Leaf>> {
    let took_all = |leaf: &std::sync::Arc<Leaf>| began.get(&leaf.guid()) == Some(&leaf.missing().failures());
    targets(top).into_iter().filter(took_all).collect()
}
