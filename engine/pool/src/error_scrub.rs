//! Error scrub: the blocks in the error log are looked at again, and those that can be had leave it.
//!
//! ```text
//!             error_scrub                    every entry looked at
//!   (nothing) ───────────▶ error scrubbing ─────────────────────────▶ finished
//!                            │  ▲ │ stop, or a scan has begun
//!                      pause ▼  │ └─────────────────────────────────▶ canceled
//!                           paused
//!
//!   both logs ─▶ one log ─▶ entries in their order, a batch at a time ─▶ sync task: is the block in use? ─ no ─▶ out
//!                                                   heal_block: all copies, all parity ◀─ yes ┘
//!                                                     └ had: repaired, out    └ not had: it stays
//! ```
//!
//! It is what is done after a device has come back that has the only good copies: the log is small where the pool is large.
//! What is found bad besides is logged as ever. A log without births (no feature `head_errlog`) does not tell which block is
//! meant, so there is no error scrub of it.
//!
//! The state is kept as OpenZFS keeps it, nine words under the name `error_scrub`. OpenZFS's cursor is a place in a hash
//! table whose entries it does not take out; here entries are walked in their order and do leave, so the cursor is written
//! as 0, from the beginning, and the last entry that was looked at is kept beside it ([`POSITION`]). What OpenZFS has begun
//! is begun anew: what was met is in the logs.
//!
//! Invariants: an entry leaves the log only in the txg in which its block was had, or found to be no more; beside a scan
//! nothing is looked at.

mod state;

pub(crate) use state::ErrorScrub;
pub use state::ErrorScrubStatus;

use crate::errors::bookmark;
use crate::pool::{Pool, lock};
use dmu::Tx;
use dsl::error_log::{ErrorLog, LoggedError};
use ondisk::dsl::{ErrorScrubPhys, ScanFunc, ScanState};
use ondisk::mos::directory;
use state::{position_from_words, position_to_words};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::{Error, HashMap, HashSet, Kind, Result};
use world::Boxed;
use zio::Bookmark;

/// Entries that are looked at in one txg.
const AT_ONCE: usize = 64;
/// Entries that are held in memory: the log is read once for so many.
const HELD_MAX: usize = 16 << 10;
/// How often a suspended pool is asked whether it goes on.
const SUSPENDED_LOOK: Duration = Duration::from_millis(200);
/// Where the position is kept in the directory of the MOS.
const POSITION: &str = "org.cenote:error_scrub_position";

/// What the task is to do.
const GO: u8 = 0;
const PAUSE: u8 = 1;
const STOP: u8 = 2;
/// The pool is being closed: as it is on disk, so it stays.
const HALT: u8 = 3;

impl Pool {
    /// The scrub of the error log under way, or the last one.
    pub fn error_scrub_status(&self) -> Option<ErrorScrubStatus> {
        lock(&self.0.error_scrub.state).status()
    }

