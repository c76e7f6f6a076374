//! Figures as OTLP has them, in JSON: `opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest`.
//!
//! ```text
//!   cenote_pool_size_bytes       ──▶ cenote.pool.size          By   gauge
//!   cenote_device_bytes_total    ──▶ cenote.device.bytes       By   sum, cumulative, monotonic
//!   cenote_front_latency_seconds ──▶ cenote.front.latency      s    histogram of explicit bounds, cumulative
//! ```
//!
//! A name there has no unit and no `_total` in it, and a collector that hands them to Prometheus adds both again. Numbers of
//! 64 bits are strings, as JSON of protobuf has them.
//!
//! What only grows is told with the time from which on it was counted. That is when the daemon started; where a count is
//! smaller than it was, as of a device whose pool was imported again, [`Series`] notes that it began anew.

use crate::families::{Buckets, Kind, Metric, Sampled, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;

/// First words of names, behind which a dot stands.
const SPACES: [&str; 6] = ["pool", "device", "front", "arc", "http", "nbd"];
const UNITS: [(&str, &str); 2] = [("bytes", "By"), ("seconds", "s")];

/// Since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub seconds: u64,
    pub nanos: u32,
}

impl Moment {
    fn told(self) -> Json {
        (u128::from(self.seconds) * 1_000_000_000 + u128::from(self.nanos)).to_string().into()
    }
}

/// What was counted when it was told last, and since when: of each sample that only grows.
#[derive(Debug)]
pub struct Series {
    begun: Moment,
    last: Moment,
    known: HashMap<Name, (u64, Moment)>,
}

type Name = (&'static str, Vec<(&'static str, String)>);

impl Series {
    /// `begun`: when the daemon started.
    pub fn new(begun: Moment) -> Series {
        Series { begun, last: begun, known: HashMap::new() }
    }

    /// Since when this is counted. One that is smaller than it was began after it was told last.
    fn start(
        &mut self,
        next: &mut HashMap<Name, (u64, Moment)>,
        name: &'static str,
        sample: &Sampled,
    ) -> Moment {
        let count = match &sample.value {
            Value::Number(count) => *count,
            Value::Buckets(buckets) => buckets.count(),
        };
        let name = (name, sample.labels.clone());
        let start = match self.known.get(&name) {
            Some((before, start)) if *before <= count => *start,
            Some(_) => self.last,
            None => self.begun,
        };
        next.insert(name, (count, start));
        start
    }
}

/// One request: all figures of a moment. `resource`: what the appliance is called, as attributes.
pub fn document(all: &[Metric], resource: &[(String, String)], series: &mut Series, now: Moment) -> String {
    let mut next = HashMap::new();
    let metrics: Vec<Json> = all
        .iter()
        .filter(|metric| !metric.samples.is_empty())
        .map(|metric| told(metric, series, &mut next, now))
        .collect();
    // What is not told any more is forgotten.
    series.known = next;
    series.last = now;
    let resource = resource.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>();
    let scope = json!({ "name": "cenote", "version": env!("CARGO_PKG_VERSION") });
    let scope_metrics = json!([{ "scope": scope, "metrics": metrics }]);
    json!({ "resourceMetrics": [{ "resource": { "attributes": resource }, "scopeMetrics": scope_metrics }] })
        .to_string()
}

fn attribute(key: &str, value: &str) -> Json {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// The name and the unit.
fn named(metric: &Metric) -> (String, &'static str) {
    let plain = metric.name.strip_suffix("_total").unwrap_or(metric.name);
    let (space, rest) = match plain.split_once('_') {
        Some((space, rest)) if SPACES.contains(&space) => (format!("{space}."), rest),
        _ => (String::new(), plain),
    };
    let unit = UNITS.iter().find(|(word, _)| rest == *word || rest.ends_with(&format!("_{word}")));
    let rest = unit.and_then(|(word, _)| rest.strip_suffix(&format!("_{word}"))).unwrap_or(rest);
    (format!("cenote.{space}{rest}"), unit.map_or("1", |(_, unit)| unit))
}

fn told(metric: &Metric, series: &mut Series, next: &mut HashMap<Name, (u64, Moment)>, now: Moment) -> Json {
    let points: Vec<Json> = metric
        .samples
        .iter()
        .map(|sample| {
            let attributes: Vec<Json> =
                sample.labels.iter().map(|(label, value)| attribute(label, value)).collect();
            let mut point = Map::new();
            point.insert("attributes".into(), attributes.into());
            point.insert("timeUnixNano".into(), now.told());
            if metric.kind != Kind::Gauge {
                let start = series.start(next, metric.name, sample);
                point.insert("startTimeUnixNano".into(), start.told());
            }
            match &sample.value {
                Value::Number(value) => drop(point.insert("asInt".into(), value.to_string().into())),
                Value::Buckets(buckets) => point.extend(histogram(buckets)),
            }
            Json::Object(point)
        })
        .collect();
    const CUMULATIVE: u32 = 2;
    let (name, unit) = named(metric);
    let (kind, data) = match metric.kind {
        Kind::Gauge => ("gauge", json!({ "dataPoints": points })),
        Kind::Counter => (
            "sum",
            json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true }),
        ),
        Kind::Histogram => {
            ("histogram", json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE }))
        }
    };
    let mut told = Map::from_iter([
        ("name".to_string(), Json::from(name)),
        ("description".into(), metric.help.into()),
        ("unit".into(), unit.into()),
    ]);
    told.insert(kind.into(), data);
    Json::Object(told)
}

