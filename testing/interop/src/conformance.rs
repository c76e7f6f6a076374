//! libiscsi's conformance suite: each test a process of its own, held against what we know of it.
//!
//! The list names every test that does not pass, with its verdict and the reason. A test that is not in the list must
//! pass; one that is must end as it says, so that the list cannot grow old. The verdict is by what a test prints: a line
//! with FAILED outweighs one with SKIPPED, which outweighs "passed".
//!
//! A list may have lines of its own for one kind of server, which count before those that hold for all.

use crate::programs;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const EXPECTED: &str = include_str!("conformance.txt");
/// No test needs as long, in seconds; one that hangs has failed.
const LIMIT: &str = "30";
/// There are at least so many.
const TESTS: usize = 230;
/// Its own arithmetic holds only where a block is as large as a physical one.
const NEEDS_SMALL_BLOCKS: &str = "SCSI.GetLBAStatus.UnmapSingle";

/// Where one test at a time may run: units of at least 1 GiB with no other user.
#[derive(Clone, Debug)]
pub struct Place {
    /// The URL of a unit.
    pub usual: String,
    /// Of one in blocks of 512 bytes.
    pub small: String,
}

/// What is run, and where.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// As many tests run at a time.
    pub places: Vec<Place>,
    /// Lines of the list that hold for this server.
    pub own: &'a str,
    /// One of so many tests is run, or all.
    pub one_of: usize,
    /// A directory for what the tests leave.
    pub dir: &'a Path,
}

/// How a test ends, by its name: PASS, SKIP, FAIL or TIMEOUT.
fn expected(own: &str) -> BTreeMap<String, String> {
    let lines = EXPECTED.lines().chain(own.lines());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let (verdict, test, reason) = (words.next(), words.next(), words.next());
            assert!(reason.is_some_and(|r| !r.is_empty()), "{line}: no reason is given");
            (test.unwrap_or_default().into(), verdict.unwrap_or_default().into())
        })
        .collect()
}

fn suite(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new("timeout");
    let program = programs::find("iscsi-test-cu").expect("the test says that it needs it");
    command.arg(LIMIT).arg(program).args(args).current_dir(dir).stdin(Stdio::null());
    programs::output(&mut command)
}

fn tests(dir: &Path) -> Vec<String> {
    let listed = programs::said(&suite(&["--list"], dir));
    let is_ours = |line: &&str| {
        (line.starts_with("SCSI.") || line.starts_with("iSCSI.")) && line.matches('.').count() == 2
    };
    listed.lines().map(str::trim).filter(is_ours).map(String::from).collect()
}

fn verdict(test: &str, url: &str, dir: &Path) -> (&'static str, String) {
    let output = suite(&["-d", "-v", "-t", test, url], dir);
    let said = programs::said(&output);
    let verdict = match () {
        () if output.status.code() == Some(124) => "TIMEOUT",
        () if said.contains("FAILED") => "FAIL",
        () if said.contains("SKIPPED") => "SKIP",
        () if said.contains("passed") => "PASS",
        () => "FAIL",
    };
    (verdict, said)
}

/// Runs it.
///
/// # Panics
/// When a test ends otherwise than the list says, with all that it printed.
pub fn every_test_ends_as_expected(suite: &Suite<'_>) {
    let tests = tests(suite.dir);
    assert!(tests.len() >= TESTS, "only {} tests are listed", tests.len());
    let expected = expected(suite.own);
    let unknown: Vec<_> = expected.keys().filter(|test| !tests.contains(test)).collect();
    assert!(unknown.is_empty(), "the list names tests that there are not: {unknown:?}");
    let chosen: Vec<&String> = tests.iter().step_by(suite.one_of).collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for place in &suite.places {
            let (chosen, next, results) = (&chosen, &next, &results);
            scope.spawn(move || {
                while let Some(test) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let url = if *test == NEEDS_SMALL_BLOCKS { &place.small } else { &place.usual };
                    let ended = verdict(test, url, suite.dir);
                    results.lock().expect("no thread panics with it").insert(test.as_str(), ended);
                }
            });
        }
    });
    let results = results.into_inner().expect("no thread panics with it");
    let mut wrong = String::new();
    for (test, (verdict, said)) in &results {
        let should = expected.get(*test).map_or("PASS", String::as_str);
        if *verdict != should {
            wrong += &format!("{test}: {verdict} instead of {should}:\n{said}\n");
        }
    }
    let count = |verdict| results.values().filter(|(v, _)| *v == verdict).count();
    println!(
        "conformance: {} pass, {} skip, {} fail",
        count("PASS"),
        count("SKIP"),
        count("FAIL") + count("TIMEOUT")
    );
    assert!(wrong.is_empty(), "{wrong}");
}
