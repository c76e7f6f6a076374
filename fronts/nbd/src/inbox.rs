//! What was received and not yet taken.
//!
//! ```text
//!   0        start        end                      capacity
//!   |  taken  |  waiting   |  room to receive into   |
//! ```
//!
//! One buffer for the life of a connection. While a receive is under way the buffer is with the socket, and nothing
//! waits in it that could be taken: a receive is started only for want of bytes.

use std::ops::Range;
use units::{Error, Kind, Result};
use world::{IoBuf, Stream};

/// As much as one receive may bring: room for sixty writes of 4 KiB.
pub(crate) const CAPACITY: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Inbox {
    buf: IoBuf,
    start: usize,
    end: usize,
}

impl Inbox {
    pub fn new() -> Inbox {
        Inbox { buf: IoBuf::scratch(CAPACITY), start: 0, end: 0 }
    }

    pub fn waiting(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// The first `N` waiting bytes, which stay.
    pub fn peek<const N: usize>(&self) -> Option<&[u8; N]> {
        self.waiting().first_chunk()
    }

    /// # Panics
    /// When fewer are waiting.
    pub fn consume(&mut self, len: usize) {
        assert!(len <= self.end - self.start, "only what waits can be taken");
        self.start += len;
    }

    /// Takes up to `into.len()` bytes; returns how many.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let len = into.len().min(self.waiting().len());
        into[..len].copy_from_slice(&self.waiting()[..len]);
        self.consume(len);
        len
    }

    /// Lends the buffer for a receive of at most `window` bytes behind what waits.
    pub fn lend(&mut self, window: usize) -> (IoBuf, Range<usize>) {
        self.buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let range = self.end..CAPACITY.min(self.end + window);
        (std::mem::replace(&mut self.buf, IoBuf::zeroed(0)), range)
    }

    pub fn put_back(&mut self, buf: IoBuf, received: usize) {
        self.buf = buf;
        self.end += received;
    }

    /// Receives until `len` bytes wait; `false` when the peer closes first.
    pub async fn fill(&mut self, stream: &dyn Stream, len: usize) -> Result<bool> {
        assert!(len <= CAPACITY, "the caller waits for no more than fits");
        while self.waiting().len() < len {
            let (buf, range) = self.lend(CAPACITY);
            let (buf, received) = stream.recv(buf, range).await;
            let received =
                received.map_err(|e| Error::new(Kind::Io, "receive from NBD client").because(e))?;
            self.put_back(buf, received);
            if received == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
