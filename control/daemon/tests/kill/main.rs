//! The daemon is killed, SIGKILL, in the midst of its work, again and again: whatever it has answered as durable must be
//! there when it comes back.
//!
//! ```text
//!   start ─▶ read all, compare with what was promised ─▶ connections write, trim, flush; txgs sync ─▶ SIGKILL
//!     ▲                                                                                                │
//!     └────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each volume is an NBD export and a LUN, and clients of both work on it at once ([`nbd`], [`iscsi`]); what is there after
//! a kill is read over either in turn.
//!
//! What the clients were answered is kept in the history of the power-cut proof, and its rules decide. A kill leaves
//! the machine's own caches alone: what a disk may lose is the simulator's part. Here the program is the real one, with
//! its threads, its sockets and its io_uring.
//!
//! `CENOTE_KILLS` is how often; `cargo xtask torture --kill N` sets it. Runs cannot be repeated exactly: threads and
//! processes race. A failure leaves the home with the pool for inspection.

#![allow(clippy::unwrap_used, reason = "a failure of these helpers is a failure of the test")]

mod client;
mod files;
mod iscsi;
mod nbd;

use client::{Connection, Manner, work};
use interop::harness::{self, Need, ROOT, trial};
use interop::programs::said;
use interop::slow::{self, SlowDisk};
use interop::{Scratch, zdb};
use iscsi::{Iscsi, TARGET};
use nbd::Nbd;
use rustix::process::{Pid, Signal, kill_process};
use sim::Rng;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use torture::power::{Found, History, Limits, Track, check};

const FUSE: Need = Need::Other("/dev/fuse", || Path::new("/dev/fuse").exists());

const SLOW: Need =
    Need::Other("a limit for writes to the disk of temporary files (blkio or io.max)", slow::is_there);

/// What a daemon has begun to write when it is killed is then on its way for as long as the next one takes to start.
const SLOW_BYTES_PER_SECOND: u64 = 400 << 10;

const CENOTE: &str = env!("CARGO_BIN_EXE_cenote");

/// Name, block size, and whether every answer is a promise. The first is what `up` makes.
const VOLUMES: [(&str, u64, bool); 3] =
    [("tank/vol1", 16 << 10, false), ("tank/vol2", 4 << 10, false), ("tank/vol3", 64 << 10, true)];
const MAKE_OTHERS: [&str; 2] =
    ["zfs create -s -V 2M -b 4K -o logbias=throughput tank/vol2", "zfs create -s -V 4M -b 64K tank/vol3"];
/// Each volume is a LUN too, with the number of its place in [`VOLUMES`].
const LUNS: [&str; 3] = ["vol1", "vol2", "vol3"];

fn main() -> ExitCode {
    let kills = std::env::var("CENOTE_KILLS").ok().and_then(|n| n.parse().ok());
    harness::main(vec![
        trial("what_was_promised_survives_any_kill", &[], move || {
            keeping(|home| survive(home, kills.unwrap_or(6), "always", Also::Nothing)).unwrap();
        }),
        trial(
            "another_block_size_loses_nothing_wherever_it_is_cut_off",
            &[Need::Program("zdb")],
            move || {
                keeping(|home| survive(home, kills.unwrap_or(6), "always", Also::Migrate)).unwrap();
            },
        ),
        trial("files_that_were_synced_survive_any_kill_wherever_they_are", &[FUSE, ROOT], move || {
            keeping(|home| files::survive(home, kills.unwrap_or(6), None)).unwrap();
        }),
        trial(
            "files_survive_when_the_disk_still_writes_for_the_daemon_before",
            &[FUSE, ROOT, SLOW],
            move || {
                keeping(|home| files::survive(home, kills.unwrap_or(6), Some(SLOW_BYTES_PER_SECOND)))
                    .unwrap();
            },
        ),
        trial("zdb_finds_no_leak_after_kills", &[Need::Program("zdb")], || {
            keeping(|home| survive(home, 2, "always", Also::AskZdb)).unwrap();
        }),
        trial("promises_that_were_not_meant_are_found_to_be_broken", &[], || {
            let why = survive(&Scratch::new(), 20, "disabled", Also::Nothing).unwrap_err();
            assert!(why.contains("tank/vol3: ") && why.contains("too old"), "{why}");
        }),
    ])
}

