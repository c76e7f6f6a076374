//! Those that are compared, each mounted on a file of its own.

use super::Options;
use crate::Progress;
use crate::loop_device::LoopMount;
use crate::programs::{Daemon, Stop, run, said};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use units::{Error, Kind, Result};
use workload::{Limit, Pattern, Spec};
use world::OpenMode;

/// In the order of the columns; the first is ours, the second what the others are measured by.
pub(super) const NAMES: [&str; 6] = ["cenote", "ext4", "xfs", "btrfs", "zfs-fuse", "bindfs"];

/// Until a daemon must serve: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(30);
const POOL: &str = "files";

/// A mounted file system.
pub(super) trait Peer {
    /// Where files are made.
    fn root(&self) -> &Path;
    /// Nothing of it is in memory then.
    fn cold(&mut self, stop: &Stop) -> Result<()>;
    /// What its server has used so far.
    fn cpu(&self) -> Option<Duration>;
}

/// One of [`NAMES`], or why it is not there.
pub(super) struct Slot {
    pub name: &'static str,
    pub peer: Result<Box<dyn Peer>, String>,
}

/// Starts all that can be; each has its file in `scratch`.
pub(super) fn start(options: &Options, scratch: &Path, stop: &Stop, progress: Progress) -> Result<Vec<Slot>> {
    let mut slots = Vec::new();
    // What is written and read at once, twice, and the tree.
    let size = 4 * options.size + (1 << 30);
    for name in NAMES {
        if !options.compares(name) {
            slots.push(Slot { name, peer: Err("not asked for".into()) });
            continue;
        }
        stop.check()?;
        progress(&format!("{name}: writing its file, mounting"));
        let disk = scratch.join(format!("{name}.img"));
        let begun = fill(&disk, size).map_err(|e| e.to_string());
        let peer = begun.and_then(|()| one(name, options, scratch, &disk, stop));
        if let Err(why) = &peer {
            progress(&format!("{name}: {why}"));
        }
        slots.push(Slot { name, peer });
    }
    Ok(slots)
}

fn one(
    name: &str,
    options: &Options,
    scratch: &Path,
    disk: &Path,
    stop: &Stop,
) -> Result<Box<dyn Peer>, String> {
    match name {
        "cenote" => Cenote::start(options, scratch, disk, stop).map(|peer| Box::new(peer) as Box<dyn Peer>),
        "zfs-fuse" => {
            ZfsFuse::start(options, scratch, disk, stop).map(|peer| Box::new(peer) as Box<dyn Peer>)
        }
        "bindfs" => Bindfs::start(scratch, disk).map(|peer| Box::new(peer) as Box<dyn Peer>),
        kernel => LoopMount::new(kernel, scratch, disk).map(|peer| Box::new(peer) as Box<dyn Peer>),
    }
}

/// A file whose blocks are all there, and stay where they are: it stands for a disk.
fn fill(path: &Path, len: u64) -> Result<()> {
    let failed = |e| Error::new(Kind::Io, "make").at(path.display()).because(e);
    std::fs::File::create(path).and_then(|f| f.set_len(len)).map_err(failed)?;
    let path = path.to_path_buf();
    let spec = Spec {
        pattern: Pattern::Sequential,
        block_size: 1 << 20,
        queue_depth: 8,
        read_percent: 0,
        limit: Limit::Requests(len >> 20),
        ..Spec::default()
    };
    linux::block_on(async move {
        workload::run(workload::open(&path, OpenMode::ReadWrite)?, &spec).await.map(drop)
    })
}

impl Peer for LoopMount {
    fn root(&self) -> &Path {
        self.at()
    }

    fn cold(&mut self, _: &Stop) -> Result<()> {
        self.again().map_err(|e| Error::new(Kind::Io, "mount anew").because(e))
    }

    fn cpu(&self) -> Option<Duration> {
        None
    }
}

/// This program as its users have it: a daemon that mounts, in a home of its own.
struct Cenote {
    daemon: Daemon,
    program: String,
    home: String,
    /// Where the pool's file is, alone.
    disks: PathBuf,
    at: PathBuf,
}

