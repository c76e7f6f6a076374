//! `zpool split`: one side of every mirror becomes a pool of its own, with everything that was written so far.
//!
//! ```text
//!   log devices emptied ─▶ txg N-1 on disk ─▶ txg N: the sides leave their mirrors        the old pool goes on
//!                                                      │
//!     they have N-1 and its uberblock, and get ◀───────┘
//!     labels of txg 0 with the new name, guid and tree ─▶ opened from N-1 with that tree ─▶ its first txg frees what was
//!                                                                                           of devices that it has not
//! ```
//!
//! Before that first txg a crash leaves the sides as devices of no pool, or as stale sides of the old one: the old pool has
//! all, and they can be attached to it again. After it there are two pools. Logs of the intent log are in both: what was
//! promised until the sides left is replayed in the new pool as after a crash.
//!
//! Spares and cache devices stay with the old pool, log devices too: in the new one is a hole in the place of each.

use crate::attach::no_such;
use crate::open::{OpenOptions, Special, open_special};
use crate::pool::{Pool, lock};
use crate::split_off::{LeftBehind, SplitOff};
use crate::vdev_zaps;
use dmu::Tx;
use std::sync::Arc;
use units::{Error, Guid, HashMap, Kind, ObjectId, Result, VdevId};
use vdev::label::config::PoolConfig;
use vdev::label::fresh::relabel;
use vdev::{AuxKind, Candidate, Health, Leaf, Spec, State, VdevType};
use world::Boxed;

/// The sides that have left.
struct Gone {
    leaves: Vec<Arc<Leaf>>,
    split: SplitOff,
    config: PoolConfig,
}

impl Pool {
    /// The devices that would be the new pool: those named, and the last of every mirror of which none is.
    ///
    /// # Errors
    /// `Invalid` when the pool is not of mirrors alone, or two devices of one mirror are named; `Busy` when a device is not
    /// whole, or is the only one that is; `NotFound`.
    pub fn plan_split(&self, named: &[Guid]) -> Result<Vec<Guid>> {
        self.check_no_rebuild()?;
        let (tree, spec) = (self.tree(), self.tree().spec());
        let of_data = |top: &&Spec| !top.is_log() && top.vdev_type != VdevType::Hole;
        let mirrors: Vec<&Spec> = spec.children.iter().filter(of_data).collect();
        if mirrors.iter().any(|top| top.vdev_type != VdevType::Mirror) {
            return Err(Error::invalid("Source pool must be composed only of mirrors"));
        }
        if named.iter().any(|guid| !mirrors.iter().any(|m| m.children.iter().any(|c| c.guid == *guid))) {
            return Err(
                Error::new(Kind::NotFound, "find device").because("no such device in a mirror of the pool")
            );
        }
        let choose = |mirror: &&Spec| {
            let own: Vec<&Spec> = mirror.children.iter().filter(|c| named.contains(&c.guid)).collect();
            let chosen = match own[..] {
                [] => mirror.children.last().ok_or_else(no_such)?,
                [one] => one,
                _ => return Err(Error::invalid("Device list contains more than one device of a mirror")),
            };
            let found = tree.find_leaf(chosen.guid).filter(|_| chosen.is_leaf() && !chosen.is_spare());
            let name = chosen.name();
            let busy = |why: &str| Err(Error::new(Kind::Busy, "split").because(format!("{name} {why}")));
            match found {
                None => busy("is being replaced: wait for that to end, or detach the new device"),
                Some((_, leaf)) if leaf.health().state != State::Online => busy("is not ONLINE"),
                Some((_, leaf)) if leaf.missing().is_any() => {
                    busy("has not yet everything: wait for the resilver")
                }
                Some(_) if tree.is_required(chosen.guid) => {
                    busy("is the only one of its mirror that has everything")
                }
                Some(_) => Ok(chosen.guid),
            }
        };
        mirrors.iter().map(choose).collect()
    }

