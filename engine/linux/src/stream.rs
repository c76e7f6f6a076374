//! One connection.

use crate::disk::rest_of;
use crate::executor::{Shared, begin};
use crate::listener::tcp_name;
use crate::operation::{Operation, answer, as_result, is_transient, outcome};
use io_uring::{opcode, squeue, types};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recvmsg, sockopt,
};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use world::sync::oneshot::{self, Sender};
use world::{Address, Buf, IoBuf, Pending, Stream, boxed, place_in};

pub(crate) struct Connection {
    fd: Arc<OwnedFd>,
    shared: Arc<Shared>,
}

impl Connection {
    pub fn new(shared: &Arc<Shared>, fd: OwnedFd, is_tcp: bool) -> Connection {
        if is_tcp {
            // Replies are gathered by us; Nagle would only hold them back. A socket that refuses works without.
            let _ = sockopt::set_tcp_nodelay(&fd, true);
        }
        Connection { fd: Arc::new(fd), shared: shared.clone() }
    }
}

impl Stream for Connection {
    fn recv(&self, buf: IoBuf, range: Range<usize>) -> Pending<(IoBuf, io::Result<usize>)> {
        assert!(!range.is_empty() && range.end <= buf.len(), "a receive needs a place within its buffer");
        let (reply, waiting) = oneshot::channel();
        begin(&self.shared, Box::new(Receive { fd: self.fd.clone(), buf, range, reply }));
        boxed(|| async move {
            match answer(waiting).await {
                Ok(outcome) => outcome,
                Err(ending) => (IoBuf::zeroed(0), Err(ending)),
            }
        })
    }

    fn recv_parts(&self, parts: Vec<IoBuf>, filled: usize) -> Pending<(Vec<IoBuf>, io::Result<usize>)> {
        let from = place_in(&parts, filled);
        let (reply, waiting) = oneshot::channel();
        let header = Header::default();
        begin(&self.shared, Box::new(Scatter { fd: self.fd.clone(), parts, from, header, reply }));
        boxed(|| async move {
            match answer(waiting).await {
                Ok(outcome) => outcome,
                Err(ending) => (Vec::new(), Err(ending)),
            }
        })
    }

    fn send(&self, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        let len = parts.iter().map(|p| p.len()).sum();
        if len == 0 {
            return Box::pin(std::future::ready(Ok(())));
        }
        let (reply, waiting) = oneshot::channel();
        begin(
            &self.shared,
            Box::new(Send { fd: self.fd.clone(), parts, len, done: 0, header: Header::default(), reply }),
        );
        boxed(|| async move { answer(waiting).await? })
    }

    fn shutdown(&self) {
        // It fails only when the peer was faster.
        let _ = rustix::net::shutdown(&*self.fd, Shutdown::Both);
    }

    fn local(&self) -> Option<Address> {
        rustix::net::getsockname(&*self.fd).ok().and_then(tcp_name).map(Address::Tcp)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A receive under way holds the descriptor; this ends it and tells the peer.
        self.shutdown();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.fd.as_raw_fd())
    }
}

struct Receive {
    fd: Arc<OwnedFd>,
    buf: IoBuf,
    range: Range<usize>,
    reply: Sender<(IoBuf, io::Result<usize>)>,
}

impl Operation for Receive {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let target = &mut self.buf[self.range.clone()];
        let len = u32::try_from(target.len()).unwrap_or(u32::MAX);
        Some(opcode::Recv::new(types::Fd(self.fd.as_raw_fd()), target.as_mut_ptr(), len).build())
    }

    fn perform(&mut self) -> i32 {
        let target = &mut self.buf[self.range.clone()];
        as_result(rustix::net::recv(&*self.fd, target, RecvFlags::DONTWAIT).map(|(n, _)| n))
    }

    fn readiness(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        Some((self.fd.as_fd(), PollFlags::IN))
    }

    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let _ = self.reply.send((self.buf, outcome(result)));
        None
    }
}

