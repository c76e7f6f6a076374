//! A cache device under a daemon whose memory is small: what leaves memory comes from it, and `cenote arc` tells so.

use crate::api::through_the_socket;
use crate::files::FUSE;
use crate::home::Home;
use interop::golden;
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const VOLUME: u64 = 160 << 20;

pub fn trials() -> Vec<Trial> {
    let needs = [Need::Program("nbdcopy")];
    let with_rest = [Need::Program("nbdcopy"), Need::Program("curl")];
    vec![
        trial("what_left_memory_comes_from_a_cache_device_and_is_explained", &needs, explained),
        trial("what_cache_and_log_devices_were_given_to_write_is_told_alike", &with_rest, worn),
        trial(
            "blocks_that_openzfs_compressed_come_from_a_cache_device",
            &[Need::Golden("matrix"), FUSE, ROOT],
            foreign,
        ),
        trial("a_cache_device_that_moved_is_found_by_its_label_with_what_it_holds", &needs, moved),
    ]
}

fn document(home: &Home, line: &str) -> Value {
    serde_json::from_str(&home.run(line)).unwrap()
}

/// Copies `source` to a volume of the pool, and waits until most of it is on the cache device.
fn feed(home: &Home, source: &Path) {
    let uri = format!("nbd+unix:///tank/v?socket={}", home.dir().join("nbd.sock").display());
    run(command("nbdcopy").arg("--flush").arg(source).arg(&uri));
    let begun = Instant::now();
    loop {
        let copy = home.scratch.join("copy");
        run(command("nbdcopy").arg(&uri).arg(&copy));
        assert!(std::fs::read(&copy).unwrap() == std::fs::read(source).unwrap(), "what was written is read");
        let devices = document(home, "arc -j")["arc"]["cache"]["devices"][0].clone();
        if devices["written_bytes"].as_u64() > Some(VOLUME / 4) && devices["hits"].as_u64() > Some(100) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{devices}");
    }
}

fn noise(home: &Home) -> PathBuf {
    let source = home.scratch.join("source");
    let mut noise = sim::Rng::new(3);
    let bytes: Vec<u8> = (0..VOLUME / 8).flat_map(|_| noise.next_u64().to_le_bytes()).collect();
    std::fs::write(&source, &bytes).unwrap();
    source
}

fn worn() {
    let home = Home::new();
    let [disk, cache, log] = ["a.img", "cache.img", "log.img"].map(|name| home.disk(name));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    home.run(&format!("zpool create tank {disk} cache {cache} log {log}"));
    home.run("tunable set l2arc_write_max=256M");
    home.run(&format!("zfs create -s -V {VOLUME} -b 64K -o sync=always tank/v"));
    feed(&home, &noise(&home));

    let told = document(&home, "arc -j --dwpd 10");
    let of = |list: &Value, device: &str| {
        let found = list.as_array().unwrap().iter().find(|entry| entry["device"] == device);
        found.unwrap_or_else(|| panic!("{device}: {list}")).clone()
    };
    let (wear, endurance) = (&told["arc"]["cache"]["wear"], &told["arc"]["endurance"]);
    let status = document(&home, "zpool status -j --json-int tank");
    let rest = through_the_socket(&home, "/api/storage/v1/pools/tank/devices");
    for (device, class, is_log) in [(&cache, "l2cache", false), (&log, "logs", true)] {
        let (wear, endurance) = (of(wear, device), of(endurance, device));
        let written = wear["written_bytes"].as_u64().unwrap();
        assert!(written > VOLUME / 4, "{wear}");
        assert_eq!((&wear["is_log"], endurance["dwpd"].as_f64()), (&json!(is_log), Some(10.0)), "{wear}");
        let (size, per_day) = (wear["size"].as_u64().unwrap(), endurance["bytes_per_day"].as_u64().unwrap());
        let used = per_day as f64 * 100.0 / (size as f64 * 10.0);
        assert!((endurance["used_percent"].as_f64().unwrap() - used).abs() < 0.01 * used, "{endurance}");
        assert_eq!(wear["again_bytes"].is_null(), is_log, "{wear}");

        // More may have been written since, never less.
        let group = status["pools"]["tank"][class].as_object().unwrap();
        let shown = group.values().find(|vdev| vdev["path"] == device.as_str()).unwrap();
        assert!(shown["wear_written"].as_u64().unwrap() >= written, "{shown}");
        assert!(shown["wear_per_day"].as_u64().unwrap() > 0 && shown["wear_seconds"].is_u64(), "{shown}");
        assert_eq!(shown.get("wear_read_again").is_none(), is_log, "{shown}");
        let listed =
            rest["devices"].as_array().unwrap().iter().find(|d| d["name"] == device.as_str()).unwrap();
        assert!(listed["wear"]["written_bytes"].as_u64().unwrap() >= written, "{listed}");
        assert_eq!(listed["wear"].get("again_bytes").is_none(), is_log, "{listed}");
    }
    let plain = rest["devices"].as_array().unwrap().iter().find(|d| d["name"] == disk.as_str()).unwrap();
    assert!(plain.get("wear").is_none(), "{plain}");
    let said = home.run("arc --dwpd 10");
    assert!(said.contains("\nWritten to cache and log devices, of 10 drive writes per day\n"), "{said}");
    for (device, word) in [(&cache, "cache"), (&log, "log")] {
        let line = said.lines().find(|line| line.contains(device.as_str())).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words[..3] == ["tank", device, word] && line.contains('%'), "{line}");
    }
    println!("{said}");
    daemon.end();
}

