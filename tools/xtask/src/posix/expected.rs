//! Failures that are expected: a line each, `NAME CASES reason`.
//!
//! CASES are numbers and ranges of them; 0 is all of a test that has no numbered cases, and `-` a test that does not run.

use crate::{Failure, root};
use std::collections::{BTreeMap, BTreeSet};

/// The cases that fail, by test; a test without numbered cases fails as case 0.
pub type Cases = BTreeMap<String, BTreeSet<u32>>;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub failing: Cases,
    /// These may not run: for want of a program of the machine, say.
    pub not_run: BTreeSet<String>,
}

pub fn read(suite: &str) -> Result<Expected, Failure> {
    let path = root().join("fronts/fuse/tests/posix").join(format!("{suite}.txt"));
    parse(&std::fs::read_to_string(&path)?).map_err(|e| format!("{}: {e}", path.display()).into())
}

fn parse(text: &str) -> Result<Expected, Failure> {
    let mut expected = Expected::default();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(numbers), Some(_)) = (words.next(), words.next(), words.next()) else {
            return Err(format!("no test, cases and reason in '{line}'").into());
        };
        if numbers == "-" {
            expected.not_run.insert(name.into());
            continue;
        }
        for range in numbers.split(',') {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let cases = expected.failing.entry(name.into()).or_default();
            cases.extend(from.parse::<u32>()?..=to.parse::<u32>()?);
        }
    }
    Ok(expected)
}

impl Expected {
    /// Says what differs among the tests that ran; true when nothing does.
    pub fn compare(&self, failed: &Cases, ran: &BTreeSet<String>) -> bool {
        let mut same = true;
        let none = BTreeSet::new();
        for name in ran {
            let (expected, failed) =
                (self.failing.get(name).unwrap_or(&none), failed.get(name).unwrap_or(&none));
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

    /// As [`Expected::compare`], of tests that did not run.
    pub fn excuse(&self, not_run: &BTreeSet<String>) -> bool {
        let unexpected: Vec<_> = not_run.difference(&self.not_run).collect();
        unexpected.iter().for_each(|name| println!("{name}: does not run, and is expected to"));
        unexpected.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_what_is_listed_neither_more_nor_less() {
        let expected = parse("# why\n\na/1.t 2,4-5 the kernel\ng/3 - no such program\n").unwrap();
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        let cases = |cases: &[u32]| Cases::from([("a/1.t".into(), cases.iter().copied().collect())]);
        let ran = set(&["a/1.t", "a/2.t"]);
        assert!(expected.compare(&cases(&[2, 4, 5]), &ran));
        assert!(!expected.compare(&cases(&[2, 4]), &ran), "one that passes");
        assert!(!expected.compare(&cases(&[1, 2, 4, 5]), &ran), "one more that fails");
        assert!(expected.compare(&Cases::new(), &set(&["a/2.t"])), "what was not asked for");
        assert!(expected.excuse(&set(&["g/3"])) && expected.excuse(&set(&[])));
        assert!(!expected.excuse(&set(&["a/1.t"])));
        assert!(parse("a/1.t 2").is_err(), "no reason");
        assert!(parse("a/1.t x why").is_err());
    }
}
