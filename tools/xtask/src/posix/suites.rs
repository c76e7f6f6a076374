//! Each suite: how it is run, and what of its words is a failure.

use super::expected::{self, Cases};
use super::rig::{Rig, cenote, dir, suite, sure};
use crate::Failure;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const PJDFSTEST: (&str, &str) = ("https://github.com/pjd/pjdfstest", "85a8aea");
const XFSTESTS: (&str, &str) = ("https://github.com/kdave/xfstests", "63a29724");
/// Most tests of pjdfstest wait for the clock.
const AT_ONCE: usize = 4;
/// Generic tests that need nothing but files.
const GENERIC: &str = "001 002 005 006 007 011 013 014 020 023 024 028 029 035 053 062 069 070 074 075 080 084 087 088 089 091 \
                       100 105 109 112 113 117 124 126 127 130 131 132 141 169 184 193 198 207 210 211 215 221 236 245 246 247 \
                       248 257 258 263 285 294 306 307 308 309 310 313 319 337 355 360 375 377 391 393 394 401 403 406 412 420 \
                       422 423 430 431 432 433 436 437 438 439 443 444 445 446 448 450 451 452 453 454 460 464 467 469 471 478 \
                       490 504 523 524 525 528 533 538 551 564 565 567 568 571 586 591 609 611 615 618 632 637 639 647 676 680 \
                       683 684 685 686 687 688 706 708 726 727 728 729 736 755";

