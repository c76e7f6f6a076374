//! What came of it.

use crate::histogram::Histogram;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub reads: Histogram,
    pub writes: Histogram,
    pub flushes: Histogram,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// From the first request to the end of the last, the final flush included.
    pub elapsed: Duration,
    /// What the whole process used meanwhile, on all cores, user and system; clients in other processes not included.
    pub cpu: Duration,
}

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

impl Report {
    pub fn requests(&self) -> u64 {
        self.reads.count() + self.writes.count()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }

    pub fn mib_per_second(&self) -> f64 {
        self.bytes() as f64 / MIB / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub fn iops(&self) -> f64 {
        self.requests() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub fn cpu_seconds_per_gib(&self) -> f64 {
        self.cpu.as_secs_f64() / (self.bytes() as f64 / GIB).max(1e-9)
    }

    pub(crate) fn merge(&mut self, other: &Report) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.flushes.merge(&other.flushes);
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

/// One line for the whole, one for each kind of request there was.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} MiB/s, {:.0} IOPS, {:.2} CPU s/GiB, {:.2} s",
            self.mib_per_second(),
            self.iops(),
            self.cpu_seconds_per_gib(),
            self.elapsed.as_secs_f64()
        )?;
        for (name, latencies) in [("read", &self.reads), ("write", &self.writes), ("flush", &self.flushes)] {
            if latencies.count() > 0 {
                let micros = |d: Duration| d.as_nanos() as f64 / 1000.0;
                write!(
                    f,
                    "\n  {name:<6}{:>9}   p50 {:.1} us   p99 {:.1} us   max {:.1} us",
                    latencies.count(),
                    micros(latencies.percentile(50.0)),
                    micros(latencies.percentile(99.0)),
                    micros(latencies.max())
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_in_the_units_of_the_trade() {
        let mut report = Report {
            bytes_read: 1 << 30,
            elapsed: Duration::from_secs(2),
            cpu: Duration::from_millis(500),
            ..Report::default()
        };
        (0..8192).for_each(|_| report.reads.record(Duration::from_micros(100)));
        assert_eq!(
            report.to_string(),
            "512 MiB/s, 4096 IOPS, 0.50 CPU s/GiB, 2.00 s\n  \
             read       8192   p50 100.0 us   p99 100.0 us   max 100.0 us"
        );
    }
}
