//! What statistics say of a workload that is known: a program that knows what it asked for compares.
//!
//! ```text
//!   seed ─▶ reads and writes ─┬─▶ qemu-io over NBD, over iSCSI; direct I/O through a mount
//!                            └─▶ how many pass these filters, and their bytes
//!   datasets: whole, by each breakdown, random filters ─▶ their seconds added ─▶ the same; in each the parts = the value
//! ```
//!
//! The seed is printed; `SUMS_SEED=N` runs another.

use crate::api::{post_through_the_socket, through_the_socket};
use crate::clients::LOOP;
use crate::files::FUSE;
use crate::home::Home;
use crate::iscsi::QEMU;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, feed, find, run, said};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
/// Of a volume or file that is worked on.
const SIZE: u64 = 16 * M;
/// Requests to each of them.
const REQUESTS: usize = 120;
/// Random queries for each front.
const RANDOM: usize = 10;

pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "statistics_add_up_to_the_workload_by_each_breakdown_and_behind_random_filters",
            &[Need::Program("curl"), QEMU, FUSE, ROOT],
            fronts,
        ),
        trial(
            "bytes_of_disks_are_what_the_devices_counted",
            &[Need::Program("curl"), QEMU, LOOP, ROOT, Need::Program("losetup")],
            devices,
        ),
    ]
}

/// Numbers by seed.
struct Random(u64);