/// Blocks of a pool of OpenZFS cannot be made again from what is in memory: its gzip and zstd find other bytes for the same.
/// A feeding that has met one asks for what was read from the pool.
fn foreign() {
    let home = Home::new();
    let disk = home.scratch.join("matrix.img");
    std::fs::copy(&golden::pool("matrix").images[0], &disk).unwrap();
    let (cache, at) = (home.disk("cache.img"), home.scratch.join("mnt"));
    std::fs::create_dir(&at).unwrap();
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 256M");
    let import = format!("zpool import -d {} -R {} matrix", disk.display(), at.display());
    for setting in ["l2arc_write_max=256M", "l2arc_noprefetch=0", "l2arc_rebuild_blocks_min_l2size=0"] {
        home.run(&format!("tunable set {setting}"));
    }
    home.run(&import);
    home.run(&format!("zpool add matrix cache {cache}"));
    let names = home.run("zfs list -rHo name -t filesystem matrix");
    let sets: Vec<&str> = names
        .lines()
        .filter(|name| ["/gzip-6-", "/zstd-"].iter().any(|kind| name.contains(kind)))
        .filter(|name| name.starts_with("matrix/r128K/") || name.starts_with("matrix/r16K/"))
        .collect();
    assert_eq!(sets.len(), 6, "{names}");
    let read = |sets: &[&str]| -> Vec<Vec<u8>> {
        let files = sets.iter().flat_map(|set| {
            home.output(&format!("zfs mount {set}"));
            ["multi", "one", "mixed"].map(|name| at.join("g").join(set).join(name))
        });
        files.map(|file| std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))).collect()
    };
    let device = || document(&home, "arc -j")["arc"]["cache"]["devices"][0].clone();
    let figure = |name: &str| device()[name].as_u64().unwrap_or(0);
    let (met_first, rest) = sets.split_at(1);
    let first = read(rest);
    let blocks = first.iter().map(|file| file.len().div_ceil(128 << 10)).sum::<usize>() as u64;
    let begun = Instant::now();
    loop {
        // Memory is cold after this, and nothing is known of how the pool was compressed.
        home.run("zpool export matrix");
        home.run(&import);
        let hits = figure("hits");
        drop(read(met_first));
        // A feeding meets these.
        std::thread::sleep(Duration::from_secs(2));
        assert!(read(rest) == first, "the bytes are the same wherever they come from");
        let came = figure("hits") - hits;
        // Of metadata, which any implementation compresses alike, there is some from the first feeding on.
        if came >= blocks && figure("data") >= blocks * 512 {
            println!("{came} blocks came from the device: {}", device());
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{came} of some {blocks}: {}", device());
        // Another feeding takes what was read since.
        std::thread::sleep(Duration::from_secs(2));
    }
    home.run("zpool export matrix");
    daemon.end();
}

