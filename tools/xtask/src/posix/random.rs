//! fsx and fsstress of xfstests: what is done to files at random, and again by its seed.

use super::account::Account;
use super::rig::{Rig, quietly, sure};
use super::xfstests::suite;
use crate::Failure;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// As many seeds as there are at once.
const AT_ONCE: u64 = 2;
/// What a FUSE mount has not: collapsing and inserting ranges, clones and what needs them, atomic writes.
const FSX_WITHOUT: [&str; 7] = ["-C", "-I", "-J", "-B", "-0", "-a", "-u"];
/// Neither has it writes past the cache; not every fsx knows a word to leave them out.
const FSX_FINDS_OUT: &str = "does not support dontcache IO";
/// How the seeds go about it, in turn; all of them punch, zero, allocate, copy ranges, truncate and reopen.
const FSX_WAYS: [(&str, &[&str]); 4] = [
    ("mapped", &["-c", "500"]),
    ("mapped, large", &["-c", "500", "-l", "3000000", "-o", "300000"]),
    ("mapped, from the start each time", &["-f", "-c", "500"]),
    ("direct", &["-Z", "-R", "-W", "-r", "4096", "-w", "4096", "-t", "512", "-l", "600000", "-o", "65536"]),
];
/// What the file systems of the rounds are like.
const FSX_ROUNDS: [&[&str]; 2] = [&["recordsize=16K"], &["recordsize=128K", "compression=lz4"]];

pub fn fsx(seeds: u64, operations: u64) -> Result<Account, Failure> {
    let fsx = suite()?.join("ltp/fsx");
    let (done, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    for (round, properties) in FSX_ROUNDS.iter().enumerate() {
        let (round, rounds) = (round as u64, FSX_ROUNDS.len() as u64);
        // A round has a pool of its own; its seeds are every second.
        let mine: Vec<u64> = (1..=seeds).filter(|seed| seed % rounds == round).collect();
        if mine.is_empty() {
            continue;
        }
        let rig = Rig::new("fsx", properties)?;
        let (at, next) = (rig.mounted(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(seed) = mine.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                        match one_fsx(&fsx, &at, *seed, operations) {
                            Ok(()) => done.fetch_add(operations, Ordering::Relaxed),
                            Err(failure) => {
                                println!("fsx, seed {seed} on {properties:?}: {failure}");
                                failures.fetch_add(1, Ordering::Relaxed)
                            }
                        };
                    }
                });
            }
        });
        rig.end()?;
    }
    let (done, failures) = (done.into_inner(), failures.into_inner());
    let what = format!("seeds 1 to {seeds}, {operations} operations each");
    let mut account = Account::new("fsx", what, format!("{} seeds, {done} operations", seeds - failures));
    account.findings = failures as usize;
    Ok(account)
}

fn one_fsx(fsx: &Path, at: &Path, seed: u64, operations: u64) -> Result<(), Failure> {
    let (way, words) = FSX_WAYS[(seed / 2) as usize % FSX_WAYS.len()];
    let logs = super::rig::dir().join("fsx/logs");
    std::fs::create_dir_all(&logs)?;
    let said = quietly(
        Command::new(fsx)
            .current_dir(at)
            .args(["-q", "-N", &operations.to_string(), "-S", &seed.to_string()])
            .args(FSX_WITHOUT)
            .args(words)
            .arg("-P")
            .arg(&logs)
            .arg(format!("file{seed}")),
    )?;
    // What it finds missing it leaves out, and says so.
    let is_missing = |line: &str| line.contains("does not support") && !line.contains(FSX_FINDS_OUT);
    if said.lines().any(is_missing) {
        return Err(format!("an operation is missing: {said}").into());
    }
    println!("fsx, seed {seed}, {way}: {operations} operations");
    Ok(())
}

/// Seeds with 8 processes each; the files of the last one stay, and must be the same after they were on disk.
pub fn fsstress(seeds: u64, operations: u64) -> Result<Account, Failure> {
    let fsstress = suite()?.join("ltp/fsstress");
    let rig = Rig::new("fsstress", &["acltype=posix"])?;
    let at = rig.mounted().join("stress");
    for seed in 1..=seeds {
        std::fs::create_dir(&at)?;
        let (seed_text, operations) = (seed.to_string(), operations.to_string());
        quietly(
            Command::new(&fsstress).args(["-n", &operations, "-p", "8", "-s", &seed_text, "-d"]).arg(&at),
        )?;
        println!("fsstress, seed {seed}: 8 processes, {operations} operations each");
        if seed < seeds {
            sure(Command::new("rm").arg("-r").arg(&at))?;
        }
    }
    let before = manifest(&at)?;
    rig.remount()?;
    let after = manifest(&at)?;
    let differs = before.lines().zip(after.lines()).find(|(one, other)| one != other);
    if let Some((one, other)) = differs {
        println!("fsstress: '{one}' is '{other}' on disk");
    }
    rig.end()?;
    let what = format!("seeds 1 to {seeds}, 8 processes, {operations} operations each");
    let passed =
        format!("{} names, attributes and sums are the same after mounting anew", before.lines().count());
    let mut account = Account::new("fsstress", what, passed);
    account.findings = (before != after || before.is_empty()).into();
    Ok(account)
}

/// Every name with what the file is, and the sum of its content.
fn manifest(at: &Path) -> Result<String, Failure> {
    let script = "find . -printf '%P %y %m %U:%G %n %s %T@ %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0 cksum; \
                  getfattr -R -h -d -m - . | sort";
    quietly(Command::new("sh").args(["-ec", script]).current_dir(at))
}