/// A receive into several buffers.
struct Scatter {
    fd: Arc<OwnedFd>,
    parts: Vec<IoBuf>,
    /// The part and the place in it that the first byte goes to.
    from: (usize, usize),
    header: Header,
    reply: Sender<(Vec<IoBuf>, io::Result<usize>)>,
}

/// The kernel takes no more at once (`UIO_MAXIOV`).
const VECTOR_MAX: usize = 1024;

impl Scatter {
    fn targets(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (first, start) = self.from;
        let parts = self.parts[first..].iter_mut().take(VECTOR_MAX).enumerate();
        parts.map(move |(i, part)| if i == 0 { &mut part[start..] } else { &mut part[..] })
    }
}

impl Operation for Scatter {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let address = |t: &mut [u8]| libc::iovec { iov_base: t.as_mut_ptr().cast(), iov_len: t.len() };
        self.header.vector = self.targets().map(address).collect();
        self.header.message.msg_iov = self.header.vector.as_mut_ptr();
        self.header.message.msg_iovlen = self.header.vector.len() as _;
        let receive = opcode::RecvMsg::new(types::Fd(self.fd.as_raw_fd()), &raw mut self.header.message);
        Some(receive.build())
    }

    fn perform(&mut self) -> i32 {
        let fd = self.fd.clone();
        let mut slices: Vec<io::IoSliceMut<'_>> = self.targets().map(io::IoSliceMut::new).collect();
        let mut none = RecvAncillaryBuffer::default();
        as_result(recvmsg(&*fd, &mut slices, &mut none, RecvFlags::DONTWAIT).map(|message| message.bytes))
    }

    fn readiness(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        Some((self.fd.as_fd(), PollFlags::IN))
    }

    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let _ = self.reply.send((self.parts, outcome(result)));
        None
    }
}

/// A message header and the addresses it points to, for the kernel.
struct Header {
    message: libc::msghdr,
    vector: Vec<libc::iovec>,
}

impl Default for Header {
    #[allow(unsafe_code)]
    fn default() -> Header {
        // SAFETY: all zero is a valid header: no name, no parts, no control data.
        Header { message: unsafe { std::mem::zeroed() }, vector: Vec::new() }
    }
}

// SAFETY: the addresses are of this operation's own memory and of buffers it owns, which any thread may read.
#[allow(unsafe_code)]
unsafe impl std::marker::Send for Header {}

struct Send {
    fd: Arc<OwnedFd>,
    parts: Vec<Buf>,
    len: usize,
    done: usize,
    header: Header,
    reply: Sender<io::Result<()>>,
}

impl Operation for Send {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let address = |s: &[u8]| libc::iovec { iov_base: s.as_ptr().cast_mut().cast(), iov_len: s.len() };
        self.header.vector = rest_of(&self.parts, self.done).map(address).collect();
        self.header.message.msg_iov = self.header.vector.as_mut_ptr();
        self.header.message.msg_iovlen = self.header.vector.len() as _;
        // WAITALL: the kernel sends the rest of a short one itself, without coming back here.
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        let send = opcode::SendMsg::new(types::Fd(self.fd.as_raw_fd()), &self.header.message);
        Some(send.flags(flags).build())
    }

    fn perform(&mut self) -> i32 {
        let slices: Vec<io::IoSlice<'_>> = rest_of(&self.parts, self.done).map(io::IoSlice::new).collect();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        as_result(rustix::net::sendmsg(&*self.fd, &slices, &mut SendAncillaryBuffer::default(), flags))
    }

    fn readiness(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        Some((self.fd.as_fd(), PollFlags::OUT))
    }

    fn complete(mut self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        if is_transient(result) {
            return Some(self);
        }
        let finished = match outcome(result) {
            Ok(n) => {
                self.done += n;
                if self.done < self.len {
                    return Some(self);
                }
                Ok(())
            }
            Err(e) => Err(e),
        };
        let _ = self.reply.send(finished);
        None
    }
}
