//! The cursor every decoder reads through, and the one every encoder writes through.
//!
//! A [`Reader`] trusts nothing: whatever is asked for beyond its slice becomes an error that names the structure
//! being read and the offset. A [`Writer`] works for us and asserts that its slice is large enough.

use std::fmt;
use units::{Endian, Error, Result};

/// Reads integers of one byte order from a slice, in turn. See the module.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    endian: Endian,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// `what` names the structure in errors: "uberblock".
    pub fn new(bytes: &'a [u8], endian: Endian, what: &'static str) -> Reader<'a> {
        Reader { bytes, at: 0, endian, what }
    }

    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// How many bytes have been read.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The next `n` bytes as they are.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let taken = self.at.checked_add(n).and_then(|end| self.bytes.get(self.at..end));
        let Some(taken) = taken else {
            return Err(self.corrupt(format_args!(
                "needs {n} bytes at offset {}, but only {} are left",
                self.at,
                self.remaining()
            )));
        };
        self.at += n;
        Ok(taken)
    }

    /// The next `N` bytes as they are.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        Ok(bytes.try_into().expect("N bytes were taken"))
    }

    pub fn skip(&mut self, n: usize) -> Result<()> {
        self.bytes(n).map(drop)
    }

    /// Everything not yet read.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    /// A reader over the next `n` bytes, in the same order, for a structure within this one.
    pub fn within(&mut self, n: usize, what: &'static str) -> Result<Reader<'a>> {
        Ok(Reader::new(self.bytes(n)?, self.endian, what))
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[b]| b)
    }

    pub fn u16(&mut self) -> Result<u16> {
        let raw = self.array()?;
        Ok(match self.endian {
            Endian::Little => u16::from_le_bytes(raw),
            Endian::Big => u16::from_be_bytes(raw),
        })
    }

    pub fn u32(&mut self) -> Result<u32> {
        let raw = self.array()?;
        Ok(match self.endian {
            Endian::Little => u32::from_le_bytes(raw),
            Endian::Big => u32::from_be_bytes(raw),
        })
    }

    pub fn u64(&mut self) -> Result<u64> {
        let raw = self.array()?;
        Ok(match self.endian {
            Endian::Little => u64::from_le_bytes(raw),
            Endian::Big => u64::from_be_bytes(raw),
        })
    }

    pub fn u64s<const N: usize>(&mut self) -> Result<[u64; N]> {
        // Taken at once: what is within has no bounds to be asked.
        let (raw, _) = self.bytes(N * size_of::<u64>())?.as_chunks();
        let mut words = [0; N];
        for (word, &raw) in words.iter_mut().zip(raw) {
            *word = match self.endian {
                Endian::Little => u64::from_le_bytes(raw),
                Endian::Big => u64::from_be_bytes(raw),
            };
        }
        Ok(words)
    }

    /// The error for a field of this structure that makes no sense: "dnode: 9 block pointers".
    pub fn corrupt(&self, problem: impl fmt::Display) -> Error {
        Error::corrupt(format!("{}: {problem}", self.what))
    }
}

/// Writes integers of one byte order into a slice, in turn.
///
/// Every method panics when the slice is too small: its size is our own arithmetic, never a disk's.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
    endian: Endian,
}

impl<'a> Writer<'a> {
    pub fn new(bytes: &'a mut [u8], endian: Endian) -> Writer<'a> {
        Writer { bytes, at: 0, endian }
    }

    /// A writer in the order in which we write everything.
    pub fn native(bytes: &'a mut [u8]) -> Writer<'a> {
        Writer::new(bytes, Endian::NATIVE)
    }

    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// How many bytes have been written.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, n: usize) -> &mut [u8] {
        let at = self.at;
        self.at += n;
        self.bytes.get_mut(at..at + n).expect("the slice given to the writer holds the structure")
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.take(bytes.len()).copy_from_slice(bytes);
    }

    /// Padding.
    pub fn zeros(&mut self, n: usize) {
        self.take(n).fill(0);
    }

    /// Zeros up to offset `end`, which must not have been passed.
    pub fn pad_to(&mut self, end: usize) {
        let n = end.checked_sub(self.at).expect("fields end before the padding starts");
        self.zeros(n);
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub fn u16(&mut self, value: u16) {
        match self.endian {
            Endian::Little => self.bytes(&value.to_le_bytes()),
            Endian::Big => self.bytes(&value.to_be_bytes()),
        }
    }

    pub fn u32(&mut self, value: u32) {
        match self.endian {
            Endian::Little => self.bytes(&value.to_le_bytes()),
            Endian::Big => self.bytes(&value.to_be_bytes()),
        }
    }

    pub fn u64(&mut self, value: u64) {
        match self.endian {
            Endian::Little => self.bytes(&value.to_le_bytes()),
            Endian::Big => self.bytes(&value.to_be_bytes()),
        }
    }

    pub fn u64s(&mut self, values: &[u64]) {
        for &value in values {
            self.u64(value);
        }
    }
}

/// The bits `low..low + width` of a word, as the drawings number them.
pub(crate) fn bits(word: u64, low: u32, width: u32) -> u64 {
    (word >> low) & ((1 << width) - 1)
}

/// `value` at bit `low`; it must fit `width` bits, or it would change its neighbours.
pub(crate) fn place(value: u64, low: u32, width: u32) -> u64 {
    assert!(value >> width == 0, "{value:#x} does not fit a field of {width} bits");
    value << low
}

/// `from_bonus` and `to_bonus` for a structure of fixed size with `decode` and `encode`.
macro_rules! bonus {
    ($type:ty, $what:literal) => {
        impl $type {
            pub fn from_bonus(bonus: &[u8]) -> units::Result<$type> {
                <$type>::decode(&mut crate::Reader::new(bonus, units::Endian::NATIVE, $what))
            }

            pub fn to_bonus(&self) -> Vec<u8> {
                let mut bonus = vec![0; <$type>::SIZE];
                self.encode(&mut crate::Writer::native(&mut bonus));
                bonus
            }
        }
    };
}
pub(crate) use bonus;

#[cfg(test)]
mod tests {
    use super::*;
    use units::Kind;

    #[test]
    fn reading_past_the_end_names_the_structure_and_the_offset() {
        let mut r = Reader::new(&[1, 2, 3], Endian::Little, "label");
        assert_eq!(r.u16().unwrap(), 0x0201);
        let e = r.u64().unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt);
        assert_eq!(e.to_string(), "label: needs 8 bytes at offset 2, but only 1 are left: damaged structure");
        assert_eq!(r.u8().unwrap(), 3, "a failed read takes nothing");
        assert!(r.bytes(usize::MAX).is_err());
    }

    #[test]
    fn both_orders_write_what_they_read() {
        for endian in [Endian::Little, Endian::Big] {
            let mut raw = [0xff; 20];
            let mut w = Writer::new(&mut raw, endian);
            w.u8(1);
            w.u16(0x0203);
            w.u32(0x0405_0607);
            w.u64(0x0809_0a0b_0c0d_0e0f);
            w.pad_to(20);
            let mut r = Reader::new(&raw, endian, "test");
            assert_eq!(r.u8().unwrap(), 1);
            assert_eq!(r.u16().unwrap(), 0x0203);
            assert_eq!(r.u32().unwrap(), 0x0405_0607);
            assert_eq!(r.u64().unwrap(), 0x0809_0a0b_0c0d_0e0f);
            assert_eq!(r.rest(), [0; 5]);
        }
    }
}
