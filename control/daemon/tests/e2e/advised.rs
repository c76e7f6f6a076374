//! Pools and LUNs that are set wrong under a real load: the adviser finds each, the command that it prints is carried out as
//! it is printed, and the same load is measured again.
//!
//! ```text
//!   wrong ─▶ measure ─▶ cenote doctor -j ─▶ its command, devices for the words in capitals ─▶ measure ─▶ nothing is said
//! ```
//!
//! Figures are counts of bytes, blocks and errors, not times: they hold however busy the machine is.

mod pools;
mod spent;

use crate::files::FUSE;
use crate::home::{Daemon, Home};
use interop::harness::{Need, ROOT, Trial, trial};
use interop::programs::{command, run, said};
use serde_json::Value;
use std::cell::Cell;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let all = vec![
        trial("writes_that_stop_at_half_a_block_are_whole_when_the_advice_is_followed", &[], cut),
        trial("writes_of_parts_of_blocks_cost_their_own_bytes_when_the_advice_is_followed", &[], parts),
        trial("small_reads_fetch_what_was_asked_for_when_the_advice_is_followed", &[], reads),
        trial("writes_astray_of_blocks_fit_them_when_the_advice_is_followed", &[], astray),
        trial("synchronous_writes_go_to_the_log_devices_that_are_advised", &[], no_log),
        trial("a_log_device_that_is_passed_by_is_used_when_the_advice_is_followed", &[], passed_by),
        trial("writes_are_durable_again_when_the_advice_is_followed", &[], sync_disabled),
        trial("text_takes_less_when_the_advice_is_followed", &[Need::Program("nbdcopy")], compression),
        trial("blocks_on_raidz_take_no_padding_when_the_advice_is_followed", &[], padding),
        trial("damage_is_repaired_when_the_advice_is_followed", &[], redundancy),
        trial(
            "a_cache_device_that_never_hits_takes_no_memory_when_the_advice_is_followed",
            &[],
            unused_cache,
        ),
        trial("a_cache_device_is_filled_faster_when_the_advice_is_followed", &[], slow_fill),
        trial("reads_write_no_access_times_when_the_advice_is_followed", &[FUSE, ROOT], access_times),
        trial(
            "pages_of_files_cost_their_own_bytes_when_the_advice_is_followed",
            &[FUSE, ROOT],
            pages_written,
        ),
        trial(
            "small_reads_of_files_fetch_what_was_asked_for_when_the_advice_is_followed",
            &[FUSE, ROOT],
            pages_read,
        ),
    ];
    all.into_iter().chain(pools::trials()).chain(spent::trials()).collect()
}

/// The volume, or file system, of all that is made here.
const SHARE: &str = "tank/v";

struct Place {
    home: Home,
    daemon: Option<Daemon>,
    /// Of the next load: no two go to the same places.
    seed: Cell<u64>,
    size: Size,
}

#[derive(Clone, Copy)]
struct Size {
    /// Of each device, in bytes.
    device: u64,
    /// What the cache may take.
    memory: &'static str,
}

impl Place {
    /// A pool of these words, where capitals are files, and what is made of it and in it.
    fn new(pool: &str, commands: &[&str]) -> Place {
        Place::sized(Size { device: 1 << 30, memory: "64M" }, pool, commands)
    }

    fn sized(size: Size, pool: &str, commands: &[&str]) -> Place {
        let place = Place { home: Home::new(), daemon: None, seed: Cell::new(1), size };
        place.home.run(&place.with_devices(&format!("zpool create tank {pool}")));
        commands.iter().for_each(|line| drop(place.home.run(&place.with_devices(line))));
        let mut place = place;
        place.start();
        place
    }

    /// Words in capitals are devices: each is a new file.
    fn with_devices(&self, line: &str) -> String {
        let is_device =
            |word: &str| word.starts_with(|c: char| c.is_ascii_uppercase()) && !word.contains('=');
        let path = |word: &str| {
            let count =
                (0..).find(|count| !self.home.scratch.join(format!("{word}{count}")).exists()).unwrap_or(0);
            let path = self.home.disk(&format!("{word}{count}"));
            // A volume is copied when its blocks become others.
            std::fs::File::options().write(true).open(&path).unwrap().set_len(self.size.device).unwrap();
            path
        };
        let word = |word: &str| if is_device(word) { path(word) } else { word.to_string() };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// The daemon, with an empty cache.
    fn start(&mut self) {
        self.daemon.take().into_iter().for_each(Daemon::end);
        self.daemon = Some(self.home.start(&format!("serve --no-https --arc-max {}", self.size.memory)).0);
    }

    fn uri(&self, volume: &str) -> String {
        format!("nbd+unix:///{volume}?socket={}", self.home.dir().join("nbd.sock").display())
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.home.run(line)).unwrap()
    }

