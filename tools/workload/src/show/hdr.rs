//! Logs of histograms, as the tools of HdrHistogram read them: a line for each interval and kind of request, tagged.
//!
//! ```text
//!   Tag=run1:read,12.000,1.000,5.374,HISTF…     where it begins, how long it is, its maximum in ms, and the histogram
//! ```
//!
//! Values are nanoseconds, within 1/32 of what was measured: the buckets here are that wide.

use crate::histogram::Histogram;
use crate::tally::Figures;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::io::Write;
use std::time::Duration;
use units::{Error, Kind, Result};
use world::WallTime;

/// Significant digits: as many as the buckets have, and a little more.
const DIGITS: u8 = 2;
const HEAD: &str = "#[Histogram log format version 1.3]\n";
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// A log that is being written.
#[derive(Debug)]
pub struct Log<W: Write> {
    out: W,
    /// From the beginning on.
    at: Duration,
}

fn failed(e: impl std::fmt::Display) -> Error {
    Error::new(Kind::Io, "write the log of histograms").because(std::io::Error::other(e.to_string()))
}

impl<W: Write> Log<W> {
    pub fn new(mut out: W, begun: WallTime) -> Result<Log<W>> {
        let start =
            format!("#[StartTime: {}.{:03} (seconds since epoch)]\n", begun.seconds, begun.nanos / 1_000_000);
        out.write_all([HEAD, &start, LEGEND].concat().as_bytes()).map_err(failed)?;
        Ok(Log { out, at: Duration::ZERO })
    }

    /// What an interval of a run had.
    pub fn add(&mut self, run: &str, figures: &Figures) -> Result<()> {
        let kinds = [("read", &figures.reads), ("write", &figures.writes), ("flush", &figures.flushes)];
        for (kind, histogram) in kinds.into_iter().filter(|(_, h)| h.count() > 0) {
            let line = format!(
                "Tag={}:{kind},{:.3},{:.3},{:.3},{}\n",
                tag(run),
                self.at.as_secs_f64(),
                figures.elapsed.as_secs_f64(),
                histogram.max().as_secs_f64() * 1e3,
                packed(histogram)?
            );
            self.out.write_all(line.as_bytes()).map_err(failed)?;
        }
        self.at += figures.elapsed;
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(failed)
    }
}

/// A name without what separates the fields of a line.
fn tag(run: &str) -> String {
    run.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

fn packed(histogram: &Histogram) -> Result<String> {
    let max = u64::try_from(histogram.max().as_nanos()).unwrap_or(u64::MAX / 2).max(2);
    let mut copy = hdrhistogram::Histogram::<u64>::new_with_max(max, DIGITS).map_err(failed)?;
    for (value, count) in histogram.buckets() {
        let nanos = u64::try_from(value.as_nanos()).unwrap_or(max).min(max);
        copy.record_n(nanos, count).map_err(failed)?;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&copy, &mut bytes).map_err(failed)?;
    Ok(BASE64_STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{Ended, Kind, Tally};
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use world::Instant;

    #[test]
    fn a_log_is_read_by_the_readers_of_the_format() {
        let tally = Tally::default();
        for micros in 1..=1000u64 {
            let (begun, end) = (Instant(0), Instant(micros * 1000));
            let kind = if micros % 2 == 0 { Kind::Read } else { Kind::Write };
            tally.begin(begun);
            tally.end(&Ended { kind, due: begun, begun, end, bytes: 512 });
        }
        let mut figures = Figures::of(Duration::from_secs(1), Duration::ZERO);
        figures.join(&tally.take(Instant(0)));
        let mut bytes = Vec::new();
        let mut log = Log::new(&mut bytes, WallTime { seconds: 1_400_000_000, nanos: 500_000_000 }).unwrap();
        log.add("run1 (a,b)", &figures).unwrap();
        log.add("run1 (a,b)", &figures).unwrap();
        log.finish().unwrap();
        let (mut intervals, mut starts) = (Vec::new(), Vec::new());
        for entry in IntervalLogIterator::new(&bytes) {
            match entry.unwrap() {
                LogEntry::Interval(interval) => intervals.push(interval),
                LogEntry::StartTime(at) => starts.push(at),
                _ => {}
            }
        }
        assert_eq!(starts, [Duration::from_millis(1_400_000_000_500)]);
        assert_eq!(intervals.len(), 4);
        let third = &intervals[2];
        assert_eq!(third.tag().map(|t| t.as_str()), Some("run1_(a_b):read"));
        assert_eq!(
            (third.start_timestamp(), third.duration()),
            (Duration::from_secs(1), Duration::from_secs(1))
        );
        let packed = BASE64_STANDARD.decode(third.encoded_histogram()).unwrap();
        let read: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut packed.as_slice()).unwrap();
        assert_eq!(read.len(), 500);
        let median = read.value_at_quantile(0.5);
        assert!((500_000..540_000).contains(&median), "{median}");
    }
}
