//! What the tests need from Debian: found, or installed when we are root, or named.
//!
//! `zdb`, our judge, is in `zfsutils-linux` of the component `contrib`, which many machines do not list. Then it is
//! taken from the mirror that the machine's own sources name, through a sources file that is removed afterwards.
//! Nothing that is only recommended is installed: for `zfsutils-linux` that would be a kernel module. No service is
//! started, and a machine that boots with systemd is given no package that would start one with the next boot.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Failure, npm, zdb};

/// A program that some test runs, or a library of one, with its directory; and the package that has it.
const NEEDED: &[(&str, &str)] = &[
    ("zdb", "zfsutils-linux"),
    ("nbdinfo", "libnbd-bin"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdfuse", "libnbd-bin"),
    ("nbdkit", "nbdkit"),
    ("qemu-img", "qemu-utils"),
    ("qemu/block-iscsi.so", "qemu-block-extra"),
    ("iscsi-test-cu", "libiscsi-bin"),
    ("iscsi-ls", "libiscsi-bin"),
    ("iscsi-perf", "libiscsi-bin"),
    ("mariadb", "mariadb-client-core"),
    ("mariadbd", "mariadb-server-core"),
    ("mariadb-install-db", "mariadb-server-core"),
    ("fio", "fio"),
    ("mkfs.xfs", "xfsprogs"),
    ("zstd", "zstd"),
    ("systemd-analyze", "systemd"),
    ("curl", "curl"),
    ("setfacl", "acl"),
    ("tmux", "tmux"),
    ("nbdsh", "python3-libnbd"),
    ("openssl", "openssl"),
    ("git", "git"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("python3", "python3"),
    ("pip3", "python3-pip"),
    ("chromium", "chromium"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("udevadm", "udev"),
    ("multipath", "multipath-tools"),
];

/// Packages with a service that begins at boot. The test runs the program alone.
const SERVICES: &[&str] = &["multipath-tools"];

/// What packages ask before they start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str = "#!/bin/sh\n# No service is started.\nexit 101\n";

/// Where our line for `contrib` stands while we install.
const CONTRIB: &str = "/etc/apt/sources.list.d/cenote-tests-contrib.sources";

/// Makes the needed programs be there as far as it may; names those that are missing still.
pub fn provide() -> Vec<&'static str> {
    println!("=== tools");
    install_missing();
    zdb::provide();
    npm::provide();
    missing()
}

fn install_missing() {
    if missing().is_empty() {
        return;
    }
    if is_root() && exists("apt-get") {
        let boots = Path::new("/run/systemd/system").exists();
        if let Err(failure) = install(&to_install(packages(&missing()), boots)) {
            println!("tools: {failure}");
        }
    } else {
        println!("tools: as root this would install {}", packages(&missing()).join(" "));
    }
    for program in missing() {
        println!("tools: {program} is missing: the tests that need it are skipped");
    }
}

pub fn missing() -> Vec<&'static str> {
    NEEDED.iter().map(|(program, _)| *program).filter(|program| !exists(program)).collect()
}

/// Makes these programs be there, each with its package; an error names those that are not.
pub fn require(programs: &[(&str, &'static str)]) -> Result<(), Failure> {
    let lacking = || programs.iter().filter(|(program, _)| !exists(program)).map(|(_, package)| *package);
    let packages: Vec<&str> = lacking().collect();
    if !packages.is_empty() && is_root() && exists("apt-get") {
        install(&packages)?;
    }
    let left: Vec<&str> = lacking().collect();
    if left.is_empty() { Ok(()) } else { Err(format!("install these first: {}", left.join(" ")).into()) }
}

fn packages(programs: &[&str]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, _)| programs.contains(program))
        .map(|(_, package)| *package)
        .collect();
    packages.dedup();
    packages
}

/// Without those that would begin a service on a machine that boots.
fn to_install(packages: Vec<&'static str>, boots: bool) -> Vec<&'static str> {
    packages.into_iter().filter(|package| !(boots && SERVICES.contains(package))).collect()
}

/// Whether a program is installed. `zdb` and `mkfs.xfs` live where the path of many users does not lead.
fn exists(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let programs = path.split(':').chain(["/usr/local/sbin", "/usr/sbin", "/sbin"]);
    let libraries = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let holds = |directory: &str| Path::new(directory).join(program).is_file();
    match program.contains('/') {
        true => libraries.into_iter().any(holds),
        false => programs.into_iter().any(holds),
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}

fn install(packages: &[&str]) -> Result<(), Failure> {
    if packages.is_empty() {
        return Ok(());
    }
    let _quiet = NoServices::new(Path::new(POLICY))?;
    let added = packages.contains(&"zfsutils-linux") && add_contrib()?;
    let done = apt(&["update"])
        .and_then(|()| apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat()));
    if added {
        std::fs::remove_file(CONTRIB)?;
    }
    done
}

/// For as long as it is there, packages start no service. A policy that the machine has is left as it is.
struct NoServices<'a>(Option<&'a Path>);

impl NoServices<'_> {
    fn new(policy: &Path) -> std::io::Result<NoServices<'_>> {
        let made = File::options().write(true).create_new(true).mode(0o755).open(policy);
        match made {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(NoServices(None)),
            made => {
                let ours = NoServices(Some(policy));
                made?.write_all(POLICY_TEXT.as_bytes())?;
                Ok(ours)
            }
        }
    }
}

impl Drop for NoServices<'_> {
    fn drop(&mut self) {
        if let Some(policy) = self.0 {
            _ = std::fs::remove_file(policy);
        }
    }
}