    /// Makes a pool `name` of the devices that [`Pool::plan_split`] chooses, and opens it; `open` says how. Waits for some
    /// txgs.
    ///
    /// # Errors
    /// Those of the plan; or those of opening the new pool: then its devices are of no pool any more.
    pub fn split(&self, name: String, named: Vec<Guid>, open: OpenOptions) -> Boxed<'_, Result<Pool>> {
        Box::pin(async move {
            let pool = self.clone();
            // Goes on when the caller does not wait for it any more.
            world::spawn(async move { pool.split_now(name, &named, open).await }).await
        })
    }

    async fn split_now(&self, name: String, named: &[Guid], open: OpenOptions) -> Result<Pool> {
        dsl::name::check_pool(&name)?;
        let inner = &self.0;
        let _one_at_a_time = inner.reshaping.lock().await;
        self.plan_split(named)?;
        let logs: Vec<VdevId> = inner.tree.tops().iter().filter(|top| top.is_log).map(|top| top.id).collect();
        let is_log_usable = |id: VdevId| inner.tree.top(id).is_some_and(|top| top.is_usable());
        logs.iter().for_each(|id| inner.space.set_allocatable(*id, false));
        let gone = self.leave_mirrors(name, named, &logs).await;
        logs.iter().for_each(|id| inner.space.set_allocatable(*id, is_log_usable(*id)));
        let Gone { leaves, split, config } = gone?;
        self.trust_caches();
        let mut labelled = Ok(());
        let mut devices = HashMap::default();
        for leaf in &leaves {
            labelled = labelled.and(relabel(leaf, &split.spec, &config).await);
            devices.insert(leaf.guid(), leaf.device());
            leaf.take_out(Health::new(State::Offline, vdev::Aux::None)).await;
        }
        labelled?;
        let candidate =
            Candidate { config, tree: split.spec.clone(), devices, former: None, aux: Vec::new() };
        open_special(&candidate, open, Special { split: Some(split), ..Special::default() }).await
    }

    async fn leave_mirrors(&self, name: String, named: &[Guid], logs: &[VdevId]) -> Result<Gone> {
        for log in logs {
            self.evacuate_log(*log).await?;
        }
        // What a client was told is done is in the new pool, whether or not it was flushed.
        self.sync().await?;
        let named = named.to_vec();
        self.change("split", move |pool, tx| async move { pool.leave_mirrors_in(&tx, name, &named).await })
            .await
    }

    async fn leave_mirrors_in(&self, tx: &Tx, name: String, named: &[Guid]) -> Result<Gone> {
        let inner = &self.0;
        let chosen = self.plan_split(named)?;
        let mut spec = inner.tree.spec();
        let guid = self.draw_guid();
        let left_behind = LeftBehind::of(&spec, &chosen);
        let split = SplitOff { name: name.clone(), spec: spec.split(&chosen, guid)?, left_behind };
        let mut renamed = Vec::new();
        let mut sides = Vec::new();
        for guid in &chosen {
            let gone = spec.detach(*guid)?;
            renamed.extend(gone.renamed);
            sides.push(gone.spec);
        }
        for side in &sides {
            if let Some(map) = side.dtl.and_then(|map| ObjectId(map).some()) {
                inner.free_map(tx, map).await?;
            }
            vdev_zaps::remove(inner.dsl.core(), tx, side).await?;
        }
        let left = inner.tree.reshape(spec, &renamed, &[])?;
        self.update_config(|_| ());
        for side in &sides {
            let text = format!("vdev={}", side.path.as_deref().unwrap_or("none"));
            inner.dsl.record_event(tx, "detach", &text, None).await?;
        }
        let text = format!("new pool {name} from pool {}", self.name());
        inner.dsl.record_event(tx, "split", &text, None).await?;
        let config = PoolConfig { name, guid, ..inner.config_at(tx.txg()) };
        Ok(Gone { leaves: left, split, config })
    }

    /// Frees what the MOS of a pool that was split off holds for the vdevs that it has not. In syncing context.
    pub(crate) async fn free_what_stayed_behind(&self, tx: &Tx) -> Result<()> {
        let Some(LeftBehind { logs, sides }) = lock(&self.0.left_behind).take() else { return Ok(()) };
        let core = self.0.dsl.core();
        for log in &logs {
            self.free_maps_of(tx, log).await?;
        }
        for vdev in logs.iter().chain(&sides) {
            for map in vdev.walk().filter_map(|v| ObjectId(v.dtl?).some()) {
                self.0.free_map(tx, map).await?;
            }
            vdev_zaps::remove(core, tx, vdev).await?;
        }
        for kind in [AuxKind::Spare, AuxKind::Cache] {
            self.forget_side_devices(tx, kind).await?;
        }
        Ok(())
    }

    /// The space maps of a log, and their array.
    async fn free_maps_of(&self, tx: &Tx, log: &Spec) -> Result<()> {
        let Some(array) = log.metaslab_array() else { return Ok(()) };
        let mos = &self.0.mos;
        let object = mos.object(array).await?;
        let len = object.attrs().size_bound().min(8 << 20) as usize;
        for word in object.read(0, len).await?.as_chunks().0 {
            if let Some(map) = ObjectId(u64::from_ne_bytes(*word)).some() {
                self.0.free_map(tx, map).await?;
            }
        }
        mos.free(tx, array).await
    }
}
