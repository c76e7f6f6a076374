//! The record of the commands that were answered, for whoever watches the front.

use probe::{Event, Io, Op};
use std::sync::Arc;
use world::Instant;

pub(crate) struct Journal {
    io: Option<Arc<Io>>,
    /// Answered, and not yet with the socket.
    answered: Vec<(Instant, Event<'static>)>,
}

/// What a command counts as; asking about a unit is no I/O.
fn operation(opcode: u8) -> Option<Op> {
    match opcode {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 | 0x89 | 0x8b => Some(Op::Write),
        0x42 => Some(Op::Trim),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

impl Journal {
    pub fn new(io: Option<Arc<Io>>) -> Journal {
        Journal { io, answered: Vec::new() }
    }

    pub fn answered(&mut self, opcode: u8, offset: u64, bytes: u64, began: Instant, failed: bool) {
        if let (Some(op), true) = (operation(opcode), self.io.is_some()) {
            self.answered.push((began, Event { op, offset, bytes, failed, ..Event::default() }));
        }
    }

    /// Everything answered so far goes to the socket now.
    pub fn sent(&mut self) {
        let Some(io) = self.io.as_ref().filter(|_| !self.answered.is_empty()) else { return };
        let now = world::now();
        for (began, event) in self.answered.drain(..) {
            io.record(Event { latency: now.since(began), ..event });
        }
    }
}
