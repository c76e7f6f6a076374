//! What the header and the logs of one cache device are to say, as blocks are written to it. Pure.
//!
//! ```text
//!   make_room ─▶ what is to be forgotten ── stage ─▶ places, and a log when enough blocks have come ── commit ─▶ written
//!                                                    encode ─▶ the header, after a log and when the ring has moved on
//! ```
//!
//! A log names a fixed number of blocks and lies behind them. A run of blocks that the ring's end cuts off gets no log: its
//! blocks serve until they are written over, and are not found again after an import. On a device with no logs at all
//! nothing is.

use crate::chain::header_size;
use crate::ring::Ring;
use codec::checksum::{Checksummer, sealed};
use ondisk::Writer;
use ondisk::l2arc::{L2Header, LOG_SIZE, LogBlock, LogEntry, LogPointer, TrimState, entries_for};
use ondisk::label::{DATA_OFFSET, LABELS_END_SIZE};
use std::collections::VecDeque;
use std::ops::Range;
use units::{Checksum, Compression, Endian, Guid};

/// What does not change while the device is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub pool: Guid,
    pub vdev: Guid,
    /// Everything begins at multiples of it, in bytes.
    pub sector: u64,
    /// Where blocks and logs lie, from the very start of the device.
    pub start: u64,
    pub end: u64,
    /// Of each log; 0: none are written.
    pub log_entries: u64,
}

impl Frame {
    /// Of a device with `psize` usable bytes. `None` when it has no room for blocks.
    pub fn new(pool: Guid, vdev: Guid, ashift: u32, psize: u64, logs_from: u64) -> Option<Frame> {
        let start = DATA_OFFSET + header_size(ashift) as u64;
        let end = psize.checked_sub(LABELS_END_SIZE)?;
        let len = end.checked_sub(start).filter(|len| *len > LOG_SIZE as u64)?;
        let log_entries = entries_of(len, logs_from);
        Some(Frame { pool, vdev, sector: 1 << ashift, start, end, log_entries })
    }

    pub fn asize(&self, psize: u64) -> u64 {
        psize.next_multiple_of(self.sector)
    }