fn histogram(buckets: &Buckets) -> Map<String, Json> {
    let counts: Vec<String> = buckets.counts.iter().map(u64::to_string).collect();
    Map::from_iter([
        ("count".to_string(), Json::from(buckets.count().to_string())),
        ("sum".into(), buckets.sum.into()),
        ("bucketCounts".into(), counts.into()),
        ("explicitBounds".into(), buckets.bounds.clone().into()),
    ])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::families::tests::{pool, told as facts};

    fn at(seconds: u64) -> Moment {
        Moment { seconds, nanos: 5 }
    }

    fn asked(all: &[Metric], series: &mut Series, now: u64) -> Json {
        let resource = [("service.name".to_string(), "cenote".to_string())];
        serde_json::from_str(&document(all, &resource, series, at(now))).unwrap()
    }

    fn metric<'a>(document: &'a Json, name: &str) -> &'a Json {
        let all = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        all.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Every number is of the type that the protocol has for it, and every metric has one kind of data.
    pub(crate) fn check(document: &Json) {
        let int = |value: &Json| value.as_str().unwrap().parse::<u64>().unwrap();
        let scope = &document["resourceMetrics"][0]["scopeMetrics"][0];
        assert_eq!(scope["scope"]["name"], "cenote");
        let metrics = scope["metrics"].as_array().unwrap();
        assert!(metrics.len() > 10);
        for metric in metrics {
            let name = metric["name"].as_str().unwrap();
            let is_name = |c: char| c.is_ascii_lowercase() || c == '.' || c == '_';
            assert!(name.starts_with("cenote.") && name.chars().all(is_name), "{name}");
            assert!(metric["description"].is_string() && metric["unit"].is_string());
            let kinds = ["gauge", "sum", "histogram"].into_iter().filter(|kind| metric.get(*kind).is_some());
            let [kind] = kinds.collect::<Vec<_>>()[..] else { panic!("{metric}") };
            let data = &metric[kind];
            assert_eq!(kind == "sum", data["isMonotonic"] == true);
            assert_eq!(kind != "gauge", data["aggregationTemporality"] == 2, "cumulative: {metric}");
            for point in data["dataPoints"].as_array().unwrap() {
                let time = int(&point["timeUnixNano"]);
                assert_eq!(kind != "gauge", point.get("startTimeUnixNano").is_some());
                assert!(kind == "gauge" || int(&point["startTimeUnixNano"]) <= time);
                for attribute in point["attributes"].as_array().unwrap() {
                    assert!(attribute["key"].is_string() && attribute["value"]["stringValue"].is_string());
                }
                if kind == "histogram" {
                    let counts: Vec<u64> =
                        point["bucketCounts"].as_array().unwrap().iter().map(int).collect();
                    let bounds = point["explicitBounds"].as_array().unwrap();
                    assert!(bounds.iter().all(Json::is_number) && point["sum"].is_number());
                    assert_eq!(
                        (counts.len(), counts.iter().sum::<u64>()),
                        (bounds.len() + 1, int(&point["count"]))
                    );
                } else {
                    int(&point["asInt"]);
                }
            }
        }
    }

    #[test]
    fn figures_have_the_shapes_of_the_protocol() {
        let mut series = Series::new(at(100));
        let document = asked(&facts(&[pool(7)]), &mut series, 160);
        check(&document);
        let resource = &document["resourceMetrics"][0]["resource"]["attributes"][0];
        assert_eq!(
            (&resource["key"], &resource["value"]["stringValue"]),
            (&json!("service.name"), &json!("cenote"))
        );
        for (name, unit, kind) in [
            ("cenote.uptime", "s", "gauge"),
            ("cenote.pool.size", "By", "gauge"),
            ("cenote.pool.healthy", "1", "gauge"),
            ("cenote.device.operations", "1", "sum"),
            ("cenote.device.bytes", "By", "sum"),
            ("cenote.device.wait", "s", "histogram"),
            ("cenote.front.size", "By", "histogram"),
            ("cenote.front.latency", "s", "histogram"),
            ("cenote.failed_logins", "1", "sum"),
            ("cenote.http.answers", "1", "sum"),
        ] {
            let found = metric(&document, name);
            assert!(found["unit"] == unit && found.get(kind).is_some(), "{found}");
        }
        let sum = &metric(&document, "cenote.device.operations")["sum"]["dataPoints"][0];
        assert_eq!((&sum["asInt"], &sum["startTimeUnixNano"]), (&json!("7"), &json!("100000000005")));
        let latency = &metric(&document, "cenote.front.latency")["histogram"]["dataPoints"][0];
        assert_eq!((&latency["count"], &latency["sum"]), (&json!("8"), &json!(7.0)));
    }

    #[test]
    fn a_count_that_begins_anew_says_when() {
        let mut series = Series::new(at(100));
        let start = |document: &Json| {
            metric(document, "cenote.device.operations")["sum"]["dataPoints"][0]["startTimeUnixNano"].clone()
        };
        let mut ask = |reads, now| start(&asked(&facts(&[pool(reads)]), &mut series, now));
        assert_eq!([ask(7, 160), ask(9, 220)], ["100000000005", "100000000005"]);
        // Its pool was exported and imported again.
        assert_eq!([ask(2, 280), ask(3, 340)], ["220000000005", "220000000005"]);
        // Another daemon.
        let mut again = Series::new(at(400));
        assert_eq!(start(&asked(&facts(&[pool(3)]), &mut again, 460)), "400000000005");
        asked(&facts(&[]), &mut again, 520);
        assert!(again.known.keys().all(|(name, _)| !name.starts_with("device")), "what is gone is forgotten");
    }
}
