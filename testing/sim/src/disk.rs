//! Disks that are modelled, and can lie.

use crate::image::Image;
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::{Buf, Disk, DiskKind, Geometry, Instant, IoBuf, OpenMode, Pending};

/// How long a disk takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub read: Duration,
    pub write: Duration,
    /// Time per MiB, on top of the above.
    pub per_mib: Duration,
    pub flush: Duration,
    /// How many operations it works on at once.
    pub channels: usize,
    /// Moving between places that are not neighbours costs this much more.
    pub seek: Duration,
    pub logical_block: u32,
}

impl Model {
    pub const NVME: Model = Model {
        read: Duration::from_micros(80),
        write: Duration::from_micros(20),
        per_mib: Duration::from_micros(400),
        flush: Duration::from_micros(200),
        channels: 32,
        seek: Duration::ZERO,
        logical_block: 512,
    };
    /// 7200 revolutions per minute.
    pub const HDD: Model = Model {
        read: Duration::from_micros(500),
        write: Duration::from_micros(500),
        per_mib: Duration::from_millis(6),
        flush: Duration::from_millis(8),
        channels: 1,
        seek: Duration::from_millis(8),
        logical_block: 512,
    };
}

/// What can be made to go wrong with a disk, until it is set right again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// It is not there: opening and every operation fail.
    pub gone: bool,
    /// Operations that fail, per million.
    pub read_errors_ppm: u32,
    pub write_errors_ppm: u32,
    /// Reads that return one flipped bit, per million.
    pub rot_ppm: u32,
    /// Writes that report success and are forgotten, per million.
    pub lost_writes_ppm: u32,
    /// Writes fail for want of space on the host.
    pub full: bool,
}

struct Unflushed {
    seq: u64,
    offset: u64,
    parts: Vec<Buf>,
}

struct State {
    size: u64,
    model: Model,
    fault: Fault,
    view: Image,
    durable: Image,
    unflushed: Vec<Unflushed>,
    /// Writes issued, of which any part may be on the disk.
    in_flight: BTreeMap<u64, (u64, Vec<Buf>)>,
    next_seq: u64,
    busy_until: Vec<Instant>,
    head: u64,
    opened_for_writing: bool,
}

/// All disks of a simulation. Clones share them.
#[derive(Clone, Default)]
pub struct Disks(Arc<Shared>);

#[derive(Default)]
struct Shared {
    disks: Mutex<BTreeMap<PathBuf, Arc<SimDisk>>>,
    flushes: AtomicU64,
    cut_at: AtomicU64,
    cut: AtomicBool,
}

/// One disk, to be looked at and tampered with from outside.
#[derive(Clone)]
pub struct DiskHandle(Arc<SimDisk>);

struct SimDisk {
    path: PathBuf,
    shared: Mutex<State>,
    all: std::sync::Weak<Shared>,
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

impl Disks {
    pub fn new() -> Disks {
        Disks::default()
    }

    /// Adds an empty disk.
    pub fn add(&self, path: impl Into<PathBuf>, size: u64, model: Model) -> DiskHandle {
        let path = path.into();
        let state = State {
            size,
            model,
            fault: Fault::default(),
            view: Image::default(),
            durable: Image::default(),
            unflushed: Vec::new(),
            in_flight: BTreeMap::new(),
            next_seq: 0,
            busy_until: vec![Instant(0); model.channels.max(1)],
            head: 0,
            opened_for_writing: false,
        };
        let disk =
            Arc::new(SimDisk { path: path.clone(), shared: Mutex::new(state), all: Arc::downgrade(&self.0) });
        lock(&self.0.disks).insert(path, disk.clone());
        DiskHandle(disk)
    }

    pub fn get(&self, path: impl AsRef<Path>) -> Option<DiskHandle> {
        lock(&self.0.disks).get(path.as_ref()).cloned().map(DiskHandle)
    }

    pub fn remove(&self, path: impl AsRef<Path>) {
        lock(&self.0.disks).remove(path.as_ref());
    }

    /// How many flushes all disks together have completed.
    pub fn flushes(&self) -> u64 {
        self.0.flushes.load(Ordering::Relaxed)
    }

    /// Cuts the power when the `n`-th flush from now on is about to complete: see [`crate::run_until_cut`].
    pub fn cut_at_flush(&self, n: u64) {
        self.0.cut_at.store(self.flushes() + n, Ordering::Relaxed);
    }

    /// Cuts the power of a run under way, at once.
    pub fn cut_now(&self) {
        self.0.cut.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_cut(&self) -> bool {
        self.0.cut.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::Relaxed)
    }

