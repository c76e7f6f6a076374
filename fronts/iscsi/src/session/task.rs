//! Commands under way, by their tags.
//!
//! ```text
//!   taken ──▶ parked ──▶ receiving ──▶ flying ──▶ answered
//!              │  no room, or an ordered command stands before it
//!              └─ what comes unasked meanwhile is kept in `early`
//! ```

use super::payload::Payload;
use flow::Load;
use probe::Timed;
use scsi::{Admission, Lun, Path, Stop};
use std::collections::VecDeque;
use std::sync::Arc;
use world::Instant;

/// A run of data that the client is to send: what it may send unasked, or what one R2T asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    /// The transfer tag of the R2T; [`crate::wire::NO_TAG`] for what comes unasked.
    pub tag: u32,
    /// Where it ends; unasked, it may end before.
    pub end: usize,
    pub next_sn: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Parked,
    Receiving,
    Flying,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub state: State,
    pub lun: Lun,
    pub path: Arc<Path>,
    pub admission: Option<Admission>,
    pub opcode: u8,
    /// It was sent with FUA.
    pub durable: bool,
    /// Where it is at, for the record.
    pub offset: u64,
    /// Whether the client has room for data, and how much is expected either way.
    pub reads: bool,
    pub expected: usize,
    /// Bytes to fetch, and how many are here.
    pub intake: usize,
    /// What the command would take; what is beyond `intake` is residual.
    pub needed: u64,
    pub received: usize,
    /// How far R2Ts have asked.
    pub asked: usize,
    pub r2ts: u32,
    pub bursts: VecDeque<Burst>,
    pub payload: Option<Payload>,
    pub early: Vec<u8>,
    /// It has a place in the command window.
    pub is_numbered: bool,
    pub is_ordered: bool,
    /// Order of arrival.
    pub place: u64,
    /// What it weighs now, and what it will when it starts.
    pub load: Load,
    pub full_load: Load,
    /// A function aborted it: it is not answered.
    pub is_aborted: bool,
    /// Ends it early, where it may take long.
    pub stop: Option<Stop>,
    /// Until it flies, if stages are asked for.
    pub timed: Option<Timed>,
    pub began: Instant,
    pub moved: Instant,
}

impl Task {
    /// It holds memory for data that the client has to send.
    pub fn waits_for_data(&self) -> bool {
        self.state == State::Receiving || !self.bursts.is_empty()
    }

    /// The pool of its unit is suspended.
    pub fn is_stuck(&self) -> bool {
        self.path.device().unit().is_suspended()
    }
}
