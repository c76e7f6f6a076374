//! From a list to packed bytes, exactly as OpenZFS packs.

use super::decode::padding;
use super::{NvList, NvValue};

/// Packed by a machine of our byte order. XDR itself has one order; this byte is a mere note.
const LITTLE_ENDIAN_HOST: u8 = 1;
const ENCODING_XDR: u8 = 1;

impl NvList {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![ENCODING_XDR, LITTLE_ENDIAN_HOST, 0, 0];
        put_list(&mut out, self);
        out
    }

    /// How many bytes [`NvList::encode`] yields.
    pub fn encoded_size(&self) -> usize {
        4 + list_size(self)
    }
}

fn put_list(out: &mut Vec<u8>, list: &NvList) {
    put_u32(out, list.version as u32);
    put_u32(out, list.flags);
    for (name, value) in &list.pairs {
        put_u32(out, pair_size(name, value) as u32);
        put_u32(out, pair_size_in_memory(name, value) as u32);
        put_string(out, name);
        put_u32(out, value.code() as u32);
        put_u32(out, value.count() as u32);
        put_value(out, value);
    }
    put_u64(out, 0);
}

fn list_size(list: &NvList) -> usize {
    16 + list.pairs.iter().map(|(name, value)| 16 + string_size(name) + data_size(value)).sum::<usize>()
}

/// What OpenZFS states as the size of the pair. It counts four bytes for the count within an array even when the
/// array is empty and that count is left out.
fn pair_size(name: &str, value: &NvValue) -> usize {
    let missing = if value.count() == 0 && has_inner_count(value) { 4 } else { 0 };
    16 + string_size(name) + data_size(value) + missing
}

/// What OpenZFS allocates: a header of 16 bytes with the name, then the value, each rounded up to eight.
pub(super) fn pair_size_in_memory(name: &str, value: &NvValue) -> usize {
    (16 + name.len() + 1).next_multiple_of(8) + value_size_in_memory(value).next_multiple_of(8)
}

fn value_size_in_memory(value: &NvValue) -> usize {
    let count = value.count();
    match value {
        NvValue::Boolean => 0,
        NvValue::Byte(_) | NvValue::Int8(_) | NvValue::Uint8(_) => 1,
        NvValue::Int16(_) | NvValue::Uint16(_) => 2,
        NvValue::BooleanValue(_) | NvValue::Int32(_) | NvValue::Uint32(_) => 4,
        NvValue::Int64(_) | NvValue::Uint64(_) | NvValue::Double(_) | NvValue::HrTime(_) => 8,
        NvValue::String(s) => s.len() + 1,
        NvValue::List(_) => LIST_IN_MEMORY,
        NvValue::ByteArray(_) | NvValue::Int8Array(_) | NvValue::Uint8Array(_) => count,
        NvValue::Int16Array(_) | NvValue::Uint16Array(_) => 2 * count,
        NvValue::BooleanArray(_) | NvValue::Int32Array(_) | NvValue::Uint32Array(_) => 4 * count,
        NvValue::Int64Array(_) | NvValue::Uint64Array(_) => 8 * count,
        // An array of pointers, then what they point to.
        NvValue::StringArray(v) => 8 * count + v.iter().map(|s| s.len() + 1).sum::<usize>(),
        NvValue::ListArray(_) => (8 + LIST_IN_MEMORY) * count,
    }
}

/// The head of a list, without its pairs.
pub(super) const LIST_IN_MEMORY: usize = 24;

fn string_size(s: &str) -> usize {
    4 + s.len() + padding(s.len())
}

fn has_inner_count(value: &NvValue) -> bool {
    use NvValue::*;
    value.code().is_array() && !matches!(value, ByteArray(_) | StringArray(_) | ListArray(_))
}

fn data_size(value: &NvValue) -> usize {
    let count = value.count();
    let inner_count = if has_inner_count(value) && count > 0 { 4 } else { 0 };
    inner_count
        + match value {
            NvValue::Boolean => 0,
            NvValue::Int64(_) | NvValue::Uint64(_) | NvValue::Double(_) | NvValue::HrTime(_) => 8,
            NvValue::String(s) => string_size(s),
            NvValue::List(list) => list_size(list),
            NvValue::ByteArray(v) => v.len() + padding(v.len()),
            NvValue::Int64Array(_) | NvValue::Uint64Array(_) => 8 * count,
            NvValue::StringArray(v) => v.iter().map(|s| string_size(s)).sum(),
            NvValue::ListArray(v) => v.iter().map(list_size).sum(),
            _ => 4 * count,
        }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_opaque(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.resize(out.len() + padding(bytes.len()), 0);
}

fn put_string(out: &mut Vec<u8>, s: &str) {
    put_u32(out, s.len() as u32);
    put_opaque(out, s.as_bytes());
}

fn put_counted<T>(out: &mut Vec<u8>, values: &[T], mut one: impl FnMut(&mut Vec<u8>, &T)) {
    if values.is_empty() {
        return;
    }
    put_u32(out, values.len() as u32);
    for value in values {
        one(out, value);
    }
}

/// Integers shorter than four bytes are extended by zeros, even signed ones: the OpenZFS kernel refuses others.
fn put_value(out: &mut Vec<u8>, value: &NvValue) {
    match value {
        NvValue::Boolean => {}
        NvValue::BooleanValue(v) => put_u32(out, (*v).into()),
        NvValue::Byte(v) | NvValue::Uint8(v) => put_u32(out, (*v).into()),
        NvValue::Int8(v) => put_u32(out, (*v as u8).into()),
        NvValue::Int16(v) => put_u32(out, (*v as u16).into()),
        NvValue::Uint16(v) => put_u32(out, (*v).into()),
        NvValue::Int32(v) => put_u32(out, *v as u32),
        NvValue::Uint32(v) => put_u32(out, *v),
        NvValue::Int64(v) | NvValue::HrTime(v) => put_u64(out, *v as u64),
        NvValue::Uint64(v) => put_u64(out, *v),
        NvValue::Double(v) => put_u64(out, v.to_bits()),
        NvValue::String(v) => put_string(out, v),
        NvValue::List(v) => put_list(out, v),
        NvValue::ByteArray(v) => put_opaque(out, v),
        NvValue::BooleanArray(v) => put_counted(out, v, |out, v| put_u32(out, (*v).into())),
        NvValue::Int8Array(v) => put_counted(out, v, |out, v| put_u32(out, (*v as u8).into())),
        NvValue::Uint8Array(v) => put_counted(out, v, |out, v| put_u32(out, (*v).into())),
        NvValue::Int16Array(v) => put_counted(out, v, |out, v| put_u32(out, (*v as u16).into())),
        NvValue::Uint16Array(v) => put_counted(out, v, |out, v| put_u32(out, (*v).into())),
        NvValue::Int32Array(v) => put_counted(out, v, |out, v| put_u32(out, *v as u32)),
        NvValue::Uint32Array(v) => put_counted(out, v, |out, v| put_u32(out, *v)),
        NvValue::Int64Array(v) => put_counted(out, v, |out, v| put_u64(out, *v as u64)),
        NvValue::Uint64Array(v) => put_counted(out, v, |out, v| put_u64(out, *v)),
        NvValue::StringArray(v) => v.iter().for_each(|v| put_string(out, v)),
        NvValue::ListArray(v) => v.iter().for_each(|v| put_list(out, v)),
    }
}
