//! The full feature phase: PDUs in, work, PDUs out.
//!
//! One future that stays on one core. Each turn lands what has finished, takes the complete PDUs of the last receive, half
//! of them at a time, and hands everything that is ready to the socket in one vectored send:
//!
//! ```text
//!   inbox ──▶ take ──┬─▶ tasks ──▶ flights ──▶ answer ──▶ outbox ──▶ socket
//!     ▲              └─▶ payload (long data are received where they will stay)
//!   socket
//! ```
//!
//! A PDU that fits the inbox is taken when it is there whole. Errors of the protocol end the connection, which is all
//! that error recovery level 0 knows; what concerns one command only ends that command.

mod receive;

use super::handshake::Opened;
use super::journal::{Journal, Probes};
use super::payload::Lent;
use super::task::{State, Task};
use super::units_seen::{Place, UnitsSeen};
use super::{Session, Vitals};
use crate::directory::{Asking, Directory, Unit};
use crate::params::{MAX_RECEIVE, Params};
use crate::server::{Config, Shared};
use crate::wire::Header;
use flow::{Inbox, Lease, Load, Outbox, Sent, Turn, Turns, take_turns};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use probe::{Io, Timed};
use scsi::{Nexus, Outcome, Stop};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use units::{Error, Kind, Result};
use world::{Instant, IoBuf, Pending, Stream};

/// Data of this length and more are received where they will stay.
const LONG: usize = 32 << 10;
/// A connection that does nothing has a receive under way all the same: room for some PDUs without data.
const IDLE_INBOX: usize = 1 << 10;
/// As much as one receive of a busy connection may bring; a whole PDU fits.
const LARGE_INBOX: usize = MAX_RECEIVE + (16 << 10);
/// After so many turns others of this loop have theirs.
const TURNS: usize = 16;
/// What may wait to be taken by a client of answers to all but commands that were admitted. Beyond that its requests wait.
const ASIDE: usize = 512 << 10;
/// What a command weighs beside its data.
pub(super) const OVERHEAD: usize = 512;

/// What the socket brings next.
pub(super) enum Intake {
    Pdus,
    /// Data of a PDU whose header was taken.
    Data(Arriving),
    Ended,
}

/// Long data on their way into the payload of a task.
pub(super) struct Arriving {
    pub header: Header,
    pub tag: u32,
    /// Where in the payload they go, and how far they have come.
    pub at: usize,
    pub done: usize,
    pub len: usize,
}

enum Receiving {
    Inbox(Pending<(IoBuf, io::Result<usize>)>),
    Payload(Lent),
}

/// Work that is under way elsewhere.
pub(super) enum Flight {
    /// With the stages of the command, if they are asked for.
    Command(u32, Option<Timed>, Pending<Outcome>),
    /// The answer to a task management function waits for what it aborted.
    Function(u32, u8, Pending<()>),
    /// The same, of one after which the target's sessions end.
    ColdReset(u32, Pending<()>),
    Units(Pending<Result<Vec<Unit>>>),
}

pub(super) enum Landed {
    Command(u32, Option<Timed>, Outcome),
    Function(u32, u8),
    ColdReset(u32),
    Units(Result<Vec<Unit>>),
}

impl Future for Flight {
    type Output = Landed;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Landed> {
        match self.get_mut() {
            Flight::Command(tag, timed, work) => {
                let _within = timed.as_ref().map(|timed| timed.course().enter());
                work.as_mut().poll(cx).map(|outcome| Landed::Command(*tag, timed.take(), outcome))
            }
            Flight::Function(tag, code, work) => {
                work.as_mut().poll(cx).map(|()| Landed::Function(*tag, *code))
            }
            Flight::ColdReset(tag, work) => work.as_mut().poll(cx).map(|()| Landed::ColdReset(*tag)),
            Flight::Units(work) => work.as_mut().poll(cx).map(Landed::Units),
        }
    }
}

