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

use crate::answer::{Answer, Received};
use crate::attr::{Attr, kind_bits};
use crate::errno::Result;
use crate::loops::{Loops, Sort};
use crate::nodes::{CONTROL, SNAPSHOTS};
use crate::served::{Asker, BELIEVED, IO_MAX, New, Reading, Served, Setting, Writing};
use crate::timing::{Moved, Timing};
use crate::wire::{self, Ask, Head, Listing, Room, SetAttr, When, init};
use futures_util::FutureExt;
use probe::Op;
use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use world::boxed;
use world::sync::Event;
use zpl::{FileKind, Time};

/// Requests that the kernel sends before it has answers, of those that no process waits for.
const BACKGROUND: u16 = 64;
/// Names that are fetched at once for a listing.
const NAMES_AT_ONCE: usize = 256;

const WANTED: u64 = init::ASYNC_READ
    | init::BIG_WRITES
    | init::MAX_PAGES
    | init::ASYNC_DIO
    | init::AUTO_INVAL_DATA
    | init::DO_READDIRPLUS
    | init::READDIRPLUS_AUTO
    | init::PARALLEL_DIROPS
    | init::CACHE_SYMLINKS
    | init::HANDLE_KILLPRIV_V2
    | init::EXPORT_SUPPORT
    | init::NO_OPEN_SUPPORT
    | init::NO_OPENDIR_SUPPORT;
const ACLS: u64 = init::POSIX_ACL | init::DONT_MASK;

/// What the kernel is asked for when the mount begins.
pub(crate) struct Terms {
    pub wanted: u64,
    pub io_max: u32,
    pub background: u16,
}

impl Terms {
    pub fn new(posix_acl: bool, by_ring: bool) -> Terms {
        let acls = if posix_acl { ACLS } else { 0 };
        let ring = if by_ring { init::OVER_IO_URING } else { 0 };
        Terms { wanted: WANTED | acls | ring, io_max: IO_MAX as u32, background: BACKGROUND }
    }
}

pub(crate) struct Session {
    served: Arc<Served>,
    loops: Loops,
    ended: Arc<Event>,
    /// The kernel opens files without asking.
    opens_itself: bool,
    /// And directories.
    lists_itself: bool,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.ended.set();
    }
}

impl Session {
    /// `can`: what kernel and session have agreed on.
    pub fn new(served: Arc<Served>, loops: Loops, ended: Arc<Event>, can: u64) -> Session {
        let has = |flag| can & flag != 0;
        let (opens_itself, lists_itself) = (has(init::NO_OPEN_SUPPORT), has(init::NO_OPENDIR_SUPPORT));
        Session { served, loops, ended, opens_itself, lists_itself }
    }

    /// Answers a request by `work`, which says how many bytes it moved, and tells it: what was done, to which file or in
    /// which directory, from which byte on.
    fn run<F>(&self, (op, object, offset): (Op, u64, u64), work: impl FnOnce(Arc<Served>) -> F)
    where
        F: Future<Output: Moved> + Send + 'static,
    {
        self.tell(probe::Event { op, offset, object, ..Default::default() }, work);
    }

