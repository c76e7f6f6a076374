//! A client that remembers: every request goes into the history when it is sent, every answer when it is received.

use sim::Rng;
use std::collections::BTreeMap;
use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use torture::pattern;
use torture::power::{Deed, EventId, History, Span};

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const FUA: u16 = 1;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const OPTION_EXPORT_NAME: u32 = 1;
/// Fixed newstyle, and no padding after the handshake.
const CLIENT_FLAGS: u32 = 3;

/// One connection, with simple replies.
pub struct Connection {
    stream: TcpStream,
    size: u64,
}

/// How one client works.
pub struct Manner {
    /// The volume, its block size, and whether every answer is a promise there (`sync=always`).
    pub volume: &'static str,
    pub block: u64,
    pub is_always: bool,
    pub depth: usize,
    pub seed: u64,
    pub trims: bool,
}

enum Asked {
    Change(EventId),
    Flush(Span),
}

impl Connection {
    pub fn open(address: &str, export: &str) -> Connection {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let greeting: [u8; 18] = receive(&mut stream).unwrap();
        assert_eq!(greeting[..16], *b"NBDMAGICIHAVEOPT");
        let mut hello = CLIENT_FLAGS.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(OPTION_EXPORT_NAME.to_be_bytes());
        hello.extend((export.len() as u32).to_be_bytes());
        hello.extend(export.as_bytes());
        stream.write_all(&hello).unwrap();
        let described: [u8; 10] = receive(&mut stream).unwrap();
        let size = u64::from_be_bytes(*described.first_chunk().unwrap());
        Connection { stream, size }
    }

    fn send(
        &mut self,
        flags: u16,
        command: u16,
        cookie: u64,
        offset: u64,
        len: u64,
        data: &[u8],
    ) -> Result<()> {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend((len as u32).to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes)
    }

    /// The cookie of the next answer, which must be a success.
    fn answer(&mut self) -> Result<u64> {
        let reply: [u8; 16] = receive(&mut self.stream)?;
        assert_eq!(reply[..4], REPLY_MAGIC.to_be_bytes());
        assert_eq!(reply[4..8], [0; 4], "the server answers with an error");
        Ok(u64::from_be_bytes(*reply.last_chunk().unwrap()))
    }

    pub fn read_all(&mut self) -> Vec<u8> {
        const STEP: u64 = 1 << 20;
        let mut all = Vec::with_capacity(self.size as usize);
        for offset in (0..self.size).step_by(STEP as usize) {
            let len = STEP.min(self.size - offset);
            self.send(0, READ, offset, offset, len, &[]).unwrap();
            assert_eq!(self.answer().unwrap(), offset);
            let start = all.len();
            all.resize(start + len as usize, 0);
            self.stream.read_exact(&mut all[start..]).unwrap();
        }
        all
    }
}

fn receive<const N: usize>(stream: &mut TcpStream) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Keeps requests outstanding until the server is gone.
pub fn work(mut connection: Connection, manner: &Manner, history: &Mutex<History>) {
    let mut rng = Rng::new(manner.seed);
    let mut asked: BTreeMap<u64, Asked> = BTreeMap::new();
    let mut cookie = 0;
    loop {
        // Others may be at the same blocks; so it does not try for ever.
        for _ in 0..manner.depth * 2 {
            if asked.len() >= manner.depth {
                break;
            }
            cookie += 1;
            match ask(&mut connection, manner, history, &mut rng, cookie) {
                Ok(Some(what)) => _ = asked.insert(cookie, what),
                Ok(None) => {}
                Err(_) => return,
            }
        }
        if asked.is_empty() {
            std::thread::yield_now();
            continue;
        }
        let Ok(answered) = connection.answer() else { return };
        let mut history = history.lock().unwrap();
        match asked.remove(&answered).expect("it answers what was asked") {
            Asked::Change(event) => history.end(manner.volume, event),
            Asked::Flush(span) => history.end_flush(manner.volume, span),
        }
    }
}

/// Sends one request; `None` when others are at the same blocks.
fn ask(
    connection: &mut Connection,
    manner: &Manner,
    history: &Mutex<History>,
    rng: &mut Rng,
    cookie: u64,
) -> Result<Option<Asked>> {
    const SECTOR: u64 = 512;
    let offset = rng.below(connection.size / SECTOR) * SECTOR;
    let longest = [1, 8, 32, 256][rng.below(4) as usize];
    let len = (SECTOR * (1 + rng.below(longest))).min(connection.size - offset);
    let fua = rng.below(4) == 0;
    let flags = if fua { FUA } else { 0 };
    let begin = |deed| history.lock().unwrap().begin(manner.volume, deed, fua || manner.is_always);
    let (command, offset, len, deed) = match rng.below(20) {
        0..=1 => {
            let span = history.lock().unwrap().begin_flush();
            connection.send(0, FLUSH, cookie, 0, 0, &[])?;
            return Ok(Some(Asked::Flush(span)));
        }
        2 if manner.trims => {
            // Whole blocks are given back, and nothing else is touched.
            let (offset, len) = (offset / manner.block * manner.block, manner.block);
            (TRIM, offset, len, Deed::Zero { offset, len })
        }
        2..=3 => (WRITE_ZEROES, offset, len, Deed::Zero { offset, len }),
        _ => (WRITE, offset, len, Deed::Write { offset, len, seed: rng.next_u64() }),
    };
    let data = match deed {
        Deed::Write { seed, len, .. } => pattern(seed, len),
        _ => Vec::new(),
    };
    let Some(event) = begin(deed) else { return Ok(None) };
    connection.send(flags, command, cookie, offset, len, &data)?;
    Ok(Some(Asked::Change(event)))
}