    /// A job of fio's words on the volume: how many bytes clients moved.
    fn load(&self, words: &str) -> f64 {
        self.load_on(SHARE, words)
    }

    fn load_on(&self, volume: &str, words: &str) -> f64 {
        let job = self.home.scratch.join("load.fio");
        let keys = words.replace(' ', "\n");
        let depth = if words.contains("iodepth=") { "" } else { "iodepth=8\n" };
        std::fs::write(&job, format!("[load]\nioengine=nbd\nuri={}\n{depth}{keys}\n", self.uri(volume)))
            .unwrap();
        let seed = self.seed.replace(self.seed.get() + 1).to_string();
        let output = self.home.cenote(&["work", "load.fio", "--seed", &seed, "-j"]).output().unwrap();
        assert!(output.status.success(), "{words}: {}", said(&output));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        told["runs"][0]["total"]["bytes"].as_f64().unwrap()
    }

    /// Bytes read from and written to devices of the vdev, what is in memory included.
    fn moved(&self, vdev: &str) -> [f64; 2] {
        self.counted(vdev, "bytes")
    }

    /// Such a count of reads and of writes.
    fn counted(&self, vdev: &str, what: &str) -> [f64; 2] {
        self.home.run("zpool sync tank");
        let told = self.json("zpool iostat -v -j tank");
        let stats = found(&told, vdev).unwrap_or_else(|| panic!("no {vdev} in {told:#}"));
        ["read", "write"].map(|way| stats["stats"][way][what].as_f64().unwrap())
    }

    /// What the load moves at the pool's devices, for each byte that it asks for: reads and writes.
    fn amplified(&self, words: &str) -> [f64; 2] {
        let before = self.moved("tank");
        let bytes = self.load(words);
        let after = self.moved("tank");
        [0, 1].map(|way| (after[way] - before[way]) / bytes)
    }

    /// What the load writes to log devices.
    fn logged(&self, words: &str) -> f64 {
        let written = || -> u64 {
            let told = self.cache();
            let logs =
                told["wear"].as_array().into_iter().flatten().filter(|device| device["is_log"] == true);
            logs.map(|device| device["written_bytes"].as_u64().unwrap()).sum()
        };
        let before = written();
        self.load(words);
        (written() - before) as f64
    }

    fn cache(&self) -> Value {
        self.json("arc -j")["arc"]["cache"].take()
    }

    /// Bytes on the only cache device, and the passes that brought them.
    fn fed(&self) -> [f64; 2] {
        let told = self.cache();
        ["written_bytes", "passes"].map(|key| told["devices"][0][key].as_f64().unwrap())
    }

    fn number(&self, line: &str) -> f64 {
        let text = self.home.run(line);
        text.trim().parse().unwrap_or_else(|_| panic!("{line}: {text}"))
    }

    fn advice(&self) -> Vec<doctor::Advice> {
        serde_json::from_str(&self.home.run("doctor -j")).unwrap()
    }

    fn told(&self, rule: &str) -> Option<doctor::Advice> {
        self.advice().into_iter().find(|advice| advice.rule == rule)
    }

