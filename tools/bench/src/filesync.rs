//! The filesync workload: what a database, a mail server or an untar over NFS does to a store that promises durability.
//!
//! ```text
//!   one stream, again and again:   create ─▶ write 255 bytes, O_DSYNC ─▶ close ─▶ unlink
//!
//!   files    on any mounted path: std::fs and a thread for each stream
//!   volume   on a volume of the engine, which has no files: the synchronous write alone
//!   array    on a volume of a pool whose device is a model: an array with a battery that takes every flush literally
//! ```
//!
//! Each of the N files is one measurement, from its creation to its end. The line about seconds is the one that the tool
//! of this name has always printed.

pub mod array;
pub mod files;
pub mod volume;

use std::time::Duration;
use workload::Histogram;

/// Bytes written into each file.
pub const LEN: usize = 255;

/// How many files, by how many writers at once. They share the files among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub count: u64,
    pub streams: usize,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub count: u64,
    pub elapsed: Duration,
    pub latencies: Histogram,
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The line that this tool is known by, and how long single files took.
pub fn render(outcome: &Outcome) -> String {
    let seconds = outcome.elapsed.as_secs_f64();
    format!(
        "Time in seconds to create and unlink {} files with O_DSYNC: {seconds:.6}\n{}\n",
        outcome.count,
        latencies(&outcome.latencies)
    )
}

fn latencies(all: &Histogram) -> String {
    let at = |percent| time(all.percentile(percent));
    format!(
        "latency: p50 {}  p90 {}  p99 {}  p99.9 {}  max {}",
        at(50.0),
        at(90.0),
        at(99.0),
        at(99.9),
        time(all.max())
    )
}

/// With three digits: `1.23ms`.
pub(crate) fn time(latency: Duration) -> String {
    let (value, unit) = match latency.as_nanos() as f64 {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "us"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_one_that_it_always_was() {
        let mut latencies = Histogram::default();
        (0..100).for_each(|_| latencies.record(Duration::from_micros(1500)));
        let outcome = Outcome { count: 100, elapsed: Duration::from_millis(7050), latencies };
        assert_eq!(
            render(&outcome),
            "Time in seconds to create and unlink 100 files with O_DSYNC: 7.050000\n\
             latency: p50 1.50ms  p90 1.50ms  p99 1.50ms  p99.9 1.50ms  max 1.50ms\n"
        );
        assert_eq!(outcome.per_second().round(), 14.0);
        assert_eq!(time(Duration::from_nanos(64)), "64.0ns");
        assert_eq!(time(Duration::from_secs(123)), "123s");
    }
}
