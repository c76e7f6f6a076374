//! Files and block devices as disks.
//!
//! ```text
//!   open ──┬─ direct   O_DIRECT, where the file allows it: no copy, no page cache
//!          └─ plain    for what is not aligned as O_DIRECT demands, and for files that refuse it
//! ```
//!
//! Each request takes the descriptor that fits it; the kernel keeps the two views of a file consistent. A read or a write
//! whose parts are badly placed in memory, but whose whole is aligned on the disk, goes through one buffer: that
//! copy costs a tenth of a trip through the page cache. A file on tmpfs has no device to wait for, and the ring would
//! hand each request to a kernel thread: there the copy is made in place, on the caller's thread, and the caller yields
//! once, so that a task that reads on and on does not keep its loop from everything else.
//!
//! A disk opened for writing is locked against every other writer, with all that lies beneath it: see [`claim`].

mod claim;
pub(crate) mod load;
mod operations;

pub(crate) use operations::rest_of;

use crate::executor::{Shared, begin};
use crate::geometry::{self, DirectAlignment, Nature};
use crate::operation::{Operation, answer, perform_to_the_end};
use crate::own;
use claim::Claim;
use io_uring::squeue;
use operations::{Discard, Flush, Hole, Read, ReadParts, Write};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use world::sync::oneshot::{self, Receiver};
use world::{Buf, Geometry, IoBuf, OpenMode, Pending, boxed, scatter};

/// An open file, kept alive by the requests under way.
struct Handle {
    plain: OwnedFd,
    direct: Option<(OwnedFd, DirectAlignment)>,
    nature: Nature,
    /// A server answers for it, and may be silent: then the kernel waits even where it begins a read.
    is_served: bool,
    /// Last, so that it is given up after the descriptors are closed.
    _claim: Claim,
}

impl Drop for Handle {
    fn drop(&mut self) {
        claim::unlock(self.direct.as_ref().map_or(&self.plain, |(direct, _)| direct));
    }
}

impl Handle {
    /// The descriptor for a request whose memory is at `addresses` (start and length of each part).
    fn pick(&self, offset: u64, mut addresses: impl Iterator<Item = (usize, usize)>) -> BorrowedFd<'_> {
        match &self.direct {
            Some((direct, align))
                if offset.is_multiple_of(align.offset)
                    && addresses.all(|(start, len)| {
                        start.is_multiple_of(align.memory) && (len as u64).is_multiple_of(align.offset)
                    }) =>
            {
                direct.as_fd()
            }
            _ => self.plain.as_fd(),
        }
    }

    /// A read or a write, for the ring. One that may wait where it begins goes to a thread of the kernel's own, or the loop
    /// would wait for it, and all that others asked of it.
    fn entry(&self, entry: squeue::Entry) -> squeue::Entry {
        if self.is_served { entry.flags(squeue::Flags::ASYNC) } else { entry }
    }

    /// Whether a request of `len` bytes could go direct but for how its parts lie in memory (start and length of each).
    fn wants_whole(&self, offset: u64, len: usize, mut parts: impl Iterator<Item = (usize, usize)>) -> bool {
        let Some((_, align)) = &self.direct else { return false };
        let is_placed = |(start, len): (usize, usize)| {
            start.is_multiple_of(align.memory) && (len as u64).is_multiple_of(align.offset)
        };
        let fits_disk = offset.is_multiple_of(align.offset) && (len as u64).is_multiple_of(align.offset);
        fits_disk && !parts.all(is_placed)
    }
}

pub(crate) struct File {
    path: PathBuf,
    geometry: Geometry,
    /// A server answers for it, and may be gone: only the ring asks it for anything.
    is_served: bool,
    /// Requests are system calls on the caller's thread, not entries of a ring.
    in_place: bool,
    handle: Arc<Handle>,
    shared: Arc<Shared>,
}

impl File {
    pub fn open(shared: &Arc<Shared>, path: &Path, mode: OpenMode) -> io::Result<File> {
        let handle = open_handle(path, mode)?;
        let geometry = geometry::geometry(&handle.plain, handle.nature)?;
        let is_served = handle.is_served;
        let in_place = handle.nature == Nature::MemoryFile;
        let (handle, shared) = (Arc::new(handle), shared.clone());
        Ok(File { path: path.into(), geometry, is_served, in_place, handle, shared })
    }

