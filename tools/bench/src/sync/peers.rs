//! File systems of the kernel, made for the occasion on a loop device on the same disk.
//!
//! Nothing is discarded when they are made: the file below keeps its blocks, as it did for the pool.

use crate::filesync::{Options, Outcome, files};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const FILE_SYSTEMS: [&str; 2] = ["ext4", "xfs"];

/// What keeps `mkfs` from discarding.
const KEEP: [&[&str]; 2] = [&["-E", "nodiscard"], &["-K", "-f"]];

/// The loop with each number of streams, or why it cannot be run here.
pub(super) fn filesync(
    file_system: &str,
    dir: &Path,
    image: &Path,
    count: u64,
    streams: &[usize],
) -> Result<Vec<Outcome>, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root may mount".into());
    }
    let mounted = Mounted::new(file_system, dir, image)?;
    let run =
        |&streams: &usize| files::run(&mounted.at, Options { count, streams }).map_err(|e| e.to_string());
    streams.iter().map(run).collect()
}

/// A mounted file system, unmounted when it goes.
struct Mounted {
    device: String,
    at: PathBuf,
    is_mounted: bool,
}

impl Mounted {
    fn new(file_system: &str, dir: &Path, image: &Path) -> Result<Mounted, String> {
        let image = image.to_string_lossy().into_owned();
        let device = said("losetup", &["--show", "-f", "--direct-io=on", &image])?;
        let mut mounted = Mounted { device, at: dir.join(file_system), is_mounted: false };
        let keep = FILE_SYSTEMS.iter().position(|f| *f == file_system).map_or(&[][..], |i| KEEP[i]);
        let words = [&["-q"], keep, &[&mounted.device]].concat();
        said(&format!("mkfs.{file_system}"), &words)?;
        std::fs::create_dir_all(&mounted.at).map_err(|e| e.to_string())?;
        said("mount", &["-t", file_system, &mounted.device, &mounted.at.to_string_lossy()])?;
        mounted.is_mounted = true;
        Ok(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // What goes wrong here is for the administrator, who sees the mount.
        if self.is_mounted {
            let _ = said("umount", &[&self.at.to_string_lossy()]);
        }
        let _ = said("losetup", &["-d", &self.device]);
    }
}

/// What a program says on its standard output; its complaint when it fails.
fn said(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|e| format!("cannot run {program}: {e}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let line = complaint.lines().next().unwrap_or_default();
        return Err(format!("{program} failed: {line}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
