//! When requests are due. Pure, and the same for the same seed.
//!
//! A rate is kept from the beginning on: what could not be made in time is made late, so that the mean is the rate as long
//! as the target keeps up. Response times count from when a request was due, not from when it was made: a target that
//! stalls is not excused from those that it has kept from coming.

use crate::choose::Random;
use crate::describe::Arrival;

/// The moments at which the requests of one stream are due, in nanoseconds from the beginning of the run.
#[derive(Clone, Debug)]
pub struct Pacer {
    arrival: Arrival,
    /// Between two requests, in the mean.
    distance: f64,
    random: Random,
    /// Requests so far.
    made: u64,
    /// When the last of those was due.
    last: f64,
}

impl Pacer {
    /// `rate` is requests per second, and above 0.
    pub fn new(rate: f64, arrival: Arrival, seed: u64) -> Pacer {
        Pacer { arrival, distance: 1e9 / rate, random: Random(seed), made: 0, last: 0.0 }
    }

    /// When the next one is due.
    pub fn next_due(&mut self) -> u64 {
        let number = self.made as f64;
        self.made += 1;
        self.last = match self.arrival {
            Arrival::Even => number * self.distance,
            Arrival::Bursts(each) => {
                (number / f64::from(each.max(1))).floor() * f64::from(each) * self.distance
            }
            Arrival::Poisson => self.last - self.random.part_above_zero().ln() * self.distance,
            Arrival::Uniform => self.last + self.random.part() * 2.0 * self.distance,
        };
        self.last as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(arrival: Arrival, count: usize) -> Vec<u64> {
        let mut pacer = Pacer::new(1000.0, arrival, 5);
        (0..count).map(|_| pacer.next_due()).collect()
    }

    #[test]
    fn requests_come_evenly_or_in_bursts() {
        assert_eq!(due(Arrival::Even, 4), [0, 1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(due(Arrival::Bursts(3), 7), [0, 0, 0, 3_000_000, 3_000_000, 3_000_000, 6_000_000]);
    }

    #[test]
    fn by_chance_the_rate_is_kept_and_the_distances_differ() {
        for (arrival, deviation) in [(Arrival::Poisson, 1.0), (Arrival::Uniform, 0.577)] {
            let due = due(arrival, 100_000);
            let seconds = *due.last().unwrap() as f64 / 1e9;
            assert!((98.0..102.0).contains(&seconds), "{arrival:?}: {seconds}");
            let distances: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
            let variance = distances.iter().map(|d| (d - 1.0).powi(2)).sum::<f64>() / distances.len() as f64;
            assert!((variance.sqrt() - deviation).abs() < 0.05, "{arrival:?}: {}", variance.sqrt());
        }
    }
}
