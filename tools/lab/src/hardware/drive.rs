//! A disk that turns, as a pool sees it: an arm, a cache that forgets without power, and a port.
//!
//! ```text
//!   read  ─▶ dirty in the cache? ─▶ port          write ─▶ room in the cache? ─▶ port ─▶ answered ┐
//!            └─ arm ─▶ port                                └─ waits for room                      ▼
//!   flush ─▶ waits until all that was written before it has been destaged     ◀─ arm ◀─ destage, in ascending order
//! ```
//!
//! Destaging leaves the arm to reads, until a flush waits for it or half of the cache is dirty.

use super::contents::Contents;
use super::dirty::Dirty;
use super::modelled::{Model, Modelled};
use super::spindle::{Command, Spindle, Work, instant, seconds};
use crate::parameters::Parameters;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::sync::Notify;
use world::{Buf, DiskKind, Pending};

/// So many pieces are given to the arm at once, and so large they are at most.
const DESTAGE_DEPTH: usize = 32;
const DESTAGE_PIECE: u64 = 1 << 20;

/// See the module.
pub type Drive = Modelled<Inner>;

#[derive(Debug)]
pub struct Inner {
    path: PathBuf,
    size: u64,
    spindle: Arc<Spindle>,
    /// Bytes; 0: every write waits for the platter.
    cache: u64,
    hit: f64,
    port: f64,
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

impl Drive {
    /// From the parameters whose keys begin with `prefix`; `size` is that of the model at most.
    pub fn new(path: &Path, size: u64, parameters: &Parameters, prefix: &str, stretch: u64) -> Drive {
        let get = |key: &str| parameters.get(&format!("{prefix}{key}"));
        let spindle = Spindle::of(parameters, prefix, stretch);
        Modelled(Arc::new(Inner {
            path: path.into(),
            size: size.min(spindle.mechanics().capacity()),
            cache: (get("cache") * 1048576.0) as u64,
            hit: get("write-hit") / 1e3,
            port: get("port") * 1e6,
            spindle,
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    pub fn work(&self) -> Work {
        self.0.spindle.work()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When bytes that go through the port now have passed it.
    fn through_port(&self, len: u64, least: f64) -> f64 {
        let now = seconds(world::now());
        let mut state = self.lock();
        state.port_free = state.port_free.max(now) + len as f64 / self.port;
        state.port_free.max(now + least)
    }

    async fn write_all(self: Arc<Inner>, offset: u64, len: u64, parts: Vec<Buf>) {
        if self.cache == 0 {
            let command = Command { offset, len, is_write: true, is_background: false };
            let _ = self.spindle.submit(command).await;
        } else {
            self.changed.until(|| (self.lock().dirty.bytes() + len <= self.cache).then_some(())).await;
            let arrives = self.through_port(len, self.hit);
            world::sleep_until(instant(arrives)).await;
        }
        {
            let mut state = self.lock();
            state.contents.write_parts(offset, &parts);
            if self.cache > 0 {
                state.dirty.add(offset, len);
            }
        }
        self.destage();
    }

    async fn read_all(&self, offset: u64, len: u64) {
        let is_cached = self.lock().dirty.holds(offset, len);
        if !is_cached {
            let command = Command { offset, len, is_write: false, is_background: false };
            let _ = self.spindle.submit(command).await;
        }
        // What comes from the platter passes the port while the rest is still being read.
        let least = if is_cached { self.hit } else { 0.0 };
        let last = if is_cached { len } else { len.min(64 << 10) };
        let arrives = self.through_port(last, least);
        world::sleep_until(instant(arrives)).await;
    }

    async fn flush_all(self: Arc<Inner>) {
        let mark = {
            let mut state = self.lock();
            state.flushing += 1;
            state.dirty.mark()
        };
        self.destage();
        self.changed.until(|| self.lock().dirty.is_clean(mark).then_some(())).await;
        self.lock().flushing -= 1;
        let arrives = self.through_port(0, self.hit);
        world::sleep_until(instant(arrives)).await;
    }

    /// Gives the arm as much as it may have.
    fn destage(self: &Arc<Inner>) {
        let mut state = self.lock();
        self.spindle.urge(state.flushing > 0 || state.dirty.bytes() > self.cache / 2);
        while state.destaging < DESTAGE_DEPTH {
            let Some((offset, len)) = state.dirty.take(DESTAGE_PIECE, DESTAGE_PIECE) else { return };
            state.destaging += 1;
            let done = self.spindle.submit(Command { offset, len, is_write: true, is_background: true });
            let this = self.clone();
            world::spawn(async move {
                let _ = done.await;
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
        (512, DiskKind::Block { rotational: true, volatile_cache: self.cache > 0 })
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
    use crate::models::DISK_7200;
    use std::time::Duration;
    use world::{Disk, IoBuf};

    fn run<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
        sim::run(1, sim::Config { shuffle: false, ..Default::default() }, work)
    }

    fn drive(cache: f64) -> Drive {
        let parameters = Parameters::of(&[DISK_7200]).with("disk-cache", cache);
        Drive::new(Path::new("/lab/d"), 1 << 40, &parameters, "disk-", 1)
    }

    async fn write(disk: &Drive, offset: u64, byte: u8) -> Duration {
        let began = world::now();
        Disk::write(disk, offset, vec![Buf::copy_from(&[byte; 4096])]).await.unwrap();
        world::now().since(began)
    }

    #[test]
    fn a_cache_answers_at_once_and_a_flush_waits_for_the_platter() {
        run(async {
            let disk = drive(128.0);
            let fast = write(&disk, 1 << 30, 7).await;
            assert!(fast < Duration::from_millis(1), "{fast:?}");
            let began = world::now();
            Disk::flush(&disk).await.unwrap();
            let slow = world::now().since(began);
            assert!(slow > Duration::from_millis(2) && slow < Duration::from_millis(30), "{slow:?}");
            let began = world::now();
            Disk::flush(&disk).await.unwrap();
            assert!(world::now().since(began) < Duration::from_millis(1), "nothing was dirty");
            let (buf, result) = Disk::read(&disk, 1 << 30, IoBuf::zeroed(4096)).await;
            assert!(result.is_ok() && buf.iter().all(|byte| *byte == 7));
            let without = drive(0.0);
            assert!(write(&without, 1 << 30, 7).await > Duration::from_millis(2));
        });
    }

    #[test]
    fn a_full_cache_makes_writers_wait_and_all_of_it_arrives() {
        run(async {
            let disk = drive(1.0);
            let mut rng = sim::Rng::new(5);
            let mut slowest = Duration::ZERO;
            for _ in 0..600 {
                slowest = slowest.max(write(&disk, rng.below(1 << 27) * 4096, 3).await);
            }
            assert!(slowest > Duration::from_millis(2), "{slowest:?}");
            Disk::flush(&disk).await.unwrap();
            assert_eq!(disk.work().bytes, 600 * 4096);
        });
    }

    #[test]
    fn nothing_is_done_beyond_the_end() {
        run(async {
            let disk = drive(1.0);
            let end = disk.geometry().size;
            assert!(Disk::read(&disk, end, IoBuf::zeroed(512)).await.1.is_err());
            assert!(Disk::write(&disk, end - 512, vec![Buf::zeroed(1024)]).await.is_err());
            assert!(Disk::write(&disk, 100, vec![Buf::zeroed(512)]).await.is_err());
        });
    }
}
