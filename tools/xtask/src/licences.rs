//! Every crate we build from has a licence under which it may be given away together with MIT and Apache-2.0 code.
//!
//! A licence is an expression: `MIT OR Apache-2.0`, `(MIT OR Apache-2.0) AND Unicode-3.0`. An `OR` is our choice,
//! so one acceptable side is enough; an `AND` binds us to both. [`Parser`] evaluates it while reading.

use std::process::Command;

use crate::house::{self, list, text};
use crate::{Failure, Findings};

/// Permissive licences that ask for no more than a notice.
const ACCEPTED: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "CC0-1.0",
    "BSL-1.0",
    "Unlicense",
    "Unicode-3.0",
    "Unicode-DFS-2016",
];

/// Exceptions that only give more freedom.
const EXCEPTIONS: &[&str] = &["LLVM-exception"];

pub fn check() -> Result<Findings, Failure> {
    let metadata = house::metadata(&["--filter-platform", &host()?])?;
    let packages = list(&metadata["packages"]);
    Ok(packages
        .iter()
        .filter_map(|package| objection(&text(&package["name"]), &text(&package["license"])))
        .collect())
}

/// The target we are built for: crates that only other systems need are not fetched.
fn host() -> Result<String, Failure> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc does not say its host")?.to_owned())
}

fn objection(name: &str, licence: &str) -> Option<String> {
    if licence.is_empty() {
        return Some(format!("{name} states no licence"));
    }
    match acceptable(licence) {
        Some(true) => None,
        Some(false) => Some(format!("{name} is under {licence}, which is not among those we accept")),
        None => Some(format!("{name} states its licence as {licence:?}, which is no licence expression")),
    }
}

/// Whether an expression can be satisfied with accepted licences alone; `None` when it cannot be read.
fn acceptable(expression: &str) -> Option<bool> {
    // Before `OR` there was a slash, and old crates still carry it.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), next: 0 };
    let answer = parser.or()?;
    (parser.next == parser.words.len()).then_some(answer)
}

/// Recursive descent: `or` is made of `and`s, an `and` of terms.
struct Parser<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn or(&mut self) -> Option<bool> {
        let mut answer = self.and()?;
        while self.take("OR") {
            answer |= self.and()?;
        }
        Some(answer)
    }

    fn and(&mut self) -> Option<bool> {
        let mut answer = self.term()?;
        while self.take("AND") {
            answer &= self.term()?;
        }
        Some(answer)
    }

    fn term(&mut self) -> Option<bool> {
        if self.take("(") {
            let answer = self.or()?;
            return self.take(")").then_some(answer);
        }
        let licence = self.word()?;
        let excepted = if self.take("WITH") { EXCEPTIONS.contains(&self.word()?) } else { true };
        Some(ACCEPTED.contains(&licence) && excepted)
    }

    fn take(&mut self, expected: &str) -> bool {
        let found = self.words.get(self.next) == Some(&expected);
        self.next += usize::from(found);
        found
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = *self.words.get(self.next)?;
        self.next += 1;
        (!["OR", "AND", "WITH", "(", ")"].contains(&word)).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_good_side_of_an_or_is_enough() {
        assert_eq!(acceptable("MIT OR GPL-3.0-only"), Some(true));
        assert_eq!(acceptable("MIT/Apache-2.0"), Some(true));
        assert_eq!(acceptable("GPL-2.0-only OR CDDL-1.0"), Some(false));
    }

    #[test]
    fn both_sides_of_an_and_must_be_good() {
        assert_eq!(acceptable("(MIT OR Apache-2.0) AND Unicode-3.0"), Some(true));
        assert_eq!(acceptable("MIT AND CDDL-1.0"), Some(false));
        assert_eq!(acceptable("MIT OR Apache-2.0 AND CDDL-1.0"), Some(true), "AND binds closer");
    }

    #[test]
    fn an_exception_must_be_known() {
        assert_eq!(acceptable("Apache-2.0 WITH LLVM-exception"), Some(true));
        assert_eq!(acceptable("Apache-2.0 WITH Classpath-exception-2.0"), Some(false));
    }

    #[test]
    fn nonsense_is_not_an_expression() {
        for nonsense in ["", "OR MIT", "(MIT", "MIT Apache-2.0", "MIT AND"] {
            assert_eq!(acceptable(nonsense), None, "{nonsense}");
        }
    }
}
