//! The state machine, and the holds on it.

use crate::capacity::{Capacity, Claim, Reach};
use crate::phases::{Phases, Told};
use crate::space_reservation::SpaceReservation;
use crate::throttle::{Admission, Limits};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tunables::{Tunables, Watcher};
use units::{Error, Kind, Result, Txg};
use world::stages::{Stage, stage};
use world::sync::Notify;

pub(crate) struct State {
    pub(crate) open: Txg,
    /// Closed to new holders; waits for the old ones.
    quiescing: Option<Txg>,
    syncing: Option<Txg>,
    synced: Txg,
    /// A caller waits for this txg to be synced.
    wanted: Txg,
    holds: [u64; Txg::SLOTS],
    dirty: [u64; Txg::SLOTS],
    /// When the open txg was first dirtied; it need not be synced while this is `None`.
    dirty_since: Option<world::Instant>,
    pub(crate) limits: Limits,
    /// What the holders of a txg may still dirty.
    claimed_memory: u64,
    /// Bytes of indirect blocks that each txg empties: see [`crate::frees`].
    pub(crate) emptied: [u64; Txg::SLOTS],
    pub(crate) capacity: Capacity,
    /// How many writers stand in each queue.
    pub(crate) waiting: [u64; 2],
    /// Why nothing is written.
    halted: Option<Halted>,
    /// While the pool is suspended requests fail, rather than wait until it goes on.
    is_impatient: bool,
    closing: bool,
    phases: Phases,
}

/// A pool of which no txg is written to disk.
struct Halted {
    kind: Kind,
    why: String,
    /// It cannot go on until it is opened again.
    for_good: bool,
}

impl Halted {
    fn of(why: &Error, for_good: bool) -> Halted {
        // That a device has no room left on its host does not mean that the pool is full.
        let kind = if why.kind() == Kind::NoSpace { Kind::Io } else { why.kind() };
        Halted { kind, why: why.to_string(), for_good }
    }
}

/// The txgs of a pool that may be gone.
pub(crate) struct WeakTxgs(Weak<Shared>);

impl WeakTxgs {
    pub fn upgrade(&self) -> Option<Txgs> {
        self.0.upgrade().map(Txgs)
    }
}

/// The txgs of one pool. Clones share the state.
#[derive(Clone)]
pub struct Txgs(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Notify,
    /// For writers that wait for room: less is in memory, less is promised or in flight, or nothing will come of the wait.
    room: Notify,
    /// By [`Reach`].
    queues: [world::sync::Mutex<()>; 2],
    told: Told,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this lock leaves counters that are still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that wait look again.
    fn tell(&self) {
        self.changed.notify_all();
        self.room.notify_all();
    }
}

impl Watcher for Shared {
    fn retuned(self: Arc<Shared>, tunables: &Tunables) {
        self.lock().limits = Limits::of(tunables);
        // Waiters may have waited long enough by the new limits.
        self.tell();
    }
}

