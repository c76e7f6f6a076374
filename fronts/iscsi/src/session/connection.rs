//! The full feature phase: PDUs in, work, PDUs out.
//!
//! One future that stays on one core. Each turn lands what has finished, takes every complete PDU of the last receive,
//! and hands everything that is ready to the socket in one vectored send:
//!
//! ```text
//!   inbox ──▶ take ──┬─▶ tasks ──▶ flights ──▶ answer ──▶ outbox ──▶ socket
//!     ▲              └─▶ payload (long data are received where they will stay)
//!   socket
//! ```
//!
//! A PDU that fits the inbox is taken when it is there whole. Errors of the protocol end the connection, which is all
//! that error recovery level 0 knows; what concerns one command only ends that command.

use super::handshake::{Opened, SMALL_INBOX};
use super::journal::Journal;
use super::payload::Lent;
use super::task::{State, Task};
use super::units_seen::UnitsSeen;
use super::{Session, Vitals};
use crate::directory::{Asking, Directory, Unit};
use crate::params::{MAX_RECEIVE, Params};
use crate::server::{Config, Shared};
use crate::text::Pairs;
use crate::wire::{HEADER, Header, padding, request};
use flow::{Inbox, Lease, Load, Outbox};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use probe::Layer;
use scsi::{Nexus, Outcome};
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
/// As much as one receive of a busy connection may bring; a whole PDU fits.
const LARGE_INBOX: usize = MAX_RECEIVE + (16 << 10);
/// After so many turns others of this loop have theirs.
const TURNS: usize = 16;
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

/// Work that waits for somebody else.
pub(super) enum Flight {
    Command(u32, Pending<Outcome>),
    /// The answer to a task management function waits for what it aborted.
    Function(u32, u8, Pending<()>),
    Units(Pending<Result<Vec<Unit>>>),
}

pub(super) enum Landed {
    Command(u32, Outcome),
    Function(u32, u8),
    Units(Result<Vec<Unit>>),
}

