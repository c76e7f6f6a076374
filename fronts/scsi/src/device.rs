//! One unit, and what all that reach it share: reservations, modes, ports, and who must be told of what.
//!
//! ```text
//!   Path ─┐                       ┌─ registry: persistent reservations
//!   Path ─┼──▶ Device ── state ───┼─ paths: attentions, the tasks under way
//!   Path ─┘       │               └─ groups of target ports and their access
//!                 └──▶ LogicalUnit
//! ```
//!
//! Changes of reservations take turns and are made on a copy; the copy becomes the truth after it was stored, where it
//! must survive, and before the command is answered. In the same instant the tasks of the nexuses that it preempts are
//! aborted, and the turn is over: what waits for those tasks to end holds nothing that another change needs.
//!
//! No two commands wait for each other. Only PREEMPT AND ABORT waits for other commands, after its change was made, and
//! only for those that it aborted; an aborted command makes no change after that, and stops waiting. So of two that
//! abort each other the one whose change came first goes on, and the other ends.

use crate::attention::{Attention, Attentions};
use crate::cdb::Command;
use crate::copy::{Copies, Tokens};
use crate::epoch::{APPLIANCE, Epoch, Mark, Tasks};
use crate::identity::{Identity, Nexus};
use crate::inquiry::{Limits, unit_names};
use crate::mode::Modes;
use crate::persist;
use crate::registrations::{Effects, Registrant, Registrations};
use crate::sense::{Answer, Refusal, Sense};
use crate::unit::LogicalUnit;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Result;
use world::Pending;
use world::sync::RangeLocks;

/// How a unit is configured; the first two may be changed by clients until it comes up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Writes are acknowledged before they are durable.
    pub write_cache: bool,
    pub write_protect: bool,
    /// The largest transfer that clients are told to ask for, bytes.
    pub max_transfer: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { write_cache: true, write_protect: false, max_transfer: 1 << 20 }
    }
}

/// Asymmetric access, as clients see it; we change it, they do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PortState {
    Optimized = 0,
    NonOptimized = 1,
    Standby = 2,
    Unavailable = 3,
    Transitioning = 15,
}

/// Target ports that share a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortGroup {
    pub id: u16,
    pub state: PortState,
    pub preferred: bool,
    /// Relative identifiers.
    pub ports: Vec<u16>,
}

/// Where reservations are kept while no client is there, and beyond a restart where that was asked for.
pub trait ReservationStore: Send + Sync + fmt::Debug {
    /// Keeps `text` in place of what it had, for a device that is made anew; empty means that there is nothing to keep.
    /// `lasting`, when it is given, takes the place of what is kept durably.
    fn save(&self, text: String, lasting: Option<String>) -> Pending<Result<()>>;
}

/// A unit that is served. Dropping the last path and the last handle ends it.
pub struct Device {
    pub(crate) unit: Arc<dyn LogicalUnit>,
    pub(crate) identity: Identity,
    pub(crate) limits: Limits,
    pub(crate) range_locks: RangeLocks,
    /// What of it was promised to copies.
    pub(crate) tokens: Tokens,
    defaults: Modes,
    store: Arc<dyn ReservationStore>,
    /// The size and the unit's own block that all paths know of.
    known_size: AtomicU64,
    known_block: AtomicU32,
    /// It is reserved, in the new way or the old one.
    reserved: AtomicBool,
    retired: AtomicBool,
    /// Its unit is away for a moment.
    away: AtomicBool,
    modes: Mutex<Modes>,
    state: Mutex<State>,
    /// Changes of reservations, one at a time.
    changing: world::sync::Mutex<()>,
}

#[derive(Default)]
pub(crate) struct State {
    pub registrations: Registrations,
    /// The path that holds it in the old way.
    pub old: Option<u64>,
    pub paths: Vec<Arc<ItNexus>>,
    next_path: u64,
    pub groups: Vec<PortGroup>,
}

/// What the device knows of a path.
pub(crate) struct ItNexus {
    pub id: u64,
    pub nexus: Nexus,
    pub registrant: Registrant,
    pub waiting: AtomicBool,
    attentions: Mutex<Attentions>,
    tasks: Mutex<Tasks>,
    /// The path has ended, though commands of it may not have.
    left: AtomicBool,
    pub copies: Copies,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ItNexus {
    pub fn raise(&self, attention: Attention) {
        lock(&self.attentions).raise(attention);
        self.waiting.store(true, Ordering::Release);
    }

    pub fn take_attention(&self) -> Option<Attention> {
        let mut attentions = lock(&self.attentions);
        let taken = attentions.take();
        self.waiting.store(!attentions.is_empty(), Ordering::Release);
        taken
    }

    pub fn forget(&self, attention: Attention) {
        lock(&self.attentions).forget(attention);
    }

    pub fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
        self.copies.stop_all();
    }

    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// The epoch of the tasks that begin now.
    pub fn epoch(&self) -> Arc<Epoch> {
        lock(&self.tasks).epoch()
    }
}

