//! The statistics of a hub, as a recorder takes them.

use crate::tap::{Key, Taken, Tap, Tapped, Taps};
use api::analytics::{BreakdownOf, Statistic};
use probe::{Breakdown, Hub, Opened, Quantity, Query, StatUnit};

/// All that a hub has.
#[derive(Clone, Debug)]
pub struct OfHub(pub Hub);

/// As values are told; the shortest words that pages, scripts and the shell understand.
fn unit(unit: StatUnit) -> &'static str {
    match unit {
        StatUnit::OperationsPerSecond => "operations/s",
        StatUnit::BytesPerSecond => "bytes/s",
        StatUnit::Bytes => "bytes",
        StatUnit::Percent => "percent",
        StatUnit::Nanoseconds => "nanoseconds",
        StatUnit::Count => "count",
    }
}

fn scale(by: Breakdown) -> Option<&'static str> {
    match by.quantity()? {
        Quantity::Bytes => Some("bytes"),
        Quantity::Time => Some("nanoseconds"),
        Quantity::Number if by == Breakdown::Utilization => Some("percent"),
        Quantity::Number => Some("count"),
    }
}

impl Tap for Opened {
    fn take(&mut self) -> Taken {
        let sample = Opened::take(self);
        let key = |key| match key {
            probe::Key::Text(text) => Key::Text(text),
            probe::Key::Range { from, to } => Key::Range(from, to),
            probe::Key::Other => Key::Other,
        };
        Taken {
            value: sample.value,
            parts: sample.parts.into_iter().map(|(of, value)| (key(of), value)).collect(),
        }
    }
}

impl Taps for OfHub {
    fn statistics(&self) -> Vec<Statistic> {
        let breakdown = |by: &Breakdown| BreakdownOf {
            name: by.name().into(),
            title: by.about().into(),
            range: by.is_range(),
        };
        let told = |row: &probe::Statistic| Statistic {
            name: row.name.into(),
            grouping: row.grouping.into(),
            title: row.title.into(),
            explanation: row.explanation.into(),
            unit: unit(row.unit).into(),
            cost: row.cost.name().into(),
            breakdowns: row.breakdowns.iter().map(breakdown).collect(),
        };
        probe::statistics().iter().map(told).collect()
    }

    fn open(&self, statistic: &str) -> Result<Tapped, String> {
        let query: Query = statistic.parse().map_err(|e: units::Error| e.to_string())?;
        let opened = self.0.open(&query).map_err(|e| e.to_string())?;
        let row = query.statistic;
        Ok(Tapped {
            name: query.to_string(),
            grouping: row.grouping.into(),
            explanation: row.explanation.into(),
            unit: unit(row.unit).into(),
            overhead: query.cost().name().into(),
            scale: query.breakdown.and_then(scale).map(String::from),
            tap: Box::new(opened),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statistic_opens_by_the_name_it_is_listed_under_and_by_each_breakdown() {
        let taps = OfHub(Hub::new());
        let all = sim::run(1, sim::Config::default(), async move {
            let mut all = 0;
            for row in taps.statistics() {
                assert!(!row.explanation.is_empty() && !row.title.is_empty(), "{}", row.name);
                let names = row.breakdowns.iter().map(|by| (format!("{}[{}]", row.name, by.name), by.range));
                for (name, is_range) in names.chain([(row.name.clone(), false)]) {
                    let tapped = taps.open(&name).unwrap();
                    assert_eq!((&tapped.name, tapped.scale.is_some()), (&name, is_range));
                    all += 1;
                }
            }
            let e = taps.open("iscsi.ops[colour]").unwrap_err();
            assert!(e.contains("colour"), "{e}");
            all
        });
        assert!(all > 60, "{all}");
    }
}
