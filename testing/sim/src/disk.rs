//! Disks that are modelled, and can lie.

mod host;
mod opened;
mod state;

use crate::fault::Fault;
use crate::image::mix;
use crate::model::Model;
use crate::rng::Rng;
pub use host::Host;
use host::Place;
use opened::Opened;
use state::State;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::{Disk, OpenMode};

/// All disks of a simulation. Clones share them.
#[derive(Clone, Default)]
pub struct Disks(Arc<Shared>);

#[derive(Default)]
struct Shared {
    disks: Mutex<BTreeMap<PathBuf, Arc<SimDisk>>>,
    /// Disks that others model; neither forks nor power cuts know them.
    attached: Mutex<BTreeMap<PathBuf, Arc<dyn Disk>>>,
    flushes: Counted,
    writes: Counted,
    cut: AtomicBool,
    watcher: Mutex<Option<Watcher>>,
}

type Watcher = Arc<dyn Fn(Moment, u64) + Send + Sync>;

/// Events so far, and the one at which the power goes; 0: none.
#[derive(Default)]
struct Counted {
    count: AtomicU64,
    cut_at: AtomicU64,
}

/// What is about to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Write,
    Flush,
}

/// One disk, to be looked at and tampered with from outside.
#[derive(Clone)]
pub struct DiskHandle(Arc<SimDisk>);

struct SimDisk {
    path: PathBuf,
    state: Mutex<State>,
}

impl std::fmt::Debug for Disks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(lock(&self.0.disks).keys()).finish()
    }
}