impl Future for Flight {
    type Output = Landed;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Landed> {
        match self.get_mut() {
            Flight::Command(tag, work) => {
                work.as_mut().poll(cx).map(|outcome| Landed::Command(*tag, outcome))
            }
            Flight::Function(tag, code, work) => {
                work.as_mut().poll(cx).map(|()| Landed::Function(*tag, *code))
            }
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
    sending: Option<(Pending<io::Result<()>>, Load)>,
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
        for _ in 0..TURNS {
            let moved = self.turn(cx);
            if self.is_over() {
                return Poll::Ready(self.failure.take().map_or(Ok(()), Err));
            }
            if !moved {
                self.note_debts();
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Connection {
    pub fn new(session: Session, opened: Opened, config: &Config) -> Connection {
        let Session { id, stream, client, shared, lease, vitals, .. } = session;
        let Opened { agreed, inbox, units, exp_cmd_sn, stat_sn } = opened;
        let initiator = shared.initiator_port(id);
        let (target, nexus) = match agreed.target {
            Some((name, welcome)) => (Some(name), Nexus { initiator, port: welcome.port }),
            None => {
                let port = scsi::TargetPort { relative: 1, group: 0, name: "".into() };
                (None, Nexus { initiator, port })
            }
        };
        let place = target.as_ref().map(|target| format!("{target} {client}"));
        let io = place.map(|place| shared.registry().io(Layer::Front, place));
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
            units: UnitsSeen::new(nexus, units),
            inbox,
            outbox: Outbox::new(),
            intake: Intake::Pdus,
            starved: true,
            flights: FuturesUnordered::new(),
            receiving: None,
            sending: None,
            load: Load::default(),
            most: Load { requests: config.session_commands * 2, bytes: config.session_bytes },
            journal: Journal::new(io),
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

    /// Moves what can move; `false` when all that is left waits for somebody who will wake us.
    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let landed = self.land_flights(cx);
        let received = self.land_receive(cx).is_ready();
        let started = self.start_parked(cx);
        let taken = self.take_pdus(cx);
        let sent = self.land_send(cx).is_ready();
        landed | received | started | taken | sent | self.start_send() | self.start_receive()
    }

    fn is_over(&self) -> bool {
        // A client that is gone gets no more answers, but what it began must have ended.
        matches!(self.intake, Intake::Ended)
            && self.flights.is_empty()
            && self.sending.is_none()
            && (self.outbox.is_empty() || self.failure.is_some())
    }

    /// Takes no more PDUs; commands that wait for data will never get them. The first reason stands.
    pub fn end(&mut self, failure: Option<Error>) {
        self.intake = Intake::Ended;
        self.failure = self.failure.take().or(failure);
        let waiting = self.tasks.iter().filter(|(_, task)| task.state != State::Flying);
        let waiting: Vec<u32> = waiting.map(|(tag, _)| *tag).collect();
        waiting.into_iter().for_each(|tag| self.forget(tag));
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

    /// Tells the watch whether the client keeps memory of ours by doing nothing.
    fn note_debts(&self) {
        let unfinished = matches!(self.intake, Intake::Data(_)) || !self.inbox.is_empty();
        let owes = self.sending.is_some() || unfinished || self.pinged;
        let waits = self.tasks.values().any(Task::waits_for_data);
        self.vitals.owes.store(owes || waits, Ordering::Relaxed);
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
        !at_work && self.sending.is_none() && self.outbox.is_empty()
    }

    /// Room for what is parked, when there is nothing else: then only the server's limit counts.
    pub fn has_room_alone(&mut self, more: Load, cx: &mut Context<'_>) -> bool {
        let mut load = self.load;
        load += more;
        self.lease.shrink(self.load);
        self.lease.covers(load, cx)
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

    fn land_flights(&mut self, cx: &mut Context<'_>) -> bool {
        let mut landed = false;
        while let Poll::Ready(Some(flight)) = self.flights.poll_next_unpin(cx) {
            landed = true;
            match flight {
                Landed::Command(tag, outcome) => self.finish(tag, outcome),
                Landed::Function(tag, code) => self.answer_function(tag, code),
                Landed::Units(Ok(units)) => self.update_units(units),
                // The directory could not look; it will say again that something changed.
                Landed::Units(Err(_)) => {}
            }
        }
        landed
    }
}

/// In.
impl Connection {
    fn start_receive(&mut self) -> bool {
        if self.receiving.is_some() || !self.starved {
            return false;
        }
        if self.has_ended() {
            return false;
        }
        let wanted = match &self.intake {
            Intake::Data(a) if a.done < a.len => Some((a.tag, a.at + a.done, a.len - a.done)),
            _ => None,
        };
        // When its task is gone, what is left of the data is skipped through the inbox.
        let payload =
            wanted.and_then(|(tag, ..)| self.tasks.get_mut(&tag)).and_then(|task| task.payload.as_mut());
        self.receiving = Some(match (payload, wanted) {
            (Some(payload), Some((_, at, len))) => {
                Receiving::Payload(payload.receive(&*self.stream, at, len))
            }
            _ => {
                let (buf, range) = self.inbox.lend(usize::MAX);
                Receiving::Inbox(self.stream.recv(buf, range))
            }
        });
        true
    }

    fn land_receive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let received = match &mut self.receiving {
            None => return Poll::Pending,
            Some(Receiving::Inbox(receiving)) => {
                let (buf, received) = ready!(receiving.as_mut().poll(cx));
                self.inbox.put_back(buf, *received.as_ref().unwrap_or(&0));
                received
            }
            Some(Receiving::Payload(lent)) => {
                let (parts, received) = match lent {
                    Lent::One(receiving) => {
                        let (part, received) = ready!(receiving.as_mut().poll(cx));
                        (vec![part], received)
                    }
                    Lent::Several(receiving) => ready!(receiving.as_mut().poll(cx)),
                };
                if let Intake::Data(Arriving { tag, at, done, .. }) = &mut self.intake {
                    if let Some(payload) = self.tasks.get_mut(tag).and_then(|t| t.payload.as_mut()) {
                        payload.put_back(*at + *done, parts);
                    }
                    *done += *received.as_ref().unwrap_or(&0);
                }
                received
            }
        };
        self.receiving = None;
        self.vitals.note_progress();
        if matches!(self.intake, Intake::Ended) {
            // We were told to stop meanwhile.
            return Poll::Ready(());
        }
        let count = *received.as_ref().unwrap_or(&0);
        if count == 0 {
            self.lose_client(received.err());
        } else if self.inbox.waiting().len() == self.inbox.capacity() {
            // A client that sends so much at once is busy.
            self.inbox.resize(LARGE_INBOX);
        }
        Poll::Ready(())
    }

    fn lose_client(&mut self, error: Option<io::Error>) {
        let gone = "receive from iSCSI client: it left without a word";
        let failure = match error {
            Some(e) => Error::new(Kind::Io, "receive from iSCSI client").because(e),
            None => Error::new(Kind::Io, gone),
        };
        self.end(Some(failure));
    }

    /// Takes every complete PDU that waits and has room.
    fn take_pdus(&mut self, cx: &mut Context<'_>) -> bool {
        if self.receiving.is_some() {
            return false;
        }
        if !self.inbox.waiting().is_empty() {
            self.took_at = world::now();
        }
        let mut moved = false;
        self.starved = false;
        while !self.starved {
            let taken = match &self.intake {
                Intake::Ended => false,
                Intake::Data(_) => self.take_data(cx),
                Intake::Pdus => self.take_pdu(cx),
            };
            if !taken {
                break;
            }
            moved = true;
        }
        moved
    }

    fn digest_len(&self, is_used: bool) -> usize {
        if is_used { 4 } else { 0 }
    }

    /// Takes one PDU; `false` when it is not there, or has no room.
    fn take_pdu(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(bytes) = self.inbox.peek::<HEADER>() else {
            self.starved = true;
            return false;
        };
        let header = Header(*bytes);
        let head = HEADER + header.additional() + self.digest_len(self.params.header_digest);
        let len = header.data();
        if len > MAX_RECEIVE {
            self.fail("a PDU has more data than we take");
            return true;
        }
        let tail = if len == 0 { 0 } else { padding(len) + self.digest_len(self.params.data_digest) };
        if self.inbox.waiting().len() < head {
            self.starved = true;
            return false;
        }
        if !self.is_header_whole(head) {
            self.fail("the digest of a header is wrong");
            return true;
        }
        let whole = head + len + tail;
        let is_here = self.inbox.waiting().len() >= whole;
        // Long data go around the inbox where they can.
        let goes_around = header.opcode() == request::DATA && len >= LONG;
        if !is_here && !goes_around {
            return self.wait_for(whole);
        }
        if header.opcode() == request::COMMAND && !self.may_take_command(&header, cx) {
            return false;
        }
        if is_here {
            self.take_whole(header, head, len, whole, cx);
            return true;
        }
        let Some((tag, at)) = self.place_data(&header) else { return self.wait_for(whole) };
        self.inbox.consume(head);
        self.intake = Intake::Data(Arriving { header, tag, at, done: 0, len });
        true
    }

    /// Waits for so many bytes in the inbox.
    fn wait_for(&mut self, len: usize) -> bool {
        self.starved = true;
        if len > self.inbox.capacity() {
            self.inbox.resize(LARGE_INBOX);
        }
        false
    }

    fn is_header_whole(&self, head: usize) -> bool {
        if !self.params.header_digest {
            return true;
        }
        let waiting = self.inbox.waiting();
        let (bytes, digest) = waiting[..head].split_at(head - 4);
        crc32c::crc32c(bytes).to_le_bytes() == digest
    }

    fn take_whole(&mut self, header: Header, head: usize, len: usize, whole: usize, cx: &mut Context<'_>) {
        let waiting = &self.inbox.waiting()[head..whole];
        let mut is_intact = true;
        if self.params.data_digest && len > 0 {
            let (bytes, digest) = waiting.split_at(waiting.len() - 4);
            is_intact = crc32c::crc32c(bytes).to_le_bytes() == digest;
        }
        let opcode = header.opcode();
        if opcode == request::DATA && is_intact {
            // Straight from the inbox to where they will stay.
            let place = self.place_data(&header);
            if let Some((tag, at)) = place
                && let Some(task) = self.tasks.get_mut(&tag)
                && let Some(payload) = &mut task.payload
            {
                payload.put(at, &self.inbox.waiting()[head..head + len]);
                self.inbox.consume(whole);
                self.data_arrived(tag, &header, len, cx);
                return;
            }
        }
        if opcode == request::COMMAND && is_intact {
            self.take_command(&header, head, len, whole, cx);
            return;
        }
        // Headers, and data of a few kilobytes at most but for unasked ones.
        let data = self.inbox.waiting()[head..head + len].to_vec();
        self.inbox.consume(whole);
        self.dispatch(header, data, is_intact, cx);
    }

    /// Goes on with long data.
    fn take_data(&mut self, cx: &mut Context<'_>) -> bool {
        let Intake::Data(arriving) = &mut self.intake else { return false };
        let left = arriving.len - arriving.done;
        if left > 0 {
            let bytes = &self.inbox.waiting()[..left.min(self.inbox.waiting().len())];
            let count = bytes.len();
            if count == 0 {
                self.starved = true;
                return false;
            }
            if let Some(payload) = self.tasks.get_mut(&arriving.tag).and_then(|t| t.payload.as_mut()) {
                payload.put(arriving.at + arriving.done, bytes);
            }
            arriving.done += count;
            self.inbox.consume(count);
            return true;
        }
        let pad = padding(arriving.len);
        let tail = pad + if self.params.data_digest { 4 } else { 0 };
        if self.inbox.waiting().len() < tail {
            self.starved = true;
            return false;
        }
        let Intake::Data(arriving) = std::mem::replace(&mut self.intake, Intake::Pdus) else { return false };
        let mut is_intact = true;
        if self.params.data_digest
            && let Some(payload) = self.tasks.get(&arriving.tag).and_then(|t| t.payload.as_ref())
        {
            let digest = payload.digest(0, arriving.at..arriving.at + arriving.len);
            let digest = crc32c::crc32c_append(digest, &self.inbox.waiting()[..pad]);
            is_intact = digest.to_le_bytes() == self.inbox.waiting()[pad..tail];
        }
        self.inbox.consume(tail);
        if is_intact {
            self.data_arrived(arriving.tag, &arriving.header, arriving.len, cx);
        } else {
            self.data_damaged(arriving.tag, &arriving.header);
        }
        true
    }

    /// An idle connection needs no large inbox.
    pub fn rest(&mut self) {
        if self.tasks.is_empty() && self.inbox.is_empty() {
            self.inbox.resize(SMALL_INBOX);
        }
    }

    /// The answer to a question of ours is on its way, or a text goes on.
    pub fn say(&mut self, pairs: &Pairs) {
        self.unsaid.extend(pairs.encode());
    }
}

/// Out.
impl Connection {
    fn start_send(&mut self) -> bool {
        if self.sending.is_some() {
            return false;
        }
        let Some((parts, load)) = self.outbox.take() else { return false };
        self.journal.sent();
        self.sending = Some((self.stream.send(parts), load));
        true
    }

    fn land_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((sending, load)) = &mut self.sending else { return Poll::Pending };
        let (sent, load) = (ready!(sending.as_mut().poll(cx)), *load);
        self.sending = None;
        self.vitals.note_progress();
        self.give_back(load);
        match sent {
            Ok(()) => self.outbox.sent(),
            Err(e) => {
                let unsent = self.outbox.clear();
                self.give_back(unsent);
                self.end(Some(Error::new(Kind::Io, "send to iSCSI client").because(e)));
            }
        }
        Poll::Ready(())
    }
}
