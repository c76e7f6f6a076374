//! Writing a trace, piece by piece: what is written is whole up to the last piece.

use crate::header::{Header, Place};
use crate::piece::{encode, put};
use crate::request::Request;
use std::io::{self, Write};

pub const MAGIC: &[u8; 8] = b"CENTRACE";
pub(crate) const HEADER: u8 = b'H';
pub(crate) const PLACE: u8 = b'P';
pub(crate) const REQUESTS: u8 = b'R';
pub(crate) const END: u8 = b'E';
/// Kind and length before the payload, and the checksum behind it.
pub(crate) const HEAD: usize = 5;
pub(crate) const TAIL: usize = 8;
/// The longest payload that is read.
pub(crate) const PAYLOAD_MAX: usize = 1 << 20;
/// So many requests are in a piece at most; each has less than 64 bytes.
const PIECE_REQUESTS: usize = 8192;

pub(crate) fn checksum(head: &[u8], payload: &[u8]) -> u64 {
    !codec::crc64::update(codec::crc64::update(!0, head), payload)
}

/// See the module.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    written: u64,
    requests: u64,
    dropped: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W, header: &Header) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, written: 0, requests: 0, dropped: 0 };
        writer.out.write_all(MAGIC)?;
        writer.written += MAGIC.len() as u64;
        writer.piece(HEADER, &header.encode())?;
        Ok(writer)
    }

    /// Bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The next place: its index is how many there were before.
    pub fn place(&mut self, place: &Place) -> io::Result<()> {
        self.piece(PLACE, &place.encode())
    }

    /// Requests in any order, of places that were written; besides them so many were dropped. What is written is flushed.
    pub fn requests_of(&mut self, requests: &mut [Request], dropped: u64) -> io::Result<()> {
        requests.sort_by_key(|request| (request.at, request.place, request.offset));
        for part in requests.chunks(PIECE_REQUESTS) {
            self.piece(REQUESTS, &encode(part))?;
        }
        self.requests += requests.len() as u64;
        self.dropped += dropped;
        self.out.flush()
    }

    /// The end of a whole trace, which went on for so many nanoseconds.
    pub fn end(mut self, length: u64) -> io::Result<W> {
        let mut payload = Vec::new();
        [self.requests, self.dropped, length].into_iter().for_each(|number| put(&mut payload, number));
        self.piece(END, &payload)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn piece(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let len = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= PAYLOAD_MAX);
        let len = len.ok_or_else(|| io::Error::other("a piece of a trace is too long"))?;
        let mut head = vec![kind];
        head.extend_from_slice(&len.to_le_bytes());
        let sum = checksum(&head, payload);
        self.out.write_all(&head)?;
        self.out.write_all(payload)?;
        self.out.write_all(&sum.to_le_bytes())?;
        self.written += (HEAD + payload.len() + TAIL) as u64;
        Ok(())
    }
}
