//! The protocol's side: a request is taken apart on the session's thread, answered there or by a task of the loops.
//!
//! What the kernel is asked for at the beginning:
//!
//! ```text
//!   big writes, 1 MiB requests, asynchronous reads and direct I/O      readdirplus where it helps
//!   changes in one directory side by side                              symbolic links are cached
//!   pages stay cached as long as size and time of the file do          no opening: files are held by being known
//!   setuid and the like go by us (HANDLE_KILLPRIV_V2)                  POSIX ACLs and the umask, where they are kept
//!   no write-back cache: see the crate
//! ```

use crate::attr::time_given;
use crate::errno::Result;
use crate::loops::Loops;
use crate::nodes::{CONTROL, SNAPSHOTS};
use crate::served::{Asker, BELIEVED, IO_MAX, New, Reading, Served, Setting, Writing};
use crate::timing::{Moved, Timing};
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use probe::Op;
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use world::sync::Event;
use zpl::{FileKind, Time};

/// Requests that the kernel sends before it has answers, of those that no process waits for.
const BACKGROUND: u16 = 64;
/// Names that are fetched at once for a listing.
const NAMES_AT_ONCE: usize = 256;

const WANTED: [InitFlags; 13] = [
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_BIG_WRITES,
    InitFlags::FUSE_MAX_PAGES,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_AUTO_INVAL_DATA,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_CACHE_SYMLINKS,
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_EXPORT_SUPPORT,
    InitFlags::FUSE_NO_OPEN_SUPPORT,
    InitFlags::FUSE_NO_OPENDIR_SUPPORT,
];

pub(crate) struct Session {
    served: Arc<Served>,
    loops: Loops,
    ended: Arc<Event>,
    /// The kernel opens files without asking.
    opens_itself: bool,
    /// And directories.
    lists_itself: bool,
}

impl Session {
    pub fn new(served: Arc<Served>, loops: Loops, ended: Arc<Event>) -> Session {
        Session { served, loops, ended, opens_itself: false, lists_itself: false }
    }

    /// Answers a request by `work`, which says how many bytes it moved, and tells it: what was done, to which file or in
    /// which directory, from which byte on.
    fn run<F>(&self, (op, number, offset): (Op, INodeNo, u64), work: impl FnOnce(Arc<Served>) -> F)
    where
        F: Future<Output: Moved> + Send + 'static,
    {
        self.tell(probe::Event { op, offset, object: number.0, ..Default::default() }, work);
    }

    /// As [`Session::run`], of an event of which more is known.
    fn tell<F>(&self, event: probe::Event<'static>, work: impl FnOnce(Arc<Served>) -> F)
    where
        F: Future<Output: Moved> + Send + 'static,
    {
        let served = self.served.clone();
        let Some(timing) = Timing::begin((&served.probe, &served.stages), &self.loops) else {
            let work = work(served);
            return self.loops.run(None, async move { drop(work.await) });
        };
        let (course, work) = (timing.course(), work(served.clone()));
        self.loops.run(course.as_ref(), async move {
            let file = served.called(event.object);
            let event = probe::Event { file: file.as_ref(), ..event };
            timing.tell((&served.probe, &served.stages), event, work).await;
        });
    }
}

fn asker(request: &Request) -> Asker {
    Asker { uid: request.uid(), gid: request.gid(), process: request.pid() }
}

fn bytes(name: &OsStr) -> Vec<u8> {
    name.as_bytes().to_vec()
}

fn time(at: TimeOrNow) -> Time {
    match at {
        TimeOrNow::SpecificTime(at) => time_given(at),
        TimeOrNow::Now => {
            let now = world::wall_clock();
            Time { seconds: now.seconds as i64, nanos: now.nanos }
        }
    }
}

fn entry(believed: &Duration, reply: ReplyEntry, found: Result<(FileAttr, u64)>) {
    match found {
        Ok((attr, generation)) => reply.entry(believed, &attr, Generation(generation)),
        Err(e) => reply.error(e),
    }
}

fn empty(reply: ReplyEmpty, done: Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(e),
    }
}

fn xattr(reply: ReplyXattr, room: u32, found: Result<Vec<u8>>) {
    match found {
        Ok(bytes) if room == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > room as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
        Err(e) => reply.error(e),
    }
}

