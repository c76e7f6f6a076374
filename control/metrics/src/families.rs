//! The table of figures: each family is one row of [`FAMILIES`], in the order in which they are told.
//!
//! A new figure is a row here, and a field of what the appliance replies, unless one is there already.

use api::analytics::{FrontHistogram, Measured};
use api::{Daemon, IoKind, Nbd, Pool, Vdev};

/// Times below a microsecond and above a minute tell nothing: buckets of 2^n ns.
const BUCKETS: std::ops::RangeInclusive<usize> = 10..=36;

/// Sizes of operations: powers of two from 512 bytes to 64 MiB.
const SIZES: std::ops::RangeInclusive<u32> = 9..=26;

/// All that samples are taken from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub pools: &'a [Pool],
    pub daemon: &'a Daemon,
    pub nbd: &'a Nbd,
    pub fronts: &'a [FrontHistogram],
    pub own: Api,
}

/// What the API counts of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Api {
    /// Answers, by the hundreds of their status.
    pub answers: [u64; 6],
    pub refused: u64,
    pub failed_logins: u64,
    pub sessions: u64,
}

/// How a figure comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As it is now.
    Gauge,
    /// It only grows, from the start of the daemon on.
    Counter,
    /// Counters, by buckets.
    Histogram,
}

/// A family as it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// As Prometheus has it, without `cenote_`.
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub samples: Vec<Sampled>,
}

/// One sample of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    Buckets(Buckets),
}

/// What is in each bucket, up to its bound and with it; the last has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    pub bounds: Vec<f64>,
    pub counts: Vec<u64>,
    pub sum: f64,
}

impl Buckets {
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// A family: name without `cenote_`, kind, help, and its samples.
type Family = (&'static str, Kind, &'static str, Samples);

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
    ("info", Kind::Gauge, "The program.", Labelled(|of| vec![("version", of.daemon.version.clone(), 1)])),
    ("uptime_seconds", Kind::Gauge, "Since the daemon started.", One(|of| of.daemon.uptime)),
    ("arc_size_bytes", Kind::Gauge, "What the cache of blocks has.", One(|of| of.daemon.arc_size)),
    ("arc_max_bytes", Kind::Gauge, "What it may have.", One(|of| of.daemon.arc_max)),
    (
        "pool_healthy",
        Kind::Gauge,
        "Whether every device of the pool is fine: its state is ONLINE.",
        OfPool(|pool| (pool.health == "ONLINE").into(), Some(("state", |pool| &pool.health))),
    ),
    ("pool_size_bytes", Kind::Gauge, "All allocatable bytes.", OfPool(|pool| number(pool, "size"), None)),
    (
        "pool_allocated_bytes",
        Kind::Gauge,
        "Bytes that are taken.",
        OfPool(|pool| number(pool, "allocated"), None),
    ),
    ("pool_free_bytes", Kind::Gauge, "Bytes that are not.", OfPool(|pool| number(pool, "free"), None)),
    ("pool_errors", Kind::Gauge, "Places where data was lost.", OfPool(|pool| pool.errors.count(), None)),
    (
        "pool_suspended",
        Kind::Gauge,
        "Whether nothing can be written any more.",
        OfPool(|pool| pool.suspended.is_some().into(), None),
    ),
    (
        "device_errors_total",
        Kind::Counter,
        "What a device failed, or returned wrong.",
        OfKinds(|v| {
            vec![("read", v.read_errors), ("write", v.write_errors), ("checksum", v.checksum_errors)]
        }),
    ),
    ("device_online", Kind::Gauge, "Whether it can be used.", OfDevice(|v| (v.state == "ONLINE").into())),
    ("device_operations_total", Kind::Counter, "Requests to a device.", OfKinds(|v| kinds(v, |io| io.ops))),
    (
        "device_bytes_total",
        Kind::Counter,
        "Bytes to and from a device.",
        OfKinds(|v| kinds(v, |io| io.bytes)),
    ),
    (
        "device_wait_seconds",
        Kind::Histogram,
        "How long a device took.",
        Histograms(|v| vec![("read", &v.stats.read.disk_wait), ("write", &v.stats.write.disk_wait)]),
    ),
    (
        "device_flushes_total",
        Kind::Counter,
        "Flushes that were sent to a device.",
        OfDevice(|v| v.stats.flush.sent),
    ),
    (
        "front_size_bytes",
        Kind::Histogram,
        "Operations of clients by their size, since the first time that this was read; a bucket ends before a power of two.",
        OfFronts(Measured::Size),
    ),
    (
        "front_latency_seconds",
        Kind::Histogram,
        "Operations of clients by how long they took, since the first time that this was read.",
        OfFronts(Measured::Latency),
    ),
    ("nbd_clients", Kind::Gauge, "Connections of NBD clients.", One(|of| of.nbd.clients.len() as u64)),
    (
        "http_answers_total",
        Kind::Counter,
        "Answers of the API, by the class of their status.",
        Labelled(|of| {
            let classes = of.own.answers.iter().enumerate().skip(2);
            classes.map(|(class, count)| ("status", format!("{class}xx"), *count)).collect()
        }),
    ),
    (
        "http_refused_total",
        Kind::Counter,
        "Connections hung up on, since there were too many.",
        One(|of| of.own.refused),
    ),
    ("failed_logins_total", Kind::Counter, "Wrong names and passwords.", One(|of| of.own.failed_logins)),
    ("sessions", Kind::Gauge, "Sessions of the API.", One(|of| of.own.sessions)),
];