    /// Begins the operation at once, whether or not `waiting` will be waited for.
    fn begin<T: Send + 'static>(
        &self,
        operation: Box<dyn Operation>,
        waiting: Receiver<T>,
    ) -> impl Future<Output = io::Result<T>> + Send + use<T> {
        let in_place = self.in_place;
        if in_place {
            perform_to_the_end(operation);
        } else {
            begin(&self.shared, operation);
        }
        async move {
            if in_place {
                world::yield_now().await;
            }
            answer(waiting).await
        }
    }

    /// `parts` as they are, or in one aligned buffer if that lets the write go direct.
    fn gathered(&self, offset: u64, parts: Vec<Buf>) -> Vec<Buf> {
        let len: usize = parts.iter().map(|p| p.len()).sum();
        if !self.handle.wants_whole(offset, len, parts.iter().map(|p| (p.as_ptr() as usize, p.len()))) {
            return parts;
        }
        let mut whole = IoBuf::scratch(len);
        let mut at = 0;
        for part in &parts {
            whole[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        vec![whole.freeze()]
    }
}

fn open_handle(path: &Path, mode: OpenMode) -> io::Result<Handle> {
    let access = match mode {
        OpenMode::ReadOnly => OFlags::RDONLY,
        OpenMode::ReadWrite => OFlags::RDWR,
    } | OFlags::CLOEXEC;
    own::refuse_path(path)?;
    // A fifo or a device that is no disk must not make us wait in open().
    let plain = rustix::fs::open(path, access | OFlags::NONBLOCK, Mode::empty())?;
    own::refuse_device(rustix::fs::fstat(&plain)?.st_dev)?;
    let nature = geometry::nature(&plain)?;
    if mode == OpenMode::ReadWrite && nature == Nature::BlockDevice && geometry::is_read_only(&plain) {
        let why = "the device is read-only ('-o readonly=on' imports a pool from it)";
        return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, why));
    }
    let open_direct = || rustix::fs::open(path, access | OFlags::DIRECT, Mode::empty()).ok();
    let direct = if nature == Nature::MemoryFile { None } else { open_direct() };
    let (plain, direct, claim) = match mode {
        OpenMode::ReadOnly => (plain, direct, Claim::default()),
        OpenMode::ReadWrite => claim::take(plain, direct, path, nature, access)?,
    };
    let direct = direct.map(|fd| {
        let align = geometry::direct_alignment(&fd, nature);
        (fd, align)
    });
    rustix::fs::fcntl_setfl(&plain, access - OFlags::CLOEXEC)?;
    let is_served = geometry::is_served(&plain, nature)?;
    Ok(Handle { plain, direct, nature, is_served, _claim: claim })
}

impl world::Disk for File {
    fn path(&self) -> &Path {
        &self.path
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn current_size(&self) -> io::Result<u64> {
        if self.is_served {
            return Ok(self.geometry.size);
        }
        geometry::size(&self.handle.plain, self.handle.nature)
    }

    fn read(&self, offset: u64, buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)> {
        let (reply, waiting) = oneshot::channel();
        let done = self.begin(Box::new(Read::new(self.handle.clone(), offset, buf, reply)), waiting);
        boxed(|| async move {
            match done.await {
                Ok(outcome) => outcome,
                Err(ending) => (IoBuf::zeroed(0), Err(ending)),
            }
        })
    }

    fn read_parts(&self, offset: u64, parts: Vec<IoBuf>) -> Pending<(Vec<IoBuf>, io::Result<()>)> {
        let len = parts.iter().map(|part| part.len()).sum();
        if self.handle.wants_whole(offset, len, parts.iter().map(|p| (p.as_ptr() as usize, p.len()))) {
            return scatter(self.read(offset, IoBuf::scratch(len)), parts);
        }
        let (reply, waiting) = oneshot::channel();
        let done = self.begin(Box::new(ReadParts::new(self.handle.clone(), offset, parts, reply)), waiting);
        boxed(|| async move {
            match done.await {
                Ok(outcome) => outcome,
                Err(ending) => (Vec::new(), Err(ending)),
            }
        })
    }

    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        let parts = self.gathered(offset, parts);
        let (reply, waiting) = oneshot::channel();
        let done = self.begin(Box::new(Write::new(self.handle.clone(), offset, parts, reply)), waiting);
        boxed(|| async move { done.await? })
    }

    fn flush(&self) -> Pending<io::Result<()>> {
        let (reply, waiting) = oneshot::channel();
        let done = self.begin(Box::new(Flush::new(self.handle.clone(), reply)), waiting);
        boxed(|| async move { done.await? })
    }

    fn discard(&self, offset: u64, len: u64) -> Pending<io::Result<()>> {
        let (reply, waiting) = oneshot::channel();
        let handle = self.handle.clone();
        let operation: Box<dyn Operation> = match handle.nature {
            Nature::BlockDevice => Box::new(Discard::new(handle, offset, len, reply)),
            _ => Box::new(Hole::new(handle, offset, len, reply)),
        };
        let done = self.begin(operation, waiting);
        boxed(|| async move { done.await? })
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({})", self.path.display())
    }
}
