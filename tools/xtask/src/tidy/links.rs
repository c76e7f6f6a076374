//! Links in the documents: the file exists, and has the heading that the link names. Sources that CONTRIBUTING names in
//! code, `nbd/plan.rs`, are there too: what is added is looked for where it says.

use std::path::{Path, PathBuf};

use super::{has_extension, read};
use crate::{Failure, Findings, root};

/// What says where things are added.
const GUIDE: &str = "CONTRIBUTING.md";

pub fn check(files: &[PathBuf]) -> Result<Findings, Failure> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| has_extension(file, "md")) {
        for target in targets(&read(file)?) {
            if !leads_somewhere(file, &target)? {
                findings.push(format!("{}: the link to {target} is dead", file.display()));
            }
        }
        if file.ends_with(GUIDE) {
            let gone =
                named(&read(file)?).into_iter().filter(|name| !files.iter().any(|f| is_named(f, name)));
            findings.extend(gone.map(|name| format!("{GUIDE}: there is no {name}")));
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

/// The sources that a text names in code: `nbd/wire/option.rs`.
fn named(text: &str) -> Vec<String> {
    let quoted = |line: &str| line.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>();
    let all = prose(text).flat_map(quoted);
    all.filter(|word| word.ends_with(".rs") && !word.contains(' ')).collect()
}

/// Whether a file is called so: by the end of its path, in which `src` may be left out.
fn is_named(file: &Path, name: &str) -> bool {
    let path = file.display().to_string();
    let is_end = |path: &str| path == name || path.ends_with(&format!("/{name}"));
    is_end(&path) || is_end(&path.replace("/src/", "/"))
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
    fn sources_are_named_by_the_end_of_their_path() {
        let text = "a [`nbd/plan.rs`](x) and `plan.rs`, `a b.rs`, `x.md`\n```\n`no.rs`\n```\n";
        assert_eq!(named(text), ["nbd/plan.rs", "plan.rs"]);
        let file = Path::new("fronts/nbd/src/plan.rs");
        for name in ["nbd/plan.rs", "plan.rs", "nbd/src/plan.rs", "fronts/nbd/src/plan.rs"] {
            assert!(is_named(file, name), "{name}");
        }
        for name in ["an.rs", "bd/plan.rs", "nbd/read.rs"] {
            assert!(!is_named(file, name), "{name}");
        }
    }

    #[test]
    fn a_heading_becomes_an_anchor() {
        assert_eq!(headings("# A write, followed\n## `zio`'s place\n"), ["a-write-followed", "zios-place"]);
    }
}
