//! The generic tests of xfstests, on the file systems of two pools.
//!
//! ```text
//!   check ── mount -t fuse.cenote xfstests/files DIR ──▶ /sbin/mount.fuse.cenote, a script, while it runs
//!         │                                                       └──▶ cenote zfs mount
//!         └─ as fsgqa and others ──▶ /etc/passwd and /etc/group of a mount namespace of its own
//! ```

use super::account::Account;
use super::expected::{self, Cases};
use super::patience::Watch;
use super::rig::{self, Rig, cenote, dir, sure};
use crate::{Failure, root};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: (&str, &str) = ("https://github.com/kdave/xfstests", "63a29724");
/// Set for the second half of the work, which has a mount namespace of its own.
const INSIDE: &str = "POSIX_INSIDE";
/// Of the pool that tests fill.
const SCRATCH_SIZE: u64 = 2 << 30;
/// How long those tests run that may run as long as one likes, in seconds.
const SOAK_S: u32 = 60;
/// Users of the tests, and groups of the same names.
const USERS: [(&str, u32); 3] = [("fsgqa", 31_415), ("fsgqa2", 31_416), ("123456-fsgqa", 31_417)];
const HELPER: &str = "/sbin/mount.fuse.cenote";

pub fn suite() -> Result<PathBuf, Failure> {
    rig::suite("xfstests", SOURCE.0, SOURCE.1, "make -s -j2")
}

pub fn run(wanted: &[String]) -> Result<Account, Failure> {
    let suite = suite()?;
    let expected = expected::read("xfstests")?;
    let mut rig = Rig::new("xfstests", &["acltype=posix"])?;
    rig.pool("scratch", SCRATCH_SIZE, &["acltype=posix"])?;
    let helper = helper(&rig.home());
    std::fs::write(HELPER, helper)?;
    sure(Command::new("chmod").args(["755", HELPER]))?;
    let (config, results) = (dir().join("xfstests/config"), dir().join("xfstests/results"));
    let _ = std::fs::remove_dir_all(&results);
    std::fs::create_dir_all(&results)?;
    let text = format!(
        "export FSTYP=fuse\nexport FUSE_SUBTYP=.cenote\nexport TEST_DEV=xfstests/files\nexport TEST_DIR={}\n\
         export SCRATCH_DEV=scratch/files\nexport SCRATCH_MNT={}\nexport RESULT_BASE={}\n\
         export SOAK_DURATION={SOAK_S}\n",
        rig.mounted().display(),
        rig.at("scratch").display(),
        results.display()
    );
    std::fs::write(&config, text)?;
    // The suite mounts it when a test wants it.
    rig.cenote(&["zfs", "unmount", "scratch/files"])?;
    let apply = generic()?;
    let (left_out, all): (Vec<_>, Vec<_>) =
        apply.iter().cloned().partition(|name| expected.long.contains(name));
    let (tests, left_out) = if wanted.is_empty() { (&all[..], &left_out[..]) } else { (wanted, &[][..]) };
    let mut check = Command::new("./check");
    let ran = aloud(check.current_dir(&suite).env("HOST_OPTIONS", &config).args(tests));
    let _ = std::fs::remove_file(HELPER);
    let outcome = Outcome::read(&ran?);
    rig.end()?;
    let silent = tests.iter().filter(|name| !outcome.knows(name));
    let silent = silent.inspect(|name| println!("{name}: nothing was said of it")).count();
    let what = match wanted {
        [] => format!("{} generic tests, {} of them apply", there_are(&suite)?, apply.len()),
        named => format!("{} tests by name", named.len()),
    };
    let passed = outcome.ran.len() - outcome.failed.len();
    let mut account = Account::new("xfstests", what, passed.to_string());
    account.excuse(&expected, &outcome.failed, &outcome.not_run, left_out);
    account.findings =
        expected.compare(&outcome.failed, &outcome.ran) + expected.excuse(&outcome.not_run) + silent;
    Ok(account)
}

/// How many generic tests the suite has.
fn there_are(suite: &Path) -> Result<usize, Failure> {
    let mut tests = 0;
    for entry in std::fs::read_dir(suite.join("tests/generic"))? {
        tests += usize::from(entry?.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    }
    Ok(tests)
}

/// The tests that apply.
fn generic() -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(root().join("fronts/fuse/tests/posix/generic.txt"))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    Ok(lines.flat_map(str::split_whitespace).map(|number| format!("generic/{number}")).collect())
}

