//! `cargo xtask dist`: what users install, below `target/packages`; `--try` installs and starts each of it.
//!
//! ```text
//!   cargo build --profile dist ─▶ stage: program, unit, manual, completions, licences ─┬─▶ tarball ─▶ ebuild
//!                            └──▶ debug information, a file of its own                 ├─▶ .deb ─▶ repository for apt
//!                                                                                      ├─▶ .rpm ─▶ repository for yum
//!                                                                                      └─▶ image, with the C library
//! ```
//!
//! The formats' own tools do the work: `dpkg-deb`, `rpmbuild`, `apt-ftparchive`, `createrepo_c`, `umoci`, all from Debian.
//! Times in all of it are those of the last commit. Nothing is signed here: the key is not on the machine that builds.

mod formats;
mod image;
mod stage;
mod tryout;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, debian, house, root};

/// The programs that are run, and Debian's packages with them.
const TOOLS: &[(&str, &str)] = &[
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("objcopy", "binutils"),
    ("rpmbuild", "rpm"),
    ("apt-ftparchive", "apt-utils"),
    ("createrepo_c", "createrepo-c"),
    ("umoci", "umoci"),
    ("debootstrap", "debootstrap"),
];

/// What is packaged, and where it goes.
struct Release {
    version: String,
    /// `target/packages`, made anew.
    out: PathBuf,
    /// The tree as it is on a machine.
    stage: PathBuf,
    /// Seconds since 1970 of the last commit.
    epoch: String,
}

impl Release {
    /// `cenote-0.1.0-x86_64.tar.gz`
    fn tarball(&self) -> PathBuf {
        self.out.join(format!("cenote-{}-{}.tar.gz", self.version, std::env::consts::ARCH))
    }

    fn image(&self) -> PathBuf {
        self.out.join("image")
    }

    fn ebuild(&self) -> PathBuf {
        self.out.join(format!("gentoo/sys-fs/cenote-bin/cenote-bin-{}.ebuild", self.version))
    }

    /// A command with the time of the release in its environment.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SOURCE_DATE_EPOCH", &self.epoch).stdin(Stdio::null());
        command
    }
}

/// Builds every package; with `--try` also installs and starts each, which takes root.
pub fn run(arguments: &[String]) -> Result<bool, Failure> {
    let is_tried = match arguments {
        [] => false,
        [flag] if flag == "--try" => true,
        _ => return Err("dist takes nothing but --try".into()),
    };
    debian::require(TOOLS)?;
    let program = build()?;
    let release = release()?;
    println!("=== stage");
    stage::fill(&release, &program)?;
    println!("=== packages");
    formats::all(&release)?;
    println!("=== image");
    image::make(&release)?;
    println!("packages are in {}", release.out.display());
    if is_tried { tryout::all(&release) } else { Ok(true) }
}

/// The program, built with the profile `dist`.
fn build() -> Result<PathBuf, Failure> {
    let arguments = ["build", "--profile", "dist", "--package", "cenote"];
    run_to_end(Command::new(house::cargo()).current_dir(root()).args(arguments))?;
    Ok(target().join("dist/cenote"))
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |d| root().join(d))
}

fn release() -> Result<Release, Failure> {
    let metadata = house::metadata(&["--no-deps"])?;
    let packages = house::list(&metadata["packages"]);
    let cenote =
        packages.iter().find(|package| package["name"] == "cenote").ok_or("there is no crate cenote")?;
    let out = target().join("packages");
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    std::fs::create_dir_all(&out)?;
    let mut git = Command::new("git");
    let epoch = printed(git.current_dir(root()).args(["log", "-1", "--format=%ct"]))?;
    let stage = out.join("stage");
    Ok(Release { version: house::text(&cenote["version"]), stage, out, epoch: epoch.trim().to_owned() })
}

fn run_to_end(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|e| format!("{command:?} cannot be started: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}

/// Runs a command to its end; what it printed on its standard output.
fn printed(command: &mut Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Writes a file, with the directories that lead to it.
fn put(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, content).map_err(|e| format!("{}: {e}", path.display()).into())
}
