//! From values to bytes: which go into the bonus and which into the spill block. Pure, but for a layout that is new.
//!
//! ```text
//!   the values have the places and lengths that they had when the bonus was decoded: that bonus, as it is by now
//!   all fit         bonus: all
//!   else            bonus: as many as fit beside a spill pointer, in order; spill block: the rest
//! ```

use super::decode::Attributes;
use super::{Attr, Tables};
use crate::attributes::{MAGIC, REGISTRY};
use dmu::Tx;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use units::{Endian, Error, Result, Txg};
use zap::Value;

/// What a spill pointer takes from the bonus.
const POINTER: usize = 128;
/// A header has room for layouts below this.
const LAYOUTS_MAX: u16 = 1 << 10;

/// A run of values as it will be stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    numbers: Vec<u16>,
    lengths: Vec<u16>,
    /// Each value but the last padded to 8 bytes.
    values: Vec<u8>,
}

/// Bytes of a header with so many lengths.
fn header(lengths: usize) -> usize {
    (6 + 2 * lengths).max(8).next_multiple_of(8)
}

impl Part {
    /// One that will not grow.
    fn with_room(values: usize, bytes: usize) -> Part {
        Part {
            numbers: Vec::with_capacity(values),
            lengths: Vec::new(),
            values: Vec::with_capacity(bytes.next_multiple_of(8)),
        }
    }

    fn header(&self) -> usize {
        header(self.lengths.len())
    }

    fn size(&self) -> usize {
        self.header() + self.values.len()
    }

    /// Its size with one value more.
    fn size_with(&self, is_variable: bool, value: &[u8]) -> usize {
        let lengths = self.lengths.len() + usize::from(is_variable);
        header(lengths) + self.values.len().next_multiple_of(8) + value.len()
    }

    fn push(&mut self, number: u16, is_variable: bool, value: &[u8]) {
        self.values.resize(self.values.len().next_multiple_of(8), 0);
        self.numbers.push(number);
        if is_variable {
            self.lengths.push(value.len() as u16);
        }
        self.values.extend_from_slice(value);
    }

    fn bytes(&self, layout: u16) -> Vec<u8> {
        let header = self.header();
        let mut bytes = Vec::with_capacity(self.size());
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend((layout | ((header / 8) as u16) << 10).to_ne_bytes());
        self.lengths.iter().for_each(|len| bytes.extend(len.to_ne_bytes()));
        bytes.resize(header, 0);
        bytes.extend_from_slice(&self.values);
        bytes
    }
}

/// What goes where: a bonus of at most `room` bytes, and what it has no room for.
fn plan(attributes: &Attributes, tables: &Tables, room: usize) -> Result<(Part, Option<Part>)> {
    let is_variable = |number| tables.row(number).is_none_or(|row| row.length == 0);
    let fill = |room: usize| {
        let (mut bonus, mut rest) = (Part::with_room(attributes.count(), room), Part::default());
        for (number, value) in attributes.iter() {
            let is_variable = is_variable(number);
            // In order: behind the first that does not fit none is tried.
            let fits = rest.numbers.is_empty() && bonus.size_with(is_variable, value) <= room;
            let part = if fits { &mut bonus } else { &mut rest };
            part.push(number, is_variable, value);
        }
        (bonus, rest)
    };
    let (bonus, rest) = fill(room);
    if rest.numbers.is_empty() {
        return Ok((bonus, None));
    }
    let (bonus, rest) = fill(room - POINTER);
    if rest.size() > dmu::SPILL_MAX {
        return Err(crate::Refusal::TooLarge.when("store attributes"));
    }
    Ok((bonus, Some(rest)))
}

/// The bytes of a bonus, and of a spill block if there is to be one.
#[derive(Debug)]
pub struct Encoded {
    pub bonus: Arc<[u8]>,
    pub spill: Option<Vec<u8>>,
}

impl Attributes {
    /// Sets the value of an attribute; one that was not there comes behind the others.
    pub fn set(&mut self, attr: Attr, value: &[u8], tables: &Tables) -> Result<()> {
        self.replace(number_for(attr, value.len(), tables)?, attr, value);
        Ok(())
    }

    /// As [`Attributes::set`], in a certain place: others look for a project behind the count of links.
    pub fn insert_behind(&mut self, other: Attr, attr: Attr, value: &[u8], tables: &Tables) -> Result<()> {
        self.set(attr, value, tables)?;
        let number = tables.number(attr).unwrap_or_default();
        self.place_behind(other, number, attr, value);
        Ok(())
    }

