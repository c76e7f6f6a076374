//! Cache devices at work: which ones the pool has, and the task that feeds them.
//!
//! ```text
//!   listed or added ─▶ follow_cache_devices ─▶ l2arc: taken into use, with what they hold ─▶ fed, read
//!   removed         ─▶ forgotten, closed, without labels
//!   offline         ─▶ closed; what it holds is known on, and serves again when it is online
//! ```
//!
//! A pool that is opened read-only reads from them and writes nothing to them.

use crate::Offline;
use crate::pool::{Pool, lock};
use l2arc::{CacheDevice, Feeder};
use units::{Error, Guid, Kind, Result};
use vdev::{Aux, AuxKind, Health, Spec, State};

impl Pool {
    /// Has the cache devices be used that the tree has now.
    pub(crate) fn follow_cache_devices(&self) {
        let tree = &self.0.tree;
        let devices = tree.aux(AuxKind::Cache).into_iter().map(|device| CacheDevice {
            guid: device.spec.guid,
            ashift: device.spec.ashift.and_then(|ashift| u32::try_from(ashift).ok()).unwrap_or(9),
            leaf: device.leaf,
        });
        self.0.pipeline.second_level().set_devices(devices.collect(), tree.mode);
    }

    pub(crate) fn start_feeding(&self) {
        let started = Feeder::start(self.0.pipeline.second_level(), self.guid(), self.0.tunables.clone());
        match started {
            Ok(feeder) => *lock(&self.0.feeder) = Some(feeder),
            Err(e) => self.0.note_problem(e.at("cache devices")),
        }
    }

    pub(crate) async fn stop_feeding(&self) {
        let feeder = lock(&self.0.feeder).take();
        if let Some(feeder) = feeder {
            feeder.stop().await;
        }
    }

    pub(crate) fn is_cache_device(&self, guid: Guid) -> bool {
        self.0.tree.aux(AuxKind::Cache).iter().any(|device| device.spec.guid == guid)
    }

    /// Takes a cache device out of use. The caller has the right to reshape the pool.
    pub(crate) async fn offline_cache_device(&self, guid: Guid, how: Offline) -> Result<()> {
        let devices = self.0.tree.aux(AuxKind::Cache);
        let found = devices.iter().find(|device| device.spec.guid == guid);
        let device = found.ok_or_else(|| Error::new(Kind::NotFound, "find device"))?;
        let health = match how {
            Offline::Lasting | Offline::Temporary => Health::new(State::Offline, Aux::None),
            Offline::Faulted | Offline::FaultedTemporary => Health::new(State::Faulted, Aux::External),
        };
        let is_lasting = how == Offline::Lasting;
        self.mark_cache_device(guid, move |spec| spec.offline = is_lasting.then_some(1)).await?;
        device.leaf.take_out(health).await;
        Ok(())
    }

    /// Brings it back. Answers how it is then.
    pub(crate) async fn online_cache_device(&self, guid: Guid) -> Result<Health> {
        // What could not be opened is said in its state.
        let _ = self.0.tree.bring_back_aux(AuxKind::Cache, guid).await;
        self.mark_cache_device(guid, |spec| spec.offline = None).await?;
        let devices = self.0.tree.aux(AuxKind::Cache);
        let found = devices.iter().find(|device| device.spec.guid == guid);
        Ok(found.ok_or_else(|| Error::new(Kind::NotFound, "find device"))?.leaf.health())
    }

    async fn mark_cache_device(&self, guid: Guid, change: impl Fn(&mut Spec)) -> Result<()> {
        let mut specs: Vec<Spec> = self.0.tree.aux(AuxKind::Cache).into_iter().map(|d| d.spec).collect();
        let before = specs.clone();
        specs.iter_mut().filter(|spec| spec.guid == guid).for_each(change);
        match specs == before {
            true => Ok(()),
            false => self.set_side_devices(AuxKind::Cache, specs).await,
        }
    }
}
