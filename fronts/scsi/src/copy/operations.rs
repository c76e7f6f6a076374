//! What one path has copied or is copying: by their identifiers clients ask how it stands, and end it.
//!
//! What is under way is here in any case; what has ended is kept until it was told, its identifier is used again, the
//! unit is reset, or too many others came later.

use super::limits::MAX_RUNNING;
use super::tokens::Token;
use crate::BLOCK;
use crate::sense::{Outcome, Refusal, Sense, Status};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Outcomes that are kept for one path.
const KEPT: usize = 64;

/// Ends what may take long before it is done: it stops where it is.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// What a copy is to be known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// `None` when it cannot be asked for.
    pub list: Option<u32>,
    /// The service action of its command.
    pub action: u8,
    pub is_kept: bool,
    pub in_background: bool,
}

#[derive(Debug)]
pub(super) struct Operation {
    asked: Asked,
    pub stop: Stop,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks, segments and steps so far.
    blocks: u64,
    segments: u16,
    steps: u16,
    end: Option<End>,
    token: Option<Arc<Token>>,
}

#[derive(Clone, Debug)]
pub(super) enum End {
    Done,
    /// The token stood for less than was asked for.
    Partly,
    Failed(Refusal),
    Stopped,
}

impl Operation {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn moved(&self, blocks: u64) {
        let mut state = self.state();
        state.blocks += blocks;
        state.steps = state.steps.wrapping_add(1);
    }

    pub fn begin_segment(&self) {
        self.state().segments += 1;
    }

    fn is_running(&self) -> bool {
        self.state().end.is_none()
    }
}

/// The copies of one path.
#[derive(Debug, Default)]
pub(crate) struct Copies(Mutex<Vec<Arc<Operation>>>);

impl Copies {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Operation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, asked: Asked, stop: Stop) -> Result<Arc<Operation>, Refusal> {
        let mut list = self.lock();
        let same = |op: &Operation| asked.list.is_some() && op.asked.list == asked.list;
        if list.iter().any(|op| same(op) && op.is_running()) {
            return Err(Sense::COPY_IN_PROGRESS.into());
        }
        if list.iter().filter(|op| op.is_running()).count() >= MAX_RUNNING {
            return Err(Refusal::Busy);
        }
        list.retain(|op| !same(op));
        if list.len() >= KEPT
            && let Some(oldest) = list.iter().position(|op| !op.is_running())
        {
            list.remove(oldest);
        }
        let operation = Arc::new(Operation { asked, stop, state: Mutex::default() });
        list.push(operation.clone());
        Ok(operation)
    }

    /// It has ended; the first end stands.
    pub(super) fn end(&self, operation: &Arc<Operation>, end: End, token: Option<Arc<Token>>) {
        {
            let mut state = operation.state();
            if state.end.is_some() {
                return;
            }
            if let (End::Done, Some(token)) = (&end, &token) {
                state.blocks = token.len();
            }
            (state.end, state.token) = (Some(end), token);
        }
        if !operation.asked.is_kept || operation.asked.list.is_none() {
            self.remove(operation);
        }
    }

    fn remove(&self, operation: &Arc<Operation>) {
        self.lock().retain(|op| !Arc::ptr_eq(op, operation));
    }

    fn find(&self, list: u32, byte: u16) -> Result<Arc<Operation>, Sense> {
        let found = self.lock().iter().find(|op| op.asked.list == Some(list)).cloned();
        found.ok_or(Sense::field(byte, None))
    }

    pub fn stop_all(&self) {
        self.lock().iter().for_each(|op| op.stop.set());
    }

    /// The unit was reset.
    pub fn forget_ended(&self) {
        self.lock().retain(|op| op.is_running());
    }

    /// COPY OPERATION ABORT: it stops where it is; how it ended can be asked for.
    pub fn abort(&self, list: u32) -> Result<(), Sense> {
        self.find(list, 2)?.stop.set();
        Ok(())
    }

    /// COPY STATUS: told once.
    pub fn status(&self, list: u8, room: usize) -> Result<Vec<u8>, Sense> {
        let operation = self.find(list.into(), 2)?;
        let state = operation.state();
        let code = match &state.end {
            None => 0,
            Some(End::Done | End::Partly) => 1,
            Some(End::Failed(_) | End::Stopped) => 2,
        };
        // Bytes, or the unit in which they fit.
        let (mut units, mut count) = (0, state.blocks * BLOCK);
        while count > u64::from(u32::MAX) {
            (units, count) = (units + 1, count >> 10);
        }
        let mut bytes = vec![0, 0, 0, 8, code];
        bytes.extend(state.segments.to_be_bytes());
        bytes.push(units);
        bytes.extend((count as u32).to_be_bytes());
        let is_told = state.end.is_some() && room >= bytes.len();
        drop(state);
        if is_told {
            self.remove(&operation);
        }
        Ok(bytes)
    }

    /// RECEIVE ROD TOKEN INFORMATION: told once, whole, or given up by an initiator that has no room for any of it.
    pub fn information(&self, list: u32, room: usize) -> Result<Vec<u8>, Sense> {
        // Not to be known, and never to be asked again.
        const UNKNOWN_DELAY: u32 = 1000;
        const ENDED: u32 = 0xffff_fffe;
        let operation = self.find(list, 2)?;
        let state = operation.state();
        let under_way = if operation.asked.in_background { 0x12 } else { 0x11 };
        let (code, outcome) = match &state.end {
            None => (under_way, Outcome::status(Status::Good)),
            Some(End::Done) => (0x01, Outcome::status(Status::Good)),
            Some(End::Partly) => (0x03, Outcome::status(Status::Good)),
            Some(End::Failed(refusal)) => (0x02, Outcome::of(Err(*refusal), true)),
            Some(End::Stopped) => (0x60, Outcome::status(Status::TaskAborted)),
        };
        let mut sense = outcome.sense;
        let sense_len = sense.len() as u8;
        sense.resize(sense.len().next_multiple_of(4), 0);
        let delay = if state.end.is_some() { ENDED } else { UNKNOWN_DELAY };
        let mut bytes = vec![0, 0, 0, 0, operation.asked.action, code];
        bytes.extend(state.steps.to_be_bytes());
        bytes.extend(delay.to_be_bytes());
        // Counted in blocks.
        bytes.extend([outcome.status as u8, sense.len() as u8, sense_len, 0xf1]);
        bytes.extend(state.blocks.to_be_bytes());
        bytes.extend(state.segments.to_be_bytes());
        bytes.extend([0; 6]);
        bytes.extend(sense);
        match &state.token {
            Some(token) => {
                bytes.extend((2 + token.bytes.len() as u32).to_be_bytes());
                bytes.extend([0, 0]);
                bytes.extend(token.bytes);
            }
            None => bytes.extend([0; 4]),
        }
        let len = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&len.to_be_bytes());
        let is_told = state.end.is_some() && (room >= bytes.len() || room == 0);
        drop(state);
        if is_told {
            self.remove(&operation);
        }
        Ok(bytes)
    }
}
