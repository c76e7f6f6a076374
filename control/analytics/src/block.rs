//! A stretch of a series, in columns: what is in memory of the present, and a row of the store of the past.
//!
//! ```text
//!            label   seconds  sum  min  max  │ 4K..8K  8K..16K  other      a column for each value of the breakdown,
//!   row 0    12:00         1   70   70   70  │     60       10             with the rows in which it was seen
//!   row 1    12:01         1    5    5    5  │      5
//!   row 2    12:02         1   40   40   40  │              30     10
//! ```
//!
//! A row may be of several seconds: then it has their sum, and the least and the most of one. A sample that falls into the
//! last row is added to it, so the same code makes seconds, minutes and hours.
//!
//! Encoded ([`Block::encode`]) it is, checked by a CRC and compressed as a whole:
//!
//! ```text
//!   "CAB1" | CRC-64 of what follows | length | zstd of:
//!       sequence, rows, runs of labels, sums, [seconds, minima, maxima], columns: key, runs of rows, values
//! ```
//!
//! The sequence grows with each block that is begun: of two blocks with one label the later is true, see `clock`.
//!
//! Invariants: labels grow from row to row; the parts of a row add up to its sum, if it has any. Bytes that were read are
//! believed only after the CRC, and even then bounded.

use crate::bytes::{self, Reader};
use crate::tap::{Key, Taken};
use api::analytics::Granularity;
use std::collections::BTreeMap;
use units::{Compression, Error, Result};

const MAGIC: [u8; 4] = *b"CAB1";
const HEADER: usize = 16;
const LEVEL: Compression = Compression::Zstd(Some(units::ZstdLevel::Normal(3)));
/// What a block can be at most, decoded: what is larger was not written here.
const RAW_MAX: usize = 64 << 20;
const ROWS_MAX: usize = 4_096;
/// How many values of a breakdown a block tells apart; the rest is other.
pub(crate) const COLUMNS_MAX: usize = 4_096;
/// Of the name of a value, in bytes: names of files are the longest.
const NAME_MAX: usize = 4_096;
/// About what an entry of a column takes in memory, and a column beside its name.
const ENTRY_BYTES: usize = 16;
const COLUMN_BYTES: usize = 160;
const ROW_BYTES: usize = 40;

