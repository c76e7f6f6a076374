//! The data of one command on their way in.
//!
//! They arrive in PDUs and are received into buffers cut where the unit's blocks begin, so that the unit can keep each
//! whole block as it is. A PDU ends anywhere, and behind it comes another header, so a receive is never given more room
//! than the PDU has data:
//!
//! ```text
//!   buffers   |    0    |    1    |    2    |    3    |
//!   PDUs      [    a       ][          b         ][ c ]
//!   receives  of a: 0 whole, then the front of 1;  of b: the rest of 1, then 2 whole, then the front of 3
//! ```

use std::io;
use std::ops::Range;
use world::Pending;
use world::{Buf, IoBuf, Stream};

/// Smaller blocks are copied by the unit: that costs less than a buffer for each.
const SMALLEST_CUT: u32 = 4 << 10;

#[derive(Debug)]
pub(crate) struct Payload {
    parts: Vec<IoBuf>,
    /// Where each part begins.
    starts: Vec<usize>,
}

/// Buffers that are with the socket.
pub(crate) enum Lent {
    One(Pending<(IoBuf, io::Result<usize>)>),
    Several(Pending<(Vec<IoBuf>, io::Result<usize>)>),
}

impl Payload {
    /// Room for `len` bytes; `place` is where on a unit of such blocks they will go, if they go there as they are.
    pub fn new(place: Option<u64>, len: usize, block_size: u32) -> Payload {
        let cut = match place {
            Some(_) if block_size >= SMALLEST_CUT => u64::from(block_size),
            _ => u64::MAX,
        };
        let (mut parts, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        let mut room = cut - place.unwrap_or(0) % cut;
        while at < len {
            let part = room.min((len - at) as u64) as usize;
            parts.push(IoBuf::scratch(part));
            starts.push(at);
            at += part;
            room = cut;
        }
        Payload { parts, starts }
    }

    /// The part that byte `at` is in, and where in it.
    fn find(&self, at: usize) -> (usize, usize) {
        let part = self.starts.partition_point(|&start| start <= at) - 1;
        (part, at - self.starts[part])
    }

    pub fn put(&mut self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (part, start) = self.find(at);
            let room = &mut self.parts[part][start..];
            let len = room.len().min(bytes.len());
            room[..len].copy_from_slice(&bytes[..len]);
            at += len;
            bytes = &bytes[len..];
        }
    }

    /// Begins to receive at most `len` bytes behind the first `at`.
    pub fn receive(&mut self, stream: &dyn Stream, at: usize, len: usize) -> Lent {
        let (first, start) = self.find(at);
        if self.parts[first].len() - start >= len {
            let part = std::mem::replace(&mut self.parts[first], IoBuf::zeroed(0));
            return Lent::One(stream.recv(part, start..start + len));
        }
        let end = at + len;
        let whole = (first..self.parts.len()).take_while(|&i| self.starts[i] + self.parts[i].len() <= end);
        let count = whole.count();
        let parts = self.parts[first..first + count].iter_mut();
        let parts: Vec<IoBuf> = parts.map(|part| std::mem::replace(part, IoBuf::zeroed(0))).collect();
        Lent::Several(stream.recv_parts(parts, start))
    }

    /// Takes back what was lent for the bytes behind the first `at`.
    pub fn put_back(&mut self, at: usize, parts: impl IntoIterator<Item = IoBuf>) {
        let (first, _) = self.find(at);
        for (own, part) in self.parts[first..].iter_mut().zip(parts) {
            *own = part;
        }
    }

    /// Goes on with a digest over a range.
    pub fn digest(&self, mut digest: u32, range: Range<usize>) -> u32 {
        let mut at = range.start;
        while at < range.end {
            let (part, start) = self.find(at);
            let end = self.parts[part].len().min(start + range.end - at);
            digest = crc32c::crc32c_append(digest, &self.parts[part][start..end]);
            at += end - start;
        }
        digest
    }

    pub fn into_parts(self) -> Vec<Buf> {
        self.parts.into_iter().map(IoBuf::freeze).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_cut_where_blocks_begin() {
        let lengths = |place, len, block| -> Vec<usize> {
            Payload::new(place, len, block).parts.iter().map(|p| p.len()).collect()
        };
        assert_eq!(lengths(Some(0), 32768, 16384), [16384, 16384]);
        assert_eq!(lengths(Some(512), 20000, 16384), [15872, 4128]);
        assert_eq!(lengths(None, 20000, 16384), [20000]);
        assert_eq!(lengths(Some(512), 8192, 512), [8192], "blocks too small to be worth a part each");
        assert!(lengths(Some(0), 0, 4096).is_empty());
    }

    #[test]
    fn what_is_put_in_pieces_comes_out_whole() {
        let bytes: Vec<u8> = (0..20000u32).map(|i| i as u8).collect();
        let mut payload = Payload::new(Some(512), bytes.len(), 4096);
        for (at, piece) in bytes.chunks(3001).enumerate() {
            payload.put(at * 3001, piece);
        }
        assert_eq!(payload.digest(0, 100..19000), crc32c::crc32c(&bytes[100..19000]));
        let parts = payload.into_parts();
        assert!(parts.iter().flat_map(|p| p.iter().copied()).eq(bytes));
    }
}
