//! When errors are too many. Pure.
//!
//! Ten within ten minutes, unless the vdev's properties say otherwise, as OpenZFS's event daemon counts them:
//!
//! ```text
//!   failed operations   io_n, io_t               condemn a device
//!   wrong checksums     checksum_n, checksum_t   only mark it: each was repaired from elsewhere
//!   slow operations     slow_io_n, slow_io_t     mark it; not counted until slow_io_n is set
//! ```

use std::collections::VecDeque;
use std::time::Duration;
use world::Instant;

/// What a device did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Read,
    Write,
    Checksum,
    Slow,
}

/// So many within so long are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    pub count: u64,
    pub within: Duration,
}

/// Of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    pub io: Threshold,
    pub checksum: Threshold,
    pub slow: Option<Threshold>,
}

/// What a threshold may be set to: each error below it is remembered.
pub const THRESHOLD_MAX: u64 = 100_000;
/// Within so long, where only a count is set.
pub const WITHIN: Duration = Duration::from_secs(600);
pub const WITHIN_SLOW: Duration = Duration::from_secs(30);
const TOO_MANY: Threshold = Threshold { count: 10, within: WITHIN };

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { io: TOO_MANY, checksum: TOO_MANY, slow: None }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Diagnosis {
    pub thresholds: Thresholds,
    io: VecDeque<Instant>,
    checksum: VecDeque<Instant>,
    slow: VecDeque<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing proven; whether the device still answers at all is another question.
    Bearable,
    /// Wrong checksums, or slow operations.
    Ailing,
    TooManyErrors,
}

impl Diagnosis {
    pub fn note(&mut self, fault: Fault, now: Instant) {
        let Thresholds { io, checksum, slow } = self.thresholds;
        let (recent, most) = match fault {
            Fault::Read | Fault::Write => (&mut self.io, io.count),
            Fault::Checksum => (&mut self.checksum, checksum.count),
            Fault::Slow => (&mut self.slow, slow.map_or(0, |slow| slow.count)),
        };
        recent.push_back(now);
        while recent.len() as u64 > most {
            recent.pop_front();
        }
    }

    /// Forgets what was noted.
    pub fn forget(&mut self) {
        *self = Diagnosis { thresholds: self.thresholds, ..Diagnosis::default() };
    }

    pub fn verdict(&self, now: Instant) -> Verdict {
        let Thresholds { io, checksum, slow } = self.thresholds;
        if is_too_much(&self.io, io, now) {
            Verdict::TooManyErrors
        } else if is_too_much(&self.checksum, checksum, now)
            || slow.is_some_and(|slow| is_too_much(&self.slow, slow, now))
        {
            Verdict::Ailing
        } else {
            Verdict::Bearable
        }
    }
}

/// A count of 0 stands for "never".
fn is_too_much(recent: &VecDeque<Instant>, threshold: Threshold, now: Instant) -> bool {
    let Threshold { count, within } = threshold;
    let mut newest = recent.iter().rev().take(count as usize);
    let is_enough = count > 0 && recent.len() as u64 >= count;
    is_enough && newest.next_back().is_some_and(|&first| now.since(first) <= within)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(s: u64) -> Instant {
        Instant(s * 1_000_000_000)
    }

    #[test]
    fn ten_errors_condemn_a_device_unless_they_lie_far_apart() {
        let mut d = Diagnosis::default();
        (0..10).for_each(|i| d.note(Fault::Read, second(i * 100)));
        assert_eq!(d.verdict(second(900)), Verdict::Bearable);
        (0..5).for_each(|_| d.note(Fault::Write, second(1000)));
        assert_eq!(d.verdict(second(1000)), Verdict::TooManyErrors);
        assert_eq!(d.verdict(second(2000)), Verdict::Bearable);
    }

    #[test]
    fn wrong_checksums_only_mark_it() {
        let mut d = Diagnosis::default();
        (0..10).for_each(|_| d.note(Fault::Checksum, second(1)));
        assert_eq!(d.verdict(second(1)), Verdict::Ailing);
    }

    #[test]
    fn what_is_too_much_is_as_it_was_set_and_slowness_counts_only_then() {
        let mut d = Diagnosis::default();
        (0..50).for_each(|_| d.note(Fault::Slow, second(1)));
        assert_eq!(d.verdict(second(1)), Verdict::Bearable);
        let (io, slow) = (Threshold { count: 2, within: Duration::from_secs(5) }, Duration::from_secs(30));
        d.thresholds = Thresholds { io, slow: Some(Threshold { count: 3, within: slow }), ..d.thresholds };
        (0..3).for_each(|i| d.note(Fault::Slow, second(i * 10)));
        assert_eq!(d.verdict(second(30)), Verdict::Ailing);
        assert_eq!(d.verdict(second(31)), Verdict::Bearable);
        d.note(Fault::Read, second(40));
        d.note(Fault::Read, second(46));
        assert_eq!(d.verdict(second(46)), Verdict::Bearable);
        d.note(Fault::Write, second(47));
        assert_eq!(d.verdict(second(47)), Verdict::TooManyErrors);
        d.thresholds.io.count = 0;
        assert_eq!(d.verdict(second(47)), Verdict::Bearable, "0 is never");
    }
}
