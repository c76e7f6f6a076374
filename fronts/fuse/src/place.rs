//! Mount points: making them, taking file systems away from them, and getting rid of what a killed program left.
//!
//! A file system is mounted in as many places as others gave it: by bind mounts, and in mount namespaces that were copied
//! while it was there. To unmount it here ends it only where no such place is left; otherwise its users would go on there,
//! and here programs would write into the directory below, which is another file system's. So a copy of the mount is
//! held meanwhile, and put back:
//!
//! ```text
//!   copy held (open_tree) ── umount(2) ──▶ still mounted anywhere? ── no ──▶ copy let go: it ends
//!                               │                  └── yes ──▶ copy put back (move_mount): busy, and where
//!                               └── in use: nothing has changed
//! ```
//!
//! What goes along by propagation is no such place: it is gone when it is looked for. Without the right to mount there is no
//! copy, and fusermount3 unmounts.

use crate::device::mount_flags;
use crate::mountinfo;
use crate::options::Options;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use units::{Error, Kind, Result};

const CAP_SYS_ADMIN: u64 = 1 << 21;
/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

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

/// Takes away what is mounted at `at`, a path without links, as long as its program is gone. Blocks.
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
        let own = rustix::process::geteuid().as_raw();
        // What lies deeper goes first.
        let mut places = places;
        places.sort();
        for place in places.iter().rev() {
            if let Ok(real) = without_links(Path::new(place), own) {
                let _ = detach_dead(&real);
            }
        }
    })
    .await;
}

fn failed(at: &Path, kind: Kind, why: impl Into<String>) -> Error {
    Error::new(kind, "unmount").at(at.display()).because(why.into())
}

/// How often, and how many times, it is tried to unmount what another mount namespace has: a container that starts copies
/// all mounts and soon drops them.
const NAMESPACE_EACH: Duration = Duration::from_millis(100);
const NAMESPACE_TRIES: usize = 20;

/// Where a file system lives on that is not mounted here any more.
enum Elsewhere {
    Here(String),
    OtherNamespace(String),
}

/// Unmounts what is not in use, and whose files have this number of a device. One that would live on elsewhere stays: see
/// the module. Blocks.
pub(crate) fn unmount_to_end(at: &Path, device: u64) -> Result<()> {
    let mut tries = 0..NAMESPACE_TRIES;
    loop {
        match unmount_or_put_back(at, device)? {
            None => return Ok(()),
            Some(Elsewhere::OtherNamespace(_)) if tries.next().is_some() => {
                std::thread::sleep(NAMESPACE_EACH)
            }
            Some(Elsewhere::Here(why) | Elsewhere::OtherNamespace(why)) => {
                return Err(failed(at, Kind::Busy, why));
            }
        }
    }
}

fn unmount_or_put_back(at: &Path, device: u64) -> Result<Option<Elsewhere>> {
    let Some(held) = Held::of(at, device) else { return unmount(at, false).map(|()| None) };
    unmount_by(at, &held.path(), false)?;
    let elsewhere = still_mounted(device);
    if let Some(Elsewhere::Here(why) | Elsewhere::OtherNamespace(why)) = &elsewhere {
        held.put_back().map_err(|e| {
            let why = format!("{why}, and it could not be put back here: {}", io::Error::from(e));
            failed(at, Kind::Io, why)
        })?;
    }
    Ok(elsewhere)
}

/// Whether a directory is of the file system whose files have this number of a device. The file system is not asked.
fn is_of(directory: &OwnedFd, device: u64) -> bool {
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let known = rustix::fs::statx(directory, "", how, StatxFlags::empty());
    known.is_ok_and(|known| rustix::fs::makedev(known.stx_dev_major, known.stx_dev_minor) == device)
}

fn still_mounted(device: u64) -> Option<Elsewhere> {
    let places = mountinfo::places(device).unwrap_or_default();
    if !places.is_empty() {
        return Some(Elsewhere::Here(format!("it is mounted at {} as well", mountinfo::list(&places))));
    }
    let process = mountinfo::process_elsewhere(device)?;
    let why = format!("it is mounted in the mount namespace of {process} as well");
    Some(Elsewhere::OtherNamespace(why))
}