/// A daemon at work.
struct Daemon {
    process: Child,
    /// Where NBD is, and where iSCSI is.
    address: String,
    portal: String,
}

impl Daemon {
    fn start(home: &Scratch) -> Daemon {
        Daemon::start_by(Command::new(CENOTE), home)
    }

    /// What it writes reaches the disk slowly.
    fn start_slow(home: &Scratch, slow: &SlowDisk) -> Daemon {
        Daemon::start_by(slow.command(CENOTE.as_ref()), home)
    }

    fn start_by(command: Command, home: &Scratch) -> Daemon {
        let mut command =
            with_words(command, home, "up --listen 127.0.0.1:0 --iscsi 127.0.0.1:0 --size 512M --volume 4M");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let portal = lines.find_map(|l| Some(l.trim_start().strip_prefix("iscsi ")?.trim().to_string()));
        let portal = portal.expect("it says where LUNs are served");
        let uri =
            lines.find_map(|l| l.split_whitespace().find(|w| w.starts_with("nbd://")).map(String::from));
        let uri = uri.expect("it says where the volume is served");
        let address = uri.trim_start_matches("nbd://").split('/').next().unwrap().to_string();
        // What else it says is not waited for, and not to be lost in a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Daemon { process, address, portal }
    }

    /// A connection to the volume of this place, over NBD or iSCSI.
    fn connect(&self, at: usize, over_iscsi: bool) -> Box<dyn Connection> {
        // Sessions of one initiator that are the same one end each other.
        static SESSIONS: AtomicU16 = AtomicU16::new(1);
        match over_iscsi {
            true => Box::new(Iscsi::open(&self.portal, at as u8, SESSIONS.fetch_add(1, Ordering::Relaxed))),
            false => Box::new(Nbd::open(&self.address, VOLUMES[at].0)),
        }
    }

