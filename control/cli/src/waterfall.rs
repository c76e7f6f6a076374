//! `waterfall`: where the milliseconds of a front's operations go.
//!
//! ```text
//!   FRONT.time[filters][stage]     nanoseconds of all operations that were answered, by what they waited in
//!   FRONT.ops[filters]             how many there were                    their quotient: what one of them took
//! ```
//!
//! All operations together, divided by the time that passed, are what was under way at once.

use crate::args::calc::Waterfall;
use crate::calc::{digits, shown_time};
use crate::live;
use crate::session::{Failure, Outcome, Session};
use crate::text::json;
use api::analytics::{Data, Key, Start};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What is called what, and where its statistics are.
const FRONTS: [(&str, &str); 3] = [("iSCSI", "iscsi"), ("NBD", "nbd"), ("files", "fs")];
/// What an operation waits in, from the client down, and what a person may read there.
const STAGES: [(&str, &str); 12] = [
    ("wire", "for the client: its data, and room in the socket"),
    ("front", "for commands before it"),
    ("work", "for a processor of this machine"),
    ("lock", "for a request that has the same blocks or names"),
    ("throttle", "since too much is dirty"),
    ("txg", "for a transaction group to be on disk"),
    ("log", "for other commits of the intent log"),
    ("cache", "for a block that another request reads"),
    ("compute", "for checksums and compression"),
    ("queue", "in the queue of a device"),
    ("flush", "for a device to make its cache durable"),
    ("device", "for a device to read or write"),
];
/// How long the bar of all of it is.
const BAR: f64 = 30.0;

/// One front over some seconds.
struct Fall {
    front: &'static str,
    statistic: String,
    seconds: u64,
    operations: u64,
    /// In nanoseconds.
    stages: BTreeMap<String, u64>,
}

pub fn run(session: &mut Session<'_>, args: &Waterfall) -> Outcome {
    let wanted: Vec<(&'static str, String, String)> = match &args.of {
        Some(of) => vec![chosen(of)?],
        None => FRONTS.into_iter().map(|(front, of)| (front, of.to_string(), String::new())).collect(),
    };
    let mut names = Vec::new();
    for (front, of, filters) in &wanted {
        let time = live::open(session, &format!("{of}.time{filters}[stage]"))?;
        let operations = live::open(session, &format!("{of}.ops{filters}"))?;
        names.push((*front, format!("{of}.time{filters}"), time, operations));
    }
    for _ in 0..args.count.unwrap_or(if args.interval.is_some() { u64::MAX } else { 1 }) {
        let seconds = args.interval.unwrap_or(1);
        let (mut falls, mut start, mut when) = (Vec::new(), Start::Now, None);
        for (front, statistic, time, operations) in &names {
            let time = live::samples(session, time, start, seconds)?;
            // All are of the seconds that the first waited for.
            if let Some(point) = time.points.first() {
                start = Start::At(point.sample);
            }
            let operations = live::samples(session, operations, start, seconds)?;
            falls.push(Fall::new(front, statistic, seconds, &time, &operations));
            when.get_or_insert(time);
        }
        if args.json {
            session.print(&document(&falls))?;
        } else {
            let heads = format!("{}, {seconds} s\n", live::moment(when.as_ref()));
            let shown: Vec<String> = falls.iter().map(Fall::shown).collect();
            live::show(session, heads + &shown.concat())?;
        }
    }
    Ok(())
}

/// The front, its statistics and the filters of `iscsi[op=read][latency>=10ms]`.
fn chosen(of: &str) -> Outcome<(&'static str, String, String)> {
    let (name, filters) = of.split_at(of.find('[').unwrap_or(of.len()));
    let known = FRONTS.into_iter().find(|(_, front)| *front == name);
    let Some((front, name)) = known else {
        let all = FRONTS.map(|(_, front)| front).join(", ");
        return Err(Failure::Usage(format!("there is no front '{name}'; there are {all}")));
    };
    Ok((front, name.into(), filters.into()))
}

impl Fall {
    fn new(front: &'static str, statistic: &str, seconds: u64, time: &Data, operations: &Data) -> Fall {
        let mut stages = BTreeMap::new();
        for part in time.points.iter().flat_map(|point| &point.parts) {
            if let Key::Text(stage) = &part.key {
                *stages.entry(stage.clone()).or_default() += part.sum;
            }
        }
        let operations = operations.points.iter().map(|point| point.sum).sum();
        Fall { front, statistic: statistic.into(), seconds, operations, stages }
    }

