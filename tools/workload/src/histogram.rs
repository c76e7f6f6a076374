//! Latencies, counted in buckets that are never wider than 1/32 of their value.
//!
//! ```text
//!   value   0 1 2 ... 63 | 64 66 68 ... 126 | 128 132 ... | ...      each power of two is cut into 32
//! ```

use std::time::Duration;

const CUTS: u64 = 32;
/// Up to 2^42 ns, more than an hour; what is longer falls into the last bucket.
const BUCKETS: usize = 38 * CUTS as usize;

/// Takes memory with the first value.
#[derive(Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
    sum: u64,
}

fn bucket(nanos: u64) -> usize {
    // Values below 64 have a bucket each: their power of two is cut into no more parts than it has.
    let shift = nanos.checked_ilog2().unwrap_or(0).saturating_sub(5);
    let index = u64::from(shift) * CUTS + (nanos >> shift);
    (index as usize).min(BUCKETS - 1)
}

/// The largest value that falls into a bucket.
fn upper(bucket: usize) -> u64 {
    let shift = (bucket as u64 / CUTS).saturating_sub(1);
    ((bucket as u64 - shift * CUTS + 1) << shift) - 1
}

impl Histogram {
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }

    pub fn merge(&mut self, other: &Histogram) {
        if other.total == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// The buckets that hold values: the largest value of each, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        held.map(|(index, count)| (Duration::from_nanos(upper(index).min(self.max)), *count))
    }

    pub fn count(&self) -> u64 {
        self.total
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum.checked_div(self.total).unwrap_or(0))
    }

    /// The latency that `percent` of the requests did not exceed, within 1/32.
    pub fn percentile(&self, percent: f64) -> Duration {
        let wanted = (self.total as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.counts.iter().position(|&n| {
            seen += n;
            seen >= wanted
        });
        Duration::from_nanos(reached.map_or(0, upper).min(self.max))
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram({} values, mean {:?}, max {:?})", self.total, self.mean(), self.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_values_and_is_narrow() {
        let mut last = 0;
        for shift in 0..42 {
            for step in 0..64 {
                let value = (1u64 << shift) + step * ((1u64 << shift) / 64);
                let b = bucket(value);
                assert!(upper(b) >= value && (b == 0 || upper(b - 1) < value), "{value} in bucket {b}");
                assert!(upper(b) - value <= value / 32, "{value} in bucket {b}");
                assert!(b >= last);
                last = b;
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut a = Histogram::default();
        let mut b = Histogram::default();
        for micros in 1..=1000 {
            (if micros % 2 == 0 { &mut a } else { &mut b }).record(Duration::from_micros(micros));
        }
        a.merge(&b);
        assert_eq!(a.count(), 1000);
        for (percent, micros) in [(50.0, 500.0), (99.0, 990.0), (0.1, 1.0)] {
            let found = a.percentile(percent).as_nanos() as f64 / 1000.0;
            assert!((micros..micros * 1.04).contains(&found), "{percent}: {found}");
        }
        assert_eq!(a.percentile(100.0), Duration::from_millis(1));
        assert_eq!(Histogram::default().percentile(50.0), Duration::ZERO);
    }
}
