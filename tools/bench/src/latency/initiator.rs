//! An iSCSI initiator that has one request under way, or [many reads](many): a session of one connection, without digests.
//!
//! ```text
//!   login ─▶ unit attentions taken ─▶ request ─▶ reply ─▶ request ─▶ …
//!   read     command ──▶  ◀── data … data with status
//!   write    command and its first data ──▶  [◀── ready for more   data … ──▶]  ◀── status
//! ```
//!
//! It sends with a write what the target takes unasked, and may so cost one round trip, as initiators of operating systems
//! do for small requests.

mod many;

use super::doors::{LARGE, noise};
use super::pace::{Asked, Door};
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const HEADER: usize = 48;
const SECTOR: u32 = 512;
/// A target that is silent for so long has lost a request.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many requests of a new session may be answered with what happened before it.
const ATTENTIONS: u32 = 8;
/// What is offered: the most that one PDU and one burst hold.
const OFFER: usize = 1 << 20;

const COMMAND: u8 = 0x01;
const LOGIN: u8 = 0x03;
const DATA_OUT: u8 = 0x05;
const NOP_OUT: u8 = 0x00;
const NOP_IN: u8 = 0x20;
const RESPONSE: u8 = 0x21;
const LOGIN_RESPONSE: u8 = 0x23;
const DATA_IN: u8 = 0x25;
const READY: u8 = 0x31;

const TEST_UNIT_READY: u8 = 0x00;
const READ_16: u8 = 0x88;
const WRITE_16: u8 = 0x8a;

const FINAL: u8 = 0x80;
const READS: u8 = 0x40;
const WRITES: u8 = 0x20;
const SIMPLE: u8 = 0x01;
/// In a PDU of data: the status of the command is in it.
const WITH_STATUS: u8 = 0x01;
const CHECK_CONDITION: u8 = 0x02;
const NO_TAG: u32 = u32::MAX;

/// A session with one logical unit.
pub struct Session {
    replies: BufReader<TcpStream>,
    requests: TcpStream,
    lun: [u8; 8],
    tag: u32,
    cmd_sn: u32,
    exp_stat_sn: u32,
    /// The last command that the target lets in.
    max_cmd_sn: u32,
    /// Bytes of one PDU that the target takes, and how many of a write it takes unasked.
    segment: usize,
    unasked: usize,
    /// What is written: noise.
    noise: Vec<u8>,
    /// Where what is read goes.
    read: Vec<u8>,
}

struct Pdu {
    header: [u8; HEADER],
    data: Vec<u8>,
}

impl Pdu {
    fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.header[at], self.header[at + 1], self.header[at + 2], self.header[at + 3]])
    }
}

fn wrong(what: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("iSCSI: {what}"))
}

