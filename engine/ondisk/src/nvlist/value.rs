//! The values a pair can have, and their type codes.

use super::NvList;

/// The value of a pair. Types are part of the format: a reader that looks for a `Uint64` finds no `Int64`.
#[derive(Clone, Debug, PartialEq)]
pub enum NvValue {
    /// No value: the name alone says it.
    Boolean,
    BooleanValue(bool),
    Byte(u8),
    Int8(i8),
    Uint8(u8),
    Int16(i16),
    Uint16(u16),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Double(f64),
    /// Nanoseconds.
    HrTime(i64),
    /// Bytes that are not UTF-8 were replaced while reading.
    String(String),
    List(NvList),
    BooleanArray(Vec<bool>),
    ByteArray(Vec<u8>),
    Int8Array(Vec<i8>),
    Uint8Array(Vec<u8>),
    Int16Array(Vec<i16>),
    Uint16Array(Vec<u16>),
    Int32Array(Vec<i32>),
    Uint32Array(Vec<u32>),
    Int64Array(Vec<i64>),
    Uint64Array(Vec<u64>),
    StringArray(Vec<String>),
    ListArray(Vec<NvList>),
}

/// The type codes on disk (`DATA_TYPE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Code {
    Boolean = 1,
    Byte = 2,
    Int16 = 3,
    Uint16 = 4,
    Int32 = 5,
    Uint32 = 6,
    Int64 = 7,
    Uint64 = 8,
    String = 9,
    ByteArray = 10,
    Int16Array = 11,
    Uint16Array = 12,
    Int32Array = 13,
    Uint32Array = 14,
    Int64Array = 15,
    Uint64Array = 16,
    StringArray = 17,
    HrTime = 18,
    List = 19,
    ListArray = 20,
    BooleanValue = 21,
    Int8 = 22,
    Uint8 = 23,
    BooleanArray = 24,
    Int8Array = 25,
    Uint8Array = 26,
    Double = 27,
}

impl Code {
    pub(super) fn from_code(code: u32) -> Option<Code> {
        use Code::*;
        [
            Boolean,
            Byte,
            Int16,
            Uint16,
            Int32,
            Uint32,
            Int64,
            Uint64,
            String,
            ByteArray,
            Int16Array,
            Uint16Array,
            Int32Array,
            Uint32Array,
            Int64Array,
            Uint64Array,
            StringArray,
            HrTime,
            List,
            ListArray,
            BooleanValue,
            Int8,
            Uint8,
            BooleanArray,
            Int8Array,
            Uint8Array,
            Double,
        ]
        .into_iter()
        .find(|c| *c as u32 == code)
    }

    pub(super) fn is_array(self) -> bool {
        use Code::*;
        matches!(
            self,
            ByteArray
                | Int16Array
                | Uint16Array
                | Int32Array
                | Uint32Array
                | Int64Array
                | Uint64Array
                | StringArray
                | ListArray
                | BooleanArray
                | Int8Array
                | Uint8Array
        )
    }
}

impl NvValue {
    pub(super) fn code(&self) -> Code {
        match self {
            NvValue::Boolean => Code::Boolean,
            NvValue::BooleanValue(_) => Code::BooleanValue,
            NvValue::Byte(_) => Code::Byte,
            NvValue::Int8(_) => Code::Int8,
            NvValue::Uint8(_) => Code::Uint8,
            NvValue::Int16(_) => Code::Int16,
            NvValue::Uint16(_) => Code::Uint16,
            NvValue::Int32(_) => Code::Int32,
            NvValue::Uint32(_) => Code::Uint32,
            NvValue::Int64(_) => Code::Int64,
            NvValue::Uint64(_) => Code::Uint64,
            NvValue::Double(_) => Code::Double,
            NvValue::HrTime(_) => Code::HrTime,
            NvValue::String(_) => Code::String,
            NvValue::List(_) => Code::List,
            NvValue::BooleanArray(_) => Code::BooleanArray,
            NvValue::ByteArray(_) => Code::ByteArray,
            NvValue::Int8Array(_) => Code::Int8Array,
            NvValue::Uint8Array(_) => Code::Uint8Array,
            NvValue::Int16Array(_) => Code::Int16Array,
            NvValue::Uint16Array(_) => Code::Uint16Array,
            NvValue::Int32Array(_) => Code::Int32Array,
            NvValue::Uint32Array(_) => Code::Uint32Array,
            NvValue::Int64Array(_) => Code::Int64Array,
            NvValue::Uint64Array(_) => Code::Uint64Array,
            NvValue::StringArray(_) => Code::StringArray,
            NvValue::ListArray(_) => Code::ListArray,
        }
    }

    /// What stands in the count of the pair: 0 for a bare name, 1 for a single value.
    pub(super) fn count(&self) -> usize {
        match self {
            NvValue::Boolean => 0,
            NvValue::BooleanArray(v) => v.len(),
            NvValue::ByteArray(v) | NvValue::Uint8Array(v) => v.len(),
            NvValue::Int8Array(v) => v.len(),
            NvValue::Int16Array(v) => v.len(),
            NvValue::Uint16Array(v) => v.len(),
            NvValue::Int32Array(v) => v.len(),
            NvValue::Uint32Array(v) => v.len(),
            NvValue::Int64Array(v) => v.len(),
            NvValue::Uint64Array(v) => v.len(),
            NvValue::StringArray(v) => v.len(),
            NvValue::ListArray(v) => v.len(),
            _ => 1,
        }
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for NvValue {
            fn from(value: $from) -> NvValue {
                NvValue::$variant(value.into())
            }
        })*
    };
}

from! {
    u64 => Uint64, i64 => Int64, u32 => Uint32, i32 => Int32, bool => BooleanValue,
    &str => String, String => String, NvList => List, Vec<NvList> => ListArray,
    Vec<u64> => Uint64Array, Vec<String> => StringArray, Vec<u8> => Uint8Array,
}

impl From<units::Guid> for NvValue {
    fn from(guid: units::Guid) -> NvValue {
        NvValue::Uint64(guid.0)
    }
}

impl From<units::Txg> for NvValue {
    fn from(txg: units::Txg) -> NvValue {
        NvValue::Uint64(txg.0)
    }
}
