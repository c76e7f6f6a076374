//! A request of the transmission phase.
//!
//! ```text
//!   0      4      6      8               16              24     28
//!   | magic|flags | type |     cookie     |    offset     | len |  then, for a write, len bytes
//! ```

use super::{Fields, REQUEST_MAGIC};
use units::{Error, Kind, Result};

/// The length of the header.
pub(crate) const LEN: usize = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub flags: u16,
    pub command: Command,
    /// The client's name for the request, given back with the reply.
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    Cache,
    WriteZeroes,
    BlockStatus,
    Unknown(u16),
}

impl Command {
    fn from_code(code: u16) -> Command {
        match code {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            5 => Command::Cache,
            6 => Command::WriteZeroes,
            7 => Command::BlockStatus,
            other => Command::Unknown(other),
        }
    }
}

impl Request {
    /// An error means that we lost the place in the stream: the connection cannot go on.
    pub fn decode(header: &[u8; LEN]) -> Result<Request> {
        Request::fields(&mut Fields(header))
            .ok_or_else(|| Error::new(Kind::Corrupt, "read NBD request: wrong magic number"))
    }

    fn fields(f: &mut Fields<'_>) -> Option<Request> {
        if f.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(Request {
            flags: f.u16()?,
            command: Command::from_code(f.u16()?),
            cookie: f.u64()?,
            offset: f.u64()?,
            len: f.u32()?,
        })
    }

    /// How many bytes follow the header.
    pub fn payload(&self) -> u32 {
        if self.command == Command::Write { self.len } else { 0 }
    }
}
