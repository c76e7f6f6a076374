//! The transmission phase: requests in, replies out, until either side leaves.
//!
//! One future, polled by hand. A turn moves what can move, up to half of the requests that came together, and only then lets
//! the socket have it:
//!
//! ```text
//!            ┌─ flights that landed ──────────────┐
//!   recv ──> inbox ──> plan ──> volume: at once ──┼──> outbox ──> one vectored send
//!      └──> a long write's own buffers  waits ──> flights
//! ```
//!
//! Requests are started in the order they came and answered in the order they finish. What a request weighs is
//! counted from its admission until its reply is out; at the limit we stop taking, and so stop receiving. After the
//! client's farewell, its disappearance or an order to stop, nothing more is taken, but what is in flight lands
//! and, as far as the client still listens, is answered.

use super::flight::{Flight, Outcome, Ticket, Work};
use super::journal::Journal;
use super::payload::Payload;
use crate::answer::{self, MAX_EXTENTS};
use crate::errno::Errno;
use crate::negotiation::Terms;
use crate::plan::{Limits, Operation, Plan, plan};
use crate::server::Config;
use crate::volume::Volume;
use crate::wire::MAX_PAYLOAD;
use crate::wire::command::FUA;
use crate::wire::request::{self, Command, Request};
use flow::{Inbox, Lease, Load, Outbox, Piece, Reading, Sent, Turn, Turns, Vitals, take_turns};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use probe::Timed;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use units::{Error, Kind, Result};
use world::stages::Stage;
use world::{Instant, IoBuf, Pending, Stream};

/// From this length on a payload is received into its own buffers. Below, taking it out of the inbox costs less than
/// the system call that the detour needs.
const LONG: u32 = 64 << 10;

/// While long writes follow each other, a receive that expects a header leaves the payload where it is: what comes
/// into the inbox has to be copied.
const HEADER_WINDOW: usize = 4 << 10;

/// What every request weighs besides its data: its state here and in the volume, its head.
const OVERHEAD: usize = 512;

/// After so many turns in a row other tasks of this core get theirs.
const TURNS: usize = 32;

/// The connection as the transmission needs it.
pub(crate) struct Link {
    pub stream: Arc<dyn Stream>,
    pub lease: Lease,
    pub vitals: Arc<Vitals>,
}

/// A receive under way, with the buffers it has taken along.
enum Receiving {
    Inbox(Pending<(IoBuf, io::Result<usize>)>),
    Payload(Pending<(Vec<IoBuf>, io::Result<usize>)>),
}

/// What the next received bytes are.
enum Intake {
    Requests,
    /// The rest of a long write.
    Payload {
        ticket: Ticket,
        fua: bool,
        payload: Payload,
        timed: Option<Timed>,
    },
    /// The rest of a write that is refused: it is answered when all of that was here, as clients know no request before
    /// they have sent it.
    Skip {
        left: usize,
        refused: Refused,
    },
    /// No reply is waited for any more.
    Ended,
}

/// A request that is not carried out, and why.
type Refused = (Ticket, Errno, &'static str);

pub(crate) struct Transmission {
    link: Link,
    volume: Arc<dyn Volume>,
    terms: Terms,
    inbox: Inbox,
    outbox: Outbox,
    intake: Intake,
    /// Taking stopped for want of bytes, not for want of room.
    starved: bool,
    /// The last request was a long write.
    lean: bool,
    flights: FuturesUnordered<Flight>,
    receiving: Option<Receiving>,
    load: Load,
    most: Load,
    journal: Journal,
    /// When the requests that are being taken were found.
    took_at: Instant,
    /// Room for the pieces of one read at a time.
    pieces: Vec<Piece>,
    failure: Option<Error>,
}

impl Future for Transmission {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.link.vitals.is_stopping(cx) {
            self.intake = Intake::Ended;
        }
        ready!(take_turns(&mut *self, TURNS, cx));
        Poll::Ready(self.failure.take().map_or(Ok(()), Err))
    }
}