    /// Whether it then ended in peace.
    fn signal(&mut self, signal: Signal) -> bool {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.process.wait().unwrap().success()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn cenote(home: &Scratch, line: &str) -> Command {
    with_words(Command::new(CENOTE), home, line)
}

fn with_words(mut command: Command, home: &Scratch, line: &str) -> Command {
    command.arg("--home").arg(home.join("home")).args(line.split_whitespace());
    command
}

/// What is done besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Also {
    Nothing,
    AskZdb,
    /// Volumes get other block sizes while they are written to.
    Migrate,
}

/// Other block sizes than those of [`VOLUMES`]. The last is too large for a block of the log, which then divides it.
const OTHER_BLOCKS: [u64; 3] = [64 << 10, 32 << 10, 256 << 10];

/// What one kill is to come after.
struct Aims {
    also: Also,
    /// Whether all that is to be seen was seen: then it comes at any time.
    is_enough: bool,
    /// The block sizes of the volumes at the start.
    blocks: [u64; 3],
}

/// What all kills amounted to.
#[derive(Debug, Default)]
struct Figures {
    /// Changes that were answered, and of these those that had to be there.
    answered: u64,
    promised: u64,
    flushes: u64,
    /// Changes that were not promised: found, or not.
    present: u64,
    absent: u64,
    /// Volumes that had another block size after a kill than before.
    migrated: u64,
}

/// `sync` is the property of the volume whose every answer counts as a promise. An error tells which was broken.
/// What has failed leaves its home.
fn keeping(work: impl FnOnce(&Scratch) -> Result<(), String>) -> Result<(), String> {
    let home = Scratch::new();
    let done = work(&home);
    if done.is_err() {
        println!("left for inspection: {}", home.path().display());
        std::mem::forget(home);
    }
    done
}

fn survive(home: &Scratch, kills: u64, sync: &str, also: Also) -> Result<(), String> {
    let begun = Instant::now();
    let mut rng = Rng::new(std::process::id().into());
    let (mut history, mut figures) = (None, Figures::default());
    let mut blocks = VOLUMES.map(|(_, block, _)| block);
    for kill in 0..=kills {
        let mut daemon = Daemon::start(home);
        if kill == 0 {
            let sync = format!("zfs set sync={sync} tank/vol3");
            for line in MAKE_OTHERS.into_iter().chain([&sync[..]]) {
                let output = cenote(home, line).output().unwrap();
                assert!(output.status.success(), "{line}: {}", said(&output));
            }
            make_luns(home);
        }
        assert!(!volumes(home).contains(".copy-"), "a half copy is left: {}", volumes(home));
        let now = VOLUMES.map(|(name, ..)| block_of(home, name).unwrap());
        figures.migrated += now.iter().zip(&blocks).filter(|(now, before)| now != before).count() as u64;
        blocks = now;
        // What one front tells, the other does.
        let found = [0, 1, 2].map(|at| daemon.connect(at, kill % 2 == 1).read_all());
        if let Some(history) = &history {
            judge(history, &found, &mut figures).map_err(|e| format!("kill {kill} of {kills}: {e}"))?;
        }
        if kill == kills {
            assert!(daemon.signal(Signal::INT), "it ends in peace when it is told to");
            break;
        }
        // Chance, or a slow machine, may have left out what this is about; the last kill comes after it.
        let is_enough = figures.shows(also) || kill + 1 < kills;
        let aims = Aims { also, is_enough, blocks };
        history = Some(work_and_kill(home, &mut daemon, found, &mut rng, aims));
        if (kill + 1).is_multiple_of(25) {
            println!("{} of {kills} kills, {:.0} s", kill + 1, begun.elapsed().as_secs_f64());
        }
    }
    println!("kills {kills}, {figures:?}, failures 0, {:.0} s", begun.elapsed().as_secs_f64());
    assert!(figures.shows(also), "{figures:?}: nothing was promised, or nothing migrated");
    if also != Also::Nothing {
        zdb::assert_clean(&home.join("home/disks"), "tank");
    }
    Ok(())
}

/// Lets iSCSI clients have the volumes.
fn make_luns(home: &Scratch) {
    let target = format!("configuration san targets iscsi create; set iqn={TARGET}; commit");
    let online = LUNS.iter().enumerate().map(|(number, lun)| {
        let set = format!("set status=online; set lunumber={number}; commit");
        format!("shares select default select {lun}; {set}")
    });
    for script in std::iter::once(target).chain(online) {
        let mut shell = with_words(Command::new(CENOTE), home, "shell -c");
        let output = shell.arg(&script).output().unwrap();
        assert!(output.status.success(), "{script}: {}", said(&output));
    }
}

/// What was asked and answered until the daemon was killed.
fn work_and_kill(
    home: &Scratch,
    daemon: &mut Daemon,
    found: [Vec<u8>; 3],
    rng: &mut Rng,
    aims: Aims,
) -> History {
    let also = aims.also;
    let mut history = History::default();
    for (((name, block, _), bytes), other) in VOLUMES.into_iter().zip(found).zip(OTHER_BLOCKS) {
        history.add_volume(name, block, bytes);
        if also == Also::Migrate {
            history.allow_block(name, other);
        }
    }
    let history = Arc::new(Mutex::new(history));
    let clients: Vec<_> = (0..1 + rng.below(5))
        .map(|_| {
            let at = rng.below(3) as usize;
            let (volume, block, is_always) = VOLUMES[at];
            let (depth, seed) = (1 + rng.below(16) as usize, rng.next_u64());
            // A trim means whole blocks, and of which size is not known then.
            let trims = also != Also::Migrate;
            let manner = Manner { volume, block, is_always, depth, seed, trims };
            let (connection, history) = (daemon.connect(at, rng.below(2) == 0), history.clone());
            std::thread::spawn(move || work(connection, &manner, &history))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(5 + rng.below(200)));
    if also == Also::Migrate {
        migrate(home, rng);
    }
    if !aims.is_enough {
        wait_for(|| {
            let mut figures = Figures::default();
            let history = history.lock().unwrap();
            VOLUMES.iter().for_each(|(name, ..)| figures.add(&history.volumes[*name], &history));
            figures.promised > 0 && figures.flushes > 0
        });
        if also == Also::Migrate {
            let (name, block) = (VOLUMES[1].0, VOLUMES[1].1 + OTHER_BLOCKS[1] - aims.blocks[1]);
            set_block(home, name, block);
            wait_for(|| block_of(home, name) == Some(block));
        }
    }
    // Each of these is a txg of its own; the last may be cut off in its midst.
    let mut syncs: Option<Child> = None;
    for turn in 0..rng.below(4) {
        if let Some(mut before) = syncs.take() {
            before.wait().unwrap();
        }
        let mut set = cenote(home, &format!("zfs set cenote:turn={turn} tank"));
        syncs = Some(set.stderr(Stdio::null()).spawn().unwrap());
        std::thread::sleep(Duration::from_millis(rng.below(100)));
    }
    assert!(!daemon.signal(Signal::KILL), "it was killed");
    clients.into_iter().for_each(|client| client.join().unwrap());
    // Whether it was done or not: it is not to find the next daemon.
    syncs.map(|mut last| last.wait().unwrap());
    history.lock().unwrap().clone()
}

/// Begins to give some volumes another block size, or the one they had at first; what is begun may be called off at once.
fn migrate(home: &Scratch, rng: &mut Rng) {
    for ((name, block, _), other) in VOLUMES.into_iter().zip(OTHER_BLOCKS) {
        for _ in 0..[0, 1, 1, 2][rng.below(4) as usize] {
            let block = if rng.below(2) == 0 { block } else { other };
            set_block(home, name, block);
        }
    }
    std::thread::sleep(Duration::from_millis(rng.below(400)));
}

fn set_block(home: &Scratch, name: &str, block: u64) {
    let output = cenote(home, &format!("zfs set volblocksize={block} {name}")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

fn wait_for(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All volumes, as the program lists them.
fn volumes(home: &Scratch) -> String {
    said(&cenote(home, "zfs list -Hp -o name,volblocksize -t volume").output().unwrap())
}

/// The block size of a volume.
fn block_of(home: &Scratch, name: &str) -> Option<u64> {
    let listed = volumes(home);
    let mut lines = listed.lines().filter_map(|line| line.split_once('\t'));
    lines.find(|(listed, _)| *listed == name).and_then(|(_, block)| block.parse().ok())
}

/// What was answered before this time is promised by a flush.
fn promised_in(track: &Track) -> u64 {
    track.flushes.iter().map(|flush| flush.begun).max().unwrap_or(0)
}

fn judge(history: &History, found: &[Vec<u8>; 3], figures: &mut Figures) -> Result<(), String> {
    let now = history.now();
    for ((name, block, _), bytes) in VOLUMES.into_iter().zip(found) {
        let track = &history.volumes[name];
        let promised = promised_in(track);
        let limits = Limits { until: now, heard: now, promised, with_log: true };
        let undecided = check(track, &Found { block, bytes: bytes.clone() }, limits);
        let undecided = undecided.map_err(|e| format!("{name}: {e}"))?;
        figures.add(track, history);
        figures.present += undecided.present;
        figures.absent += undecided.absent;
    }
    Ok(())
}

impl Figures {
    /// Whether what was tried has been seen at all.
    fn shows(&self, also: Also) -> bool {
        self.promised > 0 && self.flushes > 0 && (also != Also::Migrate || self.migrated > 0)
    }

    fn add(&mut self, track: &Track, history: &History) {
        let (now, promised) = (history.now(), promised_in(track));
        let answered = track.events.iter().filter(|e| e.span.done <= now);
        for event in answered {
            self.answered += 1;
            self.promised += u64::from(event.durable || event.span.done < promised);
        }
        self.flushes += track.flushes.len() as u64;
    }
}
