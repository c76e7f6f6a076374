//! From packed bytes to a list: the XDR form, and the choice between the two.

use super::value::Code;
use super::{MAX_DEPTH, NvList, NvValue, native};
use crate::bytes::Reader;
use units::{Endian, Result};

const WHAT: &str = "nvlist";
const ENCODING_NATIVE: u8 = 0;
const ENCODING_XDR: u8 = 1;

impl NvList {
    /// Unpacks the list at the start of `bytes`; what follows it is not looked at.
    pub fn decode(bytes: &[u8]) -> Result<NvList> {
        NvList::decode_prefix(bytes).map(|(list, _)| list)
    }

    /// The same, and how many bytes it took. Both forms are understood; the first byte tells which it is.
    pub fn decode_prefix(bytes: &[u8]) -> Result<(NvList, usize)> {
        let mut r = Reader::new(bytes, Endian::Big, WHAT);
        match r.array()? {
            [ENCODING_XDR, _endian, _, _] => {
                let list = decode_list(&mut r, 1)?;
                Ok((list, r.position()))
            }
            [ENCODING_NATIVE, ..] if bytes.iter().take(16).all(|&b| b == 0) => {
                Err(r.corrupt("nothing but zeros"))
            }
            [ENCODING_NATIVE, little, _, _] => {
                let order = if little == 1 { Endian::Little } else { Endian::Big };
                let mut r = Reader::new(r.rest(), order, WHAT);
                let list = native::decode(&mut r)?;
                Ok((list, 4 + r.position()))
            }
            [code, ..] => Err(r.corrupt(format_args!("unknown encoding {code}"))),
        }
    }
}

fn decode_list(r: &mut Reader<'_>, depth: usize) -> Result<NvList> {
    if depth > MAX_DEPTH {
        return Err(r.corrupt(format_args!("lists nested deeper than {MAX_DEPTH}")));
    }
    let mut list = NvList { version: r.u32()? as i32, flags: r.u32()?, pairs: Vec::new() };
    loop {
        let (_size_here, size_in_memory) = (r.u32()?, r.u32()?);
        if size_in_memory == 0 {
            return Ok(list);
        }
        let name = decode_string(r)?;
        let value = decode_value(r, depth).map_err(|e| e.at(format_args!("in pair '{name}'")))?;
        list.pairs.push((name, value));
    }
}

/// Cut at the first zero byte, as C would see it.
fn decode_string(r: &mut Reader<'_>) -> Result<String> {
    let len = r.u32()? as usize;
    let bytes = r.bytes(len)?;
    r.skip(padding(len))?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(len);
    Ok(String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned())
}

/// Bytes that fill up to a multiple of four.
pub(super) fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}

fn decode_value(r: &mut Reader<'_>, depth: usize) -> Result<NvValue> {
    let code = r.u32()?;
    let code = Code::from_code(code).ok_or_else(|| r.corrupt(format_args!("unknown type {code}")))?;
    let count = r.u32()? as usize;
    if code.is_array() {
        return decode_array(r, code, count, depth);
    }
    if count != usize::from(code != Code::Boolean) {
        return Err(r.corrupt(format_args!("{count} values of the single type {code:?}")));
    }
    decode_single(r, code, depth)
}

fn decode_single(r: &mut Reader<'_>, code: Code, depth: usize) -> Result<NvValue> {
    // Small integers fill a unit of four bytes, extended by sign or by zeros, depending on what wrote them.
    Ok(match code {
        Code::Boolean => NvValue::Boolean,
        Code::BooleanValue => NvValue::BooleanValue(decode_bool(r)?),
        Code::Byte => NvValue::Byte(r.u32()? as u8),
        Code::Int8 => NvValue::Int8(r.u32()? as i8),
        Code::Uint8 => NvValue::Uint8(r.u32()? as u8),
        Code::Int16 => NvValue::Int16(r.u32()? as i16),
        Code::Uint16 => NvValue::Uint16(r.u32()? as u16),
        Code::Int32 => NvValue::Int32(r.u32()? as i32),
        Code::Uint32 => NvValue::Uint32(r.u32()?),
        Code::Int64 => NvValue::Int64(r.u64()? as i64),
        Code::Uint64 => NvValue::Uint64(r.u64()?),
        Code::Double => NvValue::Double(f64::from_bits(r.u64()?)),
        Code::HrTime => NvValue::HrTime(r.u64()? as i64),
        Code::String => NvValue::String(decode_string(r)?),
        Code::List => NvValue::List(decode_list(r, depth + 1)?),
        _ => unreachable!("arrays are decoded elsewhere"),
    })
}

fn decode_bool(r: &mut Reader<'_>) -> Result<bool> {
    match r.u32()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(r.corrupt(format_args!("{other} as a boolean"))),
    }
}

fn decode_array(r: &mut Reader<'_>, code: Code, count: usize, depth: usize) -> Result<NvValue> {
    Ok(match code {
        Code::ByteArray => NvValue::ByteArray(decode_opaque(r, count)?),
        Code::BooleanArray => NvValue::BooleanArray(counted(r, count, decode_bool)?),
        Code::Int8Array => NvValue::Int8Array(counted(r, count, |r| Ok(r.u32()? as i8))?),
        Code::Uint8Array => NvValue::Uint8Array(counted(r, count, |r| Ok(r.u32()? as u8))?),
        Code::Int16Array => NvValue::Int16Array(counted(r, count, |r| Ok(r.u32()? as i16))?),
        Code::Uint16Array => NvValue::Uint16Array(counted(r, count, |r| Ok(r.u32()? as u16))?),
        Code::Int32Array => NvValue::Int32Array(counted(r, count, |r| Ok(r.u32()? as i32))?),
        Code::Uint32Array => NvValue::Uint32Array(counted(r, count, |r| r.u32())?),
        Code::Int64Array => NvValue::Int64Array(counted(r, count, |r| Ok(r.u64()? as i64))?),
        Code::Uint64Array => NvValue::Uint64Array(counted(r, count, |r| r.u64())?),
        Code::StringArray => NvValue::StringArray(repeated(r, count, decode_string)?),
        Code::ListArray => NvValue::ListArray(repeated(r, count, |r| decode_list(r, depth + 1))?),
        _ => unreachable!("single values are decoded elsewhere"),
    })
}

fn decode_opaque(r: &mut Reader<'_>, count: usize) -> Result<Vec<u8>> {
    let bytes = r.bytes(count)?.to_vec();
    r.skip(padding(count))?;
    Ok(bytes)
}

/// An array with a count of its own, which repeats that of the pair; an empty one has not even that.
fn counted<T>(
    r: &mut Reader<'_>,
    count: usize,
    one: impl FnMut(&mut Reader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let again = r.u32()? as usize;
    if again != count {
        return Err(r.corrupt(format_args!("an array of {count} elements, or of {again}")));
    }
    repeated(r, count, one)
}

/// Takes at least four bytes for each element, so an absurd count is refused before anything is allocated for it.
fn repeated<T>(
    r: &mut Reader<'_>,
    count: usize,
    mut one: impl FnMut(&mut Reader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if count > r.remaining() / 4 {
        return Err(r.corrupt(format_args!("{count} elements in {} bytes", r.remaining())));
    }
    (0..count).map(|_| one(r)).collect()
}
