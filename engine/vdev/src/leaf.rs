//! A leaf: one file, block device or partition, its queue, its health and its counters.
//!
//! Offsets of [`Leaf::read`] and its sisters begin where data begins; the labels are reached with the `_raw` ones.
//!
//! An operation that fails is tried once more; if it fails again the error is counted and the leaf is suspected.
//! The top-level vdev (`Top`) then examines it: it knows whether the others can do without this leaf.
//!
//! Invariant: a leaf that is not usable refuses I/O at once, so that no request waits for a dead device.

mod presence;

use crate::closing::Closable;
use crate::diagnosis::{Diagnosis, Fault, Thresholds, Verdict};
use crate::flush::{Due, Durability, LOST};
use crate::geometry::leaf_asize;
use crate::history::{Departure, Past};
use crate::label::read::{Labels, read_labels};
use crate::label::ring::{forget_uberblocks, read_uberblocks};
use crate::pace::Pace;
use crate::queue::schedule::{Direction, Shape};
use crate::queue::{Answer, Outcome, Queue, Work};
use crate::stats::LeafStats;
use crate::{Aux, Device, Errors, Health, Missing, OpenOptions, Priority, State};
use ondisk::Uberblock;
use ondisk::label::{BOOT_HEADER_OFFSET, DATA_OFFSET, LABEL_PAD_SIZE, LABEL_SIZE};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tunables::{Tunable, Tunables};
use units::{Error, Guid, Kind, Result, Txg};
use world::stages::{Stage, stage};
use world::sync::Event;
use world::{Buf, Disk, DiskKind, Instant, IoBuf, OpenMode};

/// See the module.
#[derive(Debug)]
pub struct Leaf {
    guid: AtomicU64,
    inner: Mutex<Inner>,
    queue: Arc<Queue>,
    pub stats: LeafStats,
    pace: Pace,
    errors: [AtomicU64; 3],
    failed_reads: AtomicU64,
    slow: AtomicU64,
    /// The kinds of error since the group last asked.
    suspected: AtomicU8,
    alarm: Arc<AtomicBool>,
    durability: Arc<Durability>,
    /// The administrator says that its cache survives a power cut.
    cache_is_safe: AtomicBool,
    tunables: Arc<Tunables>,
    /// The txg that is being synced.
    syncing: AtomicU64,
    missing: Missing,
    opened: Instant,
}

/// What the intent log writes belongs to a txg at most so far ahead of the one that is being synced.
const MISSED_AHEAD: u64 = 2;

/// How long a device that is opened again may take to give back what it was asked before.
const CLOSING: Duration = Duration::from_secs(10);

/// Why a device is not taken back: how it departs from the pool, and where that is.
#[derive(Debug)]
struct WentOn(Departure, Txg);

impl std::fmt::Display for WentOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let WentOn(Departure { first, last, .. }, latest) = self;
        write!(
            f,
            "it was used without the pool, from txg {first} to {last}, and has what the pool, at txg {latest}, has not"
        )
    }
}

impl std::error::Error for WentOn {}

/// What a device must be that is opened again.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub pool: Guid,
    /// Of a device that was never open.
    pub min_asize: u64,
    pub ashift: u32,
    pub mode: OpenMode,
    pub past: &'a Mutex<Past>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    disk: Option<Arc<dyn Disk>>,
    /// Happens when the disk that is open now, or was last, is closed.
    closed: Arc<Event>,
    psize: u64,
    health: Health,
    /// What the operating system said when it could not be opened.
    detail: Option<String>,
    diagnosis: Diagnosis,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspicion {
    /// An operation failed; if not, there were only wrong checksums and slowness.
    pub failed_io: bool,
    pub verdict: Verdict,
}

