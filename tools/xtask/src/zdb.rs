//! A newer `zdb` than the release has: unpacked from its backports, installed nowhere.
//!
//! ```text
//!   the machine's own mirror, backports, contrib ──apt-get download──▶ *.deb ──dpkg-deb──▶ target/zdb/sbin/zdb
//!                                                                                              /lib/…
//! ```
//!
//! Debian 12 has OpenZFS 2.1, which reads no pool with the features of 2.2 and later. Both judges are wanted, so the newer
//! one must not replace the other. Lists and packages are kept below the target directory: apt is given its own places,
//! so nothing of the machine's configuration changes, and root is not needed. Only packages of ZFS are taken.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, debian, root};

/// The package, and how the names of those begin that it needs of the same source.
const PACKAGE: &str = "zfsutils-linux";
const LIBRARIES: [&str; 4] = ["libnvpair", "libuutil", "libzfs", "libzpool"];

/// Makes a `zdb` of OpenZFS 2.2 or later be there, if the machine's release has none.
pub fn provide() {
    let place = place();
    if place.join("sbin/zdb").is_file() || is_recent("zdb") {
        return;
    }
    if let Err(failure) = unpack_into(&place) {
        println!(
            "tools: a zdb of OpenZFS 2.3 could not be had: {failure}; the tests that need it are skipped"
        );
    }
}

/// Where the tests look for it.
fn place() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |path| root().join(path))
        .join("zdb")
}

/// It tells no version, but explains an option that came with block cloning.
fn is_recent(zdb: &str) -> bool {
    let output = Command::new(zdb).arg("--help").output();
    output.is_ok_and(|o| [o.stdout, o.stderr].iter().any(|text| contains(text, b"--brt-stats")))
}

fn contains(text: &[u8], words: &[u8]) -> bool {
    text.windows(words.len()).any(|window| window == words)
}

fn unpack_into(place: &Path) -> Result<(), Failure> {
    let work = place.with_extension("work");
    _ = std::fs::remove_dir_all(&work);
    for directory in ["lists/partial", "cache/archives/partial", "root"] {
        std::fs::create_dir_all(work.join(directory))?;
    }
    let Some(line) = debian::backports()? else {
        return Err("the machine's sources name no mirror of its release".into());
    };
    std::fs::write(work.join("sources.list"), line)?;
    let apt = Apt(&work);
    apt.run(&["update"])?;
    let suite = format!("{}-backports", debian::release()?);
    apt.run(&["download", &format!("{PACKAGE}/{suite}")])?;
    let depends =
        Command::new("dpkg-deb").arg("-f").arg(package_file(&work, PACKAGE)?).arg("Depends").output()?;
    let libraries = libraries(&String::from_utf8_lossy(&depends.stdout));
    apt.run(&[&["download"], &libraries.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat())?;
    for entry in
        std::fs::read_dir(&work)?.flatten().filter(|e| e.path().extension().is_some_and(|x| x == "deb"))
    {
        run(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(work.join("root")))?;
    }
    _ = std::fs::remove_dir_all(place);
    std::fs::rename(work.join("root"), place)?;
    std::fs::remove_dir_all(&work)?;
    println!("tools: zdb of the backports is in {}", place.display());
    Ok(())
}

/// apt with places of its own.
struct Apt<'a>(&'a Path);

impl Apt<'_> {
    fn run(&self, arguments: &[&str]) -> Result<(), Failure> {
        let mut apt = Command::new("apt-get");
        let own = |key: &str, path: &str| format!("{key}={}", self.0.join(path).display());
        for option in [
            own("Dir::Etc::SourceList", "sources.list"),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            own("Dir::State::Lists", "lists"),
            own("Dir::Cache", "cache"),
            // Else it would download as a user without the right to write here.
            "APT::Sandbox::User=root".to_owned(),
        ] {
            apt.arg("-o").arg(option);
        }
        run(apt.arg("-q").args(arguments).current_dir(self.0).stdin(Stdio::null()))
    }
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed").into()) }
}

fn package_file(directory: &Path, package: &str) -> Result<PathBuf, Failure> {
    let of_package = |path: &PathBuf| {
        path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&format!("{package}_")))
    };
    let files = std::fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    files.into_iter().find(of_package).ok_or_else(|| format!("{package} was not downloaded").into())
}

/// `name=version` of each library of the same source in a `Depends` line.
fn libraries(depends: &str) -> Vec<String> {
    let of_zfs = |name: &str| LIBRARIES.iter().any(|library| name.starts_with(library));
    let parts = depends.split(',').filter_map(|part| part.trim().split_once(" (= "));
    parts
        .filter(|(name, _)| of_zfs(name))
        .map(|(name, v)| format!("{name}={}", v.trim_end_matches(')')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_libraries_of_the_same_source_are_taken() {
        let depends = "libnvpair3linux (= 2.3.2-2), libzpool6linux (= 2.3.2-2), python3, libc6 (>= 2.34)\n";
        assert_eq!(libraries(depends), ["libnvpair3linux=2.3.2-2", "libzpool6linux=2.3.2-2"]);
    }
}
