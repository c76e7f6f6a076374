//! The record of the commands that were answered, for the watcher of the front.
//!
//! A command lasts from being taken from the inbox until its answer is handed to the socket. It counts for its session,
//! and is told as one of its unit.

use probe::{Event, Io, Op, Probe, Timed, tell_work};
use scsi::Lun;
use std::sync::Arc;
use world::Instant;
use world::stages::Stage;

pub(crate) struct Journal {
    io: Option<Arc<Io>>,
    /// Answered, and not yet with the socket.
    answered: Vec<Answered>,
    /// Where the stages of commands are told whose unit is gone.
    stages: Probe,
}

/// Where commands to a unit are told, and their stages.
#[derive(Debug)]
pub(crate) struct Probes {
    pub commands: Probe,
    pub stages: Probe,
}

/// A command that was answered.
struct Answered {
    lun: Option<Lun>,
    began: Instant,
    event: Event<'static>,
    timed: Option<Timed>,
}

/// What a command is called and counts as; asking about a unit is no I/O.
fn operation(opcode: u8) -> Option<(Op, &'static str)> {
    Some(match opcode {
        0x08 => (Op::Read, "READ(6)"),
        0x28 => (Op::Read, "READ(10)"),
        0xa8 => (Op::Read, "READ(12)"),
        0x88 => (Op::Read, "READ(16)"),
        0x0a => (Op::Write, "WRITE(6)"),
        0x2a => (Op::Write, "WRITE(10)"),
        0xaa => (Op::Write, "WRITE(12)"),
        0x8a => (Op::Write, "WRITE(16)"),
        0x2e => (Op::Write, "WRITE AND VERIFY(10)"),
        0xae => (Op::Write, "WRITE AND VERIFY(12)"),
        0x8e => (Op::Write, "WRITE AND VERIFY(16)"),
        0x41 => (Op::Write, "WRITE SAME(10)"),
        0x93 => (Op::Write, "WRITE SAME(16)"),
        0x89 => (Op::Write, "COMPARE AND WRITE"),
        0x8b => (Op::Write, "ORWRITE(16)"),
        0x42 => (Op::Trim, "UNMAP"),
        0x35 => (Op::Flush, "SYNCHRONIZE CACHE(10)"),
        0x91 => (Op::Flush, "SYNCHRONIZE CACHE(16)"),
        _ => return None,
    })
}

impl Journal {
    pub fn new(io: Option<Arc<Io>>, stages: Probe) -> Journal {
        Journal { io, answered: Vec::new(), stages }
    }

    /// Of a command that was taken at `began`, if stages are asked for.
    pub fn timed(&self, began: Instant) -> Option<Timed> {
        Timed::begin(&self.stages, began)
    }

    pub fn answered(
        &mut self,
        (opcode, durable, lun): (u8, bool, Option<Lun>),
        (offset, bytes): (u64, u64),
        began: Instant,
        failed: bool,
        mut timed: Option<Timed>,
    ) {
        if let (Some((op, kind)), true) = (operation(opcode), self.io.is_some()) {
            let event = Event { op, kind, offset, bytes, durable, failed, ..Event::default() };
            if let Some(timed) = &mut timed {
                timed.waits(Stage::Wire);
            }
            self.answered.push(Answered { lun, began, event, timed });
        }
    }

    /// Everything answered so far goes to the socket now; `probes` is where commands to a unit are told, and their stages.
    pub fn sent<'a>(&mut self, probes: impl Fn(Lun) -> Option<&'a Probes>) {
        let Some(io) = self.io.as_ref().filter(|_| !self.answered.is_empty()) else { return };
        let now = world::now();
        for Answered { lun, began, event, timed } in self.answered.drain(..) {
            let event = Event { latency: now.since(began), ..event };
            io.count(&event);
            if !io.probe().is_open() && !self.stages.is_open() {
                continue;
            }
            // A unit that is gone by now leaves no more than the session.
            let unit = lun.and_then(&probes);
            unit.map_or(io.probe(), |unit| &unit.commands).tell(|| event);
            let stages = unit.map_or(&self.stages, |unit| &unit.stages);
            match timed {
                Some(timed) => timed.tell(stages, event, now),
                None => tell_work(stages, event),
            }
        }
    }
}
