//! What became of the requests of one row.

use std::time::Duration;
use workload::Histogram;

/// One request: when it was due, or made, and when it was answered, since the row began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub begin: Duration,
    pub end: Duration,
}

/// Columns of what happened over time.
pub const SLICES: usize = 60;

#[derive(Debug)]
pub struct Outcome {
    pub latencies: Histogram,
    /// The longest time in which nothing was answered although something was asked.
    pub stall: Duration,
    /// The longest latency of what was answered in each part of the time.
    pub over_time: [Duration; SLICES],
    pub elapsed: Duration,
}

impl Outcome {
    /// `length` is for how long requests were made.
    pub fn of(mut samples: Vec<Sample>, length: Duration) -> Outcome {
        samples.sort_by_key(|sample| sample.end);
        let mut latencies = Histogram::default();
        let mut over_time = [Duration::ZERO; SLICES];
        for sample in &samples {
            let latency = sample.end.saturating_sub(sample.begin);
            latencies.record(latency);
            let share = sample.end.as_secs_f64() / length.as_secs_f64().max(1e-9);
            let slice = &mut over_time[((share * SLICES as f64) as usize).min(SLICES - 1)];
            *slice = latency.max(*slice);
        }
        let elapsed = samples.last().map_or(Duration::ZERO, |last| last.end).max(length);
        Outcome { latencies, stall: stall(&samples), over_time, elapsed }
    }

    pub fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Of samples in the order in which they were answered.
fn stall(samples: &[Sample]) -> Duration {
    let mut longest = Duration::ZERO;
    // The earliest request among those that are answered from here on.
    let mut waits_since = Duration::MAX;
    for (i, sample) in samples.iter().enumerate().rev() {
        waits_since = waits_since.min(sample.begin);
        let answered = i.checked_sub(1).map_or(Duration::ZERO, |before| samples[before].end);
        longest = longest.max(sample.end.saturating_sub(answered.max(waits_since)));
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(begin: u64, end: u64) -> Sample {
        Sample { begin: Duration::from_millis(begin), end: Duration::from_millis(end) }
    }

    #[test]
    fn a_stall_is_silence_while_somebody_waits() {
        let ms = Duration::from_millis;
        let of = |samples: &[Sample]| Outcome::of(samples.to_vec(), ms(600)).stall;
        assert_eq!(of(&[]), ms(0));
        // One slow request among quick ones is no stall.
        assert_eq!(
            of(&[sample(0, 100), sample(0, 10), sample(10, 30), sample(30, 60), sample(60, 90)]),
            ms(30)
        );
        // All wait from 40 to 90.
        assert_eq!(of(&[sample(0, 10), sample(10, 40), sample(20, 90), sample(30, 91)]), ms(50));
        // No request is due between 10 and 500.
        assert_eq!(of(&[sample(0, 10), sample(500, 502)]), ms(10));
    }

    #[test]
    fn each_part_of_the_time_has_its_longest() {
        let outcome =
            Outcome::of(vec![sample(0, 5), sample(11, 14), sample(12, 19), sample(590, 620)], ms(600));
        assert_eq!(outcome.over_time[0], ms(5));
        assert_eq!(outcome.over_time[1], ms(7));
        assert_eq!(outcome.over_time[SLICES - 1], ms(30), "what ends later belongs to the last");
        assert_eq!(outcome.elapsed, ms(620));
        assert_eq!(outcome.latencies.count(), 4);
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }
}
