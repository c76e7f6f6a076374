//! pjdfstest: each file of it in a directory of its own; the cases that fail, in the words of TAP.

use super::account::Account;
use super::expected::{self, Cases};
use super::rig::{Rig, suite};
use crate::Failure;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

pub const SOURCE: (&str, &str) = ("https://github.com/pjd/pjdfstest", "85a8aea");
/// Most tests wait for the clock.
const AT_ONCE: usize = 4;

pub fn run(wanted: &[String]) -> Result<Account, Failure> {
    let build = "autoreconf -ifs && ./configure && make -s pjdfstest";
    let suite = suite("pjdfstest", SOURCE.0, SOURCE.1, build)?;
    let tests = suite.join("tests");
    let mut files = Vec::new();
    for group in std::fs::read_dir(&tests)? {
        let group = group?.path();
        if group.is_dir() {
            for file in std::fs::read_dir(group)? {
                files.push(file?.path());
            }
        }
    }
    files.retain(|file| file.extension().is_some_and(|e| e == "t"));
    let name = |file: &Path| file.strip_prefix(&tests).unwrap_or(file).display().to_string();
    files.retain(|file| wanted.is_empty() || wanted.iter().any(|w| name(file).contains(w.as_str())));
    if files.is_empty() {
        return Err("no such test".into());
    }
    files.sort();
    let expected = expected::read("pjdfstest")?;
    let rig = Rig::new("pjdfstest", &[])?;
    let (queue, failed, cases) = (Mutex::new(files.clone()), Mutex::new(Cases::new()), Mutex::new(0));
    std::thread::scope(|scope| {
        for worker in 0..AT_ONCE {
            let (queue, failed, cases, at, name) = (&queue, &failed, &cases, rig.mounted(), &name);
            scope.spawn(move || {
                while let Some(file) = take(queue) {
                    let own = at.join(format!("w{worker}"));
                    let _ = std::fs::remove_dir_all(&own);
                    let ran = std::fs::create_dir(&own)
                        .and_then(|()| Command::new("sh").arg(&file).current_dir(&own).output());
                    let (said, not_ok) = match ran {
                        Ok(output) => judge(&String::from_utf8_lossy(&output.stdout)),
                        Err(_) => (0, BTreeSet::from([0])),
                    };
                    *cases.lock().unwrap_or_else(PoisonError::into_inner) += said;
                    if !not_ok.is_empty() {
                        println!("{}: {not_ok:?}", name(&file));
                        failed.lock().unwrap_or_else(PoisonError::into_inner).insert(name(&file), not_ok);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let cases: usize = cases.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ran: BTreeSet<String> = files.iter().map(|file| name(file)).collect();
    rig.end()?;
    let (what, passed) = (format!("{} files, {cases} cases", ran.len()), ran.len() - failed.len());
    let mut account = Account::new("pjdfstest", what, format!("{passed} files"));
    account.excuse(&expected, &failed, &BTreeSet::new(), &[]);
    account.findings = expected.compare(&failed, &ran);
    Ok(account)
}

fn take(queue: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// How TAP marks a case that fails everywhere.
const EXCUSED: &str = concat!("# TO", "DO");

/// How many cases there were, and the numbers of those that failed; a plan that was not kept is case 0.
fn judge(tap: &str) -> (usize, BTreeSet<u32>) {
    let number = |rest: &str| rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut failed: BTreeSet<u32> = tap
        .lines()
        .filter(|line| !line.contains(EXCUSED))
        .filter_map(|line| line.strip_prefix("not ok ").map(number))
        .collect();
    // A file that does not apply plans no cases.
    let planned: Option<u32> = tap.lines().find_map(|line| line.strip_prefix("1..")).map(number);
    let said = tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count();
    if planned.map(|planned| planned as usize) != Some(said) {
        failed.insert(0);
    }
    (said, failed)
}

#[cfg(test)]
mod tests {
    use super::{EXCUSED, judge};
    use std::collections::BTreeSet;

    #[test]
    fn failures_are_read_from_tap_and_a_plan_that_was_not_kept_is_one() {
        assert_eq!(judge("1..3\nok 1\nnot ok 2 - tried 'x'\nok 3\n"), (3, BTreeSet::from([2])));
        assert_eq!(judge("1..3\nok 1\n"), (1, BTreeSet::from([0])));
        assert_eq!(judge(&format!("1..1\nnot ok 1 {EXCUSED} known\n")), (1, BTreeSet::new()));
        assert_eq!(judge("sh: no such file\n"), (0, BTreeSet::from([0])));
        assert_eq!(judge("1..0 # SKIP\n"), (0, BTreeSet::new()));
    }
}