fn apt(arguments: &[&str]) -> Result<(), Failure> {
    let status = Command::new("apt-get")
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("apt-get {} failed", arguments[0]).into()) }
}

/// Lists `contrib` of the machine's own release unless it is listed already; true when it had to.
fn add_contrib() -> Result<bool, Failure> {
    let (targets, release) = (targets()?, release()?);
    let Some((mirror, entry)) = mirror(&targets, &release) else {
        return Ok(false);
    };
    let signed = signed_by(entry);
    std::fs::write(CONTRIB, stanza(mirror, &release, signed.as_deref()))?;
    Ok(true)
}

/// The line of a sources list for `contrib` of the backports of the machine's release, at its own mirror; none when it
/// has no mirror.
pub fn backports() -> Result<Option<String>, Failure> {
    let (targets, release) = (targets()?, release()?);
    let lines: Vec<_> = targets.lines().map(|line| line.split(' ').collect::<Vec<_>>()).collect();
    let ours = lines.iter().find(|line| line.len() == 4 && line[1] == release && line[2] == "main");
    Ok(ours.map(|line| {
        let key = signed_by(line[3]).map(|key| format!("[signed-by={key}] ")).unwrap_or_default();
        format!("deb {key}{} {release}-backports contrib\n", line[0])
    }))
}

/// The machine's own mirror of its release; none when its sources name none.
pub fn main_mirror() -> Result<Option<String>, Failure> {
    let (targets, release) = (targets()?, release()?);
    let mut lines = targets.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let ours = lines.find(|line| line.len() == 4 && line[1] == release && line[2] == "main");
    Ok(ours.map(|line| line[0].to_owned()))
}

/// What apt downloads lists of: mirror, release, component and where that is written.
fn targets() -> Result<String, Failure> {
    let format = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)";
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", format, "Created-By: Packages"])
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The code name of the machine's release.
pub fn release() -> Result<String, Failure> {
    codename(&std::fs::read_to_string("/etc/os-release")?)
}

/// `bookworm`, from the lines of `/etc/os-release`.
fn codename(os_release: &str) -> Result<String, Failure> {
    let line = os_release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(line.ok_or("/etc/os-release names no release: not a Debian?")?.trim_matches('"').to_owned())
}

/// The mirror that has `main` of this release, and the file that lists it; none when it has `contrib` as well.
fn mirror<'a>(targets: &'a str, release: &str) -> Option<(&'a str, &'a str)> {
    let lines = targets.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let ours: Vec<_> = lines.filter(|line| line.len() == 4 && line[1] == release).collect();
    if ours.iter().any(|line| line[2] == "contrib") {
        return None;
    }
    ours.iter().find(|line| line[2] == "main").map(|line| (line[0], line[3]))
}

/// The key that the listing file names: apt refuses two different ones for one mirror.
fn signed_by(entry: &str) -> Option<String> {
    let (file, _) = entry.rsplit_once(':')?;
    let text = std::fs::read_to_string(file).ok()?;
    let is_list = file.ends_with(".list");
    let (before, after) = if is_list { ("signed-by=", [' ', ']']) } else { ("Signed-By: ", ['\n', '\n']) };
    let (_, rest) = text.split_once(before)?;
    Some(rest.split(after).next()?.trim().to_owned())
}

fn stanza(mirror: &str, release: &str, signed_by: Option<&str>) -> String {
    let key = signed_by.map(|key| format!("Signed-By: {key}\n")).unwrap_or_default();
    format!("Types: deb\nURIs: {mirror}\nSuites: {release}\nComponents: contrib\n{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: &str = "http://m/debian/ bookworm main /etc/apt/sources.list.d/debian.sources:1";

    #[test]
    fn contrib_comes_from_the_mirror_that_has_main() {
        let targets = format!("http://s/sec/ bookworm-security main /x:1\n{MAIN}\n");
        let found = mirror(&targets, "bookworm");
        assert_eq!(found, Some(("http://m/debian/", "/etc/apt/sources.list.d/debian.sources:1")));
    }

    #[test]
    fn a_listed_contrib_is_left_alone() {
        let targets = format!("{MAIN}\n{}\n", MAIN.replace("main", "contrib"));
        assert_eq!(mirror(&targets, "bookworm"), None);
    }

    #[test]
    fn the_stanza_carries_the_key_of_the_mirror() {
        let text = stanza("http://m/debian/", "bookworm", Some("/k.gpg"));
        assert!(text.ends_with("Components: contrib\nSigned-By: /k.gpg\n"));
    }

    #[test]
    fn a_package_is_asked_for_once() {
        assert_eq!(packages(&["nbdinfo", "nbdcopy", "zdb"]), ["zfsutils-linux", "libnbd-bin"]);
    }

    #[test]
    fn a_machine_that_boots_gets_no_package_with_a_service() {
        let wanted = packages(&["multipath", "udevadm", "fio"]);
        assert_eq!(to_install(wanted.clone(), false), ["fio", "udev", "multipath-tools"]);
        assert_eq!(to_install(wanted, true), ["fio", "udev"]);
    }

    #[test]
    fn services_are_refused_while_packages_are_installed_and_the_machines_policy_stays() {
        let policy = std::env::temp_dir().join(format!("cenote-policy-{}", std::process::id()));
        let quiet = NoServices::new(&policy).unwrap();
        let says = |policy: &Path| Command::new("sh").arg(policy).status().unwrap().code();
        assert_eq!(says(&policy), Some(101));
        drop(NoServices::new(&policy).unwrap());
        assert!(policy.exists(), "it is that of another");
        drop(quiet);
        assert!(!policy.exists());
    }
}
