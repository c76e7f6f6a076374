//! Joining the open txg: the write throttle and the devices' capacity, in order of arrival.
//!
//! ```text
//!                    queue empty, nothing full
//!   begin_for ───────────────────────────────────────────────▶ Tx
//!       │                                                       ▲
//!       └─▶ queue ─▶ at its head: delay, wall, capacity, again ─┘
//! ```
//!
//! One writer at a time waits as the throttle asks, and looks again after each wait; the others wait for their turn. So
//! delays follow one another, and a thousand writers that come at once do not all find the room that was there for one.
//! Since what a writer claims is counted when it is let in, it matters no more how late it dirties its blocks.
//!
//! What frees space has a queue of its own: it must not stand behind writes that wait for that very space.

use crate::capacity::{Claim, DeviceSpace, Reach, Verdict};
use crate::space_reservation::{Entry, SpaceReservation};
use crate::throttle::Admission;
use crate::txgs::{State, Tx, Txgs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{Error, Kind, Result, Txg};
use world::stages::{Stage, stage};

/// How many txgs a writer waits for that something may become free: those under way, and two in which it ripens.
const WAITS: usize = 5;

enum Step {
    Joined(Tx),
    Delay(Duration),
    Wall,
    /// What is promised or ripening may be free when this txg has synced.
    Sync(Txg),
    /// The pool is suspended.
    Suspended,
    /// Others were first.
    Queue,
}

/// A writer in the queue.
struct Waiting<'a>(&'a Txgs, Reach);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting[self.1 as usize] -= 1;
    }
}

/// A writer in the queue of a space reservation.
struct WaitingIn<'a>(&'a AtomicU64);

impl<'a> WaitingIn<'a> {
    fn new(count: &'a AtomicU64) -> WaitingIn<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        WaitingIn(count)
    }
}

impl Drop for WaitingIn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Txgs {
    /// Joins the open txg, after waiting as long as the write throttle asks. The change is not counted before it is made:
    /// for what is small and rare.
    pub async fn begin(&self) -> Result<Tx> {
        self.begin_for(Claim::default()).await
    }

    /// Joins the open txg for a change that takes at most `claim`. Waits for its turn, as long as the write throttle
    /// asks, while the pool is suspended, and for txgs to sync while others may take what is left.
    ///
    /// # Errors
    /// `NoSpace` when the devices are full; why the pool cannot be written any more.
    pub async fn begin_for(&self, claim: Claim) -> Result<Tx> {
        match self.step(&claim, false, false)? {
            Step::Joined(tx) => Ok(tx),
            // Apart: a change that need not wait is not to be as large as one that does.
            _ => Box::pin(stage(Stage::Throttle, self.queue(&claim))).await,
        }
    }

    /// As [`Txgs::begin_for`], for `bytes` of data that must fit `space_reservation` besides.
    ///
    /// # Errors
    /// `NoSpace` also when `space_reservation` is full.
    pub async fn begin_in(
        &self,
        space_reservation: &SpaceReservation,
        bytes: u64,
        claim: Claim,
    ) -> Result<Tx> {
        if space_reservation.waiting.load(Ordering::Relaxed) == 0 || claim.reach == Reach::Freeing {
            let tx = self.begin_for(claim).await?;
            let entry = match claim.reach {
                Reach::Normal => space_reservation.enter(tx.txg(), bytes),
                Reach::Freeing => space_reservation.enter_freeing(tx.txg(), bytes),
            };
            match entry {
                Entry::Go => return Ok(tx),
                Entry::Wait => {}
                Entry::Full => return Err(Error::new(Kind::NoSpace, "write")),
            }
        }
        Box::pin(stage(Stage::Throttle, self.queue_for(space_reservation, bytes, claim))).await
    }

