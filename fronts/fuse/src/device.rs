//! `/dev/fuse`: a mount and the descriptor that its requests come from.
//!
//! ```text
//!   root          open /dev/fuse ── mount(2), fd=N among its options
//!   others        fusermount3 does both by its own rights, and hands the descriptor over on its standard input
//!   then          FUSE_INIT: what the kernel can ▶ what of that is to be
//! ```
//!
//! A descriptor can be used by several threads: one read takes one request, one write brings one answer.

use crate::options::Options;
use crate::place::{self, Unusable};
use crate::wire::{self, Head, Init};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, fsconfig_create, fsmount, fsopen,
};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::ffi::CString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

const PATH: &str = "/dev/fuse";

/// See the module.
#[derive(Debug)]
pub(crate) struct Device {
    file: Arc<OwnedFd>,
    /// The kernel's number of the connection, once it is known.
    pub connection: OnceLock<u32>,
}

impl Device {
    /// Mounts at a directory, given by its path without links. Blocks.
    pub fn mount(at: &Path, options: &Options) -> io::Result<Device> {
        let file = match rustix::process::geteuid().is_root() {
            true => mount_as_root(at, options),
            false => mount_by_helper(at, options),
        }?;
        Ok(Device { file: Arc::new(file), connection: OnceLock::new() })
    }

    pub fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// One request, as long as there is a connection. Waits for it.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&*self.file, &mut *into) {
                Ok(n) => return Ok(Some(n)),
                // One that was taken back before it could be read.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::NODEV) => return Ok(None),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Answers a request. One that was taken back, or whose connection has gone, wants no answer.
    pub fn answer(&self, unique: u64, error: i32, parts: &[&[u8]]) {
        let header = wire::out_header(unique, error, parts.iter().map(|part| part.len()).sum());
        let mut all = [IoSlice::new(&header), IoSlice::new(&[]), IoSlice::new(&[])];
        for (at, part) in all[1..].iter_mut().zip(parts) {
            *at = IoSlice::new(part);
        }
        let _ = rustix::io::writev(&*self.file, &all[..=parts.len().min(2)]);
    }

    /// The kernel is to forget what it keeps of a node: its attributes, and the pages from `offset` on, `len` bytes or, with
    /// 0, all; none where the offset is below zero. Waits for pages that are being written. A mount that is going away needs
    /// no news, and a node that is not kept none either.
    pub fn invalidate(&self, node: u64, offset: i64, len: i64) {
        let _ = rustix::io::write(&*self.file, &wire::invalidate(node, offset, len));
    }

    /// Ends the connection, for all users of the mount, wherever they are. That is a word in the kernel's file system for
    /// it, which need not be mounted: then root has it for this word alone.
    ///
    /// The kernel gives the number of a connection that has ended to the next file system, of any program. A word stays
    /// that of the connection it was opened for, and this one has its number as long as it is there: so it is asked for
    /// that after the opening.
    pub fn abort(&self) -> io::Result<()> {
        let Some(connection) = self.connection.get() else { return Ok(()) };
        let word = open_abort(*connection);
        if self.is_connected() {
            rustix::io::write(word?, b"1")?;
        }
        Ok(())
    }

    /// The kernel has not let go of it.
    fn is_connected(&self) -> bool {
        let mut asked = [PollFd::new(&*self.file, PollFlags::empty())];
        let at_once = Timespec::default();
        rustix::event::poll(&mut asked, Some(&at_once)).is_ok_and(|ended| ended == 0)
    }