impl Txgs {
    /// `synced` is the txg of the uberblock that was read or written last. The throttle follows `tunables` from now on.
    pub fn new(synced: Txg, tunables: &Tunables) -> Txgs {
        let state = State {
            open: synced.next(),
            quiescing: None,
            syncing: None,
            synced,
            wanted: Txg::NONE,
            holds: [0; Txg::SLOTS],
            dirty: [0; Txg::SLOTS],
            dirty_since: None,
            limits: Limits::of(tunables),
            claimed_memory: 0,
            emptied: [0; Txg::SLOTS],
            capacity: Capacity::default(),
            waiting: [0; 2],
            halted: None,
            is_impatient: false,
            closing: false,
            phases: Phases::default(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
            room: Notify::new(),
            queues: [world::sync::Mutex::new(()), world::sync::Mutex::new(())],
            told: Told::default(),
        });
        tunables.watch(&shared);
        Txgs(shared)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    pub(crate) fn told(&self) -> &Told {
        &self.0.told
    }

    pub(crate) fn downgrade(&self) -> WeakTxgs {
        WeakTxgs(Arc::downgrade(&self.0))
    }

    /// Joins the open txg without asking the throttle: for small administrative changes.
    pub fn begin_unthrottled(&self) -> Tx {
        self.hold_for(&mut self.lock(), &Claim::default())
    }

    /// Joins a txg that is past, unless its sync has begun: for work on what that very txg has dirtied.
    pub fn join(&self, txg: Txg) -> Option<Tx> {
        let mut state = self.lock();
        if state.open != txg && state.quiescing != Some(txg) {
            return None;
        }
        state.holds[txg.slot()] += 1;
        Some(Tx::held(txg, self.clone(), &Claim::default()))
    }

    pub(crate) fn hold_for(&self, state: &mut State, claim: &Claim) -> Tx {
        let txg = state.open;
        state.holds[txg.slot()] += 1;
        state.claimed_memory += claim.memory;
        state.capacity.claim(claim.devices);
        Tx::held(txg, self.clone(), claim)
    }

    pub(crate) fn queue_of(&self, reach: Reach) -> &world::sync::Mutex<()> {
        &self.0.queues[reach as usize]
    }

    pub(crate) async fn wait_while_suspended(&self) {
        let over = || {
            let state = self.lock();
            (state.halted.is_none() || state.refusal().is_some()).then_some(())
        };
        self.0.changed.until(over).await;
    }

    /// Waits until there is less in memory: as blocks of the txg that is being synced reach the devices.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let room = self.0.room.notified();
            {
                let mut state = self.lock();
                let full = state.limits.admit(state.in_memory()) == Admission::Wall;
                if !full || state.halted.is_some() {
                    return;
                }
                // Said once: a waiter that says it again wakes all others and itself, and none ever rests.
                if state.wanted < state.open {
                    state.wanted = state.open;
                    self.0.changed.notify_all();
                }
            }
            room.await;
        }
    }

    /// The txg that changes made now go into.
    pub fn open_txg(&self) -> Txg {
        self.lock().open
    }

    pub fn synced_txg(&self) -> Txg {
        self.lock().synced
    }

    /// Nothing is written, and changes wait until that goes on. Where they fail instead they give back what they hold.
    pub fn makes_wait(&self) -> bool {
        let state = self.lock();
        state.is_suspended() && state.refusal().is_none()
    }

    pub fn dirty_bytes(&self) -> u64 {
        self.lock().dirty.iter().sum()
    }

    pub fn limits(&self) -> Limits {
        self.lock().limits
    }

    /// Has the open txg synced as soon as the one before it is, whatever its age.
    pub fn hasten(&self) {
        {
            let mut state = self.lock();
            state.wanted = state.wanted.max(state.open);
        }
        self.0.changed.notify_all();
    }

    /// Asks for everything that is dirty now to be synced, and waits until it is.
    pub async fn sync(&self) -> Result<()> {
        let txg = self.open_txg();
        self.wait_synced(txg).await
    }

    /// Waits until `txg` is on disk, asking for it to be synced if it is still open; while the pool is suspended too.
    ///
    /// # Errors
    /// As [`Txgs::begin`].
    pub async fn wait_synced(&self, txg: Txg) -> Result<()> {
        stage(Stage::Txg, self.wait_until_synced(txg, State::refusal)).await
    }

    /// As [`Txgs::wait_synced`], for callers that must not wait for a suspended pool, whatever its patience.
    pub async fn wait_synced_unless_suspended(&self, txg: Txg) -> Result<()> {
        stage(Stage::Txg, self.wait_until_synced(txg, |state| state.halted.as_ref())).await
    }

    async fn wait_until_synced(&self, txg: Txg, refusal: fn(&State) -> Option<&Halted>) -> Result<()> {
        loop {
            let changed = self.0.changed.notified();
            {
                let mut state = self.lock();
                if state.synced >= txg {
                    return Ok(());
                }
                if let Some(refused) = refusal(&state) {
                    return Err(
                        Error::new(refused.kind, format!("sync txg {txg}")).because(refused.why.clone())
                    );
                }
                if state.wanted < txg {
                    state.wanted = txg;
                    self.0.changed.notify_all();
                }
            }
            changed.await;
        }
    }

    /// Waits until `is_enough`, which is asked again as blocks reach the devices, or until `txg` is on disk, which is asked
    /// for; answers whether it is.
    ///
    /// # Errors
    /// As [`Txgs::wait_synced`].
    pub(crate) async fn wait_for_space(&self, txg: Txg, is_enough: impl Fn(&State) -> bool) -> Result<bool> {
        loop {
            let news = self.0.room.notified();
            {
                let mut state = self.lock();
                if state.synced >= txg {
                    return Ok(true);
                }
                if let Some(refused) = state.refusal() {
                    return Err(Error::new(refused.kind, "wait for space").because(refused.why.clone()));
                }
                if is_enough(&state) {
                    return Ok(false);
                }
                if state.wanted < txg {
                    state.wanted = txg;
                    self.0.changed.notify_all();
                }
            }
            news.await;
        }
    }

    /// The transaction of the sync of `txg`, which [`Txgs::next_to_sync`] has given.
    pub fn syncing(&self, txg: Txg) -> Tx {
        let dirty = Dirty { of: Some((self.clone(), txg)), space_reservation: None };
        Tx { txg, owner: None, dirty, claimed: Default::default() }
    }

    /// For the sync loop: the next txg to sync, once it is quiet. `None` when the pool is closing and nothing that was
    /// asked for is left to be synced.
    pub async fn next_to_sync(&self) -> Option<Txg> {
        let txg = self.close_when_due().await?;
        loop {
            let changed = self.0.changed.notified();
            {
                let mut state = self.lock();
                if state.holds[txg.slot()] == 0 {
                    state.quiescing = None;
                    state.syncing = Some(txg);
                    let dirty = state.dirty[txg.slot()];
                    state.phases.quiesce(&self.0.told, dirty);
                    return Some(txg);
                }
            }
            changed.await;
        }
    }

    /// Closes the open txg when it is full, old enough or waited for.
    async fn close_when_due(&self) -> Option<Txg> {
        loop {
            let changed = self.0.changed.notified();
            let wait = {
                let mut state = self.lock();
                let due = state.due(world::now());
                match due {
                    Due::Now => {
                        let txg = state.close();
                        let dirty = state.dirty[txg.slot()];
                        state.phases.close(&self.0.told, dirty);
                        return Some(txg);
                    }
                    Due::At(when) => Some(when),
                    Due::Never if state.closing => return None,
                    Due::Never => None,
                }
            };
            match wait {
                Some(when) => {
                    futures_util::future::select(changed, world::sleep_until(when)).await;
                }
                None => changed.await,
            }
        }
    }

    /// The pool is closing: nothing new should be begun on its own account.
    pub fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// For the sync loop: `txg` is on disk.
    pub fn done(&self, txg: Txg) {
        {
            let mut state = self.lock();
            assert_eq!(state.syncing, Some(txg), "txgs sync in order");
            state.syncing = None;
            state.synced = txg;
            let dirty = state.dirty[txg.slot()];
            state.phases.sync(&self.0.told, dirty);
            state.dirty[txg.slot()] = 0;
            state.emptied[txg.slot()] = 0;
            state.capacity.synced(txg);
        }
        self.0.tell();
    }

    /// Waits until the txg that is being synced, if any, is on disk.
    ///
    /// # Errors
    /// What the pool is suspended for, whatever the patience.
    pub async fn settled(&self) -> Result<()> {
        // Under load another one is always on its way.
        let syncing = self.lock().syncing;
        let settled = || {
            let state = self.lock();
            match &state.halted {
                Some(halted) => Some(Err(Error::new(halted.kind, "sync").because(halted.why.clone()))),
                None => syncing.is_none_or(|txg| state.synced >= txg).then_some(Ok(())),
            }
        };
        self.0.changed.until(settled).await
    }

    /// Nothing can be written any more: all that wait, and all to come, are told `why`.
    pub fn fail(&self, why: &Error) {
        {
            let mut state = self.lock();
            if !state.halted.as_ref().is_some_and(|halted| halted.for_good) {
                state.halted = Some(Halted::of(why, true));
            }
        }
        self.0.tell();
    }

    /// The sync waits for its devices, because of `why`.
    pub fn suspend(&self, why: &Error) {
        self.lock().halted.get_or_insert_with(|| Halted::of(why, false));
        self.0.tell();
    }

    /// The sync goes on, unless it has failed for good.
    pub fn resume(&self) {
        {
            let mut state = self.lock();
            state.halted.take_if(|halted| !halted.for_good);
        }
        self.0.tell();
    }

    /// While the pool is suspended, requests fail at once rather than wait, or the other way round.
    pub fn set_impatient(&self, is_impatient: bool) {
        self.lock().is_impatient = is_impatient;
        self.0.tell();
    }

    /// Why nothing is written.
    pub fn failure(&self) -> Option<String> {
        self.lock().halted.as_ref().map(|halted| halted.why.clone())
    }

    /// Waits until [`Txgs::failure`] is another than `seen`; `None` when the pool is closing.
    pub async fn failure_otherwise(&self, seen: &Option<String>) -> Option<Option<String>> {
        let look = || {
            let now = self.failure();
            match now != *seen {
                true => Some(Some(now)),
                false => self.is_closing().then_some(None),
            }
        };
        self.0.changed.until(look).await
    }

    /// Whether nothing will be written until the pool is opened again.
    pub fn has_failed_for_good(&self) -> bool {
        self.lock().halted.as_ref().is_some_and(|halted| halted.for_good)
    }

    /// Lets the sync loop end once nothing is dirty or waited for.
    pub fn close(&self) {
        self.lock().closing = true;
        self.0.tell();
    }
}

