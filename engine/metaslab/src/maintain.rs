//! The rounds of a pool's life: load, sync, settle, unload.
//!
//! ```text
//!   open ── preload ──▶ txg: sync(1) sync(2) ... sync_done ── preload (in the background) ──▶ next txg
//! ```
//!
//! [`Space::preload`] keeps the metaslabs that will be needed next in memory, so that an allocation in the middle of a sync
//! does not have to wait for a read.

use crate::class::Class;
use crate::free_space::FreeSpace;
use crate::load::{LoadPlan, Loader};
use crate::metaslab::sync::Pass;
use crate::metaslab::{Metaslab, State};
use crate::place::Unloaded;
use crate::space::{MetaslabInfo, Space};
use crate::vdev::TopVdev;
use std::sync::Arc;
use units::{Error, Result, Txg};
use world::sync::Notify;

/// How many of the best metaslabs of each group are held ready: one for each copy, and one to go on with.
const PRELOAD: usize = 4;
/// A metaslab that was not allocated from for so many txgs is unloaded (`metaslab_unload_delay`).
const UNLOAD_AFTER_TXGS: u64 = 32;
/// With more free segments than this in memory (some 50 bytes each), the ones used longest ago go earlier.
const SEGMENTS_MAX: usize = 4 << 20;
/// Entries applied before others may run: about a millisecond.
const ENTRIES_AT_ONCE: usize = 4096;

impl Space {
    /// Loads a metaslab that [`Space::try_allocate`] asked for. If that fails, it is not asked for again soon, and the
    /// reason is among the problems.
    pub async fn load(&self, unloaded: &Unloaded) {
        if let Err(problem) = self.load_metaslab(&unloaded.0).await {
            unloaded.0.shun();
            self.note_problem(problem);
        }
    }

    /// Loads the metaslabs that will be used next. Call it after opening and after each txg.
    pub async fn preload(&self) {
        let groups: Vec<_> = self.vdevs().iter().flat_map(|v| v.groups.clone()).collect();
        for metaslab in groups.iter().flat_map(|g| g.best(PRELOAD)) {
            self.load(&Unloaded(metaslab)).await;
        }
    }

    /// Loads a metaslab, or waits for the task that does.
    pub(crate) async fn load_metaslab(&self, metaslab: &Metaslab) -> Result<()> {
        loop {
            let ended = self.loads.notified();
            let begun = metaslab.lock().load_step();
            match begun {
                LoadStep::Done => return Ok(()),
                LoadStep::Wait => ended.await,
                LoadStep::Begin(plan) => {
                    let mut loading = Loading { metaslab, loads: &self.loads, over: false };
                    let result = self.read_map(plan).await;
                    return loading.end(result);
                }
            }
        }
    }

    async fn read_map(&self, plan: LoadPlan) -> Result<FreeSpace> {
        let source = plan.source;
        let mut loader = Loader::new(plan);
        if let Some((object, length)) = source {
            let bytes = self.log.read(object, length).await?;
            if bytes.len() as u64 != length {
                return Err(Error::corrupt(format!("space map {object}: shorter than its length, {length}")));
            }
            for (applied, result) in loader.apply(&bytes).enumerate() {
                result?;
                if applied % ENTRIES_AT_ONCE == ENTRIES_AT_ONCE - 1 {
                    world::yield_now().await;
                }
            }
        }
        loader.finish()
    }

    /// Writes what a txg changed, as far as it is known; true when there was something to write. Called again in each
    /// pass, since writing maps allocates and frees, until nothing is left.
    pub async fn sync(&self, txg: Txg, pass: u32) -> Result<bool> {
        let how = Pass { txg, pass, long_entries: self.uses_long_entries() };
        let mut wrote = false;
        for top in self.vdevs() {
            for metaslab in top.take_dirty(txg) {
                wrote |= self.sync_metaslab(&top, &metaslab, how).await?;
                world::breathe().await;
            }
        }
        Ok(wrote)
    }

