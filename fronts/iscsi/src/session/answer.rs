//! Outcomes into PDUs. Everything goes to the outbox; data stay in the buffers that the unit gave.

use super::connection::{Connection, OVERHEAD};
use crate::wire::{HEADER, Header, NO_TAG, Reject, Reply, padding, response};
use flow::Load;
use scsi::{Outcome, Piece, Status};
use world::Buf;

const FINAL: u8 = 0x80;
const OVERFLOW: u8 = 0x04;
const UNDERFLOW: u8 = 0x02;
const WITH_STATUS: u8 = 0x01;

/// For padding.
const ZEROS: [u8; 4] = [0; 4];

/// How what was moved differs from what the client expected: the flag, and the number of bytes.
fn residual(actual: u64, expected: u64) -> (u8, u32) {
    match actual.cmp(&expected) {
        std::cmp::Ordering::Equal => (0, 0),
        std::cmp::Ordering::Greater => (OVERFLOW, u32::try_from(actual - expected).unwrap_or(u32::MAX)),
        std::cmp::Ordering::Less => (UNDERFLOW, (expected - actual) as u32),
    }
}

impl Connection {
    /// Answers a command: its data, and its status. `needed` is what it takes of the client.
    pub fn answer(
        &mut self,
        tag: u32,
        outcome: &Outcome,
        reads: bool,
        expected: usize,
        needed: u64,
        load: Load,
    ) {
        let actual = if reads { outcome.len() as u64 } else { needed };
        let (flag, count) = residual(actual, expected as u64);
        let room = if reads { expected } else { 0 };
        let len = outcome.len().min(room);
        let with_status = outcome.status == Status::Good && len > 0;
        let mut pdus = 0;
        if len > 0 {
            pdus = self.send_data(tag, outcome, len, with_status.then_some((flag, count)));
        }
        if !with_status {
            let mut sense = Vec::new();
            if !outcome.sense.is_empty() {
                sense.extend((outcome.sense.len() as u16).to_be_bytes());
                sense.extend(&outcome.sense);
            }
            let reply = Reply::to(response::COMMAND, FINAL | flag, tag)
                .u8(3, outcome.status as u8)
                .u32(36, pdus)
                .u32(44, count);
            self.put(reply, &sense);
            self.stat_sn = self.stat_sn.wrapping_add(1);
        }
        self.outbox.end_reply(load);
    }

    /// Sends `len` bytes of data in PDUs and bursts as agreed; the last carries the status, if it is good. Returns how
    /// many PDUs it took.
    fn send_data(&mut self, tag: u32, outcome: &Outcome, len: usize, status: Option<(u8, u32)>) -> u32 {
        let (mut sent, mut number, mut pieces) = (0, 0u32, Pieces::new(&outcome.data));
        while sent < len {
            let burst_left = self.params.max_burst - sent % self.params.max_burst;
            let count = (len - sent).min(self.params.max_send).min(burst_left);
            let (is_last, ends_burst) = (sent + count == len, count == burst_left);
            let flags = if is_last || ends_burst { FINAL } else { 0 };
            let mut reply = Reply::to(response::DATA, flags, tag)
                .data(count)
                .u32(20, NO_TAG)
                .u32(28, self.exp_cmd_sn)
                .u32(32, self.max_cmd_sn)
                .u32(36, number)
                .u32(40, sent as u32);
            if let (true, Some((flag, residual))) = (is_last, status) {
                reply.0[1] |= flag | WITH_STATUS;
                reply = reply.u32(24, self.stat_sn).u32(44, residual);
                self.stat_sn = self.stat_sn.wrapping_add(1);
            }
            self.put_header(&reply);
            self.put_pieces(&mut pieces, count);
            sent += count;
            number += 1;
        }
        number
    }

    fn put_header(&mut self, reply: &Reply) {
        if self.params.header_digest {
            let mut bytes = [0; HEADER + 4];
            bytes[..HEADER].copy_from_slice(&reply.0);
            bytes[HEADER..].copy_from_slice(&crc32c::crc32c(&reply.0).to_le_bytes());
            self.outbox.head(&bytes);
        } else {
            self.outbox.head(&reply.0);
        }
    }

