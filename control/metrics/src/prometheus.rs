//! What Prometheus reads: its text format.

use crate::families::{Buckets, Kind, Metric, Value};
use std::fmt::{Display, Write};

/// One family after another: its help, its type, its samples.
pub fn text(all: &[Metric]) -> String {
    let mut text = Text::default();
    all.iter().for_each(|metric| text.metric(metric));
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn metric(&mut self, Metric { name, kind, help, samples }: &Metric) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP cenote_{name} {help}\n# TYPE cenote_{name} {kind}");
        for sample in samples {
            let labels: Vec<(&str, &str)> = sample.labels.iter().map(|(l, v)| (*l, v.as_str())).collect();
            match &sample.value {
                Value::Number(value) => self.sample(name, &labels, value),
                Value::Buckets(buckets) => self.buckets(name, &labels, buckets),
            }
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let inner: Vec<String> = labels.iter().map(|(l, v)| format!("{l}=\"{}\"", escape(v))).collect();
        let labels = if inner.is_empty() { String::new() } else { format!("{{{}}}", inner.join(",")) };
        let _ = writeln!(self.0, "cenote_{name}{labels} {value}");
    }

    /// Each counts what is in those before it too.
    fn buckets(&mut self, name: &str, labels: &[(&str, &str)], buckets: &Buckets) {
        let mut below = 0;
        let bounds = buckets.bounds.iter().map(|bound| format!("{bound}")).chain(["+Inf".into()]);
        for (bound, count) in bounds.zip(&buckets.counts) {
            below += count;
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.sample(&format!("{name}_bucket"), &labels, below);
        }
        self.sample(&format!("{name}_sum"), labels, buckets.sum);
        self.sample(&format!("{name}_count"), labels, below);
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::tests::{pool, told};
    use serde_json::Value as Json;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_sample_has_a_family_and_labels_are_escaped() {
        let text = text(&told(&[pool(1)]));
        for line in [
            "cenote_front_size_bytes_bucket{front=\"iscsi\",le=\"524287\"} 0",
            "cenote_front_size_bytes_bucket{front=\"iscsi\",le=\"1048575\"} 5",
            "cenote_front_size_bytes_bucket{front=\"iscsi\",le=\"67108863\"} 7",
            "cenote_front_size_bytes_bucket{front=\"iscsi\",le=\"+Inf\"} 8",
            "cenote_front_size_bytes_count{front=\"iscsi\"} 8",
            "cenote_front_latency_seconds_bucket{front=\"iscsi\",le=\"0.002097152\"} 7",
            "cenote_front_latency_seconds_sum{front=\"iscsi\"} 7",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
        assert!(text.contains("cenote_pool_size_bytes{pool=\"tank\"} 100\n"), "{text}");
        assert!(text.contains("device=\"/d/\\\"x\\\"\\\\\",kind=\"read\",le=\"+Inf\"} 4\n"), "{text}");
        assert!(
            text.contains("le=\"0.001048576\"} 0\n") && text.contains("le=\"0.002097152\"} 3\n"),
            "{text}"
        );
        let mut families = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(of) => families.push(of.split(' ').next().unwrap().to_string()),
                None if line.starts_with('#') => {}
                None => {
                    let name = line.split(['{', ' ']).next().unwrap();
                    let current = families.last().unwrap();
                    assert!(name.starts_with(current.as_str()), "{name} stands under {current}");
                    let value = line.rsplit(' ').next().unwrap();
                    value.parse::<f64>().unwrap();
                }
            }
        }
        let mut unique = families.clone();
        unique.dedup();
        assert_eq!(unique, families);
    }

    /// A dashboard that asks for a metric of another name shows nothing, and nothing says why.
    #[test]
    fn every_metric_of_the_dashboard_exists() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana/cenote.json");
        let dashboard: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let all = told(&[]);
        let is_there = |name: &str| {
            all.iter().any(|Metric { name: family, kind, .. }| match kind {
                Kind::Histogram => {
                    let part = name.strip_prefix(family);
                    part.is_some_and(|part| ["_bucket", "_sum", "_count"].contains(&part))
                }
                _ => name == *family,
            })
        };
        let mut named = BTreeSet::new();
        let panels = dashboard["panels"].as_array().unwrap();
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let asked = targets.map(|t| &t["expr"]).chain(variables.iter().map(|v| &v["query"]));
        for text in asked.map(|text| text.as_str().unwrap()) {
            let rest = text.split("cenote_").skip(1);
            let end = |rest: &str| {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            };
            named.extend(rest.map(|rest| rest[..end(rest)].to_string()));
        }
        assert!(named.len() > 10 && panels.len() > 10, "{named:?}");
        for name in &named {
            assert!(is_there(name), "there is no metric cenote_{name}");
        }
        // What all others are measured by is on it.
        assert!(named.contains("front_size_bytes_bucket") && named.contains("front_latency_seconds_bucket"));
    }
}