/// All figures.
pub fn families(of: &Facts<'_>) -> Vec<Metric> {
    let told =
        |(name, kind, help, samples): &Family| Metric { name, kind: *kind, help, samples: samples.told(of) };
    FAMILIES.iter().map(told).collect()
}

fn number(pool: &Pool, name: &str) -> u64 {
    pool.property(name).and_then(|p| p.value.as_ref()).and_then(api::Value::number).unwrap_or(0)
}

fn kinds(vdev: &Vdev, of: fn(&IoKind) -> u64) -> Vec<(&'static str, u64)> {
    let stats = &vdev.stats;
    vec![("read", of(&stats.read)), ("write", of(&stats.write)), ("trim", of(&stats.trim))]
}

fn sampled(labels: &[(&'static str, &str)], value: u64) -> Sampled {
    let labels = labels.iter().map(|(label, word)| (*label, word.to_string())).collect();
    Sampled { labels, value: Value::Number(value) }
}

impl Samples {
    fn told(&self, of: &Facts<'_>) -> Vec<Sampled> {
        match self {
            One(value) => vec![sampled(&[], value(of))],
            Labelled(all) => {
                all(of).into_iter().map(|(label, word, value)| sampled(&[(label, &word)], value)).collect()
            }
            OfPool(value, second) => {
                let one = |pool: &Pool| {
                    let more = second.map(|(label, word)| (label, word(pool)));
                    let labels: Vec<_> = [("pool", pool.name.as_str())].into_iter().chain(more).collect();
                    sampled(&labels, value(pool))
                };
                of.pools.iter().map(one).collect()
            }
            OfFronts(measure) => {
                let fronts = of.fronts.iter().filter(|front| front.measure == *measure);
                fronts.map(of_front).collect()
            }
            OfDevice(_) | OfKinds(_) | Histograms(_) => {
                devices(of.pools).iter().flat_map(|(pool, vdev)| self.of_device(pool, vdev)).collect()
            }
        }
    }

    fn of_device(&self, pool: &str, vdev: &Vdev) -> Vec<Sampled> {
        let device = vdev.path.clone().unwrap_or_else(|| vdev.guid.to_string());
        let labels = [("pool", pool), ("device", device.as_str())];
        let of_kind = |kind| [labels[0], labels[1], ("kind", kind)];
        match self {
            OfDevice(value) => vec![sampled(&labels, value(vdev))],
            OfKinds(all) => {
                all(vdev).into_iter().map(|(kind, value)| sampled(&of_kind(kind), value)).collect()
            }
            Histograms(all) => all(vdev)
                .into_iter()
                .map(|(kind, counts)| Sampled {
                    value: Value::Buckets(waits(counts)),
                    ..sampled(&of_kind(kind), 0)
                })
                .collect(),
            One(_) | Labelled(_) | OfPool(..) | OfFronts(_) => Vec::new(),
        }
    }
}

/// The same buckets each time, whatever is in them. A bound belongs to its bucket here, while ours end before a power of
/// two: 512 KiB is in that of 1048575, and not counted as less.
fn of_front(front: &FrontHistogram) -> Sampled {
    let (powers, bound, scale): (_, fn(u64) -> f64, f64) = match front.measure {
        Measured::Size => (SIZES, |limit| (limit - 1) as f64, 1.0),
        Measured::Latency => {
            (*BUCKETS.start() as u32..=*BUCKETS.end() as u32, |limit| limit as f64 / 1e9, 1e9)
        }
    };
    let limits: Vec<u64> = powers.map(|power| 1u64 << power).collect();
    let mut counts = vec![0; limits.len() + 1];
    for (limit, count) in &front.buckets {
        counts[limits.partition_point(|own| own < limit)] += count;
    }
    let bounds = limits.into_iter().map(bound).collect();
    let buckets = Buckets { bounds, counts, sum: front.sum as f64 / scale };
    Sampled { value: Value::Buckets(buckets), ..sampled(&[("front", &front.front)], 0) }
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
fn waits(counts: &[u64]) -> Buckets {
    let bounds: Vec<f64> = BUCKETS.map(|bucket| 2f64.powi(bucket as i32 + 1) / 1e9).collect();
    let mut buckets = Buckets { counts: vec![0; bounds.len() + 1], bounds, sum: 0.0 };
    for (bucket, count) in counts.iter().enumerate() {
        buckets.sum += *count as f64 * 1.5 * 2f64.powi(bucket as i32) / 1e9;
        let place = bucket.saturating_sub(*BUCKETS.start()).min(buckets.bounds.len());
        buckets.counts[place] += count;
    }
    buckets
}

/// Facts with a name that needs escaping, for tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn pool(reads: u64) -> Pool {
        let mut vdev = Vdev { kind: "disk".into(), path: Some("/d/\"x\"\\".into()), ..Vdev::default() };
        vdev.stats.read.disk_wait = vec![0; 40];
        vdev.stats.read.disk_wait[20] = 3;
        vdev.stats.read.disk_wait[39] = 1;
        vdev.stats.read.ops = reads;
        Pool {
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
        }
    }

    pub fn fronts() -> [FrontHistogram; 2] {
        [Measured::Size, Measured::Latency].map(|measure| FrontHistogram {
            front: "iscsi".into(),
            measure,
            buckets: vec![(1 << 20, 5), (1 << 21, 2), (u64::MAX, 1)],
            sum: 7_000_000_000,
        })
    }

    pub fn told(pools: &[Pool]) -> Vec<Metric> {
        let own = Api { sessions: 2, ..Api::default() };
        let (daemon, nbd) = (Daemon { version: "1.2".into(), ..Daemon::default() }, Nbd::default());
        families(&Facts { pools, daemon: &daemon, nbd: &nbd, fronts: &fronts(), own })
    }

    #[test]
    fn each_family_is_told_once_and_a_value_is_in_one_bucket() {
        let all = told(&[pool(1)]);
        let mut names: Vec<&str> = all.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
        for metric in &all {
            for sample in &metric.samples {
                match (&sample.value, metric.kind) {
                    (Value::Buckets(buckets), Kind::Histogram) => {
                        assert_eq!(buckets.counts.len(), buckets.bounds.len() + 1, "{}", metric.name);
                        assert!(buckets.bounds.is_sorted_by(|a, b| a < b));
                    }
                    (Value::Number(_), Kind::Gauge | Kind::Counter) => {}
                    other => panic!("{}: {other:?}", metric.name),
                }
            }
        }
        let waits = all.iter().find(|metric| metric.name == "device_wait_seconds").unwrap();
        let Value::Buckets(read) = &waits.samples[0].value else { panic!() };
        assert_eq!((read.count(), read.counts[10], *read.counts.last().unwrap()), (4, 3, 1));
    }
}
