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
use crate::key::{Key, Needle};
use crate::le;
use crate::normalize::Normalization;
use ondisk::zap::{MICRO_ENTRY_SIZE as SLOT, MICRO_NAME_MAX, MicroEntry, MicroHeader, ZapFlags};
use ondisk::{Reader, Writer};
use std::ops::{Deref, DerefMut};
use units::{Endian, Error, Result};
use world::IoBuf;

/// Beyond this a micro ZAP becomes a fat one. Larger blocks would need features of the pool.
pub(crate) const SIZE_MAX: usize = 128 << 10;
/// By how much a full one grows.
pub(crate) const SIZE_STEP: usize = 512;
/// The longest name, without NUL.
pub(crate) const NAME_MAX: usize = MICRO_NAME_MAX;

const NAME_AT: usize = SLOT - NAME_MAX - 1;

/// A micro ZAP over its block: a `Buf` to read, an `IoBuf` to change.
#[derive(Debug)]
pub(crate) struct Micro<B> {
    bytes: B,
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

impl<B: Deref<Target = [u8]>> Micro<B> {
    /// The block has been turned to our order already.
    pub fn open(bytes: B) -> Result<Micro<B>> {
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

    fn slot_count(&self) -> usize {
        self.bytes.len() / SLOT - 1
    }

    fn slot_bytes(&self, index: usize) -> &[u8] {
        &self.bytes[(index + 1) * SLOT..(index + 2) * SLOT]
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

    /// The entry that the needle means; of several that match by normalised form, the one with the lowest cd.
    pub fn find(&self, needle: &Needle<'_>) -> Result<Option<Slot<'_>>> {
        let mut best: Option<Slot<'_>> = None;
        for slot in self.slots() {
            let slot = slot?;
            if needle.matches_name(slot.name) && best.is_none_or(|b| slot.cd < b.cd) {
                best = Some(slot);
                if needle.is_exact() {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// How many names the needle matches.
    pub fn count_matches(&self, needle: &Needle<'_>) -> usize {
        self.slots().filter(|s| s.as_ref().is_ok_and(|s| needle.matches_name(s.name))).count()
    }

    /// All entries in listing order.
    pub fn sorted(&self) -> Result<Vec<(Cursor, Slot<'_>)>> {
        let position = |slot: Slot<'_>| Cursor { hash: self.rules.hash(Key::Name(slot.name)), cd: slot.cd };
        let mut all: Vec<_> = self.slots().map(|s| s.map(|s| (position(s), s))).collect::<Result<_>>()?;
        all.sort_by_key(|(at, _)| *at);
        Ok(all)
    }

    /// The cds of the entries that share this hash.
    pub fn cds_of(&self, hash: u64) -> Result<Vec<u32>> {
        let rules = &self.rules;
        let mut cds = Vec::new();
        for slot in self.slots() {
            let slot = slot?;
            if rules.hash(Key::Name(slot.name)) == hash {
                cds.push(slot.cd);
            }
        }
        Ok(cds)
    }

    pub fn is_full(&self) -> bool {
        (0..self.slot_count()).all(|i| !self.is_free(i))
    }

    /// The same entries in a larger block.
    pub fn grown(&self, size: usize) -> Micro<IoBuf> {
        let mut bytes = IoBuf::zeroed(size);
        bytes[..self.bytes.len()].copy_from_slice(&self.bytes);
        Micro { bytes, rules: self.rules }
    }
}

impl Micro<world::Buf> {
    /// For changing: the block itself when nobody else holds it, else a copy.
    pub fn into_mut(self) -> Micro<IoBuf> {
        Micro { bytes: self.bytes.into_mut(), rules: self.rules }
    }
}

impl<B: DerefMut<Target = [u8]>> Micro<B> {
    fn slot_bytes_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.bytes[(index + 1) * SLOT..(index + 2) * SLOT]
    }

    /// Fills the first free slot. The caller has made sure that there is one and that the name is new and fits.
    pub fn add(&mut self, name: &[u8], cd: u32, value: u64) {
        let free = (0..self.slot_count()).find(|i| self.is_free(*i)).expect("the caller saw a free slot");
        let entry = MicroEntry { value, differentiator: cd, name: name.to_vec() };
        entry.encode(&mut Writer::new(self.slot_bytes_mut(free), Endian::Little));
    }

    pub fn set(&mut self, index: usize, value: u64) {
        le::put_u64(self.slot_bytes_mut(index), 0, value);
    }

    pub fn clear(&mut self, index: usize) {
        self.slot_bytes_mut(index).fill(0);
    }
}

impl Micro<IoBuf> {
    pub fn freeze(self) -> world::Buf {
        self.bytes.freeze()
    }
}

/// The lowest differentiator that is not taken.
pub(crate) fn lowest_free_cd(mut taken: Vec<u32>) -> u32 {
    taken.sort_unstable();
    taken.dedup();
    taken.iter().zip(0..).take_while(|(cd, expected)| **cd == *expected).count() as u32
}