    /// Carries out the first command of ours in the advice, and waits for what it has begun.
    fn follow(&self, advice: &doctor::Advice) {
        let ours = advice.fixes.iter().filter(|fix| fix.system == doctor::System::Cenote);
        let line = ours.flat_map(|fix| doctor::commands(&fix.text)).next();
        let line = self.with_devices(line.unwrap_or_else(|| panic!("no command of ours: {advice:#?}")));
        self.home.run(&line);
        if let Some(size) = line.split("volblocksize=").nth(1).and_then(|rest| rest.split(' ').next()) {
            while self.home.run(&format!("zfs get -H -o value volblocksize {SHARE}")).trim() != size {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Measured, told, mended, and measured again; then nothing more is said of it.
    fn mended<T>(&mut self, rule: &str, mut measure: impl FnMut(&mut Place) -> T) -> (T, T) {
        let before = measure(self);
        let advice = self.told(rule).unwrap_or_else(|| panic!("no {rule}: {:#?}", self.advice()));
        self.follow(&advice);
        let after = measure(self);
        assert_eq!(self.told(rule), None, "{rule} is mended");
        (before, after)
    }

    fn end(self) {
        self.daemon.into_iter().for_each(Daemon::end);
    }
}

/// The object of that name, however deep.
fn found<'a>(told: &'a Value, name: &str) -> Option<&'a Value> {
    let own = told.get(name).filter(|found| found.get("stats").is_some());
    own.or_else(|| told.as_object()?.values().find_map(|below| found(below, name)))
}

fn volume(block: &str, size: &str) -> String {
    format!("zfs create -s -V {size} -b {block} -o compression=off {SHARE}")
}

fn cut() {
    let mut place = Place::new("mirror A B", &[&volume("256K", "1G")]);
    // Halves here and there, of blocks that are mostly not written twice in a txg.
    let (before, after) =
        place.mended("requests-cut", |place| place.amplified("rw=randwrite bs=128k size=1g io_size=140m")[1]);
    // Both sides of the mirror take each block.
    assert!(before > 3.2 && after < 2.6, "{before} and {after} bytes written for each");
    place.end();
}

fn parts() {
    let mut place = Place::new("mirror A B", &[&volume("128K", "1G")]);
    let (before, after) =
        place.mended("partial-writes", |place| place.amplified("rw=randwrite bs=8k size=1g io_size=12m")[1]);
    assert!(before > 8.0 && after < before / 3.0, "{before} and {after} bytes written for each");
    place.end();
}

fn reads() {
    let mut place = Place::new("mirror A B", &[&volume("128K", "160M")]);
    place.load("rw=write bs=1m size=160m");
    let (before, after) = place.mended("whole-record-reads", |place| {
        place.start();
        place.amplified("rw=randread bs=16k size=160m io_size=48m")[0]
    });
    assert!(before > 2.0 && after < 1.5, "{before} and {after} bytes read for each");
    place.end();
}

fn astray() {
    let place = Place::new("mirror A B", &[&volume("16K", "1G")]);
    let load = |offset: u64| {
        let words = format!("rw=randwrite bs=16k offset={offset} size=900m io_size=24m");
        place.amplified(&words)[1]
    };
    let before = load(63 * 512);
    let advice = place.told("lun-alignment").expect("astray");
    assert!(advice.seen.contains("15872 bytes behind"), "{advice:?}");
    // A client's fix: its partition begins where it is told to.
    let of_linux = advice.fixes.iter().find(|fix| fix.system == doctor::System::Linux).unwrap();
    let sectors = of_linux.text.split("multiple of ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let after = load(sectors.parse::<u64>().unwrap() * 512 * 64);
    assert_eq!(place.told("lun-alignment"), None);
    assert!(after < before * 0.75, "{before} and {after} bytes written for each");
    place.end();
}

/// Durable writes at random.
const DURABLE: &str = "rw=randwrite bs=16k sync=dsync size=64m io_size=4m";

fn no_log() {
    let create = format!("zfs create -s -V 64M -b 16K -o sync=always {SHARE}");
    let mut place = Place::new("mirror A B", &[&create]);
    let (before, after) = place.mended("no-log-device", |place| place.logged(DURABLE));
    assert!(before == 0.0 && after >= 8.0 * 1e6, "{before} and {after} bytes to both log devices");
    place.end();
}

fn passed_by() {
    let create = format!("zfs create -s -V 64M -b 16K -o logbias=throughput {SHARE}");
    let mut place = Place::new("mirror A B log C", &[&create]);
    let (before, after) = place.mended("log-passed-by", |place| place.logged(DURABLE));
    assert!(after >= 4e6 && before < after / 4.0, "{before} and {after} bytes to the log device");
    place.end();
}

fn sync_disabled() {
    let create = format!("zfs create -s -V 64M -b 16K -o sync=disabled {SHARE}");
    let mut place = Place::new("mirror A B log C", &[&create]);
    let (before, after) = place.mended("sync-disabled", |place| place.logged(DURABLE));
    assert!(after >= 4e6 && before < after / 4.0, "{before} and {after} bytes to the log device");
    place.end();
}

/// Copies 16M of text into the volume.
fn copy_text(place: &Place) {
    let file = place.home.scratch.join("text");
    let lines: String = (0..1 << 20).map(|number| format!("line {number:>8}\n\n\n")).collect();
    std::fs::write(&file, &lines.as_bytes()[..16 << 20]).unwrap();
    run(command("nbdcopy").arg(&file).arg(place.uri(SHARE)));
    place.home.run("zpool sync tank");
}

fn compression() {
    let create = format!("zfs create -s -V 16M -b 64K -o compression=off {SHARE}");
    let mut place = Place::new("mirror A B", &[&create]);
    let (before, after) = place.mended("compression-off", |place| {
        copy_text(place);
        place.number(&format!("zfs get -Hp -o value used {SHARE}"))
    });
    assert!(before > 16e6 && after < before / 2.0, "{before} and {after} bytes used");
    place.end();
}

fn padding() {
    let mut place = Place::new("raidz A B C D E", &[&volume("8K", "32M")]);
    let (before, after) = place.mended("raidz-padding", |place| {
        place.load("rw=write bs=1m size=32m");
        // What the moved blocks took before is free some txgs later.
        (0..8).for_each(|_| drop(place.home.run("zpool sync tank")));
        place.number("zpool list -Hp -o allocated tank") / f64::from(32 << 20)
    });
    assert!(before > 1.9 && after < 1.5, "{before} and {after} bytes allocated for each");
    place.end();
}

/// Writes over 4M in the midst of the longest run of bytes on a device: those of the volume.
fn damage(disk: &std::path::Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().read(true).write(true).open(disk).unwrap();
    let (mut run, mut longest, mut bytes) = (0, (0, 0), vec![0; 1 << 20]);
    for at in 0..1024u64 {
        file.read_exact_at(&mut bytes, at << 20).unwrap();
        run = if bytes.chunks(4096).all(|page| page.iter().any(|byte| *byte != 0)) { run + 1 } else { 0 };
        longest = longest.max((run, at));
    }
    assert!(longest.0 >= 8, "the volume is there in one piece: {longest:?}");
    file.write_all_at(&vec![0xA5; 4 << 20], (longest.1 - longest.0 / 2 - 2) << 20).unwrap();
}

fn redundancy() {
    let mut place = Place::new("A", &[&volume("64K", "64M")]);
    let disk = place.home.scratch.join("A0");
    let (before, after) = place.mended("no-redundancy", |place| {
        place.load("rw=write bs=1m size=64m");
        place.home.run("zpool wait -t resilver tank");
        place.home.run("zpool sync tank");
        damage(&disk);
        place.start();
        // It fails where something was lost.
        place.home.output("zpool scrub -w tank");
        let told = place.json("zpool status -j tank");
        let errors = &told["pools"]["tank"]["scan_stats"]["errors"];
        errors.as_str().map_or_else(|| errors.as_u64().unwrap(), |text| text.parse().unwrap())
    });
    assert!(before > 0 && after == 0, "{before} and {after} blocks that were lost");
    place.end();
}

fn unused_cache() {
    let mut place = Place::new("mirror A B cache C", &[&volume("4K", "64M")]);
    place.load("rw=write bs=1m size=64m");
    let (before, after) = place.mended("cache-unused", |place| {
        place.start();
        place.load("rw=read bs=1m size=64m");
        place.cache()["devices"].as_array().map_or(0, Vec::len)
    });
    assert_eq!((before, after), (1, 0), "cache devices that take memory");
    place.end();
}

fn slow_fill() {
    let commands = [
        "tunable set l2arc_write_max=64K l2arc_write_boost=0 l2arc_feed_min_ms=10".to_string(),
        volume("16K", "160M"),
    ];
    let mut place = Place::new("mirror A B cache C", &commands.each_ref().map(String::as_str));
    place.load("rw=write bs=1m size=160m");
    // Reads at random for so many passes: bytes of each.
    let each_pass = |place: &Place, passes: f64| {
        let before = place.fed();
        loop {
            place.load("rw=randread bs=16k size=160m io_size=128m");
            let now = place.fed();
            if now[1] - before[1] >= passes {
                return (now[0] - before[0]) / (now[1] - before[1]);
            }
        }
    };
    let before = each_pass(&place, 120.0);
    let advice = place.told("cache-slow-fill").unwrap_or_else(|| panic!("{:#?}", place.home.run("arc -j")));
    place.follow(&advice);
    place.home.run("zpool export tank");
    place.home.run(&format!("zpool import -d {} tank", place.home.scratch.path().display()));
    let after = each_pass(&place, 3.0);
    assert!(before < 80e3 && after > 4.0 * before, "{before} and {after} bytes in a pass");
    assert_eq!(place.told("cache-slow-fill"), None);
    place.start();
    place.end();
}

fn access_times() {
    let mut place = Place::new("mirror A B", &[]);
    let at = place.home.scratch.join("mnt");
    let at = at.display();
    place.home.run(&format!("zfs create -o recordsize=16K -o relatime=off -o mountpoint={at} {SHARE}"));
    place.home.run(&format!("zfs mount {SHARE}"));
    let file = place.home.scratch.join("mnt/table");
    std::fs::write(&file, "page").unwrap();
    let (before, after) = place.mended("file-access-times", |_| {
        use std::os::unix::fs::MetadataExt;
        let read_at = || {
            // Past what the client keeps of the file.
            run(command("dd")
                .args(["iflag=direct", "bs=4k", "of=/dev/null"])
                .arg(format!("if={}", file.display())));
            let told = std::fs::metadata(&file).unwrap();
            (told.atime(), told.atime_nsec())
        };
        let first = read_at();
        std::thread::sleep(Duration::from_millis(20));
        first != read_at()
    });
    assert!(before && !after, "times of reads that were written: {before}, {after}");
    place.home.run(&format!("zfs unmount {SHARE}"));
    place.end();
}

/// A file system that is mounted, and a file in it that is not there yet.
fn file_system(properties: &str) -> (Place, std::path::PathBuf) {
    let place = Place::new("mirror A B", &[]);
    let at = place.home.scratch.join("mnt");
    place
        .home
        .run(&format!("zfs create {properties} -o compression=off -o mountpoint={} {SHARE}", at.display()));
    place.home.run(&format!("zfs mount {SHARE}"));
    (place, at.join("table"))
}

/// Places of `count` pages in a file of `bytes`, the same for the same seed.
fn places(seed: u64, count: u64, page: u64, bytes: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    let next = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % (bytes / page) * page
    };
    std::iter::repeat_with(next).take(count as usize)
}

fn pages_written() {
    use std::os::unix::fs::FileExt;
    let (mut place, path) = file_system("-o recordsize=128K");
    let (before, after) = place.mended("partial-writes", |place| {
        // A file keeps the records that it was written with.
        let _ = std::fs::remove_file(&path);
        let file = std::fs::File::create_new(&path).unwrap();
        file.set_len(1 << 30).unwrap();
        let before = place.moved("tank")[1];
        let seed = place.seed.replace(place.seed.get() + 1);
        places(seed, 1500, 8192, 1 << 30).for_each(|at| file.write_all_at(&[7; 8192], at).unwrap());
        (place.moved("tank")[1] - before) / f64::from(1500 * 8192)
    });
    assert!(before > 8.0 && after < before / 3.0, "{before} and {after} bytes written for each");
    place.home.run(&format!("zfs unmount {SHARE}"));
    place.end();
}

fn pages_read() {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    const SIZE: usize = 128 << 20;
    let (mut place, path) = file_system("-o recordsize=128K -o atime=off");
    let (before, after) = place.mended("whole-record-reads", |place| {
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, vec![7; SIZE]).unwrap();
        // Past what the client keeps of the file.
        let file = std::fs::File::options().read(true).custom_flags(0o40_000).open(&path).unwrap();
        let before = place.moved("tank")[0];
        let (seed, mut page) = (place.seed.replace(place.seed.get() + 1), vec![0; 16 << 10]);
        places(seed, 2000, 16 << 10, SIZE as u64).for_each(|at| file.read_exact_at(&mut page, at).unwrap());
        (place.moved("tank")[0] - before) / f64::from(2000 * (16 << 10))
    });
    assert!(before > 2.0 && after < 1.5, "{before} and {after} bytes read for each");
    place.home.run(&format!("zfs unmount {SHARE}"));
    place.end();
}