/// A copy of a mount, and its place by a descriptor of the directory above: a user that may write there cannot have it put
/// back elsewhere.
struct Held<'a> {
    copy: OwnedFd,
    above: OwnedFd,
    name: &'a OsStr,
}

impl Held<'_> {
    /// None without the right to mount, or where another file system is.
    fn of(at: &Path, device: u64) -> Option<Held<'_>> {
        let (above, name) = (at.parent()?, at.file_name()?);
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = rustix::fs::open(above, how, Mode::empty()).ok()?;
        let how = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        let copy = rustix::mount::open_tree(&above, name, how).ok()?;
        is_of(&copy, device).then_some(Held { copy, above, name })
    }

    /// Descriptors are the thread's own: see `linux::apart`.
    fn path(&self) -> PathBuf {
        Path::new("/proc/thread-self/fd").join(self.above.as_raw_fd().to_string()).join(self.name)
    }

    fn put_back(&self) -> rustix::io::Result<()> {
        let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(&self.copy, "", &self.above, self.name, how)
    }
}

/// Changes the flags of a mount whose files have this number of a device, while it is used. What makes it read-only, or
/// no more so, holds wherever the file system is mounted; the others for this place. It is refused as busy while a file is
/// open to be written. Blocks.
pub(crate) fn change(at: &Path, device: u64, now: &Options, whole: bool) -> io::Result<()> {
    // By a descriptor: what another program mounts over it meanwhile is not ours.
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = rustix::fs::open(at, how, Mode::empty())?;
    if !is_of(&root, device) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is not mounted there"));
    }
    // Descriptors are the thread's own: see `linux::apart`.
    let root_path = format!("/proc/thread-self/fd/{}", root.as_raw_fd());
    let mut flags = mount_flags(now);
    // Said of neither, what was there would be kept.
    flags.set(MountFlags::RELATIME, now.atime);
    flags.set(MountFlags::BIND, !whole);
    Ok(rustix::mount::mount_remount(root_path, flags, "")?)
}

/// Unmounts as root, or by the helper. With force it is gone from the tree at once, in use or not. Blocks.
pub(crate) fn unmount(at: &Path, force: bool) -> Result<()> {
    unmount_by(at, at, force)
}

/// As [`unmount`], by another path to the same place.
fn unmount_by(at: &Path, path: &Path, force: bool) -> Result<()> {
    let failed = |kind, e: String| failed(at, kind, e);
    let flags = if force { UnmountFlags::FORCE | UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(path, flags | UnmountFlags::NOFOLLOW) {
        // Another process was faster.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(Errno::BUSY) => Err(match mountinfo::below(at) {
            Some(below) => failed(Kind::Busy, format!("{} is mounted below it", mountinfo::list(&[below]))),
            None => Error::new(Kind::Busy, "unmount").at(at.display()),
        }),
        Err(Errno::PERM) => {
            let Some(helper) = helper() else { return Err(failed(Kind::Io, Unusable::NoHelper.to_string())) };
            let flags = if force { "-uz" } else { "-u" };
            let asked = Command::new(helper).arg(flags).arg("--").arg(at).stdin(Stdio::null()).output();
            let output = asked.map_err(|e| failed(Kind::Io, e.to_string()))?;
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
            Err(match said.contains("busy") {
                true => Error::new(Kind::Busy, "unmount").at(at.display()),
                false => failed(Kind::Io, said),
            })
        }
        Err(e) => Err(failed(Kind::Io, io::Error::from(e).to_string())),
    }
}