    fn total(&self) -> u64 {
        self.stages.values().sum()
    }

    fn shown(&self) -> String {
        let (total, operations) = (self.total() as f64, self.operations as f64);
        if self.operations == 0 || total == 0.0 {
            return format!("\n{}  no operations\n", self.front);
        }
        let seconds = self.seconds as f64;
        let each = |nanos: f64| shown_time(nanos / operations / 1e9);
        let mut text = format!(
            "\n{}  {} operations/s, {} each, {} under way\n",
            self.front,
            digits(operations / seconds),
            each(total),
            digits(total / seconds / 1e9)
        );
        for (stage, about) in STAGES {
            let Some(nanos) = self.stages.get(stage).filter(|nanos| **nanos > 0) else { continue };
            let part = *nanos as f64 / total;
            let bar = "#".repeat((part * BAR).round() as usize);
            let percent = format!("{:.0} %", part * 100.0);
            let each = each(*nanos as f64);
            text.push_str(&format!("  {stage:<9}{each:>10}{percent:>7}  {bar:<30}  {about}\n"));
        }
        text
    }
}

fn document(falls: &[Fall]) -> String {
    let all = falls.iter().map(|fall| {
        let mut told = Map::new();
        told.insert("seconds".into(), fall.seconds.into());
        told.insert("operations".into(), fall.operations.into());
        told.insert("nanoseconds".into(), fall.total().into());
        let stages = fall.stages.iter().map(|(stage, nanos)| (stage.clone(), Value::from(*nanos)));
        told.insert("stages".into(), stages.collect::<Map<_, _>>().into());
        (fall.statistic.clone(), Value::from(told))
    });
    json::document("waterfall", "statistics", all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::analytics::{Part, Point};

    fn data(points: Vec<(u64, Vec<(&str, u64)>)>) -> Data {
        let part = |(key, sum): (&str, u64)| Part { key: Key::Text(key.into()), value: sum, sum };
        let point = |(sum, parts): (u64, Vec<(&str, u64)>)| {
            let parts = parts.into_iter().map(part).collect();
            Point { sample: 60, samples: 1, value: sum, sum, min: sum, max: sum, parts }
        };
        let points = points.into_iter().map(point).collect();
        Data { name: "x".into(), unit: "ns".into(), scale: String::new(), points }
    }

    #[test]
    fn an_operation_is_shown_by_what_it_waited_in() {
        let time = data(vec![
            (4_000_000_000, vec![("device", 3_000_000_000), ("work", 1_000_000_000)]),
            (4_000_000_000, vec![("device", 3_000_000_000), ("throttle", 1_000_000_000)]),
        ]);
        let fall = Fall::new("iSCSI", "iscsi.time", 2, &time, &data(vec![(1_000, vec![]), (1_000, vec![])]));
        let text = fall.shown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "iSCSI  1,000 operations/s, 4 ms each, 4 under way");
        let starts = |line: &str, parts: &[&str]| {
            assert_eq!(line.split_whitespace().take(parts.len()).collect::<Vec<_>>(), parts)
        };
        starts(lines[2], &["work", "500", "us", "12", "%", "####"]);
        starts(lines[3], &["throttle", "500", "us", "12", "%", "####"]);
        starts(lines[4], &["device", "3", "ms", "75", "%", "#######################"]);
        let idle = Fall::new("NBD", "nbd.time", 1, &data(vec![]), &data(vec![]));
        assert_eq!(idle.shown(), "\nNBD  no operations\n");
        let told: Value = serde_json::from_str(&document(&[fall])).unwrap();
        assert_eq!(told["statistics"]["iscsi.time"]["stages"]["device"], 6_000_000_000u64);
    }

    #[test]
    fn a_front_has_filters() {
        let (front, name, filters) = chosen("nbd[op=read][latency>=10ms]").unwrap();
        assert_eq!((front, name.as_str(), filters.as_str()), ("NBD", "nbd", "[op=read][latency>=10ms]"));
        assert!(matches!(chosen("nfs"), Err(Failure::Usage(_))));
    }

    /// Each stage that the engine knows has its line.
    #[test]
    fn all_stages_are_shown() {
        for stage in world::stages::Stage::ALL {
            assert!(STAGES.iter().any(|(known, _)| *known == stage.name()), "{stage:?}");
        }
    }
}
