//! Keeping other writers out: what an open for writing locks.
//!
//! ```text
//!   a file            flock EX on its inode: other paths, links and bind mounts of it are the same inode
//!                     O_EXCL on each loop device that shows the file: a file system, the device mapper or another
//!                     program that has one of those would write beneath this process
//!   a block device    O_EXCL: excludes file systems, swap, the device mapper, its partitions or its whole disk
//!     partition of ─┐
//!     dm or md over ├─▶ a loop device ─▶ its backing file   flock SH: excludes writers to the file itself
//!     the device  ──┘                                       and a lock on the bytes that are shown: excludes other
//!                                                           loop devices over the same bytes, not other partitions
//! ```
//!
//! Invariants: all that is locked is locked before the first byte is written, and given back when the last request of
//! the disk has ended. That holds for a process that is killed too: it is gone at once, while the direct writes that it
//! had under way reach the device for as long as the device takes, seconds where it is busy. The kernel keeps the open
//! file of such a write until then, so it is that open file, `direct`, which holds the lock on the disk. (What goes by
//! the other one is done by the process's threads, and a process is not gone before its threads are.)
//!
//! A lock that cannot be taken because the host has no such thing (a file system without locks, a backing file of
//! another mount namespace that nothing has locked) does not keep a disk from being opened.
//!
//! Not seen from here: another machine, a program that locks nothing, a copy of the file that an overlay has made, two
//! stacks of the device mapper over two loop devices of one file. What the labels say of their owner catches those.

use crate::geometry::Nature;
use crate::own;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fstat};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Devices upon devices: deeper than stacks are in practice.
const DEPTH_MAX: usize = 16;
const SECTOR: u64 = 512;
/// How often a device that is in use is tried again, and after what time: in all, what a loop may stop for once.
const CLAIMS: u32 = 20;
const CLAIM_AGAIN: Duration = Duration::from_millis(2);

/// What is locked besides the disk's own descriptor.
#[derive(Debug, Default)]
pub(super) struct Claim {
    files: Vec<OwnedFd>,
    /// Opened with O_EXCL, which lasts as long as the descriptor.
    _devices: Vec<OwnedFd>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        for file in &self.files {
            unlock(file);
            let _ = lock_bytes(file, libc::F_UNLCK, &(0..0));
        }
    }
}

/// Closing is not enough: a child that another thread is just starting holds copies of all descriptors until it becomes
/// its program, and with them the lock. It fails where there is none.
pub(super) fn unlock(file: &OwnedFd) {
    let _ = rustix::fs::flock(file, FlockOperation::NonBlockingUnlock);
}

/// Takes the disk at `path` for writing: gives the two open files, of which one holds it, and what else is held.
pub(super) fn take(
    plain: OwnedFd,
    direct: Option<OwnedFd>,
    path: &Path,
    nature: Nature,
    access: OFlags,
) -> io::Result<(OwnedFd, Option<OwnedFd>, Claim)> {
    let mut claim = Claim::default();
    if nature != Nature::BlockDevice {
        let holder = direct.as_ref().unwrap_or(&plain);
        lock(holder, path, FlockOperation::NonBlockingLockExclusive)?;
        claim_loops_over(holder, path, &mut claim)?;
        return Ok((plain, direct, claim));
    }
    let view = if direct.is_some() { OFlags::DIRECT } else { OFlags::empty() };
    let held = claim_device(path, access | view).map_err(|e| named(e, path))?;
    claim_beneath(rustix::fs::fstat(&held)?.st_rdev, Shown::All, path, &mut claim, 0)?;
    match direct {
        Some(_) => Ok((plain, Some(held), claim)),
        None => Ok((held, None, claim)),
    }
}

fn named(e: Errno, path: &Path) -> io::Error {
    if e == Errno::BUSY { in_use(path, "it is mounted, or open for writing already") } else { e.into() }
}

