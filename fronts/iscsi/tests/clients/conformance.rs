//! libiscsi's conformance suite: each test a process of its own, held against what we know of it.
//!
//! The list names every test that does not pass, with its verdict and the reason. A test that is not in the list must
//! pass; one that is must end as it says, so that the list cannot grow old. The verdict is by what a test prints: a line
//! with FAILED outweighs one with SKIPPED, which outweighs "passed".

use crate::real::{Real, limited};
use interop::programs;
use iscsi::memory::{MemoryDirectory, device};
use scsi::memory::MemoryUnit;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const EXPECTED: &str = include_str!("expected.txt");
/// Tests that run at a time, each on a target of its own.
const AT_ONCE: usize = 4;
/// No test needs as long; one that hangs has failed.
const LIMIT: u32 = 30;
/// Its own arithmetic holds only where a block is as large as a physical one.
const NEEDS_SMALL_BLOCKS: &str = "SCSI.GetLBAStatus.UnmapSingle";

/// How a test ended, by its name: PASS, SKIP, FAIL or TIMEOUT.
fn expected() -> BTreeMap<&'static str, &'static str> {
    let lines = EXPECTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let (verdict, test, reason) = (words.next(), words.next(), words.next());
            assert!(reason.is_some_and(|r| !r.is_empty()), "{line}: no reason is given");
            (test.unwrap_or_default(), verdict.unwrap_or_default())
        })
        .collect()
}

fn tests(dir: &Path) -> Vec<String> {
    let listed = programs::said(&limited(LIMIT, "iscsi-test-cu", &["--list"], dir));
    let is_ours = |line: &&str| {
        (line.starts_with("SCSI.") || line.starts_with("iSCSI.")) && line.matches('.').count() == 2
    };
    listed.lines().map(str::trim).filter(is_ours).map(String::from).collect()
}

fn verdict(test: &str, url: &str, dir: &Path) -> (&'static str, String) {
    let output = limited(LIMIT, "iscsi-test-cu", &["-d", "-v", "-t", test, url], dir);
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

pub fn every_conformance_test_ends_as_expected() {
    let target = |n: usize| format!("iqn.2026-11.org.example:suite{n}");
    let server = Real::serve("conformance", 1, move || {
        let mut directory = MemoryDirectory::default();
        for n in 0..AT_ONCE {
            let unit = |block| Arc::new(MemoryUnit::new(2 << 30, block));
            directory = directory.with(&target(n), 0, device(unit(16 << 10), 2 * n as u8));
            directory = directory.with(&target(n), 1, device(unit(512), 2 * n as u8 + 1));
        }
        directory
    });
    let (tests, next, results) = (tests(&server.dir), AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    assert!(tests.len() >= 230, "only {} tests are listed", tests.len());
    std::thread::scope(|scope| {
        for n in 0..AT_ONCE {
            let (tests, next, results, server) = (&tests, &next, &results, &server);
            scope.spawn(move || {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let lun = u16::from(test == NEEDS_SMALL_BLOCKS);
                    let url = server.unit(&target(n), lun);
                    results.lock().unwrap().insert(test.as_str(), verdict(test, &url, &server.dir));
                }
            });
        }
    });
    let (expected, results) = (expected(), results.into_inner().unwrap());
    let mut wrong = String::new();
    for (test, (verdict, said)) in &results {
        let should = expected.get(test).copied().unwrap_or("PASS");
        if *verdict != should {
            wrong += &format!("{test}: {verdict} instead of {should}:\n{said}\n");
        }
    }
    let unknown: Vec<_> = expected.keys().filter(|test| !results.contains_key(*test)).collect();
    assert!(unknown.is_empty(), "the list names tests that there are not: {unknown:?}");
    let count = |verdict| results.values().filter(|(v, _)| *v == verdict).count();
    println!(
        "conformance: {} pass, {} skip, {} fail",
        count("PASS"),
        count("SKIP"),
        count("FAIL") + count("TIMEOUT")
    );
    assert!(wrong.is_empty(), "{wrong}");
}