/// What it says, also shown as it comes.
fn aloud(command: &mut Command) -> Result<String, Failure> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let _watch = Watch::begin(child.id());
    let mut text = String::new();
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        text += &line;
        text.push('\n');
    }
    child.wait()?;
    Ok(text)
}

/// What became of the tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// To the end, well or not.
    ran: BTreeSet<String>,
    failed: Cases,
    not_run: BTreeSet<String>,
}

impl Outcome {
    /// From the lines behind the last test.
    fn read(text: &str) -> Outcome {
        let names = |begin: &str| -> BTreeSet<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
            lines.flat_map(str::split_whitespace).map(String::from).collect()
        };
        let (ran, not_run) = (names("Ran: "), names("Not run: "));
        let failed = names("Failures: ").into_iter().map(|name| (name, BTreeSet::from([0]))).collect();
        Outcome { ran: ran.difference(&not_run).cloned().collect(), failed, not_run }
    }

    fn knows(&self, name: &str) -> bool {
        self.ran.contains(name) || self.not_run.contains(name)
    }
}

/// Whether this is the run that [`in_namespace`] began.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this command again where users can be added and nothing that is mounted stays.
pub fn in_namespace(arguments: &[String]) -> Result<bool, Failure> {
    let at = dir().join("xfstests");
    std::fs::create_dir_all(&at)?;
    let (mut passwd, mut group) =
        (std::fs::read_to_string("/etc/passwd")?, std::fs::read_to_string("/etc/group")?);
    for (name, id) in USERS {
        if !passwd.lines().any(|line| line.starts_with(&format!("{name}:"))) {
            passwd += &format!("{name}:*:{id}:{id}::/tmp:/bin/bash\n");
            group += &format!("{name}:x:{id}:\n");
        }
    }
    std::fs::write(at.join("passwd"), passwd)?;
    std::fs::write(at.join("group"), group)?;
    let script =
        "mount --bind \"$1/passwd\" /etc/passwd; mount --bind \"$1/group\" /etc/group; shift; exec \"$@\"";
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-ec", script, "sh"])
        .arg(&at)
        .arg(std::env::current_exe()?)
        .arg("posix")
        .args(arguments)
        .env(INSIDE, "1")
        .status()?;
    Ok(status.success())
}

/// What mount(8) calls: `mount.fuse.cenote DATASET DIRECTORY -o OPTIONS`. In another place than its own, and in a second
/// one, a file system is seen by a bind mount, as one of the kernel's would be: there is one of it, with several mounts.
fn helper(home: &Path) -> String {
    format!(
        r#"#!/bin/sh
dataset=$1 directory=$2 given=
while [ $# -gt 0 ]; do
  case $1 in -o) given=$given,$2; shift;; esac
  shift
done
case "$given," in *,remount,*) exec mount -i -o "${{given#,}}" "$directory";; esac
options=
for option in $(echo "$given" | tr , ' '); do
  case $option in ro|noexec|nosuid|nodev|noatime) options="$options,$option";; esac
done
place() {{ awk -v d="$dataset" '$1 == d {{ print $2; exit }}' /proc/mounts; }}
if [ -z "$(place)" ]; then
  {} --home {} zfs mount ${{options:+-o "${{options#,}}"}} "$dataset" || exit
  [ "$(place)" != "$directory" ] || exit 0
  away=$(place)
fi
is=$(place)
[ "$is" != "$directory" ] || {{ echo "$dataset is mounted on $directory" >&2; exit 32; }}
mount --bind "$is" "$directory"
result=$?
[ -z "$away" ] || umount "$away"
exit $result
"#,
        cenote().display(),
        home.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_the_tests_stands_in_the_last_lines() {
        let text = "generic/001 4s ...  5s\ngeneric/003       [not run] no atime\nRan: generic/001 generic/002 generic/003\n\
                    Not run: generic/003\nFailures: generic/002\nFailed 1 of 3 tests\n";
        let outcome = Outcome::read(text);
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        assert_eq!(outcome.ran, set(&["generic/001", "generic/002"]));
        assert_eq!(outcome.not_run, set(&["generic/003"]));
        assert_eq!(outcome.failed.keys().cloned().collect::<BTreeSet<_>>(), set(&["generic/002"]));
        assert!(outcome.knows("generic/003") && !outcome.knows("generic/004"));
    }

    #[test]
    fn no_test_is_listed_twice() {
        let all = generic().unwrap();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
