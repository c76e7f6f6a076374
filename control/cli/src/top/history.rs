//! The last minutes of the statistics that are shown, second by second.
//!
//! What bounds it: [`SECONDS_MAX`] of time and [`PARTS_MAX`] parts for each statistic, the oldest going first.

use api::analytics::{Data, Key, Point};
use std::collections::BTreeMap;

/// Wider than terminals are, a column for each second.
pub const SECONDS_MAX: usize = 600;
/// Of all points of one statistic: some hundred of a breakdown that has as many values as are told apart.
const PARTS_MAX: usize = 100_000;

/// One statistic.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub unit: String,
    /// What ranges count.
    pub scale: String,
    points: BTreeMap<u64, Point>,
    parts: usize,
}

/// A value of a breakdown over a stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    pub key: Key,
    /// Of all seconds of the stretch.
    pub total: u64,
    /// Second by second; `None` where there is no sample.
    pub values: Vec<Option<u64>>,
}

impl Series {
    /// Takes what was told, which ends with the newest sample that there is. A second that is there already is replaced;
    /// what is later is of a clock that was set back since.
    pub fn take(&mut self, data: Data) {
        (self.unit, self.scale) = (data.unit, data.scale);
        if let Some(newest) = data.points.last() {
            let later = self.points.split_off(&newest.sample.saturating_add(1));
            self.parts -= later.values().map(|point| point.parts.len()).sum::<usize>();
        }
        for point in data.points {
            self.parts += point.parts.len();
            if let Some(old) = self.points.insert(point.sample, point) {
                self.parts -= old.parts.len();
            }
        }
        while self.points.len() > SECONDS_MAX || (self.parts > PARTS_MAX && self.points.len() > 1) {
            let Some((_, oldest)) = self.points.pop_first() else { break };
            self.parts -= oldest.parts.len();
        }
    }

    pub fn at(&self, second: u64) -> Option<&Point> {
        self.points.get(&second)
    }

    pub fn first(&self) -> Option<u64> {
        self.points.keys().next().copied()
    }

    pub fn last(&self) -> Option<u64> {
        self.points.keys().next_back().copied()
    }

    /// The values of the seconds up to one and with it, the oldest first.
    pub fn values(&self, until: u64, seconds: usize) -> Vec<Option<u64>> {
        stretch(until, seconds).map(|second| self.points.get(&second?).map(|point| point.value)).collect()
    }

    pub fn average(&self, until: u64, seconds: usize) -> Option<f64> {
        let there: Vec<u64> = self.values(until, seconds).into_iter().flatten().collect();
        (!there.is_empty()).then(|| there.iter().map(|value| *value as f64).sum::<f64>() / there.len() as f64)
    }

    /// What it is broken down into over those seconds: ranges from the highest down, all else by what it amounts to.
    pub fn ranks(&self, until: u64, seconds: usize) -> Vec<Rank> {
        let mut all: BTreeMap<Key, Rank> = BTreeMap::new();
        let blank: Vec<Option<u64>> =
            self.values(until, seconds).into_iter().map(|value| value.map(|_| 0)).collect();
        for (place, second) in stretch(until, seconds).enumerate() {
            let Some(point) = second.and_then(|second| self.points.get(&second)) else { continue };
            for part in &point.parts {
                let rank = all.entry(part.key.clone()).or_insert_with(|| Rank {
                    key: part.key.clone(),
                    total: 0,
                    values: blank.clone(),
                });
                rank.total = rank.total.saturating_add(part.value);
                let own = rank.values[place].get_or_insert(0);
                *own = own.saturating_add(part.value);
            }
        }
        let mut all: Vec<Rank> = all.into_values().collect();
        all.retain(|rank| rank.total > 0);
        match all.iter().any(|rank| matches!(rank.key, Key::Range(..))) {
            true => all.reverse(),
            false => all.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.key.cmp(&b.key))),
        }
        all
    }
}

/// The seconds up to one and with it; `None` before 1970.
fn stretch(until: u64, seconds: usize) -> impl Iterator<Item = Option<u64>> {
    (0..seconds as u64).rev().map(move |ago| until.checked_sub(ago))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::Part;

    fn point(sample: u64, parts: &[(Key, u64)]) -> Point {
        let value = parts.iter().map(|(_, value)| value).sum();
        let part = |(key, value): &(Key, u64)| Part { key: key.clone(), value: *value, sum: *value };
        let parts = parts.iter().map(part).collect();
        Point { sample, samples: 1, value, sum: value, min: value, max: value, parts }
    }

    fn data(points: Vec<Point>) -> Data {
        Data { name: "x".into(), unit: "operations/s".into(), scale: String::new(), points }
    }

    fn text(word: &str) -> Key {
        Key::Text(word.into())
    }

    #[test]
    fn values_are_ranked_by_what_they_amount_to_and_gaps_stay_gaps() {
        let mut series = Series::default();
        series.take(data(vec![
            point(10, &[(text("a"), 5), (text("b"), 1)]),
            point(12, &[(text("b"), 9), (text("c"), 0)]),
        ]));
        assert_eq!(series.values(12, 4), [None, Some(6), None, Some(9)]);
        assert_eq!(series.average(12, 4), Some(7.5));
        let ranks = series.ranks(12, 3);
        assert_eq!(
            ranks.iter().map(|r| (&r.key, r.total)).collect::<Vec<_>>(),
            [(&text("b"), 10), (&text("a"), 5)]
        );
        assert_eq!(ranks[1].values, [Some(5), None, Some(0)]);
        assert_eq!(series.values(1, 3), [None, None, None]);
        // Ranges stand as in a heat map.
        series.take(data(vec![point(20, &[(Key::Range(0, 8), 7), (Key::Range(8, 16), 1)])]));
        let ranks = series.ranks(20, 2);
        assert_eq!(ranks.iter().map(|r| &r.key).collect::<Vec<_>>(), [&Key::Range(8, 16), &Key::Range(0, 8)]);
        // A clock that was set back: what it had called later does not stay the newest.
        series.take(data(vec![point(11, &[(text("a"), 1)])]));
        assert_eq!((series.first(), series.last(), series.parts), (Some(10), Some(11), 3));
    }

    #[test]
    fn time_and_parts_are_bounded_and_a_second_counts_once() {
        let mut series = Series::default();
        for second in 0..2_000 {
            series.take(data(vec![point(second, &[(text("a"), 1)]), point(second, &[(text("a"), 2)])]));
        }
        assert_eq!(
            (series.points.len(), series.parts, series.at(1_999).unwrap().value),
            (SECONDS_MAX, SECONDS_MAX, 2)
        );
        let many: Vec<(Key, u64)> = (0..1_024).map(|n| (text(&format!("{n}")), 1)).collect();
        for second in 2_000..2_300 {
            series.take(data(vec![point(second, &many)]));
        }
        assert!(series.parts <= PARTS_MAX && series.points.len() > 90, "{}", series.parts);
        assert_eq!(series.parts, series.points.values().map(|p| p.parts.len()).sum::<usize>());
    }
}
