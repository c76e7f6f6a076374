//! Listening for connections, TCP and Unix.
//!
//! One accept is under way at a time, and what it brings is kept in the listener: a caller that gives up waiting
//! loses no connection.

use crate::executor::{Shared, begin};
use crate::operation::{Operation, as_result, is_transient, outcome};
use crate::stream::Connection;
use io_uring::{opcode, squeue, types};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, Shutdown, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::sync::Notify;
use world::{Address, Listener, Pending, Stream};

/// Connections the kernel holds before we accept them.
const BACKLOG: i32 = 1024;

pub(crate) struct Socket {
    local: Address,
    inner: Arc<Inner>,
    shared: Arc<Shared>,
}

struct Inner {
    fd: OwnedFd,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    arrived: VecDeque<io::Result<OwnedFd>>,
    under_way: bool,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Socket {
    pub fn listen(shared: &Arc<Shared>, address: &Address) -> io::Result<Socket> {
        let fd = match address {
            Address::Tcp(addr) => listen_tcp(*addr)?,
            Address::Unix(path) => listen_unix(path)?,
        };
        let local = match address {
            Address::Tcp(addr) => Address::Tcp(tcp_name(net::getsockname(&fd)?).unwrap_or(*addr)),
            Address::Unix(_) => address.clone(),
        };
        let inner = Inner { fd, state: Mutex::default(), changed: Notify::new() };
        Ok(Socket { local, inner: Arc::new(inner), shared: shared.clone() })
    }
}

fn listen_tcp(addr: SocketAddr) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A server that restarts must not wait for the connections of its former life to time out.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    net::bind(&fd, &addr)?;
    net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

fn listen_unix(path: &Path) -> io::Result<OwnedFd> {
    let name = SocketAddrUnix::new(path)?;
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    match net::bind(&fd, &name) {
        // A socket that no process listens on was left behind by a process that was killed.
        Err(Errno::ADDRINUSE) if is_stale(&name)? => {
            std::fs::remove_file(path)?;
            net::bind(&fd, &name)?;
        }
        outcome => outcome?,
    }
    net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

fn is_stale(name: &SocketAddrUnix) -> io::Result<bool> {
    let probe = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok(net::connect(&probe, name) == Err(Errno::CONNREFUSED))
}

pub(crate) fn tcp_name(name: SocketAddrAny) -> Option<SocketAddr> {
    SocketAddr::try_from(name).ok()
}

impl Listener for Socket {
    fn local(&self) -> Address {
        self.local.clone()
    }

    fn accept(&self) -> Pending<io::Result<(Box<dyn Stream>, Address)>> {
        let (inner, shared, local) = (self.inner.clone(), self.shared.clone(), self.local.clone());
        Box::pin(async move {
            let fd = inner.changed.until(|| next_arrival(&inner, &shared)).await?;
            let peer = peer_of(&fd, local);
            let stream = Connection::new(&shared, fd, matches!(peer, Address::Tcp(_)));
            Ok((Box::new(stream) as Box<dyn Stream>, peer))
        })
    }
}

fn next_arrival(inner: &Arc<Inner>, shared: &Arc<Shared>) -> Option<io::Result<OwnedFd>> {
    let mut state = inner.lock();
    let arrival = state.arrived.pop_front();
    if arrival.is_none() && !state.under_way {
        state.under_way = true;
        drop(state);
        begin(shared, Box::new(Accept { inner: inner.clone() }));
    }
    arrival
}

/// A Unix client has no name of its own; it is known by the socket it came to.
fn peer_of(fd: &OwnedFd, local: Address) -> Address {
    let tcp = net::getpeername(fd).ok().flatten().and_then(tcp_name);
    tcp.map_or(local, Address::Tcp)
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The name goes first: one that leads nowhere would be taken over, and removed from under its owner then.
        if let Address::Unix(path) = &self.local {
            let _: Result<(), _> = std::fs::remove_file(PathBuf::from(path));
        }
        // An accept under way holds the descriptor; this ends it, and with it the listening.
        let _ = net::shutdown(&self.inner.fd, Shutdown::Both);
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Socket({})", self.local)
    }
}

struct Accept {
    inner: Arc<Inner>,
}

impl Operation for Accept {
    fn entry(&mut self) -> Option<squeue::Entry> {
        let fd = types::Fd(self.inner.fd.as_raw_fd());
        let accept = opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut());
        Some(accept.flags(libc::SOCK_CLOEXEC).build())
    }

    fn perform(&mut self) -> i32 {
        // A client that left after the poll must not leave us waiting here. Not set for a ring, which would answer
        // EAGAIN at once instead of waiting.
        let _ = rustix::io::ioctl_fionbio(&self.inner.fd, true);
        // The result is the ring's: a bare descriptor, which `complete` takes over.
        let accepted = net::accept_with(&self.inner.fd, SocketFlags::CLOEXEC);
        as_result(accepted.map(|fd| usize::try_from(fd.into_raw_fd()).expect("descriptors are not negative")))
    }

    fn readiness(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        Some((self.inner.fd.as_fd(), PollFlags::IN))
    }

    #[allow(unsafe_code)]
    fn complete(self: Box<Self>, result: i32) -> Option<Box<dyn Operation>> {
        // A client that left before it was accepted is not the listener's trouble.
        if is_transient(result) || result == -libc::ECONNABORTED {
            return Some(self);
        }
        // SAFETY: a result that is not negative is a descriptor the kernel has just made for us alone.
        let arrival = outcome(result).map(|_| unsafe { OwnedFd::from_raw_fd(result) });
        {
            let mut state = self.inner.lock();
            state.under_way = false;
            state.arrived.push_back(arrival);
        }
        self.inner.changed.notify_all();
        None
    }
}
