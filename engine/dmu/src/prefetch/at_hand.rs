//! Reads of blocks that a core has at hand: they bring nothing nearer, and are told the streams when a read beside them is.
//!
//! ```text
//!   reads of a core   ├h┤├h┤├h┤ m    h: at hand, one run that grows    m: not: the streams are told of the run, then of m
//! ```
//!
//! The streams are shared by all cores, and what is told them is changed by all; of reads at random, none is told. A reader
//! in order is known to them by its whole run when it comes to what is not at hand, so that it is read ahead of as far as
//! if each of its reads had been told.

use crate::lock::lock;
use std::ops::Range;
use std::sync::{Mutex, OnceLock};

/// Readers in order that one core has at once, as far as they are kept apart.
const RUNS: usize = 4;

/// Of one object; takes no memory before the first read.
#[derive(Debug, Default)]
pub(super) struct AtHand(OnceLock<Box<[Core]>>);

/// In a line of the processor's cache of its own.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Core(Mutex<Runs>);

#[derive(Debug, Default)]
struct Runs {
    /// Bytes, empty where there is none; with the number of the read that was last in it.
    runs: [(Range<u64>, u64); RUNS],
    reads: u64,
}

impl AtHand {
    fn of_this_core(&self) -> Option<&Core> {
        let (core, cores) = world::core_if_any()?;
        let all = self.0.get_or_init(|| (0..cores).map(|_| Core::default()).collect());
        all.get(core)
    }

    /// Notes a read of these bytes.
    pub fn note(&self, bytes: Range<u64>) {
        if let Some(core) = self.of_this_core() {
            lock(&core.0).note(bytes);
        }
    }

    /// The run that ends or begins where these bytes begin or end. It is forgotten.
    pub fn beside(&self, bytes: &Range<u64>) -> Option<Range<u64>> {
        self.0.get()?;
        lock(&self.of_this_core()?.0).beside(bytes)
    }
}

impl Runs {
    fn note(&mut self, bytes: Range<u64>) {
        self.reads += 1;
        let mut oldest = 0;
        for i in 0..RUNS {
            let (run, read) = &mut self.runs[i];
            if !run.is_empty() && (run.end == bytes.start || run.start == bytes.end) {
                *run = run.start.min(bytes.start)..run.end.max(bytes.end);
                *read = self.reads;
                return;
            }
            if self.runs[i].1 < self.runs[oldest].1 {
                oldest = i;
            }
        }
        self.runs[oldest] = (bytes, self.reads);
    }

    fn beside(&mut self, bytes: &Range<u64>) -> Option<Range<u64>> {
        let is_beside = |(run, _): &&mut (Range<u64>, u64)| {
            !run.is_empty() && (run.end == bytes.start || run.start == bytes.end)
        };
        self.runs.iter_mut().find(is_beside).map(|(run, read)| {
            *read = 0;
            std::mem::take(run)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_are_one_run_in_either_direction_and_told_once() {
        let mut runs = Runs::default();
        for at in 0..4 {
            runs.note(4 * at..4 * at + 4);
            runs.note(1000 - 4 * at..1004 - 4 * at);
            runs.note(4 * at + 100..4 * at + 104);
            // One at random pushes out the one before.
            runs.note(5000 + 100 * at..5004 + 100 * at);
        }
        assert_eq!(runs.beside(&(17..20)), None);
        assert_eq!(runs.beside(&(116..120)), Some(100..116));
        assert_eq!(runs.beside(&(116..120)), None);
    }

    #[test]
    fn the_run_goes_that_has_rested_longest() {
        let mut runs = Runs::default();
        (0..4).for_each(|n| runs.note(100 * n..100 * n + 4));
        runs.note(4..8);
        runs.note(1000..1004);
        assert_eq!((runs.beside(&(8..12)), runs.beside(&(104..108))), (Some(0..8), None));
    }
}
