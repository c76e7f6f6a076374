//! How long a device takes for a read, and when it is so much longer than those beside it that reads are better sent there.
//!
//! ```text
//!   read took, divided by how many the device did at once ──▶ its logarithm ──▶ typical += (it - typical) / 8
//!   a read is to be sent: typical > 30 ms, and > 5 x that of the devices beside it ──▶ left out, if it can be
//!   nothing read of it for vdev_read_sit_out_secs ──▶ not known any more: the next read finds out
//! ```
//!
//! The mean of logarithms, because times of devices differ by powers of ten: what is slow now and then is not slow. One
//! hiccup of a second moves 100 µs to 300 µs. Divided, because a disk that turns is the busier side of a mirror when the
//! other one reads on where it is, and no slower for that. Compared anew for each read, so a device that was left out is
//! asked again at once when the others become slower still.
//!
//! A device that is left out is written to, resilvered and scrubbed as before.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Below this nothing is slow: a disk that turns takes half of it for a seek and a turn.
const SLOW: Duration = Duration::from_millis(30);
/// How much longer than those beside it: a disk that is merely the busiest of them is not that slow.
const FACTOR: u32 = 5;
/// Steps of a doubling.
const FRACTION: u32 = 8;
/// What a read counts for: 1 / 2^3.
const WEIGHT: u32 = 3;

/// What is known of one device.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The mean of logarithms, in 2^-[`FRACTION`] of a doubling; 0: nothing is known.
    typical: AtomicU64,
    /// When a read ended last, in nanoseconds since `opened`.
    last: AtomicU64,
}

impl Pace {
    /// A read ended, so long after the device was `opened`. Reads that end at the same time may count as one.
    pub(crate) fn read_took(&self, took: Duration, since_opened: Duration) {
        let (new, known) = (logarithm(took), self.typical.load(Relaxed));
        let next =
            if known == 0 { new } else { known.saturating_add_signed((new as i64 - known as i64) >> WEIGHT) };
        self.typical.store(next.max(1), Relaxed);
        self.last.store(since_opened.as_nanos() as u64, Relaxed);
    }

    /// How long a read typically takes. That it is slow is forgotten when no read ended within `memory`; the clock is asked
    /// for that alone.
    pub(crate) fn typical(
        &self,
        since_opened: impl FnOnce() -> Duration,
        memory: Duration,
    ) -> Option<Duration> {
        let typical = Some(self.typical.load(Relaxed)).filter(|known| *known != 0).map(power)?;
        if typical > SLOW {
            let last = Duration::from_nanos(self.last.load(Relaxed));
            if since_opened().saturating_sub(last) >= memory {
                self.typical.store(0, Relaxed);
                return None;
            }
        }
        Some(typical)
    }
}

/// Whether reads of a device are better sent to those beside it. What is not known is neither slow nor quick.
pub(crate) fn is_slow(own: Option<Duration>, beside: Option<Duration>) -> bool {
    matches!((own, beside), (Some(own), Some(beside)) if own > SLOW && own > beside * FACTOR)
}

/// The median of what is known.
pub(crate) fn median(known: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut known: Vec<Duration> = known.collect();
    known.sort_unstable();
    known.get(known.len().checked_sub(1)? / 2).copied()
}

/// Of nanoseconds, to base 2; between powers it is linear.
fn logarithm(took: Duration) -> u64 {
    let ns = (took.as_nanos() as u64).max(2);
    let whole = ns.ilog2();
    let rest = ((u128::from(ns) << FRACTION) >> whole) as u64 - (1 << FRACTION);
    (u64::from(whole) << FRACTION) + rest
}

fn power(logarithm: u64) -> Duration {
    let (whole, rest) = (logarithm >> FRACTION, logarithm & ((1 << FRACTION) - 1));
    let ns = (u128::from((1 << FRACTION) + rest) << whole.min(63)) >> FRACTION;
    Duration::from_nanos(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn times_are_kept_to_the_two_hundredth_part() {
        for ns in [2, 3, 1000, 99_999, 64_000_000, 40_000_000_000, u64::MAX / 2] {
            let back = power(logarithm(Duration::from_nanos(ns))).as_nanos() as f64;
            assert!((back / ns as f64 - 1.0).abs() < 0.005, "{ns} {back}");
        }
        assert!(logarithm(Duration::ZERO) > 0 && power(u64::MAX) > Duration::ZERO);
    }

    #[test]
    fn one_hiccup_is_not_slow_and_ten_slow_reads_are() {
        let (own, beside) = (Pace::default(), Some(Duration::from_micros(100)));
        let typical = |pace: &Pace| pace.typical(|| at(1), LONG);
        for _ in 0..20 {
            own.read_took(Duration::from_micros(100), at(1));
        }
        own.read_took(Duration::from_secs(1), at(1));
        assert!(typical(&own).unwrap() < Duration::from_micros(400), "{:?}", typical(&own));
        let mut reads = 0;
        while !is_slow(typical(&own), beside) {
            own.read_took(at(64), at(1));
            reads += 1;
        }
        assert!((5..=20).contains(&reads), "{reads}");
        assert!(!is_slow(typical(&own), Some(at(13))), "those beside it are no better");
        assert!(!is_slow(typical(&own), None) && !is_slow(None, beside));
        assert!(own.typical(|| at(600_002), LONG).is_none(), "it is asked again");
    }

    #[test]
    fn of_several_the_one_in_the_middle_counts() {
        assert_eq!(median([at(9), at(1), at(100)].into_iter()), Some(at(9)));
        assert_eq!(median([at(100), at(1)].into_iter()), Some(at(1)));
        assert_eq!(median(std::iter::empty()), None);
    }
}
