//! A pool on a file, its file system mounted by a daemon of its own.

use crate::house::cargo;
use crate::{Failure, root};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the daemon may take to begin and to end.
const PATIENCE: Duration = Duration::from_secs(60);
const SIZE: u64 = 8 << 30;

pub struct Rig {
    dir: PathBuf,
    daemon: Child,
    pools: Vec<String>,
}

pub fn dir() -> PathBuf {
    root().join("target/posix")
}

/// The program that serves.
pub fn cenote() -> PathBuf {
    std::env::var_os("POSIX_CENOTE").map_or_else(|| root().join("target/debug/cenote"), PathBuf::from)
}

impl Rig {
    /// With a pool called as the suite, so that runs side by side are not taken for each other; `properties` are of its file
    /// system, `NAME/files`.
    pub fn new(name: &str, properties: &[&str]) -> Result<Rig, Failure> {
        if std::env::var_os("POSIX_CENOTE").is_none() {
            sure(Command::new(cargo()).current_dir(root()).args(["build", "-q", "-p", "cenote"]))?;
        }
        let dir = dir().join(name);
        let (disks, home) = (dir.join("disks"), dir.join("home"));
        for old in [&disks, &home] {
            let _ = std::fs::remove_dir_all(old);
        }
        std::fs::create_dir_all(&disks)?;
        let mut serve = Command::new(cenote());
        serve.arg("--home").arg(&home).args(["serve", "--listen", "127.0.0.1:0", "--no-https"]);
        let daemon = serve.stdout(Stdio::null()).spawn()?;
        let mut rig = Rig { dir, daemon, pools: Vec::new() };
        let until = Instant::now() + PATIENCE;
        while !home.join("cenote.sock").exists() {
            if Instant::now() > until {
                return Err("the daemon does not begin to serve".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        rig.pool(name, SIZE, properties)?;
        Ok(rig)
    }

    /// A pool of `size` bytes with one file system, mounted.
    pub fn pool(&mut self, pool: &str, size: u64, properties: &[&str]) -> Result<(), Failure> {
        let (disk, at) = (self.dir.join("disks").join(pool), self.at(pool));
        std::fs::File::create(&disk)?.set_len(size)?;
        std::fs::create_dir_all(&at)?;
        self.cenote(&["zpool", "create", "-O", "mountpoint=none", pool, &disk.display().to_string()])?;
        self.pools.push(pool.into());
        let (dataset, mountpoint) = (format!("{pool}/files"), format!("mountpoint={}", at.display()));
        // The suites try both.
        let mut words = vec!["zfs", "create", "-o", &mountpoint, "-o", "setuid=on", "-o", "devices=on"];
        properties.iter().for_each(|property| words.extend(["-o", property]));
        words.push(&dataset);
        self.cenote(&words)?;
        self.cenote(&["zfs", "mount", &dataset])
    }

    pub fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Where the file system of a pool is mounted.
    pub fn at(&self, pool: &str) -> PathBuf {
        self.dir.join("mnt").join(pool)
    }

    /// Where that of the first pool is.
    pub fn mounted(&self) -> PathBuf {
        self.at(&self.pools[0])
    }

    pub fn cenote(&self, words: &[&str]) -> Result<(), Failure> {
        sure(Command::new(cenote()).arg("--home").arg(self.home()).args(words))
    }

    /// Unmounts and mounts again: what is seen then was on disk.
    pub fn remount(&self) -> Result<(), Failure> {
        let dataset = format!("{}/files", self.pools[0]);
        self.cenote(&["zfs", "unmount", &dataset])?;
        self.cenote(&["zfs", "mount", &dataset])
    }

    /// Unmounts, which nothing may prevent, and looks whether all is well on disk.
    pub fn end(mut self) -> Result<(), Failure> {
        self.cenote(&["zfs", "unmount", "-a"])?;
        for pool in &self.pools {
            self.cenote(&["zpool", "export", pool])?;
        }
        self.cenote(&["down"])?;
        self.daemon.wait()?;
        let disks = self.dir.join("disks");
        let zdb =
            ["/usr/sbin/zdb", "/usr/local/sbin/zdb"].map(Path::new).into_iter().find(|zdb| zdb.is_file());
        for pool in &self.pools {
            quietly(Command::new(cenote()).args(["inspect", "verify", "-d"]).arg(&disks).arg(pool))?;
            match zdb {
                Some(zdb) => {
                    quietly(Command::new(zdb).args(["-e", "-p"]).arg(&disks).args(["-bcc", pool]))?;
                    println!("pool {pool} is whole, to inspect verify and zdb -bcc");
                }
                None => println!("pool {pool} is whole, to inspect verify; there is no zdb here to ask"),
            }
        }
        std::fs::remove_dir_all(disks)?;
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
        if !path.is_dir() {
            return Err(format!("{}: there is no such directory", path.display()).into());
        }
        return Ok(path);
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

/// As [`sure`]; what it says is shown when it fails, and returned.
pub fn quietly(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.success() {
        true => Ok(said),
        false => Err(format!("{command:?}: {}\n{said}", output.status).into()),
    }
}
