//! The requests to a file: each owns its buffers until it is complete. File and buffers are let go before the answer
//! is sent: a caller that closes a disk after its last answer finds it closed, and its lock free.

use super::Handle;
use crate::operation::{Operation, as_result, is_transient, outcome};
use io_uring::{opcode, squeue, types};
use rustix::fd::AsRawFd;
use rustix::fs::FallocateFlags;
use std::io;
use std::sync::Arc;
use world::sync::oneshot::Sender;
use world::{Buf, IoBuf};

/// The kernel takes no more parts in one vectored read or write.
const PARTS_MAX: usize = 1024;
/// The kernel transfers no more in one request.
const TRANSFER_MAX: usize = 1 << 30;

pub(super) struct Read {
    handle: Arc<Handle>,
    offset: u64,
    buf: IoBuf,
    done: usize,
    reply: Sender<(IoBuf, io::Result<()>)>,
}

impl Read {
    pub fn new(handle: Arc<Handle>, offset: u64, buf: IoBuf, reply: Sender<(IoBuf, io::Result<()>)>) -> Read {
        Read { handle, offset, buf, done: 0, reply }
    }

    fn place(&self) -> u64 {
        self.offset + self.done as u64
    }

    fn want(&self) -> usize {
        (self.buf.len() - self.done).min(TRANSFER_MAX)
    }
}

impl Operation for Read {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let (offset, want) = (self.place(), self.want());
        let target = self.buf[self.done..].as_mut_ptr();
        let fd = self.handle.pick(offset, std::iter::once((target as usize, want)));
        let read = opcode::Read::new(types::Fd(fd.as_raw_fd()), target, want as u32).offset(offset).build();
        Some(self.handle.entry(read))
    }

    fn perform(&mut self) -> i32 {
        let (offset, want) = (self.place(), self.want());
        let target = &mut self.buf[self.done..self.done + want];
        let fd = self.handle.pick(offset, std::iter::once((target.as_ptr() as usize, want)));
        as_result(rustix::io::pread(fd, target, offset))
    }

    fn complete(mut self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let finished = match outcome(result) {
            Ok(0) if self.want() > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.done += n;
                if self.want() > 0 {
                    return Some(self);
                }
                Ok(())
            }
            Err(e) => Err(e),
        };
        let Read { handle, buf, reply, .. } = *self;
        drop(handle);
        // The task that asked may be gone.
        let _ = reply.send((buf, finished));
        None
    }
}

/// The addresses a vectored read or write hands to the kernel.
#[derive(Default)]
struct Vector(Vec<libc::iovec>);

// SAFETY: the addresses are of buffers that the same operation owns and that any thread may use.
#[allow(unsafe_code)]
unsafe impl Send for Vector {}

pub(super) struct ReadParts {
    handle: Arc<Handle>,
    offset: u64,
    parts: Vec<IoBuf>,
    len: usize,
    done: usize,
    vector: Vector,
    reply: Sender<(Vec<IoBuf>, io::Result<()>)>,
}

impl ReadParts {
    pub fn new(
        handle: Arc<Handle>,
        offset: u64,
        parts: Vec<IoBuf>,
        reply: Sender<(Vec<IoBuf>, io::Result<()>)>,
    ) -> ReadParts {
        let len = parts.iter().map(|part| part.len()).sum();
        ReadParts { handle, offset, parts, len, done: 0, vector: Vector::default(), reply }
    }

    fn place(&self) -> u64 {
        self.offset + self.done as u64
    }

    /// What is still to be filled, up to the limits of one request.
    fn rest(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (mut skip, mut room) = (self.done, TRANSFER_MAX);
        let parts = self.parts.iter_mut().map(move |part| {
            let from = skip.min(part.len());
            skip -= from;
            let take = (part.len() - from).min(room);
            room -= take;
            &mut part[from..from + take]
        });
        parts.filter(|slice| !slice.is_empty()).take(PARTS_MAX)
    }
}

impl Operation for ReadParts {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let offset = self.place();
        let vector: Vec<libc::iovec> =
            self.rest().map(|s| libc::iovec { iov_base: s.as_mut_ptr().cast(), iov_len: s.len() }).collect();
        self.vector = Vector(vector);
        let vector = &self.vector.0;
        let fd = self.handle.pick(offset, vector.iter().map(|v| (v.iov_base as usize, v.iov_len)));
        let fd = types::Fd(fd.as_raw_fd());
        let read = opcode::Readv::new(fd, vector.as_ptr(), vector.len() as u32).offset(offset).build();
        Some(self.handle.entry(read))
    }

    fn perform(&mut self) -> i32 {
        let (offset, handle) = (self.place(), self.handle.clone());
        let mut slices: Vec<io::IoSliceMut<'_>> = self.rest().map(io::IoSliceMut::new).collect();
        let fd = handle.pick(offset, slices.iter().map(|s| (s.as_ptr() as usize, s.len())));
        as_result(rustix::io::preadv(fd, &mut slices, offset))
    }

    fn complete(mut self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let finished = match outcome(result) {
            Ok(0) if self.done < self.len => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.done += n;
                if self.done < self.len {
                    return Some(self);
                }
                Ok(())
            }
            Err(e) => Err(e),
        };
        let ReadParts { handle, parts, reply, .. } = *self;
        drop(handle);
        // The task that asked may be gone.
        let _ = reply.send((parts, finished));
        None
    }
}

pub(super) struct Write {
    handle: Arc<Handle>,
    offset: u64,
    parts: Vec<Buf>,
    len: usize,
    done: usize,
    vector: Vector,
    reply: Sender<io::Result<()>>,
}

