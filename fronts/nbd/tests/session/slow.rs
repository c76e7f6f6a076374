//! A volume in memory whose every operation takes its time, and which knows how many are under way.

use nbd::memory::MemoryVolume;
use nbd::{Extent, Piece, Volume};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use units::Result;
use world::{Buf, Pending};

#[derive(Debug, Default)]
pub struct Traffic {
    pub begun: AtomicUsize,
    pub ended: AtomicUsize,
    pub most_at_once: AtomicUsize,
}

#[derive(Debug)]
pub struct Slow {
    pub inner: MemoryVolume,
    pub traffic: Arc<Traffic>,
    /// An operation takes so long times one to four, by its offset, so that they overtake each other; zero, and none waits.
    pub delay: Duration,
    /// Nothing ends, and then it says so, too.
    pub is_stuck: Arc<AtomicBool>,
    pub is_suspended: Arc<AtomicBool>,
}

impl Slow {
    pub fn new(inner: MemoryVolume, delay: Duration) -> Slow {
        Slow { inner, traffic: Arc::default(), delay, is_stuck: Arc::default(), is_suspended: Arc::default() }
    }

    fn later<T: Send + 'static>(&self, offset: u64, result: Pending<T>) -> Pending<T> {
        let traffic = self.traffic.clone();
        let delay = self.delay * (4 - (offset / 4096 % 4) as u32);
        let begun = traffic.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let under_way = begun - traffic.ended.load(Ordering::SeqCst);
        traffic.most_at_once.fetch_max(under_way, Ordering::SeqCst);
        let is_stuck = self.is_stuck.clone();
        Box::pin(async move {
            if !delay.is_zero() {
                world::sleep(delay).await;
            }
            while is_stuck.load(Ordering::SeqCst) {
                world::sleep(Duration::from_millis(10)).await;
            }
            let result = result.await;
            traffic.ended.fetch_add(1, Ordering::SeqCst);
            result
        })
    }
}

impl Volume for Slow {
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn block_size(&self) -> u32 {
        self.inner.block_size()
    }
    fn read_only(&self) -> bool {
        false
    }
    fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::SeqCst)
    }
    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Piece>>> {
        self.later(offset, self.inner.read(offset, len))
    }
    fn write(&self, offset: u64, parts: Vec<Buf>, fua: bool) -> Pending<Result<()>> {
        self.later(offset, self.inner.write(offset, parts, fua))
    }
    fn zero(&self, offset: u64, len: u32, may_be_hole: bool, fua: bool) -> Pending<Result<()>> {
        self.later(offset, self.inner.zero(offset, len, may_be_hole, fua))
    }
    fn zeroes_fast(&self, _: bool) -> bool {
        false
    }
    fn trim(&self, offset: u64, len: u32, fua: bool) -> Pending<Result<()>> {
        self.later(offset, self.inner.trim(offset, len, fua))
    }
    fn flush(&self) -> Pending<Result<()>> {
        self.later(0, self.inner.flush())
    }
    fn extents(&self, offset: u64, len: u32, max: usize) -> Pending<Result<Vec<Extent>>> {
        self.later(offset, self.inner.extents(offset, len, max))
    }
}
