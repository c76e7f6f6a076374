//! One initiator's way to a unit: admits its commands and carries them out.
//!
//! ```text
//!   admit    retired? attention? access state? reservation? range, length, protection   ── refuses before any data moves
//!   execute  the work itself; what an abort overtook is not answered
//! ```

use crate::BLOCK;
use crate::attention::Attention;
use crate::cdb::{self, Blocks, Command};
use crate::copy::{self, Stop};
use crate::device::{Device, ItNexus, PortGroup, PortState};
use crate::epoch::{APPLIANCE, Epoch, Mark};
use crate::guard;
use crate::identity::Nexus;
use crate::inquiry::{About, read_capacity10, read_capacity16};
use crate::media;
use crate::mode::{Ask, Medium};
use crate::opcodes;
use crate::persist;
use crate::quiesced;
use crate::reach::{ItlNexus, Reach};
use crate::report::cut;
use crate::sense::{Answer, Outcome, Refusal, Sense};
use flow::Reading;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use world::{Buf, Pending, boxed};

/// See the module. Dropping it ends the way: what it held in the old way of reserving is free.
#[derive(Debug)]
pub struct Path(Arc<ItlNexus>);

/// A command that may be carried out once its data are there.
#[derive(Clone, Debug)]
pub struct Admission {
    command: Command,
    /// It does not hold an abort back: it has begun nothing.
    epoch: Weak<Epoch>,
    mark: Arc<Mark>,
    /// Ends it early; only what may take long has one.
    stop: Option<Stop>,
}

/// A command on its way.
#[allow(missing_debug_implementations)]
pub enum Execution {
    Done(Outcome),
    Pending(Pending<Outcome>),
}

impl Admission {
    /// Bytes of data to fetch from the client.
    pub fn intake(&self) -> usize {
        self.command.intake().0 as usize
    }

    /// Where on the unit the data go, bytes; `None` when they do not go there as they are.
    pub fn place(&self) -> Option<u64> {
        match self.command {
            Command::Write { blocks, .. } => Some(blocks.offset()),
            _ => None,
        }
    }

    /// It was aborted since.
    pub fn is_aborted(&self) -> bool {
        self.mark.ended_by().is_some()
    }

    /// What ends it before it is done, for commands that may take long.
    pub fn stop(&self) -> Option<Stop> {
        self.stop.clone()
    }

    /// How many bytes it may return at most: what the transport should keep room for.
    pub fn output(&self) -> usize {
        match self.command {
            Command::Read { blocks, .. } => blocks.len() as usize,
            _ => 0,
        }
    }
}

impl Device {
    /// A path to it for `nexus`, until it is dropped.
    pub fn attach(self: &Arc<Device>, nexus: Nexus) -> Path {
        self.attach_within(nexus, &Reach::default())
    }

    /// The same for an initiator that has other paths: it may copy between all of them.
    pub fn attach_within(self: &Arc<Device>, nexus: Nexus, reach: &Reach) -> Path {
        Path::new(self.clone(), self.add_nexus(nexus), reach)
    }
}

impl Path {
    fn new(device: Arc<Device>, it_nexus: Arc<ItNexus>, reach: &Reach) -> Path {
        let itl = Arc::new(ItlNexus { device, it_nexus, reach: reach.clone() });
        reach.add(&itl);
        Path(itl)
    }

    /// From now on nothing is copied by this path. Dropping it does the same, as soon as its last holder is gone.
    pub fn leave(&self) {
        self.0.it_nexus.leave();
        self.0.reach.remove(&self.0);
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.0.device
    }

    /// Something that this client must be told before its next command.
    pub fn raise(&self, attention: Attention) {
        self.0.it_nexus.raise(attention);
    }

    /// This client has learned it by itself.
    pub fn forget(&self, attention: Attention) {
        self.0.it_nexus.forget(attention);
    }

    /// Looks at a command for which the client announced `announced` bytes of data.
    pub fn admit(&self, cdb: &[u8], announced: u64) -> Result<Admission, Outcome> {
        // Before the checks: an abort that comes between them and the work aborts this one as well.
        let epoch = self.0.it_nexus.epoch();
        let command = self.0.check(cdb, announced).map_err(|refusal| self.0.outcome(Err(refusal)))?;
        let stop = copy::may_take_long(&command).then(Stop::default);
        Ok(Admission { command, mark: epoch.mark(), epoch: Arc::downgrade(&epoch), stop })
    }

    /// Carries out a command whose data are `data`, one behind the other.
    pub fn execute(&self, admission: Admission, data: Vec<Buf>) -> Execution {
        self.0.execute(admission, data)
    }