impl Turns for Transmission {
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        let sent = self.land_send(cx).is_ready();
        let landed = self.land_flights(cx);
        let received = self.land_receive(cx).is_ready();
        let taken = self.take_requests(cx);
        let has_piece = self.outbox.is_due(&self.inbox);
        if has_piece {
            self.inbox.pass_half();
        }
        let started = self.start_send() | self.start_receive();
        Turn::of(sent | landed | received | taken | started, has_piece)
    }

    fn is_over(&self) -> bool {
        matches!(self.intake, Intake::Ended)
            && self.flights.is_empty()
            && !self.outbox.is_sending()
            && self.outbox.is_empty()
    }

    /// Tells the watch whether the client keeps memory of ours by doing nothing.
    fn pause(&mut self) {
        let must_bring = matches!(self.intake, Intake::Payload { .. } | Intake::Skip { .. });
        self.link.vitals.note_debts(self.outbox.is_sending(), must_bring);
        if self.link.vitals.is_asked_to_yield() && self.volume.is_suspended() {
            self.link.lease.excuse(self.load.bytes, self.load);
        }
        self.link.vitals.note_held(self.link.lease.is_extended());
        self.link.lease.settle();
    }
}

impl Transmission {
    pub fn new(
        link: Link,
        volume: Arc<dyn Volume>,
        terms: Terms,
        inbox: Inbox,
        journal: Journal,
        config: &Config,
    ) -> Transmission {
        Transmission {
            link,
            volume,
            terms,
            inbox,
            outbox: Outbox::new(),
            intake: Intake::Requests,
            starved: false,
            lean: false,
            flights: FuturesUnordered::new(),
            receiving: None,
            load: Load::default(),
            most: Load::of(config.connection_requests, config.connection_bytes),
            journal,
            took_at: Instant::default(),
            pieces: Vec::new(),
            failure: None,
        }
    }

    /// Takes no more requests. The first reason stands.
    fn end(&mut self, failure: Option<Error>) {
        self.intake = Intake::Ended;
        self.failure = self.failure.take().or(failure);
    }

    fn give_back(&mut self, load: Load) {
        self.load -= load;
        if self.load.requests == 0 {
            self.link.lease.rest();
        }
    }
}