impl Random {
    fn by_seed(usual: u64) -> Random {
        let seed = std::env::var("SUMS_SEED").map_or(usual, |text| text.parse().unwrap());
        println!("SUMS_SEED={seed}");
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

#[derive(Clone, Debug)]
struct Request {
    dataset: &'static str,
    is_read: bool,
    offset: u64,
    size: u64,
}

fn workload(random: &mut Random, dataset: &'static str) -> Vec<Request> {
    let request = |random: &mut Random| {
        let size = *random.of(&[4 * K, 8 * K, 12 * K, 20 * K, 32 * K, 64 * K]);
        let offset = random.below((SIZE - size) / (4 * K)) * 4 * K;
        Request { dataset, is_read: random.below(3) > 0, offset, size }
    };
    (0..REQUESTS).map(|_| request(random)).collect()
}

/// By `qemu-io`, which sends one request for each command.
fn by_qemu(requests: &[Request], uri: &str) {
    let line = |r: &Request| match r.is_read {
        true => format!("read {} {}\n", r.offset, r.size),
        false => format!("write -P 7 {} {}\n", r.offset, r.size),
    };
    let script: String = requests.iter().map(line).collect();
    let mut qemu = Command::new(find("qemu-io").unwrap());
    let output = feed(qemu.args(["-f", "raw", uri]), &script);
    let text = said(&output);
    assert!(output.status.success() && !text.to_lowercase().contains("failed"), "{uri}: {text}");
}

/// Past the cache of the kernel: each call is one request.
fn by_mount(requests: &[Request], file: &File) {
    let mut buffer = vec![7; 64 << 10];
    for r in requests {
        let part = &mut buffer[..r.size as usize];
        let moved = match r.is_read {
            true => file.read_at(part, r.offset).unwrap(),
            false => file.write_at(part, r.offset).unwrap(),
        };
        assert_eq!(moved as u64, r.size);
    }
}

/// A statistic, with filters of which a workload says what they let through.
struct Query {
    text: String,
    is_bytes: bool,
    /// `None`: other requests count too, so that only the parts are added up.
    passing: Option<Box<dyn Fn(&Request) -> bool>>,
}

impl Query {
    fn expected(&self, requests: &[Request]) -> Option<u64> {
        let passing = self.passing.as_ref()?;
        let passed = requests.iter().filter(|r| passing(r));
        Some(passed.map(|r| if self.is_bytes { r.size } else { 1 }).sum())
    }
}

/// The first value of the bucket that holds a size: four for each power of two.
fn bucket(size: u64) -> u64 {
    let step = (1u64 << size.ilog2()) / 4;
    size / step * step
}

/// A filter, and what passes it.
fn filter(random: &mut Random, datasets: &[&'static str]) -> (String, Box<dyn Fn(&Request) -> bool>) {
    let size = *random.of(&[4 * K, 8 * K, 10 * K, 20 * K, 32 * K, 40 * K, 64 * K]);
    let offset = random.below(SIZE / M) * M + random.below(2) * 4 * K;
    let dataset = *random.of(datasets);
    match random.below(8) {
        0 => (format!("[size>={size}]"), Box::new(move |r| r.size >= size)),
        1 => (format!("[size<{size}]"), Box::new(move |r| r.size < size)),
        2 => (format!("[size={size}]"), Box::new(move |r| bucket(r.size) == bucket(size))),
        3 => (format!("[size!={size}]"), Box::new(move |r| bucket(r.size) != bucket(size))),
        4 => (format!("[offset>={offset}]"), Box::new(move |r| r.offset >= offset)),
        5 => (format!("[offset<{offset}]"), Box::new(move |r| r.offset < offset)),
        6 => (format!("[dataset={dataset}]"), Box::new(move |r| r.dataset == dataset)),
        _ => (format!("[dataset!={dataset}]"), Box::new(move |r| r.dataset != dataset)),
    }
}

/// Whole, by each breakdown, and behind random filters, of operations and of bytes.
fn queries(random: &mut Random, front: &str, breakdowns: &[String], datasets: &[&'static str]) -> Vec<Query> {
    let mut all = Vec::new();
    for (unit, is_bytes) in [("ops", false), ("bytes", true)] {
        let base = format!("{front}.{unit}");
        all.push(Query { text: base.clone(), is_bytes, passing: None });
        for (op, is_read) in [("read", true), ("write", false)] {
            let passing = move |r: &Request| r.is_read == is_read;
            all.push(Query { text: format!("{base}[op={op}]"), is_bytes, passing: Some(Box::new(passing)) });
        }
        for by in breakdowns {
            let text = format!("{base}[op=read][{by}]");
            all.push(Query { text, is_bytes, passing: Some(Box::new(|r| r.is_read)) });
            all.push(Query { text: format!("{base}[{by}]"), is_bytes, passing: None });
        }
        for _ in 0..RANDOM / 2 {
            let is_read = random.below(2) == 0;
            let mut text = format!("{base}[op={}]", if is_read { "read" } else { "write" });
            let mut passing: Vec<Box<dyn Fn(&Request) -> bool>> =
                vec![Box::new(move |r| r.is_read == is_read)];
            for _ in 0..1 + random.below(2) {
                let (more, passes) = filter(random, datasets);
                text += &more;
                passing.push(passes);
            }
            text += &format!("[{}]", random.of(breakdowns));
            all.push(Query {
                text,
                is_bytes,
                passing: Some(Box::new(move |r| passing.iter().all(|p| p(r)))),
            });
        }
    }
    all
}

/// What of a name may stand in a path.
pub fn encoded(name: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    name.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Opens it; answers with the name that it has from then on.
pub fn open(home: &Home, statistic: &str) -> String {
    let body = json!({ "statistic": statistic }).to_string();
    let answer = post_through_the_socket(home, "/api/analytics/v1/datasets", &body);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["dataset"]["name"].as_str().unwrap_or_else(|| panic!("{answer}")).to_string()
}

/// Its samples of these seconds; those that are still to come are waited for.
pub fn samples(home: &Home, name: &str, start: &str, seconds: u64) -> Vec<Value> {
    let path = format!("/api/analytics/v1/datasets/{}/data?start={start}&seconds={seconds}", encoded(name));
    let answer = through_the_socket(home, &path);
    answer["data"].as_array().unwrap_or_else(|| panic!("{path}: {answer}")).clone()
}

/// Once the sample that is next has been taken: its second.
pub fn next_second(home: &Home, name: &str) -> u64 {
    samples(home, name, "now", 1)[0]["sample"].as_u64().unwrap()
}

/// What all of these samples come to, whole and by the parts; in each of them the parts add up to the value.
fn added(name: &str, samples: &[Value]) -> (u64, BTreeMap<String, u64>) {
    let (mut whole, mut parts) = (0, BTreeMap::new());
    let is_broken_down = samples.iter().any(|sample| sample["data"]["data"].is_array());
    for sample in samples {
        let value = sample["data"]["value"].as_u64().unwrap();
        let told = sample["data"]["data"].as_array().cloned().unwrap_or_default();
        let mut sum = 0;
        for part in &told {
            let own = part["value"].as_u64().unwrap();
            *parts.entry(part["key"].as_str().unwrap().to_string()).or_insert(0) += own;
            sum += own;
        }
        assert!(
            !is_broken_down || sum == value,
            "{name}: parts of {sum} where the value is {value}: {sample}"
        );
        whole += value;
    }
    (whole, parts)
}

fn breakdowns(home: &Home, statistic: &str) -> Vec<String> {
    let all = through_the_socket(home, "/api/analytics/v1/statistics");
    let found = all["statistics"].as_array().unwrap().iter().find(|s| s["name"] == statistic).unwrap();
    let names = found["breakdowns"].as_array().unwrap().iter();
    names.map(|b| b["name"].as_str().or(b.as_str()).unwrap().to_string()).collect()
}

fn fronts() {
    let mut random = Random::by_seed(16);
    let home = Home::with_pool();
    let mount = home.scratch.join("mnt");
    home.run(&format!("zfs set mountpoint={} tank", mount.display()));
    let (daemon, text) =
        home.start("serve --listen 127.0.0.1:0 --iscsi 127.0.0.1:0 --no-https --arc-max 64M");
    for volume in ["tank/a", "tank/b", "tank/c"] {
        home.run(&format!("zfs create -s -V {SIZE} {volume}"));
    }
    home.run("zfs create tank/files");
    home.run("zfs mount tank/files");
    let script = "configuration san targets iscsi create\nset iqn=iqn.2001-04.com.example:sums\ncommit\n\
         configuration san targets iscsi groups create\nset name=sums targets=iqn.2001-04.com.example:sums\ncommit\n\
         shares project sums\ncommit\nshares select sums lun d\n\
         set volsize=16M volblocksize=16K targetgroup=sums\ncommit\n";
    let output = feed(&mut home.cenote(&["shell"]), script);
    assert!(output.status.success(), "{}", said(&output));
    let at = |front: &str| {
        let words: Vec<&str> = text.split([' ', ',']).collect();
        words[words.iter().position(|w| *w == front).expect(&text) + 2].to_string()
    };
    let (nbd, iscsi) = (at("NBD"), at("iSCSI"));
    // The client does not ask for what it knows to be unallocated.
    let lun = format!("iscsi://{iscsi}/iqn.2001-04.com.example:sums/0");
    let whole: Vec<Request> = (0..SIZE / M)
        .map(|n| Request { dataset: "tank/sums/d", is_read: false, offset: n * M, size: M })
        .collect();
    by_qemu(&whole, &lun);
    let path = mount.join("files/f");
    File::create(&path).unwrap().write_all(&vec![1; SIZE as usize]).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap());

    let fronts: [(&str, &[&'static str]); 3] =
        [("nbd", &["tank/a", "tank/b", "tank/c"]), ("iscsi", &["tank/sums/d"]), ("fs", &["tank/files"])];
    let mut opened = Vec::new();
    for (front, datasets) in fronts {
        let by = breakdowns(&home, &format!("{front}.ops"));
        for mut query in queries(&mut random, front, &by, datasets) {
            query.text = open(&home, &query.text);
            opened.push((front, query));
        }
    }
    let (_, last) = opened.last().unwrap();
    let begin = next_second(&home, &last.text);

    let mut done: BTreeMap<&str, Vec<Request>> = BTreeMap::new();
    for (front, datasets) in fronts {
        for dataset in datasets {
            let requests = workload(&mut random, dataset);
            match front {
                "nbd" => by_qemu(&requests, &format!("nbd://{nbd}/{dataset}")),
                "iscsi" => by_qemu(&requests, &lun),
                _ => by_mount(&requests, &file),
            }
            done.entry(front).or_default().extend(requests);
        }
    }
    let end = next_second(&home, &last.text) + 1;

    let (mut known, mut filled) = (0, 0);
    let mut wholes = BTreeMap::new();
    for (front, query) in &opened {
        let all = samples(&home, &query.text, &begin.to_string(), end - begin + 1);
        assert_eq!(all.len() as u64, end - begin + 1, "{}: a second is missing", query.text);
        let (whole, parts) = added(&query.text, &all);
        if let Some(expected) = query.expected(&done[front]) {
            assert_eq!(whole, expected, "{}: {parts:?}", query.text);
            known += 1;
            filled += usize::from(expected > 0);
        } else {
            // The same requests, however they are broken down.
            let base = query.text.split('[').next().unwrap();
            assert_eq!(*wholes.entry(base.to_string()).or_insert(whole), whole, "{}", query.text);
            assert!(whole > 0, "{}", query.text);
        }
    }
    println!("{} queries, {known} of known sums, {filled} of them not empty", opened.len());
    assert!(filled * 2 > known, "most random filters let something through");
    drop(file);
    home.run("zfs unmount -a");
    daemon.end();
}

/// Bytes read and written that the kernel has counted at a device, as long as nothing goes on there.
fn counted(device: &str) -> (u64, u64) {
    let name = Path::new(device).file_name().unwrap().to_str().unwrap();
    let look = || {
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let fields: Vec<u64> = text.split_whitespace().map(|f| f.parse().unwrap()).collect();
        (fields[2] * 512, fields[6] * 512, fields[8])
    };
    let until = Instant::now() + Duration::from_secs(120);
    let mut last = (look(), Instant::now());
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = look();
        if now != last.0 || now.2 > 0 {
            last = (now, Instant::now());
        }
        if last.1.elapsed() > Duration::from_secs(2) {
            return (now.0, now.1);
        }
        assert!(Instant::now() < until, "{device} does not come to rest");
    }
}

/// A loop device that is given back.
struct Loop(String);

impl Loop {
    fn of(image: &str) -> Loop {
        Loop(run(command("losetup").args(["--find", "--show", image])).trim().to_string())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = command("losetup").args(["--detach", &self.0]).stdout(Stdio::null()).status();
    }
}

fn devices() {
    let mut random = Random::by_seed(23);
    let home = Home::new();
    let disks = ["a.img", "b.img", "c.img"].map(|name| Loop::of(&home.disk(name)));
    let [a, b, c] = &disks;
    home.run(&format!("zpool create tank raidz {} {} {}", a.0, b.0, c.0));
    let (daemon, text) = home.start("serve --listen 127.0.0.1:0 --no-https --arc-max 64M");
    home.run(&format!("zfs create -s -V {SIZE} tank/a"));
    home.run("zpool sync");
    let words: Vec<&str> = text.split([' ', ',']).collect();
    let nbd = words[words.iter().position(|w| *w == "NBD").expect(&text) + 2];
    let before = [a, b, c].map(|disk| counted(&disk.0));
    let names = ["io.bytes[op=read][disk]", "io.bytes[op=write][disk]", "io.bytes[op]"];
    names.iter().for_each(|name| assert_eq!(open(&home, name), *name));
    let begin = next_second(&home, names[2]);
    by_qemu(&workload(&mut random, "tank/a"), &format!("nbd://{nbd}/tank/a"));
    home.run("zpool sync");
    let after = [a, b, c].map(|disk| counted(&disk.0));
    let end = next_second(&home, names[2]);
    let of = |name| added(name, &samples(&home, name, &begin.to_string(), end - begin + 1));
    let ((read, reads), (written, writes), (_, by_op)) = (of(names[0]), of(names[1]), of(names[2]));
    for ((disk, before), after) in disks.iter().zip(before).zip(after) {
        // Statistics name a disk as the pool does.
        let own = |parts: &BTreeMap<String, u64>| {
            let found = parts
                .iter()
                .find(|(key, _)| key.ends_with(Path::new(&disk.0).file_name().unwrap().to_str().unwrap()));
            found.map_or(0, |(_, bytes)| *bytes)
        };
        assert_eq!(
            (own(&reads), own(&writes)),
            (after.0 - before.0, after.1 - before.1),
            "{reads:?} {writes:?}"
        );
    }
    assert!(written > 0, "something was written");
    assert_eq!(by_op.get("write"), Some(&written), "{by_op:?}");
    assert_eq!(by_op.get("read").copied().unwrap_or(0), read, "{by_op:?}");
    daemon.end();
    home.run("zpool export tank");
}
