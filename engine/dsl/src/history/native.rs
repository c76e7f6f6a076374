//! Packed nvlists in the memory layout of the machine that wrote them: the form of history records.
//!
//! ```text
//!   packed  | 0 | byte order | 0 | 0 | version | flags | pair | pair ... | 0 |      order: 1 little, 0 big
//!   pair    | size u32 | name length u16 | 0 u16 | count u32 | type u32 | name, zero byte | value |
//!           every pair starts at a multiple of 8 from the first; so does its value
//!   list    as a value: a place for the list's own header (24 bytes); its pairs follow the pair, then 0
//! ```
//!
//! Only the types that history uses are read and written; a pair of another type is passed over, for its size says
//! where the next one starts.

use ondisk::{NvList, NvValue, Reader};
use units::{Endian, Error, Result};

const BOOLEAN: u32 = 1;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const INT64: u32 = 7;
const UINT64: u32 = 8;
const STRING: u32 = 9;
const UINT64_ARRAY: u32 = 16;
const STRING_ARRAY: u32 = 17;
const LIST: u32 = 19;
const LIST_ARRAY: u32 = 20;
const BOOLEAN_VALUE: u32 = 21;

const PAIR_HEADER: usize = 16;
/// What a list takes as a value: version, flags, and pointers that mean nothing on disk.
const LIST_HEADER: usize = 24;
const MAX_DEPTH: usize = 20;
const WHAT: &str = "history record";

/// Packs a list, in the order of this machine.
///
/// # Panics
/// When a value is of a type that history does not use.
pub fn encode(list: &NvList) -> Vec<u8> {
    let little = u8::from(Endian::NATIVE == Endian::Little);
    let mut out = vec![0, little, 0, 0];
    out.extend(list.version.to_ne_bytes());
    out.extend(list.flags.to_ne_bytes());
    encode_pairs(list, &mut out);
    out
}

fn encode_pairs(list: &NvList, out: &mut Vec<u8>) {
    for (name, value) in list.iter() {
        encode_pair(name, value, out);
    }
    out.extend([0; 4]);
}

fn encode_pair(name: &str, value: &NvValue, out: &mut Vec<u8>) {
    let (code, count, bytes) = encode_value(value);
    let name_len = name.len() + 1;
    let size = (PAIR_HEADER + name_len).next_multiple_of(8) + bytes.len().next_multiple_of(8);
    let start = out.len();
    out.extend((size as u32).to_ne_bytes());
    out.extend((name_len as u16).to_ne_bytes());
    out.extend([0; 2]);
    out.extend(count.to_ne_bytes());
    out.extend(code.to_ne_bytes());
    out.extend(name.as_bytes());
    out.resize(start + (PAIR_HEADER + name_len).next_multiple_of(8), 0);
    out.extend(bytes);
    out.resize(start + size, 0);
    match value {
        NvValue::List(inner) => encode_pairs(inner, out),
        NvValue::ListArray(inner) => inner.iter().for_each(|list| encode_pairs(list, out)),
        _ => {}
    }
}

/// Type code, count of elements, and the value as it stands in its pair.
fn encode_value(value: &NvValue) -> (u32, u32, Vec<u8>) {
    match value {
        NvValue::Boolean => (BOOLEAN, 0, Vec::new()),
        NvValue::BooleanValue(v) => (BOOLEAN_VALUE, 1, u32::from(*v).to_ne_bytes().to_vec()),
        NvValue::Int32(v) => (INT32, 1, v.to_ne_bytes().to_vec()),
        NvValue::Uint32(v) => (UINT32, 1, v.to_ne_bytes().to_vec()),
        NvValue::Int64(v) => (INT64, 1, v.to_ne_bytes().to_vec()),
        NvValue::Uint64(v) => (UINT64, 1, v.to_ne_bytes().to_vec()),
        NvValue::String(v) => (STRING, 1, zero_ended(v)),
        NvValue::Uint64Array(v) => {
            (UINT64_ARRAY, v.len() as u32, v.iter().flat_map(|n| n.to_ne_bytes()).collect())
        }
        NvValue::StringArray(v) => {
            // A place for a pointer to each string comes first.
            let mut bytes = vec![0; 8 * v.len()];
            v.iter().for_each(|s| bytes.extend(zero_ended(s)));
            (STRING_ARRAY, v.len() as u32, bytes)
        }
        NvValue::List(v) => (LIST, 1, list_header(v)),
        NvValue::ListArray(v) => {
            let mut bytes = vec![0; 8 * v.len()];
            v.iter().for_each(|list| bytes.extend(list_header(list)));
            (LIST_ARRAY, v.len() as u32, bytes)
        }
        other => panic!("history has no values like {other:?}"),
    }
}

fn zero_ended(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

fn list_header(list: &NvList) -> Vec<u8> {
    let mut bytes = [list.version.to_ne_bytes(), list.flags.to_ne_bytes()].concat();
    bytes.resize(LIST_HEADER, 0);
    bytes
}

/// Unpacks the list at the start of `bytes`, whatever machine wrote it; packed in XDR it is read as well.
pub fn decode(bytes: &[u8]) -> Result<NvList> {
    match bytes {
        [1, ..] => NvList::decode(bytes),
        [0, order @ (0 | 1), _, _, rest @ ..] => {
            let endian = if *order == 1 { Endian::Little } else { Endian::Big };
            let mut r = Reader::new(rest, endian, WHAT);
            let mut list = NvList::new();
            (list.version, list.flags) = (r.u32()? as i32, r.u32()?);
            decode_pairs(&mut r, &mut list, 1)?;
            Ok(list)
        }
        _ => Err(Error::corrupt("history record: unknown encoding")),
    }
}

fn decode_pairs(r: &mut Reader<'_>, list: &mut NvList, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(r.corrupt("lists nested too deep"));
    }
    loop {
        let size = r.u32()? as usize;
        if size == 0 {
            return Ok(());
        }
        let Some(rest) = size.checked_sub(4).filter(|rest| *rest >= PAIR_HEADER - 4) else {
            return Err(r.corrupt(format_args!("a pair of {size} bytes")));
        };
        let mut pair = r.within(rest, WHAT)?;
        if let Some((name, value)) = decode_pair(&mut pair, r, depth)? {
            list.push(name, value);
        }
    }
}

