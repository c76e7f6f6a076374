//! Connections: what the fronts speak through.

use crate::{Buf, IoBuf, Pending};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(a) => write!(f, "{a}"),
            Address::Unix(p) => write!(f, "{}", p.display()),
        }
    }
}

pub trait Listener: Send + Sync + fmt::Debug {
    /// The address it really listens on: a TCP port of 0 has become the one chosen.
    fn local(&self) -> Address;

    fn accept(&self) -> Pending<io::Result<(Box<dyn Stream>, Address)>>;
}

/// One connection. `recv` and `send` may be under way at the same time, each at most once.
pub trait Stream: Send + Sync + fmt::Debug {
    /// Receives at least one byte to the front of `buf[range]`; 0 means that the peer has closed. A range, so that
    /// what follows half a message is received behind it, and the rest of a payload where it will stay.
    ///
    /// # Panics
    /// When the range is empty or does not lie within the buffer.
    fn recv(&self, buf: IoBuf, range: Range<usize>) -> Pending<(IoBuf, io::Result<usize>)>;

    /// As [`Stream::recv`], into several buffers that follow each other, behind the first `filled` bytes of them all:
    /// what arrives in one stream is kept apart without being copied. A stream that has no such call receives to the
    /// end of one buffer at a time.
    ///
    /// # Panics
    /// When the buffers have no byte behind `filled`.
    fn recv_parts(&self, mut parts: Vec<IoBuf>, filled: usize) -> Pending<(Vec<IoBuf>, io::Result<usize>)> {
        let (index, start) = place_in(&parts, filled);
        let part = std::mem::replace(&mut parts[index], IoBuf::zeroed(0));
        let end = part.len();
        let receiving = self.recv(part, start..end);
        Box::pin(async move {
            let (part, received) = receiving.await;
            parts[index] = part;
            (parts, received)
        })
    }

    /// Sends all of `parts` in one vectored write where possible.
    fn send(&self, parts: Vec<Buf>) -> Pending<io::Result<()>>;

    /// Ends both directions; a `recv` under way returns.
    fn shutdown(&self);

    /// The address at which the peer found us: one of this machine's, where the listener was at all of them. Nothing where
    /// that is not known.
    fn local(&self) -> Option<Address> {
        None
    }
}

/// Where the byte behind the first `filled` lies: which part, and where in it.
///
/// # Panics
/// When there is no such byte.
pub fn place_in(parts: &[IoBuf], filled: usize) -> (usize, usize) {
    let mut left = filled;
    for (index, part) in parts.iter().enumerate() {
        if left < part.len() {
            return (index, left);
        }
        left -= part.len();
    }
    panic!("a receive needs a place within its buffers")
}
