//! An array with a battery behind its cache.
//!
//! ```text
//!   write ─▶ both controllers' caches ─▶ answered                        (cache mirroring)
//!   flush ─┬─ ignored: the battery keeps the cache                       ─▶ answered
//!          └─ obeyed: everything dirty goes to the disks first           ─▶ answered
//!
//!   RAID 1     both disks of a pair write
//!   RAID 5     small: read old data and old parity ─▶ write both; a full stripe needs no read
//! ```
//!
//! Its cache keeps what it was given without power, so that no data depend on the flush. Unasked, it destages when half of
//! the cache is dirty.

use super::contents::Contents;
use super::dirty::Dirty;
use super::modelled::{Model, Modelled};
use super::spindle::{Command, Spindle, Work, instant, seconds};
use crate::parameters::Parameters;
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::sync::Notify;
use world::{Buf, DiskKind, Pending};

/// Pieces that are destaged at once.
const DEPTH: usize = 32;

/// See the module.
pub type Array = Modelled<Inner>;

#[derive(Debug)]
pub struct Inner {
    path: PathBuf,
    size: u64,
    spindles: Vec<Arc<Spindle>>,
    is_raid5: bool,
    segment: u64,
    cache: u64,
    hit: f64,
    command: f64,
    port: f64,
    obeys_flush: bool,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    contents: Contents,
    dirty: Dirty,
    port_free: f64,
    destaging: usize,
    flushing: usize,
}