/// Makes the directory that is mounted on: its path without links. Without `overlay` it must be empty, and nothing that is
/// `needed` may lie in it or below. Blocks.
pub(crate) fn prepare(at: &Path, overlay: bool, needed: &[PathBuf]) -> Result<PathBuf> {
    let failed = |e: io::Error| Error::new(Kind::Io, "use mount point").at(at.display()).because(e);
    let real = without_links(at, rustix::process::geteuid().as_raw()).map_err(|link| {
        let why = format!(
            "{} is a symbolic link of another user, who says with it what is mounted over",
            link.display()
        );
        Error::new(Kind::Invalid, "use mount point").at(at.display()).because(why)
    })?;
    detach_dead(&real)?;
    std::fs::create_dir_all(&real).map_err(failed)?;
    // A link that was put in its way since it was looked at leads elsewhere.
    if real.canonicalize().map_err(failed)? != real {
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, "it is another directory by now")));
    }
    if let Some(needed) = needed.iter().find(|needed| is_in_the_way(needed, &real)) {
        let why = format!("it would hide {}, which the daemon itself needs", needed.display());
        return Err(Error::new(Kind::Invalid, "use mount point").at(at.display()).because(why));
    }
    if !overlay && std::fs::read_dir(&real).map_err(failed)?.next().is_some() {
        return Err(Error::new(Kind::Busy, "use mount point")
            .at(at.display())
            .because("directory is not empty"));
    }
    Ok(real)
}

/// Where a path leads, whose last parts need not be there; or the first symbolic link on the way that belongs to neither
/// root nor this user: a user that may write into a directory above a mount point could have anything mounted over.
/// What is dead is asked for nothing.
fn without_links(at: &Path, own: u32) -> Result<PathBuf, PathBuf> {
    let names = |path: &Path| path.components().map(|name| name.as_os_str().to_owned()).collect::<Vec<_>>();
    let mut left = names(&std::path::absolute(at).unwrap_or_else(|_| at.into()));
    left.reverse();
    let (mut walked, mut links) = (PathBuf::new(), 0);
    while let Some(name) = left.pop() {
        match name.to_str() {
            Some(".") => continue,
            Some("..") => {
                walked.pop();
                continue;
            }
            _ => walked.push(&name),
        }
        // What is not there will be a directory.
        let Ok(there) = std::fs::symlink_metadata(&walked) else { continue };
        // One that leads round and round stays, and the kernel says so.
        if !there.is_symlink() || links == LINKS_MAX {
            continue;
        }
        links += 1;
        if there.uid() != 0 && there.uid() != own {
            return Err(walked);
        }
        let Ok(target) = std::fs::read_link(&walked) else { continue };
        walked.pop();
        // One that begins with `/` takes the place of what was walked.
        left.extend(names(&target).into_iter().rev());
    }
    Ok(walked)
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

    /// A user that may write into a directory had what root mounts below it mounted over any other.
    #[test]
    fn a_link_of_another_user_leads_to_no_mount_point() {
        let root =
            std::env::temp_dir().canonicalize().unwrap().join(format!("cenote-links-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        link(&root.join("a"), "absolute");
        link(Path::new("a/../a"), "relative");
        link(Path::new("absolute/b"), "twice");
        link(Path::new("around"), "around");
        let own = std::fs::symlink_metadata(root.join("absolute")).unwrap().uid();
        let found = |at: &str, own| without_links(&root.join(at), own);
        for (at, real) in [
            ("a/b", "a/b"),
            ("absolute/b", "a/b"),
            ("relative/b/new/newer", "a/b/new/newer"),
            ("twice", "a/b"),
            ("absolute/../relative", "a"),
            ("new/../absolute/b", "a/b"),
        ] {
            assert_eq!(found(at, own), Ok(root.join(real)), "{at}");
        }
        let said = prepare(&root.join("around"), true, &[]).unwrap_err().to_string();
        assert!(!said.contains("another user"), "it leads nowhere: {said}");
        if own == 0 && std::os::unix::fs::lchown(root.join("absolute"), Some(4242), None).is_ok() {
            // Behind what is not there yet, too.
            for at in ["absolute/b", "twice", "absolute/new", "new/../absolute/b"] {
                assert_eq!(found(at, 0), Err(root.join("absolute")), "{at}");
            }
            assert_eq!(found("relative/b", 0), Ok(root.join("a/b")));
            assert_eq!(found("twice", 4242), Ok(root.join("a/b")));
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