    /// Aborts all commands of this client, and waits until none of them can change anything.
    pub fn abort_all(&self) -> Pending<()> {
        let ItlNexus { device, it_nexus, .. } = &*self.0;
        let (device, it_nexus) = (device.clone(), it_nexus.clone());
        boxed(|| async move { device.abort_where(|p| p.id == it_nexus.id, it_nexus.id).await })
    }

    /// Resets the unit, for everybody.
    pub fn reset(&self) -> Pending<()> {
        let (device, id) = (self.0.device.clone(), self.0.it_nexus.id);
        boxed(|| async move { device.reset(id).await })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.leave();
    }
}

impl ItlNexus {
    fn check(&self, cdb: &[u8], announced: u64) -> Result<Command, Refusal> {
        let device = &*self.device;
        if device.is_retired() {
            return Err(Sense::NO_SUCH_UNIT.into());
        }
        device.note_shape();
        // These are answered whatever there is to tell.
        let asks_first = matches!(cdb.first(), Some(0x03 | 0x12 | 0xa0));
        if device.is_away() && !asks_first {
            return Err(quiesced::wait(cdb::parse(cdb).ok().as_ref()));
        }
        if self.it_nexus.waiting.load(Ordering::Acquire)
            && !asks_first
            && let Some(attention) = self.it_nexus.take_attention()
        {
            return Err(attention.sense().into());
        }
        let command = cdb::parse(cdb)?;
        let command = cut_to(command, announced)?;
        self.check_access(&command)?;
        if device.is_reserved() {
            self.check_reservations(&command)?;
        }
        self.check_limits(&command)?;
        Ok(command)
    }

    /// Whether a command may be carried out for a copy of this initiator: as if it had come by this path.
    pub fn permits(&self, command: &Command) -> Result<(), Refusal> {
        if self.device.is_retired() || self.it_nexus.has_left() {
            return Err(Sense::NO_SUCH_UNIT.into());
        }
        if self.device.is_away() {
            return Err(Refusal::Busy);
        }
        self.check_access(command)?;
        if self.device.is_reserved() {
            self.check_reservations(command)?;
        }
        self.check_limits(command)
    }

    fn check_access(&self, command: &Command) -> Result<(), Refusal> {
        let group = self.it_nexus.nexus.port.group;
        let state = self.device.state().groups.iter().find(|g| g.id == group).map(|g| g.state);
        let sense = match state {
            None | Some(PortState::Optimized | PortState::NonOptimized) => return Ok(()),
            Some(PortState::Standby) => Sense::STANDBY,
            Some(PortState::Unavailable) => Sense::UNAVAILABLE,
            Some(PortState::Transitioning) => Sense::TRANSITION,
        };
        match command {
            Command::Inquiry { .. }
            | Command::RequestSense { .. }
            | Command::ReportLuns { .. }
            | Command::ReportPortGroups { .. }
            | Command::ModeSense { .. }
            | Command::PersistentIn { .. }
            | Command::PersistentOut { .. } => Ok(()),
            _ => Err(sense.into()),
        }
    }

    fn check_reservations(&self, command: &Command) -> Result<(), Refusal> {
        let state = self.device.state();
        let kept_out = match state.old {
            Some(holder) if holder != self.it_nexus.id => guard::conflicts_with_old(command),
            // The two ways of reserving do not mix.
            Some(_) => matches!(command, Command::PersistentIn { .. } | Command::PersistentOut { .. }),
            None => guard::conflicts(&state.registrations, &self.it_nexus.registrant, command),
        };
        if kept_out { Err(Refusal::Conflict) } else { Ok(()) }
    }

    fn check_limits(&self, command: &Command) -> Result<(), Refusal> {
        let limits = &self.device.limits;
        let hard = u64::from(limits.transfer_hard);
        match *command {
            Command::Read { blocks, .. } => self.check_blocks(blocks, hard),
            Command::Write { blocks, .. } | Command::OrWrite { blocks, .. } => {
                self.check_blocks(blocks, hard)?;
                self.check_writable()
            }
            Command::Verify { blocks, compare: cdb::Compare::Each } => self.check_blocks(blocks, hard),
            Command::Verify { blocks, .. }
            | Command::Prefetch { blocks }
            | Command::Synchronize { blocks, .. } => self.check_blocks(blocks, u64::MAX),
            Command::WriteSame { blocks, .. } => {
                if blocks.count == 0 || blocks.count > limits.write_same {
                    return Err(Sense::field(10, None).into());
                }
                self.check_blocks(blocks, u64::MAX)?;
                self.check_writable()
            }
            Command::CompareAndWrite { blocks, .. } => {
                self.check_blocks(blocks, limits.compare.into())?;
                self.check_writable()
            }
            Command::Unmap { .. } => self.check_writable(),
            Command::GetLbaStatus { lba, .. } if lba >= self.device.unit.size() / BLOCK => {
                Err(Sense::OUT_OF_RANGE.into())
            }
            _ => Ok(()),
        }
    }

