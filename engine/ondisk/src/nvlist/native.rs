//! Lists in the memory layout of the machine that packed them: the form of history records.
//!
//! ```text
//!   packed   | encoding 0 | byte order | 0 | 0 | version | flags | pair | pair | ... | 0 |
//!   pair     | size | name length (u16) | 0 | count | type | name, 0 | value |      name and value padded to eight
//!   list     as a value 24 bytes: version, flags, and what was a pointer; its pairs follow the pair, then a zero
//!   arrays   of strings and lists: first eight bytes each that were pointers, then the strings or list heads
//! ```
//!
//! Words are of four bytes unless said otherwise, in the order that the second byte names: 1 little, 0 big.

use super::encode::{LIST_IN_MEMORY, pair_size_in_memory};
use super::value::Code;
use super::{MAX_DEPTH, NvList, NvValue};
use crate::bytes::Reader;
use units::{Endian, Result};

const PAIR_HEADER: usize = 16;
const ENCODING_NATIVE: u8 = 0;

impl NvList {
    /// Packs in our own memory layout. Where the form is ours to choose, [`NvList::encode`] is the better one.
    pub fn encode_native(&self) -> Vec<u8> {
        let little = (Endian::NATIVE == Endian::Little).into();
        let mut out = vec![ENCODING_NATIVE, little, 0, 0];
        out.extend(self.version.to_ne_bytes());
        out.extend(self.flags.to_ne_bytes());
        put_pairs(&mut out, self);
        out
    }
}

/// Reads what follows the first four bytes, which gave the order of `r`.
pub(super) fn decode(r: &mut Reader<'_>) -> Result<NvList> {
    let mut list = decode_head(r)?;
    decode_pairs(r, &mut list, 1)?;
    Ok(list)
}

fn decode_head(r: &mut Reader<'_>) -> Result<NvList> {
    Ok(NvList { version: r.u32()? as i32, flags: r.u32()?, pairs: Vec::new() })
}

fn decode_pairs(r: &mut Reader<'_>, list: &mut NvList, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(r.corrupt(format_args!("lists nested deeper than {MAX_DEPTH}")));
    }
    loop {
        let size = r.u32()? as usize;
        if size == 0 {
            return Ok(());
        }
        let rest = size.checked_sub(4).ok_or_else(|| r.corrupt(format_args!("a pair of {size} bytes")))?;
        let mut pair = r.within(rest, "nvlist")?;
        let name_len = usize::from(pair.u16()?);
        pair.skip(2)?;
        let (count, code) = (pair.u32()? as usize, pair.u32()?);
        let name = decode_name(&mut pair, name_len)?;
        let code = Code::from_code(code).ok_or_else(|| pair.corrupt(format_args!("unknown type {code}")))?;
        let value = decode_value(r, &mut pair, code, count, depth);
        list.pairs.push((name.clone(), value.map_err(|e| e.at(format_args!("in pair '{name}'")))?));
    }
}