enum Due {
    Now,
    At(world::Instant),
    Never,
}

impl State {
    /// Why requests are refused now.
    fn refusal(&self) -> Option<&Halted> {
        self.halted.as_ref().filter(|halted| halted.for_good || self.is_impatient)
    }

    /// The sync waits for its devices.
    pub(crate) fn is_suspended(&self) -> bool {
        self.halted.is_some()
    }

    /// Bytes that are dirty, or may be before their holders let go.
    pub(crate) fn in_memory(&self) -> u64 {
        self.dirty.iter().sum::<u64>() + self.claimed_memory
    }

    /// Why nothing can be written, if requests are not to wait for it.
    pub(crate) fn check(&self) -> Result<()> {
        match self.refusal() {
            Some(refused) => Err(Error::new(refused.kind, "write to the pool").because(refused.why.clone())),
            None => Ok(()),
        }
    }

    fn due(&self, now: world::Instant) -> Due {
        if self.wanted >= self.open || self.limits.is_full(self.dirty[self.open.slot()]) {
            return Due::Now;
        }
        match self.dirty_since {
            Some(_) if self.closing => Due::Now,
            Some(since) if since.after(self.limits.txg_timeout) <= now => Due::Now,
            Some(since) => Due::At(since.after(self.limits.txg_timeout)),
            None => Due::Never,
        }
    }