    pub fn set_words(&mut self, attr: Attr, words: &[u64], tables: &Tables) -> Result<()> {
        let number = number_for(attr, 8 * words.len(), tables)?;
        let room = self.room_for(number, attr, 8 * words.len());
        for (to, word) in room.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_ne_bytes();
        }
        Ok(())
    }

    /// The bytes that hold them, in a bonus of at most `room`; layouts that are new come into the table with `tx`.
    pub async fn encode(&self, tables: &Tables, tx: &Tx, room: usize) -> Result<Encoded> {
        if self.acl_order() != Endian::NATIVE {
            return Err(Error::unsupported(
                "changing attributes that a machine of the other byte order wrote",
            ));
        }
        let encoded = match self.as_bonus().filter(|bonus| bonus.len() <= room) {
            Some(bonus) => Encoded { bonus: bonus.clone(), spill: None },
            None => {
                let (bonus, spill) = plan(self, tables, room)?;
                let bonus = bonus.bytes(tables.layout_of(tx, &bonus.numbers).await?).into();
                let spill = match spill {
                    Some(part) => Some(part.bytes(tables.layout_of(tx, &part.numbers).await?)),
                    None => None,
                };
                Encoded { bonus, spill }
            }
        };
        if tx.txg().0 < tables.newest.load(Ordering::Acquire) {
            Box::pin(tables.bring_to(tx)).await?;
        }
        Ok(encoded)
    }
}

/// The number of an attribute that is to have so many bytes.
fn number_for(attr: Attr, len: usize, tables: &Tables) -> Result<u16> {
    let number = tables
        .number(attr)
        .ok_or_else(|| Error::unsupported(format!("the file system has no attribute {}", attr.name())))?;
    let length = usize::from(REGISTRY[attr as usize].length);
    assert!(length == 0 || length == len, "{} has {length} bytes", attr.name());
    if len > usize::from(u16::MAX) {
        return Err(crate::Refusal::TooLarge.when("store attributes"));
    }
    Ok(number)
}

impl Tables {
    /// The number of the layout with these attributes in this order; it is made when there is none.
    async fn layout_of(&self, tx: &Tx, numbers: &[u16]) -> Result<u16> {
        let find = || {
            let layouts = self.lock();
            let found = layouts.iter().find(|(_, list)| list[..] == *numbers).map(|(number, _)| *number);
            found.ok_or_else(|| layouts.keys().last().map_or(2, |last| (last + 1).max(2)))
        };
        if let Ok(number) = find() {
            return Ok(number);
        }
        let Some(zap) = &self.zap else { return Err(Error::unsupported("attributes of an old file system")) };
        let _turn = self.adding.lock().await;
        let number = match find() {
            Ok(number) => return Ok(number),
            Err(number) if number < LAYOUTS_MAX => number,
            Err(_) => return Err(crate::Refusal::TooLarge.when("make one more layout of attributes")),
        };
        zap.insert(tx, &number.to_string(), Value::U16(numbers.to_vec())).await?;
        self.lock().insert(number, numbers.into());
        self.note_made(number, tx);
        Ok(number)
    }

