//! What the daemon takes of memory, as the kernel says, beside what it was told to take.
//!
//! Two dozen volumes are written and read by as many clients at once, then most are destroyed. Meanwhile the daemon's
//! resident memory is looked at, and what `status` says of it is held against that.

use crate::home::{Daemon, Home};
use interop::harness::{Need, Trial, trial};
use interop::programs::{command, run};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const CACHE: u64 = 128 * MIB;
const DIRTY: u64 = 64 * MIB;
/// What requests may hold: the base of each of the four connections of each client, and what they share.
const REQUESTS: u64 = (VOLUMES * 4 + 33) * MIB;
/// The program, its small things, and buffers that are kept for those to come.
const REST: u64 = 64 * MIB;
const VOLUMES: u64 = 24;
const SIZE: u64 = 32 * MIB;
/// Unused memory goes after some seconds; a busy machine may need more.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "memory_stays_within_its_bound_and_status_says_where_it_is",
            &[Need::Program("nbdcopy")],
            bounded,
        ),
        trial("small_writes_into_large_blocks_stay_within_the_bound_too", &[Need::Program("fio")], pieces),
    ]
}

fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    text.split_whitespace().nth(1).map_or(0, |pages| pages.parse::<u64>().unwrap() * 4096)
}

/// The largest since it was asked last.
pub struct Peak {
    largest: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Peak {
    pub fn watch(pid: u32) -> Peak {
        let peak = Peak { largest: Arc::default(), is_over: Arc::default() };
        let (largest, is_over) = (peak.largest.clone(), peak.is_over.clone());
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                largest.fetch_max(resident(pid), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        peak
    }

    pub fn take(&self) -> u64 {
        self.largest.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A part of the account, in bytes.
fn part(status: &str, name: &str) -> u64 {
    let memory = status.split("\"memory\":{").nth(1).unwrap().split('}').next().unwrap();
    let value = memory.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("{name}: {memory}"));
    value.split(',').next().unwrap().parse().unwrap()
}

/// Tells how it stands, and that the account is true. Answers what is resident, and the cache.
fn tell(home: &Home, daemon: &Daemon, peak: &Peak, when: &str) -> (u64, u64) {
    let status = home.run("status -j");
    let (resident, largest) = (resident(daemon.pid()), peak.take());
    let parts = ["cache", "dirty", "requests", "kept", "heap", "freed", "program"]
        .map(|name| (name, part(&status, name)));
    let sum: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let shown = parts.map(|(name, bytes)| format!("{name} {}", bytes / MIB)).join(", ");
    println!("{when}: {} MiB resident, at most {}: {shown}", resident / MIB, largest / MIB);
    // Under load the two are not of the same moment.
    let said = part(&status, "resident");
    assert!(
        sum.abs_diff(said) <= said / 10,
        "{when}: the parts are {sum} bytes, and {said} are resident: {shown}"
    );
    let bound = (CACHE + DIRTY) / 10 * 12 + REQUESTS + REST;
    assert!(largest <= bound, "{when}: {largest} bytes were resident, of {bound}: {shown}");
    (resident, part(&status, "cache"))
}

/// Until a daemon without work has given back what it does not need.
fn rest(home: &Home, daemon: &Daemon, peak: &Peak) {
    let begun = Instant::now();
    loop {
        let (resident, cache) = tell(home, daemon, peak, "idle");
        let bound = cache / 2 * 3 + REST;
        if resident <= bound {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{resident} bytes for a cache of {cache}, with nothing to do");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn bounded() {
    let home = Home::new();
    let disk = home.scratch.join("disk");
    std::fs::File::create(&disk).unwrap().set_len(6 << 30).unwrap();
    let (daemon, _) = home.start(&format!("serve --listen 127.0.0.1:0 --arc-max {CACHE}"));
    home.run(&format!("tunable set zfs_dirty_data_max={DIRTY}"));
    home.run(&format!("zpool create tank {}", disk.display()));
    for n in 0..VOLUMES {
        home.run(&format!("zfs create -s -V {SIZE} -b 16K tank/v{n}"));
    }
    let uri = |n: u64| format!("nbd+unix:///tank/v{n}?socket={}", home.dir().join("nbd.sock").display());
    let source = home.scratch.join("source");
    let mut noise = sim::Rng::new(1);
    std::fs::write(&source, (0..SIZE / 8).flat_map(|_| noise.next_u64().to_le_bytes()).collect::<Vec<u8>>())
        .unwrap();
    let peak = Peak::watch(daemon.pid());
    for round in 0..2 {
        let writers = (0..VOLUMES).map(|n| command("nbdcopy").arg(&source).arg(uri(n)).spawn().unwrap());
        let mut writers: Vec<_> = writers.collect();
        std::thread::sleep(Duration::from_millis(500));
        tell(&home, &daemon, &peak, "while it is written to");
        writers.iter_mut().for_each(|writer| assert!(writer.wait().unwrap().success(), "round {round}"));
        tell(&home, &daemon, &peak, "written");
    }
    let readers = (0..VOLUMES)
        .map(|n| command("nbdcopy").arg(uri(n)).arg("null:").stdout(Stdio::null()).spawn().unwrap());
    readers.collect::<Vec<_>>().iter_mut().for_each(|reader| assert!(reader.wait().unwrap().success()));
    tell(&home, &daemon, &peak, "read");
    rest(&home, &daemon, &peak);
    for n in 4..VOLUMES {
        home.run(&format!("zfs destroy tank/v{n}"));
    }
    tell(&home, &daemon, &peak, "destroyed");
    rest(&home, &daemon, &peak);
    run(command("nbdcopy").arg(uri(3)).arg("null:"));
    daemon.end();
}

/// 64 MiB in pieces of 64 KiB into blocks of a mebibyte were a gibibyte in memory, of which nothing was counted: the log
/// kept the block as it was at each write.
fn pieces() {
    let home = Home::new();
    let disk = home.scratch.join("disk");
    std::fs::File::create(&disk).unwrap().set_len(6 << 30).unwrap();
    let (daemon, _) = home.start(&format!("serve --arc-max {CACHE}"));
    home.run(&format!("tunable set zfs_dirty_data_max={DIRTY}"));
    home.run(&format!("zpool create tank {}", disk.display()));
    for (name, options, piece) in [
        ("large", "-b 1M", "64k"),
        ("largest", "-b 16M", "1m"),
        ("pointed", "-b 128K -o logbias=throughput", "4k"),
    ] {
        home.run(&format!("zfs create -s -V 256M {options} tank/{name}"));
        let uri = format!("nbd+unix:///tank/{name}?socket={}", home.dir().join("nbd.sock").display());
        let peak = Peak::watch(daemon.pid());
        let job = [
            "--name=pieces",
            "--ioengine=nbd",
            "--rw=randwrite",
            "--iodepth=8",
            "--io_size=128m",
            "--size=256m",
        ];
        let job = job.map(String::from).into_iter().chain([format!("--uri={uri}"), format!("--bs={piece}")]);
        run(command("fio").args(job));
        let largest = peak.take();
        let bound = (CACHE + DIRTY) / 10 * 12 + REQUESTS + REST;
        println!("{name}: {} MiB resident at most, of {}", largest / MIB, bound / MIB);
        assert!(largest <= bound, "{name}: {largest} bytes were resident, of {bound}");
    }
    daemon.end();
}