    /// Whether a header is of this device as it is.
    pub fn is_of(&self, header: &L2Header) -> bool {
        let found = (header.pool, header.vdev, header.start, header.end, header.log_entries);
        found == (self.pool, self.vdev, self.start, self.end, self.log_entries)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Journal {
    pub frame: Frame,
    pub ring: Ring,
    newest: [LogPointer; 2],
    /// Logs that are held, the oldest first. One is held as long as all that it names is.
    logs: VecDeque<LogPointer>,
    logs_asize: u64,
    /// Blocks since the last log, and where they begin.
    pending: Vec<LogEntry>,
    payload: Range<u64>,
    trim: TrimState,
}

/// Room at the hand.
#[derive(Debug)]
pub(crate) struct Room {
    /// What was there and is to be forgotten.
    pub dropped: Vec<Range<u64>>,
    /// The header on the device says otherwise now.
    pub has_moved: bool,
}

/// What is about to be written in one piece at [`Staged::at`]: blocks, and behind them perhaps a log.
#[derive(Debug)]
pub(crate) struct Staged {
    pub at: u64,
    pub entries: Vec<LogEntry>,
    payload_end: u64,
    log: Option<LogPointer>,
}

impl Staged {
    /// A log is complete with it, so that the header is to name that.
    pub fn has_log(&self) -> bool {
        self.log.is_some()
    }
}

impl Journal {
    /// Of a device with nothing on it.
    pub fn fresh(frame: Frame) -> Journal {
        Journal {
            frame,
            ring: Ring::new(frame.start, frame.end),
            newest: Default::default(),
            logs: VecDeque::new(),
            logs_asize: 0,
            pending: Vec::new(),
            payload: 0..0,
            trim: TrimState::default(),
        }
    }

    /// As a header left it, with the logs that were found by it: the newest first.
    pub fn resume(frame: Frame, header: &L2Header, found: &[LogPointer]) -> Journal {
        let logs: VecDeque<_> = found.iter().rev().copied().collect();
        let logs_asize = logs.iter().map(LogPointer::asize).sum();
        // A chain that broke ends where it broke.
        let named = |i: usize| found.get(i).copied().unwrap_or_default();
        let newest = [named(0), named(1)];
        let (ring, trim) = (Ring::of(header), header.trim);
        Journal { ring, newest, logs, logs_asize, trim, ..Journal::fresh(frame) }
    }

    /// Logs are written from a device of `logs_from` bytes on. Answers whether that changes something: then those on the
    /// device are named no longer, and the header is to be written.
    pub fn follow(&mut self, logs_from: u64) -> bool {
        let log_entries = entries_of(self.frame.end - self.frame.start, logs_from);
        if log_entries == self.frame.log_entries {
            return false;
        }
        let (ring, trim) = (self.ring, self.trim);
        *self = Journal { ring, trim, ..Journal::fresh(Frame { log_entries, ..self.frame }) };
        true
    }

    /// How many more blocks complete a log.
    pub fn left_in_log(&self) -> usize {
        match self.frame.log_entries {
            0 => usize::MAX,
            entries => (entries as usize).saturating_sub(self.pending.len()).max(1),
        }
    }

    /// Makes room for blocks of `asize` bytes and the log that `count` of them may complete, and `ahead` bytes more.
    /// `None` when the device is too small for that.
    pub fn make_room(&mut self, asize: u64, count: usize, ahead: u64) -> Option<Room> {
        let log = if count >= self.left_in_log() { LOG_SIZE as u64 } else { 0 };
        let before = self.ring;
        let dropped = self.ring.make_room(asize + log, ahead)?;
        if self.ring.hand < before.hand {
            self.pending.clear();
        }
        while let Some(log) = self.logs.front()
            && dropped.iter().any(|gone| log.payload_start < gone.end && log.daddr + log.asize() > gone.start)
        {
            self.logs_asize -= log.asize();
            self.logs.pop_front();
        }
        let has_moved = (self.ring.evict, self.ring.is_first_sweep) != (before.evict, before.is_first_sweep);
        Some(Room { dropped, has_moved })
    }

    /// Gives `blocks` their places at the hand, where there is room, and appends the log that they complete to `data`,
    /// which are their bytes.
    pub fn stage(&self, mut blocks: Vec<LogEntry>, data: &mut Vec<u8>) -> Staged {
        let at = self.ring.hand;
        let mut next = at;
        for block in &mut blocks {
            block.daddr = next;
            next += self.frame.asize(block.prop.psize.0);
        }
        debug_assert_eq!(data.len() as u64, next - at, "blocks lie one behind the other");
        let is_complete = blocks.len() >= self.left_in_log();
        let log = is_complete.then(|| {
            let entries = self.pending.iter().chain(&blocks).copied().collect();
            let (compression, bytes) =
                encode_log(&LogBlock { previous: self.newest[1], entries }, &self.frame);
            let checksum = Checksummer::unsalted().compute(Checksum::Fletcher4, Endian::NATIVE, &bytes);
            let mut pointer = LogPointer::new(next, bytes.len() as u64, compression, checksum);
            pointer.payload_start = if self.pending.is_empty() { at } else { self.payload.start };
            pointer.payload_asize = next - pointer.payload_start;
            data.extend_from_slice(&bytes);
            pointer
        });
        Staged { at, entries: blocks, payload_end: next, log }
    }

    /// What was staged is on the device.
    pub fn commit(&mut self, staged: &Staged) {
        debug_assert_eq!(staged.at, self.ring.hand, "one run is written after another");
        self.ring.hand = staged.payload_end;
        match staged.log {
            Some(log) => {
                self.ring.hand += log.asize();
                self.newest = [log, self.newest[0]];
                self.logs.push_back(log);
                self.logs_asize += log.asize();
                self.pending.clear();
            }
            None if self.frame.log_entries == 0 => {}
            None => {
                if self.pending.is_empty() {
                    self.payload = staged.at..staged.at;
                }
                self.payload.end = staged.payload_end;
                self.pending.extend_from_slice(&staged.entries);
            }
        }
    }

    /// The header as it is to be written now.
    pub fn header(&self) -> L2Header {
        L2Header {
            version: L2Header::VERSION,
            pool: self.frame.pool,
            vdev: self.frame.vdev,
            log_entries: self.frame.log_entries,
            evict: self.ring.evict,
            flags: if self.ring.is_first_sweep { L2Header::FIRST_SWEEP } else { 0 },
            start: self.frame.start,
            end: self.frame.end,
            newest: self.newest,
            logs_asize: self.logs_asize,
            logs: self.logs.len() as u64,
            trim: self.trim,
        }
    }

    pub fn encode_header(&self) -> Vec<u8> {
        let mut bytes = vec![0; L2Header::SIZE.max(self.frame.sector as usize)];
        self.header().encode(&mut Writer::native(&mut bytes));
        sealed::seal(Checksum::Label, Endian::NATIVE, &mut bytes, sealed::label_verifier(DATA_OFFSET), None);
        bytes
    }
}

fn entries_of(len: u64, logs_from: u64) -> u64 {
    if len < logs_from { 0 } else { entries_for(len) }
}

/// A log as it is on the device, in whole sectors.
fn encode_log(log: &LogBlock, frame: &Frame) -> (Compression, Vec<u8>) {
    let mut whole = vec![0; LOG_SIZE];
    log.encode(&mut Writer::native(&mut whole));
    let mut packed = vec![0; LOG_SIZE];
    match codec::compress::compress(Compression::Lz4, &whole, &mut packed) {
        Some(len) if frame.asize(len as u64) < LOG_SIZE as u64 => {
            let asize = frame.asize(len as u64) as usize;
            packed[len..asize].fill(0);
            packed.truncate(asize);
            (Compression::Lz4, packed)
        }
        _ => (Compression::Off, whole),
    }
}

#[cfg(test)]
mod tests;
