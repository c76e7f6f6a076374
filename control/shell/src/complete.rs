//! What a half-typed line could become. Pure.

use std::collections::BTreeMap;

/// What can be said where one is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub first: Vec<String>,
    /// What may follow a first word.
    pub after: BTreeMap<String, Vec<String>>,
}

/// Where the word begins that is being typed, and what it could be.
pub(crate) fn complete(line: &str, candidates: &Candidates) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, typed) = line.split_at(start);
    let words: Vec<&str> = before.split_whitespace().filter(|w| *w != "confirm").collect();
    let all: &[String] = match words.first() {
        None => &candidates.first,
        Some(first) => candidates.after.get(*first).map_or(&[], Vec::as_slice),
    };
    (start, all.iter().filter(|c| c.starts_with(typed)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_a_command_and_the_next_depends_on_it() {
        let list = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let candidates = Candidates {
            first: list(&["select", "set", "show"]),
            after: BTreeMap::from([
                ("select".into(), list(&["mysql", "web"])),
                ("set".into(), list(&["logbias=", "quota="])),
            ]),
        };
        for (line, start, found) in [
            ("", 0, &["select", "set", "show"][..]),
            ("se", 0, &["select", "set"]),
            ("select ", 7, &["mysql", "web"]),
            ("select m", 7, &["mysql"]),
            ("set lo", 4, &["logbias="]),
            ("set quota=1G lo", 13, &["logbias="]),
            ("confirm se", 8, &["select", "set"]),
            ("show x", 5, &[]),
        ] {
            assert_eq!(complete(line, &candidates), (start, list(found)), "{line}");
        }
    }
}