    /// One writer at a time waits for room, and the others for their turn.
    async fn queue_for(&self, space_reservation: &SpaceReservation, bytes: u64, claim: Claim) -> Result<Tx> {
        let _waiting = WaitingIn::new(&space_reservation.waiting);
        let _turn = space_reservation.queue.lock().await;
        let mut waits = 0;
        loop {
            let tx = self.begin_for(claim).await?;
            match space_reservation.enter(tx.txg(), bytes) {
                Entry::Go => return Ok(tx),
                Entry::Wait if waits < WAITS || space_reservation.free() > 0 => {
                    let txg = tx.txg();
                    drop(tx);
                    let has_synced = self.wait_for_space(txg, |_| !space_reservation.makes_wait()).await?;
                    waits += usize::from(has_synced);
                }
                Entry::Wait | Entry::Full => return Err(Error::new(Kind::NoSpace, "write")),
            }
        }
    }

    async fn queue(&self, claim: &Claim) -> Result<Tx> {
        self.lock().waiting[claim.reach as usize] += 1;
        let _waiting = Waiting(self, claim.reach);
        let _turn = self.queue_of(claim.reach).lock().await;
        let (came, mut has_paid, mut is_throttled) = (world::now(), false, false);
        loop {
            match self.step(claim, true, has_paid)? {
                Step::Joined(tx) => {
                    if is_throttled {
                        self.told().held_back(world::now().since(came));
                    }
                    return Ok(tx);
                }
                Step::Delay(d) => {
                    is_throttled = true;
                    world::sleep(d).await;
                    has_paid = true;
                }
                Step::Wall => {
                    is_throttled = true;
                    self.wait_for_room().await;
                    has_paid = false;
                }
                Step::Sync(txg) => {
                    let (devices, reach) = (claim.devices, claim.reach);
                    self.wait_for_space(txg, |state| state.capacity.ask(devices, reach) != Verdict::Wait)
                        .await?;
                }
                Step::Suspended => self.wait_while_suspended().await,
                Step::Queue => unreachable!("it is its turn"),
            }
        }
    }

    /// Joins, or says what to wait for. `has_paid`: the delay has been waited for, only the wall counts.
    fn step(&self, claim: &Claim, is_its_turn: bool, has_paid: bool) -> Result<Step> {
        let mut state = self.lock();
        state.check()?;
        if state.is_suspended() {
            return Ok(Step::Suspended);
        }
        if !is_its_turn && state.waiting[claim.reach as usize] > 0 {
            return Ok(Step::Queue);
        }
        match state.limits.admit(state.in_memory()) {
            Admission::Go => {}
            Admission::Delay(_) if has_paid => {}
            Admission::Delay(d) => return Ok(Step::Delay(d)),
            Admission::Wall => return Ok(Step::Wall),
        }
        match state.capacity.ask(claim.devices, claim.reach) {
            Verdict::Go => Ok(Step::Joined(self.hold_for(&mut state, claim))),
            Verdict::Wait => Ok(Step::Sync(state.open)),
            Verdict::Full => Err(Error::new(Kind::NoSpace, "write").because("the devices are full")),
        }
    }

    /// What the devices have left, now that a txg is on disk; to be told before [`Txgs::done`].
    pub fn set_space(&self, space: DeviceSpace) {
        self.lock().capacity.set_space(space);
    }
}

impl Tx {
    /// Promises `bytes` of the devices to this txg: what it has dirtied, at its worst. Never refused; see
    /// [`Txgs::begin_for`].
    pub fn charge(&self, bytes: u64) {
        let (Some(owner), true) = (self.owner(), bytes > 0) else { return };
        self.promise(&mut owner.lock(), bytes);
    }

    pub(crate) fn promise(&self, state: &mut State, bytes: u64) {
        let claimed = self.take_claimed_devices(bytes);
        state.capacity.release(claimed);
        state.capacity.promise(self.txg(), bytes);
    }

    /// As [`Tx::charge`] for what can be done without, as blocks of a log can: false when there is no room for it.
    pub fn try_charge(&self, bytes: u64) -> bool {
        let Some(owner) = self.owner() else { return true };
        let mut state = owner.lock();
        let goes = state.capacity.ask(bytes, Reach::Normal) == Verdict::Go;
        if goes {
            state.capacity.promise(self.txg(), bytes);
        }
        goes
    }
}
