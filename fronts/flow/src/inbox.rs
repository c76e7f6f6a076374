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

#[derive(Debug)]
pub struct Inbox {
    buf: IoBuf,
    capacity: usize,
    start: usize,
    end: usize,
    /// Of what the last receive left waiting, if that was not said to be taken.
    half: usize,
}

impl Inbox {
    /// `capacity` is as much as one receive may bring, bytes.
    pub fn new(capacity: usize) -> Inbox {
        Inbox { buf: IoBuf::scratch(capacity), capacity, start: 0, end: 0, half: 0 }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Changes the capacity, while the buffer is here and unless more is waiting.
    pub fn resize(&mut self, capacity: usize) {
        let waiting = self.end - self.start;
        if capacity == self.capacity || waiting > capacity || self.buf.len() != self.capacity {
            return;
        }
        let mut buf = IoBuf::scratch(capacity);
        buf[..waiting].copy_from_slice(self.waiting());
        (self.buf, self.capacity, self.start, self.end) = (buf, capacity, 0, waiting);
    }

    pub fn waiting(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Nothing waits. Unlike the bytes themselves, this may be asked while the buffer is with the socket.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Of what there was after the last receive half is taken, or a little more: some is left.
    pub fn is_half_taken(&self) -> bool {
        !self.is_empty() && self.end - self.start <= self.half
    }

    /// It is not asked again until more was received.
    pub fn pass_half(&mut self) {
        self.half = 0;
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
        let range = self.end..self.capacity.min(self.end.saturating_add(window));
        (std::mem::replace(&mut self.buf, IoBuf::zeroed(0)), range)
    }

    pub fn put_back(&mut self, buf: IoBuf, received: usize) {
        self.buf = buf;
        self.end += received;
        self.half = (self.end - self.start) / 2;
    }

    /// Receives until `len` bytes wait; `false` when the peer closes first.
    pub async fn fill(&mut self, stream: &dyn Stream, len: usize) -> Result<bool> {
        assert!(len <= self.capacity, "the caller waits for no more than fits");
        while self.waiting().len() < len {
            let (buf, range) = self.lend(usize::MAX);
            let (buf, received) = stream.recv(buf, range).await;
            let received = received.map_err(|e| Error::new(Kind::Io, "receive from client").because(e))?;
            self.put_back(buf, received);
            if received == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
