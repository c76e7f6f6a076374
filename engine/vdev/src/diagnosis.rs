//! When errors are too many. Pure.
//!
//! Ten within ten minutes, as OpenZFS's event daemon counts them: failed operations condemn a device, wrong
//! checksums only mark it, since each of them was repaired from elsewhere.

use std::collections::VecDeque;
use std::time::Duration;
use world::Instant;

const TOO_MANY: usize = 10;
const WITHIN: Duration = Duration::from_secs(600);

/// What a device did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Read,
    Write,
    Checksum,
}

#[derive(Debug, Default)]
pub(crate) struct Diagnosis {
    io: VecDeque<Instant>,
    checksum: VecDeque<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing proven; whether the device still answers at all is another question.
    Bearable,
    TooManyChecksums,
    TooManyErrors,
}

impl Diagnosis {
    pub fn note(&mut self, fault: Fault, now: Instant) {
        let recent = if fault == Fault::Checksum { &mut self.checksum } else { &mut self.io };
        recent.push_back(now);
        if recent.len() > TOO_MANY {
            recent.pop_front();
        }
    }

    pub fn verdict(&self, now: Instant) -> Verdict {
        if is_too_much(&self.io, now) {
            Verdict::TooManyErrors
        } else if is_too_much(&self.checksum, now) {
            Verdict::TooManyChecksums
        } else {
            Verdict::Bearable
        }
    }
}

fn is_too_much(recent: &VecDeque<Instant>, now: Instant) -> bool {
    recent.len() >= TOO_MANY && recent.front().is_some_and(|&first| now.since(first) <= WITHIN)
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
        assert_eq!(d.verdict(second(1)), Verdict::TooManyChecksums);
    }
}
