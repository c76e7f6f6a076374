//! A request that must wait for its volume.

use crate::wire::request::Command;
use flow::Load;
use flow::{Extent, Piece};
use probe::Timed;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use units::Result;
use world::{Instant, Pending};

/// What the reply to a request must know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub command: Command,
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
    /// It was sent with FUA.
    pub durable: bool,
    /// The answer must be one piece: one chunk for a read, one extent for a status.
    pub whole: bool,
    pub load: Load,
    pub began: Instant,
}

/// What the volume is at.
pub(crate) enum Work {
    Read(Pending<Result<Vec<Piece>>>),
    Act(Pending<Result<()>>),
    Status(Pending<Result<Vec<Extent>>>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Outcome {
    Read(Vec<Piece>),
    Done,
    Status(Vec<Extent>),
}

pub(crate) struct Flight {
    pub ticket: Ticket,
    pub work: Work,
    /// Of a request whose stages are asked for.
    pub timed: Option<Timed>,
}

impl Future for Flight {
    type Output = (Ticket, Option<Timed>, Result<Outcome>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = self.ticket;
        let _within = self.timed.as_ref().map(|timed| timed.course().enter());
        let outcome = match &mut self.work {
            Work::Read(work) => work.as_mut().poll(cx).map_ok(Outcome::Read),
            Work::Act(work) => work.as_mut().poll(cx).map_ok(|()| Outcome::Done),
            Work::Status(work) => work.as_mut().poll(cx).map_ok(Outcome::Status),
        };
        outcome.map(|outcome| (ticket, self.timed.take(), outcome))
    }
}