pub fn pjdfstest(wanted: &[String]) -> Result<bool, Failure> {
    let build = "autoreconf -ifs && ./configure && make -s pjdfstest";
    let suite = suite("pjdfstest", PJDFSTEST.0, PJDFSTEST.1, build)?;
    let tests = suite.join("tests");
    let mut files = Vec::new();
    for group in std::fs::read_dir(&tests)? {
        let group = group?.path();
        if group.is_dir() {
            files.extend(
                std::fs::read_dir(group)?
                    .map(|file| file.map(|f| f.path()))
                    .collect::<Result<Vec<_>, _>>()?,
            );
        }
    }
    files.retain(|file| file.extension().is_some_and(|e| e == "t"));
    let name = |file: &Path| file.strip_prefix(&tests).unwrap_or(file).display().to_string();
    files.retain(|file| wanted.is_empty() || wanted.iter().any(|w| name(file).contains(w.as_str())));
    files.sort();
    let rig = Rig::new("pjdfstest", &[])?;
    let (queue, failed) = (Mutex::new(files.clone()), Mutex::new(Cases::new()));
    std::thread::scope(|scope| {
        for worker in 0..AT_ONCE {
            let (queue, failed, at, name) = (&queue, &failed, rig.mounted(), &name);
            scope.spawn(move || {
                while let Some(file) = take(queue) {
                    let own = at.join(format!("w{worker}"));
                    let _ = std::fs::remove_dir_all(&own);
                    let ran = std::fs::create_dir(&own)
                        .and_then(|()| Command::new("sh").arg(&file).current_dir(&own).output());
                    let cases = match ran {
                        Ok(output) => not_ok(&String::from_utf8_lossy(&output.stdout)),
                        Err(_) => BTreeSet::from([0]),
                    };
                    if !cases.is_empty() {
                        println!("{}: {cases:?}", name(&file));
                        failed.lock().unwrap_or_else(|e| e.into_inner()).insert(name(&file), cases);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|e| e.into_inner());
    let ran: BTreeSet<String> = files.iter().map(|file| name(file)).collect();
    println!("{} files, {} with failures", ran.len(), failed.len());
    rig.end()?;
    Ok(expected::compare(&expected::read("pjdfstest")?, &failed, &ran))
}

fn take(queue: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    queue.lock().unwrap_or_else(|e| e.into_inner()).pop()
}

/// How TAP marks a case that fails everywhere.
const EXCUSED: &str = concat!("# TO", "DO");

/// The numbers of the cases that failed, in the words of TAP; a plan that was not kept is case 0.
fn not_ok(tap: &str) -> BTreeSet<u32> {
    let number = |rest: &str| rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut failed: BTreeSet<u32> = tap
        .lines()
        .filter(|line| !line.contains(EXCUSED))
        .filter_map(|line| line.strip_prefix("not ok ").map(number))
        .collect();
    let planned: u32 = tap.lines().find_map(|line| line.strip_prefix("1..")).map_or(0, number);
    let said = tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count();
    if planned as usize != said {
        failed.insert(0);
    }
    failed
}

fn xfs() -> Result<PathBuf, Failure> {
    suite("xfstests", XFSTESTS.0, XFSTESTS.1, "make -s -j2")
}

pub fn fsx(seeds: u64, operations: u64) -> Result<bool, Failure> {
    let fsx = xfs()?.join("ltp/fsx");
    let rig = Rig::new("fsx", &["recordsize=16K"])?;
    for seed in 1..=seeds {
        let (seed, operations) = (seed.to_string(), operations.to_string());
        sure(Command::new(&fsx).current_dir(rig.mounted()).args([
            "-q",
            "-N",
            &operations,
            "-S",
            &seed,
            "file",
        ]))?;
    }
    rig.end().map(|()| true)
}

pub fn fsstress(seeds: u64) -> Result<bool, Failure> {
    let fsstress = xfs()?.join("ltp/fsstress");
    let rig = Rig::new("fsstress", &[])?;
    for seed in 1..=seeds {
        let at = rig.mounted().join("stress");
        std::fs::create_dir(&at)?;
        let seed = seed.to_string();
        sure(Command::new(&fsstress).args(["-n", "2000", "-p", "4", "-s", &seed, "-d"]).arg(&at))?;
        std::fs::remove_dir_all(&at)?;
    }
    rig.end().map(|()| true)
}

/// xfstests mounts by a helper, and looks for what it mounted by its source and type.
pub fn xfstests(wanted: &[String]) -> Result<bool, Failure> {
    let suite = xfs()?;
    let rig = Rig::new("xfstests", &["acltype=posix"])?;
    let helper = Path::new("/sbin/mount.fuse.cenote");
    let (home, at) = (rig.home(), rig.mounted());
    let script = format!(
        "#!/bin/sh\n# mount.fuse.cenote DATASET DIRECTORY -o OPTIONS\nexec {} --home {} zfs mount tank/files\n",
        cenote().display(),
        home.display()
    );
    std::fs::write(helper, script)?;
    sure(Command::new("chmod").arg("755").arg(helper))?;
    let config = dir().join("xfstests.config");
    let text = format!(
        "export FSTYP=fuse\nexport FUSE_SUBTYP=.cenote\nexport TEST_DEV=tank/files\nexport TEST_DIR={}\n",
        at.display()
    );
    std::fs::write(&config, text)?;
    let all: Vec<String> = GENERIC.split_whitespace().map(|n| format!("generic/{n}")).collect();
    let tests = if wanted.is_empty() { &all[..] } else { wanted };
    let ran = Command::new("./check").current_dir(&suite).env("HOST_OPTIONS", &config).args(tests).output();
    std::fs::remove_file(helper)?;
    let text = String::from_utf8_lossy(&ran?.stdout).into_owned();
    print!("{text}");
    let failures = text.lines().find_map(|line| line.strip_prefix("Failures: ")).unwrap_or("");
    let failed: Cases =
        failures.split_whitespace().map(|name| (name.to_string(), BTreeSet::from([0]))).collect();
    let ran: BTreeSet<String> = tests.iter().cloned().collect();
    rig.end()?;
    Ok(expected::compare(&expected::read("xfstests")?, &failed, &ran) && text.contains("Ran: "))
}

/// A real source tree: cloned, configured, built and cleaned on the mount.
pub fn build() -> Result<bool, Failure> {
    let from = suite("pjdfstest", PJDFSTEST.0, PJDFSTEST.1, "true")?;
    let rig = Rig::new("build", &["compression=lz4"])?;
    let script = format!(
        "git clone -q {} tree 2>/dev/null || cp -a {} tree; cd tree; autoreconf -ifs; ./configure -q; make -s clean; make -s; ls -l pjdfstest; \
         make -s distclean; rm -rf ../tree",
        from.display(),
        from.display()
    );
    sure(Command::new("sh").current_dir(rig.mounted()).args(["-ec", &script]))?;
    rig.end().map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::{EXCUSED, not_ok};
    use std::collections::BTreeSet;

    #[test]
    fn failures_are_read_from_tap_and_a_plan_that_was_not_kept_is_one() {
        assert_eq!(not_ok("1..3\nok 1\nnot ok 2 - tried 'x'\nok 3\n"), BTreeSet::from([2]));
        assert_eq!(not_ok("1..3\nok 1\n"), BTreeSet::from([0]));
        assert_eq!(not_ok(&format!("1..1\nnot ok 1 {EXCUSED} known\n")), BTreeSet::new());
    }
}
