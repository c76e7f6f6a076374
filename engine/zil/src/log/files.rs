//! What file systems ask of their log beyond volumes: records of every kind, and the order among them.
//!
//! ```text
//!   names:              create, remove, link, rename ...   one sequence, of the whole file system
//!   content and size,   of one file, and not asked for     wait beside the sequence, for each file in their order:
//!   attributes          to be durable                      ─▶ commit of this file, or of all: behind the sequence
//!                                                          ─▶ the file is renamed: before the record of that
//!                                                          ─▶ its last name goes: dropped
//!                                                          ─▶ their txg is on disk: dropped
//! ```
//!
//! So a commit of one file does not write what others have written meanwhile, which may be gigabytes; and a file that is
//! written, committed or not, and then renamed over another is never found empty under that name. Replay passes over
//! records of content whose file is gone.
//!
//! A change that is not logged ([`Log::unlogged`]) holds back everything that is made after it, until its txg is on
//! disk: what the log has then never builds on what is not there.

use super::plan::room_of;
use super::record::{Change, Pieces};
use super::{Log, State, by_block, whole};
use dmu::{EarlyBlock, Object, SyncMode, Tx};
use ondisk::{LogRecord, Record, Writer};
use std::collections::VecDeque;
use units::{ObjectId, Txg};
use world::Buf;

/// What is said of a write of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// A commit follows.
    pub soon: bool,
    /// It may be logged by pointer. OpenZFS replays a block that is pointed to as a whole, and a file that reaches into it
    /// further than the write becomes as long as the block.
    pub may_point: bool,
}

impl Log {
    /// Logs what `record` says, which is no write; it was done in `tx`.
    pub fn record(&self, tx: &Tx, record: Record<'_>) {
        if self.mode() == SyncMode::Disabled {
            return self.unlogged(tx);
        }
        let object = record.object();
        let record = LogRecord { txg: tx.txg(), seq: 0, ignores_case: false, record };
        let mut bytes = vec![0; record.length()];
        if bytes.len() > room_of(self.settings().max_block_size) {
            return self.unlogged(tx);
        }
        record.encode(&mut Writer::native(&mut bytes));
        tx.dirtied(bytes.len() as u64);
        let change = Change::Record { bytes: bytes.into() };
        match object {
            Some(object) => self.push_later(tx, object, vec![change]),
            None => self.push(tx, vec![change]),
        }
    }

    /// Logs a write of `parts`, one behind the other from `offset` of a file on, which has just dirtied its blocks in `tx`.
    pub fn write_file(&self, tx: &Tx, object: &Object, offset: u64, parts: &[Buf], hint: Hint) {
        if self.mode() == SyncMode::Disabled {
            return self.unlogged(tx);
        }
        let size = object.block_size();
        let len = parts.iter().map(|part| part.len() as u64).sum();
        let changes = match hint.may_point && self.points(offset, len, size) {
            true => by_block(tx, object, size, offset, len),
            false => vec![whole(tx, object, size, offset, parts)],
        };
        self.push_file(tx, object.id(), changes, hint.soon);
    }

    /// As [`Log::write_file`] of a write whose blocks `early`, which lie side by side and are written whole, go to their
    /// devices at once: whether there is a log device or not, these are logged by pointer.
    pub fn write_file_early(
        &self,
        tx: &Tx,
        object: &Object,
        offset: u64,
        parts: &[Buf],
        early: &[(u64, EarlyBlock)],
        soon: bool,
    ) {
        if self.mode() == SyncMode::Disabled {
            return self.unlogged(tx);
        }
        let (size, mut at, mut rest) = (object.block_size(), offset, Pieces::default());
        parts.iter().for_each(|part| rest.push(part.clone()));
        let mut changes = Vec::with_capacity(early.len() + 2);
        for (blkid, block) in early {
            let from = blkid * size;
            if from > at {
                let mut before = rest.take_front((from - at) as usize);
                changes.push(whole(tx, object, size, at, before.bufs()));
            }
            drop(rest.take_front(size as usize));
            let (object, block) = (object.clone(), block.clone());
            changes.push(Change::Block { object, blkid: *blkid, block, offset: from, length: size });
            at = from + size;
        }
        if rest.len() > 0 {
            changes.push(whole(tx, object, size, at, rest.bufs()));
        }
        self.push_file(tx, object.id(), changes, soon);
    }

    /// With `soon`, a commit follows.
    fn push_file(&self, tx: &Tx, object: ObjectId, changes: Vec<Change>, soon: bool) {
        match soon || self.mode() == SyncMode::Always {
            true => {
                self.lock().promote(object);
                self.push(tx, changes);
            }
            false => self.push_later(tx, object, changes),
        }
    }

    fn push_later(&self, tx: &Tx, object: ObjectId, changes: Vec<Change>) {
        let mut state = self.lock();
        if state.is_closed {
            state.unlogged = state.unlogged.max(tx.txg());
            return;
        }
        state.newest = state.newest.max(tx.txg());
        let waiting = state.later.entry(object).or_default();
        waiting.extend(changes.into_iter().map(|change| (tx.txg(), change)));
    }

    /// What waits for this file comes before what is logged next.
    pub fn promote(&self, object: ObjectId) {
        self.lock().promote(object);
    }

    /// The file goes: what waits for it is obsolete, and its number may be another's before long.
    pub fn forget(&self, object: ObjectId) {
        self.lock().later.remove(&object);
    }
}

impl State {
    pub(super) fn append(&mut self, txg: Txg, change: Change) {
        self.last_id += 1;
        self.pending.push_back(super::Entry { id: self.last_id, txg, change });
    }

    pub(super) fn promote(&mut self, object: ObjectId) {
        for (txg, change) in self.later.remove(&object).unwrap_or_default() {
            self.append(txg, change);
        }
    }

    pub(super) fn promote_all(&mut self) {
        for (txg, change) in std::mem::take(&mut self.later).into_values().flatten() {
            self.append(txg, change);
        }
    }

    /// A change that is in no log was made in `txg`.
    pub(super) fn note_unlogged(&mut self, txg: Txg) {
        if self.unlogged <= self.synced {
            self.held_from = self.last_id;
        }
        self.unlogged = self.unlogged.max(txg);
    }

    /// Changes beyond this one must not be in the log yet.
    pub(super) fn may_log(&self) -> u64 {
        if self.unlogged > self.synced { self.held_from } else { u64::MAX }
    }

    pub(super) fn drop_later(&mut self, synced: Txg) {
        self.later.retain(|_, waiting: &mut VecDeque<_>| {
            waiting.retain(|(txg, _)| *txg > synced);
            !waiting.is_empty()
        });
    }
}
