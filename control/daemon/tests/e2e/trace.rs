//! What clients ask, recorded on a real pool: shown, predicted in the lab, rehearsed, and held against the change itself.

use crate::files::FUSE;
use crate::home::{Daemon, Home};
use interop::harness::{ROOT, Trial, trial};
use interop::programs::said;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

/// The volume, which is larger than the cache.
const SIZE: &str = "160M";
const FILL: &str = "sd=sd1,lun=x\nwd=wd1,sd=sd1,xfersize=1m,readpct=0,seekpct=eof\nrd=run1,wd=wd1,iorate=max,elapsed=99h,maxdata=160m\n";
/// 16K at random, three quarters of it reads.
const LOAD: &str = "sd=sd1,lun=x,threads=4\nwd=wd1,sd=sd1,xfersize=16k,readpct=75,seekpct=100\n\
                    rd=run1,wd=wd1,iorate=150,elapsed=8,interval=1\n";
/// The same on a file, past the cache of this machine.
const FILE_LOAD: &str = "sd=sd1,lun=x,size=160m,openflags=o_direct,threads=4\nwd=wd1,sd=sd1,xfersize=16k,readpct=75,seekpct=100\n\
                         rd=run1,wd=wd1,iorate=150,elapsed=8,interval=1\n";

/// Of the load.
const LANES: u64 = 4;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("what_clients_ask_is_recorded_and_shown_without_their_names_if_so_wished", &[], recorded),
        trial("a_trace_is_predicted_rehearsed_and_measured_after_the_change", &[], predicted),
        trial(
            "a_trace_of_a_file_system_is_predicted_and_measured_after_the_change",
            &[FUSE, ROOT],
            files_predicted,
        ),
        trial("a_rehearsal_that_is_interrupted_leaves_nothing", &[], interrupted),
        trial("a_trace_that_cannot_be_written_ends_and_clients_go_on", &[], full),
        trial("what_is_no_trace_is_refused_with_its_place", &[], refused),
    ]
}

struct Place {
    home: Home,
    daemon: Option<Daemon>,
    /// What the load is on.
    of: Of,
}

#[derive(Clone, Copy)]
enum Of {
    /// `tank/v`, over NBD.
    Volume,
    /// A file of `tank/f`, which is mounted.
    File,
}

impl Place {
    /// A pool with a volume that is full of bytes.
    fn new(block: &str) -> Place {
        let mut place = Place::empty(Of::Volume);
        place.home.run(&format!("zfs create -s -V {SIZE} -b {block} -o compression=off tank/v"));
        std::fs::write(place.home.scratch.join("fill.parm"), FILL).unwrap();
        std::fs::write(place.home.scratch.join("load.parm"), LOAD).unwrap();
        place.start();
        place.work("fill.parm");
        place
    }

    /// A pool with a file system, whose first load writes the file.
    fn of_files(record: &str) -> Place {
        let mut place = Place::empty(Of::File);
        let at = place.home.scratch.join("mnt");
        let words =
            format!("-o recordsize={record} -o compression=off -o atime=off -o mountpoint={}", at.display());
        place.home.run(&format!("zfs create {words} tank/f"));
        std::fs::write(place.home.scratch.join("load.parm"), FILE_LOAD).unwrap();
        place.start();
        // Each later daemon mounts it by itself.
        place.home.run("zfs mount tank/f");
        place.work("load.parm");
        place
    }

    fn empty(of: Of) -> Place {
        let home = Home::new();
        // A rehearsal has the volume twice, and what is written to it besides.
        let disk = home.disk("a.img");
        std::fs::File::options().write(true).open(&disk).unwrap().set_len(2 << 30).unwrap();
        home.run(&format!("zpool create tank {disk}"));
        Place { home, daemon: None, of }
    }

    /// The daemon, with an empty cache.
    fn start(&mut self) {
        self.end();
        self.daemon = Some(self.home.start("serve --no-https --arc-max 64M").0);
    }