    /// The data of one PDU, its padding and its digest.
    fn put_pieces(&mut self, pieces: &mut Pieces<'_>, count: usize) {
        let (mut left, mut digest) = (count, 0);
        let is_digested = self.params.data_digest;
        while left > 0 {
            let piece = pieces.take(left);
            left -= piece.len();
            match piece {
                Piece::Data(buf) => {
                    if is_digested {
                        digest = crc32c::crc32c_append(digest, &buf);
                    }
                    // So little costs less copied.
                    if buf.len() <= 512 { self.outbox.head(&buf) } else { self.outbox.data(buf) }
                }
                Piece::Hole(len) => {
                    if is_digested {
                        digest = digest_of_zeros(digest, len as usize);
                    }
                    self.outbox.zeros(len as usize);
                }
            }
        }
        let pad = &ZEROS[..padding(count)];
        if is_digested {
            let digest = crc32c::crc32c_append(digest, pad);
            self.outbox.head(&[pad, &digest.to_le_bytes()].concat());
        } else if !pad.is_empty() {
            self.outbox.head(pad);
        }
    }

    /// Sends a response that no command's load covers. It takes the next number.
    pub fn send(&mut self, reply: Reply, data: &[u8]) {
        self.send_unnumbered(reply, data);
        self.stat_sn = self.stat_sn.wrapping_add(1);
    }

    /// Sends a PDU that only tells the next number.
    pub fn send_unnumbered(&mut self, reply: Reply, data: &[u8]) {
        self.put(reply, data);
        let load = Load::aside(OVERHEAD + data.len());
        self.load += load;
        self.outbox.end_reply(load);
    }

    fn put(&mut self, reply: Reply, data: &[u8]) {
        let reply =
            reply.data(data.len()).u32(24, self.stat_sn).u32(28, self.exp_cmd_sn).u32(32, self.max_cmd_sn);
        self.put_header(&reply);
        if !data.is_empty() {
            let piece = [Piece::Data(Buf::copy_from(data))];
            self.put_pieces(&mut Pieces::new(&piece), data.len());
        }
    }

    /// Sends a PDU back that cannot be taken.
    pub fn reject(&mut self, header: &Header, why: Reject) {
        let reply = Reply::to(response::REJECT, FINAL, NO_TAG).u8(2, why as u8);
        self.send(reply, &header.0);
    }
}

/// Goes on with a digest over so many zeros.
fn digest_of_zeros(mut digest: u32, mut len: usize) -> u32 {
    static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
    while len > 0 {
        let count = len.min(ZEROS.len());
        digest = crc32c::crc32c_append(digest, &ZEROS[..count]);
        len -= count;
    }
    digest
}

/// Takes pieces apart.
struct Pieces<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    rest: Option<Piece>,
}

impl<'a> Pieces<'a> {
    fn new(pieces: &'a [Piece]) -> Pieces<'a> {
        Pieces { pieces: pieces.iter(), rest: None }
    }

    /// The next piece, of at most `most` bytes.
    ///
    /// # Panics
    /// When there is none: the caller knows how many bytes there are.
    fn take(&mut self, most: usize) -> Piece {
        let piece = match self.rest.take() {
            Some(piece) => piece,
            None => self.pieces.next().expect("no more is taken than there is").clone(),
        };
        if piece.len() <= most {
            return piece;
        }
        self.rest = Some(piece.slice(most..piece.len()));
        piece.slice(0..most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_tell_more_or_less() {
        assert_eq!(residual(512, 512), (0, 0));
        assert_eq!(residual(512, 200), (OVERFLOW, 312));
        assert_eq!(residual(0, 512), (UNDERFLOW, 512));
    }

    #[test]
    fn pieces_come_apart_anywhere() {
        let pieces =
            [Piece::Data(Buf::copy_from(&[1, 2, 3])), Piece::Hole(2), Piece::Data(Buf::copy_from(&[4]))];
        let mut all = Pieces::new(&pieces);
        assert_eq!([2, 2, 1, 9, 9].map(|most| all.take(most).len()), [2, 1, 1, 1, 1]);
        assert_eq!(digest_of_zeros(0, 40000), crc32c::crc32c(&vec![0; 40000]));
    }
}