impl Leaf {
    /// A leaf that could be opened; `psize` are its usable bytes.
    pub(crate) fn new(
        guid: Guid,
        device: Device,
        disk: Option<Arc<dyn Disk>>,
        health: Health,
        detail: Option<String>,
        options: &OpenOptions,
        alarm: Arc<AtomicBool>,
    ) -> Arc<Leaf> {
        let geometry = disk.as_ref().map(|d| d.geometry());
        let rotational =
            matches!(geometry, Some(g) if matches!(g.kind, DiskKind::Block { rotational: true, .. }));
        let psize = geometry.map_or(0, |g| crate::geometry::leaf_psize(g.size));
        let stats = LeafStats::new(&options.hub, &options.pool_name, &device.to_string());
        let closed = Arc::new(Event::new());
        let disk = disk.map(|disk| Closable::around(disk, closed.clone()));
        let inner = Inner { device, disk, closed, psize, health, detail, diagnosis: Diagnosis::default() };
        Arc::new(Leaf {
            guid: AtomicU64::new(guid.0),
            inner: Mutex::new(inner),
            queue: Queue::new(&options.tunables, rotational),
            stats,
            pace: Pace::default(),
            errors: Default::default(),
            failed_reads: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            suspected: AtomicU8::new(0),
            alarm,
            durability: Durability::new(),
            cache_is_safe: AtomicBool::new(false),
            tunables: options.tunables.clone(),
            syncing: AtomicU64::new(0),
            missing: Missing::default(),
            opened: world::now(),
        })
    }

    /// How long its device has had work, so far.
    pub fn busy_nanos(&self) -> u64 {
        self.queue.busy_nanos()
    }

    /// When its counters began.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// It changes when the leaf takes the place of the group that it was the last of.
    pub fn guid(&self) -> Guid {
        Guid(self.guid.load(Ordering::Relaxed))
    }

    pub(crate) fn set_guid(&self, guid: Guid) {
        self.guid.store(guid.0, Ordering::Relaxed);
    }

    pub fn device(&self) -> Device {
        self.lock().device.clone()
    }

    pub fn health(&self) -> Health {
        self.lock().health
    }

    /// What the operating system said when the device could not be opened.
    pub fn detail(&self) -> Option<String> {
        self.lock().detail.clone()
    }

    pub fn is_usable(&self) -> bool {
        self.health().state.is_usable()
    }

    /// The usable bytes of the device, labels included; 0 when it is not open.
    pub fn psize(&self) -> u64 {
        self.lock().psize
    }

    /// The allocatable bytes of the device.
    pub fn asize(&self) -> u64 {
        leaf_asize(self.psize())
    }

    /// The allocatable bytes that the device has now: it may have grown since it was opened. Of one that is not open, those
    /// it had when it was.
    pub fn asize_now(&self) -> u64 {
        let disk = self.lock().disk.clone();
        let size = disk.and_then(|disk| disk.current_size().ok());
        size.map_or(self.asize(), |size| leaf_asize(crate::geometry::leaf_psize(size)))
    }

    /// Uses all that the device has now; its labels at the end are where that ends from now on. In syncing context, so that
    /// no labels are half written, and the txg writes all of them.
    pub(crate) fn grow(&self) {
        let mut inner = self.lock();
        if let Some(Ok(size)) = inner.disk.as_ref().map(|disk| disk.current_size()) {
            inner.psize = inner.psize.max(crate::geometry::leaf_psize(size));
        }
    }

    pub fn errors(&self) -> Errors {
        let [read, write, checksum] = [0, 1, 2].map(|i| self.errors[i].load(Ordering::Relaxed));
        Errors { read, write, checksum }
    }

    /// Reads that failed since the device was first opened; [`Leaf::errors`] are cleared meanwhile.
    pub fn failed_reads(&self) -> u64 {
        self.failed_reads.load(Ordering::Relaxed)
    }

    /// Operations that took longer than `zio_slow_io_ms`, since the device was opened or cleared.
    pub fn slow_operations(&self) -> u64 {
        self.slow.load(Ordering::Relaxed)
    }

