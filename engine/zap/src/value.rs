//! What an entry holds: an array of integers of one size.

use crate::key::OwnedKey;
pub use ondisk::zap::VALUE_MAX;
use std::borrow::Cow;
use units::{Error, Result};

/// Integers of 1, 2, 4 or 8 bytes. A micro ZAP holds single 64-bit ones only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::U64(vec![value])
    }
}

impl From<&[u64]> for Value {
    fn from(values: &[u64]) -> Value {
        Value::U64(values.to_vec())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Value {
        Value::U8(bytes.to_vec())
    }
}

impl Value {
    /// A string as properties store it: with a NUL behind.
    pub fn text(text: &str) -> Value {
        Value::U8([text.as_bytes(), &[0]].concat())
    }

    /// The size of one integer in bytes.
    pub fn int_size(&self) -> usize {
        match self {
            Value::U8(_) => 1,
            Value::U16(_) => 2,
            Value::U32(_) => 4,
            Value::U64(_) => 8,
        }
    }

    /// How many integers there are.
    pub fn len(&self) -> usize {
        match self {
            Value::U8(v) => v.len(),
            Value::U16(v) => v.len(),
            Value::U32(v) => v.len(),
            Value::U64(v) => v.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a single integer, of whatever size.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::U8(v) if v.len() == 1 => Some(v[0].into()),
            Value::U16(v) if v.len() == 1 => Some(v[0].into()),
            Value::U32(v) if v.len() == 1 => Some(v[0].into()),
            Value::U64(v) if v.len() == 1 => Some(v[0]),
            _ => None,
        }
    }

    /// The 64-bit integers, when it is made of such.
    pub fn as_u64s(&self) -> Option<&[u64]> {
        if let Value::U64(v) = self { Some(v) } else { None }
    }

    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Value::U8(v) = self { Some(v) } else { None }
    }

    /// The text before the first NUL, when it is made of bytes and is UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?.split(|b| *b == 0).next()?).ok()
    }

    /// The one integer a micro ZAP could hold.
    pub(crate) fn micro(&self) -> Option<u64> {
        if let Value::U64(v) = self
            && v.len() == 1
        {
            Some(v[0])
        } else {
            None
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let bytes = self.len() * self.int_size();
        if bytes > VALUE_MAX {
            return Err(Error::invalid(format!(
                "a ZAP value has at most {VALUE_MAX} bytes; this one has {bytes}"
            )));
        }
        Ok(())
    }

    /// The bytes of a leaf's array: each integer with its high byte first.
    pub(crate) fn to_stored(&self) -> Cow<'_, [u8]> {
        match self {
            Value::U8(v) => Cow::Borrowed(v),
            Value::U16(v) => v.iter().flat_map(|i| i.to_be_bytes()).collect(),
            Value::U32(v) => v.iter().flat_map(|i| i.to_be_bytes()).collect(),
            Value::U64(v) => v.iter().flat_map(|i| i.to_be_bytes()).collect(),
        }
    }

    /// `None` when there are no integers of that size.
    pub(crate) fn from_stored(bytes: Vec<u8>, int_size: u8) -> Option<Value> {
        Some(match int_size {
            1 => Value::U8(bytes),
            2 => Value::U16(ints(&bytes, u16::from_be_bytes)),
            4 => Value::U32(ints(&bytes, u32::from_be_bytes)),
            8 => Value::U64(ints(&bytes, u64::from_be_bytes)),
            _ => return None,
        })
    }
}

fn ints<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|b| read(b.try_into().expect("N bytes"))).collect()
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: OwnedKey,
    pub value: Value,
}

impl Entry {
    /// The name for people and for code that knows its names to be UTF-8; empty when the key is not a name.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.key {
            OwnedKey::Name(name) => String::from_utf8_lossy(name),
            OwnedKey::Words(_) => Cow::Borrowed(""),
        }
    }
}

/// What a lookup by normalised form found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name as it is stored.
    pub name: Vec<u8>,
    pub value: Value,
    /// Another stored name has the same normalised form, so that only an exact lookup is unambiguous.
    pub is_ambiguous: bool,
}