impl Write {
    pub fn new(handle: Arc<Handle>, offset: u64, parts: Vec<Buf>, reply: Sender<io::Result<()>>) -> Write {
        let len = parts.iter().map(|p| p.len()).sum();
        Write { handle, offset, parts, len, done: 0, vector: Vector::default(), reply }
    }

    /// What is still to be written, as slices, up to the limits of one request.
    fn rest(&self) -> impl Iterator<Item = &[u8]> {
        rest_of(&self.parts, self.done)
    }

    fn place(&self) -> u64 {
        self.offset + self.done as u64
    }
}

/// The parts without their first `done` bytes and without empty ones.
pub(crate) fn rest_of(parts: &[Buf], done: usize) -> impl Iterator<Item = &[u8]> {
    let mut skip = done;
    let mut room = TRANSFER_MAX;
    parts
        .iter()
        .map(move |part| {
            let from = skip.min(part.len());
            skip -= from;
            let take = (part.len() - from).min(room);
            room -= take;
            &part[from..from + take]
        })
        .filter(|slice| !slice.is_empty())
        .take(PARTS_MAX)
}

impl Operation for Write {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let offset = self.place();
        let vector: Vec<libc::iovec> = self
            .rest()
            .map(|s| libc::iovec { iov_base: s.as_ptr().cast_mut().cast(), iov_len: s.len() })
            .collect();
        self.vector = Vector(vector);
        let addresses = self.vector.0.iter().map(|v| (v.iov_base as usize, v.iov_len));
        let fd = types::Fd(self.handle.pick(offset, addresses).as_raw_fd());
        let write = match self.vector.0.as_slice() {
            [one] => opcode::Write::new(fd, one.iov_base.cast(), one.iov_len as u32).offset(offset).build(),
            many => opcode::Writev::new(fd, many.as_ptr(), many.len() as u32).offset(offset).build(),
        };
        Some(self.handle.entry(write))
    }

    fn perform(&mut self) -> i32 {
        let offset = self.place();
        let fd = self.handle.pick(offset, self.rest().map(|s| (s.as_ptr() as usize, s.len())));
        let slices: Vec<io::IoSlice<'_>> = self.rest().map(io::IoSlice::new).collect();
        as_result(rustix::io::pwritev(fd, &slices, offset))
    }

    fn complete(mut self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let finished = match outcome(result) {
            // No error and no progress: the device has no room, whatever it calls itself.
            Ok(0) if self.done < self.len => Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                self.done += n;
                if self.done < self.len {
                    return Some(self);
                }
                Ok(())
            }
            Err(e) => Err(e),
        };
        let Write { handle, parts, reply, .. } = *self;
        drop((handle, parts));
        let _ = reply.send(finished);
        None
    }
}

pub(super) struct Flush {
    handle: Arc<Handle>,
    reply: Sender<io::Result<()>>,
}

impl Flush {
    pub fn new(handle: Arc<Handle>, reply: Sender<io::Result<()>>) -> Flush {
        Flush { handle, reply }
    }
}

impl Operation for Flush {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let fd = types::Fd(self.handle.plain.as_raw_fd());
        Some(opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build())
    }

    fn perform(&mut self) -> i32 {
        as_result(rustix::fs::fdatasync(&self.handle.plain).map(|()| 0))
    }

    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let Flush { handle, reply } = *self;
        drop(handle);
        let _ = reply.send(outcome(result).map(drop));
        None
    }
}

/// A hole in a file.
pub(super) struct Hole {
    handle: Arc<Handle>,
    offset: u64,
    len: u64,
    reply: Sender<io::Result<()>>,
}

impl Hole {
    pub fn new(handle: Arc<Handle>, offset: u64, len: u64, reply: Sender<io::Result<()>>) -> Hole {
        Hole { handle, offset, len, reply }
    }
}

impl Operation for Hole {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let fd = types::Fd(self.handle.plain.as_raw_fd());
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        Some(opcode::Fallocate::new(fd, self.len).offset(self.offset).mode(mode).build())
    }

    fn perform(&mut self) -> i32 {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        as_result(rustix::fs::fallocate(&self.handle.plain, mode, self.offset, self.len).map(|()| 0))
    }

    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let Hole { handle, reply, .. } = *self;
        drop(handle);
        let _ = reply.send(told(result));
        None
    }
}

/// BLKDISCARD, which a ring cannot carry.
pub(super) struct Discard {
    handle: Arc<Handle>,
    offset: u64,
    len: u64,
    reply: Sender<io::Result<()>>,
}

impl Discard {
    pub fn new(handle: Arc<Handle>, offset: u64, len: u64, reply: Sender<io::Result<()>>) -> Discard {
        Discard { handle, offset, len, reply }
    }
}

impl Operation for Discard {
    fn entry(&mut self) -> Option<squeue::Entry> {
        None
    }

    #[allow(unsafe_code)]
    fn perform(&mut self) -> i32 {
        /// `_IO(0x12, 119)`: takes offset and length in bytes.
        const BLKDISCARD: libc::c_ulong = 0x1277;
        let range = [self.offset, self.len];
        // SAFETY: the call reads two u64 from the address, which is valid for its duration, and keeps nothing.
        let result = unsafe { libc::ioctl(self.handle.plain.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
        if result == 0 { 0 } else { -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) }
    }

    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if result == -libc::EINTR {
            return Some(self);
        }
        let Discard { handle, reply, .. } = *self;
        drop(handle);
        let _ = reply.send(told(result));
        None
    }
}

/// A discard is news for the device, not a demand: one that does not care is fine.
fn told(result: i32) -> io::Result<()> {
    if result == -libc::EOPNOTSUPP || result == -libc::ENOSYS { Ok(()) } else { outcome(result).map(drop) }
}