impl Cenote {
    fn start(options: &Options, scratch: &Path, disk: &Path, stop: &Stop) -> Result<Cenote, String> {
        let failed = |e: std::io::Error| e.to_string();
        let (home, disks, at) = (scratch.join("home"), scratch.join("disks"), scratch.join("cenote"));
        std::fs::create_dir(&disks).map_err(failed)?;
        let moved = disks.join("disk");
        std::fs::rename(disk, &moved).map_err(failed)?;
        let mut command = Command::new(&options.cenote);
        command.arg("--home").arg(&home).args(["serve", "--mount", "--log", "error"]);
        command.args(["--listen", "127.0.0.1:0", "--iscsi", "127.0.0.1:0", "--https", "127.0.0.1:0"]);
        let daemon = Daemon::start(&mut command).map_err(|e| format!("{}: {e}", options.cenote.display()))?;
        let program = options.cenote.display().to_string();
        let mut cenote = Cenote { daemon, program, home: home.display().to_string(), disks, at };
        let words = ["--home", &cenote.home, "status"];
        let is_up = || run(stop, &cenote.program, &words).is_ok_and(|said| !said.contains("no daemon"));
        cenote.daemon.wait(PATIENCE, is_up)?;
        let (at, moved) = (cenote.at.display().to_string(), moved.display().to_string());
        cenote.zpool(stop, &["create", "-m", &at, POOL, &moved]).map_err(|e| e.to_string())?;
        cenote.check_mounted().map_err(|e| e.to_string())?;
        Ok(cenote)
    }

    fn zpool(&self, stop: &Stop, words: &[&str]) -> Result<()> {
        let words = [&["--home", &self.home, "zpool"], words].concat();
        run(stop, &self.program, &words).map(drop)
    }

    fn check_mounted(&self) -> Result<()> {
        check_mounted(&self.at)
    }
}

impl Peer for Cenote {
    fn root(&self) -> &Path {
        &self.at
    }

    fn cold(&mut self, stop: &Stop) -> Result<()> {
        self.zpool(stop, &["export", POOL])?;
        self.zpool(stop, &["import", "-d", &self.disks.display().to_string(), POOL])?;
        self.check_mounted()
    }

    fn cpu(&self) -> Option<Duration> {
        self.daemon.cpu()
    }
}

/// What is measured must not be the directory below a mount that is not there.
fn check_mounted(at: &Path) -> Result<()> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let at = at.display().to_string();
    let is_there = mounts.lines().any(|line| line.split(' ').nth(1) == Some(&at));
    if is_there { Ok(()) } else { Err(Error::new(Kind::NotFound, "mount").at(at)) }
}

/// Debian's package, unpacked somewhere. Its programs meet at a socket of the whole machine.
struct ZfsFuse {
    /// Where its programs are.
    programs: PathBuf,
    disks: PathBuf,
    at: PathBuf,
    made: Made,
    // The last to go but for the directories that it uses.
    daemon: Daemon,
    _directories: Directories,
}

/// Whether there is a pool to be given up.
struct Made(Option<String>);

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(zpool) = &self.0 {
            let _ = said(zpool, &["export", "-f", POOL]);
        }
    }
}

/// What zfs-fuse needs to be there; those that were not, go again.
struct Directories(Vec<PathBuf>);

const DIRECTORIES: [&str; 4] = ["/var/run/zfs", "/var/lib/zfs", "/var/lock/zfs", "/var/run/sharetab.d"];

