//! Ten thousand graphs asked at once: as many statistics are open as may be, the rest is refused and told why, and nobody
//! else notices.

use crate::home::{CENOTE, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, said};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const GRAPHS: usize = 10_000;
const CLIENTS: usize = 32;
/// As many as can be open: `Limits::datasets` of analytics.
const OPEN_MAX: usize = 256;
const MIB: u64 = 1 << 20;
/// What their samples may take, and what requests under way do.
const MORE_MAX: u64 = (64 + 64) * MIB;

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "ten_thousand_graphs_at_once_are_bounded_and_other_clients_are_served",
        &[Need::Program("nbdcopy")],
        asked,
    )]
}

/// The most that was resident since it began.
fn peak(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Status and body; `None`: there were too many connections, and this one was hung up on.
fn ask(socket: &Path, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: cenote\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_string()))
}

fn asked() {
    let home = Home::new();
    let (daemon, uri) = home.up("64M");
    let socket = home.dir().join("rest.sock");
    let before = peak(daemon.pid());
    let (next, opened, refused, lost) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    let mut copies = 0;
    std::thread::scope(|scope| {
        // Another client, all the while: what it reads is whole.
        let reader = scope.spawn(|| {
            let mut copies = 0;
            while copies == 0 || !is_over.load(Ordering::Relaxed) {
                let output = command("nbdcopy").args([uri.as_str(), "null:"]).output().unwrap();
                assert!(output.status.success(), "{}", said(&output));
                copies += 1;
            }
            copies
        });
        let askers: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= GRAPHS {
                            return;
                        }
                        let body = format!(r#"{{"statistic":"nbd.ops[offset>={n}K][size]"}}"#);
                        match ask(&socket, "POST", "/api/analytics/v1/datasets", &body) {
                            Some((200..=299, _)) => drop(opened.fetch_add(1, Ordering::Relaxed)),
                            Some((status, text)) => {
                                assert!(status == 507 || status == 503, "{status} {text}");
                                assert!(text.contains("as many as can be"), "{status} {text}");
                                refused.fetch_add(1, Ordering::Relaxed);
                            }
                            None => drop(lost.fetch_add(1, Ordering::Relaxed)),
                        }
                    }
                })
            })
            .collect();
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        // As many readers as there are threads, each waiting for a sample of what is open.
        let waiting: Vec<_> = (0..256)
            .map(|_| {
                let path = "/api/analytics/v1/datasets/cpu.utilization/data?start=now&seconds=1";
                let socket = &socket;
                scope.spawn(move || ask(socket, "GET", path, ""))
            })
            .collect();
        let told = waiting.into_iter().filter_map(|reader| reader.join().unwrap());
        assert!(told.filter(|(status, _)| *status == 200).count() > 0, "samples are told");
        is_over.store(true, Ordering::Relaxed);
        copies = reader.join().unwrap();
    });
    let all = ask(&socket, "GET", "/api/analytics/v1/datasets", "").unwrap();
    let all: Value = serde_json::from_str(&all.1).unwrap();
    let count = all["datasets"].as_array().unwrap().len();
    let more = peak(daemon.pid()) - before;
    let [opened, refused, lost] = [&opened, &refused, &lost].map(|n| n.load(Ordering::Relaxed));
    println!(
        "{opened} opened, {refused} refused, {lost} hung up on; {count} are open; {} MiB more than before; {copies} copies by another \
         client",
        more / MIB
    );
    assert_eq!(count, OPEN_MAX);
    assert!(opened < OPEN_MAX && refused > GRAPHS / 2 && opened + refused + lost == GRAPHS);
    assert!(more < MORE_MAX, "{} MiB", more / MIB);
    // A worksheet, as the page keeps one, has a bound too; and the program is as it was.
    let sheet = ask(&socket, "POST", "/api/analytics/v1/worksheets", r#"{"name":"many"}"#).unwrap();
    let sheet: Value = serde_json::from_str(&sheet.1).unwrap();
    let uuid = sheet["worksheet"]["uuid"].as_str().unwrap();
    let graphs = format!("/api/analytics/v1/worksheets/{uuid}/datasets");
    let names: Vec<&str> =
        all["datasets"].as_array().unwrap().iter().filter_map(|d| d["name"].as_str()).collect();
    let added = names
        .iter()
        .map(|name| ask(&socket, "POST", &graphs, &format!(r#"{{"name":{}}}"#, Value::from(*name))));
    let statuses: Vec<u16> = added.map(|answer| answer.unwrap().0).collect();
    let taken = statuses.iter().filter(|status| **status < 300).count();
    assert!(taken == 64 && statuses.iter().all(|status| *status < 500), "{taken}: {statuses:?}");
    assert!(
        std::process::Command::new(CENOTE)
            .arg("--home")
            .arg(home.dir())
            .arg("status")
            .output()
            .unwrap()
            .status
            .success()
    );
    daemon.end();
}