impl Array {
    /// From the parameters `array-…`, with disks from those whose keys begin with `prefix`.
    pub fn new(path: &Path, size: u64, parameters: &Parameters, prefix: &str) -> Array {
        let get = |key: &str| parameters.get(&format!("array-{key}"));
        let disks = (get("disks") as usize).max(3) / 2 * 2;
        Modelled(Arc::new(Inner {
            path: path.into(),
            size,
            spindles: (0..disks).map(|_| Spindle::of(parameters, prefix, 1)).collect(),
            is_raid5: get("raid") == 5.0,
            segment: (get("segment") * 1024.0) as u64,
            cache: (get("cache") * 1048576.0) as u64,
            hit: get("write-hit") / 1e3,
            command: get("command") / 1e3,
            port: get("port") * 1e6,
            obeys_flush: get("obeys-flush") != 0.0,
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// Of all disks together.
    pub fn work(&self) -> Work {
        self.0.spindles.iter().map(|disk| disk.work()).fold(Work::default(), Work::and)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk that has a place, the one with its parity or its other copy, and where on both.
    fn place(&self, offset: u64) -> (usize, usize, u64) {
        let (segment, within) = (offset / self.segment, offset % self.segment);
        let n = self.spindles.len() as u64;
        if !self.is_raid5 {
            let pair = segment % (n / 2);
            return (2 * pair as usize, 2 * pair as usize + 1, segment / (n / 2) * self.segment + within);
        }
        let (row, column) = (segment / (n - 1), segment % (n - 1));
        let parity = row % n;
        let data = (parity + 1 + column) % n;
        (data as usize, parity as usize, row * self.segment + within)
    }

    fn member(&self, disk: usize, offset: u64, len: u64, is_write: bool) -> impl Future<Output = ()> {
        let done = self.spindles[disk].submit(Command { offset, len, is_write, is_background: false });
        async move {
            let _ = done.await;
        }
    }

    /// One piece within a segment, to the disks.
    async fn write_back(&self, offset: u64, len: u64) {
        let (first, second, at) = self.place(offset);
        // A full segment is written with its whole stripe, whose parity needs nothing old.
        if self.is_raid5 && len < self.segment {
            join_all([first, second].map(|disk| self.member(disk, at, len, false))).await;
        }
        join_all([first, second].map(|disk| self.member(disk, at, len, true))).await;
    }

    fn through_port(&self, len: u64, least: f64) -> f64 {
        let now = seconds(world::now());
        let mut state = self.lock();
        state.port_free = state.port_free.max(now) + len as f64 / self.port;
        state.port_free.max(now + least)
    }

    async fn write_all(self: Arc<Inner>, offset: u64, len: u64, parts: Vec<Buf>) {
        self.changed.until(|| (self.lock().dirty.bytes() + len <= self.cache).then_some(())).await;
        let arrives = self.through_port(len, self.hit);
        world::sleep_until(instant(arrives)).await;
        let half = {
            let mut state = self.lock();
            state.contents.write_parts(offset, &parts);
            state.dirty.add(offset, len);
            state.dirty.bytes() > self.cache / 2
        };
        if half {
            self.destage();
        }
    }

    async fn read_all(&self, offset: u64, len: u64) {
        if !self.lock().dirty.holds(offset, len) {
            let mut pieces = Vec::new();
            let mut at = offset;
            while at < offset + len {
                let end = ((at / self.segment + 1) * self.segment).min(offset + len);
                let (disk, _, place) = self.place(at);
                pieces.push(self.member(disk, place, end - at, false));
                at = end;
            }
            join_all(pieces).await;
        }
        let arrives = self.through_port(len, self.command);
        world::sleep_until(instant(arrives)).await;
    }

    async fn flush_all(self: Arc<Inner>) {
        if self.obeys_flush {
            let mark = {
                let mut state = self.lock();
                state.flushing += 1;
                state.dirty.mark()
            };
            self.destage();
            self.changed.until(|| self.lock().dirty.is_clean(mark).then_some(())).await;
            self.lock().flushing -= 1;
        }
        let arrives = self.through_port(0, self.command);
        world::sleep_until(instant(arrives)).await;
    }

    fn destage(self: &Arc<Inner>) {
        let mut state = self.lock();
        let wanted = state.flushing > 0 || state.dirty.bytes() > self.cache / 2;
        while wanted && state.destaging < DEPTH {
            let Some((offset, len)) = state.dirty.take(self.segment, self.segment) else { return };
            state.destaging += 1;
            let this = self.clone();
            world::spawn(async move {
                this.write_back(offset, len).await;
                {
                    let mut state = this.lock();
                    state.destaging -= 1;
                    state.dirty.destaged(offset);
                }
                this.changed.notify_all();
                this.destage();
            });
        }
    }
}

impl Model for Inner {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn kind(&self) -> (u32, DiskKind) {
        // A host is not told of the battery: it flushes.
        (512, DiskKind::Block { rotational: true, volatile_cache: true })
    }

    fn copy(&self, offset: u64, into: &mut [u8]) {
        self.lock().contents.read(offset, into);
    }

    fn read(self: Arc<Self>, offset: u64, len: u64) -> Pending<()> {
        Box::pin(async move { self.read_all(offset, len).await })
    }

    fn write(self: Arc<Self>, offset: u64, len: u64, parts: Vec<Buf>) -> Pending<()> {
        Box::pin(self.write_all(offset, len, parts))
    }

    fn flush(self: Arc<Self>) -> Pending<()> {
        Box::pin(self.flush_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{ARRAY_2530, DISK_15000};
    use world::Disk;

    /// Seconds of a hundred small writes, one behind the other, each flushed.
    fn commits(raid: f64, obeys: f64) -> f64 {
        let parameters = Parameters::of(&[ARRAY_2530, DISK_15000])
            .with("array-raid", raid)
            .with("array-obeys-flush", obeys);
        sim::run(1, sim::Config { shuffle: false, ..Default::default() }, async move {
            let array = Array::new(Path::new("/lab/a"), 1 << 36, &parameters, "disk15-");
            let began = world::now();
            for i in 0..100 {
                Disk::write(&array, i * 4096, vec![Buf::zeroed(4096)]).await.unwrap();
                Disk::flush(&array).await.unwrap();
            }
            world::now().since(began).as_secs_f64()
        })
    }

    #[test]
    fn a_flush_that_is_obeyed_costs_whole_turns() {
        let turns = |seconds: f64| seconds / 100.0 / 0.004;
        let (ignored, one, five) =
            (turns(commits(1.0, 0.0)), turns(commits(1.0, 1.0)), turns(commits(5.0, 1.0)));
        assert!(ignored < 0.3, "{ignored}");
        assert!((0.95..1.3).contains(&one), "a turn for a pair: {one}");
        assert!((1.9..2.4).contains(&five), "and one more to read what was there: {five}");
    }
}