impl Filesystem for Session {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in WANTED {
            // What this kernel does not have it does without.
            let _ = config.add_capabilities(wanted);
        }
        if self.served.posix_acl {
            let acl = InitFlags::FUSE_POSIX_ACL | InitFlags::FUSE_DONT_MASK;
            config.add_capabilities(acl).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        }
        self.opens_itself = config.capabilities().contains(InitFlags::FUSE_NO_OPEN_SUPPORT);
        self.lists_itself = config.capabilities().contains(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
        // These are below what the library allows.
        let _ = config.set_max_write(IO_MAX as u32);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn destroy(&mut self) {
        self.ended.set();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = bytes(name);
        self.run((Op::Lookup, parent, 0), |fs| async move {
            // Snapshots are taken, destroyed, and others taken by their names, without the kernel.
            let is_of_control = parent.0 == SNAPSHOTS || parent.0 == CONTROL;
            let believed = if is_of_control { Duration::ZERO } else { fs.believed() };
            match fs.lookup(parent.0, &name).await {
                Ok(Some(found)) => entry(&believed, reply, Ok(found)),
                // The kernel remembers number 0 as a name that is not there.
                Ok(None) => entry(&believed, reply, Ok((fs.nothing(), 0))),
                Err(e) => reply.error(e),
            }
        });
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        self.run((Op::Forget, number, 0), |fs| async move { fs.forget(number.0, count).await });
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.run((Op::GetAttr, number, 0), |fs| async move {
            let believed = if number.0 == SNAPSHOTS { Duration::ZERO } else { BELIEVED };
            match fs.get_attr(number.0).await {
                Ok(attr) => reply.attr(&believed, &attr),
                Err(e) => reply.error(e),
            }
        });
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let asker = asker(request);
        self.run((Op::SetAttr, number, 0), |fs| async move {
            let (atime, mtime) = (atime.map(time), mtime.map(time));
            let setting = Setting { mode, uid, gid, size, atime, mtime };
            match fs.set_attr(asker, number.0, setting).await {
                Ok(attr) => reply.attr(&BELIEVED, &attr),
                Err(e) => reply.error(e),
            }
        });
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        self.run((Op::ReadLink, number, 0), |fs| async move {
            match fs.read_link(number.0).await {
                Ok(target) => reply.data(&target),
                Err(e) => reply.error(e),
            }
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let (asker, name) = (asker(request), bytes(name));
        self.run((Op::Mknod, parent, 0), |fs| async move {
            match New::node(mode, umask, rdev) {
                Ok(new) => entry(&fs.believed(), reply, fs.make(asker, parent.0, &name, new).await),
                Err(e) => reply.error(e),
            }
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let (asker, name) = (asker(request), bytes(name));
        let new = New { kind: FileKind::Directory, ..New::file(mode, umask) };
        self.run((Op::Mkdir, parent, 0), |fs| async move {
            entry(&fs.believed(), reply, fs.make(asker, parent.0, &name, new).await)
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = bytes(name);
        self.run((Op::Unlink, parent, 0), |fs| async move { empty(reply, fs.unlink(parent.0, &name).await) });
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = bytes(name);
        self.run((Op::Rmdir, parent, 0), |fs| async move {
            empty(reply, fs.remove_directory(parent.0, &name).await)
        });
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (asker, name) = (asker(request), bytes(name));
        let target = bytes(target.as_os_str());
        let new = New { kind: FileKind::Symlink, target, ..New::file(0o777, 0) };
        self.run((Op::Symlink, parent, 0), |fs| async move {
            entry(&fs.believed(), reply, fs.make(asker, parent.0, &name, new).await)
        });
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (asker, name, new_name) = (asker(request), bytes(name), bytes(new_name));
        self.run((Op::Rename, parent, 0), |fs| async move {
            empty(reply, fs.rename(asker, (parent.0, &name), (to.0, &new_name), flags).await);
        });
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = bytes(name);
        self.run((Op::Link, parent, 0), |fs| async move {
            entry(&fs.believed(), reply, fs.link(number.0, parent.0, &name).await)
        });
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.opens_itself {
            true => reply.error(Errno::ENOSYS),
            false => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
        }
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let cached = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR;
        match self.lists_itself {
            // Then it keeps the listings as well, as long as the time of the directory is the same.
            true => reply.error(Errno::ENOSYS),
            false => reply.opened(FileHandle(0), cached),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        if self.opens_itself {
            // Then it makes files by mknod from now on, and need not tell us when one that it opened so is closed.
            return reply.error(Errno::ENOSYS);
        }
        let (asker, name) = (asker(request), bytes(name));
        self.run((Op::Create, parent, 0), |fs| async move {
            match fs.make(asker, parent.0, &name, New::file(mode, umask)).await {
                Ok((attr, generation)) => {
                    let (handle, flags) = (FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
                    reply.created(&fs.believed(), &attr, Generation(generation), handle, flags);
                }
                Err(e) => reply.error(e),
            }
        });
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let has = |flag: OFlags| flags.0 & flag.bits() as i32 != 0;
        let how = Reading { direct: has(OFlags::DIRECT), counts: !has(OFlags::NOATIME) };
        self.run((Op::Read, number, offset), |fs| async move {
            match fs.read(number.0, offset, size, how).await {
                Ok(data) => {
                    reply.data(&data);
                    data.len() as u64
                }
                Err(e) => {
                    reply.error(e);
                    0
                }
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let len = data.len() as u32;
        let has = |flag: OFlags| flags.0 & flag.bits() as i32 != 0;
        let how = Writing {
            sync: has(OFlags::DSYNC),
            direct: has(OFlags::DIRECT),
            asker: asker(request),
            drops_rights: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
        };
        let (object, durable) = (number.0, how.sync);
        let event = probe::Event { op: Op::Write, offset, object, durable, ..Default::default() };
        self.tell(event, |fs| {
            let parts = fs.parts(offset, data);
            async move {
                match fs.write(number.0, offset, parts, how).await {
                    Ok(()) => {
                        reply.written(len);
                        u64::from(len)
                    }
                    Err(e) => {
                        reply.error(e);
                        0
                    }
                }
            }
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // What was written is with the engine already; the kernel need not ask again.
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.run((Op::Fsync, number, 0), |fs| async move { empty(reply, fs.sync_file(number.0).await) });
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.run((Op::Fsync, number, 0), |fs| async move { empty(reply, fs.sync_file(number.0).await) });
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.run((Op::ReadDir, number, 0), |fs| async move {
            let mut at = offset;
            loop {
                let listed = match fs.list(number.0, at, NAMES_AT_ONCE).await {
                    Ok(listed) => listed,
                    Err(e) if at == offset => return reply.error(e),
                    // What was found so far is answered; the error comes with the next request.
                    Err(_) => return reply.ok(),
                };
                let Some(last) = listed.last() else { return reply.ok() };
                at = last.position;
                for item in listed {
                    let name = OsStr::from_bytes(&item.name);
                    if reply.add(INodeNo(item.number), item.position, item.kind, name) {
                        return reply.ok();
                    }
                }
            }
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.run((Op::ReadDir, number, 0), |fs| async move {
            let listed = match fs.list(number.0, offset, NAMES_AT_ONCE).await {
                Ok(listed) => listed,
                Err(e) => return reply.error(e),
            };
            for item in listed {
                let (attr, generation, is_certain) = fs.tell_listed(number.0, &item).await;
                let is_of_control = number.0 == SNAPSHOTS || number.0 == CONTROL;
                let believed = if is_certain && !is_of_control { fs.believed() } else { Duration::ZERO };
                let name = OsStr::from_bytes(&item.name);
                if reply.add(attr.ino, item.position, name, &believed, &attr, Generation(generation)) {
                    // There was no room for it: the kernel does not know it from here.
                    if is_certain {
                        fs.forget(attr.ino.0, 1).await;
                    }
                    break;
                }
            }
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        self.run((Op::StatFs, number, 0), |fs| async move {
            match fs.space().await {
                Ok(space) => {
                    let free = space.available / 512;
                    let total = free + space.used.div_ceil(512);
                    let names = fs.name_max() as u32;
                    reply.statfs(total, free, free, space.files + free, free, space.record_size, names, 512);
                }
                Err(e) => reply.error(e),
            }
        });
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let (asker, name, value) = (asker(request), bytes(name), value.to_vec());
        self.run((Op::SetXattr, number, 0), |fs| async move {
            let set = fs.set_xattr(number.0, &name, &value, flags).await;
            let set = match set {
                Ok(()) => fs.check_group_right(asker, number.0, &name).await,
                failed => failed,
            };
            empty(reply, set)
        });
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = bytes(name);
        self.run((Op::GetXattr, number, 0), |fs| async move {
            xattr(reply, size, fs.get_xattr(number.0, &name).await)
        });
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let asker = asker(request);
        self.run((Op::ListXattr, number, 0), |fs| async move {
            xattr(reply, size, fs.list_xattrs(asker, number.0).await)
        });
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = bytes(name);
        self.run((Op::RemoveXattr, number, 0), |fs| async move {
            empty(reply, fs.remove_xattr(number.0, &name).await)
        });
    }

    fn fallocate(
        &self,
        request: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let asker = asker(request);
        self.run((Op::Fallocate, number, offset), |fs| async move {
            empty(reply, fs.allocate(asker, number.0, offset, len, mode).await)
        });
    }

    fn lseek(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.run((Op::Lseek, number, 0), |fs| async move {
            match fs.seek(number.0, offset, whence).await {
                Ok(at) => reply.offset(at),
                Err(e) => reply.error(e),
            }
        });
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _: FileHandle,
        offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        len: u64,
        flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let asker = asker(request);
        self.run((Op::CopyRange, to, to_offset), |fs| async move {
            if !flags.is_empty() {
                return reply.error(Errno::EINVAL);
            }
            match fs.copy(asker, (from.0, offset), (to.0, to_offset), len).await {
                Ok(n) => reply.written(n),
                Err(e) => reply.error(e),
            }
        });
    }
}