impl Device {
    /// `stored` is what the store has of it; by a text that makes no sense the unit is reserved, for no client.
    pub fn new(
        unit: Arc<dyn LogicalUnit>,
        identity: Identity,
        options: Options,
        store: Arc<dyn ReservationStore>,
        stored: &str,
    ) -> Arc<Device> {
        let registrations = persist::take_up(stored);
        let defaults = Modes {
            write_cache: options.write_cache,
            write_protect: options.write_protect,
            descriptors: false,
            tell_aborted: false,
        };
        Arc::new(Device {
            identity,
            limits: Limits::new(options.max_transfer),
            range_locks: RangeLocks::default(),
            tokens: Tokens::default(),
            defaults,
            store,
            known_size: AtomicU64::new(unit.size()),
            known_block: AtomicU32::new(unit.block_size()),
            reserved: AtomicBool::new(registrations.reservation.is_some()),
            retired: AtomicBool::new(false),
            away: AtomicBool::new(false),
            modes: Mutex::new(defaults),
            state: Mutex::new(State { registrations, ..State::default() }),
            changing: world::sync::Mutex::new(()),
            unit,
        })
    }

    pub fn unit(&self) -> &Arc<dyn LogicalUnit> {
        &self.unit
    }

    /// Whether a client means this unit by a designator of the page of names.
    pub(crate) fn is_called(&self, code_set: u8, kind: u8, name: &[u8]) -> bool {
        unit_names(&self.identity).iter().any(|(set, k, own)| (*set, *k, &own[..]) == (code_set, kind, name))
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// One more initiator port speaks to the unit through one of its target ports.
    pub(crate) fn add_nexus(&self, nexus: Nexus) -> Arc<ItNexus> {
        let mut state = self.state();
        state.next_path += 1;
        let it_nexus = Arc::new(ItNexus {
            id: state.next_path,
            registrant: Registrant::of(&nexus),
            nexus,
            waiting: AtomicBool::new(false),
            attentions: Mutex::default(),
            tasks: Mutex::default(),
            left: AtomicBool::new(false),
            copies: Copies::default(),
        });
        it_nexus.raise(Attention::PowerOn);
        state.paths.push(it_nexus.clone());
        it_nexus
    }

    pub(crate) fn detach(&self, it_nexus: &ItNexus) {
        let mut state = self.state();
        state.paths.retain(|p| p.id != it_nexus.id);
        if state.old == Some(it_nexus.id) {
            state.old = None;
        }
        self.note_reserved(&state);
    }

    /// Groups of target ports that lead to it; clients are told when they change.
    pub fn set_groups(&self, groups: Vec<PortGroup>) {
        let mut state = self.state();
        if state.groups != groups {
            let first = state.groups.is_empty();
            state.groups = groups;
            if !first {
                state.paths.iter().for_each(|p| p.raise(Attention::PortsChanged));
            }
        }
    }

    /// Configures it anew; clients are told.
    pub fn set_modes(&self, write_cache: bool, write_protect: bool) {
        let modes = Modes { write_cache, write_protect, ..self.modes() };
        self.change_modes(modes, 0);
    }

    pub(crate) fn change_modes(&self, modes: Modes, by: u64) {
        let before = std::mem::replace(&mut *lock(&self.modes), modes);
        if before != modes {
            self.raise(Attention::ModeChanged, by);
        }
    }

    /// Tells every path but `except`.
    pub(crate) fn raise(&self, attention: Attention, except: u64) {
        self.state().paths.iter().filter(|p| p.id != except).for_each(|p| p.raise(attention));
    }

    /// Whether its size or its own block is another since anybody looked; then all are told.
    pub fn note_shape(&self) -> bool {
        let (size, block) = (self.unit.size(), self.unit.block_size());
        // Looked at for every command: written to only when there is something new.
        let is_new = |changed: bool, attention| {
            if changed {
                self.raise(attention, 0);
            }
            changed
        };
        let other_block = self.known_block.load(Ordering::Acquire) != block
            && self.known_block.swap(block, Ordering::AcqRel) != block;
        let other_size = self.known_size.load(Ordering::Acquire) != size
            && self.known_size.swap(size, Ordering::AcqRel) != size;
        // The block is in the block limits, and in READ CAPACITY as the physical one.
        is_new(other_block, Attention::InquiryChanged)
            | is_new(other_size || other_block, Attention::CapacityChanged)
    }

    /// The unit is going away: from now on it is not there, and this waits for the commands under way.
    pub async fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.abort_where(|_| true, APPLIANCE).await;
    }

