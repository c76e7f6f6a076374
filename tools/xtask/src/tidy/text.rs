//! One file at a time: its length, the words in it, the length of its comments.

use std::path::{Path, PathBuf};

use super::{Ratchet, has_extension, read};
use crate::{Failure, Findings};

/// At this length one asks what the second theory of the file is.
const LINES_MAX: usize = 800;

/// Comments are read beside one another on one screen; rustfmt keeps the code shorter, but leaves comments alone.
const COMMENT_COLUMNS_MAX: usize = 125;

/// Marks of unfinished work, in two halves so that this file does not hold them.
const FORBIDDEN: &[(&str, &str)] = &[("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("to", "do!("), ("db", "g!(")];

pub fn check(files: &[PathBuf], ratchet: &mut Ratchet) -> Result<Findings, Failure> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| has_extension(file, "rs")) {
        findings.extend(of_file(file, &read(file)?, ratchet));
    }
    Ok(findings)
}

fn of_file(file: &Path, text: &str, ratchet: &mut Ratchet) -> Findings {
    let name = file.display().to_string();
    let lines = text.lines().count();
    let mut findings = Vec::new();
    if lines > LINES_MAX && !ratchet.allows("lines", &name, lines) {
        findings.push(format!("{name} has {lines} lines: what is its second theory? (at most {LINES_MAX})"));
    }
    for (number, line) in text.lines().enumerate() {
        findings.extend(of_line(line).map(|finding| format!("{name}:{}: {finding}", number + 1)));
    }
    findings
}

fn of_line(line: &str) -> Option<String> {
    if let Some(word) = FORBIDDEN.iter().map(|(a, b)| format!("{a}{b}")).find(|word| has_word(line, word)) {
        return Some(format!("{word} is left: finish it, or say in the documents what is absent"));
    }
    let columns = line.chars().count();
    (line.trim_start().starts_with("//") && columns > COMMENT_COLUMNS_MAX)
        .then(|| format!("a comment of {columns} columns (at most {COMMENT_COLUMNS_MAX})"))
}

/// Whether `word` stands in `line` and is not a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let is_inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !is_inside(before) && (word.ends_with('(') || !is_inside(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_unfinished_work_are_found_as_words() {
        let mark = FORBIDDEN[0].0.to_owned() + FORBIDDEN[0].1;
        assert!(of_line(&format!("// {mark}: later")).is_some());
        assert!(of_line(&format!("let a{mark}b = 1;")).is_none());
    }

    #[test]
    fn a_comment_has_at_most_125_columns() {
        assert!(of_line(&format!("    // {}", "x".repeat(118))).is_none());
        assert!(of_line(&format!("    // {}", "x".repeat(119))).is_some());
        assert!(of_line(&format!("    let s = \"{}\";", "x".repeat(200))).is_none(), "that is rustfmt's");
    }

    #[test]
    fn a_long_file_is_found_unless_ratcheted() {
        let text = "\n".repeat(LINES_MAX + 1);
        assert_eq!(of_file(Path::new("a.rs"), &text, &mut Ratchet::default()).len(), 1);
        assert!(of_file(Path::new("a.rs"), &text[1..], &mut Ratchet::default()).is_empty());
    }
}