/// In.
impl Transmission {
    fn start_receive(&mut self) -> bool {
        if self.receiving.is_some() || !self.starved {
            return false;
        }
        let stream = &self.link.stream;
        self.receiving = Some(match &mut self.intake {
            Intake::Ended => return false,
            Intake::Payload { payload, .. } => {
                let (parts, filled) = payload.lend();
                Receiving::Payload(stream.recv_parts(parts, filled))
            }
            Intake::Requests | Intake::Skip { .. } => {
                let (buf, range) = self.inbox.lend(if self.lean { HEADER_WINDOW } else { usize::MAX });
                Receiving::Inbox(stream.recv(buf, range))
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
            Some(Receiving::Payload(receiving)) => {
                let (parts, received) = ready!(receiving.as_mut().poll(cx));
                if let Intake::Payload { payload, .. } = &mut self.intake {
                    payload.put_back(parts, *received.as_ref().unwrap_or(&0));
                }
                received
            }
        };
        self.receiving = None;
        self.link.vitals.note_brought(*received.as_ref().unwrap_or(&0));
        if matches!(self.intake, Intake::Ended) {
            // We were told to stop meanwhile.
            return Poll::Ready(());
        }
        let count = *received.as_ref().unwrap_or(&0);
        if count == 0 {
            self.lose_client(received.err());
        }
        Poll::Ready(())
    }

    fn lose_client(&mut self, error: Option<io::Error>) {
        let whole = matches!(self.intake, Intake::Requests) && self.inbox.waiting().is_empty();
        let failure = match error {
            Some(e) => Some(Error::new(Kind::Io, "receive from NBD client").because(e)),
            None if whole => None,
            None => Some(Error::new(Kind::Io, "receive from NBD client: it left in the middle of a request")),
        };
        self.end(failure);
    }

    /// Takes every complete request that waits and has room, until enough of them are answered.
    fn take_requests(&mut self, cx: &mut Context<'_>) -> bool {
        if self.receiving.is_some() {
            return false;
        }
        if !self.inbox.waiting().is_empty() {
            self.took_at = world::now();
        }
        let mut moved = false;
        self.starved = false;
        while !self.starved && !self.outbox.is_due(&self.inbox) {
            let taken = match &mut self.intake {
                Intake::Ended => false,
                Intake::Skip { .. } => self.skip(),
                Intake::Payload { .. } => self.finish_payload(cx),
                Intake::Requests => self.take_request(cx),
            };
            if !taken {
                break;
            }
            moved = true;
        }
        moved
    }

    fn skip(&mut self) -> bool {
        let Intake::Skip { left, refused } = &mut self.intake else { return false };
        let len = self.inbox.waiting().len().min(*left);
        self.inbox.consume(len);
        *left -= len;
        self.starved = *left > 0;
        if !self.starved {
            let (ticket, errno, why) = *refused;
            self.intake = Intake::Requests;
            self.refuse(ticket, errno, why);
        }
        true
    }

    fn finish_payload(&mut self, cx: &mut Context<'_>) -> bool {
        if let Intake::Payload { payload, .. } = &self.intake
            && !payload.is_full()
        {
            self.starved = true;
            return false;
        }
        if let Intake::Payload { ticket, fua, payload, mut timed } =
            std::mem::replace(&mut self.intake, Intake::Requests)
        {
            timed.iter_mut().for_each(Timed::works);
            self.write(ticket, timed, payload, fua, cx);
        }
        true
    }

    fn take_request(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(header) = self.inbox.peek::<{ request::LEN }>() else {
            self.starved = true;
            return false;
        };
        let request = match Request::decode(header) {
            Ok(request) => request,
            Err(e) => {
                self.end(Some(e));
                return true;
            }
        };
        let payload = request.payload();
        if payload < LONG && self.inbox.waiting().len() < request::LEN + payload as usize {
            self.starved = true;
            return false;
        }
        let load = Load::of(1, weight(&request));
        if !self.has_room(load, cx) {
            return false;
        }
        self.load += load;
        self.inbox.consume(request::LEN);
        self.lean = payload >= LONG;
        self.start(request, load, cx);
        true
    }

    /// The first request is always admitted as far as the connection goes, or a small limit would stop it for good.
    fn has_room(&mut self, more: Load, cx: &mut Context<'_>) -> bool {
        let mut load = self.load;
        load += more;
        let fits = load.requests <= self.most.requests && load.bytes <= self.most.bytes;
        (fits || self.load.requests == 0) && self.has_memory(load, cx)
    }

    /// A suspended pool gives nothing back, so that what would be leased for it would be kept from all others.
    fn has_memory(&mut self, load: Load, cx: &mut Context<'_>) -> bool {
        if self.link.lease.holds(load) {
            return true;
        }
        let is_suspended = self.volume.is_suspended();
        self.link.vitals.note_waits_for_pool(is_suspended);
        !is_suspended && self.link.lease.covers(load, cx)
    }
}

/// What a request may make us hold until its reply is out.
fn weight(request: &Request) -> usize {
    let data = match request.command {
        Command::Read | Command::Write => request.len.min(MAX_PAYLOAD) as usize,
        Command::BlockStatus => MAX_EXTENTS * 8,
        _ => 0,
    };
    data + OVERHEAD
}

/// The work itself.
impl Transmission {
    fn start(&mut self, request: Request, load: Load, cx: &mut Context<'_>) {
        let Request { command, cookie, offset, len, .. } = request;
        let began = self.took_at;
        let durable = request.flags & FUA != 0;
        let ticket = Ticket { command, cookie, offset, len, durable, whole: false, load, began };
        let limits = Limits { size: self.volume.size(), read_only: self.volume.read_only() };
        match plan(&request, limits, self.terms) {
            Plan::Do(operation) => self.carry_out(operation, ticket, cx),
            Plan::Refuse(errno, why) => match request.payload() as usize {
                0 => self.refuse(ticket, errno, why),
                left => self.intake = Intake::Skip { left, refused: (ticket, errno, why) },
            },
            // Neither is answered.
            Plan::Leave => self.drop_request(load, None),
            Plan::HangUp(why) => self.drop_request(load, Some(Error::invalid(why))),
        }
    }

    fn drop_request(&mut self, load: Load, failure: Option<Error>) {
        self.give_back(load);
        self.end(failure);
    }

    fn carry_out(&mut self, operation: Operation, mut ticket: Ticket, cx: &mut Context<'_>) {
        let work = match operation {
            Operation::Read { whole, .. } => {
                ticket.whole = whole;
                return self.read(ticket, cx);
            }
            Operation::Write { fua, .. } => return self.receive_write(ticket, fua, cx),
            Operation::Nothing => return self.answer(ticket, None, Ok(Outcome::Done)),
            Operation::Prefetch { offset, len } => {
                self.volume.prefetch(offset, len);
                return self.answer(ticket, None, Ok(Outcome::Done));
            }
            Operation::Zero { may_be_hole, fast: true, .. } if !self.volume.zeroes_fast(may_be_hole) => {
                let why = "zeroing would be no faster than writing";
                return self.refuse(ticket, Errno::NotSupported, why);
            }
            Operation::Zero { offset, len, may_be_hole, fua, .. } => {
                Work::Act(self.volume.zero(offset, len, may_be_hole, fua))
            }
            Operation::Trim { offset, len, fua } => Work::Act(self.volume.trim(offset, len, fua)),
            Operation::Flush => Work::Act(self.volume.flush()),
            Operation::Status { offset, len, one } => {
                ticket.whole = one;
                let most = if one { 1 } else { MAX_EXTENTS };
                Work::Status(self.volume.extents(offset, len, most))
            }
        };
        let timed = self.journal.timed(&ticket);
        self.launch(Flight { ticket, work, timed }, cx);
    }

    fn read(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        let Ticket { offset, len, .. } = ticket;
        let reading = match len {
            0 => Reading::Done(Ok(())),
            _ => self.volume.begin_read(offset, len, &mut self.pieces),
        };
        match reading {
            Reading::Done(Ok(())) => {
                self.journal.answered(&ticket, true, None);
                answer::read(&mut self.outbox, self.terms, ticket, &mut self.pieces);
            }
            Reading::Done(Err(e)) => {
                self.pieces.clear();
                self.answer(ticket, None, Err(e));
            }
            Reading::Waits(reading) => {
                let timed = self.journal.timed(&ticket);
                let work = Work::Read(reading);
                self.launch(Flight { ticket, work, timed }, cx);
            }
        }
    }

    fn receive_write(&mut self, ticket: Ticket, fua: bool, cx: &mut Context<'_>) {
        let mut payload = Payload::new(ticket.offset, ticket.len, self.volume.block_size());
        payload.take_from(&mut self.inbox);
        let mut timed = self.journal.timed(&ticket);
        if payload.is_full() {
            self.write(ticket, timed, payload, fua, cx);
        } else {
            timed.iter_mut().for_each(|timed| timed.waits(Stage::Wire));
            self.intake = Intake::Payload { ticket, fua, payload, timed };
        }
    }

    fn write(
        &mut self,
        ticket: Ticket,
        timed: Option<Timed>,
        payload: Payload,
        fua: bool,
        cx: &mut Context<'_>,
    ) {
        let work = Work::Act(self.volume.write(ticket.offset, payload.into_parts(), fua));
        self.launch(Flight { ticket, work, timed }, cx);
    }

    /// Answers at once when the volume need not wait, else lets the request fly.
    fn launch(&mut self, mut flight: Flight, cx: &mut Context<'_>) {
        match Pin::new(&mut flight).poll(cx) {
            Poll::Ready((ticket, timed, result)) => self.answer(ticket, timed, result),
            Poll::Pending => self.flights.push(flight),
        }
    }

    fn land_flights(&mut self, cx: &mut Context<'_>) -> bool {
        let mut landed = false;
        while let Poll::Ready(Some((ticket, timed, result))) = self.flights.poll_next_unpin(cx) {
            self.answer(ticket, timed, result);
            landed = true;
        }
        landed
    }

    fn refuse(&mut self, ticket: Ticket, errno: Errno, why: &str) {
        self.journal.answered(&ticket, false, None);
        answer::error(&mut self.outbox, self.terms, ticket, errno, why);
    }

    fn answer(&mut self, ticket: Ticket, timed: Option<Timed>, result: Result<Outcome>) {
        self.journal.answered(&ticket, result.is_ok(), timed);
        answer::answer(&mut self.outbox, self.terms, ticket, result);
    }
}

/// Out.
impl Transmission {
    fn start_send(&mut self) -> bool {
        let can_send = self.outbox.can_send();
        if can_send {
            self.journal.sent(world::now);
            self.outbox.send(&*self.link.stream);
        }
        can_send
    }

    fn land_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Sent { load, bytes, result } = ready!(self.outbox.poll_sent(cx));
        self.link.vitals.note_taken(bytes);
        self.give_back(load);
        if let Err(e) = result {
            self.end(Some(Error::new(Kind::Io, "send to NBD client").because(e)));
        }
        Poll::Ready(())
    }
}