/// A device that this process has just closed may be held a moment longer, by a child as in [`unlock`]; no call ends that.
fn claim_device(path: &Path, access: OFlags) -> Result<OwnedFd, Errno> {
    let claim = || rustix::fs::open(path, access | OFlags::EXCL, Mode::empty());
    for _ in 0..CLAIMS {
        match claim() {
            Err(Errno::BUSY) => std::thread::sleep(CLAIM_AGAIN),
            claimed => return claimed,
        }
    }
    claim()
}

fn in_use(path: &Path, how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, format!("'{}' is in use: {how}", path.display()))
}

/// Two writers would destroy each other's pool.
fn lock(fd: &OwnedFd, path: &Path, how: FlockOperation) -> io::Result<()> {
    match rustix::fs::flock(fd, how) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(in_use(path, "it is open for writing already")),
        // A file system without locks (some network ones): what cannot be guarded here is guarded by `multihost`.
        Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK | Errno::INVAL) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// The part of a device that is used, as far as it is known.
#[derive(Clone, Debug)]
enum Shown {
    All,
    Bytes(Range<u64>),
    /// What the device mapper made of it: other parts may be in use by others.
    Some,
}

/// Locks what lies under the device `dev`.
fn claim_beneath(dev: u64, shown: Shown, path: &Path, claim: &mut Claim, depth: usize) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Ok(());
    }
    let Ok(dir) = fs::canonicalize(sysfs(dev)) else { return Ok(()) };
    let under = |dir: &Path, shown, claim: &mut Claim| match number(dir) {
        Some(dev) => claim_beneath(dev, shown, path, claim, depth + 1),
        None => Ok(()),
    };
    if dir.join("partition").exists() {
        let sectors = |name: &str| text(&dir.join(name)).and_then(|t| t.parse::<u64>().ok());
        let bytes = sectors("start").zip(sectors("size")).map(|(at, n)| at * SECTOR..(at + n) * SECTOR);
        let part = match (shown, bytes) {
            (Shown::Some, _) => Shown::Some,
            (_, Some(bytes)) => Shown::Bytes(bytes),
            (_, None) => Shown::Some,
        };
        return dir.parent().map_or(Ok(()), |disk| under(disk, part, claim));
    }
    if dir.join("loop").is_dir() {
        return claim_backing(&dir, shown, path, claim, depth);
    }
    for slave in fs::read_dir(dir.join("slaves")).into_iter().flatten().flatten() {
        if let Ok(slave) = fs::canonicalize(slave.path()) {
            under(&slave, Shown::Some, claim)?;
        }
    }
    Ok(())
}

/// Locks the file, or the device, that a loop device shows.
fn claim_backing(dir: &Path, shown: Shown, path: &Path, claim: &mut Claim, depth: usize) -> io::Result<()> {
    let Some(node) = node(dir) else { return Ok(()) };
    let Some(status) = open_quietly(&node, OFlags::RDONLY).and_then(|fd| status(&fd)) else { return Ok(()) };
    let through = |e: io::Error| match e.kind() {
        io::ErrorKind::ResourceBusy => in_use(path, &format!("of what is under it, {e}")),
        _ => e,
    };
    own::refuse_device(status.backing.0)?;
    let backing = text(&dir.join("loop/backing_file")).map(PathBuf::from);
    let opened = backing.as_deref().and_then(|backing| open_quietly(backing, OFlags::RDWR));
    let opened = opened.filter(|fd| fstat(fd).is_ok_and(|s| (s.st_dev, s.st_ino) == status.backing));
    let (Some(backing), Some(fd)) = (backing, opened) else {
        // It was renamed, deleted, or is of another mount namespace; the kernel still knows its locks.
        let (dev, ino) = status.backing;
        return match is_locked(dev, ino) {
            true => Err(in_use(path, "its backing file is open for writing already")),
            false => Ok(()),
        };
    };
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::BlockDevice {
        let held = claim_device(&backing, OFlags::RDWR | OFlags::CLOEXEC);
        let held = held.map_err(|e| through(named(e, &backing)))?;
        let dev = fstat(&held)?.st_rdev;
        claim._devices.push(held);
        return claim_beneath(dev, Shown::Some, path, claim, depth + 1);
    }
    lock(&fd, &backing, FlockOperation::NonBlockingLockShared).map_err(through)?;
    let (kind, bytes) = match shown {
        Shown::All => (libc::F_WRLCK, status.bytes()),
        Shown::Bytes(part) => {
            let at = status.offset;
            (libc::F_WRLCK, at.saturating_add(part.start)..at.saturating_add(part.end))
        }
        Shown::Some => (libc::F_RDLCK, status.bytes()),
    };
    let locked = lock_bytes(&fd, kind, &bytes);
    claim.files.push(fd);
    match locked {
        Err(libc::EAGAIN | libc::EACCES) => {
            Err(through(in_use(&backing, "it is open for writing already, through another device")))
        }
        _ => Ok(()),
    }
}