    /// Starts a scrub of the error log, or lets one go on that pauses; nothing is done when the log is empty.
    ///
    /// # Errors
    /// `Busy` while a scan or an error scrub is under way, a paused scrub included; `Unsupported` without `head_errlog`.
    pub fn error_scrub(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            if !self.dsl().logs_errors_by_head() {
                let why =
                    format!("it needs a feature: zpool set feature@head_errlog=enabled {}", self.name());
                return Err(Error::new(Kind::Unsupported, "error scrub").because(why));
            }
            self.check_no_rebuild()?;
            self.scan_is_settled().await;
            if self.is_scanning() {
                return Err(Error::new(
                    Kind::Busy,
                    format!("pool '{}' is scrubbing or resilvering", self.name()),
                ));
            }
            self.start_error_scrub().await
        })
    }

    /// Waits until no scrub of the error log is going.
    pub fn error_scrub_wait(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            let own = &self.0.error_scrub;
            own.turned.until(|| (!lock(&own.state).is_running).then_some(())).await;
        })
    }

    /// Whether one is under way, though it may pause.
    pub fn is_error_scrubbing(&self) -> bool {
        lock(&self.0.error_scrub.state).is_under_way()
    }

    /// A scrub cannot begin beside one.
    pub(crate) fn check_no_error_scrub(&self) -> Result<()> {
        match self.is_error_scrubbing() {
            true => Err(Error::new(Kind::Busy, format!("pool '{}' is error scrubbing", self.name()))),
            false => Ok(()),
        }
    }

    /// Ends the one under way before it is done.
    pub(crate) async fn stop_error_scrub(&self) -> Result<()> {
        self.end_error_scrub(STOP).await
    }

    /// Lets the one under way pause, even if the pool is closed meanwhile.
    pub(crate) async fn pause_error_scrub(&self) -> Result<()> {
        self.end_error_scrub(PAUSE).await
    }

    async fn end_error_scrub(&self, how: u8) -> Result<()> {
        let own = &self.0.error_scrub;
        let is_running = lock(&own.state).is_running;
        if is_running {
            own.command.store(how, Ordering::Release);
            self.error_scrub_wait().await;
            return Ok(());
        }
        if how == STOP {
            return self
                .change(
                    "stop error scrub",
                    |pool, tx| async move { pool.finish_error_scrub(&tx, STOP).await },
                )
                .await;
        }
        Ok(())
    }

    /// Reads what the pool knows of its last scrub of errors, and where one under way was.
    pub(crate) async fn load_error_scrub(&self) -> Result<()> {
        let directory = self.dsl().core().directory();
        let stored = directory.lookup(directory::ERROR_SCRUB).await?;
        let words = stored.as_ref().and_then(|v| v.as_u64s());
        // What another program kept in other words is its own; it only means that there is nothing to show.
        let Some(phys) = words.and_then(|w| ErrorScrubPhys::from_words(w).ok()) else { return Ok(()) };
        let kept = directory.lookup(POSITION).await?;
        let position = kept.as_ref().and_then(|v| v.as_u64s());
        let mut state = lock(&self.0.error_scrub.state);
        state.position = position.and_then(|words| position_from_words(words, phys.start_time));
        (state.phys, state.paused_at) = (Some(phys), now());
        Ok(())
    }

    /// Goes on with what was under way when the pool was closed.
    pub(crate) fn resume_error_scrub(&self) {
        let is_going = |phys: ErrorScrubPhys| phys.state == ScanState::ErrorScrubbing && !phys.is_paused;
        if !lock(&self.0.error_scrub.state).phys.is_some_and(is_going) || !self.claim_error_scrub() {
            return;
        }
        let pool = self.clone();
        let task = self.spawn(async move {
            match pool.begin_error_scrub().await {
                Ok(true) => pool.error_scrub_task().await,
                Ok(false) => {}
                Err(e) => pool.0.note_problem(format!("the error scrub could not go on: {e}")),
            }
        });
        lock(&self.0.error_scrub.state).task = Some(task);
    }

    /// Ends the task because the pool is being closed.
    pub(crate) async fn halt_error_scrub(&self) {
        self.0.error_scrub.command.store(HALT, Ordering::Release);
        let task = lock(&self.0.error_scrub.state).task.take();
        if let Some(task) = task {
            task.await;
        }
    }

    async fn start_error_scrub(&self) -> Result<()> {
        // What has read in the status that the one before is over may ask for the next.
        let own = &self.0.error_scrub;
        own.turned.until(|| own.is_settled().then_some(())).await;
        if !self.claim_error_scrub() {
            return Err(Error::new(Kind::Busy, format!("pool '{}' is already error scrubbing", self.name())));
        }
        if self.begin_error_scrub().await? {
            self.0.error_scrub.turned.notify_all();
            let task = self.spawn(self.clone().error_scrub_task());
            lock(&self.0.error_scrub.state).task = Some(task);
        }
        Ok(())
    }

    /// Answers whether the caller is the one to run it.
    fn claim_error_scrub(&self) -> bool {
        let own = &self.0.error_scrub;
        let mut state = lock(&own.state);
        if state.is_running || own.command.load(Ordering::Acquire) == HALT {
            return false;
        }
        state.is_running = true;
        own.command.store(GO, Ordering::Release);
        true
    }

    fn release_error_scrub(&self) {
        lock(&self.0.error_scrub.state).is_running = false;
        self.0.error_scrub.turned.notify_all();
    }

    /// Answers whether there is anything to be looked at.
    async fn begin_error_scrub(&self) -> Result<bool> {
        let begin = async {
            self.merge_errors().await?;
            self.change("error scrub", |pool, tx| async move { pool.record_error_scrub(&tx).await }).await
        };
        let begun = begin.await;
        if !matches!(begun, Ok(true)) {
            self.release_error_scrub();
        }
        begun
    }

    /// Records that one begins or goes on. In syncing context.
    async fn record_error_scrub(&self, tx: &Tx) -> Result<bool> {
        // What was met and waits to be logged is to be looked at, too.
        self.sync_errors(tx).await;
        let len = self.dsl().error_log_len(ErrorLog::Last).await?;
        let (old, position) = {
            let state = lock(&self.0.error_scrub.state);
            (state.phys.filter(|_| state.is_under_way()), state.position)
        };
        let phys = match old {
            Some(old) if position.is_some() => ErrorScrubPhys { is_paused: false, cursor: 0, ..old },
            Some(old) => {
                ErrorScrubPhys { is_paused: false, cursor: 0, to_examine: len, examined: 0, errors: 0, ..old }
            }
            None if len == 0 => return Ok(false),
            None => {
                let text = format!("func={} mintxg=0 maxtxg={}", ScanFunc::ErrorScrub as u64, tx.txg());
                self.dsl().record_event(tx, "error scrub setup", &text, None).await?;
                lock(&self.0.error_scrub.state).begun = tx.txg();
                ErrorScrubPhys {
                    func: ScanFunc::ErrorScrub,
                    state: ScanState::ErrorScrubbing,
                    start_time: now(),
                    to_examine: len,
                    ..ErrorScrubPhys::default()
                }
            }
        };
        let position = if old.is_some() { position } else { None };
        self.store_error_scrub(tx, phys, position).await?;
        Ok(true)
    }

    /// Keeps the state, and makes it what is told.
    async fn store_error_scrub(
        &self,
        tx: &Tx,
        phys: ErrorScrubPhys,
        position: Option<LoggedError>,
    ) -> Result<()> {
        let directory = self.dsl().core().directory();
        directory.update(tx, directory::ERROR_SCRUB, &phys.to_words()[..]).await?;
        match position {
            Some(at) => {
                directory.update(tx, POSITION, &position_to_words(phys.start_time, &at)[..]).await?;
            }
            None if directory.contains(POSITION).await? => directory.remove(tx, POSITION).await?,
            None => {}
        }
        let mut state = lock(&self.0.error_scrub.state);
        (state.phys, state.position) = (Some(phys), position);
        Ok(())
    }

    async fn error_scrub_task(self) {
        let how = match self.look_through_errors().await {
            Ok(how) => how,
            // It stays under way: the next one to ask, or to open the pool, goes on.
            Err(e) => {
                self.0.note_problem(format!("the error scrub ended early: {e}"));
                HALT
            }
        };
        if how != HALT {
            let end = move |pool: Pool, tx: Arc<Tx>| async move { pool.finish_error_scrub(&tx, how).await };
            if let Err(e) = self.change("error scrub", end).await {
                self.0.note_problem(format!("the end of the error scrub could not be recorded: {e}"));
            }
        }
        self.release_error_scrub();
    }

    /// Looks at all that is behind the position. Answers how it ended.
    async fn look_through_errors(&self) -> Result<u8> {
        let mut held = VecDeque::new();
        loop {
            let command = self.0.error_scrub.command.load(Ordering::Acquire);
            if command != GO {
                return Ok(command);
            }
            // A resilver does not wait, and both would use the same devices.
            if self.is_scanning() || self.is_rebuilding() {
                return Ok(STOP);
            }
            if self.suspended().is_some() && !self.0.txgs.has_failed_for_good() {
                world::sleep(SUSPENDED_LOOK).await;
                continue;
            }
            if held.is_empty() {
                let position = lock(&self.0.error_scrub.state).position;
                let _unchanged = self.reading().await;
                held = self.dsl().logged_errors_after(ErrorLog::Last, position, HELD_MAX).await?.into();
            }
            if held.is_empty() {
                return Ok(GO);
            }
            let batch: Vec<LoggedError> = held.drain(..held.len().min(AT_ONCE)).collect();
            let again = batch.clone();
            let look = self
                .change("error scrub", |pool, tx| async move { pool.look_at_errors(&tx, again).await })
                .await;
            match look {
                Ok(()) => {}
                // What it was half-way through is looked at again.
                Err(_) if self.suspended().is_some() && !self.0.txgs.has_failed_for_good() => held.clear(),
                Err(e) => return Err(e),
            }
        }
    }

    /// Looks at a batch, and takes out of the log what can be had or is no more. In syncing context.
    async fn look_at_errors(&self, tx: &Tx, batch: Vec<LoggedError>) -> Result<()> {
        let Some(last) = batch.last().copied() else { return Ok(()) };
        let mut phys = lock(&self.0.error_scrub.state).phys.unwrap_or_default();
        let (mut gone, mut blocks, mut entries) = (Vec::new(), Vec::new(), HashMap::default());
        for error in &batch {
            let Some(set) = self.holder_of(error).await else {
                gone.push(*error);
                continue;
            };
            let at = Bookmark { objset: set, ..bookmark(&error.at) };
            match self.block_at(at).await {
                Ok(Some(bp)) => {
                    entries.insert(at, *error);
                    blocks.push((at, bp));
                }
                Ok(None) => gone.push(*error),
                // What leads to it cannot be read.
                Err(_) => phys.errors = phys.errors.saturating_add(1),
            }
        }
        let healed = self.heal_blocks(blocks, true, None).await;
        let lost: HashSet<Bookmark> = healed.lost.iter().map(|lost| lost.at).collect();
        phys.errors = phys.errors.saturating_add(lost.len() as u64);
        gone.extend(entries.iter().filter(|(at, _)| !lost.contains(at)).map(|(_, error)| *error));
        self.note_data_errors_gone(&gone);
        self.sync_errors(tx).await;
        phys.examined = phys.examined.saturating_add(batch.len() as u64);
        phys.to_examine = phys.to_examine.saturating_sub(batch.len() as u64);
        self.store_error_scrub(tx, phys, Some(last)).await
    }

    /// Records how it ended. In syncing context.
    async fn finish_error_scrub(&self, tx: &Tx, how: u8) -> Result<()> {
        let (phys, position) = {
            let state = lock(&self.0.error_scrub.state);
            (state.phys.filter(|_| state.is_under_way()), state.position)
        };
        let Some(mut phys) = phys else { return Ok(()) };
        if how == PAUSE {
            phys.is_paused = true;
            lock(&self.0.error_scrub.state).paused_at = now();
            return self.store_error_scrub(tx, phys, position).await;
        }
        let (what, state) = match how {
            GO => ("error scrub done", ScanState::Finished),
            _ => ("error scrub canceled", ScanState::Canceled),
        };
        (phys.state, phys.end_time, phys.is_paused) = (state, now(), false);
        let left = self.dsl().logged_errors_len().await?;
        self.dsl().record_event(tx, what, &format!("errors={left}"), None).await?;
        self.store_error_scrub(tx, phys, None).await
    }

    /// Whether a scrub or a resilver is under way, though it may pause.
    fn is_scanning(&self) -> bool {
        self.scan_status().is_some_and(|scan| scan.state == ScanState::Scanning)
    }
}

fn now() -> u64 {
    world::wall_clock().seconds
}
