//! The micro ZAP: one block of names of at most 49 bytes, each with one 64-bit integer.
//!
//! ```text
//!    0  kind | salt | normalisation | 5 unused words          64 bytes
//!   64  value(8) | cd(4) | unused(2) | name(50, NUL inside)    64 bytes, an empty name is a free slot
//!  128  ...                                                    as many as fit
//! ```
//!
//! The block grows in steps of 512 bytes up to [`SIZE_MAX`]. What does not fit turns the whole into a fat ZAP. Names
//! of the same hash are told apart by `cd`, which only matters for the order in which entries are listed.

use crate::cursor::Cursor;
use crate::hash::Rules;
use crate::index::Index;
use crate::key::{Key, Needle};
use crate::le;
use crate::normalize::Normalization;
use ondisk::zap::{MICRO_ENTRY_SIZE as SLOT, MICRO_NAME_MAX, MicroEntry, MicroHeader, ZapFlags};
use ondisk::{Reader, Writer};
use units::{Endian, Error, Result};
use world::{Buf, IoBuf};

/// Beyond this a micro ZAP becomes a fat one. Larger blocks would need features of the pool.
pub(crate) const SIZE_MAX: usize = 128 << 10;
/// By how much a full one grows.
pub(crate) const SIZE_STEP: usize = 512;
/// The longest name, without NUL.
pub(crate) const NAME_MAX: usize = MICRO_NAME_MAX;

const NAME_AT: usize = SLOT - NAME_MAX - 1;

/// A micro ZAP over its block.
#[derive(Debug)]
pub(crate) struct Micro {
    bytes: Buf,
    rules: Rules,
}

/// A slot in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'a> {
    pub index: usize,
    pub value: u64,
    pub cd: u32,
    pub name: &'a [u8],
}

/// Turns a block of the other byte order into ours.
pub(crate) fn turn(bytes: &mut [u8]) {
    let (head, slots) = bytes.split_at_mut(SLOT);
    le::swap_each(head, 8);
    for slot in slots.chunks_exact_mut(SLOT) {
        slot[..8].reverse();
        slot[8..12].reverse();
    }
}

/// The block of a new, empty micro ZAP.
pub(crate) fn format(size: usize, rules: &Rules) -> IoBuf {
    let mut bytes = IoBuf::zeroed(size);
    let header = MicroHeader { salt: rules.salt, normalization: rules.norm.0 };
    header.encode(&mut Writer::new(&mut bytes, Endian::Little));
    bytes
}

/// Where a slot is in the block.
pub(crate) fn slot_at(index: usize) -> usize {
    (index + 1) * SLOT
}

/// What a slot with this entry holds.
pub(crate) fn slot_of(name: &[u8], cd: u32, value: u64) -> [u8; SLOT] {
    let mut bytes = [0; SLOT];
    let entry = MicroEntry { value, differentiator: cd, name: name.to_vec() };
    entry.encode(&mut Writer::new(&mut bytes, Endian::Little));
    bytes
}

/// What an empty slot holds.
pub(crate) const EMPTY_SLOT: [u8; SLOT] = [0; SLOT];

/// How many slots a block of this size has.
pub(crate) fn slots_in(size: usize) -> usize {
    size / SLOT - 1
}

impl Micro {
    /// The block has been turned to our order already.
    pub fn open(bytes: Buf) -> Result<Micro> {
        let header = MicroHeader::decode(&mut Reader::new(&bytes, Endian::Little, "micro ZAP"))?;
        let norm = Normalization(header.normalization);
        let rules = Rules { salt: header.salt, norm, flags: ZapFlags::default() };
        rules.check()?;
        Ok(Micro { bytes, rules })
    }

    pub fn rules(&self) -> Rules {
        self.rules
    }

    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn slot_count(&self) -> usize {
        slots_in(self.bytes.len())
    }

    fn slot_bytes(&self, index: usize) -> &[u8] {
        &self.bytes[slot_at(index)..slot_at(index + 1)]
    }

    fn is_free(&self, index: usize) -> bool {
        self.slot_bytes(index)[NAME_AT] == 0
    }

