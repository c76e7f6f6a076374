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
//! Data are divided at multiples of the object's block size, so that a crash between two blocks of the log tears no block
//! of the object. What does not fit into the rest of a block of the log begins the next. A block of the object that is too
//! large for any block of the log is divided at multiples of 4096 bytes: then a crash tears no sector ([`divides_at`] says
//! which it is). And data of some kilobytes are not divided at all.
//!
//! ```text
//!   object         │ 0 · · ▪▪▪▪▪▪ │ 1 ▪▪▪▪▪▪▪▪▪ │ 2 ▪▪▪▪▪ · · │        one write
//!   log blocks     ┌──────────────┬─────────────┬─ ─┐ ┌─────────┐
//!                  │ ▪▪▪▪▪▪ of 0  │ ▪▪▪▪▪ all 1 │   │ │ ▪▪▪▪▪ 2 │
//!                  └──────────────┴─────────────┴─ ─┘ └─────────┘
//!                                            too little for 2
//! ```

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
/// No data are divided at less than multiples of this, in the object.
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

/// At multiples of how many bytes the data of a write may be divided between blocks of a log whose largest is
/// `max_block_size` (`zil_maxblocksize`), in an object with blocks of `block_size` bytes. After a crash, what lies between
/// two such places is of the write or of before it, never mixed.
pub fn divides_at(block_size: u64, max_block_size: u64) -> u64 {
    let fits = WRITE_HEAD as u64 + block_size <= room_of(largest_block(max_block_size)) as u64;
    if fits { DIVIDE.div_ceil(block_size) * block_size } else { DIVIDE }
}

/// The largest block under the setting `max_block_size`: one that has room for every record that is not divided.
pub(crate) fn largest_block(max_block_size: u64) -> u64 {
    max_block_size.clamp(2 * LEAST, ondisk::OLD_MAX_BLOCK_SIZE) / GRAIN * GRAIN
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
    let Body::Bytes { block_size, offset, .. } = &item.body else { return None };
    if item.is_whole(settings) || left < WRITE_HEAD {
        return None;
    }
    let (_, data) = item.size();
    let unit = divides_at(*block_size, settings.max_block_size);
    let largest = (room_of(settings.max_block_size) - WRITE_HEAD) as u64 / unit * unit;
    let largest = largest as usize;
    // A remainder that the following blocks would have room for anyhow is not worth a record of its own.
    let (room, rest) = (left - WRITE_HEAD, data % largest);
    if left < largest / 16 && (rest == 0 || room < rest) {
        return None;
    }
    let end = (offset + room as u64) / unit * unit;
    end.checked_sub(*offset).filter(|n| *n > 0).map(|n| n as usize)
}

/// The size of a block for what is left of a burst.
pub(crate) fn size_for(items: &VecDeque<Item>, settings: &Settings) -> u64 {
    // More than that is not looked at: a burst of a gigabyte would be summed for each of its blocks.
    let (mut left, many) = (0, many(settings) as usize);
    for item in items {
        left += item.total();
        if left > many {
            break;
        }
    }
    let first = items.front().map_or(0, |item| {
        // Less would not get on at all.
        match &item.body {
            Body::Bytes { block_size, .. } if !item.is_whole(settings) => {
                let unit = divides_at(*block_size, settings.max_block_size).max(2 * DIVIDE) as usize;
                WRITE_HEAD + unit.min(item.size().1)
            }
            _ => item.total(),
        }
    });
    to_block(plan(left as u64, settings).max(first as u64), settings)
}

/// From this many bytes of records on they go into the largest blocks.
fn many(settings: &Settings) -> u64 {
    8 * room_of(settings.max_block_size) as u64
}

/// The bytes of records to plan the next block for, with `burst` bytes to come.
pub(crate) fn plan(burst: u64, settings: &Settings) -> u64 {
    let most = room_of(settings.max_block_size) as u64;
    if burst <= most {
        return burst;
    }
    if burst > many(settings) {
        return most;
    }
    let blocks = burst.div_ceil(most - WRITE_HEAD as u64);
    let share = burst.div_ceil(blocks) + WRITE_HEAD as u64;
    if share <= most - most / 16 { share } else { most }
}

