//! Tools for the web page that come from npm: the type checker of its scripts, and what drives the browser in its test.
//!
//! They are put below the target directory, in the versions that are named here; nothing of them is in the repository or
//! in the program. Where they cannot be had, what needs them is skipped and says so.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Failure, root};

/// The `node` of Debian 12 is 18: `playwright-core` wants 20 from 1.62 on.
const PACKAGES: &[&str] = &["playwright-core@1.61.0", "typescript@7.0.2"];

/// Makes the packages be there, if `npm` is.
pub fn provide() {
    let place = place();
    if has("playwright-core") && has("typescript") {
        return;
    }
    if let Err(failure) = install(&place) {
        println!("tools: packages of npm could not be had: {failure}; what needs them is skipped");
    }
}

fn install(place: &PathBuf) -> Result<(), Failure> {
    std::fs::create_dir_all(place)?;
    let arguments = ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
    let status =
        Command::new("npm").args(arguments).arg(place).args(PACKAGES).stdin(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("npm ended with {status}").into()) }
}

/// Checks the types of the page's scripts, as their comments state them.
pub fn scripts() -> Result<bool, Failure> {
    if !has("typescript") {
        println!("scripts: typescript is missing: they are not checked");
        return Ok(true);
    }
    let status = Command::new("node")
        .current_dir(root())
        .arg(place().join("node_modules/typescript/bin/tsc"))
        .args(["--project", "control/web/tsconfig.json"])
        .status()?;
    Ok(status.success())
}

fn has(package: &str) -> bool {
    place().join("node_modules").join(package).is_dir()
}

/// Where the tests look for them.
fn place() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |path| root().join(path))
        .join("npm")
}