    /// The slot in place; [`MicroEntry`] would copy the name of each that is looked at.
    fn slot(&self, index: usize) -> Result<Slot<'_>> {
        let bytes = self.slot_bytes(index);
        let field = &bytes[NAME_AT..];
        let Some(len) = field.iter().position(|b| *b == 0) else {
            return Err(Error::corrupt(format!("micro ZAP: the name in slot {index} has no end")));
        };
        let (value, cd) = (le::u64_at(bytes, 0), le::u32_at(bytes, 8));
        Ok(Slot { index, value, cd, name: &field[..len] })
    }

    /// The slots in use, in the order of the block.
    pub fn slots(&self) -> impl Iterator<Item = Result<Slot<'_>>> {
        (0..self.slot_count()).filter(|i| !self.is_free(*i)).map(|i| self.slot(i))
    }

    pub fn len(&self) -> usize {
        (0..self.slot_count()).filter(|i| !self.is_free(*i)).count()
    }

    /// The entry that the needle means: byte by byte, the first of the block; by normalised form, the one with the lowest
    /// cd. The index, if there is one, is of these bytes.
    pub fn find(&self, needle: &Needle<'_>, index: Option<&Index>) -> Result<Option<Slot<'_>>> {
        let mut best: Option<Slot<'_>> = None;
        let rank = |slot: &Slot<'_>| (if needle.is_exact() { 0 } else { slot.cd }, slot.index);
        for slot in self.candidates(needle.hash, index) {
            let slot = slot?;
            if needle.matches_name(slot.name) && best.is_none_or(|b| rank(&slot) < rank(&b)) {
                best = Some(slot);
                if needle.is_exact() && index.is_none() {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// The slots that a name of this hash may be in: without an index, all in use.
    fn candidates<'s>(&'s self, hash: u64, index: Option<&Index>) -> impl Iterator<Item = Result<Slot<'s>>> {
        let indexed = index.map(|index| index.slots_of(hash).map(move |i| self.slot(i)));
        let searched = index.is_none().then(|| self.slots());
        indexed.into_iter().flatten().chain(searched.into_iter().flatten())
    }

    /// How many names the needle matches.
    pub fn count_matches(&self, needle: &Needle<'_>, index: Option<&Index>) -> usize {
        let found = self.candidates(needle.hash, index);
        found.filter(|s| s.as_ref().is_ok_and(|s| needle.matches_name(s.name))).count()
    }

    /// Where an entry stands in a listing.
    pub fn position(&self, slot: &Slot<'_>) -> Cursor {
        Cursor { hash: self.rules.hash(Key::Name(slot.name)), cd: slot.cd }
    }

    /// All entries in listing order.
    pub fn sorted(&self) -> Result<Vec<(Cursor, Slot<'_>)>> {
        let mut all: Vec<_> =
            self.slots().map(|s| s.map(|s| (self.position(&s), s))).collect::<Result<_>>()?;
        all.sort_by_key(|(at, _)| *at);
        Ok(all)
    }

    /// The cds of the entries that share this hash.
    pub fn cds_of(&self, hash: u64, index: Option<&Index>) -> Result<Vec<u32>> {
        let mut cds = Vec::new();
        for slot in self.candidates(hash, index) {
            let slot = slot?;
            // The index has compared hashes already.
            if index.is_some() || self.rules.hash(Key::Name(slot.name)) == hash {
                cds.push(slot.cd);
            }
        }
        Ok(cds)
    }

    /// The first slot that has no entry, unless all have.
    pub fn free_slot(&self, index: Option<&Index>) -> Option<usize> {
        match index {
            Some(index) => index.free_slot(),
            None => (0..self.slot_count()).find(|i| self.is_free(*i)),
        }
    }

    pub fn into_bytes(self) -> Buf {
        self.bytes
    }
}

/// The lowest differentiator that is not taken.
pub(crate) fn lowest_free_cd(mut taken: Vec<u32>) -> u32 {
    taken.sort_unstable();
    taken.dedup();
    taken.iter().zip(0..).take_while(|(cd, expected)| **cd == *expected).count() as u32
}