    async fn sync_metaslab(&self, top: &TopVdev, metaslab: &Metaslab, how: Pass) -> Result<bool> {
        if !metaslab.lock().is_dirty(how.txg) {
            return Ok(false);
        }
        if metaslab.lock().map.is_none() {
            let info = self.log.create(top.spec.vdev, metaslab.place.index as u64, how.txg).await?;
            metaslab.lock().map = Some(info);
        }
        let (object, write) = metaslab.lock().plan_sync(how)?;
        self.log.write(object, write, how.txg).await?;
        Ok(true)
    }

    /// The txg is on disk: settles what it freed. To be called for every txg, even one that changed nothing.
    pub async fn sync_done(&self, txg: Txg) -> Result<()> {
        let normal = self.usage(Class::Normal);
        // Deferring keeps freed space out of use for two txgs; when there is hardly any other, that is too dear.
        let defer = normal.free() > self.slop();
        for top in self.vdevs() {
            for metaslab in top.take_unsettled() {
                settle(&top, &metaslab, txg, defer)?;
                world::breathe().await;
            }
        }
        self.balance();
        if txg.0.is_multiple_of(UNLOAD_AFTER_TXGS / 4) {
            self.unload_idle(txg);
        }
        Ok(())
    }

    fn balance(&self) {
        let table = self.table();
        Class::ALL.into_iter().for_each(|class| table.rotor(class).balance());
    }

    fn unload_idle(&self, txg: Txg) {
        let mut loaded: Vec<(Txg, usize, Arc<Metaslab>)> = Vec::new();
        for group in self.vdevs().iter().flat_map(|v| v.groups.clone()) {
            let kept = group.best(PRELOAD);
            let idle = group
                .members()
                .iter()
                .filter(|m| !group.is_active(m) && !kept.iter().any(|k| Arc::ptr_eq(k, m)));
            loaded.extend(idle.filter_map(|m| {
                let state = m.lock();
                Some((state.used_txg, state.segments()?, m.clone()))
            }));
        }
        loaded.sort_by_key(|(used, ..)| *used);
        let mut segments: usize = loaded.iter().map(|(_, segments, _)| segments).sum();
        for (used, its_segments, metaslab) in loaded {
            if used.0 + UNLOAD_AFTER_TXGS >= txg.0 && segments <= SEGMENTS_MAX {
                break;
            }
            let mut state = metaslab.lock();
            state.unload();
            metaslab.reweigh(&state);
            segments -= its_segments;
        }
    }
}

fn settle(top: &TopVdev, metaslab: &Metaslab, txg: Txg, defer: bool) -> Result<()> {
    let mut state = metaslab.lock();
    let settled = state.sync_done(txg, defer)?;
    top.group_of(metaslab).settle(settled);
    if state.deferred_space() > 0 {
        top.mark_unsettled(metaslab.place.index);
    }
    metaslab.reweigh(&state);
    Ok(())
}

enum LoadStep {
    Done,
    Wait,
    Begin(LoadPlan),
}

impl State {
    fn load_step(&mut self) -> LoadStep {
        match self.begin_load() {
            Some(plan) => LoadStep::Begin(plan),
            None if self.is_away() => LoadStep::Wait,
            None => LoadStep::Done,
        }
    }

    /// How many free segments are in memory.
    fn segments(&self) -> Option<usize> {
        self.allocatable().map(|free| free.ranges().count())
    }

    pub(crate) fn info(&self) -> MetaslabInfo {
        MetaslabInfo {
            index: self.place.index,
            offset: self.place.region.start,
            size: self.place.region.len(),
            allocated: self.allocated,
            deferred: self.deferred_space(),
            map: self.map,
            loaded: self.is_loaded(),
            segments: self.segments(),
            fragmentation: self.fragmentation(),
        }
    }
}

/// A load under way; dropped half-way, it is as if it had never begun.
struct Loading<'a> {
    metaslab: &'a Metaslab,
    loads: &'a Notify,
    over: bool,
}

impl Loading<'_> {
    fn end(&mut self, result: Result<FreeSpace>) -> Result<()> {
        let mut state = self.metaslab.lock();
        let result = state.end_load(result);
        self.metaslab.reweigh(&state);
        self.over = true;
        result
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.metaslab.lock().abandon_load();
        }
        self.loads.notify_all();
    }
}
