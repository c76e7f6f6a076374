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
//! The walk only looks ([`crate::walk`]). What was bad is repaired a batch at a time **in syncing context**, and only if
//! the block is still in its tree: in a txg's sync no space freed after the last one is given out again, so nobody else
//! can own the place that is written to.
//!
//! The state is kept as OpenZFS keeps it: a `ScanPhys` under the name `scan` in the object directory, written when the
//! state changes, so that `zpool status` of either program shows the last scrub. How far a scrub has come is not kept:
//! one that was under way when the pool was closed starts over when it is opened.

use crate::pool::{Pool, lock};
use crate::walk::{self, Check, Set, Suspect, is_in_use};
use dmu::Tx;
use ondisk::dsl::{ScanFunc, ScanState};
use ondisk::mos::directory;
use ondisk::{BlockPointer, ObjectType, ScanPhys};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use units::{Error, HashSet, Kind, ObjectId, ObjsetId, Result, Txg};
use world::sync::Notify;
use world::{Pending, Task};
use zio::Bookmark;

/// A scrub (or, of pools that OpenZFS left in the midst of one, a resilver): the last one, or the one under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanStatus {
    pub func: ScanFunc,
    pub state: ScanState,
    /// Seconds since 1970.
    pub start_time: u64,
    pub end_time: u64,
    /// Since when it pauses, if it does.
    pub paused: Option<u64>,
    /// Allocated bytes when it began, and how many of them were looked at.
    pub to_examine: u64,
    pub examined: u64,
    /// Bytes written again.
    pub repaired: u64,
    /// Blocks that could not be had from anywhere.
    pub errors: u64,
    /// Seconds that this pass has been going, and bytes looked at in it: the rate is their quotient.
    pub pass_elapsed: u64,
    pub pass_examined: u64,
}

/// What the task is to do.
const GO: u8 = 0;
const PAUSE: u8 = 1;
const STOP: u8 = 2;
/// The pool is being closed: as it is on disk, so it stays.
const HALT: u8 = 3;

/// Bad blocks repaired in one txg.
const REPAIRS_AT_ONCE: usize = 64;

/// See the module. Belongs to one pool.
#[derive(Debug, Default)]
pub(crate) struct Scrub {
    state: Mutex<State>,
    command: AtomicU8,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    phys: Option<ScanPhys>,
    task: Option<Task<()>>,
    is_running: bool,
    paused_at: u64,
    pass_start: u64,
    pass_examined: u64,
    /// Sets that a pause need not walk again.
    done: HashSet<ObjsetId>,
}

impl ScanStatus {
    fn of(state: &State) -> Option<ScanStatus> {
        let phys = state.phys?;
        let is_paused = phys.state == ScanState::Scanning && phys.flags & ScanPhys::SCRUB_PAUSED != 0;
        let elapsed = if state.is_running { now() - state.pass_start.min(now()) } else { 0 };
        Some(ScanStatus {
            func: phys.func,
            state: phys.state,
            start_time: phys.start_time,
            end_time: phys.end_time,
            paused: is_paused.then_some(state.paused_at),
            to_examine: phys.to_examine,
            examined: phys.examined.min(phys.to_examine.max(phys.examined)),
            repaired: phys.processed,
            errors: phys.errors,
            pass_elapsed: elapsed,
            pass_examined: state.pass_examined,
        })
    }
}

fn now() -> u64 {
    world::wall_clock().seconds
}

impl Scrub {
    fn command(&self) -> u8 {
        self.command.load(Ordering::Acquire)
    }

    fn change(&self, change: impl FnOnce(&mut ScanPhys)) {
        if let Some(phys) = &mut lock(&self.state).phys {
            change(phys);
        }
    }

    fn is_running(&self) -> bool {
        lock(&self.state).is_running
    }
}

impl Pool {
    /// The scrub under way, or the last one.
    pub fn scan_status(&self) -> Option<ScanStatus> {
        ScanStatus::of(&lock(&self.0.scrub.state))
    }

    /// Starts a scrub, or lets one go on that pauses.
    pub async fn scrub(&self) -> Result<()> {
        let scrub = &self.0.scrub;
        if scrub.is_running() {
            return Err(self.busy("is already scrubbing; use 'zpool scrub -s' to cancel the scrub"));
        }
        if self.scan_status().is_some_and(|s| s.state == ScanState::Scanning && s.func == ScanFunc::Resilver)
        {
            return Err(self.busy("is resilvering"));
        }
        self.start_scrub().await
    }

    /// Ends a scrub before it is done.
    pub async fn scrub_stop(&self) -> Result<()> {
        self.end_scrub(STOP).await
    }

