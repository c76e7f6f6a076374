//! Which generation of each block there must be.
//!
//! ```text
//!   begun      a write of this generation was handed to the target    after a crash: at most this
//!   done       ... and came back                                      while running: exactly this
//!   flushed    ... and a flush that began later came back             after a crash: at least this
//! ```
//!
//! A block is used by one lane at a time, so that what a read must find is never in doubt. The ledger is shared by the
//! lanes and outlives the target: it is what a crash test still knows.

use crate::stamp::Generation;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result};

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    begun: Generation,
    done: Generation,
    flushed: Generation,
    in_use: bool,
}

#[derive(Debug)]
struct State {
    blocks: Vec<Entry>,
    /// Blocks written since the last flush began, with the generation that is done.
    unflushed: VecDeque<(u64, Generation)>,
}

#[derive(Debug)]
pub struct Ledger {
    state: Mutex<State>,
}

/// What a flush that has begun will have made durable.
#[derive(Debug)]
pub(crate) struct Promise(VecDeque<(u64, Generation)>);

impl Ledger {
    pub fn new(blocks: u64) -> Ledger {
        let state = State { blocks: vec![Entry::default(); blocks as usize], unflushed: VecDeque::new() };
        Ledger { state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn blocks(&self) -> u64 {
        self.lock().blocks.len() as u64
    }

    /// Takes `block`, or the next free one.
    pub(crate) fn take(&self, block: u64) -> u64 {
        let mut state = self.lock();
        let count = state.blocks.len();
        let free = (0..count).map(|i| (block as usize + i) % count).find(|&b| !state.blocks[b].in_use);
        let free = free.expect("there are more blocks than lanes");
        state.blocks[free].in_use = true;
        free as u64
    }

    pub(crate) fn release(&self, block: u64) {
        self.lock().blocks[block as usize].in_use = false;
    }

    /// The generation to write next.
    pub(crate) fn begin(&self, block: u64) -> Generation {
        let entry = &mut self.lock().blocks[block as usize];
        entry.begun += 1;
        entry.begun
    }

    pub(crate) fn done(&self, block: u64) {
        let mut state = self.lock();
        let entry = &mut state.blocks[block as usize];
        entry.done = entry.begun;
        let done = (block, entry.done);
        state.unflushed.push_back(done);
    }

    pub(crate) fn begin_flush(&self) -> Promise {
        Promise(std::mem::take(&mut self.lock().unflushed))
    }

    pub(crate) fn flushed(&self, promise: Promise) {
        let mut state = self.lock();
        for (block, generation) in promise.0 {
            let entry = &mut state.blocks[block as usize];
            entry.flushed = entry.flushed.max(generation);
        }
    }

    /// Whether a block may be of generation `found` while nothing has crashed.
    pub(crate) fn check_now(&self, block: u64, found: Generation) -> Result<()> {
        let Entry { done, .. } = self.lock().blocks[block as usize];
        within(block, found, done, done)
    }

    /// Whether a block may be of generation `found` after a crash; from now on it is.
    pub(crate) fn check_after_crash(&self, block: u64, found: Generation) -> Result<()> {
        let mut state = self.lock();
        let entry = &mut state.blocks[block as usize];
        within(block, found, entry.flushed, entry.begun)?;
        // What did not survive will not come back; what did is on disk.
        *entry = Entry { begun: entry.begun, done: found, flushed: found, in_use: false };
        Ok(())
    }
}

fn within(block: u64, found: Generation, least: Generation, most: Generation) -> Result<()> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let what = match found < least {
        true => format!("verify: lost write, block {block} is of generation {found} and not {least}"),
        false => format!("verify: block {block} is of generation {found}, beyond {most}"),
    };
    Err(Error::new(Kind::Corrupt, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(ledger: &Ledger, block: u64) {
        ledger.begin(block);
        ledger.done(block);
    }

    #[test]
    fn after_a_crash_a_block_is_between_its_last_flush_and_its_last_write() {
        let ledger = Ledger::new(4);
        write(&ledger, 1);
        write(&ledger, 1);
        let promise = ledger.begin_flush();
        write(&ledger, 1);
        ledger.flushed(promise);
        ledger.begin(1);
        assert!(ledger.check_now(1, 3).is_ok() && ledger.check_now(1, 2).is_err());
        assert!(ledger.check_after_crash(1, 1).is_err(), "generation 2 was flushed");
        assert!(ledger.check_after_crash(1, 5).is_err(), "nobody wrote generation 5");
        assert!(ledger.check_after_crash(1, 4).is_ok(), "a write under way may have arrived");
        assert!(ledger.check_now(1, 4).is_ok(), "and then it is there to stay");
        assert!(ledger.check_after_crash(0, 0).is_ok() && ledger.check_after_crash(0, 1).is_err());
    }

    #[test]
    fn a_block_is_used_by_one_lane_at_a_time() {
        let ledger = Ledger::new(3);
        assert_eq!([ledger.take(2), ledger.take(2), ledger.take(0)], [2, 0, 1]);
        ledger.release(0);
        assert_eq!(ledger.take(1), 0);
    }
}
