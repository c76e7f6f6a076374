//! An iSCSI initiator that has many commands under way: a session of one connection, without digests and CHAP.
//!
//! ```text
//!   read     command ─▶   ◀─ data … data, the last with the status
//!   write    command and its first data ─▶   [◀─ ready for more   data … ─▶]   ◀─ status
//!   commands beyond the window that the target has opened wait here
//! ```
//!
//! What a target says is checked: data outside of what was asked for, an answer to no command or a rejected PDU ends the
//! session, and every command that waits then fails with the reason.

mod login;

use crate::incoming::{Incoming, u32_at, u64_at, wrong};
use crate::target::Target;
use login::Agreed;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Error, Kind, Result};
use world::sync::Notify;
use world::sync::oneshot::{self, Sender};
use world::{Address, Buf, IoBuf, Pending, Stream};

const HEADER: usize = 48;
/// How many commands of a new session may be answered with what happened before it.
const ATTENTIONS: u32 = 8;

const COMMAND: u8 = 0x01;
const NOP_OUT: u8 = 0x00;
const DATA_OUT: u8 = 0x05;
const NOP_IN: u8 = 0x20;
const RESPONSE: u8 = 0x21;
const DATA_IN: u8 = 0x25;
const READY: u8 = 0x31;
const ASYNC: u8 = 0x32;

const FINAL: u8 = 0x80;
const READS: u8 = 0x40;
const WRITES: u8 = 0x20;
const SIMPLE: u8 = 0x01;
/// In a PDU of data: the status of the command is in it.
const WITH_STATUS: u8 = 0x01;
const NO_TAG: u32 = u32::MAX;

const TEST_UNIT_READY: u8 = 0x00;
const READ_16: u8 = 0x88;
const WRITE_16: u8 = 0x8a;
const SYNCHRONIZE_16: u8 = 0x91;
const SERVICE_IN_16: u8 = 0x9e;
const READ_CAPACITY: u8 = 0x10;
const FUA: u8 = 1 << 3;
const CHECK_CONDITION: u8 = 0x02;
/// Logical unit not supported.
const NO_UNIT: &str = " 5/25/00";

#[derive(Debug)]
struct Session {
    name: String,
    stream: Arc<dyn Stream>,
    lun: [u8; 8],
    agreed: Agreed,
    state: Mutex<State>,
    filled: Notify,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    slots: Vec<Option<Command>>,
    free: Vec<usize>,
    /// Beyond the window.
    waiting: VecDeque<usize>,
    outgoing: Vec<Buf>,
    cmd_sn: u32,
    max_cmd_sn: u32,
    exp_stat_sn: u32,
    ended: Option<String>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({} slots)", self.slots.len())
    }
}

struct Command {
    cdb: [u8; 16],
    /// What is written.
    data: Option<Buf>,
    /// Where what is read goes.
    read: Option<IoBuf>,
    reply: Sender<std::result::Result<Done, String>>,
}

/// A command to its end: its status, what was read, and the sense data.
struct Done {
    status: u8,
    read: Buf,
    sense: Buf,
}

/// A logical unit. The session ends when this is dropped.
#[derive(Debug)]
struct Unit {
    session: Arc<Session>,
    size: u64,
    block: u32,
    is_durable: bool,
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.session.is_closed.store(true, Ordering::Relaxed);
        self.session.stream.shutdown();
        self.session.filled.notify_all();
    }
}

/// Logs in to a target and finds out how large a unit is. With `is_durable` each write has FUA.
pub async fn connect(portal: &Address, target: &str, lun: u8, is_durable: bool) -> Result<Arc<dyn Target>> {
    let name = format!("iscsi {portal} {target} LUN {lun}");
    let failed = |e: io::Error| Error::new(Kind::Io, format!("connect to {name}")).because(e);
    let stream: Arc<dyn Stream> = Arc::from(linux::connect(portal).map_err(failed)?);
    let mut incoming = Incoming::new(stream.clone());
    let agreed = login::log_in(&*stream, &mut incoming, target).await.map_err(failed)?;
    let state = State {
        cmd_sn: agreed.cmd_sn,
        max_cmd_sn: agreed.max_cmd_sn,
        exp_stat_sn: agreed.exp_stat_sn,
        ..State::default()
    };
    let session = Arc::new(Session {
        name: name.clone(),
        stream,
        lun: [0, lun, 0, 0, 0, 0, 0, 0],
        agreed,
        state: Mutex::new(state),
        filled: Notify::new(),
        is_closed: AtomicBool::new(false),
    });
    drop(world::spawn(send(session.clone())));
    drop(world::spawn(receive(session.clone(), incoming)));
    // From here on the session ends with the unit.
    let mut unit = Unit { session, size: 0, block: 512, is_durable };
    unit.make_ready().await.map_err(failed)?;
    Ok(Arc::new(unit))
}