    pub fn check_blocks(&self, blocks: Blocks, most: u64) -> Result<(), Refusal> {
        let all = self.device.unit.size() / BLOCK;
        if blocks.lba.checked_add(blocks.count).is_none_or(|end| end > all) {
            return Err(Sense::OUT_OF_RANGE.into());
        }
        if blocks.count > most { Err(Sense::field(1, None).into()) } else { Ok(()) }
    }

    pub fn check_writable(&self) -> Result<(), Refusal> {
        if self.device.unit.read_only() {
            return Err(Sense::WRITE_PROTECTED.into());
        }
        if self.device.modes().write_protect {
            return Err(Sense::SOFTWARE_WRITE_PROTECTED.into());
        }
        Ok(())
    }

    fn execute(self: &Arc<ItlNexus>, admission: Admission, data: Vec<Buf>) -> Execution {
        let Admission { command, epoch, mark, stop } = admission;
        // Taken first: from here on an abort waits for us.
        let epoch = epoch.upgrade();
        if let Some(by) = mark.ended_by() {
            return Execution::Done(self.aborted(by));
        }
        // Its data came when the unit was about to go; who is before that is waited for.
        if self.device.is_away() && !matches!(command, Command::Inquiry { .. } | Command::RequestSense { .. })
        {
            return Execution::Done(self.outcome(Err(quiesced::wait(Some(&command)))));
        }
        let mut reading = None;
        if let Command::Read { blocks, fua: false } = command {
            let mut pieces = Vec::new();
            let (offset, len) = (blocks.offset(), blocks.len() as u32);
            if len == 0 {
                return Execution::Done(Outcome::good(pieces));
            }
            reading = match self.device.unit.begin_read(offset, len, &mut pieces) {
                Reading::Done(read) => {
                    let read = read.map(|()| pieces).map_err(media::failed(false));
                    return Execution::Done(self.outcome(read));
                }
                Reading::Waits(reading) => Some(reading),
            }
        }
        let work: Pending<Answer> = match command {
            _ if let Some(reading) = reading => {
                boxed(|| async move { reading.await.map_err(media::failed(false)) })
            }
            Command::PersistentOut { .. } => {
                let (device, path) = (self.device.clone(), self.it_nexus.clone());
                let (list, own) = (media::flatten(&data), mark.clone());
                boxed(|| async move { device.change_reservations(command, list, path, own).await })
            }
            _ if copy::may_take_long(&command) => {
                copy::start(self, command, media::flatten(&data), stop.unwrap_or_default())
            }
            _ => match media::start(&self.device, command, data) {
                Ok(work) => work,
                Err(data) => return Execution::Done(self.outcome(self.answer(command, &data))),
            },
        };
        Execution::Pending(Box::pin(Running { itl: self.clone(), mark, _epoch: epoch, work }))
    }

    fn outcome(&self, answer: Answer) -> Outcome {
        Outcome::of(answer, self.device.modes().descriptors)
    }

    fn aborted(&self, by: u64) -> Outcome {
        // The unit goes. Nothing tells the initiator so later, as an attention would, and some wait without end.
        if by == APPLIANCE {
            return self.outcome(Err(Refusal::Sense(Sense::NO_SUCH_UNIT)));
        }
        // An initiator that aborted its own commands does not want to hear of them.
        Outcome::aborted(by != self.it_nexus.id && self.device.modes().tell_aborted)
    }

