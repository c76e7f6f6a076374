//! The documents as pages of a site, by mdbook: `cargo xtask site`.
//!
//! `docs/SUMMARY.md` is the table of contents; [`check`] wants every page of `docs` in it. The site is built from a copy
//! below `target/site`, in which the front page lies beside the others and links into the sources of the program lead to
//! files that are no pages. mdbook is installed below `target` when the machine has none; that takes minutes, so it is no
//! part of the check.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, Findings, house, root};

const SUMMARY: &str = "docs/SUMMARY.md";
const FRONT: &str = "../README.md";
const BOOK: &str =
    "[book]\ntitle = \"Cenote\"\nlanguage = \"en\"\n\n[output.html]\nno-section-label = true\n";

/// Builds the site.
pub fn build() -> Result<bool, Failure> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |d| root().join(d));
    let site = target.join("site");
    if site.exists() {
        std::fs::remove_dir_all(&site)?;
    }
    std::fs::create_dir_all(&site)?;
    let source = site.join("src");
    let copied = Command::new("cp").arg("-r").arg(root().join("docs")).arg(&source).status()?;
    if !copied.success() {
        return Err("the documents cannot be copied".into());
    }
    let front = std::fs::read_to_string(root().join("README.md"))?;
    std::fs::write(source.join("README.md"), front.replace("](docs/", "]("))?;
    let summary = std::fs::read_to_string(source.join("SUMMARY.md"))?;
    std::fs::write(source.join("SUMMARY.md"), summary.replace(FRONT, "README.md"))?;
    std::fs::write(site.join("book.toml"), BOOK)?;
    let done = Command::new(mdbook(&target)?).arg("build").arg(&site).status()?.success();
    if done {
        println!("the site is in {}", site.join("book").display());
    }
    Ok(done)
}

/// The machine's own mdbook, or one in the target directory.
fn mdbook(target: &Path) -> Result<PathBuf, Failure> {
    let has_own =
        Command::new("mdbook").arg("--version").output().is_ok_and(|output| output.status.success());
    if has_own {
        return Ok("mdbook".into());
    }
    let place = target.join("mdbook");
    let program = place.join("bin/mdbook");
    if !program.exists() {
        let mut cargo = Command::new(house::cargo());
        cargo.args(["install", "--locked", "--no-default-features", "mdbook", "--root"]).arg(&place);
        if !cargo.status()?.success() {
            return Err("mdbook cannot be installed".into());
        }
    }
    Ok(program)
}

/// A sentence for each page of `docs` that the table of contents does not list; it lists nothing that is not there, which
/// the links tell.
pub fn check(files: &[PathBuf]) -> Result<Findings, Failure> {
    let summary = std::fs::read_to_string(root().join(SUMMARY))?;
    Ok(unlisted(files, &summary))
}

fn unlisted(files: &[PathBuf], summary: &str) -> Findings {
    let pages = files.iter().filter_map(|file| file.strip_prefix("docs").ok());
    let pages =
        pages.filter(|page| page.extension().is_some_and(|e| e == "md") && *page != Path::new("SUMMARY.md"));
    let lost = pages.filter(|page| !summary.contains(&format!("]({})", page.display())));
    lost.map(|page| format!("{SUMMARY} does not list {}", page.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_the_contents_do_not_list_is_found() {
        let files =
            ["docs/a.md", "docs/rfd/1.md", "docs/SUMMARY.md", "docs/x.svg", "README.md"].map(PathBuf::from);
        assert_eq!(unlisted(&files, "- [A](a.md)\n"), ["docs/SUMMARY.md does not list rfd/1.md"]);
        assert!(unlisted(&files, "- [A](a.md)\n  - [B](rfd/1.md)\n").is_empty());
    }
}
