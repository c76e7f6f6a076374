//! What goes into a log block, and how large the next one is. Pure.
//!
//! ```text
//!   burst of records        ─▶ as large as it is, if one block can hold it
//!     up to 8 blocks' worth ─▶ divided evenly, so that several log devices have equal shares
//!     more                  ─▶ the largest blocks
//!   nothing left            ─▶ as large as the bursts of late, without the one that stands out
//! ```
//!
//! A block is named, and so its size is settled, before the records that it will hold are known. Only what is in use of
//! it is written; guessing too much costs space for some seconds, guessing too little costs a block more.
//!
//! Data are divided at multiples of 4096 bytes of the object, so that a crash between the two blocks tears no sector; and
//! data of some kilobytes not at all.

use super::record::Item;
use crate::settings::Settings;
use codec::checksum::sealed;
use ondisk::{BlockPointer, Plain, Trailer, Writer, ZilChain};
use std::collections::VecDeque;
use units::{Checksum, Endian, Txg};
use world::{Buf, IoBuf};

use super::record::{Body, WRITE_HEAD};

/// The unit of log blocks.
pub(crate) const GRAIN: u64 = 4096;
/// The smallest block: one that has room for data which are not divided. What is not used of it is not written.
pub(crate) const LEAST: u64 = 2 * GRAIN;
/// Where data may be divided: at multiples of this, in the object.
const DIVIDE: u64 = 4096;

/// The records of one block.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub items: Vec<Item>,
    pub bytes: usize,
    /// The newest txg of a record; none when there is no record.
    pub newest: Txg,
    /// All changes up to here are in this block or in those before.
    pub complete: u64,
}

/// How many bytes of records a block of `size` bytes holds.
pub(crate) fn room_of(size: u64) -> usize {
    size as usize - ZilChain::SIZE
}

/// Takes from `items` what fits into `room` bytes. That may be nothing.
pub(crate) fn fill(items: &mut VecDeque<Item>, room: usize, settings: &Settings) -> Filled {
    let mut filled = Filled::default();
    while let Some(item) = items.front_mut() {
        let left = room - filled.bytes;
        let (head, data) = item.size();
        let part = if head + data <= left {
            items.pop_front().expect("it was looked at")
        } else {
            match divide(item, left, settings) {
                Some(n) => item.split(n),
                None => break,
            }
        };
        debug_assert!(head <= left);
        filled.bytes += part.total();
        filled.newest = filled.newest.max(part.txg);
        filled.complete = part.id;
        filled.items.push(part);
    }
    filled
}

/// How many bytes of data to put into the `left` bytes of a block, when not all have room there.
fn divide(item: &Item, left: usize, settings: &Settings) -> Option<usize> {
    let Body::Bytes { offset, .. } = &item.body else { return None };
    if item.is_whole(settings) || left < WRITE_HEAD {
        return None;
    }
    let (_, data) = item.size();
    let largest = room_of(settings.max_block_size) - WRITE_HEAD;
    // A remainder that the following blocks would have room for anyhow is not worth a record of its own.
    let (room, rest) = (left - WRITE_HEAD, data % largest);
    if left < largest / 16 && (rest == 0 || room < rest) {
        return None;
    }
    let end = (offset + room as u64) / DIVIDE * DIVIDE;
    end.checked_sub(*offset).filter(|n| *n > 0).map(|n| n as usize)
}

/// The size of a block for what is left of a burst.
pub(crate) fn size_for(items: &VecDeque<Item>, settings: &Settings) -> u64 {
    let left: usize = items.iter().map(Item::total).sum();
    let first = items.front().map_or(0, |item| {
        // Less would not get on at all.
        if item.is_whole(settings) { item.total() } else { WRITE_HEAD + 2 * DIVIDE as usize }
    });
    to_block(plan(left as u64, settings).max(first as u64), settings)
}

/// The bytes of records to plan the next block for, with `burst` bytes to come.
pub(crate) fn plan(burst: u64, settings: &Settings) -> u64 {
    let most = room_of(settings.max_block_size) as u64;
    if burst <= most {
        return burst;
    }
    if burst > 8 * most {
        return most;
    }
    let blocks = burst.div_ceil(most - WRITE_HEAD as u64);
    let share = burst.div_ceil(blocks) + WRITE_HEAD as u64;
    if share <= most - most / 16 { share } else { most }
}

fn to_block(records: u64, settings: &Settings) -> u64 {
    let most = settings.max_block_size.clamp(LEAST, ondisk::OLD_MAX_BLOCK_SIZE) / GRAIN * GRAIN;
    (records + ZilChain::SIZE as u64).next_multiple_of(GRAIN).clamp(LEAST, most)
}

/// What the last bursts were like.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    recent: [u64; 8],
    next: usize,
}

impl Bursts {
    pub fn note(&mut self, bytes: u64, settings: &Settings) {
        self.recent[self.next] = plan(bytes, settings);
        self.next = (self.next + 1) % self.recent.len();
    }

    /// The size of the block that the next burst will begin with.
    pub fn predict(&self, settings: &Settings) -> u64 {
        let mut sorted = self.recent;
        sorted.sort_unstable();
        let [.., second, first] = sorted;
        to_block(if first < 2 * second { first } else { second }, settings)
    }
}

/// The bytes of a log block, up to the last that is in use. `seq` is the number of the last record in the log so far.
pub(crate) fn encode(filled: &Filled, at: &Plain, next: &BlockPointer, seq: &mut u64) -> Buf {
    let used = ZilChain::SIZE + filled.bytes;
    let mut block = IoBuf::scratch(used.next_multiple_of(GRAIN as usize));
    let mut w = Writer::native(&mut block);
    ZilChain { next: next.clone(), used: used as u64, trailer: Trailer::new(at.checksum) }.encode(&mut w);
    for item in &filled.items {
        *seq += 1;
        item.encode(&mut w, *seq);
    }
    block[used..].fill(0);
    sealed::seal(Checksum::Zilog2, Endian::NATIVE, &mut block, at.checksum, None);
    block.freeze()
}
