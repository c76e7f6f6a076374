//! A pool on a file, its file system mounted by a daemon of its own.

use crate::house::cargo;
use crate::{Failure, root};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the daemon may take to begin and to end.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Rig {
    dir: PathBuf,
    daemon: Child,
}

pub fn dir() -> PathBuf {
    root().join("target/posix")
}

/// A program of this workspace, as it is now.
pub fn cenote() -> PathBuf {
    root().join("target/debug/cenote")
}

impl Rig {
    /// `properties` are of the file system that is mounted, `tank/files`.
    pub fn new(name: &str, properties: &[&str]) -> Result<Rig, Failure> {
        sure(Command::new(cargo()).current_dir(root()).args(["build", "-q", "-p", "cenote"]))?;
        let dir = dir().join(name);
        let _ = std::fs::remove_dir_all(dir.join("home"));
        std::fs::create_dir_all(dir.join("mnt"))?;
        let disk = dir.join("disk");
        std::fs::File::create(&disk)?.set_len(8 << 30)?;
        let home = dir.join("home");
        let mut serve = Command::new(cenote());
        serve.arg("--home").arg(&home).args(["serve", "--listen", "127.0.0.1:0", "--no-https"]);
        let daemon = serve.stdout(Stdio::null()).spawn()?;
        let rig = Rig { dir, daemon };
        let until = Instant::now() + PATIENCE;
        while !home.join("cenote.sock").exists() {
            if Instant::now() > until {
                return Err("the daemon does not begin to serve".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        rig.cenote(&["zpool", "create", "-O", "mountpoint=none", "tank", &disk.display().to_string()])?;
        let mountpoint = format!("mountpoint={}", rig.mounted().display());
        let mut words = vec!["zfs", "create", "-o", &mountpoint];
        properties.iter().for_each(|property| words.extend(["-o", property]));
        words.push("tank/files");
        rig.cenote(&words)?;
        rig.cenote(&["zfs", "mount", "tank/files"])?;
        Ok(rig)
    }

    pub fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    pub fn mounted(&self) -> PathBuf {
        self.dir.join("mnt")
    }

    pub fn cenote(&self, words: &[&str]) -> Result<(), Failure> {
        sure(Command::new(cenote()).arg("--home").arg(self.home()).args(words))
    }

    /// Unmounts, which nothing may prevent, and looks whether all is well on disk.
    pub fn end(mut self) -> Result<(), Failure> {
        self.cenote(&["zfs", "unmount", "tank/files"])?;
        self.cenote(&["zpool", "scrub", "tank"])?;
        self.cenote(&["zpool", "export", "tank"])?;
        self.cenote(&["down"])?;
        self.daemon.wait()?;
        let zdb =
            ["/usr/sbin/zdb", "/usr/local/sbin/zdb"].map(Path::new).into_iter().find(|zdb| zdb.is_file());
        if let Some(zdb) = zdb {
            sure(
                Command::new(zdb)
                    .args(["-e", "-p"])
                    .arg(&self.dir)
                    .args(["-bcc", "tank"])
                    .stdout(Stdio::null()),
            )?;
        }
        std::fs::remove_file(self.dir.join("disk"))?;
        Ok(())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Where something went wrong, what is mounted does not stay so.
        if self.daemon.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.cenote(&["zfs", "unmount", "-f", "-a"]);
            let _ = self.cenote(&["down"]);
            let _ = self.daemon.wait();
        }
    }
}

/// A suite, cloned and built when it is not there yet.
pub fn suite(name: &str, from: &str, commit: &str, build: &str) -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("POSIX_SUITES") {
        let path = Path::new(&given).join(name);
        if path.is_dir() {
            return Ok(path);
        }
    }
    let path = dir().join("suites").join(name);
    if !path.join(".is-built").exists() {
        let _ = std::fs::remove_dir_all(&path);
        sure(Command::new("git").args(["clone", "-q", from]).arg(&path))?;
        sure(Command::new("git").current_dir(&path).args(["checkout", "-q", commit]))?;
        sure(Command::new("sh").current_dir(&path).args(["-ec", build]))?;
        std::fs::write(path.join(".is-built"), "")?;
    }
    Ok(path)
}

pub fn sure(command: &mut Command) -> Result<(), Failure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}").into()),
        Err(e) => Err(format!("{command:?}: {e}").into()),
    }
}
