//! Which source files a crate reaches, and whether it tests anything.
//!
//! ```text
//!   src/lib.rs ── mod queue; ──▶ src/queue.rs ── mod schedule; ──▶ src/queue/schedule.rs
//!                                             └─ mod inner { mod deep; } ──▶ src/queue/inner/deep.rs
//! ```
//!
//! The formatter sets each `mod` on a line of its own and indents what is inside another, so that lines and their
//! indentation tell all there is to know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Ratchet, has_extension, read};
use crate::house::Member;
use crate::{Failure, Findings, root};

pub fn check(members: &[Member], files: &[PathBuf], ratchet: &mut Ratchet) -> Result<Findings, Failure> {
    let mut findings = Vec::new();
    for member in members {
        let directory = member.directory.strip_prefix(root())?;
        let reached = reached(member)?;
        // A package of its own inside of the member, as a fuzzer's harness is, has its own roots.
        let packages =
            files.iter().filter(|file| file.ends_with("Cargo.toml")).filter_map(|file| file.parent());
        let inner: Vec<&Path> = packages.filter(|p| p.starts_with(directory) && *p != directory).collect();
        let sources = files.iter().filter(|file| file.starts_with(directory) && has_extension(file, "rs"));
        let sources = sources.filter(|file| !inner.iter().any(|package| file.starts_with(package)));
        let sources: Vec<&PathBuf> = sources.collect();
        findings.extend(sources.iter().filter(|file| is_of_the_other_style(file)).map(|file| {
            format!("{} would be {}.rs", file.display(), file.parent().unwrap_or(file).display())
        }));
        let lost = sources.into_iter().filter(|file| !reached.contains(*file));
        findings.extend(lost.map(|file| format!("no module reaches {}", file.display())));
        if !has_tests(&reached)? && !ratchet.allows("untested", &member.name, 1) {
            findings.push(format!("{} has no test", member.name));
        }
    }
    Ok(findings)
}

/// A module with others inside is `x.rs` beside `x/`. What the tests of a crate share is not: `tests/x.rs` would be a test.
fn is_of_the_other_style(file: &Path) -> bool {
    file.ends_with("mod.rs") && file.components().any(|part| part.as_os_str() == "src")
}

fn has_tests(files: &BTreeSet<PathBuf>) -> Result<bool, Failure> {
    for file in files {
        let text = read(file)?;
        // The second form is a trial of `interop`, whose harness can skip what a machine lacks.
        if text.lines().any(|line| line.trim() == "#[test]" || line.trim_start().starts_with("trial(")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// All files of a crate that the compiler can come to, by their paths from the workspace's root.
fn reached(member: &Member) -> Result<BTreeSet<PathBuf>, Failure> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<(PathBuf, PathBuf)> = Vec::new();
    for target in &member.roots {
        let file = target.strip_prefix(root())?.to_owned();
        let home = file.parent().unwrap_or(Path::new("")).to_owned();
        next.push((file, home));
    }
    while let Some((file, home)) = next.pop() {
        if !root().join(&file).exists() || !reached.insert(file.clone()) {
            continue;
        }
        for path in declared(&read(&file)?) {
            next.extend(candidates(&file, &home, &path));
        }
    }
    Ok(reached)
}

/// Where a module declared in `file` may lie, each with the directory in which its own modules lie.
fn candidates(file: &Path, home: &Path, declared: &Declared) -> Vec<(PathBuf, PathBuf)> {
    if let Some(path) = &declared.path {
        let beside = file.parent().unwrap_or(Path::new("")).join(path);
        let home = beside.parent().unwrap_or(Path::new("")).to_owned();
        return vec![(normalised(&beside), normalised(&home))];
    }
    let inside = home.join(&declared.name);
    vec![(inside.with_extension("rs"), inside.clone()), (inside.join("mod.rs"), inside)]
}

/// Without the `..` that `#[path]` may hold.
fn normalised(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}

#[derive(Debug, PartialEq, Eq)]
struct Declared {
    /// The module's path inside the file's own directory: `inner/deep`.
    name: PathBuf,
    /// What a `#[path = "…"]` before it says.
    path: Option<String>,
}

fn declared(text: &str) -> Vec<Declared> {
    let mut found = Vec::new();
    let mut around: Vec<(usize, String)> = Vec::new();
    let mut path = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code == "}" {
            around.retain(|(at, _)| *at < indent);
        }
        if let Some(attribute) = code.strip_prefix("#[path = \"") {
            path = attribute.split('"').next().map(str::to_owned);
        } else if let Some((name, is_inline)) = module(code) {
            if is_inline {
                around.push((indent, name.to_owned()));
            } else {
                let name = around.iter().map(|(_, n)| n.as_str()).chain([name]).collect();
                found.push(Declared { name, path: path.take() });
            }
        }
    }
    found
}

/// The module that a line declares, and whether its body follows at once.
fn module(code: &str) -> Option<(&str, bool)> {
    let code = code.strip_prefix("pub").map_or(code, |rest| {
        let rest = rest.trim_start();
        rest.split_once(") ").filter(|_| rest.starts_with('(')).map_or(rest, |(_, rest)| rest)
    });
    let rest = code.strip_prefix("mod ")?;
    let rest = rest.strip_prefix("r#").unwrap_or(rest);
    match rest.strip_suffix(';') {
        Some(name) => Some((name, false)),
        None => rest.strip_suffix(" {").map(|name| (name, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(name: &str) -> Declared {
        Declared { name: name.into(), path: None }
    }

    #[test]
    fn modules_are_found_whatever_their_visibility() {
        let text = "mod a;\npub mod b;\npub(crate) mod c;\npub(in crate::x) mod d;\nmod r#type;\n// mod e;\n";
        assert_eq!(declared(text), ["a", "b", "c", "d", "type"].map(plain));
    }

    #[test]
    fn a_module_inside_another_lies_in_its_directory() {
        assert_eq!(declared("mod a {\n    mod b;\n}\nmod c;\n"), ["a/b", "c"].map(plain));
    }

    #[test]
    fn one_style_of_modules_is_found_fault_with() {
        for (file, is_other) in [
            ("engine/zap/src/leaf/mod.rs", true),
            ("engine/zap/src/leaf.rs", false),
            ("engine/vdev/tests/common/mod.rs", false),
        ] {
            assert_eq!(is_of_the_other_style(Path::new(file)), is_other, "{file}");
        }
    }

    #[test]
    fn a_path_attribute_names_the_file() {
        let found = declared("#[path = \"../x.rs\"]\nmod a;\n");
        assert_eq!(found, [Declared { name: "a".into(), path: Some("../x.rs".into()) }]);
        let files = candidates(Path::new("t/b/c.rs"), Path::new("t/b/c"), &found[0]);
        assert_eq!(files, [("t/x.rs".into(), "t".into())]);
    }

    #[test]
    fn a_file_lies_beside_its_parent_or_in_a_directory_of_its_name() {
        let files = candidates(Path::new("src/a.rs"), Path::new("src/a"), &plain("b"));
        let home = PathBuf::from("src/a/b");
        assert_eq!(files, [("src/a/b.rs".into(), home.clone()), ("src/a/b/mod.rs".into(), home)]);
    }
}