    fn end(&mut self) {
        self.daemon.take().into_iter().for_each(Daemon::end);
    }

    fn work(&self, file: &str) -> Value {
        let lun = match self.of {
            Of::Volume => {
                let socket = self.home.dir().join("nbd.sock");
                format!("sd1=nbd+unix:///tank/v?socket={}", socket.display())
            }
            Of::File => format!("sd1={}", self.file().display()),
        };
        let output = self.home.cenote(&["work", file, "--lun", &lun, "--seed", "5", "-j"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        told["runs"][0]["total"].clone()
    }

    fn file(&self) -> std::path::PathBuf {
        self.home.scratch.join("mnt/data")
    }

    /// Records while `work` goes on; what is told of the trace.
    fn recorded<T>(&self, words: &[&str], work: impl FnOnce() -> T) -> (Value, T) {
        let words = [&["trace", "record"], words, &["-j"]].concat();
        let mut recorder =
            self.home.cenote(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&mut recorder, "Ctrl-C ends it");
        let done = work();
        kill_process(Pid::from_child(&recorder), Signal::INT).unwrap();
        let mut text = String::new();
        recorder.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(recorder.wait().unwrap().success(), "{text}");
        (serde_json::from_str(&text).unwrap(), done)
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.home.cenote(words).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Operations and bytes of the pool's devices so far, all written data included.
    fn devices(&self) -> [f64; 2] {
        self.home.run("zpool sync tank");
        let told = self.json(&["zpool", "iostat", "-j", "tank"]);
        let stats = &told["pools"]["tank"]["vdevs"]["tank"]["stats"];
        ["ops", "bytes"]
            .map(|key| stats["read"][key].as_f64().unwrap() + stats["write"][key].as_f64().unwrap())
    }

    /// The load on an empty cache: device operations per operation, and device bytes per byte.
    fn measured(&mut self) -> [f64; 2] {
        self.start();
        let before = self.devices();
        let total = self.work("load.parm");
        let after = self.devices();
        let of = |key: &str| total[key].as_f64().unwrap();
        [(after[0] - before[0]) / of("operations"), (after[1] - before[1]) / of("bytes")]
    }

    fn datasets(&self) -> Vec<String> {
        let all = self.home.run("zfs list -H -t all -o name");
        all.lines().map(String::from).collect()
    }
}

/// Waits until a child says so on its standard error, the rest of which is read by a thread.
fn wait_for(child: &mut Child, what: &str) {
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains(what) {
        assert!(lines.read_line(&mut text).unwrap() > 0, "it ended: {text}");
    }
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
}

fn each(figures: &Value) -> [f64; 2] {
    ["device_operations_each", "device_bytes_each"].map(|key| figures[key].as_f64().unwrap())
}

fn recorded() {
    let mut place = Place::new("16K");
    let path = place.home.scratch.join("a.trace").display().to_string();
    let (told, total) = place.recorded(&["nbd", &path], || place.work("load.parm"));
    let of = |key: &str| total[key].as_u64().unwrap();
    let shown = place.json(&["trace", "show", &path, "-j"]);
    assert_eq!((told["dropped"].as_u64(), shown["cut"].as_bool()), (Some(0), Some(false)), "{told} {shown}");
    // What the load says that it has asked for, and what each lane had under way when its time was over.
    let counted = |key: &str| -> u64 {
        let operations = shown["operations"].as_array().unwrap().iter();
        operations.filter(|op| op["operation"] != "flush").map(|op| op[key].as_u64().unwrap()).sum()
    };
    assert!((of("operations")..=of("operations") + LANES).contains(&counted("requests")), "{shown} {total}");
    assert_eq!(counted("bytes"), counted("requests") << 14, "{shown}");
    let present = &shown["places"][0]["present"];
    assert_eq!((&shown["places"][0]["dataset"], &present["block"]), (&"tank/v".into(), &16_384.into()));
    assert_eq!((&present["layout"], &present["size"]), (&"stripe:1".into(), &(160u64 << 20).into()));
    let text = place.home.run(&format!("trace show {path}"));
    assert!(
        text.contains("nbd.ops, recorded at") && text.contains("16K 100%") && text.contains("tank/v"),
        "{text}"
    );
    // With a filter, and without names.
    let words = ["nbd[op=write][dataset=tank/v]", &path, "--hash-names"];
    let (told, total) = place.recorded(&words, || place.work("load.parm"));
    let (requests, writes) =
        (told["requests"].as_u64().unwrap(), total["write"]["operations"].as_u64().unwrap());
    assert!((writes..=writes + LANES).contains(&requests), "{told} {total}");
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"tank/v"), "no name is in the file");
    // Cut anywhere, it is read to its last whole piece.
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cut = place.json(&["trace", "show", &path, "-j"]);
    assert_eq!((&cut["cut"], &cut["requests"]), (&true.into(), &told["requests"]));
    let said = place.home.fails(&format!("trace record nfs {path}"), 2);
    assert!(said.contains("there are iscsi, nbd, fs"), "{said}");
    let said = place.home.fails(&format!("trace record nbd[colour=red] {path}.other"), 1);
    assert!(said.contains("colour"), "{said}");
    place.end();
    let said = place.home.fails(&format!("trace record nbd {path}.other"), 1);
    assert!(said.contains("no daemon runs"), "{said}");
}

fn predicted() {
    let mut place = Place::new("128K");
    let path = place.home.scratch.join("a.trace").display().to_string();
    let large = place.measured();
    place.start();
    place.recorded(&["nbd", &path], || place.work("load.parm"));
    let change = ["--set", "volblocksize=16K"];
    let replay =
        place.json(&[&["lab", "replay", &path, "--present", "disks=ssd", "-j"], &change[..]].concat());
    let lab = [0, 1].map(|column| each(&replay["figures"][column]));
    let rehearsed = place.json(&[&["rehearse", &path, "tank/v", "-j"], &change[..]].concat());
    let clones = [0, 1].map(|column| each(&rehearsed["figures"][column]));
    assert_eq!(place.datasets(), ["tank", "tank/v"], "it leaves nothing");
    for column in 0..2 {
        let figures = &rehearsed["figures"][column];
        assert_eq!(
            (figures["failed"].as_u64(), figures["skipped"].as_u64()),
            (Some(0), Some(0)),
            "{figures}"
        );
    }
    // The change itself.
    place.home.run("zfs set volblocksize=16K tank/v");
    let block = || place.home.run("zfs get -Hp -o value volblocksize tank/v");
    while block().trim() != "16384" {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let small = place.measured();
    let all = [("measured", [large, small]), ("lab", lab), ("clones", clones)];
    held_against(&all);
    place.end();
}

/// Files that were there keep their records: the change is for those that are written after it.
fn files_predicted() {
    let mut place = Place::of_files("128K");
    let path = place.home.scratch.join("a.trace").display().to_string();
    let large = place.measured();
    place.start();
    place.recorded(&["fs", &path], || place.work("load.parm"));
    let words = ["lab", "replay", &path, "--present", "disks=ssd", "--set", "recordsize=16K", "-j"];
    let replay = place.json(&words);
    let lab = [0, 1].map(|column| each(&replay["figures"][column]));
    place.home.run("zfs set recordsize=16K tank/f");
    std::fs::remove_file(place.file()).unwrap();
    place.work("load.parm");
    let small = place.measured();
    held_against(&[("measured", [large, small]), ("lab", lab)]);
    place.end();
}

/// The measured figures are the first, those of the lab the second; before the change, and after it.
fn held_against(all: &[(&str, [[f64; 2]; 2])]) {
    println!("device operations per operation, device bytes per byte");
    for (name, [before, after]) in all {
        println!("{name:<10}{before:.3?} -> {after:.3?}");
    }
    let (measured, lab) = (all[0].1, all[1].1);
    for (column, what) in ["128K", "16K"].into_iter().enumerate() {
        for (index, figure) in ["operations", "bytes"].into_iter().enumerate() {
            let (measured, lab) = (measured[column][index], lab[column][index]);
            let error = lab / measured - 1.0;
            println!("{what}: {figure}: {:+.1} %", error * 100.0);
            assert!(error.abs() < 0.35, "{what}: {figure}: measured {measured:.2}, predicted {lab:.2}");
        }
    }
    // What comes of it is the point: far fewer bytes, wherever it is tried.
    for (name, [before, after]) in all {
        assert!(after[1] < before[1] * 0.6, "{name}: {before:?} {after:?}");
    }
}

fn interrupted() {
    let mut place = Place::new("16K");
    let path = place.home.scratch.join("a.trace").display().to_string();
    place.recorded(&["nbd", &path], || place.work("load.parm"));
    for (set, at) in [("volblocksize=128K", "copying tank/v"), ("sync=always", "on tank/v.rehearse-")] {
        let words = ["rehearse", &path, "tank/v", "--set", set];
        let mut child =
            place.home.cenote(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&mut child, at);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{set}");
        assert_eq!(place.datasets(), ["tank", "tank/v"], "{set}: it leaves nothing");
    }
    for (volume, set, says) in [
        ("tank/v", "volblocksize=17K", "volblocksize"),
        ("tank/v", "colour=red", "colour"),
        ("tank/w", "sync=always", "no requests for tank/w"),
    ] {
        let said = place.home.fails(&format!("rehearse {path} {volume} --set {set}"), 1);
        assert!(said.contains(says), "{said}");
        assert_eq!(place.datasets(), ["tank", "tank/v"], "{set}: it leaves nothing");
    }
    // Killed, it leaves what the next one names.
    let words = ["rehearse", &path, "tank/v", "--set", "sync=always"];
    let mut child = place.home.cenote(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&mut child, "on tank/v.rehearse-");
    child.kill().unwrap();
    child.wait().unwrap();
    let said = place.home.fails(&format!("rehearse {path} tank/v --set colour=red"), 1);
    let left: Vec<String> = place.datasets().into_iter().filter(|name| name.contains("rehearse-")).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    for name in &left {
        assert!(said.contains(&format!("'cenote zfs destroy {name}' removes it")), "{said}");
    }
    place.end();
}

/// A device that is always full. One more than can be recorded at once: each lets go of what the daemon held for it.
fn full() {
    let mut place = Place::new("16K");
    let words = ["trace", "record", "nbd", "/dev/full"];
    for number in 0..5 {
        let output = place.home.cenote(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{number}: {}", said(&output));
        assert!(
            said(&output).contains("cannot write /dev/full: No space left"),
            "{number}: {}",
            said(&output)
        );
    }
    // While one fails, the load goes on.
    let mut recorder = place.home.cenote(&words).stderr(Stdio::piped()).spawn().unwrap();
    let total = place.work("load.parm");
    assert_eq!(recorder.wait().unwrap().code(), Some(1));
    assert!(total["operations"].as_u64().unwrap() > 1000, "{total}");
    place.end();
}

fn refused() {
    let home = Home::new();
    let path = home.scratch.join("bad.trace");
    for (bytes, says) in [
        (&b""[..], "it is no trace"),
        (b"CENTRACE", "cut within its header"),
        (b"CENTRACEH\xff\xff\xff\xff", "piece 0 at byte 8: 'length' 4294967295"),
        (b"CENTRACEH\x02\0\0\0{}\0\0\0\0\0\0\0\0", "piece 0 at byte 8: 'checksum'"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        for command in ["trace show", "lab replay"] {
            let said = home.fails(&format!("{command} {}", path.display()), 1);
            assert!(said.contains(says), "{command}: {said}");
        }
    }
    let said = home.fails("trace show nowhere", 1);
    assert!(said.contains("cannot read nowhere"), "{said}");
}