impl Unit {
    async fn make_ready(&mut self) -> io::Result<()> {
        let mut last = String::new();
        for _ in 0..ATTENTIONS {
            let done = self.session.ask([TEST_UNIT_READY; 16], 0, None).await.map_err(io::Error::other)?;
            last = match done.status {
                0 => return self.measure().await,
                CHECK_CONDITION => sense(&done.sense),
                status => return Err(wrong(&format!("status {status:#04x} of a new session"))),
            };
            if last.ends_with(NO_UNIT) {
                return Err(wrong("the target has no LUN of this number for this initiator"));
            }
        }
        Err(wrong(&format!("the unit does not become ready{last}")))
    }

    async fn measure(&mut self) -> io::Result<()> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[13]) = (SERVICE_IN_16, READ_CAPACITY, 32);
        let done = self.session.ask(cdb, 32, None).await.map_err(io::Error::other)?;
        if done.status != 0 || done.read.len() < 12 {
            return Err(wrong("the unit does not say how large it is"));
        }
        let (last, block) = (u64_at(&done.read, 0), u32_at(&done.read, 8));
        let size = last.checked_add(1).and_then(|blocks| blocks.checked_mul(u64::from(block)));
        match size.filter(|_| matches!(block, 512 | 4096)) {
            Some(size) => {
                (self.size, self.block) = (size, block);
                Ok(())
            }
            None => Err(wrong(&format!("{last} blocks of {block} bytes make no sense"))),
        }
    }

    fn cdb(&self, operation: u8, offset: u64, len: u64) -> [u8; 16] {
        let mut cdb = [0; 16];
        cdb[0] = operation;
        cdb[2..10].copy_from_slice(&(offset / u64::from(self.block)).to_be_bytes());
        cdb[10..14].copy_from_slice(&((len / u64::from(self.block)) as u32).to_be_bytes());
        cdb
    }

    fn done(&self, cdb: [u8; 16], read: usize, data: Option<Buf>) -> Pending<Result<Buf>> {
        let session = self.session.clone();
        Box::pin(async move {
            let done = session.ask(cdb, read, data).await.map_err(|why| session.failed(&why))?;
            match done.status {
                0 => Ok(done.read),
                status => Err(session.failed(&format!("status {status:#04x}{}", sense(&done.sense)))),
            }
        })
    }
}

/// Sense key and code, where there are any.
fn sense(data: &[u8]) -> String {
    // Two bytes of length, then the sense data in the fixed format or with descriptors.
    match data.get(2).map(|code| code & 0x7f) {
        Some(0x70 | 0x71) if data.len() >= 16 => {
            format!(", sense {:x}/{:02x}/{:02x}", data[4] & 0x0f, data[14], data[15])
        }
        Some(0x72 | 0x73) if data.len() >= 6 => {
            format!(", sense {:x}/{:02x}/{:02x}", data[3] & 0x0f, data[4], data[5])
        }
        _ => String::new(),
    }
}

