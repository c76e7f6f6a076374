//! Reading and writing the entries themselves.

use super::{SpaceAction, SpaceMapEntry, SpaceRun};
use crate::bytes::{Reader, bits, place};
use units::{Endian, Result, Txg, VdevId};

const DEBUG: u64 = 0b10;
const TWO_WORDS: u64 = 0b11;
const RUN_MAX: u64 = 1 << 15;
const OFFSET_END: u64 = 1 << 47;
const RUN_MAX_TWO: u64 = 1 << 36;
const WORD: u64 = 8;

/// The entries in the bytes of a space map, in turn; ends after the first that makes no sense.
#[derive(Clone, Debug)]
pub struct SpaceMapEntries<'a> {
    r: Reader<'a>,
}

impl<'a> SpaceMapEntries<'a> {
    /// `bytes` are those that count: a whole object up to its length, or a block of it.
    pub fn new(bytes: &'a [u8], endian: Endian) -> SpaceMapEntries<'a> {
        SpaceMapEntries { r: Reader::new(bytes, endian, "space map") }
    }

    fn entry(&mut self) -> Result<SpaceMapEntry> {
        let word = self.r.u64()?;
        match bits(word, 62, 2) {
            DEBUG => Ok(decode_debug(word)),
            TWO_WORDS => Ok(SpaceMapEntry::Run(decode_two(word, self.r.u64()?))),
            _ => Ok(SpaceMapEntry::Run(decode_one(word))),
        }
    }
}

impl Iterator for SpaceMapEntries<'_> {
    type Item = Result<SpaceMapEntry>;

    fn next(&mut self) -> Option<Result<SpaceMapEntry>> {
        if self.r.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.r.rest();
        }
        Some(entry)
    }
}

fn action(bit: u64) -> SpaceAction {
    if bit == 0 { SpaceAction::Alloc } else { SpaceAction::Free }
}

fn action_bit(action: SpaceAction) -> u64 {
    (action == SpaceAction::Free).into()
}

fn decode_debug(word: u64) -> SpaceMapEntry {
    if bits(word, 0, 62) == 0 {
        return SpaceMapEntry::Padding;
    }
    SpaceMapEntry::Debug {
        action: action(bits(word, 60, 2)),
        sync_pass: bits(word, 50, 10) as u16,
        txg: Txg(bits(word, 0, 50)),
    }
}

fn decode_one(word: u64) -> SpaceRun {
    SpaceRun {
        action: action(bits(word, 15, 1)),
        offset: bits(word, 16, 47),
        len: bits(word, 0, 15) + 1,
        vdev: None,
    }
}

fn decode_two(first: u64, second: u64) -> SpaceRun {
    // 24 bits cannot say 2^24, so what OpenZFS writes for "no vdev" comes back as vdev 0: only the log of the whole
    // pool, whose reader knows what it reads, may rely on the vdev.
    SpaceRun {
        action: action(second >> 63),
        offset: bits(second, 0, 63),
        len: bits(first, 24, 36) + 1,
        vdev: Some(VdevId(bits(first, 0, 24) as u32)),
    }
}

/// Collects entries to append to a space map.
///
/// It knows where blocks end, so that entries of two words do not cross, and writes those only for what one word
/// cannot say.
#[derive(Clone, Debug)]
pub struct SpaceMapLog {
    words: Vec<u64>,
    start: u64,
    block_size: u64,
    spacemap_v2: bool,
}

impl SpaceMapLog {
    /// Appends at `start`, the length of the map so far; its object has blocks of `block_size` bytes. `spacemap_v2`:
    /// the feature is active, so entries may have two words.
    pub fn new(start: u64, block_size: u64, spacemap_v2: bool) -> SpaceMapLog {
        assert!(start.is_multiple_of(WORD) && block_size.is_multiple_of(2 * WORD) && block_size > 0);
        SpaceMapLog { words: Vec::new(), start, block_size, spacemap_v2 }
    }

    /// Says when, and in which pass of the sync, what follows is written. Each batch begins with it.
    pub fn debug(&mut self, action: SpaceAction, sync_pass: u16, txg: Txg) {
        let when = place(u64::from(sync_pass).min(0x3ff), 50, 10) | bits(txg.0, 0, 50);
        self.words.push(place(DEBUG, 62, 2) | place(action_bit(action), 60, 2) | when);
    }

    /// Adds a run, in as many entries as its length needs.
    pub fn run(&mut self, run: SpaceRun) {
        let SpaceRun { action, mut offset, mut len, vdev } = run;
        let fits_one = vdev.is_none() && offset + len <= OFFSET_END && len <= RUN_MAX;
        let two = self.spacemap_v2 && !fits_one;
        while len > 0 {
            let piece = len.min(if two { RUN_MAX_TWO } else { RUN_MAX });
            if two {
                self.push_two(action, offset, piece, vdev);
            } else {
                self.push_one(action, offset, piece);
            }
            offset += piece;
            len -= piece;
        }
    }

    fn push_one(&mut self, action: SpaceAction, offset: u64, len: u64) {
        self.words.push(place(offset, 16, 47) | place(action_bit(action), 15, 1) | place(len - 1, 0, 15));
    }

    fn push_two(&mut self, action: SpaceAction, offset: u64, len: u64, vdev: Option<VdevId>) {
        if (self.length() + WORD).is_multiple_of(self.block_size) {
            self.words.push(place(DEBUG, 62, 2));
        }
        let vdev = vdev.map_or(0, |v| v.0.into());
        self.words.push(place(TWO_WORDS, 62, 2) | place(len - 1, 24, 36) | place(vdev, 0, 24));
        self.words.push(place(action_bit(action), 63, 1) | place(offset, 0, 63));
    }

    /// The length of the map with all that was added.
    pub fn length(&self) -> u64 {
        self.start + self.words.len() as u64 * WORD
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// What is to be written from the former length on.
    pub fn to_bytes(&self, endian: Endian) -> Vec<u8> {
        let bytes = |word: &u64| match endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
        self.words.iter().flat_map(bytes).collect()
    }
}
