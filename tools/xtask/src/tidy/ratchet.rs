//! What is still wrong, and may only become less wrong.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Failure;

/// `RULE SUBJECT NUMBER` in each line: the subject breaks the rule by no more than the number.
#[derive(Debug, Default)]
pub struct Ratchet {
    file: &'static str,
    entries: BTreeMap<(String, String), Entry>,
}

#[derive(Debug)]
struct Entry {
    allowed: usize,
    found: usize,
}

impl Ratchet {
    /// Reads the list that `file` holds, a path from the root.
    pub fn load(file: &'static str) -> Result<Ratchet, Failure> {
        Ratchet::parse(file, &super::read(Path::new(file))?)
    }

    fn parse(file: &'static str, text: &str) -> Result<Ratchet, Failure> {
        let mut entries = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let [rule, subject, number] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                return Err(format!("{file}: {line:?} is not RULE SUBJECT NUMBER").into());
            };
            let entry = Entry { allowed: number.parse()?, found: 0 };
            entries.insert((rule.to_owned(), subject.to_owned()), entry);
        }
        Ok(Ratchet { file, entries })
    }

    /// Whether `subject` may break `rule` by `found`.
    pub fn allows(&mut self, rule: &str, subject: &str, found: usize) -> bool {
        match self.entries.get_mut(&(rule.to_owned(), subject.to_owned())) {
            Some(entry) => {
                entry.found = found;
                found <= entry.allowed
            }
            None => false,
        }
    }

    /// Entries that allow more than is needed: the ratchet turns one way only.
    pub fn slack(&self) -> Vec<String> {
        let loose = self.entries.iter().filter(|(_, entry)| entry.found < entry.allowed);
        loose.map(|((rule, subject), e)| turn(self.file, rule, subject, e)).collect()
    }
}

fn turn(file: &str, rule: &str, subject: &str, entry: &Entry) -> String {
    match entry.found {
        0 => format!("{file}: {rule} {subject} is good now: remove the line"),
        found => format!("{file}: {rule} {subject} is down to {found}: lower it from {}", entry.allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_allows_its_number_and_no_more() {
        let mut ratchet = Ratchet::parse("tools/xtask/ratchet.txt", "# why\nlines a.rs 900\n").unwrap();
        assert!(ratchet.allows("lines", "a.rs", 900));
        assert!(ratchet.slack().is_empty());
        assert!(!ratchet.allows("lines", "a.rs", 901));
        assert!(!ratchet.allows("lines", "b.rs", 801));
    }

    #[test]
    fn an_entry_that_allows_too_much_must_be_lowered() {
        let mut ratchet = Ratchet::parse("tools/xtask/ratchet.txt", "lines a.rs 900\n").unwrap();
        assert!(ratchet.allows("lines", "a.rs", 850));
        assert_eq!(
            ratchet.slack(),
            ["tools/xtask/ratchet.txt: lines a.rs is down to 850: lower it from 900"]
        );
        assert_eq!(Ratchet::parse("tools/xtask/ratchet.txt", "tests x 1").unwrap().slack().len(), 1);
    }
}
