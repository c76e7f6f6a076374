//! The bytes of one write on their way in.
//!
//! They are received into buffers cut where the volume's blocks begin, so that the volume can keep each whole block as
//! it is: no copy between the socket and the disk, and no block that stays in a cache keeps the memory of its
//! neighbours alive.
//!
//! ```text
//!   write      offset                                     offset + len
//!                |                                             |
//!   blocks   |      0      |      1      |      2      |      3      |
//!   parts        |    a    |      b      |      c      |   d   |        each a buffer of its own
//! ```

use flow::Inbox;
use world::{Buf, IoBuf};

/// Smaller blocks are copied by the volume: that costs less than a buffer and a part of the receive for each.
const SMALLEST_CUT: u32 = 4 << 10;

#[derive(Debug)]
pub(crate) struct Payload {
    parts: Vec<IoBuf>,
    filled: usize,
    len: usize,
}

impl Payload {
    /// Room for `len` bytes that are to be written at `offset`.
    pub fn new(offset: u64, len: u32, block_size: u32) -> Payload {
        let cut = if block_size < SMALLEST_CUT { u64::MAX } else { block_size.into() };
        let (mut parts, mut left) = (Vec::new(), u64::from(len));
        let mut room = cut - offset % cut;
        while left > 0 {
            let part = left.min(room);
            parts.push(IoBuf::scratch(part as usize));
            left -= part;
            room = cut;
        }
        Payload { parts, filled: 0, len: len as usize }
    }

    /// Takes what waits in the inbox and belongs to it.
    pub fn take_from(&mut self, inbox: &mut Inbox) {
        assert_eq!(self.filled, 0, "what waits comes before what is received");
        for part in &mut self.parts {
            let taken = inbox.take(part);
            self.filled += taken;
            if taken < part.len() {
                return;
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.filled == self.len
    }

    /// Lends the buffers for a receive behind the bytes that are there; says how many these are.
    pub fn lend(&mut self) -> (Vec<IoBuf>, usize) {
        (std::mem::take(&mut self.parts), self.filled)
    }

    pub fn put_back(&mut self, parts: Vec<IoBuf>, received: usize) {
        self.parts = parts;
        self.filled += received;
    }

    pub fn into_parts(self) -> Vec<Buf> {
        self.parts.into_iter().map(IoBuf::freeze).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_cut_where_blocks_begin() {
        let lengths = |offset, len, block| -> Vec<usize> {
            Payload::new(offset, len, block).parts.iter().map(|p| p.len()).collect()
        };
        assert_eq!(lengths(0, 32768, 16384), [16384, 16384]);
        assert_eq!(lengths(4096, 32768, 16384), [12288, 16384, 4096]);
        assert_eq!(lengths(20480, 4096, 16384), [4096]);
        assert_eq!(lengths(16384 * 5 - 1, 2, 16384), [1, 1]);
        assert_eq!(lengths(512, 8192, 512), [8192], "blocks too small to be worth a part each");
        assert!(lengths(0, 0, 4096).is_empty());
    }
}
