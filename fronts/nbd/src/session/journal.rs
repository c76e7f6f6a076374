//! The record of the requests that were answered, for the watcher of the front.
//!
//! A request lasts from being taken from the inbox until its reply is handed to the socket. The clock is read once for
//! all requests of a receive and once for all replies of a send.

use super::flight::Ticket;
use crate::wire::request::Command;
use probe::{Event, Io, Op, Probe, Timed, tell_work};
use std::sync::Arc;
use world::Instant;
use world::stages::Stage;

pub(crate) struct Journal {
    io: Arc<Io>,
    /// Answered, and not yet with the socket.
    answered: Vec<(Instant, Event<'static>, Option<Timed>)>,
    /// Where the stages of requests are told.
    stages: Probe,
}

impl Journal {
    pub fn new(io: Arc<Io>, stages: Probe) -> Journal {
        Journal { io, answered: Vec::new(), stages }
    }

    /// Of a request that may have to wait, if stages are asked for.
    pub fn timed(&self, ticket: &Ticket) -> Option<Timed> {
        Timed::begin(&self.stages, ticket.began)
    }

    pub fn answered(&mut self, ticket: &Ticket, well: bool, mut timed: Option<Timed>) {
        if let Some(op) = operation(ticket.command) {
            let Ticket { offset, len, durable, began, .. } = *ticket;
            let (bytes, failed) = (u64::from(len), !well);
            let event = Event { op, offset, bytes, durable, failed, ..Event::default() };
            if let Some(timed) = &mut timed {
                timed.waits(Stage::Wire);
            }
            self.answered.push((began, event, timed));
        }
    }

    /// Everything answered so far goes to the socket now.
    pub fn sent(&mut self, now: impl FnOnce() -> Instant) {
        if self.answered.is_empty() {
            return;
        }
        let now = now();
        for (began, event, timed) in self.answered.drain(..) {
            let event = Event { latency: now.since(began), ..event };
            match timed {
                Some(timed) => timed.tell(&self.stages, event, now),
                None => tell_work(&self.stages, event),
            }
            self.io.record(event);
        }
    }
}

/// What a command counts as; asking about a volume is no I/O.
fn operation(command: Command) -> Option<Op> {
    match command {
        Command::Read => Some(Op::Read),
        Command::Write => Some(Op::Write),
        Command::WriteZeroes => Some(Op::WriteZeroes),
        Command::Trim => Some(Op::Trim),
        Command::Flush => Some(Op::Flush),
        Command::Cache => Some(Op::Prefetch),
        Command::BlockStatus | Command::Disconnect | Command::Unknown(_) => None,
    }
}