/// How much time a block spans at most: some hundreds of rows, so that it compresses well and a look at it reads little more
/// than was asked for.
pub(crate) fn span(granularity: Granularity) -> u64 {
    match granularity {
        Granularity::Second => 600,
        Granularity::Minute => 4 * 3_600,
        Granularity::Hour => 7 * 86_400,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    key: Key,
    /// Row and value, in order of rows.
    entries: Vec<(u32, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub granularity: Granularity,
    pub sequence: u64,
    labels: Vec<u64>,
    seconds: Vec<u64>,
    sums: Vec<u64>,
    minima: Vec<u64>,
    maxima: Vec<u64>,
    columns: Vec<Column>,
    index: BTreeMap<Key, usize>,
    /// Of the columns, in memory.
    bytes: usize,
}

/// A row as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub seconds: u64,
    pub sum: u64,
    pub min: u64,
    pub max: u64,
    /// Sums.
    pub parts: Vec<(Key, u64)>,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    Yes,
    /// It belongs into another block.
    Elsewhere,
}

impl Block {
    pub fn new(granularity: Granularity, sequence: u64) -> Block {
        Block {
            granularity,
            sequence,
            labels: Vec::new(),
            seconds: Vec::new(),
            sums: Vec::new(),
            minima: Vec::new(),
            maxima: Vec::new(),
            columns: Vec::new(),
            index: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// The label of the first row, by which the store has it.
    pub fn first(&self) -> Option<u64> {
        self.labels.first().copied()
    }

    pub fn last(&self) -> Option<u64> {
        self.labels.last().copied()
    }

    /// About what it takes in memory.
    pub fn memory(&self) -> usize {
        self.bytes + self.labels.len() * ROW_BYTES
    }

    /// Adds the sample of one second.
    pub fn add(&mut self, second: u64, taken: &Taken) -> Added {
        let step = self.granularity.seconds();
        let label = second - second % step;
        let span = span(self.granularity);
        if let Some(last) = self.last()
            && (label < last || label / span != last / span)
        {
            return Added::Elsewhere;
        }
        match self.last() == Some(label) {
            true => self.add_to_last(taken),
            false => {
                self.labels.push(label);
                self.seconds.push(1);
                [&mut self.sums, &mut self.minima, &mut self.maxima]
                    .into_iter()
                    .for_each(|column| column.push(taken.value));
            }
        }
        let row = u32::try_from(self.labels.len() - 1).unwrap_or(u32::MAX);
        taken
            .parts
            .iter()
            .filter(|(_, value)| *value > 0)
            .for_each(|(key, value)| self.put(row, key, *value));
        Added::Yes
    }

    fn add_to_last(&mut self, taken: &Taken) {
        let add = |of: &mut Vec<u64>, to: fn(u64, u64) -> u64, value| {
            if let Some(last) = of.last_mut() {
                *last = to(*last, value);
            }
        };
        add(&mut self.seconds, u64::saturating_add, 1);
        add(&mut self.sums, u64::saturating_add, taken.value);
        add(&mut self.minima, u64::min, taken.value);
        add(&mut self.maxima, u64::max, taken.value);
    }

    fn put(&mut self, row: u32, key: &Key, value: u64) {
        let at = match self.index.get(key) {
            Some(at) => *at,
            // One column is left for the rest.
            None if self.columns.len() + 1 >= COLUMNS_MAX && *key != Key::Other => {
                return self.put(row, &Key::Other, value);
            }
            None => {
                let name = if let Key::Text(text) = key { text.len() } else { 0 };
                self.bytes += COLUMN_BYTES + name;
                self.columns.push(Column { key: key.clone(), entries: Vec::new() });
                self.index.insert(key.clone(), self.columns.len() - 1);
                self.columns.len() - 1
            }
        };
        let entries = &mut self.columns[at].entries;
        match entries.last_mut() {
            Some((last, sum)) if *last == row => *sum = sum.saturating_add(value),
            _ => {
                entries.push((row, value));
                self.bytes += ENTRY_BYTES;
            }
        }
    }

    /// The rows that begin from `from` up to but not with `to`, into a map in which later blocks replace earlier ones.
    pub fn rows(&self, from: u64, to: u64, into: &mut BTreeMap<u64, Row>) {
        let first = self.labels.partition_point(|label| *label < from);
        let end = self.labels.partition_point(|label| *label < to);
        for at in first..end {
            let row = Row {
                seconds: self.seconds[at],
                sum: self.sums[at],
                min: self.minima[at],
                max: self.maxima[at],
                parts: Vec::new(),
            };
            into.insert(self.labels[at], row);
        }
        for column in &self.columns {
            let begin = column.entries.partition_point(|(row, _)| (*row as usize) < first);
            for (row, value) in &column.entries[begin..] {
                let at = *row as usize;
                if at >= end {
                    break;
                }
                if let Some(row) = into.get_mut(&self.labels[at]) {
                    row.parts.push((column.key.clone(), *value));
                }
            }
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut raw = Vec::with_capacity(self.memory() / 4 + 64);
        bytes::put(&mut raw, self.sequence);
        bytes::put(&mut raw, self.labels.len() as u64);
        let step = self.granularity.seconds();
        bytes::put_all(&mut raw, self.labels.iter().map(|label| label / step));
        bytes::put_all(&mut raw, self.sums.iter().copied());
        if self.granularity != Granularity::Second {
            for column in [&self.seconds, &self.minima, &self.maxima] {
                bytes::put_all(&mut raw, column.iter().copied());
            }
        } else {
            // A second that was taken twice is one all the same, unless a clock stood still.
            let odd = self.seconds.iter().any(|seconds| *seconds != 1);
            raw.push(odd.into());
            if odd {
                bytes::put_all(&mut raw, self.seconds.iter().copied());
                bytes::put_all(&mut raw, self.minima.iter().copied());
                bytes::put_all(&mut raw, self.maxima.iter().copied());
            }
        }
        bytes::put(&mut raw, self.columns.len() as u64);
        self.columns.iter().for_each(|column| column.encode(&mut raw));
        seal(&raw)
    }

    /// Reads what [`Block::encode`] wrote, or says that it is damaged.
    pub fn decode(granularity: Granularity, sealed: &[u8]) -> Result<Block> {
        let raw = unseal(sealed)?;
        let mut reader = Reader(&raw);
        let mut block = Block::new(granularity, reader.number()?);
        let rows = reader.count(ROWS_MAX)?;
        let step = granularity.seconds();
        let labels = reader.numbers(rows)?;
        block.labels = labels.iter().map(|label| label.saturating_mul(step)).collect();
        if !block.labels.is_sorted_by(|a, b| a < b) {
            return Err(Error::corrupt("samples are not in order of time"));
        }
        block.sums = reader.numbers(rows)?;
        let has_more = granularity != Granularity::Second || reader.byte()? != 0;
        if has_more {
            block.seconds = reader.numbers(rows)?;
            block.minima = reader.numbers(rows)?;
            block.maxima = reader.numbers(rows)?;
        } else {
            block.seconds = vec![1; rows];
            block.minima = block.sums.clone();
            block.maxima = block.sums.clone();
        }
        for _ in 0..reader.count(COLUMNS_MAX)? {
            let column = Column::decode(&mut reader, rows)?;
            let name = if let Key::Text(text) = &column.key { text.len() } else { 0 };
            block.bytes += COLUMN_BYTES + name + column.entries.len() * ENTRY_BYTES;
            if block.index.insert(column.key.clone(), block.columns.len()).is_some() {
                return Err(Error::corrupt("a value has two columns"));
            }
            block.columns.push(column);
        }
        match reader.0.is_empty() {
            true => Ok(block),
            false => Err(Error::corrupt("more follows than it says")),
        }
    }
}

impl Column {
    fn encode(&self, out: &mut Vec<u8>) {
        match &self.key {
            Key::Range(from, to) => {
                out.push(0);
                bytes::put(out, *from);
                bytes::put(out, *to);
            }
            Key::Text(text) => {
                let end = (0..=text.len().min(NAME_MAX)).rev().find(|at| text.is_char_boundary(*at));
                let text = &text[..end.unwrap_or(0)];
                out.push(1);
                bytes::put(out, text.len() as u64);
                out.extend_from_slice(text.as_bytes());
            }
            Key::Other => out.push(2),
        }
        // Runs of rows that are not, and that are, there.
        let mut runs: Vec<u64> = Vec::new();
        let mut next = 0;
        for (row, _) in &self.entries {
            match (u64::from(*row) - next, runs.last_mut()) {
                (0, Some(length)) => *length += 1,
                (gap, _) => runs.extend([gap, 1]),
            }
            next = u64::from(*row) + 1;
        }
        bytes::put(out, runs.len() as u64 / 2);
        runs.iter().for_each(|run| bytes::put(out, *run));
        bytes::put_all(out, self.entries.iter().map(|(_, value)| *value));
    }

    fn decode(reader: &mut Reader<'_>, rows: usize) -> Result<Column> {
        let key = match reader.byte()? {
            0 => Key::Range(reader.number()?, reader.number()?),
            1 => Key::text(reader.text(NAME_MAX)?),
            2 => Key::Other,
            other => return Err(Error::corrupt(format!("a value of kind {other}"))),
        };
        let mut at: Vec<u32> = Vec::new();
        let mut next = 0;
        for _ in 0..reader.count(rows)? {
            let from = next + reader.count(rows)?;
            let length = reader.count(rows)?;
            next = from + length;
            if next > rows {
                return Err(Error::corrupt("a value of a sample that is not there"));
            }
            at.extend((from..next).map(|row| row as u32));
        }
        let values = reader.numbers(at.len())?;
        Ok(Column { key, entries: at.into_iter().zip(values).collect() })
    }
}

fn seal(raw: &[u8]) -> Vec<u8> {
    let mut sealed = vec![0; HEADER + raw.len()];
    // The length says which it was: as long as what it decodes to, it is not compressed.
    let used = match codec::compress::compress(LEVEL, raw, &mut sealed[HEADER..]) {
        Some(used) if used < raw.len() => used,
        _ => {
            sealed[HEADER..].copy_from_slice(raw);
            raw.len()
        }
    };
    sealed.truncate(HEADER + used);
    sealed[12..16].copy_from_slice(&u32::try_from(raw.len()).unwrap_or(u32::MAX).to_le_bytes());
    let crc = crc(&sealed[12..]);
    sealed[..4].copy_from_slice(&MAGIC);
    sealed[4..12].copy_from_slice(&crc.to_le_bytes());
    sealed
}

fn crc(bytes: &[u8]) -> u64 {
    codec::crc64::update(u64::MAX, bytes)
}

fn unseal(sealed: &[u8]) -> Result<Vec<u8>> {
    let damaged = |what: &str| Error::corrupt(format!("block of samples: {what}"));
    let (header, body) = sealed.split_at_checked(HEADER).ok_or_else(|| damaged("it ends too soon"))?;
    let word =
        |at: usize, n: usize| header[at..at + n].iter().rev().fold(0u64, |word, b| word << 8 | u64::from(*b));
    if header[..4] != MAGIC {
        return Err(damaged("it is something else"));
    }
    if word(4, 8) != crc(&sealed[12..]) {
        return Err(damaged("it does not match its checksum"));
    }
    let length = word(12, 4) as usize;
    if length > RAW_MAX {
        return Err(damaged("it is larger than any that is written"));
    }
    if length == body.len() {
        return Ok(body.to_vec());
    }
    let mut raw = vec![0; length];
    codec::compress::decompress(LEVEL, body, &mut raw)?;
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(parts: &[(Key, u64)]) -> Taken {
        Taken { value: parts.iter().map(|(_, v)| v).sum(), parts: parts.to_vec() }
    }

    fn rows(block: &Block, from: u64, to: u64) -> BTreeMap<u64, Row> {
        let mut rows = BTreeMap::new();
        block.rows(from, to, &mut rows);
        rows
    }

    /// Pseudo-random numbers, by seed.
    fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below.max(1)
        }
    }

    #[test]
    fn blocks_come_back_the_same_whatever_they_hold() {
        for seed in 0..60 {
            let mut random = numbers(seed);
            let granularity = Granularity::ALL[random(3) as usize];
            let mut block = Block::new(granularity, random(1 << 40));
            let begin = 1_795_294_200 / span(granularity) * span(granularity);
            let mut second = begin + random(50);
            let width = random(40);
            while second < begin + span(granularity) && block.labels.len() < 700 {
                let kinds = random(4);
                let parts: BTreeMap<Key, u64> = (0..random(width + 1))
                    .map(|_| match random(kinds + 1) {
                        0 => (Key::Range(1 << random(20), 1 << 21), random(1 << 10)),
                        1 => (Key::text(&format!("iqn.2026\u{202e}{}", random(30))), random(1 << 45)),
                        _ => (Key::Other, random(3)),
                    })
                    .collect();
                let parts: Vec<_> = parts.into_iter().collect();
                assert_eq!(block.add(second, &taken(&parts)), Added::Yes);
                second += match random(9) {
                    0 => random(granularity.seconds() * 5),
                    _ => 1 + random(granularity.seconds()),
                };
            }
            let decoded = Block::decode(granularity, &block.encode()).unwrap();
            assert_eq!(decoded, block, "seed {seed}");
            for row in rows(&decoded, 0, u64::MAX).values() {
                let parts: u64 = row.parts.iter().map(|(_, v)| v).sum();
                assert!(row.parts.is_empty() || parts == row.sum, "seed {seed}: {row:?}");
            }
        }
    }

    #[test]
    fn a_minute_is_what_its_seconds_were_together() {
        let (a, b) = (Key::text("a"), Key::Other);
        let mut minutes = Block::new(Granularity::Minute, 0);
        let begin = 1_795_294_200;
        for second in 0..90 {
            let sample = if second == 7 { taken(&[(b.clone(), 600)]) } else { taken(&[(a.clone(), 2)]) };
            assert_eq!(minutes.add(begin + second, &sample), Added::Yes);
        }
        let rows = rows(&minutes, 0, u64::MAX);
        assert_eq!(rows.keys().copied().collect::<Vec<_>>(), [begin, begin + 60]);
        let first = Row { seconds: 60, sum: 718, min: 2, max: 600, parts: vec![(a.clone(), 118), (b, 600)] };
        assert_eq!(rows[&begin], first);
        assert_eq!(rows[&(begin + 60)], Row { seconds: 30, sum: 60, min: 2, max: 2, parts: vec![(a, 60)] });
    }

    #[test]
    fn a_million_values_are_some_thousand_and_the_rest_and_the_sum_agrees() {
        let mut minutes = Block::new(Granularity::Minute, 0);
        for second in 0..1_000 {
            let parts: Vec<_> = (0..1_000).map(|n| (Key::text(&format!("{second}/{n}")), 3)).collect();
            minutes.add(second, &taken(&parts));
        }
        assert_eq!(minutes.columns.len(), COLUMNS_MAX);
        for row in rows(&minutes, 0, u64::MAX).values() {
            assert_eq!(row.parts.iter().map(|(_, value)| value).sum::<u64>(), row.sum);
        }
        assert_eq!(Block::decode(Granularity::Minute, &minutes.encode()).unwrap(), minutes);
    }

    #[test]
    fn what_belongs_elsewhere_is_told() {
        let mut block = Block::new(Granularity::Second, 0);
        assert_eq!(block.add(1_199, &Taken::default()), Added::Yes);
        assert_eq!(block.add(1_200, &Taken::default()), Added::Elsewhere);
        assert_eq!(block.add(1_198, &Taken::default()), Added::Elsewhere);
        assert_eq!((block.first(), block.last()), (Some(1_199), Some(1_199)));
    }

    #[test]
    fn any_damage_is_found() {
        let mut block = Block::new(Granularity::Second, 3);
        for second in 0..300 {
            block.add(second, &taken(&[(Key::Range(second, second + 1), second), (Key::text("x"), 1)]));
        }
        let good = block.encode();
        let mut random = numbers(1);
        for _ in 0..2_000 {
            let mut bad = good.clone();
            let at = random(bad.len() as u64) as usize;
            bad[at] ^= 1 << random(8);
            assert!(Block::decode(Granularity::Second, &bad).is_err(), "byte {at}");
        }
        for end in 0..good.len() {
            assert!(Block::decode(Granularity::Second, &good[..end]).is_err());
        }
    }

    /// A hostile store has checksums that match.
    #[test]
    fn bytes_with_a_true_checksum_are_refused_or_bounded() {
        let mut block = Block::new(Granularity::Minute, 3);
        for minute in 0..100 {
            block.add(minute * 60, &taken(&[(Key::Range(minute, minute + 1), minute), (Key::text("x"), 1)]));
        }
        let good = unseal(&block.encode()).unwrap();
        let mut random = numbers(2);
        for _ in 0..20_000 {
            let mut bad = good.clone();
            for _ in 0..=random(3) {
                let at = random(bad.len() as u64) as usize;
                bad[at] = random(256) as u8;
            }
            bad.truncate(1 + random(bad.len() as u64 * 2) as usize);
            if let Ok(block) = Block::decode(Granularity::Minute, &seal(&bad)) {
                rows(&block, 0, u64::MAX);
            }
        }
    }
}