    /// The first request and its answer: what the kernel can, of which `wanted` is to be, with requests of up to `io_max`
    /// bytes. The result has what both can.
    pub fn greet(&self, wanted: u64, io_max: u32, background: u16) -> io::Result<u64> {
        let mut bytes = vec![0; io_max as usize + 4096];
        let n = self.receive(&mut bytes)?.ok_or(io::ErrorKind::NotConnected)?;
        let refuse = |unique, why: String| {
            self.answer(unique, -Errno::PROTO.raw_os_error(), &[]);
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        };
        let Some((head, _)) = Head::read(&bytes[..n]) else {
            return refuse(0, "the kernel's first request is none".into());
        };
        match Init::read(&bytes[wire::IN_HEADER..n]) {
            Some(init) if head.opcode == Init::OPCODE && init.is_spoken() => {
                self.answer(head.unique, 0, &[&init.answer(wanted, io_max, background)]);
                Ok(init.can & wanted)
            }
            Some(init) if head.opcode == Init::OPCODE => {
                let (major, minor, least) = (init.major, init.minor, wire::MINOR_MIN);
                refuse(
                    head.unique,
                    format!("this kernel speaks FUSE {major}.{minor}, and 7.{least} is needed (Linux 5.4)"),
                )
            }
            _ => refuse(
                head.unique,
                format!("the kernel began with request {} and not with FUSE_INIT", head.opcode),
            ),
        }
    }
}

/// What ends a connection when it is written to.
fn open_abort(connection: u32) -> io::Result<OwnedFd> {
    let name = format!("{connection}/abort");
    let how = OFlags::WRONLY | OFlags::CLOEXEC;
    let mounted = rustix::fs::open(format!("/sys/fs/fuse/connections/{name}"), how, Mode::empty());
    Ok(mounted.or_else(|_| rustix::fs::openat(open_control()?, name, how, Mode::empty()))?)
}

/// The file system that has a directory for each connection, mounted nowhere.
fn open_control() -> rustix::io::Result<OwnedFd> {
    let control = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(control.as_fd())?;
    let attributes = MountAttrFlags::empty();
    fsmount(control.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// What mount(2) is told of the options.
pub(crate) fn mount_flags(options: &Options) -> MountFlags {
    let mut flags = MountFlags::empty();
    for (is_set, flag) in [
        (options.read_only, MountFlags::RDONLY),
        (!options.exec, MountFlags::NOEXEC),
        (!options.setuid, MountFlags::NOSUID),
        (!options.devices, MountFlags::NODEV),
        (!options.atime, MountFlags::NOATIME),
    ] {
        flags.set(flag, is_set);
    }
    flags
}

fn mount_as_root(at: &Path, options: &Options) -> io::Result<OwnedFd> {
    let file = rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    // By a descriptor: a user may have put a link in its way since it was looked at.
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(at, how, Mode::empty())?;
    let place = format!("/proc/thread-self/fd/{}", directory.as_raw_fd());
    if std::fs::read_link(&place)? != at {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is another directory by now"));
    }
    let kind = rustix::fs::fstat(&directory)?.st_mode & 0o170_000;
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let fd = file.as_raw_fd();
    let data =
        format!("fd={fd},rootmode={kind:o},user_id={uid},group_id={gid},default_permissions,allow_other");
    let flags = mount_flags(options);
    match rustix::mount::mount(options.source.as_str(), &*place, "fuse", flags, &*CString::new(data)?) {
        Ok(()) => Ok(file),
        Err(Errno::PERM) => Err(io::Error::new(io::ErrorKind::PermissionDenied, Unusable::NoRight)),
        Err(e) => Err(e.into()),
    }
}

/// What only root may give away, `setuid` and devices, is off, and so is the use by others, which its settings must allow.
fn mount_by_helper(at: &Path, options: &Options) -> io::Result<OwnedFd> {
    let helper =
        place::helper().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, Unusable::NoHelper))?;
    let either = |is_on, yes, no| if is_on { yes } else { no };
    let words = [
        &format!("fsname={}", options.source),
        "default_permissions,nosuid,nodev",
        either(options.read_only, "ro", "rw"),
        either(options.exec, "exec", "noexec"),
        either(options.atime, "atime", "noatime"),
    ];
    let (ours, theirs) = UnixStream::pair()?;
    let asked = Command::new(helper)
        .args(["-o", &words.join(","), "--"])
        .arg(at)
        .env("_FUSE_COMMFD", "0")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .output()?;
    if !asked.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&asked.stderr).trim().to_string()));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(&ours, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let handed = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    handed.ok_or_else(|| io::Error::other("fusermount3 has mounted and handed no descriptor over"))
}
