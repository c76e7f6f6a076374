//! Names in records: bytes that end with a zero, one after the other.

use crate::bytes::{Reader, Writer};
use units::Result;

/// The next name, without its zero.
pub fn decode<'a>(r: &mut Reader<'a>) -> Result<&'a [u8]> {
    let ahead = r.clone().rest();
    let Some(end) = ahead.iter().position(|&b| b == 0) else {
        return Err(r.corrupt("a name without an end"));
    };
    let name = r.bytes(end)?;
    r.skip(1)?;
    Ok(name)
}

pub fn decode_all<'a>(r: &mut Reader<'a>, count: u64) -> Result<Vec<&'a [u8]>> {
    // Each takes a byte at least, so that a count which cannot be does not become memory.
    if count > r.remaining() as u64 {
        return Err(r.corrupt(format_args!("{count} names in {} bytes", r.remaining())));
    }
    (0..count).map(|_| decode(r)).collect()
}

pub fn encode(name: &[u8], w: &mut Writer<'_>) {
    debug_assert!(!name.contains(&0), "a name ends at its first zero");
    w.bytes(name);
    w.u8(0);
}

pub fn encode_all(names: &[&[u8]], w: &mut Writer<'_>) {
    for name in names {
        encode(name, w);
    }
}

pub fn length(name: &[u8]) -> usize {
    name.len() + 1
}

pub fn length_all(names: &[&[u8]]) -> usize {
    names.iter().map(|name| length(name)).sum()
}

/// How many domains follow a record that sets these owners: an identity whose upper half is not zero stands for
/// one of a foreign domain, by its number in the record's own list, which counts from 1.
pub fn domains_of(uid: u64, gid: u64) -> u64 {
    let (of_user, of_group) = (uid >> 32, gid >> 32);
    u64::from(of_user != 0) + u64::from(of_group != 0 && of_group != of_user)
}
