//! `cargo xtask dist --try`: each package is installed as its users would, and the program of it started.
//!
//! ```text
//!   debootstrap ─▶ base ─┬─copy─▶ apt install, from the repository                     ┐
//!                        ├─copy─▶ rpm --root, from the repository                      │ up, status, zpool, down,
//!                        ├─copy─▶ the tarball, unpacked                                │ in a process namespace of
//!                        └─copy─▶ the ebuild's src_install, with Portage's words imitated │ its own, below that root
//!   image ─▶ umoci unpack ─▶ a root with nothing else                                  ┘
//! ```
//!
//! It takes root, and the mirror that the machine's own sources name. What is tried lies in `target/tryout`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::{Release, formats, image, printed, put, run_to_end, target};
use crate::{Failure, debian};

/// How long a daemon may take until it says that it is up.
const PATIENCE: Duration = Duration::from_secs(120);
const HOME: &str = "/tmp/home";

/// What is tried: its name, and what makes a root with the program installed.
type Trial = (&'static str, fn(&Release, &Place) -> Result<PathBuf, Failure>);

const TRIALS: [Trial; 5] =
    [("deb", deb), ("rpm", rpm), ("tarball", tarball), ("ebuild", ebuild), ("image", of_image)];

struct Place(PathBuf);

impl Place {
    /// A copy of the base system.
    fn root(&self, name: &str) -> Result<PathBuf, Failure> {
        let root = self.0.join(name);
        formats::copy(&self.0.join("base"), &root)?;
        Ok(root)
    }
}

/// Tries all of them, whatever becomes of the others; true when each was installed, started and stopped.
pub fn all(release: &Release) -> Result<bool, Failure> {
    let place = Place(target().join("tryout"));
    bootstrap(&place.0.join("base"))?;
    let mut passed = true;
    for (name, install) in TRIALS {
        println!("=== try {name}");
        let gone = place.0.join(name);
        if gone.exists() {
            std::fs::remove_dir_all(&gone)?;
        }
        let done = install(release, &place).and_then(|root| start(release, &root));
        match &done {
            Ok(()) => println!("{name}: installed, started, stopped"),
            Err(failure) => println!("{name}: FAILED: {failure}"),
        }
        passed &= done.is_ok();
    }
    Ok(passed)
}

/// A small system of the machine's own release; kept between runs.
fn bootstrap(base: &Path) -> Result<(), Failure> {
    if base.join("usr/bin/apt-get").exists() {
        return Ok(());
    }
    if base.exists() {
        std::fs::remove_dir_all(base)?;
    }
    std::fs::create_dir_all(base)?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.arg("--variant=minbase").arg(debian::release()?).arg(base);
    let made = run_to_end(debootstrap.args(debian::main_mirror()?));
    if made.is_err() {
        std::fs::remove_dir_all(base)?;
    }
    made
}

fn deb(release: &Release, place: &Place) -> Result<PathBuf, Failure> {
    let root = place.root("deb")?;
    formats::copy(&release.out.join("apt"), &root.join("srv/apt"))?;
    let sources = root.join("etc/apt/sources.list");
    put(&sources, "deb [trusted=yes] file:/srv/apt stable main\n")?;
    let apt = |arguments: &[&str]| {
        let mut chroot = Command::new("chroot");
        chroot.arg(&root).arg("apt-get").arg("-q").args(["-o", "APT::Sandbox::User=root"]).args(arguments);
        run_to_end(chroot.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()))
    };
    apt(&["update"])?;
    apt(&["install", "--yes", "cenote"])?;
    let mut dpkg = Command::new("chroot");
    println!("{}", printed(dpkg.arg(&root).args(["dpkg-query", "-W", "cenote"]))?.trim());
    Ok(root)
}

fn rpm(release: &Release, place: &Place) -> Result<PathBuf, Failure> {
    let root = place.root("rpm")?;
    let yum = release.out.join("yum");
    let file = formats::rpm_file(&yum)?;
    let listed = printed(Command::new("sh").current_dir(&yum).args(["-c", "zcat repodata/*primary.xml.gz"]))?;
    if !listed.contains("<name>cenote</name>") {
        return Err("the repository for yum does not list the package".into());
    }
    let needed = printed(Command::new("rpm").arg("-qp").arg("--requires").arg(&file))?;
    let foreign: Vec<&str> = needed.lines().filter(|line| !is_of_the_base(line)).collect();
    if !foreign.is_empty() {
        return Err(format!("it needs more than the C library and a shell: {}", foreign.join(", ")).into());
    }
    let rpm = |arguments: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(&root).args(arguments);
        rpm
    };
    run_to_end(&mut rpm(&["--initdb"]))?;
    // What is there was installed by dpkg, which rpm does not know; needs were looked at above.
    run_to_end(rpm(&["--install", "--nodeps"]).arg(&file))?;
    run_to_end(&mut rpm(&["--verify", "--nodeps", "cenote"]))?;
    println!("{}", printed(&mut rpm(&["-q", "cenote"]))?.trim());
    Ok(root)
}

