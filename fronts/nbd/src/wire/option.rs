//! Options: what a client asks before it uses an export, and our answers.
//!
//! ```text
//!   option   | IHAVEOPT 8 | option 4 | length 4 |  data
//!   answer   | magic 8 | option 4 | type 4 | length 4 |  data; several, the last an ACK or an error
//! ```

use super::{Fields, MAX_STRING, OPTION_MAGIC, OPTION_REPLY_MAGIC, clip};
use units::{Error, Kind, Result};

/// The length of an option's header.
pub(crate) const LEN: usize = 16;

/// The longest data of an option that we read: room for the longest name and a hundred queries.
pub(crate) const MAX_DATA: u32 = 64 << 10;

/// The numbers of the options.
pub(crate) mod code {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// The types of answers.
pub(crate) mod answer {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
}

/// The answers that say no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum No {
    Unsupported = (1 << 31) + 1,
    Policy = (1 << 31) + 2,
    Invalid = (1 << 31) + 3,
    TlsRequired = (1 << 31) + 5,
    Unknown = (1 << 31) + 6,
    TooBig = (1 << 31) + 9,
}

/// What can be told of an export.
pub(crate) mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// An option as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Take this export now; there is no way to say no but to hang up.
    ExportName(String),
    Abort,
    List,
    StartTls,
    /// Describe an export; then, with `go`, use it.
    Info {
        go: bool,
        name: String,
        wants: Vec<u16>,
    },
    StructuredReply,
    /// Which metadata contexts match; then, with `set`, use them.
    Contexts {
        set: bool,
        name: String,
        queries: Vec<String>,
    },
    Unknown,
}

/// The header of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub option: u32,
    pub len: u32,
}

impl Header {
    /// An error means that we lost the place in the stream: the connection cannot go on.
    pub fn decode(bytes: &[u8; LEN]) -> Result<Header> {
        let lost = || Error::new(Kind::Corrupt, "read NBD option: wrong magic number");
        let mut f = Fields(bytes);
        f.u64().filter(|&magic| magic == OPTION_MAGIC).ok_or_else(lost)?;
        f.u32().zip(f.u32()).map(|(option, len)| Header { option, len }).ok_or_else(lost)
    }
}

impl Ask {
    /// The error is the phrase for an answer of [`No::Invalid`].
    pub fn decode(option: u32, data: &[u8]) -> Result<Ask, &'static str> {
        match option {
            code::EXPORT_NAME => text(data).map(Ask::ExportName),
            // Data with an abort is ignored: the client is leaving anyway.
            code::ABORT => Ok(Ask::Abort),
            code::LIST => without_data(data, Ask::List),
            code::STARTTLS => without_data(data, Ask::StartTls),
            code::STRUCTURED_REPLY => without_data(data, Ask::StructuredReply),
            code::INFO | code::GO => decode_info(option == code::GO, data),
            code::LIST_META_CONTEXT | code::SET_META_CONTEXT => {
                decode_contexts(option == code::SET_META_CONTEXT, data)
            }
            _ => Ok(Ask::Unknown),
        }
    }
}

const SHORT: &str = "the option's data ends too early";
const LONG: &str = "the option has more data than it should";

fn without_data(data: &[u8], ask: Ask) -> Result<Ask, &'static str> {
    if data.is_empty() { Ok(ask) } else { Err(LONG) }
}

fn decode_info(go: bool, data: &[u8]) -> Result<Ask, &'static str> {
    let mut f = Fields(data);
    let name = string(&mut f)?;
    let count = f.u16().ok_or(SHORT)?;
    let wants = (0..count).map(|_| f.u16()).collect::<Option<Vec<u16>>>().ok_or(SHORT)?;
    if f.is_at_end() { Ok(Ask::Info { go, name, wants }) } else { Err(LONG) }
}

fn decode_contexts(set: bool, data: &[u8]) -> Result<Ask, &'static str> {
    let mut f = Fields(data);
    let name = string(&mut f)?;
    let count = f.u32().ok_or(SHORT)?;
    // A query is at least its length, so a count that lies ends at the first one that is missing.
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(string(&mut f)?);
    }
    if f.is_at_end() { Ok(Ask::Contexts { set, name, queries }) } else { Err(LONG) }
}

fn string(f: &mut Fields<'_>) -> Result<String, &'static str> {
    let len = f.u32().ok_or(SHORT)?;
    text(f.bytes(len as usize).ok_or(SHORT)?)
}

fn text(bytes: &[u8]) -> Result<String, &'static str> {
    if bytes.len() > MAX_STRING {
        return Err("a string is longer than 4096 bytes");
    }
    if bytes.contains(&0) {
        return Err("a string has a NUL in it");
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| "a string is not UTF-8")
}

/// Writes answers to one option.
pub(crate) struct Answers<'a> {
    pub option: u32,
    pub out: &'a mut Vec<u8>,
}

impl Answers<'_> {
    fn put(&mut self, kind: u32, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|p| p.len()).sum();
        self.out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
        for field in [self.option, kind, len as u32] {
            self.out.extend_from_slice(&field.to_be_bytes());
        }
        self.out.extend(parts.iter().copied().flatten());
    }

    pub fn ack(&mut self) {
        self.put(answer::ACK, &[]);
    }

    pub fn no(&mut self, no: No, why: &str) {
        self.put(no as u32, &[clip(why).as_bytes()]);
    }

    pub fn server(&mut self, name: &str, description: &str) {
        let len = (name.len() as u32).to_be_bytes();
        self.put(answer::SERVER, &[&len, name.as_bytes(), clip(description).as_bytes()]);
    }

    pub fn info_export(&mut self, size: u64, flags: u16) {
        self.info(info::EXPORT, &[&size.to_be_bytes(), &flags.to_be_bytes()]);
    }

    pub fn info_block_size(&mut self, minimum: u32, preferred: u32, maximum: u32) {
        let [a, b, c] = [minimum, preferred, maximum].map(u32::to_be_bytes);
        self.info(info::BLOCK_SIZE, &[&a, &b, &c]);
    }

    pub fn info_text(&mut self, kind: u16, text: &str) {
        self.info(kind, &[clip(text).as_bytes()]);
    }

    fn info(&mut self, kind: u16, payload: &[&[u8]]) {
        let kind = kind.to_be_bytes();
        let parts: Vec<&[u8]> = std::iter::once(&kind[..]).chain(payload.iter().copied()).collect();
        self.put(answer::INFO, &parts);
    }

    pub fn context(&mut self, id: u32, name: &str) {
        self.put(answer::META_CONTEXT, &[&id.to_be_bytes(), name.as_bytes()]);
    }
}
