//! File systems of the kernel, made for the occasion on a loop device over a file.
//!
//! Nothing is discarded when they are made: the file below keeps its blocks, as it did for the pool. The loop device
//! uses it with O_DIRECT, so that nothing is cached twice.

use crate::programs::said;
use std::path::{Path, PathBuf};

/// What keeps each `mkfs` from discarding, and from asking; ext4 is to have nothing left to do in the background.
const KINDS: [(&str, &[&str]); 3] = [
    ("ext4", &["-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]),
    ("xfs", &["-K", "-f"]),
    ("btrfs", &["-K", "-f"]),
];

/// A mounted file system, unmounted when it goes.
#[derive(Debug)]
pub(crate) struct LoopMount {
    file_system: String,
    device: String,
    at: PathBuf,
    is_mounted: bool,
}

impl LoopMount {
    /// Makes a file system on the file `image` and mounts it in `dir`, under its name.
    pub fn new(file_system: &str, dir: &Path, image: &Path) -> Result<LoopMount, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root may mount".into());
        }
        let image = image.to_string_lossy().into_owned();
        let device = said("losetup", &["--show", "-f", "--direct-io=on", &image])?;
        let at = dir.join(file_system);
        let mut mounted = LoopMount { file_system: file_system.into(), device, at, is_mounted: false };
        let options = KINDS.iter().find(|(kind, _)| *kind == file_system).map_or(&[][..], |(_, words)| words);
        let words = [&["-q"], options, &[&mounted.device]].concat();
        said(&format!("mkfs.{file_system}"), &words)?;
        std::fs::create_dir_all(&mounted.at).map_err(|e| e.to_string())?;
        mounted.mount()?;
        Ok(mounted)
    }

    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Unmounts and mounts it: nothing of it is in memory then.
    pub fn again(&mut self) -> Result<(), String> {
        self.unmount()?;
        self.mount()
    }

    fn mount(&mut self) -> Result<(), String> {
        said("mount", &["-t", &self.file_system, &self.device, &self.at.to_string_lossy()])?;
        self.is_mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), String> {
        said("umount", &[&self.at.to_string_lossy()])?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        // What goes wrong here is for the administrator, who sees the mount.
        if self.is_mounted && self.unmount().is_err() {
            let _ = said("umount", &["-l", &self.at.to_string_lossy()]);
        }
        let _ = said("losetup", &["-d", &self.device]);
    }
}