    /// Layouts that a newer txg has made are written with `tx` as well: its txg may be the last that comes to be on disk,
    /// and has files of them.
    async fn bring_to(&self, tx: &Tx) -> Result<()> {
        let Some(zap) = &self.zap else { return Ok(()) };
        let _turn = self.adding.lock().await;
        let is_newer = |(number, txg): (&u16, &Txg)| (*txg > tx.txg()).then_some(*number);
        let newer: Vec<u16> = self.made().iter().filter_map(is_newer).collect();
        for number in newer {
            let Some(list) = self.layout(number) else { continue };
            zap.update(tx, &number.to_string(), Value::U16(list.to_vec())).await?;
            self.note_made(number, tx);
        }
        Ok(())
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<u16, Txg>> {
        // Under this lock a map is read or gets one entry.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_made(&self, number: u16, tx: &Tx) {
        let mut made = self.made();
        made.insert(number, tx.txg());
        let newest = made.values().max().map_or(0, |txg| txg.0);
        self.newest.store(newest, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_beside_a_spill_pointer_is_spilled_in_order() {
        let tables = Tables::none();
        let mut attributes = Attributes::default();
        attributes.set_words(Attr::Mode, &[1], &tables).unwrap();
        attributes.set_words(Attr::Mtime, &[2, 3], &tables).unwrap();
        attributes.set(Attr::Symlink, &[7; 200], &tables).unwrap();
        attributes.set(Attr::Dxattr, &[8; 60], &tables).unwrap();
        let (all, none) = plan(&attributes, &tables, 320).unwrap();
        assert_eq!((all.numbers.as_slice(), none), (&[5, 1, 17, 20][..], None));
        // 16 of header, 8 + 16 + 200 + 60.
        assert_eq!(all.size(), 300);
        attributes.set(Attr::Dxattr, &[8; 90], &tables).unwrap();
        let (bonus, spill) = plan(&attributes, &tables, 320).unwrap();
        assert_eq!((bonus.numbers, spill.unwrap().numbers), (vec![5, 1], vec![17, 20]));
        attributes.set(Attr::Dxattr, &[8; 65_000], &tables).unwrap();
        attributes.set(Attr::DaclAces, &[8; 65_000], &tables).unwrap();
        attributes.set(Attr::Symlink, &[8; 2000], &tables).unwrap();
        assert!(plan(&attributes, &tables, 320).is_err());
    }

    /// Attributes that lie in a bonus are changed at random, beside the same ones that lie nowhere yet. What is encoded
    /// without a plan is what a plan makes of it, and whatever shares the bonus keeps what it had.
    #[test]
    fn attributes_in_a_bonus_are_as_those_that_are_not() {
        let tables = Tables::none();
        let mut as_they_lie = 0;
        for seed in 0..2000u64 {
            let mut state = seed;
            let mut random = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % below
            };
            let value = |attr: Attr, random: &mut dyn FnMut(usize) -> usize| {
                let len = match REGISTRY[attr as usize].length {
                    0 => random(40),
                    fixed => usize::from(fixed),
                };
                (0..len).map(|_| random(256) as u8).collect::<Vec<u8>>()
            };
            let any = |random: &mut dyn FnMut(usize) -> usize| Attr::ALL[random(Attr::ALL.len())];
            let mut model = Attributes::of_new_file();
            for _ in 0..1 + random(25) {
                let attr = any(&mut random);
                model.set(attr, &value(attr, &mut random), &tables).unwrap();
            }
            let (part, _) = plan(&model, &tables, 8192).unwrap();
            tables.lock().insert(9, part.numbers.as_slice().into());
            let bonus: Arc<[u8]> = part.bytes(9).into();
            let mut found = Attributes::decode(bonus.clone(), &tables).unwrap();
            for _ in 0..random(6) {
                let (attr, other) = (any(&mut random), any(&mut random));
                let before = found.clone();
                let kept: Vec<(u16, Vec<u8>)> = before.iter().map(|(n, value)| (n, value.to_vec())).collect();
                let change = random(8);
                let value = value(attr, &mut random);
                for attributes in [&mut model, &mut found] {
                    match change {
                        0 => attributes.remove(attr),
                        1 => attributes.insert_behind(other, attr, &value, &tables).unwrap(),
                        2 => attributes.set(attr, &value, &tables).unwrap(),
                        // As most changes are.
                        _ if attributes.bytes(attr).is_some_and(|old| old.len() == value.len()) => {
                            attributes.set(attr, &value, &tables).unwrap();
                        }
                        _ => {}
                    }
                }
                assert!(found.iter().eq(model.iter()), "seed {seed}");
                assert!(before.iter().eq(kept.iter().map(|(n, value)| (*n, &value[..]))), "seed {seed}");
                if let Some(as_it_lies) = found.as_bonus() {
                    let (part, spill) = plan(&model, &tables, 8192).unwrap();
                    assert_eq!((&as_it_lies[..], spill), (&part.bytes(9)[..], None), "seed {seed}");
                    as_they_lie += 1;
                }
            }
            assert_eq!(&bonus[..], part.bytes(9), "seed {seed}");
        }
        assert!(as_they_lie > 500, "{as_they_lie}");
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let tables = Tables::none();
        let mut attributes = Attributes::default();
        attributes.set_words(Attr::Mode, &[1], &tables).unwrap();
        attributes.set(Attr::Symlink, b"abc", &tables).unwrap();
        attributes.set(Attr::Dxattr, b"defgh", &tables).unwrap();
        let (part, _) = plan(&attributes, &tables, 320).unwrap();
        tables.lock().insert(9, part.numbers.as_slice().into());
        let decoded = Attributes::decode(part.bytes(9).into(), &tables).unwrap();
        assert!(attributes.iter().eq(decoded.iter()));
    }
}
