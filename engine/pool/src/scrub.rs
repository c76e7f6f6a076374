//! Scrub: every copy of every block, and all parity, is read and compared, and what is bad is written again.
//!
//! ```text
//!              start                    every set walked
//!   (nothing) ───────▶ scanning ──────────────────────────▶ finished
//!                        │  ▲ │ stop
//!                  pause ▼  │ └───────────────────────────▶ canceled
//!                       paused
//! ```
//!
//! The walk only looks ([`crate::walk`]). What was bad is repaired a batch at a time, as [`crate::heal`] says.
//!
//! A resilver is the same walk for devices that missed writes, see [`crate::resilver`].
//!
//! The set of datasets changes while it is walked: a snapshot is taken, or destroyed and its blocks handed to the next. The
//! order of the walk ([`position`]) is such that what was seen stays seen.
//!
//! The state is kept as OpenZFS keeps it: a `ScanPhys` under the name `scan` in the object directory, written when the
//! state changes, so that `zpool status` of either program shows the last scrub. How far it has come is kept beside that,
//! from time to time and when the pool is closed: so it goes on there when the pool is opened, a paused scrub when it is
//! asked to. A resilver does so only for the very devices that were given all that is before the position; else it starts
//! over.

mod position;
mod scanner;
mod state;

pub use state::ScanStatus;
pub(crate) use state::Scrub;

use crate::pool::{Pool, lock};
use dmu::Tx;
use ondisk::dsl::{ScanFunc, ScanState};
use ondisk::mos::directory;
use ondisk::{ObjectType, ScanPhys};
use position::Position;
use state::{GO, HALT, PAUSE, STOP, now};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::{Error, Kind, ObjectId, Result, Txg};
use world::Boxed;

/// Bad blocks repaired in one txg.
const REPAIRS_AT_ONCE: usize = 512;
/// A device that goes on failing is not resilvered again and again without a rest.
const RESILVER_REST: Duration = Duration::from_secs(300);
/// How often a scrub asks whether a suspended pool goes on.
const SUSPENDED_LOOK: Duration = Duration::from_millis(200);
/// How often a part is looked for again that has moved to another set while it was walked.
const LISTS_MAX: usize = 100;
/// Where the position is kept in the directory of the MOS.
const POSITION: &str = "org.cenote:scan_position";

impl Pool {
    /// The scrub under way, or the last one.
    pub fn scan_status(&self) -> Option<ScanStatus> {
        ScanStatus::of(&lock(&self.0.scrub.state))
    }