impl Target for Unit {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        let done = self.done(self.cdb(READ_16, offset, len.into()), len as usize, None);
        Box::pin(async move { done.await.map(|read| vec![read]) })
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        let mut cdb = self.cdb(WRITE_16, offset, data.len() as u64);
        cdb[1] = if self.is_durable { FUA } else { 0 };
        let done = self.done(cdb, 0, Some(data));
        Box::pin(async move { done.await.map(drop) })
    }

    fn flush(&self) -> Pending<Result<()>> {
        let done = self.done(self.cdb(SYNCHRONIZE_16, 0, 0), 0, None);
        Box::pin(async move { done.await.map(drop) })
    }
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, why: &str) -> Error {
        Error::new(Kind::Io, self.name.clone()).because(io::Error::other(why.to_string()))
    }

    async fn ask(&self, cdb: [u8; 16], read: usize, data: Option<Buf>) -> std::result::Result<Done, String> {
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.lock();
            if let Some(why) = &state.ended {
                return Err(why.clone());
            }
            let read = (read > 0).then(|| IoBuf::scratch(read));
            let command = Command { cdb, data, read, reply };
            let index = state.free.pop().unwrap_or(state.slots.len());
            if index == state.slots.len() {
                state.slots.push(Some(command));
            } else {
                state.slots[index] = Some(command);
            }
            state.waiting.push_back(index);
            self.send_waiting(&mut state);
        }
        self.filled.notify_one();
        answer.await.unwrap_or_else(|_| Err("the session has ended".into()))
    }

    /// What the window has room for.
    fn send_waiting(&self, state: &mut State) {
        while (state.max_cmd_sn.wrapping_sub(state.cmd_sn) as i32) >= 0
            && let Some(index) = state.waiting.pop_front()
        {
            let (cmd_sn, exp_stat_sn) = (state.cmd_sn, state.exp_stat_sn);
            let Some(command) = state.slots.get(index).and_then(Option::as_ref) else { continue };
            let reads = command.read.as_ref().map_or(0, |read| read.len());
            let writes = command.data.as_ref().map_or(0, |data| data.len());
            let ways = if reads > 0 { READS } else { 0 } | if writes > 0 { WRITES } else { 0 };
            let mut header = [0; HEADER];
            (header[0], header[1]) = (COMMAND, FINAL | ways | SIMPLE);
            header[8..16].copy_from_slice(&self.lun);
            header[16..20].copy_from_slice(&(index as u32).to_be_bytes());
            header[20..24].copy_from_slice(&((reads + writes) as u32).to_be_bytes());
            header[24..28].copy_from_slice(&cmd_sn.to_be_bytes());
            header[28..32].copy_from_slice(&exp_stat_sn.to_be_bytes());
            header[32..].copy_from_slice(&command.cdb);
            let first = command.data.as_ref().map(|data| data.slice(0..data.len().min(self.agreed.unasked)));
            state.cmd_sn = state.cmd_sn.wrapping_add(1);
            put(&mut state.outgoing, header, first);
        }
    }

    /// Every command that waits fails, and every later one.
    fn end(&self, why: &str) {
        let waiting: Vec<Command> = {
            let mut state = self.lock();
            state.ended.get_or_insert_with(|| why.into());
            state.slots.iter_mut().filter_map(Option::take).collect()
        };
        for command in waiting {
            let _ = command.reply.send(Err(why.into()));
        }
    }
}

/// A PDU, padded to four bytes.
fn put(outgoing: &mut Vec<Buf>, mut header: [u8; HEADER], data: Option<Buf>) {
    let len = data.as_ref().map_or(0, |data| data.len());
    header[5..8].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
    outgoing.push(Buf::copy_from(&header));
    outgoing.extend(data.filter(|data| !data.is_empty()));
    let padding = len.next_multiple_of(4) - len;
    if padding > 0 {
        outgoing.push(Buf::copy_from(&[0; 3][..padding]));
    }
}

async fn send(session: Arc<Session>) {
    loop {
        let parts = session.filled.until(|| next_parts(&session)).await;
        let Some(parts) = parts else { return };
        if let Err(e) = session.stream.send(parts).await {
            return session.end(&format!("send: {e}"));
        }
    }
}

/// What waits to be sent; an inner `None` at the end.
fn next_parts(session: &Session) -> Option<Option<Vec<Buf>>> {
    let mut state = session.lock();
    if session.is_closed.load(Ordering::Relaxed) || state.ended.is_some() {
        return Some(None);
    }
    let parts = std::mem::take(&mut state.outgoing);
    (!parts.is_empty()).then_some(Some(parts))
}

async fn receive(session: Arc<Session>, mut incoming: Incoming) {
    let ended = loop {
        match pdu(&session, &mut incoming).await {
            Ok(()) => session.filled.notify_one(),
            Err(e) => break e,
        }
    };
    session.end(&ended.to_string());
    session.filled.notify_all();
}

