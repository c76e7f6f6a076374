//! An NBD client that has many requests under way on one connection: simple replies, no metadata.
//!
//! ```text
//!   lanes ── request ─▶ outgoing ─▶ sender: all that waits in one send
//!         ◀─ answer ── slot of the cookie ◀── receiver: takes all that has arrived apart
//! ```
//!
//! What a server says is checked: an answer to no request, an unknown error or a handshake that makes no sense ends the
//! connection, and every request that waits then fails with the reason.

use crate::incoming::{Incoming, u32_at, u64_at, wrong};
use crate::target::Target;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result};
use world::sync::Notify;
use world::sync::oneshot::{self, Sender};
use world::{Address, Buf, Pending, Stream};

const INIT: &[u8; 16] = b"NBDMAGICIHAVEOPT";
const OPTION: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
/// Fixed newstyle, and no padding after the export.
const CLIENT_FLAGS: u32 = 0b11;
const GO: u32 = 7;
const ACK: u32 = 1;
const INFO: u32 = 3;
const CAN_FLUSH: u16 = 1 << 2;
const CAN_FUA: u16 = 1 << 3;
const IS_READ_ONLY: u16 = 1 << 1;
const FUA: u16 = 1;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// The longest answer of a server while the export is chosen.
const OPTION_MAX: usize = 64 << 10;
const HEADER: usize = 16;

#[derive(Debug)]
struct Wire {
    name: String,
    stream: Arc<dyn Stream>,
    state: Mutex<State>,
    filled: Notify,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    outgoing: Vec<Buf>,
    ended: Option<String>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({} slots)", self.slots.len())
    }
}

struct Slot {
    /// Bytes that follow the answer.
    len: usize,
    reply: Sender<std::result::Result<Buf, String>>,
}

/// An export of a server. The connection ends when this is dropped.
#[derive(Debug)]
struct Export {
    wire: Arc<Wire>,
    size: u64,
    flags: u16,
    is_durable: bool,
}

impl Drop for Export {
    fn drop(&mut self) {
        self.wire.is_closed.store(true, Ordering::Relaxed);
        self.wire.stream.shutdown();
        self.wire.filled.notify_all();
    }
}

/// Connects and chooses an export. With `is_durable` each write is on stable storage when it is answered.
pub async fn connect(server: &Address, export: &str, is_durable: bool) -> Result<Arc<dyn Target>> {
    let name = format!("nbd {server} '{export}'");
    let failed = |e: io::Error| Error::new(Kind::Io, format!("connect to {name}")).because(e);
    let stream: Arc<dyn Stream> = Arc::from(linux::connect(server).map_err(failed)?);
    let mut incoming = Incoming::new(stream.clone());
    let (size, flags) = choose(&*stream, &mut incoming, export).await.map_err(failed)?;
    if is_durable && flags & (CAN_FUA | CAN_FLUSH) == 0 {
        return Err(Error::unsupported(format!(
            "{name} has neither FUA nor FLUSH: no write is known to be durable"
        )));
    }
    let wire = Arc::new(Wire {
        name,
        stream,
        state: Mutex::default(),
        filled: Notify::new(),
        is_closed: AtomicBool::new(false),
    });
    drop(world::spawn(send(wire.clone())));
    drop(world::spawn(receive(wire.clone(), incoming)));
    Ok(Arc::new(Export { wire, size, flags, is_durable }))
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(
        self: &Arc<Self>,
        command: (u16, u16),
        offset: u64,
        len: u32,
        data: Option<Buf>,
    ) -> Pending<Result<Buf>> {
        let (reply, answer) = oneshot::channel();
        let expected = if command.0 == READ { len as usize } else { 0 };
        let wire = self.clone();
        {
            let mut state = self.lock();
            if let Some(why) = &state.ended {
                return Box::pin(std::future::ready(Err(self.failed(why.clone()))));
            }
            let slot = Slot { len: expected, reply };
            let index = state.free.pop().unwrap_or(state.slots.len());
            if index == state.slots.len() {
                state.slots.push(Some(slot));
            } else {
                state.slots[index] = Some(slot);
            }
            let header = header(command, index as u64, offset, len);
            state.outgoing.push(Buf::copy_from(&header));
            state.outgoing.extend(data);
        }
        self.filled.notify_one();
        Box::pin(async move {
            match answer.await {
                Ok(Ok(data)) => Ok(data),
                Ok(Err(why)) => Err(wire.failed(why)),
                Err(_) => Err(wire.failed("the connection has ended".into())),
            }
        })
    }

    fn failed(&self, why: String) -> Error {
        Error::new(Kind::Io, self.name.clone()).because(io::Error::other(why))
    }

    /// Every request that waits fails, and every later one.
    fn end(&self, why: &str) {
        let waiting: Vec<Slot> = {
            let mut state = self.lock();
            state.ended.get_or_insert_with(|| why.into());
            state.slots.iter_mut().filter_map(Option::take).collect()
        };
        for slot in waiting {
            let _ = slot.reply.send(Err(why.into()));
        }
    }
}

fn header(command: (u16, u16), cookie: u64, offset: u64, len: u32) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[..4].copy_from_slice(&REQUEST.to_be_bytes());
    bytes[4..6].copy_from_slice(&command.1.to_be_bytes());
    bytes[6..8].copy_from_slice(&command.0.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&len.to_be_bytes());
    bytes
}

