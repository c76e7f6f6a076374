//! Data errors: blocks that could not be had from anywhere, kept until they are freed or good again.
//!
//! ```text
//!   read ──▶ zio::Sick ──▶ repair (heal): is it in use? can it be had? ── no longer / again ─▶ forgotten
//!                                                    └ neither ─┐
//!   scrub ─▶ bad, and in use ───────────────────────────────────┴▶ met ─▶ next txg ─▶ error log in the MOS ─┐
//!                                                                                       (dsl::error_log)    │
//!   freed, rewritten, repaired ─▶ gone ─▶ next txg ─▶ taken out ◀─ the block is another by now ◀─ list ◀────┘
//!                                                                                             └ names ─▶ people
//! ```
//!
//! A block comes into the log when it is certain: the tree of the txg that logs it has it, and no copy is good. So what is
//! logged was true; whether it still is, is asked whenever the log is listed ([`list`]). With the feature `head_errlog` the
//! birth of the block tells. Without it a block is known by its place alone, so that it is read, once for each opening.
//!
//! While a scrub is under way its log takes what is met, and takes the place of the other one when it has seen everything;
//! what it has not met again was repaired or freed. One that is canceled, or a resilver, has not seen everything: both logs
//! stay, and are put together when the next scrub begins.
//!
//! Bounds: what waits to be logged ([`MET_MAX`]), entries written in one txg ([`AT_ONCE`]), entries looked at when they are
//! listed. A pool opened read-only logs nothing; it lists what is logged and what it has met itself.

mod list;
mod names;
mod state;

pub(crate) use state::Errors;
pub use state::{DataError, DataErrors};

use crate::pool::{Pool, lock};
use dmu::Tx;
use dsl::error_log::{ErrorLog, LoggedError};
use ondisk::dsl::{ScanFunc, ScanState};
use ondisk::{BlockBookmark, BlockPointer, Feature};
use std::sync::Arc;
use std::time::Duration;
use units::{Result, Txg};
use zio::{BlockStore, Bookmark};

/// Blocks that wait to be logged. A scrub waits when there are so many; what reads meet is looked at by the hundred anyway.
const MET_MAX: usize = 16 << 10;
/// Entries written or taken out in one txg: half a megabyte of a ZAP or so.
const AT_ONCE: usize = 4096;
/// How often a scrub that waits for room asks whether the pool has come to a halt.
const ROOM_LOOK: Duration = Duration::from_secs(1);
/// Entries of a log in the old form that are taken into the new one.
const UPGRADED_MAX: usize = 100_000;
/// Births that are remembered of entries which do not say them.
const BIRTHS_MAX: usize = 16 << 10;

pub(crate) fn block_bookmark(at: Bookmark) -> BlockBookmark {
    BlockBookmark { objset: at.objset, object: at.object, level: i64::from(at.level), block: at.blkid }
}

/// A bookmark of the log as the engine names blocks; levels were checked when it was read.
pub(crate) fn bookmark(at: &BlockBookmark) -> Bookmark {
    Bookmark { objset: at.objset, object: at.object, level: at.level as i8, blkid: at.block }
}

impl Pool {
    /// How many data errors are known: blocks that were logged, and those met since. Some may be none any more.
    pub fn data_error_count(&self) -> u64 {
        let state = lock(&self.0.errors.state);
        state.logged + state.met.len() as u64 + self.0.pipeline.sick().lost_count().0
    }

    /// A block in use that cannot be had.
    pub(crate) fn note_data_error(&self, at: Bookmark, birth: Txg) {
        let is_new = self.0.errors.change(|state| {
            state.gone.retain(|gone| gone.at != block_bookmark(at));
            state.met.len() < MET_MAX && state.met.insert(at, birth).is_none()
        });
        if is_new {
            self.keep_errors();
        }
    }

    /// Waits until there is room for what a scrub may meet next.
    pub(crate) async fn room_for_errors(&self) {
        let errors = &self.0.errors;
        while lock(&errors.state).met.len() > MET_MAX / 2 && !self.0.read_only && self.suspended().is_none() {
            self.keep_errors();
            world::timeout(
                ROOM_LOOK,
                errors.room.until(|| (lock(&errors.state).met.len() <= MET_MAX / 2).then_some(())),
            )
            .await;
        }
    }

    /// A block that was bad is another by now, or good.
    pub(crate) fn note_data_errors_gone(&self, gone: &[LoggedError]) {
        if gone.is_empty() || self.0.read_only {
            return;
        }
        self.0.errors.change(|state| {
            for error in gone {
                state.met.retain(|at, birth| block_bookmark(*at) != error.at || *birth != error.birth);
                if state.logged > 0 && state.gone.len() < MET_MAX {
                    state.gone.insert(*error);
                }
            }
        });
        self.keep_errors();
    }

    /// Sees to it that a txg comes which keeps what has changed.
    fn keep_errors(&self) {
        if !self.0.read_only && !self.0.txgs.is_closing() && self.0.errors.is_waiting() {
            self.0.txgs.begin_unthrottled().dirtied(1);
        }
    }

