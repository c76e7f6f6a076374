//! LZJB: the first compressor of ZFS, a small relative of LZRW1.
//!
//! ```text
//!   group       | flags | item | item | ... 8 items |       flag i (lowest bit first): item i is a reference
//!   literal     | byte |
//!   reference   | length - 3, 6 bits | distance, 10 bits |  big-endian; 3 to 66 bytes, from 1 to 1023 back
//! ```
//!
//! The encoder remembers, for a hash of three bytes, where it last saw them, and never looks further.

const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = MATCH_MIN + (1 << 6) - 1;
const DISTANCE_MASK: usize = (1 << 10) - 1;
const HASHES: usize = 1024;

pub fn compress(src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let mut seen = [0u16; HASHES];
    let (mut from, mut at, mut flags_at, mut item) = (0, 0, 0, 8);
    while from < src.len() {
        if item == 8 {
            (flags_at, item) = (at, 0);
            *dst.get_mut(at)? = 0;
            at += 1;
        }
        if let Some((length, distance)) = find(src, from, &mut seen) {
            let code = ((length - MATCH_MIN) << 10 | distance) as u16;
            *dst.get_mut(at..)?.first_chunk_mut()? = code.to_be_bytes();
            dst[flags_at] |= 1 << item;
            (from, at) = (from + length, at + 2);
        } else {
            *dst.get_mut(at)? = src[from];
            (from, at) = (from + 1, at + 1);
        }
        item += 1;
    }
    Some(at)
}

/// The length of what `from` has in common with an earlier place, and how far back that is. Not asked near the
/// end of the block, so that a match never runs over it.
fn find(src: &[u8], from: usize, seen: &mut [u16; HASHES]) -> Option<(usize, usize)> {
    let here: &[u8; MATCH_MAX] = src[from..].first_chunk()?;
    let last = &mut seen[hash(here[0], here[1], here[2])];
    // Only the low bits are remembered, and a slot never used says 0: the comparison decides.
    let distance = from.wrapping_sub((*last).into()) & DISTANCE_MASK;
    *last = from as u16;
    let earlier = from.checked_sub(distance).filter(|_| distance > 0)?;
    let length = here.iter().zip(&src[earlier..]).take_while(|(a, b)| a == b).count();
    (length >= MATCH_MIN).then_some((length, distance))
}

fn hash(a: u8, b: u8, c: u8) -> usize {
    let mut hash = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
    hash += hash >> 9;
    hash += hash >> 5;
    hash % HASHES
}

pub fn decompress(src: &[u8], dst: &mut [u8]) -> Option<()> {
    let (mut rest, mut at, mut flags, mut item) = (src, 0, 0u8, 8);
    while at < dst.len() {
        if item == 8 {
            let (first, tail) = rest.split_first()?;
            (flags, rest, item) = (*first, tail, 0);
        }
        if flags & 1 << item == 0 {
            let (literal, tail) = rest.split_first()?;
            dst[at] = *literal;
            (rest, at) = (tail, at + 1);
        } else {
            let (code, tail) = rest.split_first_chunk()?;
            let code = usize::from(u16::from_be_bytes(*code));
            at = refer(dst, at, (code >> 10) + MATCH_MIN, code & DISTANCE_MASK)?;
            rest = tail;
        }
        item += 1;
    }
    Some(())
}

/// Repeats what was written `distance` ago and returns where to go on. The two may overlap: then the bytes between
/// them repeat. The last reference may reach beyond the block and is cut.
fn refer(dst: &mut [u8], at: usize, length: usize, distance: usize) -> Option<usize> {
    let from = at.checked_sub(distance).filter(|_| distance > 0)?;
    let end = dst.len().min(at + length);
    if distance >= length {
        dst.copy_within(from..from + (end - at), at);
    } else {
        (at..end).for_each(|to| dst[to] = dst[to - distance]);
    }
    Some(end)
}