    /// As [`Session::run`], of an event of which more is known.
    fn tell<F>(&self, event: probe::Event<'static>, work: impl FnOnce(Arc<Served>) -> F)
    where
        F: Future<Output: Moved> + Send + 'static,
    {
        let served = self.served.clone();
        let sort = if event.op == Op::Forget { Sort::Forget } else { Sort::Request };
        let Some(timing) = Timing::begin((&served.probe, &served.stages), &self.loops) else {
            return self.loops.run(sort, None, boxed(|| work(served).map(drop)));
        };
        let (course, work) = (timing.course(), boxed(|| work(served.clone())));
        let told = boxed(|| async move {
            let file = served.called(event.object);
            let event = probe::Event { file: file.as_ref(), ..event };
            timing.tell((&served.probe, &served.stages), event, work).await;
        });
        self.loops.run(sort, course.as_ref(), told);
    }

    /// Answers a request, or sees to it that it will be.
    pub fn serve(&self, received: Received<'_>) {
        let Some(head) = received.head() else { return received.refuse() };
        match Ask::read(&head, received.parts()) {
            Some(Ask::Write { offset, size, write_flags, flags }) => {
                let parts = self.served.parts(offset, received.data(size));
                let how = Writing {
                    sync: has(flags, OFlags::DSYNC),
                    direct: has(flags, OFlags::DIRECT),
                    asker: asker(&head),
                    drops_rights: write_flags & wire::WRITE_KILL_SUIDGID != 0,
                };
                self.write(head.node, (offset, size as u32), how, parts, received.answer(&head));
            }
            Some(ask) => self.begin(&head, ask, received.answer(&head)),
            None => received.answer(&head).error(Errno::IO),
        }
    }

    fn begin(&self, head: &Head, ask: Ask, answer: Answer) {
        let (asker, node) = (asker(head), head.node);
        match ask {
            Ask::Lookup { name } => self.lookup(node, name, answer),
            Ask::Forget(all) => {
                answer.none();
                for (node, count) in all {
                    self.run((Op::Forget, node, 0), |fs| async move { fs.forget(node, count).await });
                }
            }
            Ask::GetAttr => self.get_attr(node, answer, wire::attributes),
            Ask::Statx => self.get_attr(node, answer, wire::statx),
            Ask::SetAttr(set) => self.set_attr(asker, node, set, answer),
            Ask::ReadLink => self.run((Op::ReadLink, node, 0), |fs| async move {
                answer.bytes(fs.read_link(node).await);
            }),
            Ask::Symlink { name, target } => {
                let new = New { kind: FileKind::Symlink, target, ..New::file(0o777, 0) };
                self.make(Op::Symlink, asker, (node, name), Ok(new), answer);
            }
            Ask::Mknod { name, mode, umask, rdev } => {
                self.make(Op::Mknod, asker, (node, name), New::node(mode, umask, rdev), answer);
            }
            Ask::Mkdir { name, mode, umask } => {
                let new = New { kind: FileKind::Directory, ..New::file(mode, umask) };
                self.make(Op::Mkdir, asker, (node, name), Ok(new), answer);
            }
            Ask::Unlink { name } => self.run((Op::Unlink, node, 0), |fs| async move {
                answer.empty(fs.unlink(node, &name).await);
            }),
            Ask::Rmdir { name } => self.run((Op::Rmdir, node, 0), |fs| async move {
                answer.empty(fs.remove_directory(node, &name).await);
            }),
            Ask::Rename { name, to, new_name, flags } => self.run((Op::Rename, node, 0), |fs| async move {
                let flags = RenameFlags::from_bits_retain(flags);
                answer.empty(fs.rename(asker, (node, &name), (to, &new_name), flags).await);
            }),
            Ask::Link { node: file, name } => self.run((Op::Link, file, 0), |fs| async move {
                answer.entry(fs.believed(), fs.link(file, node, &name).await);
            }),
            Ask::Open if self.opens_itself => answer.error(Errno::NOSYS),
            Ask::Open => answer.data(&wire::opened(wire::KEEP_CACHE)),
            // Then it keeps the listings as well, as long as the time of the directory is the same.
            Ask::OpenDir if self.lists_itself => answer.error(Errno::NOSYS),
            Ask::OpenDir => answer.data(&wire::opened(wire::KEEP_CACHE | wire::CACHE_DIR)),
            // Then it makes files by mknod from now on, and need not say when one that it opened so is closed.
            Ask::Create { .. } if self.opens_itself => answer.error(Errno::NOSYS),
            Ask::Create { name, mode, umask } => self.run((Op::Create, node, 0), |fs| async move {
                let made = fs.make(asker, node, &name, New::file(mode, umask)).await;
                answer.bytes(made.map(|(attr, generation)| wire::created(fs.believed(), &attr, generation)));
            }),
            Ask::Read { offset, size, flags } => {
                let how =
                    Reading { direct: has(flags, OFlags::DIRECT), counts: !has(flags, OFlags::NOATIME) };
                self.run((Op::Read, node, offset), |fs| async move {
                    match fs.read(node, offset, size, how).await {
                        Ok(data) => {
                            answer.data(&data);
                            data.len() as u64
                        }
                        Err(e) => {
                            answer.error(e);
                            0
                        }
                    }
                });
            }
            Ask::StatFs => self.stat_fs(node, answer),
            Ask::Release | Ask::Destroy => answer.empty(Ok(())),
            Ask::Fsync => {
                self.run((Op::Fsync, node, 0), |fs| async move { answer.empty(fs.sync_file(node).await) });
            }
            Ask::SetXattr { name, value, flags } => self.run((Op::SetXattr, node, 0), |fs| async move {
                let set = fs.set_xattr(node, &name, &value, flags as i32).await;
                answer.empty(match set {
                    Ok(()) => fs.check_group_right(asker, node, &name).await,
                    failed => failed,
                });
            }),
            Ask::GetXattr { name, room } => self.run((Op::GetXattr, node, 0), |fs| async move {
                answer.xattr(room, fs.get_xattr(node, &name).await);
            }),
            Ask::ListXattr { room } => self.run((Op::ListXattr, node, 0), |fs| async move {
                answer.xattr(room, fs.list_xattrs(asker, node).await);
            }),
            Ask::RemoveXattr { name } => self.run((Op::RemoveXattr, node, 0), |fs| async move {
                answer.empty(fs.remove_xattr(node, &name).await);
            }),
            Ask::ReadDir { offset, size, plus: false } => self.list(node, offset, size, answer),
            Ask::ReadDir { offset, size, plus: true } => {
                self.list_with_attributes(node, offset, size, answer)
            }
            Ask::Fallocate { offset, len, mode } => {
                self.run((Op::Fallocate, node, offset), |fs| async move {
                    answer.empty(fs.allocate(asker, node, offset, len, mode as i32).await);
                })
            }
            Ask::Lseek { offset, whence } => self.run((Op::Lseek, node, 0), |fs| async move {
                let found = fs.seek(node, offset as i64, whence as i32).await;
                answer.bytes(found.map(|at| wire::count_wide(at as u64)));
            }),
            Ask::CopyRange { offset, to, to_offset, len, flags, wide } => {
                self.run((Op::CopyRange, to, to_offset), |fs| async move {
                    if flags != 0 {
                        return answer.error(Errno::INVAL);
                    }
                    let copied = fs.copy(asker, (node, offset), (to, to_offset), len).await;
                    answer.bytes(
                        copied.map(|n| if wide { wire::count_wide(n.into()) } else { wire::count(n) }),
                    );
                });
            }
            Ask::Nothing => answer.none(),
            // What is flushed when a file is closed is with the engine already; locks are the kernel's own.
            Ask::Unknown | Ask::Write { .. } => answer.error(Errno::NOSYS),
        }
    }

    fn lookup(&self, node: u64, name: Vec<u8>, answer: Answer) {
        self.run((Op::Lookup, node, 0), |fs| async move {
            // Snapshots are taken, destroyed, and others taken by their names, without the kernel.
            let is_of_control = node == SNAPSHOTS || node == CONTROL;
            let believed = if is_of_control { Duration::ZERO } else { fs.believed() };
            let found = fs.lookup(node, &name).await;
            // The kernel remembers number 0 as a name that is not there.
            answer.entry(believed, found.map(|found| found.unwrap_or_else(|| (fs.nothing(), 0))));
        });
    }

    fn get_attr(&self, node: u64, answer: Answer, told: fn(Duration, &Attr) -> Vec<u8>) {
        self.run((Op::GetAttr, node, 0), |fs| async move {
            let believed = if node == SNAPSHOTS { Duration::ZERO } else { BELIEVED };
            answer.bytes(fs.get_attr(node).await.map(|attr| told(believed, &attr)));
        });
    }

    fn set_attr(&self, asker: Asker, node: u64, set: SetAttr, answer: Answer) {
        self.run((Op::SetAttr, node, 0), |fs| async move {
            let SetAttr { mode, uid, gid, size, atime, mtime } = set;
            let (atime, mtime) = (atime.map(time), mtime.map(time));
            let done = fs.set_attr(asker, node, Setting { mode, uid, gid, size, atime, mtime }).await;
            answer.bytes(done.map(|attr| wire::attributes(BELIEVED, &attr)));
        });
    }

    fn make(&self, op: Op, asker: Asker, (node, name): (u64, Vec<u8>), new: Result<New>, answer: Answer) {
        self.run((op, node, 0), |fs| async move {
            match new {
                Ok(new) => answer.entry(fs.believed(), fs.make(asker, node, &name, new).await),
                Err(e) => answer.error(e),
            }
        });
    }

    fn write(
        &self,
        node: u64,
        (offset, len): (u64, u32),
        how: Writing,
        parts: Vec<world::Buf>,
        answer: Answer,
    ) {
        let (object, durable) = (node, how.sync);
        let event = probe::Event { op: Op::Write, offset, object, durable, ..Default::default() };
        self.tell(event, |fs| async move {
            let written = fs.write(node, offset, parts, how).await;
            let moved = if written.is_ok() { u64::from(len) } else { 0 };
            answer.bytes(written.map(|()| wire::count(len)));
            moved
        });
    }

    fn stat_fs(&self, node: u64, answer: Answer) {
        /// Of the counts.
        const UNIT: u32 = 512;
        self.run((Op::StatFs, node, 0), |fs| async move {
            let space = fs.space().await;
            answer.bytes(space.map(|space| {
                let free = space.available / u64::from(UNIT);
                wire::statfs(&Room {
                    blocks: free + space.used.div_ceil(UNIT.into()),
                    free,
                    files: space.files,
                    block_size: space.record_size,
                    unit: UNIT,
                    name_max: fs.name_max() as u32,
                })
            }));
        });
    }

    fn list(&self, node: u64, offset: u64, size: u32, answer: Answer) {
        self.run((Op::ReadDir, node, 0), |fs| async move {
            let mut listing = Listing::new(size, IO_MAX);
            let mut at = offset;
            loop {
                let listed = match fs.list(node, at, NAMES_AT_ONCE).await {
                    Ok(listed) => listed,
                    Err(e) if at == offset => return answer.error(e),
                    // What was found so far is answered; the error comes with the next request.
                    Err(_) => return answer.data(listing.bytes()),
                };
                let Some(last) = listed.last() else { return answer.data(listing.bytes()) };
                at = last.position;
                for item in listed {
                    if !listing.add(item.number, item.position, kind_bits(item.kind) >> 12, &item.name) {
                        return answer.data(listing.bytes());
                    }
                }
            }
        });
    }

    fn list_with_attributes(&self, node: u64, offset: u64, size: u32, answer: Answer) {
        self.run((Op::ReadDir, node, 0), |fs| async move {
            let listed = match fs.list(node, offset, NAMES_AT_ONCE).await {
                Ok(listed) => listed,
                Err(e) => return answer.error(e),
            };
            let mut listing = Listing::new(size, IO_MAX);
            for item in listed {
                let (attr, generation, is_certain) = fs.tell_listed(node, &item).await;
                let is_of_control = node == SNAPSHOTS || node == CONTROL;
                let believed = if is_certain && !is_of_control { fs.believed() } else { Duration::ZERO };
                if !listing.add_entry((&attr, generation, believed), item.position, &item.name) {
                    // There was no room for it: the kernel does not know it from here.
                    if is_certain {
                        fs.forget(attr.number, 1).await;
                    }
                    break;
                }
            }
            answer.data(listing.bytes());
        });
    }
}

fn asker(head: &Head) -> Asker {
    Asker { uid: head.uid, gid: head.gid, process: head.process }
}

fn has(flags: u32, flag: OFlags) -> bool {
    flags & flag.bits() != 0
}

fn time(at: When) -> Time {
    match at {
        When::At(at) => at,
        When::Now => {
            let now = world::wall_clock();
            Time { seconds: now.seconds as i64, nanos: now.nanos }
        }
    }
}
