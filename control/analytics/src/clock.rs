//! The wall clock, which people ask by and which may jump.
//!
//! ```text
//!   wall:  100 101 101 102 103 | 50 51 ...          steps back: label 50, after 103
//!   steady ────────────────────────────▶            goes on; nothing is labelled by it
//! ```
//!
//! A tick at a second that was labelled already takes no sample: what happened is in the next one. A clock that steps back
//! by more than [`SLIP`] is believed at once, and its samples replace those of the same seconds. Whether it can be believed
//! about the age of samples is another question: not before it has gone evenly for [`TRUST`].

use std::time::Duration;
use world::Instant;

/// A step back of so little is waited out.
pub(crate) const SLIP: u64 = 2;
/// How far the two clocks may be apart, from one tick to the next, without it being a jump.
const EVEN: Duration = Duration::from_secs(2);
/// A machine without a clock of its own has asked the network for the time within this.
pub(crate) const TRUST: Duration = Duration::from_secs(3_600);

#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: Option<(u64, Instant)>,
    /// Since when it goes evenly.
    even: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// A sample is due, with this label.
    Due(u64),
    NotYet,
}

impl Clock {
    pub fn tick(&mut self, wall: u64, now: Instant) -> Tick {
        let Some((last, at)) = self.last else {
            self.even = now;
            self.last = Some((wall, now));
            return Tick::Due(wall);
        };
        if wall <= last && last - wall <= SLIP {
            return Tick::NotYet;
        }
        let passed = now.since(at);
        let shown = Duration::from_secs(wall.saturating_sub(last));
        if wall < last || shown.abs_diff(passed) > EVEN {
            self.even = now;
        }
        self.last = Some((wall, now));
        Tick::Due(wall)
    }

    /// Whether samples may be thrown away for their age.
    pub fn is_trusted(&self, now: Instant) -> bool {
        self.last.is_some() && now.since(self.even) >= TRUST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::default().after(Duration::from_secs(seconds))
    }

    #[test]
    fn seconds_are_labelled_once_and_jumps_are_followed() {
        let mut clock = Clock::default();
        let labels: Vec<Tick> = [100, 101, 101, 100, 102, 50, 51, 9_000, 9_001]
            .into_iter()
            .enumerate()
            .map(|(n, wall)| clock.tick(wall, at(n as u64)))
            .collect();
        use Tick::{Due, NotYet};
        assert_eq!(
            labels,
            [Due(100), Due(101), NotYet, NotYet, Due(102), Due(50), Due(51), Due(9_000), Due(9_001)]
        );
    }

    #[test]
    fn a_clock_that_jumped_is_not_trusted_for_an_hour() {
        let mut clock = Clock::default();
        assert!(!clock.is_trusted(at(1 << 20)));
        let mut second = 0;
        let mut run = |clock: &mut Clock, wall: u64, ticks: u64| {
            for n in 0..ticks {
                second += 1;
                clock.tick(wall + n, at(second));
            }
            clock.is_trusted(at(second))
        };
        assert!(!run(&mut clock, 1_000, 3_600));
        assert!(run(&mut clock, 4_600, 10), "it has gone evenly for an hour");
        assert!(!run(&mut clock, 1 << 30, 3_600), "a jump forward");
        assert!(run(&mut clock, (1 << 30) + 3_600, 10));
        assert!(!run(&mut clock, 5_000, 3_600), "a jump back");
        // A machine that slept has both clocks apart, or neither: it is a jump or it is none, and no harm.
        assert!(run(&mut clock, 8_600, 10));
    }
}
