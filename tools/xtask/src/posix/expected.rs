//! Failures that are expected: a line each, `NAME CASES reason`.
//!
//! CASES are numbers and ranges of them; 0 is all of a test that has no numbered cases, `-` a test that does not run, and
//! `+` one that is run only when it is named, for it takes too long.

use crate::{Failure, root};
use std::collections::{BTreeMap, BTreeSet};

/// The cases that fail, by test; a test without numbered cases fails as case 0.
pub type Cases = BTreeMap<String, BTreeSet<u32>>;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub failing: Cases,
    /// These may not run: for want of a program of the machine, say.
    pub not_run: BTreeSet<String>,
    /// These are run only when they are named.
    pub long: BTreeSet<String>,
    pub why: BTreeMap<String, String>,
}

pub fn read(suite: &str) -> Result<Expected, Failure> {
    let path = root().join("fronts/fuse/tests/posix").join(format!("{suite}.txt"));
    Expected::parse(&std::fs::read_to_string(&path)?).map_err(|e| format!("{}: {e}", path.display()).into())
}

impl Expected {
    pub fn parse(text: &str) -> Result<Expected, Failure> {
        let mut expected = Expected::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let (Some(name), Some(numbers), reason) = (words.next(), words.next(), words.collect::<Vec<_>>())
            else {
                return Err(format!("no test and cases in '{line}'").into());
            };
            if reason.is_empty() {
                return Err(format!("no reason in '{line}'").into());
            }
            expected.why.insert(name.into(), reason.join(" "));
            match numbers {
                "-" => {
                    expected.not_run.insert(name.into());
                }
                "+" => {
                    expected.long.insert(name.into());
                }
                _ => {
                    for range in numbers.split(',') {
                        let (from, to) = range.split_once('-').unwrap_or((range, range));
                        let cases = expected.failing.entry(name.into()).or_default();
                        cases.extend(from.parse::<u32>()?..=to.parse::<u32>()?);
                    }
                }
            }
        }
        Ok(expected)
    }

    /// Says what differs among the tests that ran; returns how much.
    pub fn compare(&self, failed: &Cases, ran: &BTreeSet<String>) -> usize {
        let mut findings = 0;
        let none = BTreeSet::new();
        for name in ran {
            let (expected, failed) =
                (self.failing.get(name).unwrap_or(&none), failed.get(name).unwrap_or(&none));
            for case in failed.difference(expected) {
                println!("{name} {case}: fails, and is not expected to");
                findings += 1;
            }
            for case in expected.difference(failed) {
                println!("{name} {case}: is expected to fail, and does not");
                findings += 1;
            }
        }
        findings
    }

    /// As [`Expected::compare`], of tests that did not run.
    pub fn excuse(&self, not_run: &BTreeSet<String>) -> usize {
        let unexpected = not_run.difference(&self.not_run);
        unexpected.inspect(|name| println!("{name}: does not run, and is expected to")).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_what_is_listed_neither_more_nor_less() {
        let expected =
            Expected::parse("# why\n\na/1.t 2,4-5 the kernel\ng/3 - no such program\ng/4 + an hour\n")
                .unwrap();
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        let cases = |cases: &[u32]| Cases::from([("a/1.t".into(), cases.iter().copied().collect())]);
        let ran = set(&["a/1.t", "a/2.t"]);
        assert_eq!(expected.compare(&cases(&[2, 4, 5]), &ran), 0);
        assert_eq!(expected.compare(&cases(&[2, 4]), &ran), 1, "one that passes");
        assert_eq!(expected.compare(&cases(&[1, 2, 4, 5]), &ran), 1, "one more that fails");
        assert_eq!(expected.compare(&Cases::new(), &set(&["a/2.t"])), 0, "what was not asked for");
        assert_eq!(expected.excuse(&set(&["g/3"])) + expected.excuse(&set(&[])), 0);
        assert_eq!(expected.excuse(&set(&["a/1.t"])), 1);
        assert_eq!((expected.long, expected.why["g/3"].as_str()), (set(&["g/4"]), "no such program"));
        assert!(Expected::parse("a/1.t 2").is_err(), "no reason");
        assert!(Expected::parse("a/1.t x why").is_err());
    }
}
