//! Failures that are expected: a line each, `NAME CASES reason`.

use crate::{Failure, root};
use std::collections::{BTreeMap, BTreeSet};

/// The cases that fail, by test; a test without numbered cases fails as case 0.
pub type Cases = BTreeMap<String, BTreeSet<u32>>;

pub fn read(suite: &str) -> Result<Cases, Failure> {
    let path = root().join("fronts/fuse/tests/posix").join(format!("{suite}.txt"));
    let text = std::fs::read_to_string(&path)?;
    let mut cases = Cases::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(numbers), Some(_)) = (words.next(), words.next(), words.next()) else {
            return Err(format!("{}: no test, cases and reason in '{line}'", path.display()).into());
        };
        for range in numbers.split(',') {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            cases.entry(name.into()).or_default().extend(from.parse::<u32>()?..=to.parse::<u32>()?);
        }
    }
    Ok(cases)
}

/// Says what differs among the tests that ran; true when nothing does.
pub fn compare(expected: &Cases, failed: &Cases, ran: &BTreeSet<String>) -> bool {
    let mut same = true;
    let none = BTreeSet::new();
    for name in ran {
        let (expected, failed) = (expected.get(name).unwrap_or(&none), failed.get(name).unwrap_or(&none));
        for case in failed.difference(expected) {
            println!("{name} {case}: fails, and is not expected to");
            same = false;
        }
        for case in expected.difference(failed) {
            println!("{name} {case}: is expected to fail, and does not");
            same = false;
        }
    }
    same
}