    /// The commands that need not wait for anything.
    fn answer(&self, command: Command, data: &[Buf]) -> Answer {
        let device = &*self.device;
        let medium = Medium { size: device.unit.size(), read_only: device.unit.read_only() };
        match command {
            Command::RequestSense { descriptors, room } => {
                let sense = self.it_nexus.take_attention().map_or(Sense::NONE, Attention::sense);
                Ok(cut(sense.encode(descriptors), room))
            }
            Command::Inquiry { page, room } => Ok(cut(self.about(|about| about.inquire(page))?, room)),
            Command::ReadCapacity10 => Ok(cut(read_capacity10(medium.size), 8)),
            Command::ReadCapacity16 { room } => {
                Ok(cut(read_capacity16(medium.size, device.unit.block_size()), room))
            }
            Command::ModeSense { ten, descriptor, long, control, page, subpage, room } => {
                let ask = Ask { ten, descriptor, long, control, page, subpage };
                Ok(cut(device.modes().sense(device.defaults(), ask, medium)?, room))
            }
            Command::ModeSelect { ten, .. } => {
                let modes = device.modes().select(ten, &media::flatten(data), medium)?;
                device.change_modes(modes, self.it_nexus.id);
                Ok(Vec::new())
            }
            Command::ReportOpcodes { timeouts, what, room } => {
                Ok(cut(opcodes::report(timeouts, what)?, room))
            }
            Command::ReportTaskFunctions { long, room } => {
                let mut bytes = vec![0xda, 0x01, 0, 0];
                if long {
                    bytes[3] = 0x0c;
                    bytes.resize(16, 0);
                }
                Ok(cut(bytes, room))
            }
            Command::ReportPortGroups { extended, room } => {
                Ok(cut(port_groups(&device.state().groups, extended), room))
            }
            Command::PersistentIn { action, room } => {
                Ok(cut(persist::report(&device.state().registrations, action)?, room))
            }
            Command::CopyParameters { room } => Ok(cut(copy::limits::parameters(), room)),
            Command::CopyStatus { list, room } => Ok(cut(self.it_nexus.copies.status(list, room)?, room)),
            Command::TokenInformation { list, room } => {
                Ok(cut(self.it_nexus.copies.information(list, room)?, room))
            }
            Command::AbortCopy { list } => {
                self.it_nexus.copies.abort(list)?;
                Ok(Vec::new())
            }
            Command::Reserve { .. } => self.reserve(),
            Command::Release => {
                let mut state = device.state();
                if state.old == Some(self.it_nexus.id) {
                    state.old = None;
                }
                device.note_reserved(&state);
                Ok(Vec::new())
            }
            // The medium stays and always turns; media commands do not come here.
            _ => Ok(Vec::new()),
        }
    }

    fn about<T>(&self, ask: impl FnOnce(&About<'_>) -> T) -> T {
        let device = &*self.device;
        let several_ports = device.state().groups.iter().map(|g| g.ports.len()).sum::<usize>() > 1;
        let port = &self.it_nexus.nexus.port;
        let about = About {
            identity: &device.identity,
            unit: &*device.unit,
            limits: device.limits,
            port,
            several_ports,
        };
        ask(&about)
    }

    /// RESERVE, the old way; where there are registrations it is only polite.
    fn reserve(&self) -> Answer {
        let device = &*self.device;
        let mut state = device.state();
        let registrant = &self.it_nexus.registrant;
        if !state.registrations.list.is_empty() {
            let shared = state.registrations.reservation.as_ref().is_none_or(|r| r.kind.is_shared());
            let may = state.registrations.holds(registrant)
                || (shared && state.registrations.is_registered(registrant));
            return if may { Ok(Vec::new()) } else { Err(Refusal::Conflict) };
        }
        state.old = Some(self.it_nexus.id);
        device.note_reserved(&state);
        Ok(Vec::new())
    }
}

/// The command, as far as the client has data for it: a write of fewer whole blocks, or none at all. A part of any
/// other would be no command.
fn cut_to(command: Command, announced: u64) -> Result<Command, Sense> {
    let (needed, _) = command.intake();
    match command {
        _ if command.is_exact() && needed != announced => Err(Sense::field(10, None)),
        _ if needed <= announced => Ok(command),
        Command::Write { blocks, fua, then } => {
            Ok(Command::Write { blocks: Blocks { count: announced / BLOCK, ..blocks }, fua, then })
        }
        _ => Err(Sense::INFORMATION_UNIT),
    }
}

/// A command at work. It keeps its epoch, and so holds an abort back, until it is done.
struct Running {
    itl: Arc<ItlNexus>,
    mark: Arc<Mark>,
    _epoch: Option<Arc<Epoch>>,
    work: Pending<Answer>,
}

impl Future for Running {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let answer = ready!(self.work.as_mut().poll(cx));
        Poll::Ready(match self.mark.ended_by() {
            // It was preempted before its turn came, and hears that.
            Some(by) if by != self.itl.it_nexus.id && matches!(answer, Err(Refusal::Conflict)) => {
                self.itl.outcome(answer)
            }
            // Before the unit went it was done, or failed.
            None | Some(APPLIANCE) => self.itl.outcome(answer),
            Some(by) => self.itl.aborted(by),
        })
    }
}

/// What REPORT TARGET PORT GROUPS says.
fn port_groups(groups: &[PortGroup], extended: bool) -> Vec<u8> {
    let mut list = Vec::new();
    if extended {
        list.extend([0x10, 0, 0, 0]);
    }
    for group in groups {
        let preferred = if group.preferred { 0x80 } else { 0 };
        // Every state may be seen; changes are implicit.
        list.extend([preferred | group.state as u8, 0x8f]);
        list.extend(group.id.to_be_bytes());
        list.extend([0, 0x02, 0, group.ports.len() as u8]);
        group.ports.iter().for_each(|port| {
            list.extend([0, 0]);
            list.extend(port.to_be_bytes());
        });
    }
    [&(list.len() as u32).to_be_bytes()[..], &list].concat()
}