async fn pdu(session: &Session, incoming: &mut Incoming) -> io::Result<()> {
    let mut header = [0; HEADER];
    incoming.fill(&mut header).await?;
    let additional = usize::from(header[4]) * 4;
    let len = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
    incoming.take(additional).await?;
    // A whole PDU fits into what was agreed on; sense data is far below.
    if len > login::SEGMENT {
        return Err(wrong("a PDU that is longer than was agreed on"));
    }
    let opcode = header[0] & 0x3f;
    let (tag, word) = (u32_at(&header, 16), |at: usize| u32_at(&header, at));
    {
        let mut state = session.lock();
        let max = word(32);
        if (max.wrapping_sub(state.max_cmd_sn) as i32) > 0 {
            state.max_cmd_sn = max;
        }
        if opcode == RESPONSE || opcode == DATA_IN && header[1] & WITH_STATUS != 0 || opcode == NOP_IN {
            state.exp_stat_sn = word(24).wrapping_add(1);
        }
        session.send_waiting(&mut state);
    }
    match opcode {
        DATA_IN => data_in(session, incoming, &header, len).await,
        RESPONSE => {
            let sense = padded(incoming, len).await?;
            let status = if header[2] == 0 { header[3] } else { 0xff };
            finish(session, tag, status, sense)
        }
        READY => {
            padded(incoming, len).await?;
            send_more(session, &header)
        }
        NOP_IN => {
            padded(incoming, len).await?;
            if word(20) != NO_TAG {
                let mut state = session.lock();
                let mut answer = [0; HEADER];
                (answer[0], answer[1]) = (NOP_OUT | 0x40, FINAL);
                answer[8..16].copy_from_slice(&header[8..16]);
                answer[16..20].copy_from_slice(&NO_TAG.to_be_bytes());
                answer[20..24].copy_from_slice(&header[20..24]);
                answer[24..28].copy_from_slice(&state.cmd_sn.to_be_bytes());
                answer[28..32].copy_from_slice(&state.exp_stat_sn.to_be_bytes());
                put(&mut state.outgoing, answer, None);
            }
            Ok(())
        }
        ASYNC => Err(wrong("the target asks for an end of the session")),
        other => Err(wrong(&format!("the target sent a PDU {other:#04x}"))),
    }
}

async fn padded(incoming: &mut Incoming, len: usize) -> io::Result<Buf> {
    let whole = incoming.take(len.next_multiple_of(4)).await?;
    Ok(whole.slice(0..len))
}

/// Data of a read goes where it was asked for, and nowhere else.
async fn data_in(
    session: &Session,
    incoming: &mut Incoming,
    header: &[u8; HEADER],
    len: usize,
) -> io::Result<()> {
    let (tag, at) = (u32_at(header, 16), u32_at(header, 40) as usize);
    let mut read = {
        let mut state = session.lock();
        let command = state.slots.get_mut(tag as usize).and_then(Option::as_mut);
        command.and_then(|command| command.read.take()).ok_or_else(|| wrong("data of no read"))?
    };
    let place = at.checked_add(len).and_then(|end| read.get_mut(at..end));
    incoming.fill(place.ok_or_else(|| wrong("data past the end of a read"))?).await?;
    incoming.take(len.next_multiple_of(4) - len).await?;
    {
        let mut state = session.lock();
        if let Some(command) = state.slots.get_mut(tag as usize).and_then(Option::as_mut) {
            command.read = Some(read);
        }
    }
    match header[1] & WITH_STATUS {
        0 => Ok(()),
        _ => finish(session, tag, header[3], Buf::empty()),
    }
}

fn finish(session: &Session, tag: u32, status: u8, sense: Buf) -> io::Result<()> {
    let command = {
        let mut state = session.lock();
        let command = state.slots.get_mut(tag as usize).and_then(Option::take);
        if command.is_some() {
            state.free.push(tag as usize);
        }
        command
    };
    let command = command.ok_or_else(|| wrong("an answer to no command"))?;
    let read = command.read.map_or_else(Buf::empty, IoBuf::freeze);
    // The lane that asked may be gone.
    let _ = command.reply.send(Ok(Done { status, read, sense }));
    Ok(())
}

/// What the target is ready for.
fn send_more(session: &Session, ready: &[u8; HEADER]) -> io::Result<()> {
    let (tag, from, len) = (u32_at(ready, 16), u32_at(ready, 40) as usize, u32_at(ready, 44) as usize);
    let mut state = session.lock();
    let data =
        state.slots.get(tag as usize).and_then(Option::as_ref).and_then(|command| command.data.clone());
    let data = data.ok_or_else(|| wrong("ready for data of no write"))?;
    let end = from.checked_add(len).filter(|end| *end <= data.len() && len > 0);
    let end = end.ok_or_else(|| wrong("ready for more than is written"))?;
    let exp_stat_sn = state.exp_stat_sn;
    for (number, at) in (from..end).step_by(session.agreed.segment).enumerate() {
        let upto = (at + session.agreed.segment).min(end);
        let mut header = [0; HEADER];
        (header[0], header[1]) = (DATA_OUT, if upto == end { FINAL } else { 0 });
        header[8..16].copy_from_slice(&session.lun);
        header[16..24].copy_from_slice(&ready[16..24]);
        header[28..32].copy_from_slice(&exp_stat_sn.to_be_bytes());
        header[36..40].copy_from_slice(&(number as u32).to_be_bytes());
        header[40..44].copy_from_slice(&(at as u32).to_be_bytes());
        put(&mut state.outgoing, header, Some(data.slice(at..upto)));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
