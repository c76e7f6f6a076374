//! The tour of the README, through the program itself: a pool, a volume, real clients, and `zdb` at the end.

#![allow(clippy::unwrap_used, reason = "a failure of these helpers is a failure of the test")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const CENOTE: &str = env!("CARGO_BIN_EXE_cenote");

/// A home of its own, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let dir = std::env::temp_dir().join(format!("cenote-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Home(dir)
    }

    fn cenote(&self, words: &[&str]) -> Command {
        let mut command = Command::new(CENOTE);
        command.arg("--home").arg(self.0.join("home")).args(words);
        command
    }

    /// What a command prints; it must succeed.
    fn run(&self, words: &[&str]) -> String {
        let output = self.cenote(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        said(&output)
    }

    /// The one line with which a command fails.
    fn fails(&self, words: &[&str], code: i32) -> String {
        let output = self.cenote(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stderr).trim().to_string()
    }

    /// Starts the daemon; it says where its first volume is served.
    fn up(&self, volume: &str) -> (Daemon, String) {
        let words = ["up", "--listen", "127.0.0.1:0", "--size", "1G", "--volume", volume];
        let mut daemon = Daemon(self.cenote(&words).stdout(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(daemon.0.stdout.take().unwrap()).lines();
        let uri = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_whitespace().find(|w| w.starts_with("nbd://")).map(String::from))
            .expect("it says where the volume is served");
        (daemon, uri)
    }

    fn disk(&self, name: &str) -> String {
        let path = self.0.join(name);
        std::fs::File::create(&path).unwrap().set_len(512 << 20).unwrap();
        path.display().to_string()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Whether a program is there; its absence is said, and counted as nothing.
fn has(program: &str) -> bool {
    let found =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

fn judge(dir: &Path, pool: &str) {
    if has("zdb") {
        let output = Command::new("zdb").args(["-e", "-p"]).arg(dir).args(["-bcc", pool]).output().unwrap();
        let text = said(&output);
        let sound = text.contains("No leaks (block sum matches space maps exactly)");
        assert!(output.status.success() && sound, "zdb is not content:\n{text}");
    }
}

#[test]
fn pools_and_datasets_come_and_go_without_a_daemon() {
    let home = Home::new("commands");
    let (a, b) = (home.disk("a.img"), home.disk("b.img"));
    home.run(&["zpool", "create", "tank", "mirror", &a, &b]);
    assert!(home.fails(&["zpool", "create", "tank", &a], 1).contains("tank"));
    home.run(&["zfs", "create", "-s", "-V", "64M", "-o", "compression=zstd-3", "tank/vol"]);
    home.run(&["zfs", "create", "tank/fs"]);
    assert_eq!(home.run(&["zfs", "list", "-H", "-o", "name"]), "tank\ntank/fs\ntank/vol\n");
    assert_eq!(
        home.run(&["zfs", "get", "-H", "-o", "value,source", "compression", "tank/vol"]),
        "zstd-3\tlocal\n"
    );
    assert!(home.run(&["zpool", "status"]).contains("errors: No known data errors"));
    assert!(home.run(&["zpool", "history"]).contains("zfs create tank/fs"));
    assert!(home.fails(&["zfs", "create", "-V", "1000", "-b", "3000", "tank/bad"], 1).contains("tank/bad"));
    home.run(&["zpool", "export", "tank"]);
    assert!(home.run(&["zpool", "list"]).contains("no pools available"));
    let dir = home.0.display().to_string();
    assert!(home.run(&["zpool", "import", "-d", &dir]).contains("mirror-0"));
    home.run(&["zpool", "import", "-d", &dir, "tank", "lake"]);
    home.run(&["zfs", "destroy", "lake/vol"]);
    assert_eq!(home.run(&["zfs", "list", "-H", "-o", "name"]), "lake\nlake/fs\n");
    home.run(&["zpool", "export", "lake"]);
    judge(&home.0, "lake");
    assert!(!home.fails(&["zpool", "frobnicate"], 2).is_empty());
}

struct Daemon(Child);

impl Daemon {
    fn end(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.0.wait().unwrap().success(), "it ends in peace when it is told to");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn up_ends_ready_and_serves_its_first_volume_to_real_clients() {
    let home = Home::new("up");
    let (mut daemon, uri) = home.up("64M");
    assert!(home.run(&["zpool", "list", "-H", "-o", "name,health"]).starts_with("tank\tONLINE"));
    home.run(&["zfs", "create", "-s", "-V", "32M", "tank/data"]);
    if has("nbdcopy") {
        let bytes: Vec<u8> = (0..(8u32 << 20)).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let (source, back) = (home.0.join("source"), home.0.join("back"));
        std::fs::write(&source, &bytes).unwrap();
        for (from, to) in
            [(source.display().to_string(), uri.clone()), (uri.clone(), back.display().to_string())]
        {
            let output = Command::new("nbdcopy").args([&from, &to]).output().unwrap();
            assert!(output.status.success(), "nbdcopy {from} {to}: {}", said(&output));
        }
        assert!(std::fs::read(&back).unwrap()[..bytes.len()] == bytes, "what was copied in comes out again");
    }
    daemon.end();
    judge(&home.0.join("home/disks"), "tank");
}

/// Runs a program; it must succeed, and what it printed is the answer.
fn sh(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

#[test]
fn an_xfs_lives_on_a_volume_through_nbdfuse_and_a_loop_device() {
    let may_mount = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !may_mount || !Path::new("/dev/loop-control").exists() {
        println!("skipped: mounting needs root, /dev/fuse and loop devices");
        return;
    }
    if !["nbdfuse", "losetup", "mkfs.xfs", "xfs_repair"].iter().all(|program| has(program)) {
        return;
    }
    let home = Home::new("xfs");
    let (mut daemon, uri) = home.up("512M");
    let (fuse, mount) = (home.0.join("fuse"), home.0.join("mount"));
    std::fs::create_dir(&fuse).unwrap();
    std::fs::create_dir(&mount).unwrap();
    let mut server = Daemon(Command::new("nbdfuse").arg(&fuse).arg(&uri).spawn().unwrap());
    let file = fuse.join("nbd");
    for _ in 0..100 {
        if file.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let device = sh("losetup", &["--find", "--show", &file.display().to_string()]);
    let at = mount.display().to_string();
    sh("mkfs.xfs", &["-q", &device]);
    sh("mount", &[&device, &at]);
    let bytes: Vec<u8> = (0..(20u32 << 20)).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    std::fs::write(mount.join("file"), &bytes).unwrap();
    sh("umount", &[&at]);
    sh("mount", &[&device, &at]);
    let same = std::fs::read(mount.join("file")).unwrap() == bytes;
    sh("umount", &[&at]);
    sh("xfs_repair", &["-n", &device]);
    sh("losetup", &["--detach", &device]);
    sh("umount", &[&fuse.display().to_string()]);
    let _ = server.0.wait();
    assert!(same, "what was written before the unmount is read after it");
    daemon.end();
    judge(&home.0.join("home/disks"), "tank");
}
