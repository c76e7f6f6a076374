//! From bytes to values. Pure.

use super::tables::Registered;
use super::{Attr, Tables, legacy};
use crate::attributes::MAGIC;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use units::{Endian, Error, Result};

/// The fixed part of a header: magic, and layout with size.
const HEADER: usize = 6;

/// As many attributes as a file has in general: these need no memory of their own.
const USUAL: usize = 18;

/// The attributes of one file, in the order in which they are stored.
///
/// What has been decoded stays where it is: the bonus is shared with the object, until a value is changed.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// A bonus with its header, in the byte order of this machine; or nothing.
    bonus: Arc<[u8]>,
    /// What is elsewhere: from a spill block or of the other byte order; set, with another length than it had.
    more: Vec<u8>,
    values: SmallVec<[Value; USUAL]>,
    /// The bonus holds all of the values, in this order.
    is_bonus: bool,
    /// The byte order that ACLs are still in; all else was turned over.
    acl_order: Option<Endian>,
}

#[derive(Clone, Copy, Debug)]
struct Value {
    number: u16,
    attr: Option<Attr>,
    len: u16,
    /// Its first byte in the bonus, or behind that in what is more.
    at: u32,
}

impl Attributes {
    /// None, and room for those of a new file.
    pub fn of_new_file() -> Attributes {
        Attributes { more: Vec::with_capacity(320), ..Attributes::default() }
    }

    /// Those in a bonus.
    pub fn decode(bonus: Arc<[u8]>, tables: &Tables) -> Result<Attributes> {
        let mut attributes = Attributes::default();
        let order = attributes.find(&bonus, tables, |attributes, number, row, order, at| {
            if order == Endian::NATIVE {
                let (at, len) = (at.start as u32, at.len() as u16);
                attributes.values.push(Value { number, attr: row.attr, len, at });
            } else {
                attributes.push(number, row.attr, &bonus[at], row.word);
            }
        })?;
        if order == Endian::NATIVE {
            (attributes.bonus, attributes.is_bonus) = (bonus, true);
        }
        Ok(attributes)
    }

    /// Those in a bonus of before version 5.
    pub fn decode_znode(bonus: &[u8]) -> Result<Attributes> {
        legacy::decode(bonus)
    }

    /// Adds those in a spill block.
    pub fn decode_more(&mut self, spill: &[u8], tables: &Tables) -> Result<()> {
        self.find(spill, tables, |attributes, number, row, order, at| {
            attributes.push(number, row.attr, &spill[at], if order == Endian::NATIVE { 1 } else { row.word });
        })?;
        Ok(())
    }

    /// Where the values lie in a bonus or spill block, each with its number; and the byte order of that.
    fn find(
        &mut self,
        bytes: &[u8],
        tables: &Tables,
        mut found: impl FnMut(&mut Attributes, u16, &Registered, Endian, Range<usize>),
    ) -> Result<Endian> {
        let Header { order, layout, size } = Header::decode(bytes)?;
        let unknown =
            || Error::corrupt(format!("system attributes of layout {layout}, which the table lacks"));
        let list = tables.layout(layout).ok_or_else(unknown)?;
        let lengths = bytes.get(HEADER..size).unwrap_or_default();
        let mut lengths = lengths.as_chunks::<2>().0.iter();
        let mut at = size;
        for &number in list.iter() {
            let row = tables.row(number).ok_or_else(unknown)?;
            let name = || row.attr.map_or_else(|| format!("{number}"), |attr| attr.name().into());
            let length = match row.length {
                0 => {
                    let missing = || Error::corrupt(format!("attribute {}: its length is missing", name()));
                    order_u16(lengths.next().copied().ok_or_else(missing)?, order)
                }
                fixed => fixed,
            };
            let end = at + usize::from(length);
            if end > bytes.len() {
                let room = bytes.len().saturating_sub(at);
                let what = format!("attribute {}: {length} bytes where {room} are left", name());
                return Err(Error::corrupt(what));
            }
            found(self, number, row, order, at..end);
            at = end.next_multiple_of(8);
        }
        self.acl_order = Some(order);
        Ok(order)
    }

    /// Appends a value whose words, of so many bytes each, are to be turned over.
    pub(super) fn push(&mut self, number: u16, attr: Option<Attr>, value: &[u8], word: usize) {
        let start = self.more.len();
        self.more.extend_from_slice(value);
        if word > 1 {
            self.more[start..].chunks_exact_mut(word).for_each(<[u8]>::reverse);
        }
        self.values.push(Value { number, attr, len: value.len() as u16, at: self.place_in_more(start) });
        self.is_bonus = false;
    }

    fn place_in_more(&self, start: usize) -> u32 {
        (self.bonus.len() + start) as u32
    }

    fn value(&self, value: Value) -> &[u8] {
        let (at, len) = (value.at as usize, usize::from(value.len));
        match at.checked_sub(self.bonus.len()) {
            Some(at) if len > 0 => &self.more[at..at + len],
            _ => &self.bonus[at.min(self.bonus.len())..][..len],
        }
    }

