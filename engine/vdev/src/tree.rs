//! The open tree: the top-level vdevs of a pool, and its spares and cache devices beside them.
//!
//! It keeps the [`Spec`] it was opened from: that is what labels and MOS are written from, and the pool changes it
//! there (the metaslab array of a new vdev, the ZAPs, a property).

use crate::history::Past;
use crate::leaf::{Expected, Leaf};
use crate::open::{open_aux, open_top};
use crate::status::VdevStatus;
use crate::{Aux, Health, OpenOptions, Spec, State, Top, VdevType};
use futures_util::future::{join, join_all};
use ondisk::{PoolState, Uberblock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use tunables::{Tunable, Tunables};
use units::{Error, Guid, Result, Txg, VdevId};
use world::OpenMode;

/// DVAs have 24 bits for the vdev.
const TOPS_MAX: u64 = 1 << 24;

/// See the module.
#[derive(Debug)]
pub struct Tree {
    pub mode: OpenMode,
    spec: Mutex<Spec>,
    tops: RwLock<Vec<Option<Arc<Top>>>>,
    aux: Mutex<[Vec<AuxDevice>; 2]>,
    options: OpenOptions,
    past: Mutex<Past>,
    /// How many asynchronous writes each leaf may have active.
    async_writes: AtomicU32,
}

/// Top-level vdevs that are open and not yet part of a tree.
#[derive(Debug)]
pub struct NewTops {
    pub specs: Vec<Spec>,
    pub tops: Vec<Arc<Top>>,
}

/// A device beside the tree.
#[derive(Clone, Debug)]
pub struct AuxDevice {
    pub spec: Spec,
    pub leaf: Arc<Leaf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuxKind {
    Spare,
    Cache,
}

impl AuxKind {
    /// What the labels of such a device say it is.
    pub fn state(self) -> PoolState {
        match self {
            AuxKind::Spare => PoolState::Spare,
            AuxKind::Cache => PoolState::L2Cache,
        }
    }
}

impl Tree {
    /// Opens all devices of the tree below the root `spec`. Fails only for what cannot be read at all; see [`Tree::health`]
    /// for how well it went.
    pub async fn open(spec: Spec, options: OpenOptions) -> Result<Arc<Tree>> {
        if spec.vdev_type != VdevType::Root {
            return Err(Error::corrupt(format!("a {} instead of the root of the vdev tree", spec.vdev_type)));
        }
        spec.check_guids()?;
        let tops = open_tops(&spec.children, 0, &options).await?;
        Ok(Arc::new(Tree {
            mode: options.mode,
            spec: Mutex::new(spec),
            tops: RwLock::new(tops),
            aux: Mutex::default(),
            options,
            past: Mutex::default(),
            async_writes: AtomicU32::new(0),
        }))
    }

    /// The vdev that a DVA names. `None` for a number never used and for a hole.
    pub fn top(&self, id: VdevId) -> Option<Arc<Top>> {
        self.read_tops().get(id.0 as usize)?.clone()
    }

    /// All top-level vdevs, in order, holes left out.
    pub fn tops(&self) -> Vec<Arc<Top>> {
        self.read_tops().iter().flatten().cloned().collect()
    }

    pub fn leaves(&self) -> Vec<Arc<Leaf>> {
        self.tops().iter().flat_map(|t| t.leaves()).collect()
    }

    /// Opens what is to become top-level vdevs behind the others. Until [`Tree::adopt`] they are not part of the tree.
    pub async fn open_new(&self, specs: Vec<Spec>) -> Result<NewTops> {
        let options = OpenOptions { pool: None, ..self.options.clone() };
        let first = self.read_tops().len() as u64;
        let tops = open_tops(&specs, first, &options).await?.into_iter().flatten().collect();
        Ok(NewTops { specs, tops })
    }

    /// Refuses I/O from now on, waits for what is under way, and closes all devices: then they can be opened again. A device
    /// beside the tree that does not give back what it was asked is not waited for.
    pub async fn close(&self) {
        let aux = self.lock_aux().each_ref().map(|of| of.iter().map(|a| a.leaf.clone()).collect::<Vec<_>>());
        let beside = aux.into_iter().flatten().map(|leaf| async move { leaf.close_alone().await });
        let closing = self.leaves().into_iter().map(|leaf| async move { leaf.close().await });
        join(join_all(closing), join_all(beside)).await;
    }

    /// Makes them part of the tree. The caller keeps others from changing it since they were opened.
    pub fn adopt(&self, new: NewTops) {
        let mut tops = self.tops.write().unwrap_or_else(PoisonError::into_inner);
        let first = new.specs.first().and_then(|s| s.id);
        assert!(first.is_none_or(|id| id == tops.len() as u64), "one caller at a time adds vdevs");
        self.lock_spec().children.extend(new.specs);
        tops.extend(new.tops.into_iter().map(Some));
    }

    /// Takes a top-level vdev out of the tree and leaves a hole in its place. Nothing may be on it any more. Its devices
    /// stay open until the last holder lets go.
    pub fn retire(&self, id: VdevId) -> Option<Arc<Top>> {
        let mut tops = self.tops.write().unwrap_or_else(PoisonError::into_inner);
        let top = tops.get_mut(id.0 as usize)?.take()?;
        let mut spec = self.lock_spec();
        spec.children[id.0 as usize] = Spec::hole(id.0.into());
        Some(top)
    }

    /// Has the spares or the cache devices be these. Those that are open already stay so, what has left is closed. Spares
    /// are opened to be read only, for other pools may know them too.
    pub async fn set_aux(&self, kind: AuxKind, specs: Vec<Spec>) -> Result<()> {
        let before = self.aux(kind);
        // The pool may be called by another guid than when it was opened.
        let own = self.options.pool.map(|_| self.spec().guid);
        let options = &OpenOptions { pool: own, ..self.options.clone() };
        let opened = join_all(specs.into_iter().map(|spec| async {
            // A spare that could not be used may be there now.
            let stays = |device: &&AuxDevice| kind == AuxKind::Cache || device.leaf.is_usable();
            let known = before.iter().find(|device| device.spec.guid == spec.guid).filter(stays);
            let leaf = match known {
                Some(device) => device.leaf.clone(),
                None => open_aux(kind, &spec, options).await?,
            };
            Ok(AuxDevice { spec, leaf })
        }));
        let opened = opened.await.into_iter().collect::<Result<Vec<AuxDevice>>>()?;
        let stays = |guid| opened.iter().any(|device| device.spec.guid == guid);
        let gone: Vec<AuxDevice> = before.into_iter().filter(|device| !stays(device.spec.guid)).collect();
        self.lock_aux()[kind as usize] = opened;
        join_all(gone.iter().map(|device| device.leaf.close_alone())).await;
        Ok(())
    }

    /// Opens a device beside the tree again that was taken out or went away.
    ///
    /// # Errors
    /// `NotFound`; `Io` when it is not there.
    pub async fn bring_back_aux(&self, kind: AuxKind, guid: Guid) -> Result<()> {
        let found = self.aux(kind).into_iter().find(|device| device.spec.guid == guid);
        let device = found.ok_or_else(|| Error::new(units::Kind::NotFound, "find device"))?;
        device.leaf.bring_back_alone(self.mode).await
    }

    pub fn aux(&self, kind: AuxKind) -> Vec<AuxDevice> {
        self.lock_aux()[kind as usize].clone()
    }

    pub(crate) fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The tree as it is to be written.
    pub fn spec(&self) -> Spec {
        self.lock_spec().clone()
    }

    /// Changes what is to be written about the vdevs. Devices are not opened or closed by it.
    pub fn update_spec<T>(&self, change: impl FnOnce(&mut Spec) -> T) -> T {
        change(&mut self.lock_spec())
    }

    /// How well the pool is. Without a log device it can go on; without another top-level vdev it cannot.
    pub fn health(&self) -> Health {
        let tops = self.tops();
        let lost = |log| tops.iter().any(|t| t.is_log == log && !t.is_usable());
        if lost(false) {
            let missing = tops.iter().any(|t| t.health().aux == Aux::BadGuidSum);
            let aux = if missing { Aux::BadGuidSum } else { Aux::NoReplicas };
            return Health::new(State::CannotOpen, aux);
        }
        let sound = tops.iter().all(|t| t.health() == Health::ONLINE);
        if sound { Health::ONLINE } else { Health::new(State::Degraded, Aux::None) }
    }

    /// Everything `zpool status` and `zpool iostat` show of the devices.
    pub fn status(&self) -> VdevStatus {
        let spec = self.spec();
        let mut root = VdevStatus::of_root(&spec, self.health());
        let tops = self.tops();
        for spec in &spec.children {
            if let Some(top) = tops.iter().find(|t| Some(u64::from(t.id.0)) == spec.id) {
                root.children.push(VdevStatus::of(spec, &top.node(), Some(top)));
            }
        }
        let [spares, caches] = self.lock_aux().clone();
        root.spares = spares.iter().map(|d| self.status_of_spare(d)).collect();
        root.caches = caches.iter().map(|d| VdevStatus::of_leaf(&d.spec, &d.leaf)).collect();
        root
    }

    /// A spare that is in use stands in the tree as well, under the same guid.
    fn status_of_spare(&self, spare: &AuxDevice) -> VdevStatus {
        let status = VdevStatus::of_leaf(&spare.spec, &spare.leaf);
        match self.find_leaf(spare.spec.guid) {
            Some(_) => VdevStatus { health: Health::new(status.health.state, Aux::Spared), ..status },
            None => status,
        }
    }

    /// Forgets errors, everywhere or of one vdev and what is below it, and brings devices back that failed: see
    /// [`Leaf::revive`]. One that was offline when it was faulted is offline then. Answers what could not be brought
    /// back and why, or `None` when there is no such vdev.
    pub async fn clear(&self, pool: Guid, of: Option<Guid>) -> Option<Vec<Error>> {
        let mut found = Vec::new();
        for top in self.tops() {
            let mut todo = vec![top.node()];
            while let Some(node) = todo.pop() {
                if of.is_none_or(|guid| guid == node.guid) {
                    found.push((top.clone(), node));
                } else {
                    todo.extend(node.children().iter().cloned());
                }
            }
        }
        let caches = self.aux(AuxKind::Cache).into_iter().filter(|device| {
            of.is_none_or(|guid| guid == device.spec.guid) && device.leaf.health().state != State::Offline
        });
        let caches: Vec<_> = caches.collect();
        if found.is_empty() && caches.is_empty() && of.is_some() {
            return None;
        }
        let leaves = found.iter().flat_map(|(top, node)| {
            node.clear();
            node.leaves().into_iter().map(|leaf| (top.clone(), leaf))
        });
        let spec = self.spec();
        let is_offline = |leaf: &Leaf| spec.find(leaf.guid()).is_some_and(|spec| spec.offline == Some(1));
        let revived = leaves.map(|(top, leaf)| {
            let stays_offline = is_offline(&leaf) && !leaf.is_usable();
            async move {
                match stays_offline {
                    true => leaf.stay_offline(),
                    false => leaf.revive(&self.expected(pool, &top)).await?,
                }
                Ok(())
            }
        });
        let caches = caches.iter().map(|device| device.leaf.bring_back_alone(self.mode));
        let (revived, caches) = join(join_all(revived.collect::<Vec<_>>()), join_all(caches)).await;
        // The pool is whole without them: only what was asked for by name is said.
        let caches = caches.into_iter().filter(|_| of.is_some());
        Some(revived.into_iter().chain(caches).filter_map(Result::err).collect())
    }

    /// Whether every device gives a sign of life, one that is written to included. Waits for all of them.
    pub async fn all_answer(&self) -> bool {
        let leaves = self.leaves();
        let probes = join_all(leaves.iter().map(|leaf| leaf.probe(self.mode))).await;
        probes.iter().all(Result::is_ok)
    }

    /// Opens a leaf again that was taken out or went away, and forgets its errors.
    ///
    /// # Errors
    /// `NotFound`; `Io` when it is not there.
    pub async fn bring_back(&self, pool: Guid, guid: Guid) -> Result<Arc<Leaf>> {
        let found = self.find_leaf(guid);
        let (top, leaf) = found.ok_or_else(|| Error::new(units::Kind::NotFound, "find device"))?;
        leaf.bring_back(&self.expected(pool, &top)).await?;
        Ok(leaf)
    }

    /// What a device of `top` must be that is opened again.
    fn expected(&self, pool: Guid, top: &Top) -> Expected<'_> {
        Expected {
            pool,
            min_asize: top.least_of_a_leaf(),
            ashift: top.ashift,
            mode: self.mode,
            past: &self.past,
        }
    }

    /// What is known of the states that the pool had before it was opened.
    pub fn set_past(&self, past: Past) {
        *self.past.lock().unwrap_or_else(PoisonError::into_inner) = past;
    }

    pub(crate) fn note_state(&self, uberblock: &Uberblock) {
        self.past.lock().unwrap_or_else(PoisonError::into_inner).add(uberblock);
    }

    /// How many asynchronous writes each leaf may have active, by how full of dirty data the pool is.
    pub fn set_dirty(&self, percent: u64) {
        let max_active = async_writes(&self.options.tunables, percent);
        self.async_writes.store(max_active, Ordering::Relaxed);
        self.leaves().iter().for_each(|leaf| leaf.set_async_writes(max_active));
    }

    /// As many as they may ever have, until more is said by [`Tree::set_dirty`]: what is written early does not keep up.
    /// Where clients wait for a leaf it has fewer all the same.
    pub fn hasten(&self) {
        if self.async_writes.load(Ordering::Relaxed) < async_writes(&self.options.tunables, 100) {
            self.set_dirty(100);
        }
    }

    /// Tells the devices which txg is being synced, so that they know which ones they missed.
    pub fn set_txg(&self, txg: Txg) {
        self.leaves().iter().for_each(|leaf| leaf.set_txg(txg));
    }

    fn read_tops(&self) -> RwLockReadGuard<'_, Vec<Option<Arc<Top>>>> {
        self.tops.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_spec(&self) -> MutexGuard<'_, Spec> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_aux(&self) -> MutexGuard<'_, [Vec<AuxDevice>; 2]> {
        self.aux.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens `specs`, whose ids are `first` and following.
async fn open_tops(specs: &[Spec], first: u64, options: &OpenOptions) -> Result<Vec<Option<Arc<Top>>>> {
    let opened = join_all((first..).zip(specs).map(|(id, spec)| async move {
        if spec.id != Some(id) || id >= TOPS_MAX {
            let found = spec.id.map_or("no id".into(), |id| format!("id {id}"));
            return Err(Error::corrupt(format!(
                "top-level vdev {} has {found}, its place is {id}",
                spec.guid
            )));
        }
        if spec.vdev_type == VdevType::Hole {
            return Ok(None);
        }
        let alarm = Arc::new(AtomicBool::new(false));
        let node = open_top(spec, options, alarm.clone()).await?;
        Top::new(VdevId(id as u32), spec, node, options, alarm).map(|top| Some(Arc::new(top)))
    }));
    opened.await.into_iter().collect()
}

/// From `zfs_vdev_async_write_min_active` at `..._active_min_dirty_percent` and less in a straight line to
/// `..._max_active` at `..._active_max_dirty_percent` and more.
fn async_writes(tunables: &Tunables, percent: u64) -> u32 {
    let from = tunables.get(Tunable::VdevAsyncWriteActiveMinDirtyPercent);
    let to = tunables.get(Tunable::VdevAsyncWriteActiveMaxDirtyPercent).max(from + 1);
    let min = tunables.get(Tunable::VdevAsyncWriteMinActive);
    let max = tunables.get(Tunable::VdevAsyncWriteMaxActive);
    let share = percent.clamp(from, to) - from;
    let active = min + max.saturating_sub(min) * share / (to - from);
    u32::try_from(active).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asynchronous_writes_grow_with_what_is_dirty() {
        let tunables = Tunables::default();
        let at = |percent: u64| async_writes(&tunables, percent);
        assert_eq!([0, 30, 45, 60, 100].map(at), [2, 2, 6, 10, 10]);
        tunables.set(Tunable::VdevAsyncWriteActiveMinDirtyPercent, 60).unwrap();
        assert_eq!(
            [0, 60, 61].map(|p| async_writes(&tunables, p)),
            [2, 2, 10],
            "the percentages meet: a step"
        );
    }
}
