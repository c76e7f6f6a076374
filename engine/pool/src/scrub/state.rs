//! What a pool keeps of a scan while it is open, and what is told of it.

use super::position::Position;
use crate::lock::lock;
use ondisk::ScanPhys;
use ondisk::dsl::{ScanFunc, ScanState};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use units::{Guid, HashMap, Txg};
use world::sync::{Event, Notify};
use world::{Instant, Task};

/// A scrub or a resilver: the last one, or the one under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanStatus {
    pub func: ScanFunc,
    pub state: ScanState,
    /// Seconds since 1970.
    pub start_time: u64,
    /// The txg in which it began: no two have one in common, as they may have a second.
    pub begun: Txg,
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
pub(super) const GO: u8 = 0;
pub(super) const PAUSE: u8 = 1;
pub(super) const STOP: u8 = 2;
/// The pool is being closed: as it is on disk, so it stays.
pub(super) const HALT: u8 = 3;

/// See the module above. Belongs to one pool.
#[derive(Debug, Default)]
pub(crate) struct Scrub {
    pub(crate) state: Mutex<State>,
    pub(super) command: AtomicU8,
    /// A scan has begun or ended, with its record.
    pub(super) turned: Notify,
    /// A resilver is wanted as soon as nothing else is going.
    pub(super) wanted: AtomicBool,
    /// What waits for the end of a rest, and what ends it earlier.
    pub(crate) rest: Mutex<Option<(Arc<Event>, Task<()>)>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) phys: Option<ScanPhys>,
    pub(super) task: Option<Task<()>>,
    pub(super) is_running: bool,
    pub(super) paused_at: u64,
    pub(super) pass_start: u64,
    pub(super) pass_examined: u64,
    /// What is before it is done.
    pub(super) position: Position,
    /// When the position was kept last.
    pub(super) saved_at: Option<Instant>,
    /// See [`crate::Pool::devices_to_heal`].
    pub(crate) began: HashMap<Guid, u64>,
    /// Some set changed so fast that part of it was not seen.
    pub(super) is_incomplete: bool,
    /// How many reads of devices had failed when the scan began; `None` of one that was begun before the pool was opened.
    pub(crate) failed_reads: Option<u64>,
    /// The scan before lacked something that may return, and this one is the second try.
    pub(super) is_retry: bool,
    /// The scrub was recorded with the end of a rebuild, and its task has not begun.
    pub(super) is_recorded: bool,
    pub(super) rest_until: Option<Instant>,
}

impl State {
    /// A scan has come to its end: whether devices have by now all that is to be had. What is lost for good is missed by
    /// no device; for what may return there is one more try, and not another one each time that fails too.
    pub(super) fn is_all_given(&mut self, may_return: bool) -> bool {
        if self.is_incomplete {
            return false;
        }
        let is_given = !may_return || self.is_retry;
        self.is_retry = !is_given;
        is_given
    }

    /// Until when no resilver begins by itself, if that is to come.
    pub(crate) fn rests_until(&self) -> Option<Instant> {
        self.rest_until.filter(|until| world::now() < *until)
    }
}

impl ScanStatus {
    pub(super) fn of(state: &State) -> Option<ScanStatus> {
        let phys = state.phys?;
        let is_paused = phys.state == ScanState::Scanning && phys.flags & ScanPhys::SCRUB_PAUSED != 0;
        let elapsed = if state.is_running { now() - state.pass_start.min(now()) } else { 0 };
        Some(ScanStatus {
            func: phys.func,
            state: phys.state,
            start_time: phys.start_time,
            begun: phys.max_txg,
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

pub(super) fn now() -> u64 {
    world::wall_clock().seconds
}

impl Scrub {
    pub(super) fn command(&self) -> u8 {
        self.command.load(Ordering::Acquire)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut ScanPhys)) {
        if let Some(phys) = &mut lock(&self.state).phys {
            change(phys);
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        lock(&self.state).is_running
    }

    /// The record and the task agree: what is told to be under way is, and goes on; what is told to be over has ended.
    pub(super) fn is_settled(&self) -> bool {
        let state = lock(&self.state);
        let goes =
            |phys: ScanPhys| phys.state == ScanState::Scanning && phys.flags & ScanPhys::SCRUB_PAUSED == 0;
        !state.is_running || (self.command() == GO && state.phys.is_some_and(goes))
    }

    pub(crate) fn want_no_resilver(&self) {
        self.wanted.store(false, Ordering::Release);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// A resilver that is wanted, from its beginning: what is under way ends.
    pub(crate) fn want_resilver_anew(&self) {
        self.want_resilver();
        if self.is_running() {
            let _ = self.command.compare_exchange(GO, STOP, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// A scrub gives way; a resilver is followed by another one.
    pub(crate) fn want_resilver(&self) {
        self.wanted.store(true, Ordering::Release);
        let mut state = lock(&self.state);
        state.rest_until = None;
        let scrubs = state.phys.is_some_and(|p| p.func == ScanFunc::Scrub && p.state == ScanState::Scanning);
        if scrubs && state.is_running {
            let _ = self.command.compare_exchange(GO, STOP, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
