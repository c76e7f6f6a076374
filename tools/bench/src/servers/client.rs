//! A client that does nothing but ask: simple replies, requests at random places, as many under way as wished.
//!
//! It takes all replies that have arrived before it asks again, and sends what it asks for in one piece; it costs the
//! same against every server. Data that was read is passed over where it was received, unless it is long.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const INIT: &[u8; 16] = b"NBDMAGICIHAVEOPT";
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
/// Fixed newstyle, and no padding after the export.
const CLIENT_FLAGS: u32 = 0b11;
const GO: u32 = 7;
const ACK: u32 = 1;
const INFO: u32 = 3;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// As much as one receive may bring, and from this length on a request is sent by itself.
const ROOM: usize = 256 << 10;
/// A server that is silent for so long while we wait for it has lost a request.
const PATIENCE: Duration = Duration::from_secs(120);
/// The longest request.
const LONGEST: usize = 1 << 20;

pub struct Client {
    replies: BufReader<UnixStream>,
    requests: UnixStream,
    size: u64,
    seed: u64,
    /// What is written: noise.
    noise: Vec<u8>,
    /// Where the data of a long read goes.
    read: Vec<u8>,
}

impl Client {
    /// Chooses the default export of the server at the other end.
    pub fn new(mut stream: UnixStream) -> io::Result<Client> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let size = negotiate(&mut stream)?;
        let mut client = Client {
            replies: BufReader::with_capacity(ROOM, stream.try_clone()?),
            requests: stream,
            size,
            seed: 0x9e37_79b9_7f4a_7c15,
            noise: vec![0; LONGEST],
            read: vec![0; LONGEST],
        };
        for at in (0..LONGEST).step_by(8) {
            let noise = client.random().to_ne_bytes();
            client.noise[at..at + 8].copy_from_slice(&noise);
        }
        Ok(client)
    }

    /// Xorshift: it need not be good, but must cost nothing.
    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    /// Writes the whole export once, and flushes.
    pub fn fill(&mut self) -> io::Result<()> {
        for offset in (0..self.size).step_by(LONGEST) {
            let len = (self.size - offset).min(LONGEST as u64) as u32;
            self.one(WRITE, offset, len)?;
        }
        self.flush()
    }

    /// One request to its end.
    pub fn request(&mut self, reads: bool, offset: u64, len: u32) -> io::Result<()> {
        let mut outgoing = Vec::new();
        self.ask(if reads { READ } else { WRITE }, offset, len, &mut outgoing)?;
        self.requests.write_all(&outgoing)?;
        self.take(reads, len)
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.one(FLUSH, 0, 0)
    }

    /// A single request that reads nothing.
    fn one(&mut self, command: u16, offset: u64, len: u32) -> io::Result<()> {
        let mut outgoing = Vec::new();
        self.ask(command, offset, len, &mut outgoing)?;
        self.requests.write_all(&outgoing)?;
        self.take(false, 0)
    }

    /// Reads or writes `block` bytes at random places, `depth` requests at once; returns how many were done in `limit`.
    pub fn run(&mut self, reads: bool, block: u32, depth: usize, limit: Duration) -> io::Result<u64> {
        let places = self.size / u64::from(block);
        let end = Instant::now() + limit;
        let (mut under_way, mut done) = (0, 0);
        let mut outgoing = Vec::new();
        loop {
            while under_way < depth && Instant::now() < end {
                let offset = self.random() % places * u64::from(block);
                self.ask(if reads { READ } else { WRITE }, offset, block, &mut outgoing)?;
                under_way += 1;
            }
            self.requests.write_all(&outgoing)?;
            outgoing.clear();
            if under_way == 0 {
                return Ok(done);
            }
            let whole = 16 + if reads { block as usize } else { 0 };
            loop {
                self.take(reads, block)?;
                under_way -= 1;
                done += 1;
                if under_way == 0 || self.replies.buffer().len() < whole {
                    break;
                }
            }
        }
    }

    /// Puts a request into `outgoing`, or, if it is long, sends it with all that waits there.
    fn ask(&mut self, command: u16, offset: u64, len: u32, outgoing: &mut Vec<u8>) -> io::Result<()> {
        outgoing.extend_from_slice(&REQUEST.to_be_bytes());
        outgoing.extend_from_slice(&[0; 2]);
        outgoing.extend_from_slice(&command.to_be_bytes());
        outgoing.extend_from_slice(&offset.to_be_bytes());
        outgoing.extend_from_slice(&offset.to_be_bytes());
        outgoing.extend_from_slice(&len.to_be_bytes());
        let payload = if command == WRITE { &self.noise[..len as usize] } else { &[] };
        if payload.len() < ROOM {
            outgoing.extend_from_slice(payload);
        } else {
            self.requests.write_all(outgoing)?;
            outgoing.clear();
            self.requests.write_all(payload)?;
        }
        Ok(())
    }

    /// Takes one reply, with its data if it was a read.
    fn take(&mut self, reads: bool, len: u32) -> io::Result<()> {
        let mut head = [0; 16];
        self.replies.read_exact(&mut head)?;
        let (magic, error) = (u32_at(&head, 0), u32_at(&head, 4));
        if magic != REPLY || error != 0 {
            return Err(io::Error::other(format!("the server replied {magic:x}, error {error}")));
        }
        let len = if reads { len as usize } else { 0 };
        if len >= ROOM {
            return self.replies.read_exact(&mut self.read[..len]);
        }
        let mut left = len;
        while left > 0 {
            let arrived = self.replies.fill_buf()?.len().min(left);
            if arrived == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.replies.consume(arrived);
            left -= arrived;
        }
        Ok(())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |n, &b| n << 8 | u32::from(b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// Chooses the default export; returns its size.
fn negotiate(stream: &mut UnixStream) -> io::Result<u64> {
    let mut hello = [0; 18];
    stream.read_exact(&mut hello)?;
    if hello[..16] != INIT[..] {
        return Err(io::Error::other("this is no NBD server of the newer style"));
    }
    let mut answer = CLIENT_FLAGS.to_be_bytes().to_vec();
    answer.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    answer.extend_from_slice(&GO.to_be_bytes());
    // The length of the option, an empty name, no information asked for by name.
    answer.extend_from_slice(&6u32.to_be_bytes());
    answer.extend_from_slice(&[0; 6]);
    stream.write_all(&answer)?;
    let mut size = None;
    loop {
        let mut head = [0; 20];
        stream.read_exact(&mut head)?;
        let (kind, len) = (u32_at(&head, 12), u32_at(&head, 16) as usize);
        if u64_at(&head, 0) != OPTION_REPLY || len > 64 << 10 {
            return Err(io::Error::other("the server's answer to our choice makes no sense"));
        }
        let mut data = vec![0; len];
        stream.read_exact(&mut data)?;
        match kind {
            ACK => return size.ok_or_else(|| io::Error::other("the server did not say how large it is")),
            INFO if len >= 10 && data[..2] == [0, 0] => size = Some(u64_at(&data, 2)),
            INFO => {}
            other => {
                return Err(io::Error::other(format!("the server refused its default export: {other:x}")));
            }
        }
    }
}
