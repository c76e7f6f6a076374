//! Reading a trace, of which nothing is believed.
//!
//! ```text
//!   Reader ── next() ─▶ Part::Place, Part::Requests, …   ─▶ None: the end; `cut` says whether the file ended before
//!   Contents: all of it in memory, up to a number of requests
//! ```
//!
//! A file that ends within a piece is cut: what came before counts. A piece whose checksum is wrong, or whose fields make no
//! sense, is refused with its place in the file.

use crate::header::{Header, PLACES_MAX, Place, Wrong};
use crate::piece::{decode, take};
use crate::request::{Request, TIME_MAX};
use crate::write::{END, HEAD, HEADER, MAGIC, PAYLOAD_MAX, PLACE, REQUESTS, TAIL, checksum};
use std::io::Read;
use units::{Error, Kind, Result};

/// What the end says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub requests: u64,
    /// Of the time of the trace, but not in it: the recorder had no room.
    pub dropped: u64,
    /// In nanoseconds.
    pub length: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Place(Place),
    /// In order of time; those of another part may lie between them.
    Requests(Vec<Request>),
}

/// See the module.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    name: String,
    /// Where the piece begins that is read next, and which it is.
    at: u64,
    number: u64,
    header: Header,
    places: u32,
    requests: u64,
    end: Option<End>,
    is_over: bool,
}

impl<R: Read> Reader<R> {
    /// `name` is what messages call the file.
    ///
    /// # Errors
    /// When it is no trace, or its header is damaged or of another version.
    pub fn new(input: R, name: &str) -> Result<Reader<R>> {
        let mut reader = Reader {
            input,
            name: name.to_string(),
            at: 0,
            number: 0,
            header: Header::default(),
            places: 0,
            requests: 0,
            end: None,
            is_over: false,
        };
        let mut magic = [0; MAGIC.len()];
        if reader.fill(&mut magic)? < magic.len() || magic != *MAGIC {
            return Err(Error::invalid(format!(
                "{name}: it is no trace: one begins with {}",
                MAGIC.escape_ascii()
            )));
        }
        reader.at = magic.len() as u64;
        match reader.piece()? {
            Some((HEADER, payload)) => {
                reader.header =
                    Header::decode(&payload).map_err(|wrong| reader.refused("the header", wrong))?;
            }
            Some(_) => return Err(reader.refused("piece 0", "it is not the header".into())),
            None => return Err(Error::invalid(format!("{name}: the trace was cut within its header"))),
        }
        Ok(reader)
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What the end of the trace says; `None` before it was read, and of one that was cut.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// How many bytes the pieces have that were read.
    pub fn read_bytes(&self) -> u64 {
        self.at
    }

    /// The next part; `None` at the end, whole or cut.
    pub fn part(&mut self) -> Result<Option<Part>> {
        if self.is_over {
            return Ok(None);
        }
        let what = format!("piece {} at byte {}", self.number, self.at);
        let Some((kind, payload)) = self.piece()? else {
            self.is_over = true;
            return Ok(None);
        };
        let parsed = self.parse(kind, &payload).map_err(|wrong| self.refused(&what, wrong))?;
        self.is_over = parsed.is_none();
        Ok(parsed)
    }

    fn parse(&mut self, kind: u8, payload: &[u8]) -> std::result::Result<Option<Part>, Wrong> {
        match kind {
            PLACE => {
                if self.places == PLACES_MAX {
                    return Err(format!("'place': there are more than {PLACES_MAX}"));
                }
                let place =
                    Place::decode(payload).map_err(|wrong| format!("place {}: {wrong}", self.places))?;
                self.places += 1;
                Ok(Some(Part::Place(place)))
            }
            REQUESTS => {
                let requests = decode(payload, self.places)?;
                self.requests += requests.len() as u64;
                Ok(Some(Part::Requests(requests)))
            }
            END => {
                let (requests, rest) = take(payload, "requests")?;
                let (dropped, rest) = take(rest, "dropped")?;
                let (length, rest) = take(rest, "length")?;
                if requests != self.requests {
                    return Err(format!("'requests' are {requests}, and {} were read", self.requests));
                }
                if length > TIME_MAX || !rest.is_empty() {
                    return Err("'length' is longer than a week, or followed by something".into());
                }
                let mut more = [0];
                if self.fill(&mut more).map_err(|e| e.to_string())? > 0 {
                    return Err("something follows the end".into());
                }
                self.end = Some(End { requests, dropped, length });
                Ok(None)
            }
            HEADER => Err("'kind': a second header".into()),
            kind => Err(format!("'kind' {kind:#04x} is none")),
        }
    }

    /// The next piece, whose checksum is right; `None` where the file ends before the piece does.
    fn piece(&mut self) -> Result<Option<(u8, Vec<u8>)>> {
        let what = format!("piece {} at byte {}", self.number, self.at);
        let mut head = [0; HEAD];
        if self.fill(&mut head)? < HEAD {
            return Ok(None);
        }
        let [kind, len @ ..] = head;
        let len = u32::from_le_bytes(len) as usize;
        if len > PAYLOAD_MAX {
            return Err(self.refused(&what, format!("'length' {len} is more than {PAYLOAD_MAX}")));
        }
        let (mut payload, mut sum) = (vec![0; len], [0; TAIL]);
        if self.fill(&mut payload)? < len || self.fill(&mut sum)? < TAIL {
            return Ok(None);
        }
        if checksum(&head, &payload) != u64::from_le_bytes(sum) {
            return Err(self.refused(&what, "'checksum' is wrong: it is damaged".into()));
        }
        self.at += (HEAD + len + TAIL) as u64;
        self.number += 1;
        Ok(Some((kind, payload)))
    }

    /// As many bytes as there are.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.input.read(&mut bytes[done..]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::new(Kind::Io, format!("read {}", self.name)).because(e)),
            }
        }
        Ok(done)
    }

    fn refused(&self, what: &str, wrong: Wrong) -> Error {
        Error::invalid(format!("{}: {what}: {wrong}", self.name))
    }
}

/// A trace in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    pub header: Header,
    pub places: Vec<Place>,
    /// In order of time.
    pub requests: Vec<Request>,
    /// `None`: it was cut.
    pub end: Option<End>,
}

/// Half a gigabyte of memory.
pub const REQUESTS_MAX: usize = 8 << 20;

impl Contents {
    /// # Errors
    /// As of [`Reader`]; more than [`REQUESTS_MAX`] requests.
    pub fn read(input: impl Read, name: &str) -> Result<Contents> {
        let mut reader = Reader::new(input, name)?;
        let (mut places, mut requests) = (Vec::new(), Vec::new());
        while let Some(part) = reader.part()? {
            match part {
                Part::Place(place) => places.push(place),
                Part::Requests(more) => requests.extend(more),
            }
            if requests.len() > REQUESTS_MAX {
                let why =
                    format!("{name}: it has more than {REQUESTS_MAX} requests: record for a shorter time");
                return Err(Error::invalid(why));
            }
        }
        requests.sort_by_key(|request| (request.at, request.place, request.offset));
        Ok(Contents { header: reader.header.clone(), places, requests, end: reader.end() })
    }
}

#[cfg(test)]
mod tests;