    /// How much is too much.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        self.lock().diagnosis.thresholds = thresholds;
    }

    /// The txgs of which something may be missing on it.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// What waits and what is active at the device, by class.
    pub fn depths(&self) -> [(usize, u32); Priority::COUNT] {
        self.queue.depths()
    }

    /// What its labels say now.
    pub async fn read_labels(&self) -> Result<Labels> {
        Ok(read_labels(&self.disk()?).await)
    }

    pub async fn read(&self, offset: u64, len: usize, priority: Priority) -> Result<Buf> {
        self.read_raw(offset + DATA_OFFSET, len, priority).await
    }

    pub async fn write(self: &Arc<Leaf>, offset: u64, data: Buf, priority: Priority) -> Result<()> {
        self.write_raw(offset + DATA_OFFSET, data, priority).await
    }

    pub async fn trim(&self, offset: u64, len: u64) -> Result<()> {
        let shape = self.shape(Priority::Trim, Direction::Trim, offset + DATA_OFFSET, len);
        self.run(shape, || Work::Trim).await.map(|_| ())
    }

    /// Makes durable all writes that completed before. The device is asked only when it was written since it last was, and
    /// once for all waiters; after a flush that failed, every later one does until the errors are cleared.
    pub async fn flush(self: &Arc<Leaf>) -> Result<()> {
        let disk = self.disk()?;
        self.stats.flush_asked();
        if self.durability.is_clean() || self.survives_power_cuts(&disk) {
            return Ok(());
        }
        let leaf = self.clone();
        let flush = move || async move {
            let started = world::now();
            let result = disk.flush().await;
            leaf.stats.flushed(started, result.is_err());
            result
        };
        stage(Stage::Flush, self.durability.flush(flush)).await.map_err(|e| {
            self.note_missed();
            self.failed(Fault::Write, "flush", e)
        })
    }

    /// Refuses I/O from now on, waits for what is under way, and closes the device.
    pub(crate) async fn close(&self) {
        let (disk, closed) = {
            let mut inner = self.lock();
            inner.detail = Some("it was closed with its pool".into());
            (inner.disk.take(), inner.closed.clone())
        };
        if disk.is_some() {
            drop(disk);
            closed.wait().await;
        }
    }

    /// Trusts, or no longer, that its cache survives a power cut, whatever the device says.
    pub fn set_cache_is_safe(&self, is_safe: bool) {
        self.cache_is_safe.store(is_safe, Ordering::Relaxed);
    }

    pub fn cache_is_safe(&self) -> bool {
        self.cache_is_safe.load(Ordering::Relaxed)
    }

    /// The smallest unit that the device writes without reading first. A file has none of its own.
    pub fn physical_block(&self) -> Option<u32> {
        let geometry = self.lock().disk.as_ref()?.geometry();
        (geometry.kind != DiskKind::File).then_some(geometry.physical_block)
    }

    fn survives_power_cuts(&self, disk: &Arc<dyn Disk>) -> bool {
        let volatile = !matches!(disk.geometry().kind, DiskKind::Block { volatile_cache: false, .. });
        !volatile || self.cache_is_safe() || self.tunables.is_on(Tunable::NoCacheFlush)
    }

    /// Reads at an offset from the very start of the device.
    pub async fn read_raw(&self, offset: u64, len: usize, priority: Priority) -> Result<Buf> {
        if self.durability.is_doubtful()
            && let Some(kept) = self.durability.kept_at(offset, len)
        {
            return Ok(kept);
        }
        let shape = self.shape(priority, Direction::Read, offset, len as u64);
        match self.run(shape, || Work::Read).await {
            Ok(Answer::Bytes(buf)) => Ok(buf),
            Ok(_) => unreachable!("a read that succeeded has bytes"),
            Err(e) => self.durability.kept_at(offset, len).ok_or(e),
        }
    }

    /// How many bytes of neighbours [`Leaf::read_neighbours`] reads at most.
    pub(crate) fn together_max(&self) -> u64 {
        self.queue.together_max()
    }

    /// Reads what lies one behind the other from `offset` on, so many bytes each, with one operation, counted as a batch of
    /// them. `None` when the device did not give all of it, which counts for nothing: each is to be asked for by itself.
    pub(crate) async fn read_neighbours(
        &self,
        offset: u64,
        lens: &[usize],
        priority: Priority,
    ) -> Option<Vec<Buf>> {
        if self.durability.is_doubtful() {
            return None;
        }
        let disk = self.disk().ok()?;
        let len = lens.iter().map(|len| *len as u64).sum();
        let whole = self.shape(priority, Direction::Read, offset + DATA_OFFSET, len);
        let asked = world::now();
        let work = Work::ReadParts(lens.to_vec());
        let Outcome { result, started, ended, batch, leads } =
            self.queue.submit(&disk, whole, work, asked).await;
        self.note_slowness(asked, ended);
        let Ok(Answer::Parts(bufs)) = result else { return None };
        let batch = batch.or((lens.len() > 1).then_some(len));
        let mut at = whole.offset;
        for (i, len) in lens.iter().enumerate() {
            let part = Shape { offset: at, len: *len as u64, ..whole };
            let leads = leads && i == 0;
            let outcome = Outcome { result: Ok(Answer::Done), started, ended, batch, leads };
            self.note_completed(&part, asked, &outcome);
            at = part.end();
        }
        Some(bufs)
    }

    /// Writes at an offset from the very start of the device.
    pub async fn write_raw(self: &Arc<Leaf>, offset: u64, data: Buf, priority: Priority) -> Result<()> {
        if self.durability.is_doubtful() {
            self.note_missed();
            return Err(Error::new(Kind::Io, "write").at(self.device()).because(LOST));
        }
        let shape = self.shape(priority, Direction::Write, offset, data.len() as u64);
        if let Err(e) = self.run(shape, || Work::Write(vec![data.clone()])).await {
            self.durability.failed();
            self.note_missed();
            return Err(e);
        }
        let due = match self.disk() {
            Ok(disk) if self.survives_power_cuts(&disk) => {
                self.durability.wrote_through();
                Due::Nothing
            }
            _ => self.durability.wrote(offset, data),
        };
        // How that flush ends matters to the tasks that need it: a later flush tells them.
        match due {
            Due::Nothing => {}
            Due::Flush => {
                let leaf = self.clone();
                world::spawn(async move { leaf.flush().await });
            }
            Due::Wait => drop(self.flush().await),
        }
        Ok(())
    }

    /// As [`Leaf::write_raw`], for what is not missed when it is lost: a flush makes it durable no sooner than the device
    /// does by itself, and after an error nothing is noted.
    pub async fn write_raw_expendable(&self, offset: u64, data: Buf, priority: Priority) -> Result<()> {
        let shape = self.shape(priority, Direction::Write, offset, data.len() as u64);
        self.run(shape, || Work::Write(vec![data.clone()])).await.map(|_| ())
    }

    pub(crate) fn set_async_writes(&self, max_active: u32) {
        self.queue.set_async_writes(max_active);
    }

    /// How long a read at `offset` would wait, in comparable units.
    pub(crate) fn cost_of_read(&self, offset: u64) -> usize {
        let disk = self.lock().disk.clone();
        let rotational =
            disk.is_some_and(|d| matches!(d.geometry().kind, DiskKind::Block { rotational: true, .. }));
        let cost = seek_cost(&self.tunables, rotational, self.queue.last_end(), offset + DATA_OFFSET);
        self.queue.load() + cost as usize
    }

    /// How long a read typically takes at the device, as far as it was asked lately.
    pub(crate) fn typical_read(&self) -> Option<Duration> {
        match self.tunables.get(Tunable::VdevReadSitOut) {
            0 => None,
            secs => self.pace.typical(|| world::now().since(self.opened), Duration::from_secs(secs)),
        }
    }

    /// Whether something could not be written in the txg that is being synced.
    pub(crate) fn missed_now(&self) -> bool {
        let now = self.syncing.load(Ordering::Relaxed);
        self.missing.span().is_some_and(|(_, Txg(last))| last == now + MISSED_AHEAD)
    }

    pub(crate) fn set_txg(&self, txg: Txg) {
        self.syncing.store(txg.0, Ordering::Relaxed);
    }

    /// What is written belongs to the txg being synced, or, from the intent log, to one of the two behind it.
    fn note_missed(&self) {
        self.missing.failed();
        let txg = self.syncing.load(Ordering::Relaxed);
        self.missing.add(Txg(txg)..=Txg(txg + MISSED_AHEAD));
    }

    /// Counts an error and tells the group.
    pub(crate) fn count(&self, fault: Fault) {
        self.errors.get(fault as usize).unwrap_or(&self.slow).fetch_add(1, Ordering::Relaxed);
        if fault == Fault::Read {
            self.failed_reads.fetch_add(1, Ordering::Relaxed);
        }
        self.lock().diagnosis.note(fault, world::now());
        self.suspected.fetch_or(1 << fault as u8, Ordering::Relaxed);
        self.alarm.store(true, Ordering::Relaxed);
    }

    /// Whether something that is known is for [`Leaf::revive`] to mend.
    fn is_ailing(&self) -> bool {
        let has_errors = self.health() != Health::ONLINE
            || self.errors() != Errors::default()
            || self.slow_operations() > 0;
        has_errors || self.durability.is_doubtful()
    }

    /// Forgets all errors and brings the device back, as `zpool clear` does: it is opened again where it gives no sign of
    /// life, must be as expected; and what was written to it and is not known to be durable is written once more.
    ///
    /// # Errors
    /// `Io` when it is still not there, or does not take what it must; then it is as it was, or not open.
    pub(crate) async fn revive(self: &Arc<Leaf>, expected: &Expected<'_>) -> Result<()> {
        let mode = expected.mode;
        if self.health().state == State::Offline {
            return Ok(());
        }
        // It may have been away, with what its cache held, without an operation that met with it.
        if !self.is_ailing() && self.probe(mode).await.is_ok() {
            return Ok(());
        }
        self.lock().health = Health::ONLINE;
        if self.probe(mode).await.is_err() {
            self.reopen(expected).await.inspect_err(|e| self.note_not_open(e))?;
        }
        // Operations that were under way when it failed may have been counted meanwhile.
        self.pardon();
        let disk = self.disk()?;
        for (offset, data) in self.durability.kept() {
            disk.write(offset, vec![data])
                .await
                .map_err(|e| self.failed(Fault::Write, "write once more", e))?;
        }
        self.forget_errors();
        self.durability.forget_doubts();
        self.pardon();
        Ok(())
    }

    /// Forgets all errors of a device that was taken offline and is closed.
    pub(crate) fn stay_offline(&self) {
        self.forget_errors();
        self.lock().diagnosis.forget();
        self.set_health(Health::new(State::Offline, Aux::None));
    }

    fn forget_errors(&self) {
        self.errors.iter().chain([&self.slow]).for_each(|e| e.store(0, Ordering::Relaxed));
        self.suspected.store(0, Ordering::Relaxed);
    }

    /// Forgets blocks that were wrong on it: it was read before it was known what it misses.
    pub fn forget_wrong_blocks(&self) {
        self.errors[Fault::Checksum as usize].store(0, Ordering::Relaxed);
        self.suspected.fetch_and(!(1 << Fault::Checksum as u8), Ordering::Relaxed);
        self.lock().diagnosis.forget();
    }

    /// Forgets what speaks against the device.
    fn pardon(&self) {
        let mut inner = self.lock();
        inner.health = Health::ONLINE;
        inner.diagnosis.forget();
        inner.detail = None;
    }

    /// Why it is not open.
    fn note_not_open(&self, e: &Error) {
        let cause: Option<&(dyn std::error::Error + 'static)> = e.cause().map(|cause| cause as _);
        let went_on = cause.and_then(|cause| cause.downcast_ref::<WentOn>());
        let aux = if went_on.is_some() { Aux::WentOn } else { Aux::OpenFailed };
        let mut inner = self.lock();
        inner.health = Health::new(State::CannotOpen, aux);
        inner.detail = Some(went_on.map_or_else(|| e.to_string(), WentOn::to_string));
    }

    /// Opens the device anew. What it missed while it was never open is noted. One that went on without the pool meanwhile
    /// is refused; of a txg that was cut short on it nothing is left behind.
    async fn reopen(&self, expected: &Expected<'_>) -> Result<()> {
        let own = self.guid();
        let is_it = |labels: &Labels| {
            let is =
                |name: &str, guid: Guid| labels.best(None).is_some_and(|l| l.guid(name).ok() == Some(guid));
            is("pool_guid", expected.pool) && (is("guid", own) || is("top_guid", own))
        };
        let (disk, was_open) = self.open_anew(expected.min_asize, expected.mode, is_it).await?;
        self.check_past(&disk, expected).await?;
        if !was_open {
            let last = read_labels(&disk).await.best(None).and_then(|l| l.u64("txg").ok()).unwrap_or(0);
            self.missing.add(Txg(last)..=self.missed_to());
        }
        self.take(disk);
        Ok(())
    }

    /// # Errors
    /// `Io`, because of [`WentOn`], when the device has states of its own, later than the last that it shares with the pool.
    async fn check_past(&self, disk: &Arc<dyn Disk>, expected: &Expected<'_>) -> Result<()> {
        let uberblocks = read_uberblocks(disk, expected.ashift).await;
        let (departure, latest) = {
            let past = expected.past.lock().unwrap_or_else(PoisonError::into_inner);
            let missing = self.missing.ranges();
            (past.departure(&uberblocks).or_else(|| past.unknown(&uberblocks, &missing)), past.latest())
        };
        let (Some(departure), Some(latest)) = (departure, latest) else { return Ok(()) };
        if departure.went_on {
            return Err(Error::new(Kind::Io, "open again")
                .at(self.device())
                .because(WentOn(departure, latest)));
        }
        self.missing.add(departure.missing_from()..=self.missed_to());
        if expected.mode == OpenMode::ReadWrite {
            forget_uberblocks(disk, expected.ashift, |u| departure.is_foreign(u)).await?;
        }
        Ok(())
    }

    /// Takes from a device, before any is written to it, the uberblocks that `is_foreign` names.
    ///
    /// # Errors
    /// `Io`: it is not open any more.
    pub async fn forget(&self, ashift: u32, is_foreign: impl Fn(&Uberblock) -> bool + Send) -> Result<()> {
        let cleaned = forget_uberblocks(&self.disk()?, ashift, is_foreign).await;
        if let Err(e) = &cleaned {
            self.note_not_open(e);
            self.lock().disk = None;
        }
        cleaned
    }

    /// What is being written now may be on its way past a device that is not open.
    fn missed_to(&self) -> Txg {
        Txg(self.syncing.load(Ordering::Relaxed) + MISSED_AHEAD)
    }

    /// Opens the device at its place, and answers whether it was open before. It is in use from [`Leaf::take`] on.
    async fn open_anew(
        &self,
        min_asize: u64,
        mode: OpenMode,
        is_it: impl Fn(&Labels) -> bool + Send,
    ) -> Result<(Arc<dyn Disk>, bool)> {
        let (device, before, old, closed) = {
            let mut inner = self.lock();
            (inner.device.clone(), inner.psize, inner.disk.take(), inner.closed.clone())
        };
        let refused = |why: String| Error::new(Kind::Io, "open again").at(&device).because(why);
        if old.is_some() {
            drop(old);
            if world::timeout(CLOSING, closed.wait()).await.is_none() {
                return Err(refused("operations on it do not come back".into()));
            }
        }
        let disk = device.open(mode).await.map_err(|e| refused(e.to_string()))?;
        let psize = crate::geometry::leaf_psize(disk.geometry().size);
        let is_large_enough = if before > 0 { psize >= before } else { leaf_asize(psize) >= min_asize };
        if !is_large_enough {
            return Err(refused("it is smaller than it was".into()));
        }
        let labels = read_labels(&disk).await;
        if labels.is_empty()
            && let (_, Err(e)) = disk.read(BOOT_HEADER_OFFSET, IoBuf::scratch(LABEL_PAD_SIZE as usize)).await
        {
            return Err(refused(format!("its labels cannot be read: {e}")));
        }
        if !is_it(&labels) {
            return Err(refused("it carries no label of this device of the pool".into()));
        }
        Ok((disk, before > 0))
    }

    fn take(&self, disk: Arc<dyn Disk>) {
        let psize = crate::geometry::leaf_psize(disk.geometry().size);
        let closed = Arc::new(Event::new());
        let mut inner = self.lock();
        inner.disk = Some(Closable::around(disk, closed.clone()));
        inner.closed = closed;
        inner.psize = if inner.psize > 0 { inner.psize } else { psize };
    }

    pub(crate) fn set_health(&self, health: Health) {
        if !health.state.is_usable() {
            // A resilver under way passes it by from now on: also when it comes back before the end, it has not all.
            self.missing.failed();
        }
        self.lock().health = health;
    }

    /// What errors there were since the last call, and what all so far amount to.
    pub(crate) fn take_suspicion(&self) -> Option<Suspicion> {
        let kinds = self.suspected.swap(0, Ordering::Relaxed);
        let failed_io = kinds & (1 << Fault::Read as u8 | 1 << Fault::Write as u8) != 0;
        (kinds != 0).then(|| Suspicion { failed_io, verdict: self.lock().diagnosis.verdict(world::now()) })
    }

    /// Asks the device for a sign of life: reads a part that means nothing, and writes it back.
    pub(crate) async fn probe(&self, mode: OpenMode) -> Result<()> {
        const AT: u64 = LABEL_SIZE + BOOT_HEADER_OFFSET;
        let disk = self.disk()?;
        let (buf, read) = disk.read(AT, IoBuf::scratch(LABEL_PAD_SIZE as usize)).await;
        let written = match (&read, mode) {
            (Ok(()), OpenMode::ReadWrite) => disk.write(AT, vec![buf.freeze()]).await,
            _ => Ok(()),
        };
        read.and(written).map_err(|e| Error::new(Kind::Io, "probe").at(self.device()).because(e))
    }

    fn shape(&self, class: Priority, direction: Direction, offset: u64, len: u64) -> Shape {
        Shape { class, direction, offset, len }
    }

    /// Does one operation, twice if need be.
    async fn run(&self, shape: Shape, work: impl Fn() -> Work) -> Result<Answer> {
        let disk = self.disk()?;
        let mut tries = 0;
        loop {
            let asked = world::now();
            let outcome = self.queue.submit(&disk, shape, work(), asked).await;
            self.note_completed(&shape, asked, &outcome);
            self.note_slowness(asked, outcome.ended);
            tries += 1;
            match outcome.result {
                Ok(answer) => return Ok(answer),
                Err(e) if tries == 1 && is_worth_another_try(&e) => {}
                Err(e) => return Err(self.failed(fault_of(shape.direction), verb_of(shape.direction), e)),
            }
        }
    }

    fn note_completed(&self, shape: &Shape, asked: Instant, outcome: &Outcome) {
        let took = self.stats.completed(shape, asked, outcome);
        if shape.direction == Direction::Read && outcome.result.is_ok() {
            // Those that it does at the same time share it: this one has just left.
            self.pace.read_took(took / (self.queue.active() + 1), outcome.ended.since(self.opened));
        }
    }

    fn note_slowness(&self, asked: Instant, ended: Instant) {
        let slow = Duration::from_millis(self.tunables.get(Tunable::SlowIo));
        if ended.since(asked) > slow {
            self.count(Fault::Slow);
        }
    }

    fn failed(&self, fault: Fault, verb: &str, cause: io::Error) -> Error {
        // Space that the host lacks is not the device's fault, and a device cannot be blamed for a trim it refuses.
        if cause.kind() == io::ErrorKind::StorageFull {
            return Error::new(Kind::NoSpace, verb).at(self.device()).because(cause);
        }
        self.count(fault);
        Error::new(Kind::Io, verb).at(self.device()).because(cause)
    }

    /// The disk, when I/O may be sent to it.
    fn disk(&self) -> Result<Arc<dyn Disk>> {
        let inner = self.lock();
        match &inner.disk {
            Some(disk) if inner.health.state.is_usable() => Ok(disk.clone()),
            _ => {
                let why = inner.detail.as_deref().unwrap_or(inner.health.word());
                Err(Error::new(Kind::Io, "use device").at(&inner.device).because(why))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code that can panic runs under this lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_worth_another_try(e: &io::Error) -> bool {
    !matches!(
        e.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::UnexpectedEof | io::ErrorKind::Unsupported
    )
}

fn fault_of(direction: Direction) -> Fault {
    match direction {
        Direction::Read => Fault::Read,
        Direction::Write | Direction::Trim => Fault::Write,
    }
}

fn verb_of(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
        Direction::Trim => "trim",
    }
}

/// What moving there costs, in operations: a disk that turns prefers what follows, then what is near. Others profit a
/// little from what follows, because it can be merged.
fn seek_cost(tunables: &Tunables, rotational: bool, last_end: u64, offset: u64) -> u64 {
    let near = || tunables.get(Tunable::VdevMirrorRotatingSeekOffset);
    match (rotational, last_end.abs_diff(offset)) {
        (true, 0) => tunables.get(Tunable::VdevMirrorRotatingInc),
        (true, distance) if distance < near() => tunables.get(Tunable::VdevMirrorRotatingSeekInc) / 2,
        (true, _) => tunables.get(Tunable::VdevMirrorRotatingSeekInc),
        (false, 0) => tunables.get(Tunable::VdevMirrorNonRotatingInc),
        (false, _) => tunables.get(Tunable::VdevMirrorNonRotatingSeekInc),
    }
}
