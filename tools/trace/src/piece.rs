//! The bytes of a piece of requests.
//!
//! ```text
//!   varint: time of the first, in ns · then each request, in order of time:
//!
//!   u8      operation (5 bits) · 0x20 durable · 0x40 failed
//!   varint  ns since the one before
//!   varint  place
//!   varint  object
//!   varint  offset less the end of the one before, zigzag
//!   varint  bytes
//!   varint  latency in ns
//! ```
//!
//! A varint has seven bits in each byte, the lowest first, and the highest bit says that another follows.

use crate::request::{BYTES_MAX, END_MAX, Op, Request, TIME_MAX};

const DURABLE: u8 = 0x20;
const FAILED: u8 = 0x40;

/// What is wrong, in words that name the field.
pub type Wrong = String;

pub fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The number that `bytes` begin with, and what follows it.
pub fn take<'a>(bytes: &'a [u8], field: &str) -> Result<(u64, &'a [u8]), Wrong> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate() {
        let part = u64::from(byte & 0x7f);
        let shift = 7 * at as u32;
        if shift > 63 || part << shift >> shift != part {
            return Err(format!("'{field}' does not fit in 64 bits"));
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[at + 1..]));
        }
    }
    Err(format!("it ends within '{field}'"))
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The payload of `requests`, which are in order of time.
pub fn encode(requests: &[Request]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(requests.len() * 16);
    let (mut at, mut end) = (requests.first().map_or(0, |r| r.at), 0u64);
    put(&mut bytes, at);
    for request in requests {
        let flags = if request.durable { DURABLE } else { 0 } | if request.failed { FAILED } else { 0 };
        bytes.push(request.op.code() | flags);
        put(&mut bytes, request.at - at);
        put(&mut bytes, u64::from(request.place));
        put(&mut bytes, request.object);
        put(&mut bytes, zigzag(request.offset.wrapping_sub(end) as i64));
        put(&mut bytes, request.bytes);
        put(&mut bytes, request.latency);
        (at, end) = (request.at, request.end());
    }
    bytes
}

/// The requests of a payload, in order of time; `places` is how many places there are.
pub fn decode(payload: &[u8], places: u32) -> Result<Vec<Request>, Wrong> {
    let (mut at, mut rest) = take(payload, "time")?;
    let (mut requests, mut end) = (Vec::new(), 0u64);
    while let Some((first, after)) = rest.split_first() {
        let number = requests.len();
        let of = |wrong: Wrong| format!("request {number}: {wrong}");
        let op = Op::of_code(first & 0x1f).filter(|_| first & 0x80 == 0);
        let op = op.ok_or_else(|| of(format!("'operation' {first:#04x} is none")))?;
        let field = |rest, name| take(rest, name).map_err(of);
        let (since, after) = field(after, "time")?;
        let (place, after) = field(after, "place")?;
        let (object, after) = field(after, "object")?;
        let (step, after) = field(after, "offset")?;
        let (bytes, after) = field(after, "bytes")?;
        let (latency, after) = field(after, "latency")?;
        at = at
            .checked_add(since)
            .filter(|at| *at <= TIME_MAX)
            .ok_or_else(|| of("'time' is beyond a week".into()))?;
        if latency > TIME_MAX {
            return Err(of("'latency' is longer than a week".into()));
        }
        if place >= u64::from(places) {
            return Err(of(format!("'place' {place} is not there, of {places}")));
        }
        if bytes > BYTES_MAX {
            return Err(of(format!("'bytes' {bytes} are more than a request has")));
        }
        let offset = end.wrapping_add(unzigzag(step) as u64);
        if offset > END_MAX - bytes {
            return Err(of(format!("'offset' {offset} is beyond the end of any place")));
        }
        let request = Request {
            at,
            latency,
            place: place as u32,
            op,
            object,
            offset,
            bytes,
            durable: first & DURABLE != 0,
            failed: first & FAILED != 0,
        };
        end = request.end();
        requests.push(request);
        rest = after;
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Below a power of two that is drawn as well.
    fn any(random: &mut sim::Rng, bits: u64) -> u64 {
        let bits = random.below(bits);
        random.below(1 << bits)
    }

    fn request(random: &mut sim::Rng, at: u64) -> Request {
        Request {
            at,
            latency: any(random, 40),
            place: random.below(3) as u32,
            op: Op::ALL[random.below(Op::ALL.len() as u64) as usize],
            object: any(random, 60),
            offset: any(random, 61),
            bytes: any(random, 40),
            durable: random.below(2) == 0,
            failed: random.below(2) == 0,
        }
    }

    #[test]
    fn requests_are_read_as_they_were_written() {
        let mut random = sim::Rng::new(11);
        for _ in 0..100 {
            let mut at = 0;
            let requests: Vec<Request> = (0..random.below(50))
                .map(|_| {
                    at += any(&mut random, 30);
                    request(&mut random, at)
                })
                .collect();
            assert_eq!(decode(&encode(&requests), 3).unwrap(), requests);
        }
    }

    #[test]
    fn numbers_of_all_lengths_are_read_and_longer_ones_refused() {
        for value in (0..64).flat_map(|shift| [(1u64 << shift) - 1, 1 << shift]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(take(&bytes, "x").unwrap(), (value, &[][..]));
            assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
        }
        assert!(take(&[0xff; 9], "x").unwrap_err().contains("ends within 'x'"));
        assert!(take(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], "x").is_err());
        assert!(take(&[0xff; 40], "x").is_err());
    }

    #[test]
    fn a_field_out_of_bounds_is_named() {
        let good = Request {
            at: 5,
            latency: 1,
            place: 2,
            op: Op::Read,
            object: 0,
            offset: 0,
            bytes: 512,
            durable: false,
            failed: false,
        };
        let wrong = |request: Request| decode(&encode(&[good, request]), 3).unwrap_err();
        for (request, field) in [
            (Request { place: 3, ..good }, "request 1: 'place' 3"),
            (Request { latency: TIME_MAX + 1, ..good }, "request 1: 'latency'"),
            (Request { at: TIME_MAX + 1, ..good }, "request 1: 'time'"),
            (Request { bytes: BYTES_MAX + 1, ..good }, "request 1: 'bytes'"),
            (Request { offset: END_MAX, ..good }, "request 1: 'offset'"),
        ] {
            let said = wrong(request);
            assert!(said.starts_with(field), "{said}");
        }
        let mut bytes = encode(&[good]);
        bytes[1] = 20;
        assert!(decode(&bytes, 3).unwrap_err().contains("'operation' 0x14"));
    }
}
