//! The page while much is open: sixteen graphs under load, a day that was kept, and a week of looking at it. How the page
//! is measured is in `control/web/tests/frames.mjs`.
//!
//! What is claimed is of a machine that does nothing else; one that does other things too may take [`LOADED`] times that.

use crate::browser::{self, in_browser};
use crate::home::Home;
use analytics::{Errands, Limits, OfHub, Recorder};
use interop::harness::{Need, Trial, trial};
use interop::programs::{feed, find, said};
use probe::{Event, Family, Hub, Op};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Half of them by size or latency.
const SIXTEEN: [&str; 16] = [
    "nbd.ops",
    "nbd.ops[size]",
    "nbd.bytes",
    "nbd.ops[latency]",
    "nbd.ops[op]",
    "nbd.bytes[size]",
    "nbd.ops[dataset]",
    "nbd.ops[op=read][latency]",
    "io.ops",
    "io.ops[size]",
    "io.bytes",
    "io.ops[latency]",
    "cpu.utilization",
    "io.bytes[size]",
    "arc.accesses[hit/miss]",
    // Nothing falls into it.
    "nbd.ops[op=trim][size]",
];
/// What was kept, of a day, with so many buckets in each second.
const KEPT: &str = "nbd.ops[size]";
const BUCKETS: u64 = 24;
const DAY: u64 = 86_400;

/// Milliseconds on a quiet machine.
const PAINT: f64 = 1000.0;
const FRAME: f64 = 17.0;
const LATE: f64 = 50.0;
const A_DAY: f64 = 200.0;
const AN_HOUR: f64 = 400.0;
/// How much longer a machine may take that does other things too.
const LOADED: f64 = 5.0;
/// Points of a graph that was open for a week, and by how much the heap may grow after the first two days of it.
const POINTS_MAX: u64 = 12_001;
const GROWTH_MAX: u64 = 8 << 20;

pub fn trials() -> Vec<Trial> {
    let needs = [browser::NEEDS.to_vec(), vec![Need::Program("qemu-io")]].concat();
    vec![trial("sixteen_graphs_a_day_and_a_week_are_drawn_without_a_stutter", &needs, drawn)]
}

/// The store of a recorder that was there for the last day.
fn keep_a_day(path: PathBuf) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let config = sim::Config { wall_seconds: now - DAY, ..sim::Config::default() };
    sim::run_with(&sim::Disks::new(), 16, config, async move {
        let hub = Hub::new();
        let probe = hub.probe(Family::Nbd, &[]);
        let recorder = Recorder::new(&path, Limits::default(), Errands::here());
        recorder.begin(Arc::new(OfHub(hub)), &[KEPT]).await;
        let task = world::spawn(recorder.clone().run());
        for second in 0..DAY {
            for bucket in 0..BUCKETS {
                // Four buckets for each power of two.
                let bytes = (4 + bucket % 4) << (10 + bucket / 4);
                for _ in 0..(second * (bucket + 7)) % 5 + 1 {
                    probe.tell(|| Event { op: Op::Read, bytes, ..Event::default() });
                }
            }
            world::sleep(Duration::from_secs(1)).await;
        }
        recorder.end();
        task.await;
    });
}

fn drawn() {
    let home = Home::new();
    std::fs::create_dir(home.dir()).unwrap();
    keep_a_day(home.dir().join("analytics.redb"));
    let (daemon, text) = home.start(
        "up --http 127.0.0.1:0 --iscsi 127.0.0.1:0 --listen 127.0.0.1:0 --size 1G --volume 64M --arc-max 64M --log error",
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let page = words.iter().position(|w| w.starts_with("http://") && w.ends_with('/')).expect(&text);
    let uri = words.iter().find(|w| w.starts_with("nbd://")).expect(&text);
    let part = |name: &str, statistics: &[&str]| -> Value {
        // A code is good for once.
        let told = home.run("page");
        let code = told.split_whitespace().nth(2).unwrap();
        let text = in_browser("frames.mjs", &[words[page], code], &[&[name], statistics].concat());
        serde_json::from_str(text.trim()).unwrap()
    };
    let is_over = AtomicBool::new(false);
    let frames = std::thread::scope(|scope| {
        scope.spawn(|| load(uri, &is_over));
        // The load must end also when this fails.
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| part("frames", &SIXTEEN)));
        is_over.store(true, Ordering::Relaxed);
        told.unwrap()
    });
    let (day, week) = (part("day", &[KEPT]), part("week", &[KEPT]));
    daemon.end();

    let rows: Vec<u64> = frames["rows"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(rows.iter().filter(|n| **n >= 10).count() >= 4, "heat maps of more than a few rows: {rows:?}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no figure: {value}"));
    let both = |of: &Value| number(&of["asked"]) + number(&of["drawn"]);
    for (what, took, quiet) in [
        ("the first paint", number(&frames["paint"]), PAINT),
        ("a frame", number(&frames["follows"]["median"]), FRAME),
        ("one frame in twenty", number(&frames["follows"]["p95"]), LATE),
        ("a frame under the pointer", number(&frames["pointed"]["median"]), LATE),
        ("a day", both(&day["day"]), A_DAY),
        ("an hour by the second", both(&day["hour"]), AN_HOUR),
    ] {
        assert!(took <= quiet * LOADED, "{what} took {took} ms, where a quiet machine takes {quiet}");
    }
    assert!(number(&day["day"]["parts"]) >= (DAY / 60 - 10) as f64 * BUCKETS as f64, "{day}");
    let heaps: Vec<u64> = week["heaps"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(week["points"].as_u64().unwrap() <= POINTS_MAX, "{week}");
    // At the end of a day a graph may have just forgotten, or be about to.
    let most = |days: &[u64]| days.iter().max().copied().unwrap_or_default();
    let growth = most(&heaps[heaps.len() - 2..]).saturating_sub(most(&heaps[..2]));
    assert!(growth <= GROWTH_MAX, "five days more of samples grow the heap: {heaps:?}");
}

/// Reads of many sizes, and writes that reach the disk, until it is over.
fn load(uri: &str, is_over: &AtomicBool) {
    let sizes = (0..BUCKETS).map(|n| (4 + n % 4) << (10 + n / 4)).filter(|size| size % 512 == 0);
    let three = |size| format!("read 0 {size}\nread 16M {size}\nwrite 32M {size}\n");
    let script = sizes.map(three).collect::<String>() + "flush\n";
    while !is_over.load(Ordering::Relaxed) {
        let output = feed(Command::new(find("qemu-io").unwrap()).args(["-f", "raw", uri]), &script);
        assert!(output.status.success(), "{}", said(&output));
    }
}
