//! A client that remembers: every request goes into the history when it is sent, every answer when it is received.
//!
//! How requests are sent is the connection's: `nbd`, `iscsi`.

use sim::Rng;
use std::collections::BTreeMap;
use std::io::Result;
use std::sync::Mutex;
use torture::pattern;
use torture::power::{Deed, EventId, History, Span};

/// What a client asks of a volume. Offsets and lengths are bytes, and multiples of a sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    Write {
        offset: u64,
        data: Vec<u8>,
        /// The answer is to be a promise.
        fua: bool,
    },
    Flush,
    Trim {
        offset: u64,
        len: u64,
        fua: bool,
    },
    Zero {
        offset: u64,
        len: u64,
        fua: bool,
    },
}

/// The way to one volume.
pub trait Connection: Send {
    /// In bytes.
    fn size(&self) -> u64;

    /// Whether each request can ask for a promise, or writes alone.
    fn promises_all(&self) -> bool;

    /// Sends a request under a number of its own.
    fn send(&mut self, cookie: u32, ask: &Ask) -> Result<()>;

    /// The number of the next request that has ended, which must be a success.
    fn answer(&mut self) -> Result<u32>;

    /// All bytes of the volume, while no request is outstanding.
    fn read_all(&mut self) -> Vec<u8>;
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

/// Keeps requests outstanding until the server is gone.
pub fn work(mut connection: Box<dyn Connection>, manner: &Manner, history: &Mutex<History>) {
    let mut rng = Rng::new(manner.seed);
    let mut asked: BTreeMap<u32, Asked> = BTreeMap::new();
    let mut cookie = 0;
    loop {
        // Others may be at the same blocks; so it does not try for ever.
        for _ in 0..manner.depth * 2 {
            if asked.len() >= manner.depth {
                break;
            }
            cookie += 1;
            match begin(connection.as_mut(), manner, history, &mut rng, cookie) {
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
fn begin(
    connection: &mut dyn Connection,
    manner: &Manner,
    history: &Mutex<History>,
    rng: &mut Rng,
    cookie: u32,
) -> Result<Option<Asked>> {
    const SECTOR: u64 = 512;
    let size = connection.size();
    let offset = rng.below(size / SECTOR) * SECTOR;
    let longest = [1, 8, 32, 256][rng.below(4) as usize];
    let len = (SECTOR * (1 + rng.below(longest))).min(size - offset);
    let wishes = rng.below(4) == 0;
    let fua = wishes && connection.promises_all();
    let (ask, deed, fua) = match rng.below(20) {
        0..=1 => {
            let span = history.lock().unwrap().begin_flush();
            connection.send(cookie, &Ask::Flush)?;
            return Ok(Some(Asked::Flush(span)));
        }
        2 if manner.trims => {
            // Whole blocks are given back, and nothing else is touched.
            let (offset, len) = (offset / manner.block * manner.block, manner.block);
            (Ask::Trim { offset, len, fua }, Deed::Zero { offset, len }, fua)
        }
        2..=3 => (Ask::Zero { offset, len, fua }, Deed::Zero { offset, len }, fua),
        _ => {
            let seed = rng.next_u64();
            let data = pattern(seed, len);
            (Ask::Write { offset, data, fua: wishes }, Deed::Write { offset, len, seed }, wishes)
        }
    };
    let event = history.lock().unwrap().begin(manner.volume, deed, fua || manner.is_always);
    let Some(event) = event else { return Ok(None) };
    connection.send(cookie, &ask)?;
    Ok(Some(Asked::Change(event)))
}
