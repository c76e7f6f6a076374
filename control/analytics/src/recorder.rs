//! The recorder: all datasets, the second in which they take their samples, and the errand that brings them to disk.
//!
//! ```text
//!   run ── each second ──▶ tick: every dataset takes a sample ──▶ wakes readers that wait for it
//!     └─── each minute ──▶ flush, an errand: blocks encoded one by one, written, and the old pruned
//! ```
//!
//! What bounds memory: blocks that grow are ended early past half of [`Limits::memory`]; past all of it the oldest samples
//! that are not on disk go, and that is told.

use crate::clock::{Clock, Tick};
use crate::dataset::Dataset;
use crate::errands::Errands;
use crate::ledger::Ledger;
use crate::store::{Record, Sizes, Store};
use crate::tap::{Taken, Tap, Tapped, Taps};
use api::analytics::{Granularity, Settings, Statistic};
use api::{ApiError, ErrorKind, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::Instant;
use world::sync::{Event, Watch};

/// How much a crash loses at most.
pub const FLUSH_SECONDS: u64 = 60;
/// How long a temporary dataset that no reader asks for goes on: longer than a page takes to be reloaded.
const IDLE_SECONDS: u64 = 600;
const TOLD: &str = "samples that were not on disk were dropped: too much is open at once";

/// What is kept at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of samples in memory.
    pub memory: usize,
    /// Datasets that are open.
    pub datasets: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory: 64 << 20, datasets: 256 }
    }
}

/// Clones are the same recorder.
#[derive(Clone)]
pub struct Recorder(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub state: Mutex<State>,
    pub store: Mutex<Store>,
    pub errands: Errands,
    limits: Limits,
    /// How often samples were taken.
    pub ticks: Watch<u64>,
    pub ending: Event,
    is_flushing: world::sync::Mutex<()>,
}

#[derive(Default)]
pub(crate) struct State {
    pub datasets: BTreeMap<String, Dataset>,
    pub ledger: Ledger,
    pub taps: Option<Arc<dyn Taps>>,
    pub settings: Settings,
    /// The last second that has a sample.
    pub last: u64,
    /// Why samples are not kept on disk, and what befell the store.
    problem: Option<String>,
    notice: Option<String>,
    clock: Clock,
    sequence: u64,
    /// The store was begun when it was opened.
    is_new: bool,
    /// What the store said of the sizes of datasets that are not open yet.
    pending_sizes: Sizes,
    next_id: u32,
    /// What the store knows of datasets.
    recorded: BTreeMap<u32, Record>,
    /// Destroyed, and still on disk.
    doomed: Vec<u32>,
    /// A flush is due before its time.
    is_pressed: bool,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({} datasets)", self.state().datasets.len())
    }
}