    fn close(&mut self) -> Txg {
        let txg = self.open;
        assert!(
            self.quiescing.is_none() && self.syncing.is_none(),
            "one txg at a time is on its way to disk"
        );
        self.quiescing = Some(txg);
        self.open = txg.next();
        self.dirty_since = None;
        txg
    }
}

impl fmt::Debug for Txgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "Txgs(open {}, synced {})", state.open, state.synced)
    }
}

/// What of one txg is in memory only. The sync says here what has reached the devices, and writers that wait are let in.
#[derive(Clone, Debug, Default)]
pub struct Dirty {
    of: Option<(Txgs, Txg)>,
    space_reservation: Option<Arc<SpaceReservation>>,
}

/// Something that a [`Tx`] has dirtied, and that waits in memory no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Landed {
    /// Bytes of memory, as they were [counted](Tx::dirtied).
    pub memory: u64,
    /// What it was [promised](Tx::charge) of the devices beyond what it has taken.
    pub unneeded: u64,
    /// What its dataset has been charged for it.
    pub charged: u64,
}

impl Dirty {
    /// That of a dataset whose writers are let into `room`. Its sync begins, with `bytes` of memory to write.
    #[must_use]
    pub fn of_dataset(mut self, space_reservation: Arc<SpaceReservation>, bytes: u64) -> Dirty {
        if let (Some((_, txg)), true) = (&self.of, bytes > 0) {
            space_reservation.syncing(*txg, bytes);
            self.space_reservation = Some(space_reservation);
        }
        self
    }