    /// The unit will be away, and come back as another device. Clients are told to try again; what is under way ends as
    /// it would, and this waits for it.
    pub async fn go_away(&self) {
        self.set_away();
        let under_way: Vec<Arc<Mark>> =
            self.state().paths.iter().flat_map(|p| lock(&p.tasks).leave_running()).collect();
        for mark in under_way {
            mark.drained().await;
        }
    }

    pub(crate) fn set_away(&self) {
        self.away.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::SeqCst)
    }

    /// Aborts all commands of all paths, and forgets what a reset forgets.
    pub(crate) async fn reset(&self, by: u64) {
        {
            let mut state = self.state();
            state.old = None;
            self.note_reserved(&state);
            // The initiator that asked for it knows.
            state.paths.iter().filter(|p| p.id != by).for_each(|p| p.raise(Attention::Reset));
            state.paths.iter().for_each(|p| p.copies.forget_ended());
        }
        *lock(&self.modes) = self.defaults;
        self.abort_where(|_| true, by).await;
    }

    /// Aborts the commands of some paths, and waits until none of them can change anything any more, nor any that was
    /// aborted before.
    pub(crate) async fn abort_where(&self, which: impl Fn(&ItNexus) -> bool, by: u64) {
        let aborted = self.state().abort(which, by);
        for mark in aborted {
            mark.drained().await;
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn modes(&self) -> Modes {
        *lock(&self.modes)
    }

    pub(crate) fn defaults(&self) -> &Modes {
        &self.defaults
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved.load(Ordering::Acquire)
    }

    pub(crate) fn note_reserved(&self, state: &State) {
        let reserved = state.registrations.reservation.is_some() || state.old.is_some();
        self.reserved.store(reserved, Ordering::Release);
    }

    /// PERSISTENT RESERVE OUT of a task whose epoch is `own`. Waits for its turn and for the store; PREEMPT AND ABORT
    /// then waits for the tasks it aborted. A task that is aborted meanwhile waits no longer: its change was made, or
    /// never will be.
    pub(crate) async fn change_reservations(
        &self,
        command: Command,
        list: Vec<u8>,
        path: Arc<ItNexus>,
        own: Arc<Mark>,
    ) -> Answer {
        let aborted = {
            let turn = own.unless_ended(self.changing.lock()).await;
            let Some(_turn) = turn.filter(|_| own.ended_by().is_none()) else {
                return Err(self.overtaken(command, &path));
            };
            let (registrations, effects) = self.change(command, &list, &path).await?;
            let mut state = self.state();
            state.registrations = registrations;
            self.note_reserved(&state);
            for (registrant, attention) in effects.told {
                state.paths.iter().filter(|p| p.registrant == registrant).for_each(|p| p.raise(attention));
            }
            state.abort(|p| p.id != path.id && effects.aborted.contains(&p.registrant), path.id)
        };
        for mark in aborted {
            if own.unless_ended(mark.drained()).await.is_none() {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// What a change that was aborted before its turn came is answered, where it is answered: as if it had come after
    /// the one that preempted its registration, which it needs.
    fn overtaken(&self, command: Command, path: &ItNexus) -> Refusal {
        let registers = matches!(command, Command::PersistentOut { action: 0 | 6, .. });
        let preempted = !self.state().registrations.is_registered(&path.registrant);
        if preempted && !registers { Refusal::Conflict } else { Refusal::Busy }
    }

    /// The registry as a change makes it, which is stored when this returns.
    async fn change(
        &self,
        command: Command,
        list: &[u8],
        path: &ItNexus,
    ) -> std::result::Result<(Registrations, Effects), Refusal> {
        let (mut registrations, ports) = {
            let state = self.state();
            let ports = state.groups.iter().flat_map(|g| g.ports.iter().copied()).collect::<Vec<u16>>();
            (state.registrations.clone(), ports)
        };
        let own = path.registrant.port;
        let ports = if ports.contains(&own) { ports } else { vec![own] };
        let survived = registrations.survives;
        let change = persist::read(command, list, own, &ports)?;
        let effects = change.apply(&mut registrations, &path.registrant)?;
        let text = persist::store(&registrations);
        let lasting = match (registrations.survives, survived) {
            (true, _) => Some(text.clone()),
            (false, true) => Some(String::new()),
            (false, false) => None,
        };
        let saved = self.store.save(text, lasting).await;
        saved.map_err(|e| Refusal::Sense(Sense::of(e.kind(), true)))?;
        Ok((registrations, effects))
    }
}

impl State {
    /// Aborts the tasks of some paths; returns those that have not ended yet, also of earlier aborts.
    fn abort(&self, which: impl Fn(&ItNexus) -> bool, by: u64) -> Vec<Arc<Mark>> {
        self.paths.iter().filter(|p| which(p)).flat_map(|p| lock(&p.tasks).abort(by)).collect()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.identity.serial)
    }
}

impl fmt::Debug for ItNexus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ItNexus({} through {})", self.nexus.initiator, self.nexus.port.name)
    }
}
