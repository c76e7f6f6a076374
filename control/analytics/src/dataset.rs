//! What is kept of one statistic: its three series, and what of them is in memory.
//!
//! ```text
//!   Series::add ──▶ tail: the block that grows ──▶ full: another is begun ──▶ sealed: encoded ──▶ the store, if it is saved
//!                   on the engine's loop            waits for an errand        in an errand
//! ```
//!
//! The loop only adds numbers to columns. A block is encoded by the errand, which holds the lock for that block alone.

use crate::block::{Added, Block, Row};
use crate::store::Put;
use crate::tap::{Key, Taken, Tapped};
use api::analytics::Granularity;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use units::Result;

/// A block that is encoded and not on disk.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub first: u64,
    pub last: u64,
    pub sequence: u64,
    pub bytes: Arc<[u8]>,
}

#[derive(Debug)]
pub(crate) struct Series {
    granularity: Granularity,
    pub tail: Option<Block>,
    full: VecDeque<Block>,
    pub sealed: VecDeque<Sealed>,
    /// The tail has samples that are not on disk.
    is_dirty: bool,
}

impl Series {
    fn new(granularity: Granularity) -> Series {
        Series { granularity, tail: None, full: VecDeque::new(), sealed: VecDeque::new(), is_dirty: false }
    }

    fn add(&mut self, second: u64, taken: &Taken, sequence: &mut u64) {
        self.is_dirty = true;
        if let Some(tail) = &mut self.tail
            && tail.add(second, taken) == Added::Yes
        {
            return;
        }
        self.end_tail();
        *sequence += 1;
        let mut tail = Block::new(self.granularity, *sequence);
        tail.add(second, taken);
        self.tail = Some(tail);
    }

    fn end_tail(&mut self) {
        self.full.extend(self.tail.take());
    }

    pub fn memory(&self) -> usize {
        let blocks = self.tail.iter().chain(&self.full).map(Block::memory);
        blocks.chain(self.sealed.iter().map(|sealed| sealed.bytes.len())).sum()
    }

    /// Encodes the oldest block that is full; whether there was one.
    fn seal_one(&mut self) -> bool {
        let Some(block) = self.full.pop_front() else { return false };
        if let (Some(first), Some(last)) = (block.first(), block.last()) {
            let (sequence, bytes) = (block.sequence, block.encode().into());
            self.sealed.push_back(Sealed { first, last, sequence, bytes });
        }
        true
    }

    /// Forgets the oldest of what is encoded; whether there was any.
    fn drop_oldest(&mut self) -> bool {
        self.sealed.pop_front().is_some()
    }

    /// From which second on all that there is, is in columns in memory.
    pub fn in_columns_from(&self) -> Option<u64> {
        match self.full.is_empty() && self.sealed.is_empty() {
            true => self.tail.as_ref()?.first(),
            false => None,
        }
    }

    /// The rows of what is not on disk, over those that are.
    pub fn rows(&self, from: u64, to: u64, into: &mut BTreeMap<u64, Row>) {
        self.full.iter().chain(&self.tail).for_each(|block| block.rows(from, to, into));
    }

    fn first(&self) -> Option<u64> {
        let sealed = self.sealed.front().map(|sealed| sealed.first);
        sealed.or_else(|| self.full.front().and_then(Block::first)).or_else(|| self.tail.as_ref()?.first())
    }

    /// Forgets what ended before that second.
    fn prune(&mut self, before: u64) {
        self.sealed.retain(|sealed| sealed.last >= before);
        self.full.retain(|block| block.last().is_some_and(|last| last >= before));
        if self.tail.as_ref().and_then(Block::last).is_some_and(|last| last < before) {
            self.tail = None;
        }
    }
}

pub(crate) struct Dataset {
    pub id: u32,
    /// What it is of, and the statistic while it is open. A saved one may be of a statistic that there is no more.
    pub of: Tapped,
    pub is_open: bool,
    pub saved: bool,
    pub suspended: bool,
    pub problem: Option<String>,
    pub activity: u64,
    /// Of its first sample, as far as it is known.
    pub since: Option<u64>,
    pub last: u64,
    series: [Series; 3],
    pub on_disk: [u64; 3],
}

impl Dataset {
    pub fn new(id: u32, of: Tapped) -> Dataset {
        Dataset {
            id,
            of,
            is_open: true,
            saved: false,
            suspended: false,
            problem: None,
            activity: 0,
            since: None,
            last: 0,
            series: Granularity::ALL.map(Series::new),
            on_disk: [0; 3],
        }
    }