    /// Something is on the devices, or on its way with no writer left that waits for it.
    pub fn landed(&self, landed: Landed) {
        let (Some((txgs, txg)), true) = (&self.of, landed.memory > 0) else { return };
        {
            let mut state = txgs.lock();
            let dirty = &mut state.dirty[txg.slot()];
            *dirty = dirty.saturating_sub(landed.memory);
            state.capacity.give_back(*txg, landed.unneeded);
        }
        if let Some(space_reservation) = &self.space_reservation {
            space_reservation.landed(*txg, landed.memory, landed.charged);
        }
        txgs.0.room.notify_all();
    }
}

/// The right to change things in one txg. While it lives the txg cannot be synced.
#[derive(Debug)]
pub struct Tx {
    txg: Txg,
    /// `None` in syncing context, where the sync itself keeps the txg.
    owner: Option<Txgs>,
    /// In syncing context.
    dirty: Dirty,
    /// What of its claim it has not used: of memory, of the devices.
    claimed: [AtomicU64; 2],
}

/// Takes up to `bytes` off what is left; returns how many.
fn take(left: &AtomicU64, bytes: u64) -> u64 {
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(bytes)));
    before.unwrap_or_else(|n| n).min(bytes)
}

impl Tx {
    /// A transaction of a sync that no [`Txgs`] knows of: of a pool that is being made, or in tests of the layers below it.
    pub fn syncing(txg: Txg) -> Tx {
        Tx { txg, owner: None, dirty: Dirty::default(), claimed: Default::default() }
    }

    fn held(txg: Txg, owner: Txgs, claim: &Claim) -> Tx {
        let claimed = [AtomicU64::new(claim.memory), AtomicU64::new(claim.devices)];
        Tx { txg, owner: Some(owner), dirty: Dirty::default(), claimed }
    }

    pub(crate) fn owner(&self) -> Option<&Txgs> {
        self.owner.as_ref()
    }

    pub(crate) fn take_claimed_devices(&self, bytes: u64) -> u64 {
        take(&self.claimed[1], bytes)
    }

    pub fn txg(&self) -> Txg {
        self.txg
    }

    pub fn is_syncing(&self) -> bool {
        self.owner.is_none()
    }

    /// Where a sync says what has reached the devices.
    pub fn dirty(&self) -> Dirty {
        self.dirty.clone()
    }

    /// Counts `bytes` of memory that stay dirty until they have [landed](Dirty::landed), or this txg has synced.
    pub fn dirtied(&self, bytes: u64) {
        self.changed(bytes, 0);
    }

    /// [`Tx::dirtied`] and [`Tx::charge`] at once.
    pub fn changed(&self, bytes: u64, devices: u64) {
        let Some(owner) = &self.owner else { return };
        let wake = {
            let mut state = owner.lock();
            if devices > 0 {
                self.promise(&mut state, devices);
            }
            let first = state.dirty_since.is_none() && state.open == self.txg;
            if first {
                state.dirty_since = Some(world::now());
            }
            let slot = self.txg.slot();
            let was_full = state.limits.is_full(state.dirty[slot]);
            state.dirty[slot] += bytes;
            state.claimed_memory -= take(&self.claimed[0], bytes);
            first || (!was_full && state.limits.is_full(state.dirty[slot]))
        };
        if wake {
            owner.0.changed.notify_all();
        }
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        let Some(owner) = &self.owner else { return };
        let last = {
            let mut state = owner.lock();
            state.claimed_memory -= take(&self.claimed[0], u64::MAX);
            state.capacity.release(take(&self.claimed[1], u64::MAX));
            let holds = &mut state.holds[self.txg.slot()];
            *holds -= 1;
            *holds == 0 && state.quiescing == Some(self.txg)
        };
        if last {
            owner.0.changed.notify_all();
        }
    }
}
