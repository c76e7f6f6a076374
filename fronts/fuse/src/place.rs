//! Mount points: making them, and getting rid of what a killed program left on them.

use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::{Error, Kind, Result};

const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Why this process cannot mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    NoDevice,
    /// It is there, and may not be opened: a container without the device.
    Denied,
    /// Root's, and without the right: in a sandbox.
    NoRight,
    /// Not root, and no fusermount3 to ask.
    NoHelper,
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unusable::NoDevice => "this machine has no /dev/fuse",
            Unusable::Denied => {
                "/dev/fuse may not be opened (Permission denied): give this process or its container the device"
            }
            Unusable::NoRight => {
                "this process has no CAP_SYS_ADMIN; a unit of systemd gets it by cenote.service.d/mount.conf"
            }
            Unusable::NoHelper => "only root may mount here, and there is no fusermount3",
        })
    }
}

impl std::error::Error for Unusable {}

/// Whether mounting can succeed at all.
pub fn can_mount() -> Result<(), Unusable> {
    if !Path::new("/dev/fuse").exists() {
        return Err(Unusable::NoDevice);
    }
    if rustix::process::geteuid().is_root() {
        if !may_mount() {
            return Err(Unusable::NoRight);
        }
        return allowed(std::fs::File::options().read(true).write(true).open("/dev/fuse").err());
    }
    // The helper opens the device by its own rights.
    if helper().is_some() { Ok(()) } else { Err(Unusable::NoHelper) }
}

fn allowed(failure: Option<io::Error>) -> Result<(), Unusable> {
    match failure {
        Some(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(Unusable::Denied),
        _ => Ok(()),
    }
}

/// Whether this process has the right that mount(2) asks for. Where the kernel does not say, it is tried.
fn may_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    effective.is_none_or(|rights| rights & CAP_SYS_ADMIN != 0)
}

pub(crate) fn helper() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let found = |dir: PathBuf| {
        ["fusermount3", "fusermount"].map(|name| dir.join(name)).into_iter().find(|p| p.is_file())
    };
    std::env::split_paths(&path).chain(usual).find_map(found)
}

/// Whether the file system that is mounted there has lost its program. Of files the kernel may still remember something;
/// of the file system as a whole it asks each time.
fn is_dead(at: &Path) -> bool {
    rustix::fs::statfs(at).is_err_and(|e| matches!(e, Errno::NOTCONN | Errno::CONNABORTED))
}

/// Takes away what is mounted at `at` as long as its program is gone. Blocks.
pub(crate) fn detach_dead(at: &Path) -> Result<()> {
    // Several may lie one above the other.
    for _ in 0..64 {
        if !is_dead(at) {
            return Ok(());
        }
        unmount(at, true)?;
    }
    Ok(())
}

/// As [`detach_dead`], of many; one that cannot be taken away is met again when something is to be mounted there.
pub async fn detach_all_dead(places: Vec<String>) {
    crate::loops::apart(move || {
        // What lies deeper goes first.
        let mut places = places;
        places.sort();
        for place in places.iter().rev() {
            let _ = detach_dead(Path::new(place));
        }
    })
    .await;
}

/// Unmounts as root, or by the helper. With force it is gone from the tree at once, in use or not. Blocks.
pub(crate) fn unmount(at: &Path, force: bool) -> Result<()> {
    let failed = |kind, e: String| Error::new(kind, "unmount").at(at.display()).because(e);
    let flags = if force { UnmountFlags::FORCE | UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(at, flags | UnmountFlags::NOFOLLOW) {
        // Another process was faster.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(Errno::BUSY) => Err(failed(Kind::Busy, "somebody uses it".into())),
        Err(Errno::PERM) => {
            let Some(helper) = helper() else { return Err(failed(Kind::Io, Unusable::NoHelper.to_string())) };
            let flags = if force { "-uz" } else { "-u" };
            let asked = Command::new(helper).arg(flags).arg("--").arg(at).stdin(Stdio::null()).output();
            let output = asked.map_err(|e| failed(Kind::Io, e.to_string()))?;
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
            let kind = if said.contains("busy") { Kind::Busy } else { Kind::Io };
            Err(failed(kind, said))
        }
        Err(e) => Err(failed(Kind::Io, io::Error::from(e).to_string())),
    }
}

/// Whether a file system with this number of a device is mounted anywhere that this process sees; where the kernel does not
/// say, it is. Blocks.
pub(crate) fn is_mounted_here(device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    match std::fs::read_to_string("/proc/self/mountinfo") {
        Ok(mounts) => mounts.lines().any(|line| line.split(' ').nth(2) == Some(&format!("{major}:{minor}"))),
        Err(_) => true,
    }
}

/// Makes the directory that is mounted on. Without `overlay` it must be empty, and nothing that is `needed` may lie in it or
/// below. Blocks.
pub(crate) fn prepare(at: &Path, overlay: bool, needed: &[PathBuf]) -> Result<()> {
    let failed = |e: io::Error| Error::new(Kind::Io, "use mount point").at(at.display()).because(e);
    detach_dead(at)?;
    std::fs::create_dir_all(at).map_err(failed)?;
    let real = at.canonicalize().map_err(failed)?;
    if let Some(needed) = needed.iter().find(|needed| is_in_the_way(needed, &real)) {
        let why = format!("it would hide {}, which the daemon itself needs", needed.display());
        return Err(Error::new(Kind::Invalid, "use mount point").at(at.display()).because(why));
    }
    if !overlay && std::fs::read_dir(at).map_err(failed)?.next().is_some() {
        return Err(Error::new(Kind::Busy, "use mount point")
            .at(at.display())
            .because("directory is not empty"));
    }
    Ok(())
}

/// Whether a directory, by its path without links, is passed on the way to `path`, by its links or without.
fn is_in_the_way(path: &Path, directory: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return false };
    let real = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(directory));
    // What is not there may come: a device that is away.
    path.starts_with(directory) || path.ancestors().any(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_on_the_way_to_what_is_needed_is_not_mounted_over() {
        let root =
            std::env::temp_dir().canonicalize().unwrap().join(format!("cenote-way-{}", std::process::id()));
        let at = |name: &str| root.join(name);
        std::fs::create_dir_all(at("home/disks")).unwrap();
        std::fs::create_dir_all(at("links")).unwrap();
        std::os::unix::fs::symlink(at("home"), at("links/home")).unwrap();
        for (needed, place, is_refused) in [
            ("home", "home", true),
            ("home", "", true),
            ("home/disks/gone", "home/disks", true),
            ("links/home/disks", "home", true),
            ("links/home/disks", "links", true),
            ("home", "links/home", true),
            ("home", "home/disks", false),
            ("home", "beside", false),
            ("home/disks", "home/mnt", false),
        ] {
            let prepared = prepare(&at(place), true, &[at(needed)]);
            assert_eq!(prepared.is_err(), is_refused, "{needed} with {place}: {prepared:?}");
            if let Err(e) = prepared {
                let shown = at(needed).display().to_string();
                assert!(e.to_string().contains(&format!("it would hide {shown}")), "{e}");
            }
        }
        std::fs::remove_dir_all(&root).unwrap();
    }

    /// "Permission denied" alone sent people to the rights of the mount point.
    #[test]
    fn a_device_that_may_not_be_opened_is_named() {
        let denied = allowed(Some(io::ErrorKind::PermissionDenied.into())).unwrap_err();
        assert!(denied.to_string().starts_with("/dev/fuse may not be opened (Permission denied)"));
        assert_eq!(allowed(None), Ok(()));
    }
}
