//! What a pool keeps of its signs of life while it is open, and what one says.

use crate::lock::lock;
use ondisk::{Mmp, Uberblock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tunables::{Tunable, Tunables};
use world::Boxed;
use world::Task;
use world::sync::Event;

/// Whether a pool that is open gives signs of life.
#[derive(Debug, Default)]
pub(crate) struct Multihost {
    pub(super) on: AtomicBool,
    /// Nanoseconds between the last two signs.
    pub(super) delay: AtomicU64,
    pub(super) beat: Mutex<Option<Beat>>,
}

#[derive(Debug)]
pub(super) struct Beat {
    pub(super) stop: Arc<Event>,
    pub(super) task: Task<()>,
}

impl Multihost {
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// What the uberblock of a txg says of this.
    pub fn of_txg(&self, last: &Uberblock, tunables: &Tunables) -> Option<Mmp> {
        if self.is_on() { Some(self.sign(tunables, 0)) } else { last.mmp.map(|_| Mmp::default()) }
    }

    pub(super) fn sign(&self, tunables: &Tunables, sequence: u16) -> Mmp {
        let interval = tunables.get(Tunable::MultihostInterval);
        Mmp {
            // 0 would say that there is no protection.
            delay_ns: self.delay.load(Ordering::Relaxed).max(interval * 1_000_000),
            interval_ms: Some(interval as u32),
            sequence: Some(sequence),
            fail_intervals: Some(tunables.get(Tunable::MultihostFailIntervals) as u16),
        }
    }

    /// Ends the signs; on return none is under way.
    pub fn stop(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            self.on.store(false, Ordering::Release);
            let beat = lock(&self.beat).take();
            if let Some(Beat { stop, task }) = beat {
                stop.set();
                task.await;
            }
        })
    }
}
