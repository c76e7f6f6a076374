//! What to do.

use std::ops::Range;
use std::time::Duration;
use units::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Block after block, from the start again after the end.
    Sequential,
    /// Any block, each as likely.
    Random,
}

/// When to stop. Requests that have begun are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Requests(u64),
    Time(Duration),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub pattern: Pattern,
    /// Bytes per request; a multiple of 512.
    pub block_size: u32,
    /// How many requests are under way at once.
    pub queue_depth: usize,
    /// 0 writes only, 100 reads only.
    pub read_percent: u8,
    /// The part of the target to use, cut to whole blocks; `None` for all of it.
    pub range: Option<Range<u64>>,
    pub limit: Limit,
    /// A flush after so many writes; 0 for none. There is always one at the end of a run that wrote.
    pub flush_every: u64,
    /// How much of each block is zeros.
    pub compressible_percent: u8,
    /// How many cores the lanes are spread over; 1 keeps them on the core that runs the workload.
    pub cores: usize,
    pub seed: u64,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            pattern: Pattern::Random,
            block_size: 4096,
            queue_depth: 1,
            read_percent: 100,
            range: None,
            limit: Limit::Time(Duration::from_secs(5)),
            flush_every: 0,
            compressible_percent: 0,
            cores: 1,
            seed: 1,
        }
    }
}

impl Spec {
    /// The offset of the first block and the number of blocks.
    pub(crate) fn blocks(&self, size: u64) -> Result<(u64, u64)> {
        let block = u64::from(self.block_size);
        if block == 0 || !block.is_multiple_of(512) {
            return Err(Error::invalid("the block size of a workload is a multiple of 512"));
        }
        if self.queue_depth == 0 || self.read_percent > 100 || self.compressible_percent > 100 {
            return Err(Error::invalid("a workload has a queue depth, and percentages up to 100"));
        }
        let range = self.range.clone().unwrap_or(0..size);
        let first = range.start.next_multiple_of(block);
        let count = range.end.min(size).saturating_sub(first) / block;
        if count < self.queue_depth as u64 {
            return Err(Error::invalid("a workload needs as many blocks as its queue is deep"));
        }
        Ok((first, count))
    }
}