    /// What a power cut leaves: all that was flushed, and of the rest whatever `seed` says.
    pub fn power_cut(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.0.cut_at.store(0, Ordering::Relaxed);
        for disk in lock(&self.0.disks).values() {
            lock(&disk.shared).power_cut(&mut rng);
        }
    }

    /// Time starts again with each run; nothing is busy or open then.
    pub(crate) fn restart(&self) {
        for disk in lock(&self.0.disks).values() {
            let mut state = lock(&disk.shared);
            state.busy_until.fill(Instant(0));
            state.opened_for_writing = false;
            // Without a cut, what was on its way arrives.
            let arrived = std::mem::take(&mut state.in_flight);
            for (seq, (offset, parts)) in arrived {
                state.complete_write(seq, offset, parts);
            }
        }
    }

    pub(crate) fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn Disk>> {
        let disk = lock(&self.0.disks).get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        {
            let mut state = lock(&disk.shared);
            if state.fault.gone {
                return Err(io::ErrorKind::NotFound.into());
            }
            if mode == OpenMode::ReadWrite {
                if state.opened_for_writing {
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, "in use by another process"));
                }
                state.opened_for_writing = true;
            }
        }
        Ok(Arc::new(Opened { disk, mode }))
    }

    pub(crate) fn list(&self, dir: &Path) -> Vec<PathBuf> {
        lock(&self.0.disks).keys().filter(|p| p.parent() == Some(dir)).cloned().collect()
    }
}

impl DiskHandle {
    pub fn set_fault(&self, fault: Fault) {
        lock(&self.0.shared).fault = fault;
    }

    /// Changes the size, as when somebody truncates the file under a pool.
    pub fn resize(&self, size: u64) {
        lock(&self.0.shared).size = size;
    }

    /// The bytes that a read would see now.
    pub fn peek(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        lock(&self.0.shared).view.read(offset, &mut out);
        out
    }

    /// Changes bytes behind everybody's back: bit rot, a misdirected write.
    pub fn poke(&self, offset: u64, bytes: &[u8]) {
        let mut state = lock(&self.0.shared);
        state.view.write(offset, bytes);
        state.durable.write(offset, bytes);
    }

    pub fn size(&self) -> u64 {
        lock(&self.0.shared).size
    }
}

impl State {
    /// When an operation of this kind, given to the disk now, is done.
    fn schedule(&mut self, now: Instant, base: Duration, offset: u64, len: u64) -> Instant {
        let moving = if offset == self.head { Duration::ZERO } else { self.model.seek };
        self.head = offset + len;
        let bytes = self.model.per_mib.mul_f64(len as f64 / (1 << 20) as f64);
        let channel = self.busy_until.iter_mut().min().expect("a disk has a channel");
        *channel = (*channel).max(now).after(base + moving + bytes);
        *channel
    }

    fn complete_write(&mut self, seq: u64, offset: u64, parts: Vec<Buf>) {
        let mut at = offset;
        for part in &parts {
            self.view.write(at, part);
            at += part.len() as u64;
        }
        self.unflushed.push(Unflushed { seq, offset, parts });
    }

    fn power_cut(&mut self, rng: &mut Rng) {
        let sector = self.model.logical_block as usize;
        let written = std::mem::take(&mut self.unflushed).into_iter().map(|u| (u.offset, u.parts));
        let on_the_way = std::mem::take(&mut self.in_flight).into_values();
        for (offset, parts) in written.chain(on_the_way) {
            let fate = rng.below(4);
            let mut at = offset;
            for part in &parts {
                for piece in part.chunks(sector) {
                    let kept = match fate {
                        0 => false,
                        1 | 2 => true,
                        _ => rng.below(2) == 0,
                    };
                    if kept {
                        self.durable.write(at, piece);
                    }
                    at += piece.len() as u64;
                }
            }
        }
        self.view = self.durable.clone();
        self.opened_for_writing = false;
    }

    fn check(&self, offset: u64, len: u64) -> io::Result<()> {
        if self.fault.gone {
            return Err(io::Error::other("the device is gone"));
        }
        let unit = u64::from(self.model.logical_block);
        if !offset.is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not aligned to the device's blocks"));
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the device")),
        }
    }
}

/// A disk as engine code sees it.
struct Opened {
    disk: Arc<SimDisk>,
    mode: OpenMode,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Disk({})", self.disk.path.display())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.mode == OpenMode::ReadWrite {
            lock(&self.disk.shared).opened_for_writing = false;
        }
    }
}

