//! The record of the commands that were answered, for the watcher of the front.
//!
//! A command lasts from being taken from the inbox until its answer is handed to the socket. It counts for its session,
//! and is told as one of its unit.

use probe::{Event, Io, Op, Probe};
use scsi::Lun;
use std::sync::Arc;
use world::Instant;

pub(crate) struct Journal {
    io: Option<Arc<Io>>,
    /// Answered, and not yet with the socket.
    answered: Vec<Answered>,
}

/// A command that was answered.
struct Answered {
    lun: Option<Lun>,
    began: Instant,
    event: Event<'static>,
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
    pub fn new(io: Option<Arc<Io>>) -> Journal {
        Journal { io, answered: Vec::new() }
    }

    pub fn answered(
        &mut self,
        (opcode, lun): (u8, Option<Lun>),
        (offset, bytes): (u64, u64),
        began: Instant,
        failed: bool,
    ) {
        if let (Some((op, kind)), true) = (operation(opcode), self.io.is_some()) {
            let event = Event { op, kind, offset, bytes, failed, ..Event::default() };
            self.answered.push(Answered { lun, began, event });
        }
    }

    /// Everything answered so far goes to the socket now; `probe` is where commands to a unit are told.
    pub fn sent<'a>(&mut self, probe: impl Fn(Lun) -> Option<&'a Probe>) {
        let Some(io) = self.io.as_ref().filter(|_| !self.answered.is_empty()) else { return };
        let now = world::now();
        for Answered { lun, began, event } in self.answered.drain(..) {
            let event = Event { latency: now.since(began), ..event };
            io.count(&event);
            if io.probe().is_open() {
                // A unit that is gone by now leaves no more than the session.
                let unit = lun.and_then(&probe).unwrap_or(io.probe());
                unit.tell(|| event);
            }
        }
    }
}
