//! What came of a suite: a line of a table, and below the tables what is excused, and why.
//!
//! ```text
//!   | suite       | ran                  | passed | excused |          |
//!   |-------------|----------------------|--------|---------|----------|
//!   | `pjdfstest` | 238 files, 8798 cases | 238   | 0       |          |
//!   | `xfstests`  | 787 generic tests, 2 | 1      | 1       | 1 is new |   findings
//!
//!   | excused                     | why                      |
//!   |-----------------------------|--------------------------|
//!   | generic/003 375 fail        | one reason for both      |
//! ```

use super::expected::{Cases, Expected};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub suite: &'static str,
    /// How much there was.
    pub what: String,
    pub passed: String,
    /// The names of what did not pass and may, by how it went and why.
    excused: BTreeMap<(String, &'static str), Vec<String>>,
    /// What is not as it should be.
    pub findings: usize,
}

const FAILS: &str = "fail";
const NOT_RUN: &str = "do not run";
const TOO_LONG: &str = "are run only by name";

impl Account {
    pub fn new(suite: &'static str, what: String, passed: String) -> Account {
        Account { suite, what, passed, ..Account::default() }
    }

    /// Takes down what of these is expected, with the reasons.
    pub fn excuse(
        &mut self,
        expected: &Expected,
        failed: &Cases,
        not_run: &BTreeSet<String>,
        left_out: &[String],
    ) {
        let failed = failed.keys().filter(|name| expected.failing.contains_key(*name)).map(|n| (n, FAILS));
        let not_run = not_run.iter().filter(|name| expected.not_run.contains(*name)).map(|n| (n, NOT_RUN));
        for (name, how) in failed.chain(not_run).chain(left_out.iter().map(|n| (n, TOO_LONG))) {
            let why = expected.why.get(name).cloned().unwrap_or_default();
            self.excused.entry((why, how)).or_default().push(name.clone());
        }
    }

    pub fn is_well(&self) -> bool {
        self.findings == 0
    }

    fn line(&self) -> String {
        let findings = match self.findings {
            0 => String::new(),
            findings => format!("{findings} not as listed"),
        };
        let excused: usize = self.excused.values().map(Vec::len).sum();
        format!("| `{}` | {} | {} | {excused} | {findings} |", self.suite, self.what, self.passed)
    }
}

/// As Markdown.
pub fn table(accounts: &[Account]) -> String {
    let mut text = String::from("| suite | ran | passed | excused | |\n|---|---|---|---|---|\n");
    for account in accounts {
        text += &format!("{}\n", account.line());
    }
    if accounts.iter().all(|account| account.excused.is_empty()) {
        return text;
    }
    text += "\n| excused | why |\n|---|---|\n";
    for ((why, how), names) in accounts.iter().flat_map(|account| &account.excused) {
        text += &format!("| {} {how} | {why} |\n", shortly(names));
    }
    text
}

/// `generic/003 375` for two tests of one group.
fn shortly(names: &[String]) -> String {
    let mut text = String::new();
    let mut group = None;
    for name in names {
        let (of, number) = name.rsplit_once('/').unwrap_or(("", name));
        let word = if group == Some(of) { number } else { name };
        group = Some(of);
        text += if text.is_empty() { "" } else { " " };
        text += word;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excuses_stand_by_their_reasons_and_findings_are_counted() {
        let expected =
            Expected::parse("g/1 0 the clock\ng/3 0 the clock\ng/4 - no gdbm\ng/5 + an hour\n").unwrap();
        let mut account = Account::new("suite", "6 tests".into(), "1".into());
        let failed = ["g/1", "g/2", "g/3"].map(|name| (name.to_string(), BTreeSet::from([0])));
        account.excuse(&expected, &failed.into(), &BTreeSet::from(["g/4".into()]), &["g/5".into()]);
        account.findings = 1;
        assert!(!account.is_well());
        let text = table(&[account]);
        assert!(text.contains("| `suite` | 6 tests | 1 | 4 | 1 not as listed |\n"), "{text}");
        assert!(text.contains("| g/1 3 fail | the clock |\n"), "{text}");
        assert!(text.contains("| g/4 do not run | no gdbm |\n"), "{text}");
        assert!(text.contains("| g/5 are run only by name | an hour |\n"), "{text}");
        assert!(!table(&[Account::default()]).contains("why"), "nothing is excused");
    }
}