/// See the module.
pub(super) struct Connection {
    pub stream: Arc<dyn Stream>,
    pub shared: Arc<Shared>,
    lease: Lease,
    vitals: Arc<Vitals>,
    pub asking: Asking,
    /// None in a discovery session.
    pub target: Option<String>,
    pub params: Params,
    pub units: UnitsSeen,
    pub inbox: Inbox,
    pub outbox: Outbox,
    intake: Intake,
    /// Taking stopped for want of bytes, not for want of room.
    starved: bool,
    pub flights: FuturesUnordered<Flight>,
    receiving: Option<Receiving>,
    pub load: Load,
    most: Load,
    pub journal: Journal,
    pub exp_cmd_sn: u32,
    pub max_cmd_sn: u32,
    pub stat_sn: u32,
    pub tasks: BTreeMap<u32, Task>,
    pub parked: VecDeque<u32>,
    /// Ordered commands that are not answered yet.
    pub ordered: usize,
    pub next_place: u64,
    pub next_transfer: u32,
    /// Functions that wait for a task to land: the task's tag, and theirs.
    pub aborts: Vec<(u32, u32)>,
    /// What a text request has said so far, and what of the answer was not sent yet.
    pub text: Vec<u8>,
    pub unsaid: Vec<u8>,
    /// We asked the client whether it is there.
    pub pinged: bool,
    /// When the PDUs that are being taken were found.
    pub took_at: Instant,
    failure: Option<Error>,
}

impl Future for Connection {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.vitals.is_stopping(cx) {
            self.end(None);
        }
        if self.vitals.changed.swap(false, Ordering::AcqRel) {
            self.look_at_units();
        }
        if self.vitals.ping.swap(false, Ordering::AcqRel) {
            self.check_client();
        }
        ready!(take_turns(&mut *self, TURNS, cx));
        Poll::Ready(self.failure.take().map_or(Ok(()), Err))
    }
}

impl Turns for Connection {
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        let sent = self.land_send(cx).is_ready();
        let landed = self.land_flights(cx);
        let received = self.land_receive(cx).is_ready();
        let started = self.start_parked(cx);
        let taken = self.take_pdus(cx);
        let has_piece = self.outbox.is_due(&self.inbox);
        if has_piece {
            self.inbox.pass_half();
        }
        let moved = sent | landed | received | started | taken | self.start_send() | self.start_receive();
        Turn::of(moved, has_piece)
    }

    fn is_over(&self) -> bool {
        // A client that is gone gets no more answers, but what it began must have ended.
        matches!(self.intake, Intake::Ended)
            && self.flights.is_empty()
            && !self.outbox.is_sending()
            && (self.outbox.is_empty() || self.failure.is_some())
    }

    /// Tells the watch whether the client keeps memory of ours by doing nothing.
    fn pause(&mut self) {
        // What is here and only has no room is no debt.
        let is_short = self.starved && !self.inbox.is_empty();
        let unfinished = matches!(self.intake, Intake::Data(_)) || is_short;
        let waits = self.tasks.values().any(Task::waits_for_data);
        self.vitals.note_debts(self.outbox.is_sending(), unfinished || self.pinged || waits);
        if self.vitals.is_asked_to_yield() {
            let stuck = self.tasks.values().filter(|task| task.state != State::Parked && task.is_stuck());
            self.lease.excuse(stuck.map(|task| task.load.bytes).sum(), self.load);
        }
        self.vitals.note_held(self.lease.is_extended());
        let waits_for_pool = self.parked.iter().any(|tag| self.tasks.get(tag).is_some_and(Task::is_stuck));
        self.vitals.note_waits_for_pool(waits_for_pool);
        self.lease.settle();
    }
}

impl Connection {
    pub fn new(session: Session, opened: Opened, config: &Config) -> Connection {
        let Session { id, stream, shared, lease, vitals, .. } = session;
        let Opened { agreed, mut inbox, units, exp_cmd_sn, stat_sn } = opened;
        // An initiator that logged in may do nothing for a long time.
        inbox.resize(IDLE_INBOX);
        let initiator = shared.initiator_port(id);
        let (target, nexus) = match agreed.target {
            Some((name, welcome)) => (Some(name), Nexus { initiator, port: welcome.port }),
            None => {
                let port = scsi::TargetPort { relative: 1, group: 0, name: "".into() };
                (None, Nexus { initiator, port })
            }
        };
        let client = agreed.asking.initiator.clone();
        let place = Place { hub: shared.hub().clone(), client, target: target.clone().unwrap_or_default() };
        let Probes { commands, stages } = place.probes("");
        let io = target.as_ref().map(|_| Arc::new(Io::new(commands)));
        if let Some(io) = &io {
            shared.note_io(id, io.clone());
        }
        Connection {
            stream,
            shared,
            lease,
            vitals,
            asking: agreed.asking,
            target,
            params: agreed.params,
            units: UnitsSeen::new(nexus, place, units),
            inbox,
            outbox: Outbox::new(),
            intake: Intake::Pdus,
            starved: true,
            flights: FuturesUnordered::new(),
            receiving: None,
            load: Load::default(),
            most: Load::of(config.session_commands * 2, config.session_bytes),
            journal: Journal::new(io, stages),
            exp_cmd_sn,
            max_cmd_sn: exp_cmd_sn.wrapping_add(config.session_commands as u32 - 1),
            stat_sn,
            tasks: BTreeMap::new(),
            parked: VecDeque::new(),
            ordered: 0,
            next_place: 0,
            next_transfer: 0,
            aborts: Vec::new(),
            text: Vec::new(),
            unsaid: Vec::new(),
            pinged: false,
            took_at: Instant::default(),
            failure: None,
        }
    }

