//! `zpool remove` of a log device.
//!
//! ```text
//!   closed for allocation ─▶ logs emptied ─▶ txgs pass until nothing is on it, freed space included
//!     ─▶ txg N: space maps, metaslab array, ZAPs freed; a hole in the tree ─▶ N is on disk ─▶ labels wiped
//! ```
//!
//! A hole stays, since block pointers name vdevs by number. When anything fails before N, the device serves on. After a
//! crash past N its labels are older than the pool's, and an import of the pool goes by the configuration, which has a
//! hole there.
//!
//! Not here: removing vdevs with data on them, which would have to be moved.

use crate::pool::Pool;
use dmu::Tx;
use metaslab::SpaceLog;
use ondisk::Feature;
use std::sync::Arc;
use units::{Error, Kind, ObjectId, Result, Txg, VdevId};
use vdev::label::fresh::wipe;
use vdev::{Spec, Top};
use world::Boxed;

/// Freed blocks are kept for two txgs, and the frees themselves may be in the one after the present: more are not needed.
const TXGS_MAX: u32 = 8;

impl Pool {
    /// Takes a log device, or a mirror of such, out of the pool. Waits for several txgs. Goes on when the caller does not
    /// wait for it any more: logs are closed meanwhile, and must be opened again.
    ///
    /// # Errors
    /// `Busy` while a log on it waits to be replayed; `Unsupported` for other vdevs.
    pub fn remove_log(&self, id: VdevId) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let pool = self.clone();
            world::spawn(async move { pool.remove_log_now(id).await }).await
        })
    }

    async fn remove_log_now(&self, id: VdevId) -> Result<()> {
        let inner = &self.0;
        let _one_at_a_time = inner.reshaping.lock().await;
        let top =
            inner.tree.top(id).ok_or_else(|| Error::new(Kind::NotFound, format!("remove vdev {id}")))?;
        if !top.is_log {
            return Err(Error::unsupported("only log, cache and spare devices can be removed yet"));
        }
        if self.rebuilds().iter().any(|r| r.vdev == id && r.phys.state == ondisk::RebuildState::Active) {
            return Err(Error::new(Kind::Busy, "remove log").because("a device of it is being rebuilt"));
        }
        inner.space.set_allocatable(id, false);
        let removed = match self.evacuate_log(id).await {
            Ok(()) => {
                self.change("remove log", move |pool, tx| async move { pool.leave_hole(&tx, id).await }).await
            }
            Err(e) => Err(e),
        };
        if removed.is_err() {
            inner.space.set_allocatable(id, true);
        }
        let top = removed?;
        for leaf in top.leaves().iter().filter(|l| l.is_usable()) {
            // It is out of the pool already, whether or not it can be written to.
            if let Err(e) = wipe(leaf).await {
                inner.note_problem(format!(
                    "the labels of '{}', which was removed, are still there: {e}",
                    leaf.device()
                ));
            }
        }
        top.close().await;
        Ok(())
    }

    pub(crate) async fn evacuate_log(&self, id: VdevId) -> Result<()> {
        self.empty_logs().await?;
        for _ in 0..TXGS_MAX {
            if self.0.space.is_empty(id) {
                return Ok(());
            }
            self.sync().await?;
        }
        let used = self.0.space.usage_of_vdev(id).unwrap_or_default().allocated;
        Err(Error::new(Kind::Busy, "remove log")
            .because(format!("{} of intent logs are on it", units::pretty_size(used))))
    }

    /// Frees all logs; the next commits begin others, where allocation is allowed.
    pub(crate) async fn empty_logs(&self) -> Result<()> {
        self.take_up_logs().await?;
        let logs = self.intent_logs();
        self.retire_logs().await;
        let synced = self.sync().await;
        logs.iter().for_each(zil::Log::resume);
        synced
    }

    /// Opens every log that there is, so that it can be emptied like those that are in use. No dataset is destroyed,
    /// renamed or rolled back between being listed and being opened.
    async fn take_up_logs(&self) -> Result<()> {
        let _reading = self.reading().await;
        for (id, name) in self.0.dsl.heads().await? {
            self.take_up_log(id, &name).await?;
        }
        Ok(())
    }

    async fn take_up_log(&self, id: ObjectId, name: &str) -> Result<()> {
        let inner = &self.0;
        let (_, phys) = inner.dsl.core().dataset(id).await?;
        if phys.bp.is_hole() || inner.dsl.log_header(&inner.dsl.find(name).await?).await?.log.is_hole() {
            return Ok(());
        }
        let set = inner.dsl.open_dataset(id).await?;
        let waits = set.is_encrypted() || set.objset().phys().zil_header.claim_txg != Txg::NONE;
        if waits || self.intent_log_of(&set).is_none() {
            return Err(Error::new(Kind::Busy, "empty intent log")
                .because(format!("the intent log of '{name}' must be replayed first")));
        }
        Ok(())
    }

    /// Everything is read before anything is changed.
    async fn leave_hole(&self, tx: &Tx, id: VdevId) -> Result<Arc<Top>> {
        let inner = &self.0;
        if !inner.space.is_empty(id) {
            return Err(Error::new(Kind::Busy, "remove log").because("it was written to again"));
        }
        let spec = inner.tree.spec();
        let gone = || Error::new(Kind::NotFound, format!("remove vdev {id}"));
        let spec = spec.children.get(id.0 as usize).ok_or_else(gone)?;
        let mut maps: Vec<(ObjectId, bool)> = Vec::new();
        for info in inner.space.metaslabs(id).iter().filter_map(|m| m.map) {
            maps.push((info.object, info.header.histogram.is_some()));
        }
        for missed in spec.walk().filter_map(|v| ObjectId(v.dtl?).some()) {
            maps.push((missed, inner.space_log.info(missed).await?.header.histogram.is_some()));
        }
        let core = inner.dsl.core();
        for (map, has_histogram) in maps {
            inner.mos.free(tx, map).await?;
            if has_histogram {
                core.features().add(tx, Feature::SpacemapHistogram, -1).await?;
            }
        }
        if let Some(array) = spec.metaslab_array() {
            inner.mos.free(tx, array).await?;
        }
        crate::vdev_zaps::remove(core, tx, spec).await?;
        inner.space.remove_vdev(id);
        let top = inner.tree.retire(id).ok_or_else(gone)?;
        self.update_config(|_| ());
        let what = format!("{} vdev (log) {}", self.name(), path_of(spec));
        inner.dsl.record_event(tx, "vdev remove", &what, None).await?;
        Ok(top)
    }
}

/// As the history names it: a group has no path.
fn path_of(spec: &Spec) -> &str {
    spec.path.as_deref().unwrap_or("-")
}