impl Recorder {
    /// Nothing is opened before [`Recorder::begin`].
    pub fn new(path: &Path, limits: Limits, errands: Errands) -> Recorder {
        Recorder(Arc::new(Inner {
            state: Mutex::default(),
            store: Mutex::new(Store::at(path)),
            errands,
            limits,
            ticks: Watch::new(0),
            ending: Event::new(),
            is_flushing: world::sync::Mutex::new(()),
        }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // What a panic interrupts is at worst a sample.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the store, and again the datasets that are saved. In a store that is new the `defaults` are opened and saved,
    /// those of them that there are.
    pub async fn begin(&self, taps: Arc<dyn Taps>, defaults: &[&str]) {
        let now = world::wall_clock().seconds;
        {
            let mut state = self.state();
            state.taps = Some(taps.clone());
            state.last = now.saturating_sub(1);
        }
        self.open_store(now).await;
        if self.state().is_new {
            for name in defaults {
                if let Ok(name) = self.open(name) {
                    let _ = self.save(&name);
                }
            }
        }
        self.reopen_all(now).await;
    }

    /// The datasets that the store knows, and that are not open: at the start, or once a store can be opened at last.
    async fn reopen_all(&self, now: u64) {
        let Some(taps) = self.state().taps.clone() else { return };
        let records = self.state().recorded.clone();
        for (id, record) in records {
            {
                let mut state = self.state();
                if state.doomed.contains(&id) {
                    continue;
                }
                // One of that name was opened meanwhile: it goes on with the history that there is.
                if let Some(dataset) = state.datasets.get_mut(&record.name) {
                    (dataset.id, dataset.saved) = (id, true);
                    continue;
                }
            }
            self.reopen(id, record, &*taps, now).await;
        }
    }

    async fn open_store(&self, now: u64) {
        let inner = self.0.clone();
        let opened = self.0.errands.run(move || inner.store().open(now)).await;
        let mut state = self.state();
        match opened {
            Some(Ok(found)) => {
                state.is_new = found.starts == 1;
                state.sequence = state.sequence.max(found.starts << 32);
                state.next_id = state.next_id.max(found.records.keys().next_back().map_or(0, |id| id + 1));
                state.recorded = found.records;
                state.ledger.begin_with(found.changes);
                state.set_sizes(&found.sizes);
                state.pending_sizes = found.sizes;
                state.solved();
                if let Some(notice) = found.notice {
                    tracing::error!("{notice}");
                    state.notice = Some(notice);
                    // What there is in memory is written into the new one.
                    state.datasets.values_mut().for_each(Dataset::not_written);
                    state.ledger.not_written();
                }
            }
            Some(Err(e)) => state.failed(&e.to_string()),
            None => state.failed("opening the store of samples panicked"),
        }
        if !self.0.store_is_open() {
            // Numbers that the store will not have given, whenever it can be opened.
            state.next_id = state.next_id.max(1 << 31 | (now as u32) >> 1);
        }
    }

    async fn reopen(&self, id: u32, record: Record, taps: &dyn Taps, now: u64) {
        let inner = self.0.clone();
        let found = self.0.errands.run(move || {
            let store = inner.store();
            let blocks = |of| store.blocks(id, of, now, now + 1).unwrap_or_default();
            let oldest = Granularity::ALL.map(|of| store.oldest(id, of).ok().flatten());
            (Granularity::ALL.map(blocks), first_of(oldest))
        });
        let (blocks, oldest) = found.await.unwrap_or_default();
        let (of, problem) = match taps.open(&record.name) {
            Ok(tapped) => (tapped, None),
            Err(why) => (closed(&record.name), Some(why)),
        };
        let mut state = self.state();
        let mut dataset = Dataset::new(id, of);
        dataset.is_open = problem.is_none();
        dataset.problem = problem;
        dataset.saved = true;
        dataset.suspended = record.suspended;
        dataset.since = oldest;
        for (of, blocks) in Granularity::ALL.into_iter().zip(&blocks) {
            if let Err(e) = dataset.go_on(of, blocks, now) {
                tracing::warn!("{}: {e}", record.name);
            }
        }
        let sizes = std::mem::take(&mut state.pending_sizes);
        Granularity::ALL
            .iter()
            .for_each(|of| dataset.on_disk[*of as usize] = sizes.get(&(id, *of)).copied().unwrap_or(0));
        state.pending_sizes = sizes;
        state.datasets.insert(dataset.of.name.clone(), dataset);
    }

    /// Takes samples until [`Recorder::end`].
    pub async fn run(self) {
        let mut flushed = world::now();
        while !self.0.ending.is_set() {
            let wall = world::wall_clock();
            self.tick(wall.seconds, world::now());
            let is_pressed = std::mem::take(&mut self.state().is_pressed);
            if is_pressed || world::now().since(flushed) >= Duration::from_secs(FLUSH_SECONDS) {
                flushed = world::now();
                let own = self.clone();
                world::spawn(async move { own.flush().await });
            }
            self.judge_due();
            // A little past the second, so that the clock shows it.
            let rest = 1_001_000_000 - u64::from(wall.nanos.min(999_999_999));
            let _ = world::timeout(Duration::from_nanos(rest), self.0.ending.wait()).await;
        }
        self.flush().await;
    }

    /// Readers that wait get what there is, and what is in memory is brought to disk.
    pub fn end(&self) {
        self.0.ending.set();
    }

    pub fn has_ended(&self) -> bool {
        self.0.ending.is_set()
    }

    /// Waits for the end.
    pub async fn ended(&self) {
        self.0.ending.wait().await;
    }

    /// Every dataset takes a sample, if one is due at that second.
    pub(crate) fn tick(&self, wall: u64, now: Instant) {
        {
            let mut state = self.state();
            let state = &mut *state;
            let Tick::Due(second) = state.clock.tick(wall, now) else { return };
            state.last = second;
            state.datasets.values_mut().for_each(|dataset| dataset.sample(second, &mut state.sequence));
            state.end_idle(second);
            state.bound(self.0.limits.memory);
        }
        self.0.ticks.update(|ticks| *ticks += 1);
    }

    /// Encodes what is full, brings what is saved to disk, and forgets what is old. One at a time.
    pub(crate) async fn flush(&self) {
        let _turn = self.0.is_flushing.lock().await;
        let (now, wall) = (world::now(), world::wall_clock().seconds);
        if !self.0.store_is_open() {
            self.open_store(wall).await;
            self.reopen_all(wall).await;
        }
        if !self.0.store_is_open() {
            // Why is told already. What is full takes less memory encoded.
            let own = self.clone();
            self.0.errands.run(move || own.seal_here()).await;
            return;
        }
        let own = self.clone();
        let done = self.0.errands.run(move || own.flush_here()).await;
        match done {
            Some(Ok(())) => self.state().solved(),
            Some(Err(e)) => {
                self.state().failed(&e.to_string());
                return;
            }
            None => {
                self.state().failed("writing samples panicked");
                return;
            }
        }
        let is_trusted = self.state().clock.is_trusted(now);
        let own = self.clone();
        let pruned = self.0.errands.run(move || own.prune_here(wall, is_trusted)).await;
        if let Some(Err(e)) = pruned {
            self.state().failed(&e.to_string());
        }
    }

    /// Encodes what is full; the names of all datasets.
    fn seal_here(&self) -> Vec<String> {
        let names: Vec<String> = self.state().datasets.keys().cloned().collect();
        for name in &names {
            // The lock is let go after each, so that a sample that is due waits for one block at most.
            while self.state().datasets.get_mut(name).is_some_and(Dataset::seal_one) {}
        }
        names
    }

    fn flush_here(&self) -> units::Result<()> {
        let names = self.seal_here();
        let mut puts = Vec::new();
        for name in &names {
            for of in Granularity::ALL {
                if let Some(dataset) = self.state().datasets.get_mut(name).filter(|d| d.saved) {
                    puts.extend(dataset.puts(of));
                }
            }
        }
        let (records, doomed) = self.state().to_record();
        let changes = self.state().ledger.to_write();
        if puts.is_empty() && records.is_empty() && doomed.is_empty() && changes.is_empty() {
            return Ok(());
        }
        let mut store = self.0.store();
        let outcome = store.write(&puts, &records, &changes);
        let mut state = self.state();
        let sizes = match outcome {
            Ok(sizes) => sizes,
            Err(e) => {
                state.datasets.values_mut().for_each(Dataset::not_written);
                return Err(e);
            }
        };
        for dataset in state.datasets.values_mut() {
            for of in Granularity::ALL {
                let own = puts.iter().filter(|put| put.id == dataset.id && put.granularity == of);
                let sequences: Vec<u64> = own.map(|put| put.sequence).collect();
                dataset.written(of, &sequences);
            }
        }
        state.recorded.extend(records);
        state.ledger.written(&changes);
        state.set_sizes(&sizes);
        drop(state);
        for id in doomed {
            store.forget(id)?;
            let mut state = self.state();
            state.doomed.retain(|doomed| *doomed != id);
            state.recorded.remove(&id);
        }
        Ok(())
    }

    /// Forgets what is older than is to be kept, and the oldest where all take too much room.
    fn prune_here(&self, wall: u64, is_trusted: bool) -> units::Result<()> {
        let (settings, ids) = {
            let state = self.state();
            let saved = state.datasets.values().filter(|dataset| dataset.saved);
            (state.settings.clone(), saved.map(|dataset| dataset.id).collect::<Vec<_>>())
        };
        if is_trusted {
            for of in Granularity::ALL {
                let before = wall.saturating_sub(retention(&settings, of).saturating_mul(3_600));
                self.state().datasets.values_mut().for_each(|dataset| dataset.prune(of, before));
                for id in &ids {
                    self.prune_on_disk(*id, of, before)?;
                }
            }
        }
        for of in Granularity::ALL {
            while self.state().disk_bytes() > settings.disk_limit {
                let store = self.0.store();
                let oldest = ids.iter().map(|id| store.oldest(*id, of)).collect::<units::Result<Vec<_>>>()?;
                drop(store);
                let Some(oldest) = oldest.into_iter().flatten().min() else { break };
                let before = (oldest / crate::block::span(of) + 1).saturating_mul(crate::block::span(of));
                for id in &ids {
                    self.prune_on_disk(*id, of, before)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn prune_on_disk(&self, id: u32, of: Granularity, before: u64) -> units::Result<()> {
        loop {
            let (left, has_more) = self.0.store().prune(id, of, before)?;
            self.state().set_sizes(&Sizes::from([((id, of), left)]));
            if !has_more {
                return Ok(());
            }
        }
    }

    pub fn statistics(&self) -> Vec<Statistic> {
        self.state().taps.clone().map_or_else(Vec::new, |taps| taps.statistics())
    }

    pub fn datasets(&self) -> Vec<api::analytics::Dataset> {
        self.state().datasets.values().map(Dataset::told).collect()
    }

    /// Opens a statistic; the name of its dataset.
    pub fn open(&self, statistic: &str) -> Result<String> {
        let refused = |kind, why: String| {
            ApiError::new(kind, format!("cannot open the statistic '{statistic}': {why}"))
        };
        let taps = self.state().taps.clone();
        let taps = taps.ok_or_else(|| {
            refused(ErrorKind::NotFound, "analytics are kept by a daemon, and none runs".into())
        })?;
        let tapped = taps.open(statistic).map_err(|why| refused(ErrorKind::Invalid, why))?;
        let name = tapped.name.clone();
        let mut state = self.state();
        let (last, limit) = (state.last, self.0.limits.datasets);
        if let Some(dataset) = state.datasets.get_mut(&name) {
            dataset.activity = last;
            return Ok(name);
        }
        if state.datasets.len() >= limit {
            let why = format!("{limit} statistics are open, which is as many as can be; destroy some");
            return Err(refused(ErrorKind::NoSpace, why));
        }
        let id = state.next_id;
        state.next_id += 1;
        let mut dataset = Dataset::new(id, tapped);
        dataset.activity = last;
        state.datasets.insert(name.clone(), dataset);
        Ok(name)
    }

    fn with<T>(&self, name: &str, work: impl FnOnce(&mut State, &mut Dataset) -> T) -> Result<T> {
        let mut state = self.state();
        let Some(mut dataset) = state.datasets.remove(name) else {
            let why = format!("there is no dataset '{name}': open its statistic first");
            return Err(ApiError::new(ErrorKind::NotFound, why));
        };
        let outcome = work(&mut state, &mut dataset);
        state.datasets.insert(name.into(), dataset);
        Ok(outcome)
    }

    pub fn save(&self, name: &str) -> Result<()> {
        self.with(name, |state, dataset| {
            dataset.saved = true;
            dataset.not_written();
            state.is_pressed = true;
        })
    }

    /// Without a name: all of them.
    pub fn suspend(&self, name: Option<&str>, suspended: bool) -> Result<()> {
        match name {
            Some(name) => self.with(name, |_, dataset| dataset.suspended = suspended),
            None => {
                self.state().datasets.values_mut().for_each(|dataset| dataset.suspended = suspended);
                Ok(())
            }
        }
    }

    /// Closes the statistic, and forgets all that is kept of it.
    pub fn destroy(&self, name: &str) -> Result<()> {
        self.with(name, |_, _| ())?;
        let mut state = self.state();
        if let Some(dataset) = state.datasets.remove(name)
            && dataset.saved
        {
            state.doomed.push(dataset.id);
            state.is_pressed = true;
        }
        Ok(())
    }

    /// Forgets samples from before that second.
    pub async fn prune(&self, name: &str, of: Option<Granularity>, before: Option<u64>) -> Result<()> {
        let before = before.unwrap_or(u64::MAX);
        let all: Vec<Granularity> = of.map_or(Granularity::ALL.to_vec(), |of| vec![of]);
        let (id, saved) = self.with(name, |_, dataset| {
            all.iter().for_each(|of| dataset.prune(*of, before));
            dataset.since = dataset.first_in_memory();
            (dataset.id, dataset.saved)
        })?;
        if !saved {
            return Ok(());
        }
        let own = self.clone();
        let work = move || all.iter().try_for_each(|of| own.prune_on_disk(id, *of, before));
        let outcome = self.0.errands.run(work).await;
        let failed =
            |why: String| ApiError::new(ErrorKind::Io, format!("cannot forget samples of '{name}': {why}"));
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(e)) => Err(failed(e.to_string())),
            None => Err(failed("the store panicked".into())),
        }
    }

    /// With why nothing is kept on disk now, if so.
    pub fn settings(&self) -> Settings {
        let state = self.state();
        let problem = state.problem.clone().or_else(|| state.notice.clone());
        Settings { problem, ..state.settings.clone() }
    }

    pub fn set_settings(&self, settings: Settings) {
        let mut state = self.state();
        state.settings = Settings { problem: None, ..settings };
        state.is_pressed = true;
    }
}

pub(crate) fn retention(settings: &Settings, of: Granularity) -> u64 {
    match of {
        Granularity::Second => settings.retain_second_data,
        Granularity::Minute => settings.retain_minute_data,
        Granularity::Hour => settings.retain_hour_data,
    }
}

/// The first sample, from the labels of the first blocks: as exact as the finest of them that goes back as far.
fn first_of(oldest: [Option<u64>; 3]) -> Option<u64> {
    let first = oldest.iter().flatten().min()?;
    let is_as_old = |(of, label): &(Granularity, u64)| {
        let coarsest = Granularity::ALL.into_iter().filter(|coarse| coarse > of);
        *label == *first || coarsest.map(Granularity::seconds).any(|step| label - label % step == *first)
    };
    let labels = Granularity::ALL.into_iter().zip(oldest).filter_map(|(of, label)| Some((of, label?)));
    labels.filter(is_as_old).map(|(_, label)| label).next()
}

impl Inner {
    pub fn store(&self) -> MutexGuard<'_, Store> {
        // What was interrupted is a transaction, which is not there then.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store_is_open(&self) -> bool {
        // An errand that has it now has opened it.
        self.store.try_lock().map_or(true, |store| store.is_open())
    }
}

impl State {
    fn solved(&mut self) {
        if self.problem.take().is_some() {
            tracing::info!("samples are kept on disk again");
        }
    }

    fn failed(&mut self, why: &str) {
        if self.problem.as_deref() != Some(why) {
            tracing::error!("samples are not kept on disk: {why}");
        }
        self.problem = Some(why.into());
    }

    fn set_sizes(&mut self, sizes: &Sizes) {
        for dataset in self.datasets.values_mut() {
            for of in Granularity::ALL {
                if let Some(bytes) = sizes.get(&(dataset.id, of)) {
                    dataset.on_disk[of as usize] = *bytes;
                }
            }
        }
    }

    fn disk_bytes(&self) -> u64 {
        self.datasets.values().flat_map(|dataset| dataset.on_disk).sum()
    }

    /// Records that the store has not, and datasets that it has no more.
    fn to_record(&self) -> (BTreeMap<u32, Record>, Vec<u32>) {
        let saved = self.datasets.values().filter(|dataset| dataset.saved);
        let records = saved.map(|d| (d.id, Record { name: d.of.name.clone(), suspended: d.suspended }));
        let records = records.filter(|(id, record)| self.recorded.get(id) != Some(record)).collect();
        (records, self.doomed.clone())
    }

    /// Temporary datasets end when no reader asks for them any more.
    fn end_idle(&mut self, second: u64) {
        self.datasets.retain(|_, dataset| {
            // A clock that stepped back begins the time anew.
            dataset.activity = dataset.activity.min(second);
            dataset.saved || second - dataset.activity < IDLE_SECONDS
        });
    }

    fn bound(&mut self, limit: usize) {
        let tails: usize = self.datasets.values().map(Dataset::tail_memory).sum();
        if tails > limit / 2
            && let Some(largest) = self.datasets.values_mut().max_by_key(|dataset| dataset.tail_memory())
        {
            largest.end_tail();
            self.is_pressed = true;
        }
        while self.datasets.values().map(Dataset::memory).sum::<usize>() > limit {
            let Some(largest) = self.datasets.values_mut().max_by_key(|dataset| dataset.memory()) else {
                return;
            };
            largest.problem = Some(TOLD.into());
            if !largest.drop_oldest() {
                // It is all in blocks that grow: the largest takes no more until it is resumed.
                largest.end_tails();
                largest.suspended = true;
                if !largest.drop_oldest() {
                    return;
                }
            }
        }
    }
}

/// What stands for a statistic that there is no more.
fn closed(name: &str) -> Tapped {
    struct Closed;
    impl Tap for Closed {
        fn take(&mut self) -> Taken {
            Taken::default()
        }
    }
    Tapped {
        name: name.into(),
        grouping: String::new(),
        explanation: "there is no such statistic any more".into(),
        unit: String::new(),
        overhead: "low".into(),
        scale: None,
        tap: Box::new(Closed),
    }
}