    pub fn series(&self, of: Granularity) -> &Series {
        &self.series[of as usize]
    }

    /// Whether samples are to come.
    pub fn goes_on(&self) -> bool {
        self.is_open && !self.suspended
    }

    /// Takes a sample, unless it is suspended.
    pub fn sample(&mut self, second: u64, sequence: &mut u64) {
        if !self.goes_on() {
            return;
        }
        let taken = summed(self.of.tap.take());
        self.series.iter_mut().for_each(|series| series.add(second, &taken, sequence));
        self.since.get_or_insert(second);
        self.last = second;
    }

    pub fn memory(&self) -> usize {
        self.series.iter().map(Series::memory).sum()
    }

    /// What of it grows by the second, in columns.
    pub fn tail_memory(&self) -> usize {
        self.series[0].tail.as_ref().map_or(0, Block::memory)
    }

    /// Begins another block before the one that grows is full.
    pub fn end_tail(&mut self) {
        self.series[0].end_tail();
    }

    /// The same of all three series.
    pub fn end_tails(&mut self) {
        self.series.iter_mut().for_each(Series::end_tail);
    }

    /// Encodes one block that is full; whether there was one.
    pub fn seal_one(&mut self) -> bool {
        self.series.iter_mut().any(Series::seal_one)
    }

    /// Gives memory back: the oldest samples that are not on disk. Whether there were any that could go.
    pub fn drop_oldest(&mut self) -> bool {
        self.series.iter_mut().any(|series| series.drop_oldest() || series.full.pop_front().is_some())
    }

    /// All of one series that the store lacks, to be written; it counts as written until [`Dataset::not_written`] is said.
    pub fn puts(&mut self, of: Granularity) -> Vec<Put> {
        let (id, series) = (self.id, &mut self.series[of as usize]);
        let put = |first, sequence, bytes: Vec<u8>| Put { id, granularity: of, first, sequence, bytes };
        let mut puts: Vec<Put> =
            series.sealed.iter().map(|s| put(s.first, s.sequence, s.bytes.to_vec())).collect();
        if std::mem::take(&mut series.is_dirty)
            && let Some(tail) = &series.tail
            && let Some(first) = tail.first()
        {
            puts.push(put(first, tail.sequence, tail.encode()));
        }
        puts
    }

    pub fn written(&mut self, of: Granularity, sequences: &[u64]) {
        self.series[of as usize].sealed.retain(|sealed| !sequences.contains(&sealed.sequence));
    }

    pub fn not_written(&mut self) {
        self.series.iter_mut().for_each(|series| series.is_dirty = true);
    }

    /// Goes on with blocks of the store: the last of a series, if it still grows at that second.
    pub fn go_on(&mut self, of: Granularity, blocks: &[Vec<u8>], now: u64) -> Result<()> {
        let decoded: Vec<Block> = blocks.iter().map(|b| Block::decode(of, b)).collect::<Result<_>>()?;
        let last = decoded.into_iter().max_by_key(|block| block.sequence);
        self.series[of as usize].tail = last.filter(|block| block.last().is_some_and(|last| last <= now));
        Ok(())
    }

    pub fn prune(&mut self, of: Granularity, before: u64) {
        self.series[of as usize].prune(before);
    }

    /// Of the first sample in memory.
    pub fn first_in_memory(&self) -> Option<u64> {
        self.series.iter().filter_map(Series::first).min()
    }

    pub fn told(&self) -> api::analytics::Dataset {
        api::analytics::Dataset {
            name: self.of.name.clone(),
            grouping: self.of.grouping.clone(),
            explanation: self.of.explanation.clone(),
            unit: self.of.unit.clone(),
            overhead: self.of.overhead.clone(),
            range: self.of.scale.is_some(),
            incore: self.memory() as u64,
            size: self.on_disk.iter().sum(),
            suspended: self.suspended,
            saved: self.saved,
            since: self.since.unwrap_or(0),
            last: self.last,
            activity: self.activity,
            problem: self.problem.clone(),
        }
    }
}

/// Parts that do not add up would disagree for ever: what is missing is other.
fn summed(mut taken: Taken) -> Taken {
    if taken.parts.is_empty() {
        return taken;
    }
    let sum = taken.parts.iter().fold(0u64, |sum, (_, value)| sum.saturating_add(*value));
    match taken.value > sum {
        true => taken.parts.push((Key::Other, taken.value - sum)),
        false => taken.value = sum,
    }
    taken
}
