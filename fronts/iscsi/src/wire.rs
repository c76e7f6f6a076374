//! PDUs: bytes of headers to values, and values to bytes. Pure.
//!
//! ```text
//!   0        1       4      5            8        16        20  24      28         32        36 … 48
//!   |I|opcode| flags |AHS len| data length |  LUN  | task tag |   | CmdSN | ExpStatSN |   (requests)
//!   |  opcode| flags | status …            |       |          |   | StatSN| ExpCmdSN  | MaxCmdSN  (responses)
//!   then: additional headers, header digest, data padded to 4, data digest
//! ```

/// Without additional headers.
pub(crate) const HEADER: usize = 48;
/// A tag that means none.
pub(crate) const NO_TAG: u32 = u32::MAX;

pub(crate) mod request {
    pub const NOP: u8 = 0x00;
    pub const COMMAND: u8 = 0x01;
    pub const TASK: u8 = 0x02;
    pub const LOGIN: u8 = 0x03;
    pub const TEXT: u8 = 0x04;
    pub const DATA: u8 = 0x05;
    pub const LOGOUT: u8 = 0x06;
    pub const SNACK: u8 = 0x10;
}

pub(crate) mod response {
    pub const NOP: u8 = 0x20;
    pub const COMMAND: u8 = 0x21;
    pub const TASK: u8 = 0x22;
    pub const LOGIN: u8 = 0x23;
    pub const TEXT: u8 = 0x24;
    pub const DATA: u8 = 0x25;
    pub const LOGOUT: u8 = 0x26;
    pub const R2T: u8 = 0x31;
    pub const ASYNC: u8 = 0x32;
    pub const REJECT: u8 = 0x3f;
}

/// Why a PDU is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reject {
    DataDigest = 0x02,
    Snack = 0x03,
    Protocol = 0x04,
    Unsupported = 0x05,
    TaskInProgress = 0x07,
    InvalidField = 0x09,
}

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header(pub [u8; HEADER]);

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Header({:#04x}, task {:#x})", self.opcode(), self.tag())
    }
}

impl Header {
    pub fn opcode(&self) -> u8 {
        self.0[0] & 0x3f
    }

    pub fn is_immediate(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    pub fn flags(&self) -> u8 {
        self.0[1]
    }

    /// F.
    pub fn is_final(&self) -> bool {
        self.0[1] & 0x80 != 0
    }

    /// Bytes of additional headers.
    pub fn additional(&self) -> usize {
        usize::from(self.0[4]) * 4
    }

    /// Bytes of data, without padding.
    pub fn data(&self) -> usize {
        (u32::from_be_bytes([0, self.0[5], self.0[6], self.0[7]])) as usize
    }

    pub fn lun(&self) -> [u8; 8] {
        let mut lun = [0; 8];
        lun.copy_from_slice(&self.0[8..16]);
        lun
    }

    pub fn tag(&self) -> u32 {
        self.u32(16)
    }

    pub fn cmd_sn(&self) -> u32 {
        self.u32(24)
    }

    pub fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    pub fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }
}

/// The header of a response, being made. Numbers of the connection are filled in where it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply(pub [u8; HEADER]);

impl Reply {
    /// F is set in every response but in some data.
    pub fn new(opcode: u8, flags: u8) -> Reply {
        let mut bytes = [0; HEADER];
        (bytes[0], bytes[1]) = (opcode, flags);
        Reply(bytes)
    }

    pub fn to(opcode: u8, flags: u8, tag: u32) -> Reply {
        Reply::new(opcode, flags).u32(16, tag)
    }

    #[must_use]
    pub fn u8(mut self, at: usize, value: u8) -> Reply {
        self.0[at] = value;
        self
    }

    #[must_use]
    pub fn u16(mut self, at: usize, value: u16) -> Reply {
        self.0[at..at + 2].copy_from_slice(&value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn u32(mut self, at: usize, value: u32) -> Reply {
        self.0[at..at + 4].copy_from_slice(&value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn bytes(mut self, at: usize, value: &[u8]) -> Reply {
        self.0[at..at + value.len()].copy_from_slice(value);
        self
    }

    #[must_use]
    pub fn data(mut self, len: usize) -> Reply {
        self.0[5..8].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
        self
    }
}

/// Bytes of padding behind `len` bytes of data.
pub(crate) fn padding(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

/// Serial numbers wrap; `a` is before `b` when it is less than half the circle behind.
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_wrap() {
        assert!(is_before(1, 2) && !is_before(2, 2) && !is_before(3, 2));
        assert!(is_before(u32::MAX, 0) && !is_before(0, u32::MAX));
        assert_eq!([0, 1, 2, 3, 4].map(padding), [0, 3, 2, 1, 0]);
    }

    #[test]
    fn a_reply_reads_back() {
        let reply = Reply::to(response::DATA, 0x81, 7).data(0x010203).u32(24, 9);
        let header = Header(reply.0);
        assert_eq!((header.opcode(), header.tag(), header.data(), header.cmd_sn()), (0x25, 7, 0x010203, 9));
        assert!(header.is_final() && !header.is_immediate());
    }
}