impl Directories {
    fn make() -> std::io::Result<Directories> {
        let mut made = Directories(Vec::new());
        for path in DIRECTORIES.map(PathBuf::from) {
            if !path.exists() {
                std::fs::create_dir(&path)?;
                made.0.push(path);
            }
        }
        Ok(made)
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

impl ZfsFuse {
    fn start(options: &Options, scratch: &Path, disk: &Path, stop: &Stop) -> Result<ZfsFuse, String> {
        let root = options.zfs_fuse.clone();
        let program = ["sbin/zfs-fuse", "usr/sbin/zfs-fuse"].map(|name| root.join(name));
        let program = program.into_iter().find(|path| path.exists());
        let program = program.ok_or("not installed: --zfs-fuse says where Debian's package is unpacked")?;
        let failed = |e: std::io::Error| e.to_string();
        let (disks, at) = (scratch.join("zfs-fuse-disks"), scratch.join("zfs-fuse"));
        std::fs::create_dir(&disks).map_err(failed)?;
        let moved = disks.join("disk");
        std::fs::rename(disk, &moved).map_err(failed)?;
        let directories = Directories::make().map_err(failed)?;
        let mut command = Command::new(&program);
        command.args(["--no-daemon", "--no-kstat-mount"]);
        let daemon = Daemon::start(&mut command).map_err(failed)?;
        let programs = program.parent().map(Path::to_path_buf).unwrap_or_default();
        let mut fuse = ZfsFuse { programs, disks, at, made: Made(None), daemon, _directories: directories };
        let zpool = fuse.zpool();
        fuse.daemon.wait(PATIENCE, || run(stop, &zpool, &["list"]).is_ok())?;
        let (at, moved) = (fuse.at.display().to_string(), moved.display().to_string());
        let words = ["create", "-f", "-o", "cachefile=none", "-m", &at, POOL, &moved];
        run(stop, &zpool, &words).map_err(|e| e.to_string())?;
        fuse.made = Made(Some(zpool));
        check_mounted(&fuse.at).map_err(|e| e.to_string())?;
        Ok(fuse)
    }

    fn zpool(&self) -> String {
        self.programs.join("zpool").display().to_string()
    }
}

impl Peer for ZfsFuse {
    fn root(&self) -> &Path {
        &self.at
    }

    fn cold(&mut self, stop: &Stop) -> Result<()> {
        let disks = self.disks.display().to_string();
        run(stop, &self.zpool(), &["export", POOL])?;
        run(stop, &self.zpool(), &["import", "-o", "cachefile=none", "-d", &disks, POOL])?;
        check_mounted(&self.at)
    }

    fn cpu(&self) -> Option<Duration> {
        self.daemon.cpu()
    }
}

/// ext4 once more, and a program that passes each request of FUSE on to it: what is left of a file system of the kernel
/// behind FUSE when nothing but calls of the system is done for a request.
struct Bindfs {
    at: PathBuf,
    // In this order they go: the server, then what is below.
    daemon: Option<Daemon>,
    below: LoopMount,
}

impl Bindfs {
    fn start(scratch: &Path, disk: &Path) -> Result<Bindfs, String> {
        let failed = |e: std::io::Error| e.to_string();
        let (below, at) = (scratch.join("below"), scratch.join("bindfs"));
        std::fs::create_dir(&below).and_then(|()| std::fs::create_dir(&at)).map_err(failed)?;
        let below = LoopMount::new("ext4", &below, disk)?;
        let mut bindfs = Bindfs { at, daemon: None, below };
        bindfs.serve()?;
        Ok(bindfs)
    }

    fn serve(&mut self) -> Result<(), String> {
        let mut command = Command::new("bindfs");
        command.args(["-f", "--multithreaded"]).arg(self.below.at()).arg(&self.at);
        let mut daemon = Daemon::start(&mut command).map_err(|e| format!("bindfs: {e}"))?;
        daemon.wait(PATIENCE, || check_mounted(&self.at).is_ok())?;
        self.daemon = Some(daemon);
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), String> {
        said("umount", &[&self.at.to_string_lossy()])?;
        self.daemon = None;
        Ok(())
    }
}

impl Drop for Bindfs {
    fn drop(&mut self) {
        // A mount whose server has gone answers with errors; it must not stay.
        if self.daemon.is_some() && self.unmount().is_err() {
            let _ = said("umount", &["-l", &self.at.to_string_lossy()]);
        }
    }
}

impl Peer for Bindfs {
    fn root(&self) -> &Path {
        &self.at
    }

    fn cold(&mut self, _: &Stop) -> Result<()> {
        let failed = |e: String| Error::new(Kind::Io, "mount anew").because(e);
        self.unmount().map_err(failed)?;
        self.below.again().map_err(failed)?;
        self.serve().map_err(failed)
    }

    fn cpu(&self) -> Option<Duration> {
        self.daemon.as_ref()?.cpu()
    }
}