    pub(super) fn set_acl_order(&mut self, order: Endian) {
        self.acl_order = Some(order);
    }

    pub fn acl_order(&self) -> Endian {
        self.acl_order.unwrap_or(Endian::NATIVE)
    }

    /// The value of an attribute, if the file has it.
    pub fn bytes(&self, attr: Attr) -> Option<&[u8]> {
        let value = self.values.iter().find(|value| value.attr == Some(attr))?;
        Some(self.value(*value))
    }

    pub fn has(&self, attr: Attr) -> bool {
        self.bytes(attr).is_some()
    }

    /// The words of an attribute that has so many.
    pub fn words<const N: usize>(&self, attr: Attr) -> Result<Option<[u64; N]>> {
        let Some(bytes) = self.bytes(attr) else { return Ok(None) };
        let (words, rest) = bytes.as_chunks::<8>();
        let wrong = || Error::corrupt(format!("attribute {}: {} bytes", attr.name(), bytes.len()));
        let words: &[[u8; 8]; N] = words.try_into().map_err(|_| wrong())?;
        if rest.is_empty() { Ok(Some(words.map(u64::from_ne_bytes))) } else { Err(wrong()) }
    }

    /// The one word of an attribute.
    pub fn word(&self, attr: Attr) -> Result<Option<u64>> {
        Ok(self.words::<1>(attr)?.map(|[word]| word))
    }

    /// The one word of an attribute that every file has.
    pub fn require(&self, attr: Attr) -> Result<u64> {
        self.word(attr)?.ok_or_else(|| Error::corrupt(format!("attribute {}: it is missing", attr.name())))
    }

    /// Each number with its value, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.values.iter().map(|value| (value.number, self.value(*value)))
    }

    /// The bonus that holds them all as they are, if there is one.
    pub(super) fn as_bonus(&self) -> Option<&Arc<[u8]>> {
        Some(&self.bonus).filter(|_| self.is_bonus)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }

    /// Puts a value in the place of the old one, or behind all others.
    pub(super) fn replace(&mut self, number: u16, attr: Attr, value: &[u8]) {
        self.room_for(number, attr, value.len()).copy_from_slice(value);
    }

    /// Where a value of so many bytes goes: in the place of the old one, or behind all others.
    pub(super) fn room_for(&mut self, number: u16, attr: Attr, len: usize) -> &mut [u8] {
        let old = self.values.iter().position(|value| value.number == number);
        let at = match old {
            Some(old) if usize::from(self.values[old].len) == len => self.values[old].at as usize,
            _ => {
                let (start, attr) = (self.more.len(), Some(attr));
                self.more.resize(start + len, 0);
                let value = Value { number, attr, len: len as u16, at: self.place_in_more(start) };
                match old {
                    Some(old) => self.values[old] = value,
                    None => self.values.push(value),
                }
                self.is_bonus = false;
                value.at as usize
            }
        };
        match at.checked_sub(self.bonus.len()) {
            Some(at) => &mut self.more[at..at + len],
            None => &mut Arc::make_mut(&mut self.bonus)[at..at + len],
        }
    }

    /// Puts a value behind another one's place, or in the place of its own old one.
    pub(super) fn place_behind(&mut self, other: Attr, number: u16, attr: Attr, value: &[u8]) {
        self.replace(number, attr, value);
        let Some(at) = self.values.iter().position(|value| value.attr == Some(attr)) else { return };
        self.is_bonus = false;
        let value = self.values.remove(at);
        let behind = self.values.iter().position(|value| value.attr == Some(other)).map_or(at, |at| at + 1);
        self.values.insert(behind.min(self.values.len()), value);
    }

    pub fn remove(&mut self, attr: Attr) {
        let before = self.values.len();
        self.values.retain(|value| value.attr != Some(attr));
        self.is_bonus &= self.values.len() == before;
    }
}

struct Header {
    order: Endian,
    layout: u16,
    /// Of the header, in bytes.
    size: usize,
}

impl Header {
    fn decode(bytes: &[u8]) -> Result<Header> {
        let short = || Error::corrupt(format!("system attributes: {} bytes are no header", bytes.len()));
        let head: &[u8; 8] = bytes.first_chunk().ok_or_else(short)?;
        let magic = [head[0], head[1], head[2], head[3]];
        let order = if magic == MAGIC.to_le_bytes() {
            Endian::Little
        } else if magic == MAGIC.to_be_bytes() {
            Endian::Big
        } else {
            return Err(Error::corrupt(format!("system attributes: magic {magic:02x?}")));
        };
        let info = order_u16([head[4], head[5]], order);
        let size = usize::from(info >> 10) * 8;
        if size < 8 || size > bytes.len() {
            return Err(Error::corrupt(format!(
                "system attributes: a header of {size} bytes in {} bytes",
                bytes.len()
            )));
        }
        Ok(Header { order, layout: info & 0x3ff, size })
    }
}

fn order_u16(bytes: [u8; 2], order: Endian) -> u16 {
    match order {
        Endian::Little => u16::from_le_bytes(bytes),
        Endian::Big => u16::from_be_bytes(bytes),
    }
}