    /// Starts a scrub, or lets one go on that pauses.
    pub fn scrub(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let scrub = &self.0.scrub;
            self.check_no_rebuild()?;
            self.check_no_error_scrub()?;
            self.scan_is_settled().await;
            if scrub.is_running() {
                let resilvers = self.scan_status().is_some_and(|scan| scan.func == ScanFunc::Resilver);
                return Err(self.busy(match resilvers {
                    true => "is resilvering; scrub it when that is done",
                    false => "is already scrubbing; use 'zpool scrub -s' to cancel the scrub",
                }));
            }
            if self
                .scan_status()
                .is_some_and(|s| s.state == ScanState::Scanning && s.func == ScanFunc::Resilver)
            {
                return Err(self.busy("is resilvering"));
            }
            self.start_scan(ScanFunc::Scrub).await
        })
    }

    /// Ends a scrub before it is done, one of the error log as well.
    pub fn scrub_stop(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if self.is_error_scrubbing() {
                return self.stop_error_scrub().await;
            }
            self.end_scrub(STOP).await
        })
    }

    /// Lets a scrub pause until it is asked for again, even if the pool is closed meanwhile; one of the error log as well.
    pub fn scrub_pause(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if self.is_error_scrubbing() {
                return self.pause_error_scrub().await;
            }
            self.end_scrub(PAUSE).await
        })
    }

    /// Waits until no scrub is going.
    pub fn scrub_wait(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            let scrub = &self.0.scrub;
            scrub.turned.until(|| (!scrub.is_running()).then_some(())).await;
        })
    }

    /// Waits while a scan is just being begun or ended. What has read in its status that it is over may ask for the next.
    pub(crate) async fn scan_is_settled(&self) {
        let scrub = &self.0.scrub;
        scrub.turned.until(|| scrub.is_settled().then_some(())).await;
    }

    fn busy(&self, what: &str) -> Error {
        Error::new(Kind::Busy, format!("pool '{}' {what}", self.name()))
    }

    async fn end_scrub(&self, how: u8) -> Result<()> {
        let scrub = &self.0.scrub;
        let is_scrub = |s: &ScanStatus| s.state == ScanState::Scanning && s.func == ScanFunc::Scrub;
        if !self.scan_status().as_ref().is_some_and(is_scrub) {
            return Err(Error::invalid(format!("there is no active scrub of '{}'", self.name())));
        }
        if scrub.is_running() {
            scrub.command.store(how, Ordering::Release);
            self.scrub_wait().await;
            return Ok(());
        }
        if how == STOP {
            return self
                .change("stop scrub", |pool, tx| async move { pool.finish_scan(&tx, STOP).await })
                .await;
        }
        Ok(())
    }

    /// Reads what the pool knows of its last scrub.
    pub(crate) async fn load_scan(&self) -> Result<()> {
        let stored = self.0.dsl.core().directory().lookup(directory::SCAN).await?;
        let words = stored.as_ref().and_then(|v| v.as_u64s());
        // What another program kept in other words is its own; it only means that there is nothing to show.
        {
            // Since when it pauses is not on disk; what is known is that it has since the pool was opened.
            let mut state = lock(&self.0.scrub.state);
            (state.phys, state.paused_at) = (words.and_then(|w| ScanPhys::from_words(w).ok()), now());
        }
        self.load_position().await
    }

    /// Goes on with what was under way when the pool was closed, and brings devices up to date that were away.
    pub(crate) fn resume_scan(&self) {
        // It takes the place of a resilver, and no scrub goes on beside it.
        if self.is_rebuilding() {
            return self.resume_rebuilds();
        }
        let scan = self.scan_status().filter(|s| s.state == ScanState::Scanning);
        let func = match scan {
            Some(s) if s.func == ScanFunc::Scrub && s.paused.is_none() => Some(ScanFunc::Scrub),
            Some(s) if s.func == ScanFunc::Resilver => Some(ScanFunc::Resilver),
            _ => self.missing_span().map(|_| ScanFunc::Resilver),
        };
        match func {
            Some(func) => self.launch(func),
            // The power may have gone when all was there and the old device had not left yet.
            None => self.release_soon(),
        }
    }

    /// Starts a scan and does not wait for it.
    pub(crate) fn launch(&self, func: ScanFunc) {
        let pool = self.clone();
        let mut state = lock(&self.0.scrub.state);
        if state.is_running || self.0.scrub.command() == HALT {
            return;
        }
        state.is_running = true;
        self.0.scrub.command.store(GO, Ordering::Release);
        state.task = Some(self.spawn(async move {
            match pool.begin_scan(func).await {
                Ok(()) => pool.scan_task().await,
                Err(e) => pool.0.note_problem(format!("the {} could not go on: {e}", word(func))),
            }
        }));
    }

    /// Ends the task because the pool is being closed.
    pub(crate) async fn halt_scrub(&self) {
        self.0.scrub.command.store(HALT, Ordering::Release);
        let task = lock(&self.0.scrub.state).task.take();
        if let Some(task) = task {
            task.await;
        }
    }

    async fn start_scan(&self, func: ScanFunc) -> Result<()> {
        let scrub = &self.0.scrub;
        {
            let mut state = lock(&scrub.state);
            if state.is_running || scrub.command() == HALT {
                return Ok(());
            }
            state.is_running = true;
            scrub.command.store(GO, Ordering::Release);
        }
        self.begin_scan(func).await?;
        let task = self.spawn(self.clone().scan_task());
        lock(&scrub.state).task = Some(task);
        Ok(())
    }

    async fn begin_scan(&self, func: ScanFunc) -> Result<()> {
        if func == ScanFunc::Scrub
            && !self.goes_on(func)
            && let Err(e) = self.merge_errors().await
        {
            self.0.note_problem(format!("the logs of data errors cannot be put together: {e}"));
        }
        if func == ScanFunc::Scrub && mem::take(&mut lock(&self.0.scrub.state).is_recorded) {
            return Ok(());
        }
        let begin = move |pool: Pool, tx: Arc<Tx>| async move { pool.record_start(&tx, func).await };
        let begun = self.change(word(func), begin).await;
        if begun.is_err() {
            lock(&self.0.scrub.state).is_running = false;
        }
        self.0.scrub.turned.notify_all();
        begun
    }

    /// Records a scrub whose task begins later.
    pub(crate) async fn record_scrub(&self, tx: &Tx) -> Result<()> {
        self.record_start(tx, ScanFunc::Scrub).await?;
        lock(&self.0.scrub.state).is_recorded = true;
        Ok(())
    }

    /// The scan that begins now is one that is under way in the pool, from where it was. A resilver is another one when a
    /// device is there that was not given what is before the position.
    fn goes_on(&self, func: ScanFunc) -> bool {
        let state = lock(&self.0.scrub.state);
        let is_it = |phys: ScanPhys| phys.state == ScanState::Scanning && phys.func == func;
        let is_known = |leaf: &vdev::Leaf| state.began.get(&leaf.guid()) == Some(&leaf.missing().failures());
        let lacks = |leaf: &vdev::Leaf| leaf.is_usable() && leaf.missing().is_any() && !is_known(leaf);
        let has_all = func != ScanFunc::Resilver || !self.tree().leaves().iter().any(|leaf| lacks(leaf));
        state.phys.is_some_and(is_it) && state.position > Position::START && has_all
    }

    async fn record_start(&self, tx: &Tx, func: ScanFunc) -> Result<()> {
        let to_examine = self.space().usage_total().allocated;
        let old = lock(&self.0.scrub.state).phys.unwrap_or_default();
        let goes_on = self.goes_on(func);
        let queue = self.new_queue(tx, old.queue).await?;
        let mut phys = ScanPhys {
            func,
            state: ScanState::Scanning,
            min_txg: self.since(func),
            max_txg: tx.txg(),
            start_time: now(),
            to_examine,
            dedup_class_max: 1,
            ..ScanPhys::default()
        };
        if goes_on {
            phys = ScanPhys { flags: old.flags & !ScanPhys::SCRUB_PAUSED, ..old };
        }
        phys.queue = queue;
        self.store_scan(tx, &phys).await?;
        if !goes_on {
            self.forget_position(tx).await?;
        }
        if func == ScanFunc::Resilver && !goes_on {
            self.forget_rebuilds(tx).await?;
        }
        let text = format!("func={} mintxg={} maxtxg={}", func as u64, phys.min_txg, phys.max_txg);
        self.dsl().record_event(tx, "scan setup", &text, None).await?;
        let mut state = lock(&self.0.scrub.state);
        state.is_recorded = false;
        if !goes_on {
            state.position = Position::START;
            state.began = self.devices_to_heal();
            (state.is_incomplete, state.failed_reads) = (false, Some(self.failed_reads()));
        }
        if func == ScanFunc::Resilver {
            self.0.scrub.wanted.store(false, Ordering::Release);
        }
        (state.phys, state.pass_start, state.pass_examined) = (Some(phys), now(), 0);
        state.saved_at = Some(world::now());
        Ok(())
    }

    /// Blocks born up to here are of no interest.
    fn since(&self, func: ScanFunc) -> Txg {
        match (func, self.missing_span()) {
            (ScanFunc::Resilver, Some((first, _))) => first.back(1),
            _ => Txg::NONE,
        }
    }

    /// A scan that is under way has a list of the datasets it is still to visit, which OpenZFS expects to be there. An
    /// empty one means: from the start.
    async fn new_queue(&self, tx: &Tx, old: ObjectId) -> Result<ObjectId> {
        if let Some(old) = old.some() {
            self.mos().free(tx, old).await?;
        }
        Ok(dsl::zaps::create(self.mos(), tx, ObjectType::SCAN_QUEUE).await?.blocks().id())
    }

    async fn store_scan(&self, tx: &Tx, phys: &ScanPhys) -> Result<()> {
        self.dsl().core().directory().update(tx, directory::SCAN, &phys.to_words()[..]).await
    }

    /// Records how the scan ended.
    async fn finish_scan(&self, tx: &Tx, how: u8) -> Result<()> {
        let Some(mut phys) = lock(&self.0.scrub.state).phys else { return Ok(()) };
        if how == PAUSE {
            phys.flags |= ScanPhys::SCRUB_PAUSED;
            lock(&self.0.scrub.state).phys = Some(phys);
            self.keep_position(tx).await?;
        } else {
            self.forget_position(tx).await?;
            if let Some(queue) = phys.queue.some() {
                self.mos().free(tx, queue).await?;
            }
            phys.queue = ObjectId(0);
            phys.state = if how == GO { ScanState::Finished } else { ScanState::Canceled };
            phys.end_time = now();
            phys.flags &= !ScanPhys::SCRUB_PAUSED;
        }
        self.store_scan(tx, &phys).await?;
        if how == GO && phys.func == ScanFunc::Scrub && !lock(&self.0.scrub.state).is_incomplete {
            self.rotate_errors(tx).await?;
        }
        if how == GO {
            let may_return = phys.errors > 0 && self.missing_span().is_some() && self.may_return();
            let given = {
                let mut state = lock(&self.0.scrub.state);
                state.is_all_given(may_return).then(|| state.began.clone())
            };
            if let Some(began) = given {
                self.made_good(&began, phys.max_txg);
            }
        }
        if how == GO && phys.func == ScanFunc::Scrub {
            let core = self.dsl().core();
            core.directory().update(tx, directory::LAST_SCRUBBED_TXG, phys.max_txg.0).await?;
        }
        let what = if how == PAUSE { "scan paused" } else { "scan done" };
        self.dsl().record_event(tx, what, &format!("errors={}", phys.errors), None).await?;
        let mut state = lock(&self.0.scrub.state);
        state.is_recorded = false;
        (state.phys, state.paused_at) = (Some(phys), now());
        if how != PAUSE {
            state.position = Position::START;
        }
        // One that pauses or is stopped has tried nothing in vain.
        if how == GO {
            state.rest_until = Some(world::now().after(RESILVER_REST));
        }
        Ok(())
    }

    async fn scan_task(self) {
        let func = self.scan_status().map_or(ScanFunc::Scrub, |s| s.func);
        if let Err(e) = self.scan_parts().await {
            self.0.note_problem(format!("the {} ended early: {e}", word(func)));
            lock(&self.0.scrub.state).is_incomplete = true;
        }
        let how = self.0.scrub.command();
        if how == HALT {
            let keep = |pool: Pool, tx: Arc<Tx>| async move { pool.keep_position(&tx).await };
            // A pool that takes no changes goes on from where the position was last kept.
            let _ = self.change("keep the position of a scan", keep).await;
        } else {
            let finish = self
                .change(word(func), move |pool, tx| async move { pool.finish_scan(&tx, how).await })
                .await;
            if let Err(e) = finish {
                self.0.note_problem(format!("the end of the {} could not be recorded: {e}", word(func)));
            }
        }
        if how == GO
            && let Err(e) = self.release_devices().await
        {
            self.0.note_problem(e.at("devices that are not needed any more"));
        }
        lock(&self.0.scrub.state).is_running = false;
        self.0.scrub.turned.notify_all();
        if self.0.scrub.wanted.load(Ordering::Acquire) {
            lock(&self.0.scrub.state).rest_until = None;
        }
        // The txg that recorded the end found it running.
        self.consider_resilver();
    }
}

fn word(func: ScanFunc) -> &'static str {
    if func == ScanFunc::Resilver { "resilver" } else { "scrub" }
}

/// The newest txg that a finished scrub has seen, as the pool remembers it.
pub(crate) async fn last_scrubbed(pool: &Pool) -> Result<Txg> {
    let stored = pool.dsl().core().directory().lookup_u64(directory::LAST_SCRUBBED_TXG).await?;
    Ok(Txg(stored.unwrap_or(0)))
}
