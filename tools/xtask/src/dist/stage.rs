//! The tree as it is on a machine after the installation.
//!
//! ```text
//!   usr/bin/cenote                                   without debug information, which cenote.debug has
//!   usr/lib/systemd/system/cenote.service, .socket   not enabled: a storage appliance is started when it is asked for
//!   usr/share/man/man1/*.1.gz                        one page for each command, written by the program itself
//!   usr/share/{bash-completion,zsh,fish}/…           completions, written by the program itself
//!   usr/share/doc/cenote/                            licences, changes, the drop-in with which the service may mount
//! ```

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Release, printed, put, run_to_end};
use crate::{Failure, root};

/// Where the unit's program is when it is installed by hand, and where packages have it.
const BY_HAND: &str = "/usr/local/bin/cenote";
const PACKAGED: &str = "/usr/bin/cenote";

const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/cenote"),
    ("zsh", "usr/share/zsh/site-functions/_cenote"),
    ("fish", "usr/share/fish/vendor_completions.d/cenote.fish"),
];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

pub fn fill(release: &Release, program: &Path) -> Result<(), Failure> {
    let at = |path: &str| release.stage.join(path);
    split(release, program, &at("usr/bin/cenote"))?;
    for unit in ["cenote.service", "cenote.socket"] {
        put(&at("usr/lib/systemd/system").join(unit), packaged(unit)?)?;
    }
    put(&at("usr/share/doc/cenote/mount.conf"), packaged("cenote.service.d/mount.conf")?)?;
    for document in DOCUMENTS {
        put(&at("usr/share/doc/cenote").join(document), std::fs::read(root().join(document))?)?;
    }
    for (shell, path) in COMPLETIONS {
        put(&at(path), printed(release.command(&shown(program)).args(["completions", shell]))?)?;
    }
    let manual = at("usr/share/man/man1");
    std::fs::create_dir_all(&manual)?;
    run_to_end(release.command(&shown(program)).arg("man").arg(&manual))?;
    for page in std::fs::read_dir(&manual)? {
        run_to_end(release.command("gzip").args(["-9", "-n"]).arg(page?.path()))?;
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A unit of `packaging/`, with the path of an installed program.
fn packaged(unit: &str) -> Result<String, Failure> {
    Ok(of_package(&std::fs::read_to_string(root().join("packaging").join(unit))?))
}

fn of_package(unit: &str) -> String {
    let told = unit.lines().filter(|line| !line.contains("Install into /etc/systemd/system"));
    told.map(|line| line.replace(BY_HAND, PACKAGED) + "\n").collect()
}

/// The program without debug information, and that information beside the packages, by the name the program holds.
fn split(release: &Release, program: &Path, to: &Path) -> Result<(), Failure> {
    let debug = release.out.join("cenote.debug");
    put(to, std::fs::read(program)?)?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755))?;
    let mut keep = release.command("objcopy");
    run_to_end(keep.args(["--only-keep-debug", "--compress-debug-sections"]).arg(program).arg(&debug))?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    run_to_end(release.command("objcopy").args(["--strip-unneeded", &link]).arg(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packaged_unit_starts_the_packaged_program() {
        for unit in ["cenote.service", "cenote.service.d/mount.conf"] {
            let text = packaged(unit).unwrap();
            assert!(
                text.contains("ExecStart=/usr/bin/cenote serve") && !text.contains("/usr/local"),
                "{unit}"
            );
        }
    }
}