/// What every system has that a package for it may need.
fn is_of_the_base(requirement: &str) -> bool {
    const BASE: [&str; 7] = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux", "/bin/sh", "rpmlib(", "rtld("];
    BASE.iter().any(|name| requirement.starts_with(name))
}

fn tarball(release: &Release, place: &Place) -> Result<PathBuf, Failure> {
    let root = place.root("tarball")?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(release.tarball()).arg("--strip-components=1");
    run_to_end(tar.arg("--directory").arg(&root))?;
    Ok(root)
}

/// Portage's words, as far as the ebuild speaks them. Each goes where Portage would install.
const PORTAGE: &str = r#"
set -euo pipefail
die() { echo "$*" >&2; exit 1; }
inherit() { :; }
to() { mkdir -p "$D/$1"; cp "${@:2}" "$D/$1"; }
dobin() { to usr/bin "$@"; chmod 755 "$D"/usr/bin/*; }
systemd_dounit() { to usr/lib/systemd/system "$@"; }
doman() { to usr/share/man/man1 "$@"; }
dobashcomp() { to usr/share/bash-completion/completions "$@"; }
dozshcomp() { to usr/share/zsh/site-functions "$@"; }
dofishcomp() { to usr/share/fish/vendor_completions.d "$@"; }
dodoc() { to usr/share/doc "$@"; }
source "$EBUILD"
[ "$EAPI" = 8 ] && [ "$SRC_URI" = "$(basename "$TARBALL")" ]
read -r _ name size _ _ _ sha512 < "$(dirname "$EBUILD")/Manifest"
[ "$name" = "$SRC_URI" ] && [ "$size" = "$(stat -c %s "$TARBALL")" ]
echo "$sha512  $TARBALL" | sha512sum --check --quiet
tar -C "$WORKDIR" -xf "$TARBALL"
cd "$S"
src_install
"#;

fn ebuild(release: &Release, place: &Place) -> Result<PathBuf, Failure> {
    let root = place.root("ebuild")?;
    let work = root.join("var/tmp/portage");
    std::fs::create_dir_all(&work)?;
    let mut bash = Command::new("bash");
    bash.args(["-c", PORTAGE]).env("D", &root).env("WORKDIR", &work).env("PV", &release.version);
    run_to_end(bash.env("EBUILD", release.ebuild()).env("TARBALL", release.tarball()))?;
    Ok(root)
}

fn of_image(release: &Release, place: &Place) -> Result<PathBuf, Failure> {
    let bundle = place.0.join("image");
    run_to_end(Command::new("umoci").arg("unpack").arg("--image").arg(image::tagged(release)).arg(&bundle))?;
    let configuration = std::fs::read_to_string(bundle.join("config.json"))?;
    if !configuration.contains("\"/usr/bin/cenote\"") {
        return Err("the image does not start the program".into());
    }
    Ok(bundle.join("rootfs"))
}

/// A daemon below a root, which is killed if something fails before it has ended by itself.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program of a root, asks it, and stops it again.
fn start(release: &Release, root: &Path) -> Result<(), Failure> {
    let version = printed(&mut cenote(root, &["--version"]))?;
    if !version.contains(&release.version) {
        return Err(format!("it calls itself {}", version.trim()).into());
    }
    std::fs::create_dir_all(root.join("tmp"))?;
    std::fs::create_dir_all(root.join("proc"))?;
    let mut up = Command::new("unshare");
    up.args(["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--root"]).arg(root);
    up.args(["/usr/bin/cenote", "--home", HOME, "up", "--listen", "127.0.0.1:0"]);
    let child =
        up.args(["--size", "1G", "--volume", "64M"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut daemon = Daemon(child);
    wait_until_up(&mut daemon.0)?;
    for words in [&["status"][..], &["zpool", "list"], &["zfs", "create", "tank/fs"], &["zfs", "list"]] {
        print!("{}", printed(&mut cenote(root, words))?);
    }
    run_to_end(&mut cenote(root, &["down"]))?;
    let status = daemon.0.wait()?;
    if status.success() { Ok(()) } else { Err(format!("the daemon ended with {status}").into()) }
}

/// The program below a root, as a command beside the daemon there.
fn cenote(root: &Path, words: &[&str]) -> Command {
    let mut chroot = Command::new("chroot");
    chroot.arg(root).args(["/usr/bin/cenote", "--home", HOME]).args(words).stdin(Stdio::null());
    chroot
}

fn wait_until_up(child: &mut Child) -> Result<(), Failure> {
    let stdout = child.stdout.take().ok_or("the daemon has no output")?;
    let (told, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("cenote is up") {
                // The other end is gone only when it has waited long enough.
                let _ = told.send(());
            }
        }
    });
    heard.recv_timeout(PATIENCE).map_err(|_| "it did not say that it is up".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_c_library_and_a_shell_may_be_needed() {
        assert!(is_of_the_base("libc.so.6(GLIBC_2.34)(64bit)") && is_of_the_base("/bin/sh"));
        assert!(!is_of_the_base("libssl.so.3()(64bit)"));
    }
}
