//! Three numbers and one law: operations, bandwidth and response time of a moment, and what they make of one another.
//!
//! The response time is the mean of a histogram whose buckets are narrow, each taken at its middle. Operations per second
//! times response time is what is under way at once (Little's law).

use crate::calc::{digits, shown_time};
use api::analytics::{Key, Point};

/// Of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Numbers {
    pub operations: u64,
    pub bytes: u64,
    /// In seconds; `None` where nothing was done.
    pub response: Option<f64>,
}

impl Numbers {
    /// `operations` are broken down by latency.
    pub fn of(operations: &Point, bytes: &Point) -> Numbers {
        Numbers { operations: operations.value, bytes: bytes.value, response: mean(operations) }
    }

    /// Bytes of one operation.
    pub fn size(self) -> Option<u64> {
        self.bytes.checked_div(self.operations)
    }

    pub fn under_way(self) -> Option<f64> {
        Some(self.response? * self.operations as f64)
    }

    /// Operations, megabytes, size, response time, and what is under way: as columns show them.
    pub fn columns(self) -> [String; 5] {
        let none = || "-".to_string();
        [
            digits(self.operations as f64),
            digits(self.bytes as f64 / 1e6),
            self.size().map_or_else(none, units::pretty_size),
            self.response.map_or_else(none, shown_time),
            self.under_way().map_or_else(none, digits),
        ]
    }

    /// In one line.
    pub fn sentence(self) -> String {
        let [operations, megabytes, size, response, under_way] = self.columns();
        match self.response {
            None => "no operations".into(),
            Some(_) => format!(
                "{operations} operations/s of {size}, {megabytes} MB/s, {response} each: {under_way} under way by Little's law"
            ),
        }
    }

    /// The same for little room.
    pub fn short(self) -> String {
        let [operations, megabytes, size, response, under_way] = self.columns();
        match self.response {
            None => "no operations".into(),
            Some(_) => format!("{operations}/s of {size}, {megabytes} MB/s, {response}: {under_way} at once"),
        }
    }
}

/// The mean of what is in buckets of nanoseconds, in seconds.
fn mean(point: &Point) -> Option<f64> {
    let middle = |key: &Key| match key {
        Key::Range(from, to) if *to != u64::MAX => (*from as f64 + *to as f64) / 2.0,
        Key::Range(from, _) => *from as f64,
        _ => 0.0,
    };
    let sum: f64 = point.parts.iter().map(|part| middle(&part.key) * part.value as f64).sum();
    let count: u64 = point.parts.iter().map(|part| part.value).sum();
    (count > 0).then(|| sum / count as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::Part;

    fn point(value: u64, parts: Vec<Part>) -> Point {
        Point { sample: 60, samples: 1, value, sum: value, min: value, max: value, parts }
    }

    #[test]
    fn three_numbers_stand_beside_what_the_law_makes_of_them() {
        let part = |from, to, value| Part { key: Key::Range(from, to), value, sum: value };
        let operations =
            point(2_000, vec![part(1_000_000, 3_000_000, 1_500), part(9_000_000, 11_000_000, 500)]);
        let numbers = Numbers::of(&operations, &point(131_072_000, Vec::new()));
        // 1,500 of 2 ms and 500 of 10 ms: 4 ms, and 2,000 a second of 4 ms are 8 at once.
        assert_eq!(numbers.columns(), ["2,000", "131", "64K", "4 ms", "8"]);
        assert!(
            numbers.sentence().ends_with("4 ms each: 8 under way by Little's law"),
            "{}",
            numbers.sentence()
        );
        let idle = Numbers::of(&point(0, Vec::new()), &point(0, Vec::new()));
        assert_eq!(idle.columns(), ["0", "0", "-", "-", "-"]);
        assert_eq!(idle.sentence(), "no operations");
    }
}
