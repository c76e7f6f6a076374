//! The same over files of mounted file systems, wherever in the pool they are.
//!
//! A writer of each file system makes files, one after another, and syncs each before it goes on; now and then it removes
//! one, and syncs the directory. What was answered is owed after the kill; only the last step may be done or not.

use crate::{Daemon, cenote};
use interop::programs::said;
use interop::slow::SlowDisk;
use interop::{Scratch, copy_sparse};
use rustix::process::Signal;
use sim::Rng;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use torture::pattern;

/// File systems, and where they are below the scratch directory: the pool's own, one in it, one below that, a clone, and
/// one whose place is none of its parent's.
const PLACES: [(&str, &str); 5] = [
    ("tank", "mnt"),
    ("tank/a", "mnt/a"),
    ("tank/a/b", "mnt/a/b"),
    ("tank/a/clone", "mnt/a/clone"),
    ("tank/e", "elsewhere"),
];

/// From so many kills on a failure would be hard to have again: so the disks are kept as every other kill left them. After
/// the others the next daemon begins at once, while the devices may still be writing for the one before.
const MANY: u64 = 20;

/// How long the last kill waits for files of every writer: on a busy machine all the kills before may have come too early.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is owed in one file system: the files with what they hold, and what the writer was about when it was stopped.
#[derive(Default)]
struct Ledger {
    owed: BTreeMap<String, Vec<u8>>,
    unsure: Option<String>,
    made: Arc<AtomicU64>,
    removed: u64,
}

/// The mounts do not outlive the trial, however it ends.
struct Mounts(PathBuf);

impl Drop for Mounts {
    fn drop(&mut self) {
        for (_, at) in PLACES.iter().rev() {
            _ = Command::new("umount").arg("-l").arg(self.0.join(at)).output();
        }
    }
}

fn run(home: &Scratch, line: &str) {
    let output = cenote(home, line).output().unwrap();
    assert!(output.status.success(), "{line}: {}", said(&output));
}

/// With a limit, in bytes a second, every other daemon writes slowly: the next, which does not, begins while the disk is
/// still writing for it. An error tells what was broken.
pub fn survive(home: &Scratch, kills: u64, limit: Option<u64>) -> Result<(), String> {
    let slow = limit.map(|limit| SlowDisk::new(home.path(), limit).expect("the trial needs it"));
    let _mounts = Mounts(home.join(""));
    let mut rng = Rng::new(std::process::id().into());
    let mut ledgers: Vec<Ledger> = PLACES.iter().map(|_| Ledger::default()).collect();
    for kill in 0..=kills {
        if kills > MANY && kill % 2 == 1 {
            keep_disks(home).map_err(|e| e.to_string())?;
        }
        let mut daemon = match &slow {
            Some(slow) if kill % 2 == 1 => Daemon::start_slow(home, slow),
            _ => Daemon::start(home),
        };
        if kill == 0 {
            make(home);
        }
        for ((name, at), ledger) in PLACES.iter().zip(&mut ledgers) {
            settle(&home.join(at), ledger).map_err(|e| {
                let status = said(&cenote(home, "zpool status -v tank").output().unwrap());
                format!("kill {kill} of {kills}: {name}: {e}\n{status}")
            })?;
        }
        let status = said(&cenote(home, "zpool status -v tank").output().unwrap());
        if status.contains("intent log") {
            return Err(format!("kill {kill} of {kills}: {status}"));
        }
        if kill == kills {
            run(home, "zfs unmount -a");
            assert!(daemon.signal(Signal::INT), "it ends in peace when it is told to");
            break;
        }
        let made: Vec<Arc<AtomicU64>> = ledgers.iter().map(|ledger| ledger.made.clone()).collect();
        let least = || made.iter().map(|made| made.load(Ordering::Relaxed)).min().unwrap_or(0);
        let before = least();
        std::thread::scope(|threads| {
            for ((_, at), ledger) in PLACES.iter().zip(&mut ledgers) {
                let (at, seed) = (home.join(at), rng.next_u64());
                threads.spawn(move || write_files(&at, ledger, seed));
            }
            std::thread::sleep(Duration::from_millis(20 + rng.below(800)));
            let until = Instant::now() + PATIENCE;
            while kill + 1 == kills && least() == 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(!daemon.signal(Signal::KILL), "it was killed");
        });
        println!("kill {}: at least {} files more in each file system", kill + 1, least() - before);
    }
    let made = |ledger: &Ledger| ledger.made.load(Ordering::Relaxed);
    let (all, removed) = ledgers.iter().fold((0, 0), |sum, l| (sum.0 + made(l), sum.1 + l.removed));
    println!("kills {kills}, files synced {all}, removed {removed}, failures 0");
    assert!(ledgers.iter().all(|ledger| made(ledger) > 0), "a writer has done nothing");
    Ok(())
}

