//! A dependency has a reason, an owner, and a crate that uses it.
//!
//! In the root manifest each dependency from others ends in a comment:
//!
//! ```text
//!   sha2 = { version = "0.11" }    # codec: SHA-256 and SHA-512/256, with SHA-NI found at run time
//!                                    ▲      ▲ the reason
//!                                    └ the owner: a crate, or a plane; more than one by commas
//! ```
//!
//! Only its owners use it in what users run; tests and tools may use what they like.

use std::path::{Path, PathBuf};

use super::{has_extension, read, walk};
use crate::house::{self, Member, Plane};
use crate::{Failure, Findings, root};

/// One line of `[workspace.dependencies]`.
#[derive(Debug, PartialEq, Eq)]
struct Declared {
    name: String,
    ours: bool,
    owners: Vec<String>,
    has_reason: bool,
}

pub fn check(members: &[Member]) -> Result<Findings, Failure> {
    let declared = declared(&read(Path::new("Cargo.toml"))?);
    let mut findings: Findings = declared.iter().flat_map(|d| of_declared(d, members)).collect();
    for member in members {
        findings.extend(unused_by(member)?);
    }
    Ok(findings)
}

fn of_declared(declared: &Declared, members: &[Member]) -> Findings {
    let name = &declared.name;
    let uses = |development: bool| {
        let users = members.iter().filter(move |member| {
            member.dependencies.iter().any(|d| d.name == *name && (development || !d.development))
        });
        users.map(|member| member.name.as_str()).collect::<Vec<_>>()
    };
    if uses(true).is_empty() {
        return vec![format!("Cargo.toml: no crate uses {name}")];
    }
    if declared.ours {
        return Vec::new();
    }
    if !declared.has_reason {
        return vec![format!("Cargo.toml: {name} has no comment `owner: reason`")];
    }
    let foreign = uses(false).into_iter().filter(|user| !is_free(user) && !owns(&declared.owners, user));
    foreign
        .map(|user| format!("{user} uses {name}, which belongs to {}", declared.owners.join(", ")))
        .collect()
}

/// Tools and helpers are in no release.
fn is_free(user: &str) -> bool {
    matches!(house::plane(user), Some(Plane::Tools | Plane::Helpers))
}

fn owns(owners: &[String], user: &str) -> bool {
    let plane = match house::plane(user) {
        Some(Plane::Engine) => "engine",
        Some(Plane::Fronts) => "fronts",
        Some(Plane::Control) => "control",
        _ => "tests",
    };
    owners.iter().any(|owner| owner == user || owner == plane)
}

fn declared(manifest: &str) -> Vec<Declared> {
    let table = manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let lines = table.take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(of_line).collect()
}

fn of_line(line: &str) -> Option<Declared> {
    let (name, rest) = line.split_once(" = ")?;
    let comment = rest.split_once(" # ").map(|(_, comment)| comment).unwrap_or_default();
    let (owners, reason) = comment.split_once(": ").unwrap_or_default();
    Some(Declared {
        name: name.to_owned(),
        ours: rest.contains("path = "),
        owners: owners.split(", ").map(str::to_owned).collect(),
        has_reason: !reason.trim().is_empty(),
    })
}

/// The dependencies whose name occurs nowhere in the sources of the crate that asks for them.
fn unused_by(member: &Member) -> Result<Findings, Failure> {
    let mut files: Vec<PathBuf> = Vec::new();
    walk(member.directory.strip_prefix(root())?, &mut files)?;
    let mut sources = String::new();
    for file in files.iter().filter(|file| has_extension(file, "rs")) {
        sources += &read(file)?;
    }
    let unused = member.dependencies.iter().filter(|d| !mentions(&sources, &d.name.replace('-', "_")));
    Ok(unused.map(|d| format!("{} asks for {} and does not use it", member.name, d.name)).collect())
}

/// Whether a crate's name stands where a path begins: `name::`, `use name;`.
fn mentions(sources: &str, name: &str) -> bool {
    sources.match_indices(name).any(|(at, _)| {
        let before = sources[..at].chars().next_back();
        let after = &sources[at + name.len()..];
        let begins = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        begins && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_reason_are_read_from_the_comment() {
        let manifest = "[workspace.dependencies]\n# L0\nunits = { path = \"e/units\" }\n\
                        a = \"1\"   # engine, nbd: to wait\nb = \"1\"\n[profile]\nc = \"1\" # x: y\n";
        let found = declared(manifest);
        assert_eq!(found.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["units", "a", "b"]);
        assert!(found[0].ours && found[1].has_reason && !found[2].has_reason);
        assert_eq!(found[1].owners, ["engine", "nbd"]);
    }

    #[test]
    fn a_plane_owns_for_its_crates() {
        let owners = ["engine".to_owned(), "nbd".to_owned()];
        assert!(owns(&owners, "zio") && owns(&owners, "nbd"));
        assert!(!owns(&owners, "cli"));
    }

    #[test]
    fn a_crate_is_used_where_a_path_begins_with_it() {
        assert!(mentions("use sha2::Sha256;", "sha2") && mentions("sha2::x()", "sha2"));
        assert!(!mentions("let my_sha2::x", "sha2") && !mentions("// sha2 is fine", "sha2"));
    }
}
