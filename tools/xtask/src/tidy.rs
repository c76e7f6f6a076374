//! What rots unseen: grown files, untested crates, files no module reaches, dead links, promises left in comments,
//! dependencies nobody uses or owns.
//!
//! ```text
//!   text           one file at a time: its length, its words, the length of its comments
//!   modules        from each crate's roots along `mod`: which files are reached, where tests are
//!   links          in the documents: does the target exist, does it have that heading
//!   dependencies   the root manifest against the crates' manifests and sources
//! ```
//!
//! A rule that cannot hold yet is ratcheted, not waived: `tools/xtask/ratchet.txt` lists what is still wrong and how
//! wrong, and an entry that has become better than its number must be lowered or go.

mod dependencies;
mod links;
mod modules;
mod ratchet;
mod text;

use std::path::{Path, PathBuf};

use crate::{Failure, Findings, house, root};

pub use ratchet::Ratchet;

pub fn check() -> Result<Findings, Failure> {
    let members = house::members()?;
    let mut ratchet = Ratchet::load("tools/xtask/ratchet.txt")?;
    let files = files()?;
    let mut findings = text::check(&files, &mut ratchet)?;
    findings.extend(modules::check(&members, &files, &mut ratchet)?);
    findings.extend(links::check(&files)?);
    findings.extend(dependencies::check(&members)?);
    findings.extend(ratchet.slack());
    Ok(findings)
}

/// Every file of the repository that someone wrote, by its path from the root, in order.
fn files() -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    walk(Path::new(""), &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(root().join(directory))? {
        let entry = entry?;
        let name = entry.file_name();
        if name == ".git" || name == "target" {
            continue;
        }
        let path = directory.join(&name);
        if entry.file_type()?.is_dir() {
            walk(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Reads a file of ours by its path from the root.
fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(root().join(path)).map_err(|e| format!("{}: {e}", path.display()).into())
}