/// Puts the disks beside the home as the kill has left them, before anybody has replayed a log.
fn keep_disks(home: &Scratch) -> std::io::Result<()> {
    let kept = home.join("before");
    fs::create_dir_all(&kept)?;
    for disk in fs::read_dir(home.join("home/disks"))? {
        let disk = disk?;
        copy_sparse(&disk.path(), &kept.join(disk.file_name()))?;
    }
    Ok(())
}

fn make(home: &Scratch) {
    let at = |name: &str| home.join(name).display().to_string();
    run(home, &format!("zfs set mountpoint={} tank", at("mnt")));
    for name in ["tank/a", "tank/a/b", "tank/a/origin"] {
        run(home, &format!("zfs create {name}"));
    }
    run(home, &format!("zfs create -o mountpoint={} tank/e", at("elsewhere")));
    run(home, "zfs mount -a");
    // The snapshot is taken of a file system that has a log.
    for n in 0..3 {
        put(&home.join("mnt/a/origin"), &format!("of-origin{n}"), &pattern(n, 5000)).unwrap();
    }
    run(home, "zfs snapshot tank/a/origin@s");
    run(home, "zfs clone tank/a/origin@s tank/a/clone");
    run(home, "zfs mount -a");
}

/// Makes a file; it is durable when this returns.
fn put(directory: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(directory.join(name))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Works until the file system is gone.
fn write_files(directory: &Path, ledger: &mut Ledger, seed: u64) {
    let mut rng = Rng::new(seed);
    loop {
        if ledger.owed.len() > 20 && rng.below(3) == 0 {
            let nth = rng.below(ledger.owed.len() as u64) as usize;
            let Some(name) = ledger.owed.keys().nth(nth).cloned() else { continue };
            ledger.owed.remove(&name);
            ledger.unsure = Some(name.clone());
            let gone =
                || fs::remove_file(directory.join(&name)).and_then(|()| File::open(directory)?.sync_all());
            if gone().is_err() {
                return;
            }
            ledger.removed += 1;
        } else {
            let name = format!("f{}", rng.next_u64());
            let bytes = pattern(rng.next_u64(), 1 + rng.below(20_000));
            ledger.unsure = Some(name.clone());
            if put(directory, &name, &bytes).is_err() {
                return;
            }
            ledger.owed.insert(name, bytes);
            ledger.made.fetch_add(1, Ordering::Relaxed);
        }
        ledger.unsure = None;
    }
}

/// How many are not there, and whether one is listed, or comes with time.
fn lacking(directory: &Path, ledger: &Ledger, name: &str, e: &std::io::Error) -> String {
    let is_there = |name: &String| directory.join(name).exists();
    let lacking = ledger.owed.keys().filter(|name| !is_there(name)).count();
    let listed = fs::read_dir(directory).map(|all| all.flatten().any(|entry| entry.file_name() == name));
    std::thread::sleep(Duration::from_secs(6));
    let comes = fs::read(directory.join(name)).is_ok();
    let of = ledger.owed.len();
    format!(
        "'{name}': {e}; {lacking} of {of} are not there; listed: {listed:?}, there after some time: {comes}"
    )
}

/// Holds what is there against what is owed, and removes what may be there.
fn settle(directory: &Path, ledger: &mut Ledger) -> Result<(), String> {
    if let Some(unsure) = ledger.unsure.take() {
        _ = fs::remove_file(directory.join(unsure));
        File::open(directory).and_then(|at| at.sync_all()).map_err(|e| e.to_string())?;
    }
    for (name, bytes) in &ledger.owed {
        match fs::read(directory.join(name)) {
            Ok(found) if found == *bytes => {}
            Ok(found) => {
                return Err(format!("'{name}' of {} bytes is another, of {}", bytes.len(), found.len()));
            }
            Err(e) => return Err(lacking(directory, ledger, name, &e)),
        }
    }
    let listed = fs::read_dir(directory).map_err(|e| e.to_string())?;
    let names = listed.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    for name in names.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())? {
        if name.starts_with('f') && !ledger.owed.contains_key(&name) {
            return Err(format!("'{name}' was removed, and is there again"));
        }
    }
    Ok(())
}