fn to_block(records: u64, settings: &Settings) -> u64 {
    (records + ZilChain::SIZE as u64).next_multiple_of(GRAIN).clamp(LEAST, settings.max_block_size)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::record::Pieces;
    use units::ObjectId;

    fn settings(max_block_size: u64) -> Settings {
        let max_block_size = largest_block(max_block_size);
        Settings { max_block_size, max_copied: 7680, ..Settings::of(&tunables::Tunables::default()) }
    }

    fn write(block_size: u64, offset: u64, len: usize) -> Item {
        let data = Pieces::from(Buf::zeroed(len));
        Item { id: 9, txg: Txg(5), body: Body::Bytes { object: ObjectId(1), block_size, offset, data } }
    }

    /// Where the writer would divide `items`: the offset and length of each record, and the empty blocks of the log.
    fn divided(items: Vec<Item>, first_block: u64, settings: &Settings) -> (Vec<(u64, usize)>, usize) {
        let mut items = VecDeque::from(items);
        let (mut size, mut parts, mut empty) = (first_block, Vec::new(), 0);
        while !items.is_empty() {
            let filled = fill(&mut items, room_of(size), settings);
            assert!(filled.bytes <= room_of(size));
            assert!(
                !filled.items.is_empty() || size == first_block,
                "a block for what is left takes some of it"
            );
            empty += usize::from(filled.items.is_empty());
            for item in filled.items {
                let Body::Bytes { offset, data, .. } = item.body else { panic!("only data were given") };
                parts.push((offset, data.len()));
            }
            size = size_for(&items, settings);
        }
        (parts, empty)
    }

    #[test]
    fn data_are_divided_between_blocks_of_their_object_wherever_one_fits_into_the_log() {
        for max_block_size in [16 << 10, 36 << 10, 128 << 10] {
            let settings = settings(max_block_size);
            for block_size in (9..18).map(|shift| 1 << shift) {
                let unit = divides_at(block_size, max_block_size);
                let fits = WRITE_HEAD as u64 + block_size <= room_of(settings.max_block_size) as u64;
                assert!(unit.is_multiple_of(if fits { block_size } else { DIVIDE }) && unit >= DIVIDE);
                for (offset, len) in
                    [(0, 8192), (512, 200_000), (3 * 4096 + 512, 70_000), (block_size, 131_072)]
                {
                    for first_block in [LEAST, 36 << 10, 128 << 10] {
                        let first_block = first_block.min(settings.max_block_size);
                        // Another record takes some of the room.
                        let items = vec![write(block_size, 0, 4000), write(block_size, offset, len)];
                        let (parts, _) = divided(items, first_block, &settings);
                        let mut at = offset;
                        for &(offset, len) in &parts[1..] {
                            assert_eq!(offset, at);
                            at += len as u64;
                            let is_end =
                                at == parts[1].0 + parts[1..].iter().map(|p| p.1 as u64).sum::<u64>();
                            assert!(
                                is_end || at.is_multiple_of(unit),
                                "{block_size} {offset} {len}: {parts:?}"
                            );
                        }
                        assert_eq!(at, offset + len as u64);
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_into_the_rest_of_a_block_begins_the_next() {
        let settings = settings(128 << 10);
        let block = 64 << 10;
        let (parts, empty) = divided(vec![write(block, 0, 2 << 16)], 128 << 10, &settings);
        assert_eq!((parts, empty), (vec![(0, 1 << 16), (1 << 16, 1 << 16)], 0));
        let (parts, empty) = divided(vec![write(block, 0, 2 << 16)], LEAST, &settings);
        assert_eq!((parts, empty), (vec![(0, 1 << 16), (1 << 16, 1 << 16)], 1));
        // Half of a block of the object before a boundary, half after it.
        let (parts, _) = divided(vec![write(block, 3 << 15, 1 << 16)], 64 << 10, &settings);
        assert_eq!(parts, [(3 << 15, 1 << 15), (1 << 17, 1 << 15)]);
        // Some kilobytes stay together, wherever they begin.
        let (parts, _) = divided(vec![write(4096, 0, 2000), write(4096, 2048, 7680)], LEAST, &settings);
        assert_eq!(parts, [(0, 2000), (2048, 7680)]);
    }

    #[test]
    fn only_a_block_too_large_for_the_log_is_divided_inside() {
        assert_eq!(divides_at(64 << 10, 128 << 10), 64 << 10);
        assert_eq!(divides_at(128 << 10, 128 << 10), 4096);
        assert_eq!(divides_at(16 << 10, 16 << 10), 4096);
        assert_eq!(divides_at(512, 128 << 10), 4096);
        assert_eq!(divides_at(3 * 512, 128 << 10), 9 * 512);
    }
}