    pub fn directory(&self) -> &dyn Directory {
        self.shared.directory()
    }

    /// Takes no more PDUs; commands that wait for data will never get them. The first reason stands.
    pub fn end(&mut self, failure: Option<Error>) {
        self.intake = Intake::Ended;
        self.failure = self.failure.take().or(failure);
        let waiting = self.tasks.iter().filter(|(_, task)| task.state != State::Flying);
        let waiting: Vec<u32> = waiting.map(|(tag, _)| *tag).collect();
        waiting.into_iter().for_each(|tag| self.forget(tag));
        self.tasks.values().flat_map(|task| &task.stop).for_each(Stop::set);
        if self.failure.is_some() {
            // Nothing more is sent; what is being sent need not wait for a client that does not read.
            self.stream.shutdown();
        }
    }

    /// The peer broke the protocol.
    pub fn fail(&mut self, why: &str) {
        self.end(Some(Error::invalid(format!("serve iSCSI client: {why}"))));
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.intake, Intake::Ended)
    }

    pub fn give_back(&mut self, load: Load) {
        self.load -= load;
        if self.load.requests == 0 {
            self.lease.rest();
        }
    }

    /// Nothing of the load is at work: all of it is parked.
    pub fn is_idle(&self) -> bool {
        let at_work = self.tasks.values().any(|t| t.state != State::Parked);
        !at_work && !self.outbox.is_sending() && self.outbox.is_empty()
    }

    /// Room for what is parked, when there is nothing else: then only the server's limit counts.
    pub fn has_room_alone(&mut self, more: Load, cx: &mut Context<'_>) -> bool {
        let mut load = self.load;
        load += more;
        self.lease.shrink(self.load);
        self.lease.covers(load, cx)
    }

    /// Whether there is room for more without leasing any.
    pub fn holds(&mut self, more: Load) -> bool {
        let mut load = self.load;
        load += more;
        load.requests <= self.most.requests && load.bytes <= self.most.bytes && self.lease.holds(load)
    }

    pub fn most_commands(&self) -> usize {
        self.most.requests
    }

    /// The first command is always admitted as far as the connection goes, or a small limit would stop it for good.
    pub fn has_room(&mut self, more: Load, cx: &mut Context<'_>) -> bool {
        let mut load = self.load;
        load += more;
        let fits = load.requests <= self.most.requests && load.bytes <= self.most.bytes;
        (fits || self.load.requests == 0) && self.lease.covers(load, cx)
    }

    /// Whether there is room for an answer to what no room was made for: until the client has taken what it was answered.
    pub fn has_room_aside(&self, bytes: usize) -> bool {
        self.load.aside == 0 || self.load.aside + bytes <= ASIDE
    }

    fn land_flights(&mut self, cx: &mut Context<'_>) -> bool {
        let mut landed = false;
        while let Poll::Ready(Some(flight)) = self.flights.poll_next_unpin(cx) {
            landed = true;
            match flight {
                Landed::Command(tag, timed, outcome) => self.finish(tag, timed, outcome),
                Landed::Function(tag, code) => self.answer_function(tag, code),
                Landed::ColdReset(tag) => self.end_target(tag),
                Landed::Units(Ok(units)) => self.update_units(units),
                // The directory could not look; it will say again that something changed.
                Landed::Units(Err(_)) => {}
            }
        }
        landed
    }
}

impl Connection {
    fn start_send(&mut self) -> bool {
        let can_send = self.outbox.can_send();
        if can_send {
            self.journal.sent(|lun| self.units.probes(lun));
            self.outbox.send(&*self.stream);
        }
        can_send
    }

    fn land_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Sent { load, bytes, result } = ready!(self.outbox.poll_sent(cx));
        self.vitals.note_taken(bytes);
        self.give_back(load);
        if let Err(e) = result {
            self.end(Some(Error::new(Kind::Io, "send to iSCSI client").because(e)));
        }
        Poll::Ready(())
    }
}