fn moved() {
    let home = Home::new();
    let [disk, cache] = ["a.img", "cache.img"].map(|name| home.disk(name));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    home.run(&format!("zpool create tank {disk} cache {cache}"));
    home.run("tunable set l2arc_write_max=256M");
    // The device is in use already.
    home.run("tunable set l2arc_rebuild_blocks_min_l2size=0");
    home.run(&format!("zfs create -s -V {VOLUME} -b 64K tank/v"));
    let source = noise(&home);
    feed(&home, &source);
    home.run("zpool export tank");
    let elsewhere = home.scratch.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let (disk_now, cache_now) = (elsewhere.join("a.img"), elsewhere.join("other.img"));
    std::fs::rename(&disk, &disk_now).unwrap();
    std::fs::rename(&cache, &cache_now).unwrap();
    home.run(&format!("zpool import -d {} tank", elsewhere.display()));

    let status = document(&home, "zpool status -j tank");
    let group = status["pools"]["tank"]["l2cache"].as_object().unwrap();
    let shown: Vec<&Value> = group.values().collect();
    assert_eq!(shown.len(), 1, "{status}");
    assert_eq!((&shown[0]["state"], &shown[0]["path"]), (&"ONLINE".into(), &json!(cache_now)), "{status}");
    let begun = Instant::now();
    let found = loop {
        let found = document(&home, "arc -j")["arc"]["cache"]["devices"][0]["rebuilt"].as_u64();
        if let Some(found) = found.filter(|found| *found > 100) {
            break found;
        }
        assert!(begun.elapsed() < PATIENCE, "{found:?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    feed(&home, &source);
    println!("{found} blocks were found on the device under its new path");
    home.run(&format!("zpool remove tank {}", cache_now.display()));
    daemon.end();
}

fn explained() {
    let home = Home::new();
    let (disk, cache) = (home.disk("a.img"), home.disk("cache.img"));
    let (daemon, _) = home.start("serve --listen 127.0.0.1:0 --arc-max 64M");
    let said = home.run("arc");
    assert!(said.contains("of at most 64M (zfs_arc_max)") && !said.contains("Cache devices"), "{said}");
    home.run(&format!("zpool create tank {disk} cache {cache}"));
    home.run("tunable set l2arc_write_max=256M");
    home.run(&format!("zfs create -s -V {VOLUME} -b 64K tank/v"));
    let uri = format!("nbd+unix:///tank/v?socket={}", home.dir().join("nbd.sock").display());
    let source = noise(&home);
    let bytes = std::fs::read(&source).unwrap();
    run(command("nbdcopy").arg(&source).arg(&uri));

    let begun = Instant::now();
    let hits = loop {
        let copy = home.scratch.join("copy");
        run(command("nbdcopy").arg(&uri).arg(&copy));
        assert!(std::fs::read(&copy).unwrap() == bytes, "what was written is read");
        let document: serde_json::Value = serde_json::from_str(&home.run("arc -j")).unwrap();
        let devices = &document["arc"]["cache"]["devices"][0];
        assert_eq!((&devices["pool"], &devices["bad_checksums"]), (&"tank".into(), &0.into()), "{devices}");
        if let Some(hits) = devices["hits"].as_u64().filter(|hits| *hits > 100) {
            break hits;
        }
        assert!(begun.elapsed() < PATIENCE, "{document}");
    };
    let said = home.run("arc");
    for part in ["\nCache devices of tank, since it was opened\n", "  headers", "of what was not in memory\n"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("too large"), "a small cache takes in all blocks: {said}");
    println!("{hits} reads came from the cache device\n{said}");
    let lines = home.run("arc 0.1 3");
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(
        lines.lines().next().is_some_and(|line| line.ends_with("DEVICES      SIZE     LIMIT")),
        "{lines}"
    );
    assert!(home.fails("arc tank", 2).contains("'tank' is not a number"));
    daemon.end();
    home.fails("arc", 1);
}
