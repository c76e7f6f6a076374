//! The parameters of the commands that copy. Pure: nothing of any unit is known here.
//!
//! ```text
//!   EXTENDED COPY       head 16 │ units, 32 each │ segments, 28 each           which blocks of which unit go where
//!   POPULATE TOKEN      head 16 │ ranges, 16 each
//!   WRITE USING TOKEN   head 16 │ token 512 │ 8 │ ranges, 16 each
//! ```
//!
//! A list that is empty is no error and asks for nothing.

use super::limits::*;
use super::tokens::TOKEN;
use crate::BLOCK;
use crate::cdb::Blocks;
use crate::sense::Sense;

/// How long the outcome of a copy is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Kept,
    /// It can be asked for while the copy is under way.
    Discarded,
    /// It cannot be asked for: the copy has no identifier.
    Nameless,
}

/// A unit, as the client names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub code_set: u8,
    /// Association and type of the designator.
    pub kind: u8,
    pub name: Vec<u8>,
    pub device_type: u8,
    /// Where it is in the list.
    pub at: u16,
}

/// Blocks to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Units, by their place in the list.
    pub source: u16,
    pub target: u16,
    pub from: u64,
    pub to: u64,
    pub count: u64,
    /// Where it is in the list.
    pub at: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyList {
    pub id: u8,
    pub usage: Usage,
    pub targets: Vec<Target>,
    pub segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Populate {
    /// Seconds.
    pub timeout: u32,
    pub ranges: Vec<Blocks>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WriteUsing {
    pub immediate: bool,
    /// The token is of no use to the client any more.
    pub delete: bool,
    /// Blocks of what the token stands for that are not wanted.
    pub offset: u64,
    pub token: Box<[u8; TOKEN]>,
    pub ranges: Vec<Blocks>,
}

/// A number of a list; what lies beyond its end is 0, which the length checks make impossible.
fn number(list: &[u8], at: usize, len: usize) -> u64 {
    (at..at + len).fold(0, |n, i| n << 8 | u64::from(list.get(i).copied().unwrap_or(0)))
}

impl CopyList {
    pub fn read(list: &[u8]) -> Result<Option<CopyList>, Sense> {
        if list.is_empty() {
            return Ok(None);
        }
        if list.len() < COPY_HEAD {
            return Err(Sense::LIST_LENGTH);
        }
        let targets_len = number(list, 2, 2) as usize;
        let segments_len = number(list, 8, 4) as usize;
        if targets_len + segments_len > MAX_DESCRIPTORS {
            return Err(Sense::LIST_LENGTH);
        }
        if targets_len > MAX_TARGETS * TARGET {
            return Err(Sense::TOO_MANY_TARGETS);
        }
        if number(list, 12, 4) > 0 {
            return Err(Sense::INLINE_DATA);
        }
        if !targets_len.is_multiple_of(TARGET) {
            return Err(Sense::parameter(2));
        }
        if list.len() < COPY_HEAD + targets_len + segments_len {
            return Err(Sense::LIST_LENGTH);
        }
        let (id, usage) = match (list[0], list[1] >> 3 & 3) {
            (id, 0) => (id, Usage::Kept),
            (id, 2) => (id, Usage::Discarded),
            (0, 3) => (0, Usage::Nameless),
            (_, 3) => return Err(Sense::parameter(0)),
            _ => return Err(Sense::parameter(1)),
        };
        let targets = (COPY_HEAD..COPY_HEAD + targets_len).step_by(TARGET);
        let targets = targets.map(|at| Target::read(&list[at..at + TARGET], at)).collect::<Result<_, _>>()?;
        let (mut segments, mut at) = (Vec::new(), COPY_HEAD + targets_len);
        let end = at + segments_len;
        while at < end {
            if segments.len() == MAX_SEGMENTS {
                return Err(Sense::TOO_MANY_SEGMENTS);
            }
            segments.push(Segment::read(&list[at..end], at)?);
            at += SEGMENT;
        }
        Ok(Some(CopyList { id, usage, targets, segments }))
    }
}

impl Target {
    fn read(bytes: &[u8], at: usize) -> Result<Target, Sense> {
        if bytes[0] != BY_DESIGNATOR {
            return Err(Sense::UNSUPPORTED_TARGET);
        }
        let at = at as u16;
        let len = usize::from(bytes[7]);
        let name = bytes.get(8..8 + len).filter(|_| len <= 20).ok_or(Sense::parameter(at + 7))?;
        let device_type = bytes[1] & 0x1f;
        if device_type == 0 && number(bytes, 29, 3) != BLOCK {
            return Err(Sense::parameter(at + 29));
        }
        Ok(Target { code_set: bytes[4] & 0x0f, kind: bytes[5] & 0x3f, name: name.to_vec(), device_type, at })
    }
}

impl Segment {
    fn read(bytes: &[u8], at: usize) -> Result<Segment, Sense> {
        if bytes[0] != BLOCKS_TO_BLOCKS {
            return Err(Sense::UNSUPPORTED_SEGMENT);
        }
        if bytes.len() < SEGMENT {
            return Err(Sense::LIST_LENGTH);
        }
        let place = at as u16;
        if number(bytes, 2, 2) as usize != SEGMENT - 4 {
            return Err(Sense::parameter(place + 2));
        }
        Ok(Segment {
            source: number(bytes, 4, 2) as u16,
            target: number(bytes, 6, 2) as u16,
            from: number(bytes, 12, 8),
            to: number(bytes, 20, 8),
            count: number(bytes, 10, 2),
            at: place,
        })
    }
}

impl Populate {
    pub fn read(list: &[u8]) -> Result<Option<Populate>, Sense> {
        if list.is_empty() {
            return Ok(None);
        }
        if list.len() < POPULATE_HEAD {
            return Err(Sense::LIST_LENGTH);
        }
        if number(list, 0, 2) < 30 {
            return Err(Sense::parameter(0));
        }
        let timeout = match number(list, 4, 4) as u32 {
            0 => DEFAULT_TIMEOUT,
            long if long > MAX_TIMEOUT => return Err(Sense::parameter(4)),
            timeout => timeout,
        };
        let names_type = list[2] & 0x02 != 0;
        let is_known = matches!(number(list, 8, 4) as u32, TYPE_DEFAULT | TYPE_VULNERABLE | TYPE_ANY);
        if names_type && !is_known {
            return Err(Sense::parameter(8));
        }
        let ranges = ranges(list, 14, POPULATE_HEAD)?;
        Ok(Some(Populate { timeout, ranges }))
    }
}

impl WriteUsing {
    pub fn read(list: &[u8]) -> Result<Option<WriteUsing>, Sense> {
        if list.is_empty() {
            return Ok(None);
        }
        let Some(token) = list.get(16..16 + TOKEN).filter(|_| list.len() >= WRITE_HEAD) else {
            return Err(Sense::LIST_LENGTH);
        };
        if number(list, 0, 2) < 550 {
            return Err(Sense::parameter(0));
        }
        if number(token, 6, 2) as usize != TOKEN - 8 {
            return Err(Sense::TOKEN_LENGTH);
        }
        let mut whole = Box::new([0; TOKEN]);
        whole.copy_from_slice(token);
        Ok(Some(WriteUsing {
            immediate: list[2] & 0x01 != 0,
            delete: list[2] & 0x02 != 0,
            offset: number(list, 8, 8),
            token: whole,
            ranges: ranges(list, 534, WRITE_HEAD)?,
        }))
    }
}

/// The ranges behind `head`, whose length is told at `at`. One that is not there whole is no range.
fn ranges(list: &[u8], at: usize, head: usize) -> Result<Vec<Blocks>, Sense> {
    let told = number(list, at, 2) as usize;
    let there = told.min(list.len() - head) / RANGE;
    if there == 0 {
        return Err(Sense::parameter(at as u16));
    }
    if there > MAX_RANGES {
        return Err(Sense::TOO_MANY_SEGMENTS);
    }
    let (mut ranges, mut total): (Vec<Blocks>, u64) = (Vec::new(), 0);
    for place in (head..head + there * RANGE).step_by(RANGE) {
        let blocks = Blocks { lba: number(list, place, 8), count: number(list, place + 8, 4) };
        let wrong = Sense::parameter(place as u16);
        let end = blocks.lba.checked_add(blocks.count).ok_or(Sense::OUT_OF_RANGE)?;
        let overlaps = |other: &Blocks| other.lba < end && blocks.lba < other.lba + other.count;
        total += blocks.count;
        if ranges.iter().any(overlaps) || total > MAX_TOKEN_BYTES / BLOCK {
            return Err(wrong);
        }
        if blocks.count > 0 {
            ranges.push(blocks);
        }
    }
    Ok(ranges)
}

/// What is copied where when blocks of `from`, but for the first `offset`, go to `to`: from, to and count, in order,
/// as far as both go.
pub(super) fn pairs(from: &[Blocks], offset: u64, to: &[Blocks]) -> Vec<(u64, u64, u64)> {
    let (mut pairs, mut skip) = (Vec::new(), offset);
    let mut sources = from.iter().copied().filter_map(|mut blocks| {
        let skipped = skip.min(blocks.count);
        skip -= skipped;
        (blocks.lba, blocks.count) = (blocks.lba + skipped, blocks.count - skipped);
        (blocks.count > 0).then_some(blocks)
    });
    let mut source = Blocks { lba: 0, count: 0 };
    for target in to {
        let (mut at, end) = (target.lba, target.lba + target.count);
        while at < end {
            if source.count == 0 {
                let Some(next) = sources.next() else { return pairs };
                source = next;
            }
            let count = source.count.min(end - at);
            pairs.push((source.lba, at, count));
            (source.lba, source.count) = (source.lba + count, source.count - count);
            at += count;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(lba: u64, count: u64) -> Blocks {
        Blocks { lba, count }
    }

    #[test]
    fn ranges_of_a_token_meet_those_to_write() {
        let from = [blocks(10, 4), blocks(100, 6)];
        assert_eq!(pairs(&from, 0, &[blocks(0, 10)]), [(10, 0, 4), (100, 4, 6)]);
        assert_eq!(pairs(&from, 5, &[blocks(0, 2), blocks(50, 9)]), [(101, 0, 2), (103, 50, 3)]);
        assert_eq!(pairs(&from, 10, &[blocks(0, 2)]), []);
        assert_eq!(pairs(&from, 3, &[blocks(7, 1), blocks(9, 1)]), [(13, 7, 1), (100, 9, 1)]);
    }

    fn range_list(ranges: &[(u64, u32)]) -> Vec<u8> {
        let mut list = vec![0; POPULATE_HEAD];
        let len = ranges.len() * RANGE;
        list[..2].copy_from_slice(&((len + 14) as u16).to_be_bytes());
        list[14..16].copy_from_slice(&(len as u16).to_be_bytes());
        for (lba, count) in ranges {
            list.extend(lba.to_be_bytes());
            list.extend(count.to_be_bytes());
            list.extend([0; 4]);
        }
        list
    }

    #[test]
    fn ranges_are_checked_before_they_are_believed() {
        let read = |list: &[u8]| Populate::read(list);
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[0; 15]), Err(Sense::LIST_LENGTH));
        assert_eq!(read(&[0; 16]), Err(Sense::parameter(0)));
        let good = range_list(&[(0, 8), (8, 0), (8, 8)]);
        let found = read(&good).unwrap().unwrap();
        assert_eq!(found, Populate { timeout: DEFAULT_TIMEOUT, ranges: vec![blocks(0, 8), blocks(8, 8)] });
        assert_eq!(read(&good[..40]).unwrap().unwrap().ranges.len(), 1, "the second is not there whole");
        assert_eq!(read(&good[..20]), Err(Sense::parameter(14)));
        assert_eq!(read(&range_list(&[(0, 8), (7, 1)])), Err(Sense::parameter(32)));
        assert_eq!(read(&range_list(&[(u64::MAX, 2)])), Err(Sense::OUT_OF_RANGE));
        assert_eq!(read(&range_list(&[(0, u32::MAX)])), Err(Sense::parameter(16)));
        let many: Vec<(u64, u32)> = (0..257).map(|n| (n, 1)).collect();
        assert_eq!(read(&range_list(&many)), Err(Sense::TOO_MANY_SEGMENTS));
        for (at, value, sense) in [(2, 0x02, 8), (4, 1, 4)] {
            let mut list = good.clone();
            list[at] = value;
            assert_eq!(read(&list), Err(Sense::parameter(sense)));
        }
    }
}
