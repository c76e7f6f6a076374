//! Links in the documents: the file exists, and has the heading that the link names.

use std::path::{Path, PathBuf};

use super::{has_extension, read};
use crate::{Failure, Findings, root};

pub fn check(files: &[PathBuf]) -> Result<Findings, Failure> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| has_extension(file, "md")) {
        for target in targets(&read(file)?) {
            if !leads_somewhere(file, &target)? {
                findings.push(format!("{}: the link to {target} is dead", file.display()));
            }
        }
    }
    Ok(findings)
}

fn leads_somewhere(from: &Path, target: &str) -> Result<bool, Failure> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(true);
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let file =
        if path.is_empty() { from.to_owned() } else { from.parent().unwrap_or(Path::new("")).join(path) };
    if !root().join(&file).exists() {
        return Ok(false);
    }
    match heading {
        Some(heading) if has_extension(&file, "md") => {
            Ok(headings(&read(&file)?).contains(&heading.to_owned()))
        }
        _ => Ok(true),
    }
}

/// The targets of `[text](target)`, outside of fenced blocks and of code.
fn targets(text: &str) -> Vec<String> {
    prose(text).flat_map(of_line).collect()
}

fn of_line(line: &str) -> Vec<String> {
    let spoken: String = line.split('`').step_by(2).collect();
    let after = spoken.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// The lines that are not in a fenced block.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// The anchors that a reader of Markdown makes of the headings.
fn headings(text: &str) -> Vec<String> {
    let lines = prose(text).filter(|line| line.starts_with('#'));
    lines.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_in_prose_only() {
        let text = "a [b](c.md) and [d](e.md#f)\n```\n[no](x)\n```\n`[no](y)`\n";
        assert_eq!(targets(text), ["c.md", "e.md#f"]);
    }

    #[test]
    fn a_heading_becomes_an_anchor() {
        assert_eq!(headings("# A write, followed\n## `zio`'s place\n"), ["a-write-followed", "zios-place"]);
    }
}