/// Keeps the loop devices that show this file from being used by others.
fn claim_loops_over(fd: &OwnedFd, path: &Path, claim: &mut Claim) -> io::Result<()> {
    let own = fstat(fd)?;
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let dir = entry.path();
        if !entry.file_name().as_encoded_bytes().starts_with(b"loop") || !dir.join("loop").is_dir() {
            continue;
        }
        let Some(node) = node(&dir) else { continue };
        let shows = open_quietly(&node, OFlags::RDONLY).and_then(|fd| status(&fd));
        if shows.is_none_or(|s| s.backing != (own.st_dev, own.st_ino)) {
            continue;
        }
        match claim_device(&node, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK) {
            Ok(device) => claim._devices.push(device),
            Err(Errno::BUSY) => {
                let how = format!("through {}, which is mounted or open for writing already", node.display());
                return Err(in_use(path, &how));
            }
            // It was detached meanwhile, or is not ours to open.
            Err(_) => {}
        }
    }
    Ok(())
}

/// What a loop device shows.
struct Status {
    /// Device and inode of the backing file.
    backing: (u64, u64),
    offset: u64,
    /// 0 for all.
    limit: u64,
}

impl Status {
    fn bytes(&self) -> Range<u64> {
        let end = if self.limit == 0 { u64::MAX } else { self.offset.saturating_add(self.limit) };
        self.offset..end
    }
}

#[allow(unsafe_code)]
fn status(fd: &OwnedFd) -> Option<Status> {
    const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;
    /// `struct loop_info64` as words: device, inode, device shown, offset, limit, and more.
    const WORDS: usize = 29;
    let mut info = [0u64; WORDS];
    // SAFETY: the call writes one `struct loop_info64` of 232 bytes to the address, where 29 words of 8 bytes are.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    let [device, inode, _, offset, limit, ..] = info;
    (result == 0).then_some(Status { backing: (device, inode), offset, limit })
}

/// Locks a range of a file for this open description, whichever process it is in; the end `u64::MAX` is that of the file.
#[allow(unsafe_code)]
fn lock_bytes(fd: &OwnedFd, kind: libc::c_int, bytes: &Range<u64>) -> Result<(), libc::c_int> {
    let end = if bytes.end > i64::MAX as u64 { 0 } else { bytes.end - bytes.start };
    let lock = libc::flock {
        l_type: kind as _,
        l_whence: libc::SEEK_SET as _,
        l_start: bytes.start.min(i64::MAX as u64) as _,
        l_len: end as _,
        l_pid: 0,
    };
    // SAFETY: the call reads one `struct flock` from the address, which is valid for its duration, and keeps nothing.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)) }
}

fn is_locked(dev: u64, ino: u64) -> bool {
    let place = format!("{:02x}:{:02x}:{ino}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().any(|line| line.split_whitespace().any(|word| word == place))
}

fn open_quietly(path: &Path, access: OFlags) -> Option<OwnedFd> {
    rustix::fs::open(path, access | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()).ok()
}

fn sysfs(dev: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev)).into()
}

/// The number of the device whose directory this is.
fn number(dir: &Path) -> Option<u64> {
    let numbers = text(&dir.join("dev"))?;
    let (major, minor) = numbers.split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The device's node.
fn node(dir: &Path) -> Option<PathBuf> {
    let uevent = text(&dir.join("uevent"))?;
    uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(|name| Path::new("/dev").join(name))
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_string())
}
