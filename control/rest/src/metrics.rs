//! What Prometheus reads: the appliance's own statistics, in its text format.
//!
//! Each family is one row of [`FAMILIES`]: name, type, help, and the samples that it has. The order of the rows is that of
//! the text. A new statistic is a row here, and a field of what the appliance replies, unless one is there already.

use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Counters, Rest};
use api::analytics::{Analytics, FrontHistogram, Measured, Told};
use api::{Daemon, IoKind, Nbd, Pool, Reply, Request, Vdev};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Times below a microsecond and above a minute tell nothing: buckets of 2^n ns.
const BUCKETS: std::ops::RangeInclusive<usize> = 10..=36;

/// Sizes of operations: powers of two from 512 bytes to 64 MiB.
const SIZES: std::ops::RangeInclusive<u32> = 9..=26;

/// All that samples are taken from.
struct Facts<'a> {
    pools: &'a [Pool],
    daemon: &'a Daemon,
    nbd: &'a Nbd,
    fronts: &'a [FrontHistogram],
    own: &'a Counters,
    sessions: usize,
}

/// A family: name without `cenote_`, type, help, and its samples.
type Family = (&'static str, &'static str, &'static str, Samples);

/// From what its samples are taken, with which labels.
#[derive(Clone, Copy)]
enum Samples {
    /// One.
    One(fn(&Facts<'_>) -> u64),
    /// Several, with labels of their own.
    Labelled(fn(&Facts<'_>) -> Vec<(&'static str, String, u64)>),
    /// One for each pool; a second label, if there is one.
    OfPool(fn(&Pool) -> u64, Option<(&'static str, fn(&Pool) -> &str)>),
    /// One for each device.
    OfDevice(fn(&Vdev) -> u64),
    /// Of each device one for each kind: `read`, `write`.
    OfKinds(fn(&Vdev) -> Vec<(&'static str, u64)>),
    /// Of each front a histogram.
    OfFronts(Measured),
    /// Of each device a histogram for each kind.
    Histograms(fn(&Vdev) -> Vec<(&'static str, &[u64])>),
}

use Samples::{Histograms, Labelled, OfDevice, OfFronts, OfKinds, OfPool, One};

static FAMILIES: &[Family] = &[
    ("info", "gauge", "The program.", Labelled(|of| vec![("version", of.daemon.version.clone(), 1)])),
    ("uptime_seconds", "gauge", "Since the daemon started.", One(|of| of.daemon.uptime)),
    ("arc_size_bytes", "gauge", "What the cache of blocks has.", One(|of| of.daemon.arc_size)),
    ("arc_max_bytes", "gauge", "What it may have.", One(|of| of.daemon.arc_max)),
    (
        "pool_healthy",
        "gauge",
        "Whether every device of the pool is fine: its state is ONLINE.",
        OfPool(|pool| (pool.health == "ONLINE").into(), Some(("state", |pool| &pool.health))),
    ),
    ("pool_size_bytes", "gauge", "All allocatable bytes.", OfPool(|pool| number(pool, "size"), None)),
    (
        "pool_allocated_bytes",
        "gauge",
        "Bytes that are taken.",
        OfPool(|pool| number(pool, "allocated"), None),
    ),
    ("pool_free_bytes", "gauge", "Bytes that are not.", OfPool(|pool| number(pool, "free"), None)),
    ("pool_errors", "gauge", "Places where data was lost.", OfPool(|pool| pool.errors.count(), None)),
    (
        "pool_suspended",
        "gauge",
        "Whether nothing can be written any more.",
        OfPool(|pool| pool.suspended.is_some().into(), None),
    ),
    (
        "device_errors_total",
        "counter",
        "What a device failed, or returned wrong.",
        OfKinds(|v| {
            vec![("read", v.read_errors), ("write", v.write_errors), ("checksum", v.checksum_errors)]
        }),
    ),
    ("device_online", "gauge", "Whether it can be used.", OfDevice(|v| (v.state == "ONLINE").into())),
    ("device_operations_total", "counter", "Requests to a device.", OfKinds(|v| kinds(v, |io| io.ops))),
    ("device_bytes_total", "counter", "Bytes to and from a device.", OfKinds(|v| kinds(v, |io| io.bytes))),
    (
        "device_wait_seconds",
        "histogram",
        "How long a device took.",
        Histograms(|v| vec![("read", &v.stats.read.disk_wait), ("write", &v.stats.write.disk_wait)]),
    ),
    (
        "device_flushes_total",
        "counter",
        "Flushes that were sent to a device.",
        OfDevice(|v| v.stats.flush.sent),
    ),
    (
        "front_size_bytes",
        "histogram",
        "Operations of clients by their size, since the first time that this was read; a bucket ends before a power of two.",
        OfFronts(Measured::Size),
    ),
    (
        "front_latency_seconds",
        "histogram",
        "Operations of clients by how long they took, since the first time that this was read.",
        OfFronts(Measured::Latency),
    ),
    ("nbd_clients", "gauge", "Connections of NBD clients.", One(|of| of.nbd.clients.len() as u64)),
    (
        "http_answers_total",
        "counter",
        "Answers of the API, by the class of their status.",
        Labelled(|of| {
            let classes = of.own.answers.iter().enumerate().skip(2);
            classes.map(|(class, count)| ("status", format!("{class}xx"), load(count))).collect()
        }),
    ),
    (
        "http_refused_total",
        "counter",
        "Connections hung up on, since there were too many.",
        One(|of| load(&of.own.refused)),
    ),
    ("failed_logins_total", "counter", "Wrong names and passwords.", One(|of| load(&of.own.failed_logins))),
    ("sessions", "gauge", "Sessions of the API.", One(|of| of.sessions as u64)),
];

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn number(pool: &Pool, name: &str) -> u64 {
    pool.property(name).and_then(|p| p.value.as_ref()).and_then(api::Value::number).unwrap_or(0)
}

fn kinds(vdev: &Vdev, of: fn(&IoKind) -> u64) -> Vec<(&'static str, u64)> {
    let stats = &vdev.stats;
    vec![("read", of(&stats.read)), ("write", of(&stats.write)), ("trim", of(&stats.trim))]
}

pub(crate) async fn answer(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let unexpected = || Fault::internal("the appliance does not say how it is");
    let Reply::Pools(pools) = rest.call(&asked, Request::Pools { names: Vec::new() }).await? else {
        return Err(unexpected());
    };
    let Reply::Daemon(daemon) = rest.call(&asked, Request::Daemon).await? else { return Err(unexpected()) };
    let Reply::Nbd(nbd) = rest.call(&asked, Request::NbdExports).await? else { return Err(unexpected()) };
    let fronts = match rest.call(&asked, Request::Analytics(Analytics::Histograms)).await {
        Ok(Reply::Analytics(Told::Histograms(all))) => all,
        // Where no statistics are kept, the rest is told all the same.
        _ => Vec::new(),
    };
    let sessions = rest.access().sessions();
    let facts =
        Facts { pools: &pools, daemon: &daemon, nbd: &nbd, fronts: &fronts, own: &rest.counters, sessions };
    Ok(Value::from(text(&facts)).into())
}

/// One family after another: its help, its type, its samples.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, (name, kind, help, samples): &Family, of: &Facts<'_>) {
        let _ = writeln!(self.0, "# HELP cenote_{name} {help}\n# TYPE cenote_{name} {kind}");
        match samples {
            One(value) => self.sample(name, &[], value(of)),
            Labelled(all) => {
                all(of).iter().for_each(|(label, word, value)| self.sample(name, &[(label, word)], value));
            }
            OfPool(value, second) => {
                for pool in of.pools {
                    let more = second.map(|(label, word)| (label, word(pool)));
                    let labels: Vec<_> = [("pool", pool.name.as_str())].into_iter().chain(more).collect();
                    self.sample(name, &labels, value(pool));
                }
            }
            OfFronts(measure) => {
                let fronts = of.fronts.iter().filter(|front| front.measure == *measure);
                fronts.for_each(|front| of_front(self, name, front));
            }
            OfDevice(_) | OfKinds(_) | Histograms(_) => {
                devices(of.pools).iter().for_each(|(pool, vdev)| self.device(name, samples, pool, vdev));
            }
        }
    }

    fn device(&mut self, name: &str, samples: &Samples, pool: &str, vdev: &Vdev) {
        let device = vdev.path.clone().unwrap_or_else(|| vdev.guid.to_string());
        let labels = [("pool", pool), ("device", &device)];
        let of_kind = |kind| [("pool", pool), ("device", device.as_str()), ("kind", kind)];
        match samples {
            OfDevice(value) => self.sample(name, &labels, value(vdev)),
            OfKinds(all) => {
                all(vdev).into_iter().for_each(|(kind, value)| self.sample(name, &of_kind(kind), value))
            }
            Histograms(all) => {
                all(vdev)
                    .into_iter()
                    .for_each(|(kind, counts)| histogram(self, name, &of_kind(kind), counts));
            }
            One(_) | Labelled(_) | OfPool(..) | OfFronts(_) => {}
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let inner: Vec<String> = labels.iter().map(|(l, v)| format!("{l}=\"{}\"", escape(v))).collect();
        let labels = if inner.is_empty() { String::new() } else { format!("{{{}}}", inner.join(",")) };
        let _ = writeln!(self.0, "cenote_{name}{labels} {value}");
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn text(facts: &Facts<'_>) -> String {
    let mut text = Text::default();
    FAMILIES.iter().for_each(|family| text.family(family, facts));
    text.0
}

/// The same buckets each time, whatever is in them. A bound belongs to its bucket here, while ours end before a power of
/// two: 512 KiB is in that of 1048575, and not counted as less.
fn of_front(text: &mut Text, name: &str, front: &FrontHistogram) {
    let (powers, shown): (_, fn(u64) -> String) = match front.measure {
        Measured::Size => (SIZES, |limit| (limit - 1).to_string()),
        Measured::Latency => {
            (*BUCKETS.start() as u32..=*BUCKETS.end() as u32, |limit| format!("{}", limit as f64 / 1e9))
        }
    };
    let labels = [("front", front.front.as_str())];
    let up_to = |limit| front.buckets.iter().filter(|(own, _)| *own <= limit).map(|(_, n)| n).sum::<u64>();
    for limit in powers.map(|power| 1u64 << power) {
        text.sample(&format!("{name}_bucket"), &[labels[0], ("le", &shown(limit))], up_to(limit));
    }
    text.sample(&format!("{name}_bucket"), &[labels[0], ("le", "+Inf")], up_to(u64::MAX));
    match front.measure {
        Measured::Size => text.sample(&format!("{name}_sum"), &labels, front.sum),
        Measured::Latency => text.sample(&format!("{name}_sum"), &labels, front.sum as f64 / 1e9),
    }
    text.sample(&format!("{name}_count"), &labels, up_to(u64::MAX));
}

/// Every device, with the name of its pool.
fn devices(pools: &[Pool]) -> Vec<(&str, &Vdev)> {
    let mut all = Vec::new();
    for pool in pools {
        let Some(root) = &pool.vdevs else { continue };
        all.extend(root.walk().into_iter().filter(|v| v.is_leaf()).map(|v| (pool.name.as_str(), v)));
    }
    all
}

/// The sum is an estimate: each at the middle of its bucket.
fn histogram(text: &mut Text, name: &str, labels: &[(&str, &str)], counts: &[u64]) {
    let mut below = 0;
    let mut sum = 0.0;
    for (bucket, count) in counts.iter().enumerate() {
        below += count;
        sum += *count as f64 * 1.5 * 2f64.powi(bucket as i32) / 1e9;
        if BUCKETS.contains(&bucket) {
            let limit = format!("{}", 2f64.powi(bucket as i32 + 1) / 1e9);
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", limit.as_str())]).collect();
            text.sample(&format!("{name}_bucket"), &labels, below);
        }
    }
    let labels_inf: Vec<(&str, &str)> = labels.iter().copied().chain([("le", "+Inf")]).collect();
    text.sample(&format!("{name}_bucket"), &labels_inf, below);
    text.sample(&format!("{name}_sum"), labels, sum);
    text.sample(&format!("{name}_count"), labels, below);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_sample_has_a_family_and_labels_are_escaped() {
        let mut vdev = Vdev { kind: "disk".into(), path: Some("/d/\"x\"\\".into()), ..Vdev::default() };
        vdev.stats.read.disk_wait = vec![0; 37];
        vdev.stats.read.disk_wait[20] = 3;
        let pool = Pool {
            name: "tank".into(),
            guid: 1,
            txg: 1,
            health: "ONLINE".into(),
            properties: vec![api::Property::computed("size", 100u64)],
            vdevs: Some(Vdev { kind: "root".into(), children: vec![vdev], ..Vdev::default() }),
            scan: None,
            error_scrub: None,
            errors: api::DataErrors::default(),
            unusable: Vec::new(),
            suspended: None,
            logs: Vec::new(),
            problem: None,
            clock_ns: 0,
        };
        let fronts = [Measured::Size, Measured::Latency].map(|measure| FrontHistogram {
            front: "iscsi".into(),
            measure,
            buckets: vec![(1 << 20, 5), (1 << 21, 2), (u64::MAX, 1)],
            sum: 7_000_000_000,
        });
        let text = text(&Facts {
            pools: &[pool],
            daemon: &Daemon::default(),
            nbd: &Nbd::default(),
            fronts: &fronts,
            own: &Counters::default(),
            sessions: 2,
        });
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
        assert!(text.contains("device=\"/d/\\\"x\\\"\\\\\",kind=\"read\",le=\"+Inf\"} 3\n"), "{text}");
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
        let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let is_there = |name: &str| {
            FAMILIES.iter().any(|(family, kind, ..)| match *kind {
                "histogram" => {
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
