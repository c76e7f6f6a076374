//! TRIM by itself (the property `autotrim`): devices are told what was freed.
//!
//! ```text
//!   freed ─▶ metaslab::remember_freed ─▶ every zfs_trim_txg_batch txgs, and  ─▶ trim_freed ─▶ Top::trim of each
//!                                        when the pool came to rest                           segment
//! ```
//!
//! What waits for others to grow with it is told later; what is allocated again before that is not told at all. A segment
//! that is being trimmed is not given out, so only a few are trimmed at once, each in pieces.
//!
//! Not here: `zpool trim`, which tells all that is free.

mod state;

pub(crate) use state::Trimmer;

use crate::pool::{Pool, lock};
use dsl::pool_props::PoolProp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tunables::Tunable;
use units::Result;
use world::sync::Event;

/// The largest piece of one trim: a device may take long for it, and answers nothing else meanwhile.
const PIECE_MAX: u64 = 128 << 20;

impl Pool {
    /// Begins to trim if the pool's property says so.
    pub(crate) async fn load_autotrim(&self) -> Result<()> {
        if !self.is_read_only() && self.stored_number(PoolProp::AutoTrim).await? == Some(1) {
            self.set_autotrim(true).await;
        }
        Ok(())
    }

    pub(crate) async fn set_autotrim(&self, on: bool) {
        if !on {
            self.stop_autotrim().await;
            return;
        }
        self.space().remember_freed(true);
        self.0.trimmer.on.store(true, Ordering::Release);
        let mut at_work = lock(&self.0.trimmer.at_work);
        if at_work.is_none() {
            let stop = Arc::new(Event::new());
            let task = world::spawn(self.clone().trim_task(stop.clone()));
            *at_work = Some((stop, task));
        }
    }

    /// On return no trim is under way.
    pub(crate) async fn stop_autotrim(&self) {
        self.0.trimmer.on.store(false, Ordering::Release);
        let at_work = lock(&self.0.trimmer.at_work).take();
        if let Some((stop, task)) = at_work {
            stop.set();
            task.await;
            self.space().remember_freed(false);
        }
    }

    /// A vdev that was added is trimmed as the others are.
    pub(crate) fn remember_freed(&self) {
        if self.0.trimmer.on.load(Ordering::Acquire) {
            self.space().remember_freed(true);
        }
    }

    async fn trim_task(self, stop: Arc<Event>) {
        let inner = &self.0;
        let mut trimmed = lock(&inner.uberblock).txg;
        let mut last = trimmed;
        loop {
            let timeout = Duration::from_secs(inner.tunables.get(Tunable::TxgTimeout));
            if world::timeout(timeout, stop.wait()).await.is_some() {
                return;
            }
            let synced = lock(&inner.uberblock).txg;
            let is_many = synced.0 >= trimmed.0.saturating_add(inner.tunables.get(Tunable::TrimTxgBatch));
            let is_at_rest = synced == last && synced != trimmed;
            last = synced;
            if !is_many && !is_at_rest {
                continue;
            }
            trimmed = synced;
            self.trim_what_was_freed(&stop).await;
        }
    }

    async fn trim_what_was_freed(&self, stop: &Event) {
        let min = self.0.tunables.get(Tunable::TrimExtentBytesMin);
        for top in self.tree().tops().into_iter().filter(|top| top.is_usable()) {
            for batch in self.space().trim_freed(top.id, min) {
                for segment in batch.segments() {
                    let mut at = segment.start;
                    while at < segment.end && !stop.is_set() {
                        let len = (segment.end - at).min(PIECE_MAX);
                        // A hint: what a device refuses is no error.
                        let _ = top.trim(at, len).await;
                        at += len;
                    }
                }
            }
        }
    }
}