    /// Lets a scrub pause until [`Pool::scrub`] is called again, even if the pool is closed meanwhile.
    pub async fn scrub_pause(&self) -> Result<()> {
        self.end_scrub(PAUSE).await
    }

    /// Waits until no scrub is going.
    pub async fn scrub_wait(&self) {
        let scrub = &self.0.scrub;
        scrub.ended.until(|| (!scrub.is_running()).then_some(())).await;
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
                .change("stop scrub", |pool, tx| async move { pool.finish_scrub(&tx, STOP).await })
                .await;
        }
        Ok(())
    }

    /// Reads what the pool knows of its last scrub.
    pub(crate) async fn load_scan(&self) -> Result<()> {
        let stored = self.0.dsl.core().directory().lookup(directory::SCAN).await?;
        let words = stored.as_ref().and_then(|v| v.as_u64s());
        // What another program kept in other words is its own; it only means that there is nothing to show.
        lock(&self.0.scrub.state).phys = words.and_then(|w| ScanPhys::from_words(w).ok());
        Ok(())
    }

    /// Goes on with a scrub that was under way when the pool was closed.
    pub(crate) fn resume_scrub(&self) {
        let unfinished = self.scan_status().is_some_and(|s| {
            s.state == ScanState::Scanning && s.func == ScanFunc::Scrub && s.paused.is_none()
        });
        if unfinished {
            let pool = self.clone();
            let mut state = lock(&self.0.scrub.state);
            state.is_running = true;
            state.task = Some(world::spawn(async move {
                match pool.begin_scrub().await {
                    Ok(()) => pool.scrub_task().await,
                    Err(e) => pool.0.note_problem(format!("the scrub could not go on: {e}")),
                }
            }));
        }
    }

    /// Ends the task because the pool is being closed.
    pub(crate) async fn halt_scrub(&self) {
        self.0.scrub.command.store(HALT, Ordering::Release);
        let task = lock(&self.0.scrub.state).task.take();
        if let Some(task) = task {
            task.await;
        }
    }

    async fn start_scrub(&self) -> Result<()> {
        let scrub = &self.0.scrub;
        {
            let mut state = lock(&scrub.state);
            if state.is_running || scrub.command() == HALT {
                return Ok(());
            }
            state.is_running = true;
            scrub.command.store(GO, Ordering::Release);
        }
        self.begin_scrub().await?;
        let task = world::spawn(self.clone().scrub_task());
        lock(&scrub.state).task = Some(task);
        Ok(())
    }

    async fn begin_scrub(&self) -> Result<()> {
        let begun = self.change("scrub", |pool, tx| async move { pool.record_start(&tx).await }).await;
        if begun.is_err() {
            lock(&self.0.scrub.state).is_running = false;
            self.0.scrub.ended.notify_all();
        }
        begun
    }

    async fn record_start(&self, tx: &Tx) -> Result<()> {
        let to_examine = self.space().usage_total().allocated;
        let (old, goes_on) = {
            let state = lock(&self.0.scrub.state);
            let phys = state.phys.unwrap_or_default();
            (phys, phys.state == ScanState::Scanning && !state.done.is_empty())
        };
        let queue = self.new_queue(tx, old.queue).await?;
        let mut phys = ScanPhys {
            func: ScanFunc::Scrub,
            state: ScanState::Scanning,
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
        let text = format!("func=1 mintxg={} maxtxg={}", phys.min_txg, phys.max_txg);
        self.dsl().record_event(tx, "scan setup", &text, None).await?;
        let mut state = lock(&self.0.scrub.state);
        if !goes_on {
            state.done.clear();
        }
        (state.phys, state.pass_start, state.pass_examined) = (Some(phys), now(), 0);
        Ok(())
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

    /// Records how the scrub ended.
    async fn finish_scrub(&self, tx: &Tx, how: u8) -> Result<()> {
        let Some(mut phys) = lock(&self.0.scrub.state).phys else { return Ok(()) };
        if how == PAUSE {
            phys.flags |= ScanPhys::SCRUB_PAUSED;
        } else {
            if let Some(queue) = phys.queue.some() {
                self.mos().free(tx, queue).await?;
            }
            phys.queue = ObjectId(0);
            phys.state = if how == GO { ScanState::Finished } else { ScanState::Canceled };
            phys.end_time = now();
            phys.flags &= !ScanPhys::SCRUB_PAUSED;
        }
        self.store_scan(tx, &phys).await?;
        if how == GO {
            let core = self.dsl().core();
            core.directory().update(tx, directory::LAST_SCRUBBED_TXG, phys.max_txg.0).await?;
        }
        let what = if how == PAUSE { "scan paused" } else { "scan done" };
        self.dsl().record_event(tx, what, &format!("errors={}", phys.errors), None).await?;
        let mut state = lock(&self.0.scrub.state);
        (state.phys, state.paused_at) = (Some(phys), now());
        if how != PAUSE {
            state.done.clear();
        }
        Ok(())
    }

    async fn scrub_task(self) {
        if let Err(e) = self.scrub_sets().await {
            self.0.note_problem(format!("the scrub ended early: {e}"));
        }
        let how = self.0.scrub.command();
        if how != HALT {
            let finish =
                self.change("scrub", move |pool, tx| async move { pool.finish_scrub(&tx, how).await }).await;
            if let Err(e) = finish {
                self.0.note_problem(format!("the end of the scrub could not be recorded: {e}"));
            }
        }
        lock(&self.0.scrub.state).is_running = false;
        self.0.scrub.ended.notify_all();
    }

    async fn scrub_sets(&self) -> Result<()> {
        let scrub = &self.0.scrub;
        let scrubber = Arc::new(Scrubber { pool: self.clone(), bad: Arc::default() });
        for set in walk::sets(self).await? {
            let is_done = lock(&scrub.state).done.contains(&set.id);
            if is_done || set.root.is_hole() {
                continue;
            }
            let examined = lock(&scrub.state).phys.map_or(0, |p| p.examined);
            walk::walk(self, &set, scrubber.clone()).await?;
            scrubber.repair().await?;
            if scrubber.is_stopped() {
                // What was seen of this set will be seen again.
                scrub.change(|phys| phys.examined = examined);
                return Ok(());
            }
            lock(&scrub.state).done.insert(set.id);
        }
        Ok(())
    }

    /// Repairs blocks, in syncing context.
    async fn repair_blocks(&self, blocks: Vec<(Bookmark, BlockPointer)>) -> Result<()> {
        let healed = || -> u64 { self.tree().leaves().iter().map(|l| l.stats.snapshot().healed).sum() };
        for (at, bp) in blocks {
            if !is_in_use(self, at, &bp).await.unwrap_or(false) {
                continue;
            }
            let before = healed();
            if self.pipeline().scrub_block(&bp, at).await.is_ok() {
                // A whole copy that was bad is healed above the vdev, which does not count it.
                let repaired = (healed() - before).max(bp.psize().0);
                self.0.scrub.change(|phys| phys.processed += repaired);
            }
        }
        Ok(())
    }
}

struct Scrubber {
    pool: Pool,
    /// Blocks that have something wrong somewhere, though they can be read.
    bad: Arc<Mutex<Vec<(Bookmark, BlockPointer)>>>,
}

impl Scrubber {
    async fn repair(&self) -> Result<()> {
        loop {
            let batch: Vec<_> = {
                let mut bad = lock(&self.bad);
                let n = bad.len().min(REPAIRS_AT_ONCE);
                bad.drain(..n).collect()
            };
            if batch.is_empty() {
                return Ok(());
            }
            self.pool
                .change("repair", move |pool, tx| async move {
                    // The state that says how much was repaired goes with the txg that waits for it.
                    pool.0.touch(&tx).await?;
                    pool.repair_blocks(batch).await
                })
                .await?;
        }
    }
}

/// Bad blocks that wait for their repair: with so many, the walk waits too.
const BAD_MAX: usize = 1024;

impl Check for Scrubber {
    fn block(&self, _set: &Set, at: Bookmark, bp: &BlockPointer) -> Pending<Result<()>> {
        let (pool, list, bp) = (self.pool.clone(), self.bad.clone(), bp.clone());
        Box::pin(async move {
            if bp.as_plain().is_none() {
                return Ok(());
            }
            let asize = bp.asize().0;
            {
                let mut state = lock(&pool.0.scrub.state);
                state.pass_examined += asize;
                if let Some(phys) = &mut state.phys {
                    phys.examined += asize;
                }
            }
            if pool.pipeline().check_block(&bp, at).await?.bad == 0 {
                return Ok(());
            }
            lock(&list).push((at, bp));
            if lock(&list).len() >= BAD_MAX {
                Scrubber { pool, bad: list }.repair().await?;
            }
            Ok(())
        })
    }

    fn damaged(&self, set: &Set, suspect: Suspect) {
        self.pool.0.scrub.change(|phys| phys.errors += 1);
        self.pool.0.note_problem(format!("{}: {}", set.name, suspect.error));
    }

    fn is_stopped(&self) -> bool {
        self.pool.0.scrub.command() != GO
    }
}

/// The newest txg that a finished scrub has seen, as the pool remembers it.
pub(crate) async fn last_scrubbed(pool: &Pool) -> Result<Txg> {
    let stored = pool.dsl().core().directory().lookup_u64(directory::LAST_SCRUBBED_TXG).await?;
    Ok(Txg(stored.unwrap_or(0)))
}