    /// What is in the logs of the pool that is being opened.
    pub(crate) async fn load_errors(&self) {
        match self.dsl().logged_errors_len().await {
            Ok(logged) => self.0.errors.change(|state| state.logged = logged),
            Err(e) => self.0.note_problem(format!("the log of data errors cannot be read: {e}")),
        }
    }

    /// Which log takes what is met now.
    fn log_in_use(&self) -> ErrorLog {
        let scan = self.scan_status().filter(|s| s.state == ScanState::Scanning && s.func == ScanFunc::Scrub);
        if scan.is_some() { ErrorLog::Scrub } else { ErrorLog::Last }
    }

    /// Writes what has changed into the logs, a bounded part of it. In syncing context.
    pub(crate) async fn sync_errors(&self, tx: &Tx) {
        let (met, gone) = {
            let state = lock(&self.0.errors.state);
            let logged =
                |(at, birth): (&Bookmark, &Txg)| LoggedError { at: block_bookmark(*at), birth: *birth };
            let met: Vec<LoggedError> = state.met.iter().map(logged).take(AT_ONCE).collect();
            (met, state.gone.iter().copied().take(AT_ONCE).collect::<Vec<_>>())
        };
        if met.is_empty() && gone.is_empty() {
            return;
        }
        let dsl = self.dsl();
        let done = async {
            dsl.unlog_errors(tx, &gone).await?;
            dsl.log_errors(tx, self.log_in_use(), &met).await?;
            dsl.logged_errors_len().await
        };
        let done: Result<u64> = done.await;
        self.0.errors.change(|state| {
            let births = met.iter().filter(|_| state.births.len() < BIRTHS_MAX).map(|e| (e.at, e.birth));
            state.births.extend(births.collect::<Vec<_>>());
            for error in &gone {
                state.gone.remove(error);
                state.births.remove(&error.at);
            }
            for error in &met {
                state.met.remove(&bookmark(&error.at));
            }
            state.logged = *done.as_ref().unwrap_or(&state.logged);
        });
        self.0.errors.room.notify_all();
        if let Err(e) = done {
            self.0.note_problem(format!("data errors could not be logged: {e}"));
        }
    }

    /// After a txg is on disk: whether the logs want another one.
    pub(crate) fn has_errors_to_log(&self) -> bool {
        self.0.errors.is_waiting()
    }

    /// A whole scrub has ended: its log replaces the other. In syncing context.
    pub(crate) async fn rotate_errors(&self, tx: &Tx) -> Result<()> {
        while self.0.errors.is_waiting() {
            self.sync_errors(tx).await;
        }
        self.dsl().rotate_error_logs(tx).await?;
        let logged = self.dsl().logged_errors_len().await?;
        self.0.errors.change(|state| state.logged = logged);
        Ok(())
    }

    /// What scrubs that did not come to their end have left is put to the rest, before one begins that will meet it again.
    pub(crate) async fn merge_errors(&self) -> Result<()> {
        while self.dsl().error_log_len(ErrorLog::Scrub).await? > 0 {
            self.change("put error logs together", |pool, tx| async move {
                pool.dsl().merge_error_logs(&tx, AT_ONCE).await
            })
            .await?;
        }
        Ok(())
    }

    /// Switches to logs by head dataset. In syncing context, when the feature is enabled.
    pub(crate) async fn upgrade_error_logs(&self, tx: &Tx) -> Result<()> {
        let (dsl, core) = (self.dsl(), self.dsl().core());
        let mut old = Vec::new();
        for log in ErrorLog::BOTH {
            old.push((log, dsl.logged_errors(log, UPGRADED_MAX).await?.errors));
        }
        dsl.clear_error_logs(tx).await?;
        core.features().enable(core.mos(), core.directory(), tx, Feature::HeadErrlog).await?;
        for (log, mut errors) in old {
            for error in &mut errors {
                error.birth = self.birth_at(bookmark(&error.at)).await.unwrap_or(None).unwrap_or(Txg::NONE);
            }
            // What has no birth is no more.
            errors.retain(|error| error.birth != Txg::NONE);
            dsl.log_errors(tx, log, &errors).await?;
        }
        let logged = dsl.logged_errors_len().await?;
        self.0.errors.change(|state| state.logged = logged);
        Ok(())
    }

    /// The block that stands there by now; none where there is none on a device, or no such dataset.
    pub(crate) async fn block_at(&self, at: Bookmark) -> Result<Option<BlockPointer>> {
        let Some(root) = crate::walk::root_now(self, at.objset).await? else { return Ok(None) };
        let store: Arc<dyn BlockStore> = Arc::new(self.pipeline().clone());
        let bp = dmu::locate(&store, &root, at).await?;
        Ok(bp.as_plain().is_some().then_some(bp))
    }

    /// Its physical birth.
    pub(crate) async fn birth_at(&self, at: Bookmark) -> Result<Option<Txg>> {
        let bp = self.block_at(at).await?;
        Ok(bp.and_then(|bp| bp.as_plain().map(|plain| plain.resolved_physical_birth())))
    }
}