/// `pair` is what the size covers, less the size itself; the pairs of lists follow it in `after`.
fn decode_pair(
    pair: &mut Reader<'_>,
    after: &mut Reader<'_>,
    depth: usize,
) -> Result<Option<(String, NvValue)>> {
    let name_len = pair.u16()? as usize;
    pair.skip(2)?;
    let (count, code) = (pair.u32()? as usize, pair.u32()?);
    let name = text(pair.bytes(name_len)?);
    let value_at = (PAIR_HEADER + name_len).next_multiple_of(8) - 4;
    // The last pairs of a list may have no value, and then no padding before it either.
    pair.skip((value_at - pair.position()).min(pair.remaining()))?;
    let value = match code {
        BOOLEAN => NvValue::Boolean,
        BOOLEAN_VALUE => NvValue::BooleanValue(pair.u32()? != 0),
        INT32 => NvValue::Int32(pair.u32()? as i32),
        UINT32 => NvValue::Uint32(pair.u32()?),
        INT64 => NvValue::Int64(pair.u64()? as i64),
        UINT64 => NvValue::Uint64(pair.u64()?),
        STRING => NvValue::String(text(pair.rest())),
        UINT64_ARRAY => {
            NvValue::Uint64Array((0..check_count(pair, count)?).map(|_| pair.u64()).collect::<Result<_>>()?)
        }
        STRING_ARRAY => NvValue::StringArray(decode_strings(pair, count)?),
        LIST => NvValue::List(decode_list(pair, after, depth)?),
        LIST_ARRAY => {
            pair.skip(8 * check_count(pair, count)?)?;
            let lists = (0..count).map(|_| decode_list(pair, after, depth)).collect::<Result<_>>()?;
            NvValue::ListArray(lists)
        }
        _ => return Ok(None),
    };
    Ok(Some((name, value)))
}

/// Every element of an array has eight bytes at least.
fn check_count(r: &Reader<'_>, count: usize) -> Result<usize> {
    if count > r.remaining() / 8 {
        return Err(r.corrupt(format_args!("an array of {count} elements in {} bytes", r.remaining())));
    }
    Ok(count)
}

fn decode_strings(pair: &mut Reader<'_>, count: usize) -> Result<Vec<String>> {
    pair.skip(8 * check_count(pair, count)?)?;
    let mut strings = pair.rest().split(|b| *b == 0);
    let mut next =
        || strings.next().map(text).ok_or_else(|| Error::corrupt("history record: too few strings"));
    (0..count).map(|_| next()).collect()
}

fn decode_list(header: &mut Reader<'_>, after: &mut Reader<'_>, depth: usize) -> Result<NvList> {
    let mut list = NvList::new();
    (list.version, list.flags) = (header.u32()? as i32, header.u32()?);
    header.skip(LIST_HEADER - 8)?;
    decode_pairs(after, &mut list, depth + 1)?;
    Ok(list)
}

/// Up to the first zero byte, as C would see it.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> NvList {
        let inner = NvList::new().with("size", NvValue::Uint64(5)).with("flag", NvValue::Boolean);
        NvList::new()
            .with("history command", NvValue::String("zpool create p x".into()))
            .with("history who", NvValue::Uint64(1000))
            .with("in_nvl", NvValue::List(inner.clone()))
            .with("a", NvValue::StringArray(vec!["x".into(), String::new(), "yz".into()]))
            .with("n", NvValue::Uint64Array(vec![1, u64::MAX]))
            .with("l", NvValue::ListArray(vec![inner, NvList::new()]))
            .with("b", NvValue::BooleanValue(true))
            .with("i", NvValue::Int32(-1))
            .with("zone", NvValue::Boolean)
    }

    #[test]
    fn what_is_packed_is_unpacked_again() {
        let packed = encode(&sample());
        assert_eq!(packed.len() % 4, 0);
        assert_eq!(decode(&packed).unwrap(), sample());
        assert_eq!(decode(&sample().encode()).unwrap(), sample(), "XDR is known by its first byte");
    }

    #[test]
    fn a_record_has_the_bytes_that_openzfs_writes() {
        let packed = encode(&NvList::new().with("history txg", NvValue::Uint64(4)));
        let mut expected = vec![0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        expected.extend([40, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0]);
        expected.extend(b"history txg\0\0\0\0\0");
        expected.extend([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        if Endian::NATIVE == Endian::Little {
            assert_eq!(packed, expected);
        }
        assert_eq!(decode(&expected).unwrap().u64("history txg").unwrap(), 4);
    }

    #[test]
    fn hostile_bytes_are_errors_not_panics() {
        let good = encode(&sample());
        for cut in 0..good.len() {
            assert!(decode(&good[..cut]).is_err(), "cut at {cut}");
        }
        let mut seed = 7u64;
        for _ in 0..20_000 {
            let mut bad = good.clone();
            for _ in 0..3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % bad.len();
                bad[at] = (seed >> 20) as u8;
            }
            let _ = decode(&bad);
        }
    }
}