impl std::fmt::Debug for DiskHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Disk({})", self.0.path.display())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Counts what is about to complete. When the power goes with it, it never does.
    async fn reach(&self, moment: Moment) {
        let counted = match moment {
            Moment::Write => &self.writes,
            Moment::Flush => &self.flushes,
        };
        let number = counted.count.fetch_add(1, Relaxed) + 1;
        let watcher = lock(&self.watcher).clone();
        if let Some(watch) = watcher {
            watch(moment, number);
        }
        if number == counted.cut_at.load(Relaxed) {
            self.cut.store(true, Relaxed);
        }
        if self.cut.load(Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

impl Disks {
    pub fn new() -> Disks {
        Disks::default()
    }

    /// Adds an empty disk.
    pub fn add(&self, path: impl Into<PathBuf>, size: u64, model: Model) -> DiskHandle {
        self.insert(path.into(), State::new(size, model))
    }

    /// Adds an empty disk that is a sparse file of `host`.
    pub fn add_on(&self, host: &Host, path: impl Into<PathBuf>, size: u64, model: Model) -> DiskHandle {
        let mut state = State::new(size, model);
        state.place = Some(Place::new(host));
        self.insert(path.into(), state)
    }

    /// Adds a disk that the caller models, in the time of the run. It is outside of what is forked, cut and printed here.
    pub fn attach(&self, disk: Arc<dyn Disk>) {
        lock(&self.0.attached).insert(disk.path().to_path_buf(), disk);
    }

    fn insert(&self, path: PathBuf, state: State) -> DiskHandle {
        let disk = Arc::new(SimDisk { path: path.clone(), state: Mutex::new(state) });
        lock(&self.0.disks).insert(path, disk.clone());
        DiskHandle(disk)
    }

    pub fn get(&self, path: impl AsRef<Path>) -> Option<DiskHandle> {
        lock(&self.0.disks).get(path.as_ref()).cloned().map(DiskHandle)
    }

    pub fn remove(&self, path: impl AsRef<Path>) {
        lock(&self.0.attached).remove(path.as_ref());
        lock(&self.0.disks).remove(path.as_ref());
    }

    /// The same disks in the same state, from here on for themselves: to try several fates from one point. Pages are
    /// shared until they are changed.
    #[must_use]
    pub fn fork(&self) -> Disks {
        let copy = Disks::new();
        for (path, disk) in lock(&self.0.disks).iter() {
            let state = lock(&disk.state).clone();
            copy.insert(path.clone(), state);
        }
        copy
    }

    /// How many flushes all disks together have completed.
    pub fn flushes(&self) -> u64 {
        self.0.flushes.count.load(Relaxed)
    }

    /// How many writes all disks together have completed.
    pub fn writes(&self) -> u64 {
        self.0.writes.count.load(Relaxed)
    }

    /// Cuts the power when the `n`-th flush from now on is about to complete: see [`crate::run_until_cut`].
    pub fn cut_at_flush(&self, n: u64) {
        self.0.flushes.cut_at.store(self.flushes() + n, Relaxed);
    }

    /// Cuts the power when the `n`-th write from now on is about to complete.
    pub fn cut_at_write(&self, n: u64) {
        self.0.writes.cut_at.store(self.writes() + n, Relaxed);
    }

    /// Calls `watch` whenever a write or a flush is about to complete, with its number among all writes or all flushes:
    /// there [`Disks::fork`] makes a picture of what a cut at that moment would find.
    pub fn watch(&self, watch: impl Fn(Moment, u64) + Send + Sync + 'static) {
        *lock(&self.0.watcher) = Some(Arc::new(watch));
    }

    pub fn unwatch(&self) {
        *lock(&self.0.watcher) = None;
    }

    /// Cuts the power of a run under way, at once.
    pub fn cut_now(&self) {
        self.0.cut.store(true, Relaxed);
    }

    pub(crate) fn take_cut(&self) -> bool {
        self.0.cut.swap(false, Relaxed)
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.0.cut.load(Relaxed)
    }

    /// What a power cut leaves: all that was flushed, and of the rest whatever `seed` says.
    pub fn power_cut(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.0.flushes.cut_at.store(0, Relaxed);
        self.0.writes.cut_at.store(0, Relaxed);
        for disk in lock(&self.0.disks).values() {
            lock(&disk.state).power_cut(&mut rng);
        }
    }

    /// A fingerprint of what is durable: right after [`Disks::power_cut`] that is all there is, and disks with the same
    /// fingerprint are the same to a reader. Faults are not in it.
    pub fn print(&self) -> u64 {
        let disks = lock(&self.0.disks);
        let name = |path: &Path| path.as_os_str().as_encoded_bytes().iter().fold(1, |s, &b| mix(s, b.into()));
        disks.iter().fold(1, |sum, (path, disk)| {
            let state = lock(&disk.state);
            [name(path), state.size, state.durable.print()].into_iter().fold(sum, mix)
        })
    }

    /// Time starts again with each run; nothing is busy or open then.
    pub(crate) fn restart(&self) {
        for disk in lock(&self.0.disks).values() {
            lock(&disk.state).restart();
        }
    }

    pub(crate) fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Disk>> {
        if let Some(attached) = lock(&self.0.attached).get(path) {
            return Ok(attached.clone());
        }
        let disk = lock(&self.0.disks).get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        let unplugged = {
            let mut state = lock(&disk.state);
            if state.fault.gone {
                return Err(io::ErrorKind::NotFound.into());
            }
            if mode == OpenMode::ReadWrite {
                if state.opened_for_writing {
                    let why = format!("'{}' is in use: it is open for writing already", path.display());
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
                }
                state.opened_for_writing = true;
            }
            state.unplugged
        };
        Ok(Arc::new(Opened { disk, all: self.0.clone(), mode, unplugged }))
    }

    pub(crate) fn list(&self, dir: &Path) -> Vec<PathBuf> {
        let (disks, attached) = (lock(&self.0.disks), lock(&self.0.attached));
        let all: std::collections::BTreeSet<&PathBuf> = disks.keys().chain(attached.keys()).collect();
        all.into_iter().filter(|path| path.parent() == Some(dir)).cloned().collect()
    }
}

impl DiskHandle {
    pub fn set_fault(&self, fault: Fault) {
        lock(&self.0.state).fault = fault;
    }

    /// Unplugs it: its cache is lost, and it is gone until another fault is set. What has it open must open it anew.
    pub fn unplug(&self) {
        lock(&self.0.state).unplug();
    }

    /// Sets the fault when the `n`-th write from now on is issued: a disk that vanishes, or comes back, in the midst.
    pub fn fault_at_write(&self, n: u64, fault: Fault) {
        let mut state = lock(&self.0.state);
        let number = state.writes() + n;
        state.script.insert(number, fault);
    }

    /// Takes back what [`DiskHandle::fault_at_write`] has set for later.
    pub fn forgive(&self) {
        lock(&self.0.state).script.clear();
    }

    /// Makes reads that touch the range fail until something is written there.
    pub fn break_sectors(&self, range: Range<u64>) {
        lock(&self.0.state).bad.push(range);
    }

    /// Makes all sectors readable again, with what they had.
    pub fn mend_sectors(&self) {
        lock(&self.0.state).bad.clear();
    }

    /// Changes the size, as when the file under a pool is truncated; what is beyond is lost.
    pub fn resize(&self, size: u64) {
        lock(&self.0.state).resize(size);
    }

    /// The bytes that a read would see now.
    pub fn peek(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        lock(&self.0.state).view.read(offset, &mut out);
        out
    }

    /// Changes bytes behind the engine's back: bit rot, a misdirected write.
    pub fn poke(&self, offset: u64, bytes: &[u8]) {
        let mut state = lock(&self.0.state);
        state.view.write(offset, bytes);
        state.durable.write(offset, bytes);
    }

    pub fn size(&self) -> u64 {
        lock(&self.0.state).size
    }

    /// How many writes failed because its host had no room for them.
    pub fn refused(&self) -> u64 {
        lock(&self.0.state).refused
    }

    /// How many writes this disk was given.
    pub fn writes(&self) -> u64 {
        lock(&self.0.state).writes()
    }
}
