//! Rows as points: what readers get of a stretch of time.

use crate::block::Row;
use crate::tap::Key;
use api::analytics::{Part, Point};
use std::collections::BTreeMap;

/// Points in order of time.
pub(crate) fn points(rows: BTreeMap<u64, Row>) -> Vec<Point> {
    rows.into_iter().map(|(label, row)| point(label, row)).collect()
}

fn point(label: u64, mut row: Row) -> Point {
    row.parts.sort_by(|a, b| a.0.cmp(&b.0));
    let seconds = row.seconds.max(1);
    let value = average(row.sum, seconds);
    let values = shares(value, seconds, &row.parts);
    let parts = row.parts.into_iter().zip(values);
    Point {
        sample: label,
        samples: row.seconds,
        value,
        sum: row.sum,
        min: row.min,
        max: row.max,
        parts: parts.map(|((key, sum), value)| Part { key: key.told(), value, sum }).collect(),
    }
}

/// Rounded to the nearest.
fn average(sum: u64, seconds: u64) -> u64 {
    sum / seconds + u64::from(sum % seconds >= seconds.div_ceil(2))
}

/// The averages of the parts, rounded so that they add up to that of the whole: up where most is lost by rounding down.
fn shares(whole: u64, seconds: u64, parts: &[(Key, u64)]) -> Vec<u64> {
    let mut values: Vec<u64> = parts.iter().map(|(_, sum)| sum / seconds).collect();
    let missing = whole.saturating_sub(values.iter().sum());
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(parts[*at].1 % seconds));
    order.into_iter().take(usize::try_from(missing).unwrap_or(0)).for_each(|at| values[at] += 1);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_of_parts_add_up_to_the_average_of_the_whole() {
        for seed in 0..2_000u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let seconds = 1 + next(61);
            let parts: Vec<(Key, u64)> =
                (0..1 + next(30)).map(|n| (Key::Range(n, n + 1), next(200))).collect();
            let sum = parts.iter().map(|(_, v)| v).sum();
            let point = point(60, Row { seconds, sum, min: 0, max: 0, parts });
            assert_eq!(point.parts.iter().map(|p| p.value).sum::<u64>(), point.value, "seed {seed}");
            assert_eq!(point.parts.iter().map(|p| p.sum).sum::<u64>(), point.sum, "seed {seed}");
            assert!(point.value.abs_diff(sum / seconds) <= 1);
        }
    }
}