impl Session {
    /// Logs in to `target` at a port of this machine; each session of a client has a `number` of its own.
    pub fn open(port: u16, target: &str, lun: u8, number: u8) -> io::Result<Session> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut session = Session {
            replies: BufReader::with_capacity(256 << 10, stream.try_clone()?),
            requests: stream,
            lun: [0, lun, 0, 0, 0, 0, 0, 0],
            tag: 0,
            cmd_sn: 1,
            exp_stat_sn: 0,
            max_cmd_sn: 0,
            segment: 8 << 10,
            unasked: 0,
            noise: noise(),
            read: vec![0; LARGE as usize],
        };
        session.log_in(target, number)?;
        for _ in 0..ATTENTIONS {
            match session.command(&[TEST_UNIT_READY; 1], 0, 0)? {
                0 => return Ok(session),
                CHECK_CONDITION => {}
                status => return Err(wrong(format_args!("status {status:#04x} of a new session"))),
            }
        }
        Err(wrong("the unit does not become ready"))
    }

    fn log_in(&mut self, target: &str, number: u8) -> io::Result<()> {
        let keys = format!(
            "InitiatorName=iqn.2026-11.org.example:latency\0TargetName={target}\0SessionType=Normal\0\
             HeaderDigest=None\0DataDigest=None\0InitialR2T=No\0ImmediateData=Yes\0MaxOutstandingR2T=1\0\
             MaxRecvDataSegmentLength={OFFER}\0FirstBurstLength={OFFER}\0MaxBurstLength={OFFER}\0\
             ErrorRecoveryLevel=0\0"
        );
        let mut text = keys.into_bytes();
        let (mut has_immediate, mut first_burst) = (true, 64 << 10);
        // Two exchanges at most: some targets confirm the keys before they let go of the stage.
        for _ in 0..4 {
            let mut header = [0; HEADER];
            // From operational negotiation to the full feature phase.
            (header[0], header[1]) = (LOGIN | 0x40, FINAL | 0x07);
            (header[8], header[13]) = (0x80, number);
            header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
            header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
            self.send(header, &text)?;
            let answer = self.receive()?;
            if answer.opcode() != LOGIN_RESPONSE || answer.header[36] != 0 {
                return Err(wrong(format_args!(
                    "login refused, status {:02x}{:02x}",
                    answer.header[36], answer.header[37]
                )));
            }
            self.exp_stat_sn = answer.word(24).wrapping_add(1);
            for pair in String::from_utf8_lossy(&answer.data).split('\0') {
                let Some((key, value)) = pair.split_once('=') else { continue };
                let bytes = || value.parse().map_err(|_| wrong(format_args!("{key}={value}")));
                match key {
                    "ImmediateData" => has_immediate = value == "Yes",
                    "FirstBurstLength" => first_burst = bytes()?,
                    "MaxRecvDataSegmentLength" => self.segment = bytes()?,
                    _ => {}
                }
            }
            if answer.header[1] & FINAL != 0 {
                self.unasked = if has_immediate { first_burst.min(self.segment) } else { 0 };
                return Ok(());
            }
            text.clear();
        }
        Err(wrong("the login does not end"))
    }

    fn send(&mut self, mut header: [u8; HEADER], data: &[u8]) -> io::Result<()> {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = Vec::with_capacity(HEADER + data.len() + 3);
        bytes.extend(header);
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.requests.write_all(&bytes)
    }

    fn receive(&mut self) -> io::Result<Pdu> {
        let mut header = [0; HEADER];
        self.replies.read_exact(&mut header)?;
        let additional = usize::from(header[4]) * 4;
        let len = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; additional + len.next_multiple_of(4)];
        self.replies.read_exact(&mut data)?;
        data.drain(..additional);
        data.truncate(len);
        let pdu = Pdu { header, data };
        self.max_cmd_sn = pdu.word(32);
        Ok(pdu)
    }

    /// A command to its end: its status. `reads` and `writes` are bytes; one of them is 0.
    fn command(&mut self, cdb: &[u8], reads: usize, writes: usize) -> io::Result<u8> {
        let mut header = [0; HEADER];
        let ways = if reads > 0 { READS } else { 0 } | if writes > 0 { WRITES } else { 0 };
        (header[0], header[1]) = (COMMAND, FINAL | ways | SIMPLE);
        header[8..16].copy_from_slice(&self.lun);
        self.tag = self.tag.wrapping_add(1) & 0x7fff_ffff;
        header[16..20].copy_from_slice(&self.tag.to_be_bytes());
        header[20..24].copy_from_slice(&((reads + writes) as u32).to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        header[32..32 + cdb.len()].copy_from_slice(cdb);
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        let noise = std::mem::take(&mut self.noise);
        let sent = self.send(header, &noise[..writes.min(self.unasked)]);
        let status = sent.and_then(|()| self.finish(&noise));
        self.noise = noise;
        status
    }

    fn finish(&mut self, noise: &[u8]) -> io::Result<u8> {
        loop {
            let pdu = self.receive()?;
            match pdu.opcode() {
                DATA_IN => {
                    let at = pdu.word(40) as usize;
                    let place = self
                        .read
                        .get_mut(at..at + pdu.data.len())
                        .ok_or_else(|| wrong("data past the end"))?;
                    place.copy_from_slice(&pdu.data);
                    if pdu.header[1] & WITH_STATUS != 0 {
                        self.exp_stat_sn = pdu.word(24).wrapping_add(1);
                        return Ok(pdu.header[3]);
                    }
                }
                RESPONSE => {
                    self.exp_stat_sn = pdu.word(24).wrapping_add(1);
                    return if pdu.header[2] == 0 {
                        Ok(pdu.header[3])
                    } else {
                        Err(wrong("the target failed"))
                    };
                }
                READY => self.send_more(&pdu, noise)?,
                NOP_IN if pdu.word(20) != NO_TAG => self.answer(&pdu.header)?,
                NOP_IN => {}
                other => return Err(wrong(format_args!("the target sent {other:#04x}"))),
            }
        }
    }

    /// The answer to a target that asks whether the initiator is there.
    fn answer(&mut self, ping: &[u8; HEADER]) -> io::Result<()> {
        let mut header = [0; HEADER];
        (header[0], header[1]) = (NOP_OUT | 0x40, FINAL);
        header[8..24].copy_from_slice(&ping[8..24]);
        header[16..20].copy_from_slice(&NO_TAG.to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        self.send(header, &[])
    }

    /// What the target is ready for.
    fn send_more(&mut self, ready: &Pdu, noise: &[u8]) -> io::Result<()> {
        let (from, len) = (ready.word(40) as usize, ready.word(44) as usize);
        let burst =
            noise.get(from..from.saturating_add(len)).ok_or_else(|| wrong("ready for more than there is"))?;
        let segments = burst.chunks(self.segment.max(1));
        let last = segments.len().saturating_sub(1);
        for (number, segment) in segments.enumerate() {
            let mut header = [0; HEADER];
            (header[0], header[1]) = (DATA_OUT, if number == last { FINAL } else { 0 });
            header[8..16].copy_from_slice(&self.lun);
            header[16..24].copy_from_slice(&ready.header[16..24]);
            header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
            header[36..40].copy_from_slice(&(number as u32).to_be_bytes());
            header[40..44].copy_from_slice(&((from + number * self.segment) as u32).to_be_bytes());
            self.send(header, segment)?;
        }
        Ok(())
    }
}

impl Door for Session {
    fn request(&mut self, asked: Asked, offset: u64) -> io::Result<()> {
        let mut cdb = [0; 16];
        cdb[0] = if asked.reads { READ_16 } else { WRITE_16 };
        cdb[2..10].copy_from_slice(&(offset / u64::from(SECTOR)).to_be_bytes());
        cdb[10..14].copy_from_slice(&(asked.block / SECTOR).to_be_bytes());
        let len = asked.block as usize;
        let (reads, writes) = if asked.reads { (len, 0) } else { (0, len) };
        match self.command(&cdb, reads, writes)? {
            0 => Ok(()),
            status => Err(wrong(format_args!("status {status:#04x} at {offset}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::iscsi::memory::{MemoryDirectory, device};
    use ::iscsi::{Config, Server};
    use scsi::memory::MemoryUnit;
    use std::sync::Arc;
    use world::Address;

    const TARGET: &str = "iqn.2026-11.org.example:unit";

    #[test]
    fn what_was_written_is_read() {
        let port = crate::iscsi::free_port().unwrap();
        let (up, is_up) = std::sync::mpsc::channel();
        let (end, ended) = world::sync::oneshot::channel::<()>();
        let server = std::thread::spawn(move || {
            linux::block_on(async move {
                let unit = Arc::new(MemoryUnit::new(8 << 20, 4096));
                let directory = MemoryDirectory::default().with(TARGET, 1, device(unit, 1));
                let server = Server::new(Arc::new(directory), Default::default(), Config::default());
                server.listen(&Address::Tcp(([127, 0, 0, 1], port).into())).unwrap();
                up.send(()).unwrap();
                let _ = ended.await;
                server.stop().await;
            });
        });
        is_up.recv().unwrap();
        let mut writer = Session::open(port, TARGET, 1, 1).unwrap();
        let mut reader = Session::open(port, TARGET, 1, 2).unwrap();
        for block in [4 << 10, 16 << 10, 1 << 20] {
            let offset = 2 * u64::from(block);
            writer.request(Asked { reads: false, block }, offset).unwrap();
            reader.read.fill(0);
            reader.request(Asked { reads: true, block }, offset).unwrap();
            assert!(reader.read[..block as usize] == writer.noise[..block as usize], "{block}");
        }
        for depth in [1, 32] {
            assert!(reader.read_many((8 << 20, 4096), depth, Duration::from_millis(20)).unwrap() > 0);
            reader.request(Asked { reads: true, block: 4096 }, 0).unwrap();
        }
        assert!(reader.read_many((16 << 20, 4096), 32, Duration::from_secs(60)).is_err(), "past the end");
        assert!(writer.request(Asked { reads: false, block: 4096 }, 8 << 20).is_err(), "past the end");
        assert!(Session::open(port, "iqn.2026-11.org.example:none", 1, 3).is_err());
        drop((writer, reader));
        drop(end);
        server.join().unwrap();
    }
}