/// Draws from the run's randomness whether something that happens `ppm` times in a million happens now.
fn chance(ppm: u32) -> bool {
    ppm > 0 && world::random_u64() % 1_000_000 < u64::from(ppm)
}

impl Disk for Opened {
    fn path(&self) -> &Path {
        &self.disk.path
    }

    fn geometry(&self) -> Geometry {
        let state = lock(&self.disk.shared);
        let block = state.model.logical_block;
        Geometry { size: state.size, logical_block: block, physical_block: block, kind: DiskKind::File }
    }

    fn current_size(&self) -> io::Result<u64> {
        Ok(lock(&self.disk.shared).size)
    }

    fn read(&self, offset: u64, mut buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)> {
        let disk = self.disk.clone();
        let done = {
            let mut state = lock(&disk.shared);
            let base = state.model.read;
            state.schedule(world::now(), base, offset, buf.len() as u64)
        };
        Box::pin(async move {
            world::sleep_until(done).await;
            let fault = lock(&disk.shared).fault;
            let (fails, rots) = (chance(fault.read_errors_ppm), chance(fault.rot_ppm));
            let result = {
                let state = lock(&disk.shared);
                state.check(offset, buf.len() as u64).map(|()| state.view.read(offset, &mut buf))
            };
            if fails {
                return (buf, Err(io::Error::other("medium error")));
            }
            if rots && !buf.is_empty() {
                let at = (world::random_u64() % buf.len() as u64) as usize;
                buf[at] ^= 1 << (world::random_u64() % 8);
            }
            (buf, result)
        })
    }

    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        let len = parts.iter().map(|p| p.len() as u64).sum();
        let disk = self.disk.clone();
        if self.mode == OpenMode::ReadOnly {
            return Box::pin(async { Err(io::ErrorKind::PermissionDenied.into()) });
        }
        let (done, seq) = {
            let mut state = lock(&disk.shared);
            if let Err(e) = state.check(offset, len) {
                return Box::pin(async move { Err(e) });
            }
            if state.fault.full {
                return Box::pin(async { Err(io::ErrorKind::StorageFull.into()) });
            }
            let base = state.model.write;
            let done = state.schedule(world::now(), base, offset, len);
            state.next_seq += 1;
            let seq = state.next_seq;
            state.in_flight.insert(seq, (offset, parts));
            (done, seq)
        };
        // The device goes on with a write that nobody waits for any more.
        let task = world::spawn(async move {
            world::sleep_until(done).await;
            let fault = lock(&disk.shared).fault;
            let (fails, lost) = (chance(fault.write_errors_ppm), chance(fault.lost_writes_ppm));
            let mut state = lock(&disk.shared);
            let Some((offset, parts)) = state.in_flight.remove(&seq) else { return Ok(()) };
            if fails || state.fault.gone {
                return Err(io::Error::other("write error"));
            }
            if !lost {
                state.complete_write(seq, offset, parts);
            }
            Ok(())
        });
        Box::pin(task)
    }

    fn flush(&self) -> Pending<io::Result<()>> {
        let disk = self.disk.clone();
        let (done, covers) = {
            let mut state = lock(&disk.shared);
            let base = state.model.flush;
            let head = state.head;
            // What has completed by now is covered; what is on its way need not be.
            let covers: Vec<u64> = state.unflushed.iter().map(|u| u.seq).collect();
            (state.schedule(world::now(), base, head, 0), covers)
        };
        Box::pin(async move {
            world::sleep_until(done).await;
            if let Some(all) = disk.all.upgrade() {
                let n = all.flushes.fetch_add(1, Ordering::Relaxed) + 1;
                if n == all.cut_at.load(Ordering::Relaxed) {
                    all.cut.store(true, Ordering::Relaxed);
                }
                if all.cut.load(Ordering::Relaxed) {
                    // The power is gone: this flush never completes.
                    std::future::pending::<()>().await;
                }
            }
            let mut state = lock(&disk.shared);
            if state.fault.gone {
                return Err(io::Error::other("the device is gone"));
            }
            let (now_durable, rest) =
                std::mem::take(&mut state.unflushed).into_iter().partition(|u| covers.contains(&u.seq));
            state.unflushed = rest;
            let now_durable: Vec<Unflushed> = now_durable;
            for write in now_durable {
                let mut at = write.offset;
                for part in &write.parts {
                    state.durable.write(at, part);
                    at += part.len() as u64;
                }
            }
            Ok(())
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Pending<io::Result<()>> {
        let disk = self.disk.clone();
        Box::pin(async move {
            let mut state = lock(&disk.shared);
            state.check(offset, len)?;
            state.view.discard(offset, len);
            Ok(())
        })
    }
}