async fn send(wire: Arc<Wire>) {
    loop {
        let parts = wire.filled.until(|| next_parts(&wire)).await;
        let Some(parts) = parts else { return };
        if let Err(e) = wire.stream.send(parts).await {
            return wire.end(&format!("send: {e}"));
        }
    }
}

/// What waits to be sent; an inner `None` at the end.
fn next_parts(wire: &Wire) -> Option<Option<Vec<Buf>>> {
    let mut state = wire.lock();
    if wire.is_closed.load(Ordering::Relaxed) || state.ended.is_some() {
        return Some(None);
    }
    let parts = std::mem::take(&mut state.outgoing);
    (!parts.is_empty()).then_some(Some(parts))
}

async fn receive(wire: Arc<Wire>, mut incoming: Incoming) {
    let ended = loop {
        match reply(&wire, &mut incoming).await {
            Ok(()) => {}
            Err(e) => break e,
        }
    };
    wire.end(&ended.to_string());
    wire.filled.notify_all();
}

async fn reply(wire: &Wire, incoming: &mut Incoming) -> io::Result<()> {
    let mut head = [0; HEADER];
    incoming.fill(&mut head).await?;
    if u32_at(&head, 0) != REPLY {
        return Err(wrong("the answer makes no sense"));
    }
    let (error, cookie) = (u32_at(&head, 4), u64_at(&head, 8));
    let slot = {
        let mut state = wire.lock();
        let index = usize::try_from(cookie).unwrap_or(usize::MAX);
        let slot = state.slots.get_mut(index).and_then(Option::take);
        if slot.is_some() {
            state.free.push(index);
        }
        slot
    };
    let slot = slot.ok_or_else(|| wrong("an answer to no request"))?;
    let answer = match error {
        0 => match incoming.take(slot.len).await {
            Ok(data) => Ok(data),
            Err(e) => {
                let _ = slot.reply.send(Err(e.to_string()));
                return Err(e);
            }
        },
        errno => Err(format!("the server said {}", io::Error::from_raw_os_error(errno as i32))),
    };
    // The lane that asked may be gone.
    let _ = slot.reply.send(answer);
    Ok(())
}

impl Target for Export {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        let asked = self.wire.ask((READ, 0), offset, len, None);
        Box::pin(async move { asked.await.map(|data| vec![data]) })
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        if self.flags & IS_READ_ONLY != 0 {
            return Box::pin(std::future::ready(Err(self.wire.failed("the export is read-only".into()))));
        }
        let fua = self.is_durable && self.flags & CAN_FUA != 0;
        let flushes = self.is_durable && !fua;
        let command = (WRITE, if fua { FUA } else { 0 });
        let asked = self.wire.ask(command, offset, data.len() as u32, Some(data));
        let wire = self.wire.clone();
        Box::pin(async move {
            asked.await?;
            if flushes {
                wire.ask((FLUSH, 0), 0, 0, None).await?;
            }
            Ok(())
        })
    }

    fn flush(&self) -> Pending<Result<()>> {
        if self.flags & CAN_FLUSH == 0 {
            // A server without the command has no cache that is lost.
            return Box::pin(std::future::ready(Ok(())));
        }
        let asked = self.wire.ask((FLUSH, 0), 0, 0, None);
        Box::pin(async move { asked.await.map(drop) })
    }
}

/// Chooses an export; its size and flags.
async fn choose(stream: &dyn Stream, incoming: &mut Incoming, export: &str) -> io::Result<(u64, u16)> {
    let mut hello = [0; 18];
    incoming.fill(&mut hello).await?;
    if hello[..16] != INIT[..] {
        return Err(wrong("this is no NBD server of the newer style"));
    }
    let mut answer = CLIENT_FLAGS.to_be_bytes().to_vec();
    answer.extend(OPTION.to_be_bytes());
    answer.extend(GO.to_be_bytes());
    answer.extend((export.len() as u32 + 6).to_be_bytes());
    answer.extend((export.len() as u32).to_be_bytes());
    answer.extend(export.as_bytes());
    answer.extend(0u16.to_be_bytes());
    stream.send(vec![Buf::copy_from(&answer)]).await?;
    let mut found = None;
    loop {
        let mut head = [0; 20];
        incoming.fill(&mut head).await?;
        let (kind, len) = (u32_at(&head, 12), u32_at(&head, 16) as usize);
        if u64_at(&head, 0) != OPTION_REPLY || len > OPTION_MAX {
            return Err(wrong("the answer to the choice of an export makes no sense"));
        }
        let data = incoming.take(len).await?;
        match kind {
            ACK => return found.ok_or_else(|| wrong("the server did not say how large the export is")),
            INFO if len >= 12 && data[..2] == [0, 0] => {
                found = Some((u64_at(&data, 2), u16::from_be_bytes([data[10], data[11]])));
            }
            INFO => {}
            other => {
                let said = String::from_utf8_lossy(&data[..data.len().min(200)]).into_owned();
                return Err(wrong(&format!(
                    "the server refused the export ({other:#x}) {}",
                    crate::words::shown(&said)
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests;
