//! What Prometheus reads: the appliance's own statistics, in its text format.

use crate::fault::{Fault, Outcome};
use crate::server::{Asked, Counters, Rest};
use api::{Daemon, IoKind, Nbd, Pool, Reply, Request, Vdev};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Times below a microsecond and above a minute tell nothing: buckets of 2^n ns.
const BUCKETS: std::ops::RangeInclusive<usize> = 10..=36;

pub(crate) async fn answer(rest: Arc<Rest>, asked: Asked) -> Outcome {
    let unexpected = || Fault::internal("the appliance does not say how it is");
    let Reply::Pools(pools) = rest.call(&asked, Request::Pools { names: Vec::new() }).await? else {
        return Err(unexpected());
    };
    let Reply::Daemon(daemon) = rest.call(&asked, Request::Daemon).await? else { return Err(unexpected()) };
    let Reply::Nbd(nbd) = rest.call(&asked, Request::NbdExports).await? else { return Err(unexpected()) };
    let sessions = rest.access().sessions();
    Ok(Value::from(text(&pools, &daemon, &nbd, &rest.counters, sessions)).into())
}

/// One family after another: its help, its type, its samples.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP cenote_{name} {help}\n# TYPE cenote_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let inner: Vec<String> = labels.iter().map(|(l, v)| format!("{l}=\"{}\"", escape(v))).collect();
        let labels = if inner.is_empty() { String::new() } else { format!("{{{}}}", inner.join(",")) };
        let _ = writeln!(self.0, "cenote_{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn text(pools: &[Pool], daemon: &Daemon, nbd: &Nbd, own: &Counters, sessions: usize) -> String {
    let mut text = Text::default();
    text.family("info", "gauge", "The program.");
    text.sample("info", &[("version", &daemon.version)], 1);
    text.one("uptime_seconds", "gauge", "Since the daemon started.", daemon.uptime);
    text.one("arc_size_bytes", "gauge", "What the cache of blocks has.", daemon.arc_size);
    text.one("arc_max_bytes", "gauge", "What it may have.", daemon.arc_max);
    of_pools(&mut text, pools);
    of_vdevs(&mut text, pools);
    text.family("nbd_clients", "gauge", "Connections of NBD clients.");
    text.sample("nbd_clients", &[], nbd.clients.len());
    text.family("http_answers_total", "counter", "Answers of the API, by the class of their status.");
    for (class, count) in own.answers.iter().enumerate().skip(2) {
        text.sample(
            "http_answers_total",
            &[("status", &format!("{class}xx"))],
            count.load(Ordering::Relaxed),
        );
    }
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    text.one(
        "http_refused_total",
        "counter",
        "Connections hung up on, since there were too many.",
        load(&own.refused),
    );
    text.one("failed_logins_total", "counter", "Wrong names and passwords.", load(&own.failed_logins));
    text.one("sessions", "gauge", "Sessions of the API.", sessions);
    text.0
}

fn of_pools(text: &mut Text, pools: &[Pool]) {
    let number = |pool: &Pool, name: &str| {
        pool.property(name).and_then(|p| p.value.as_ref()).and_then(api::Value::number).unwrap_or(0)
    };
    text.family("pool_healthy", "gauge", "Whether every device of the pool is fine: its state is ONLINE.");
    for pool in pools {
        let labels = [("pool", pool.name.as_str()), ("state", pool.health.as_str())];
        text.sample("pool_healthy", &labels, u8::from(pool.health == "ONLINE"));
    }
    for (name, property, help) in [
        ("pool_size_bytes", "size", "All allocatable bytes."),
        ("pool_allocated_bytes", "allocated", "Bytes that are taken."),
        ("pool_free_bytes", "free", "Bytes that are not."),
    ] {
        text.family(name, "gauge", help);
        pools.iter().for_each(|pool| text.sample(name, &[("pool", &pool.name)], number(pool, property)));
    }
    text.family("pool_errors", "gauge", "Places where data was lost.");
    pools.iter().for_each(|pool| text.sample("pool_errors", &[("pool", &pool.name)], pool.errors.count()));
    text.family("pool_suspended", "gauge", "Whether nothing can be written any more.");
    for pool in pools {
        text.sample("pool_suspended", &[("pool", &pool.name)], u8::from(pool.suspended.is_some()));
    }
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

fn of_vdevs(text: &mut Text, pools: &[Pool]) {
    let all = devices(pools);
    let device = |vdev: &Vdev| vdev.path.clone().unwrap_or_else(|| vdev.guid.to_string());
    text.family("device_errors_total", "counter", "What a device failed, or returned wrong.");
    for (pool, vdev) in &all {
        let device = device(vdev);
        let counts =
            [("read", vdev.read_errors), ("write", vdev.write_errors), ("checksum", vdev.checksum_errors)];
        for (kind, count) in counts {
            text.sample("device_errors_total", &[("pool", pool), ("device", &device), ("kind", kind)], count);
        }
    }
    text.family("device_online", "gauge", "Whether it can be used.");
    for (pool, vdev) in &all {
        let labels = [("pool", *pool), ("device", &device(vdev))];
        text.sample("device_online", &labels, u8::from(vdev.state == "ONLINE"));
    }
    let kinds = |vdev: &Vdev| -> [(&'static str, IoKind); 3] {
        [
            ("read", vdev.stats.read.clone()),
            ("write", vdev.stats.write.clone()),
            ("trim", vdev.stats.trim.clone()),
        ]
    };
    for (name, help, of) in [
        ("device_operations_total", "Requests to a device.", (|k: &IoKind| k.ops) as fn(&IoKind) -> u64),
        ("device_bytes_total", "Bytes to and from a device.", |k: &IoKind| k.bytes),
    ] {
        text.family(name, "counter", help);
        for (pool, vdev) in &all {
            let device = device(vdev);
            for (kind, io) in kinds(vdev) {
                text.sample(name, &[("pool", pool), ("device", &device), ("kind", kind)], of(&io));
            }
        }
    }
    text.family("device_wait_seconds", "histogram", "How long a device took.");
    for (pool, vdev) in &all {
        let device = device(vdev);
        for (kind, io) in kinds(vdev).iter().take(2) {
            histogram(text, &[("pool", pool), ("device", &device), ("kind", kind)], &io.disk_wait);
        }
    }
    text.family("device_flushes_total", "counter", "Flushes that were sent to a device.");
    for (pool, vdev) in &all {
        text.sample(
            "device_flushes_total",
            &[("pool", pool), ("device", &device(vdev))],
            vdev.stats.flush.sent,
        );
    }
}

/// The sum is an estimate: each at the middle of its bucket.
fn histogram(text: &mut Text, labels: &[(&str, &str)], counts: &[u64]) {
    let name = "device_wait_seconds";
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
            errors: api::DataErrors::default(),
            unusable: Vec::new(),
            suspended: None,
            logs: Vec::new(),
            problem: None,
            clock_ns: 0,
        };
        let text = text(&[pool], &Daemon::default(), &Nbd::default(), &Counters::default(), 2);
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
}