/// The name with its padding: the value begins at a multiple of eight from the start of the pair.
fn decode_name(pair: &mut Reader<'_>, len: usize) -> Result<String> {
    let Some((0, name)) = pair.bytes(len)?.split_last() else {
        return Err(pair.corrupt("a name without an end"));
    };
    let end = PAIR_HEADER + len;
    pair.skip(end.next_multiple_of(8) - end)?;
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Up to the next zero byte.
fn decode_string(pair: &mut Reader<'_>) -> Result<String> {
    let rest = pair.clone().rest();
    let end = rest.iter().position(|&b| b == 0).ok_or_else(|| pair.corrupt("a string without an end"))?;
    let text = pair.bytes(end)?;
    pair.skip(1)?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn decode_value(
    r: &mut Reader<'_>,
    pair: &mut Reader<'_>,
    code: Code,
    count: usize,
    depth: usize,
) -> Result<NvValue> {
    if !code.is_array() && count != usize::from(code != Code::Boolean) {
        return Err(pair.corrupt(format_args!("{count} values of the single type {code:?}")));
    }
    Ok(match code {
        Code::Boolean => NvValue::Boolean,
        Code::BooleanValue => NvValue::BooleanValue(pair.u32()? != 0),
        Code::Byte => NvValue::Byte(pair.u8()?),
        Code::Int8 => NvValue::Int8(pair.u8()? as i8),
        Code::Uint8 => NvValue::Uint8(pair.u8()?),
        Code::Int16 => NvValue::Int16(pair.u16()? as i16),
        Code::Uint16 => NvValue::Uint16(pair.u16()?),
        Code::Int32 => NvValue::Int32(pair.u32()? as i32),
        Code::Uint32 => NvValue::Uint32(pair.u32()?),
        Code::Int64 => NvValue::Int64(pair.u64()? as i64),
        Code::Uint64 => NvValue::Uint64(pair.u64()?),
        Code::Double => NvValue::Double(f64::from_bits(pair.u64()?)),
        Code::HrTime => NvValue::HrTime(pair.u64()? as i64),
        Code::String => NvValue::String(decode_string(pair)?),
        Code::List => NvValue::List(decode_inner(r, pair, depth)?),
        Code::ListArray => NvValue::ListArray(decode_lists(r, pair, count, depth)?),
        _ => decode_array(pair, code, count)?,
    })
}

fn decode_array(pair: &mut Reader<'_>, code: Code, count: usize) -> Result<NvValue> {
    let p = pair;
    Ok(match code {
        Code::ByteArray => NvValue::ByteArray(p.bytes(count)?.to_vec()),
        Code::Uint8Array => NvValue::Uint8Array(p.bytes(count)?.to_vec()),
        Code::Int8Array => NvValue::Int8Array(repeat(count, || p.u8().map(|v| v as i8))?),
        Code::Int16Array => NvValue::Int16Array(repeat(count, || p.u16().map(|v| v as i16))?),
        Code::Uint16Array => NvValue::Uint16Array(repeat(count, || p.u16())?),
        Code::BooleanArray => NvValue::BooleanArray(repeat(count, || p.u32().map(|v| v != 0))?),
        Code::Int32Array => NvValue::Int32Array(repeat(count, || p.u32().map(|v| v as i32))?),
        Code::Uint32Array => NvValue::Uint32Array(repeat(count, || p.u32())?),
        Code::Int64Array => NvValue::Int64Array(repeat(count, || p.u64().map(|v| v as i64))?),
        Code::Uint64Array => NvValue::Uint64Array(repeat(count, || p.u64())?),
        Code::StringArray => {
            p.skip(count.saturating_mul(8))?;
            NvValue::StringArray(repeat(count, || decode_string(p))?)
        }
        _ => unreachable!("single values and lists are decoded elsewhere"),
    })
}

/// Stops at the first error, so an absurd count ends where the pair does.
fn repeat<T>(count: usize, mut one: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    (0..count).map(|_| one()).collect()
}

/// The head stands in the pair, the pairs of the list behind it.
fn decode_inner(r: &mut Reader<'_>, pair: &mut Reader<'_>, depth: usize) -> Result<NvList> {
    let mut list = decode_head(pair)?;
    pair.skip(LIST_IN_MEMORY - 8)?;
    decode_pairs(r, &mut list, depth + 1)?;
    Ok(list)
}

fn decode_lists(
    r: &mut Reader<'_>,
    pair: &mut Reader<'_>,
    count: usize,
    depth: usize,
) -> Result<Vec<NvList>> {
    pair.skip(count.saturating_mul(8))?;
    repeat(count, || decode_inner(r, pair, depth))
}

fn put_pairs(out: &mut Vec<u8>, list: &NvList) {
    for (name, value) in &list.pairs {
        put_pair(out, name, value);
        match value {
            NvValue::List(inner) => put_pairs(out, inner),
            NvValue::ListArray(inner) => inner.iter().for_each(|list| put_pairs(out, list)),
            _ => {}
        }
    }
    out.extend([0; 4]);
}

fn put_pair(out: &mut Vec<u8>, name: &str, value: &NvValue) {
    assert!(name.len() < i16::MAX as usize, "the length of a name fits its field");
    let start = out.len();
    let size = pair_size_in_memory(name, value);
    out.extend((size as u32).to_ne_bytes());
    out.extend((name.len() as u16 + 1).to_ne_bytes());
    out.extend([0; 2]);
    out.extend((value.count() as u32).to_ne_bytes());
    out.extend((value.code() as u32).to_ne_bytes());
    out.extend(name.as_bytes());
    out.resize(start + (PAIR_HEADER + name.len() + 1).next_multiple_of(8), 0);
    put_value(out, value);
    out.resize(start + size, 0);
}

fn put_value(out: &mut Vec<u8>, value: &NvValue) {
    match value {
        NvValue::Boolean => {}
        NvValue::BooleanValue(v) => out.extend(u32::from(*v).to_ne_bytes()),
        NvValue::Byte(v) | NvValue::Uint8(v) => out.push(*v),
        NvValue::Int8(v) => out.extend(v.to_ne_bytes()),
        NvValue::Int16(v) => out.extend(v.to_ne_bytes()),
        NvValue::Uint16(v) => out.extend(v.to_ne_bytes()),
        NvValue::Int32(v) => out.extend(v.to_ne_bytes()),
        NvValue::Uint32(v) => out.extend(v.to_ne_bytes()),
        NvValue::Int64(v) | NvValue::HrTime(v) => out.extend(v.to_ne_bytes()),
        NvValue::Uint64(v) => out.extend(v.to_ne_bytes()),
        NvValue::Double(v) => out.extend(v.to_ne_bytes()),
        NvValue::String(v) => put_string(out, v),
        NvValue::List(v) => put_head(out, v),
        NvValue::ByteArray(v) | NvValue::Uint8Array(v) => out.extend(v),
        NvValue::BooleanArray(v) => v.iter().for_each(|v| out.extend(u32::from(*v).to_ne_bytes())),
        NvValue::Int8Array(v) => v.iter().for_each(|v| out.extend(v.to_ne_bytes())),
        NvValue::Int16Array(v) => v.iter().for_each(|v| out.extend(v.to_ne_bytes())),
        NvValue::Uint16Array(v) => v.iter().for_each(|v| out.extend(v.to_ne_bytes())),
        NvValue::Int32Array(v) => v.iter().for_each(|v| out.extend(v.to_ne_bytes())),
        NvValue::Uint32Array(v) => v.iter().for_each(|v| out.extend(v.to_ne_bytes())),
        NvValue::Int64Array(v) => v.iter().for_each(|v| out.extend(v.to_ne_bytes())),
        NvValue::Uint64Array(v) => v.iter().for_each(|v| out.extend(v.to_ne_bytes())),
        NvValue::StringArray(v) => {
            put_pointers(out, v.len());
            v.iter().for_each(|v| put_string(out, v));
        }
        NvValue::ListArray(v) => {
            put_pointers(out, v.len());
            v.iter().for_each(|v| put_head(out, v));
        }
    }
}

fn put_string(out: &mut Vec<u8>, s: &str) {
    out.extend(s.as_bytes());
    out.push(0);
}

/// Meaningless once packed.
fn put_pointers(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + 8 * count, 0);
}

fn put_head(out: &mut Vec<u8>, list: &NvList) {
    out.extend(list.version.to_ne_bytes());
    out.extend(list.flags.to_ne_bytes());
    out.extend([0; LIST_IN_MEMORY - 8]);
}
