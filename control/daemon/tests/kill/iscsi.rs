//! One session over iSCSI, with several commands under way.
//!
//! ```text
//!   command, its first bytes ──▶ R2T: the others are sent ──▶ response
//!                            ──▶ data in, the last with the status
//! ```
//!
//! A unit attention means that a command was not done: it is sent again. A connection that ends is the kill.

use crate::client::{Ask, Connection};
use std::collections::BTreeMap;
use std::io::{Read, Result, Write};
use std::net::TcpStream;

pub const TARGET: &str = "iqn.2001-04.com.example:kill";

const BLOCK: u64 = 512;
/// What every target takes in one PDU.
const SEGMENT: usize = 8 << 10;

struct Command {
    cdb: [u8; 16],
    out: Vec<u8>,
    room: usize,
    back: Vec<u8>,
}

/// See the module.
pub struct Iscsi {
    stream: TcpStream,
    lun: u8,
    cmd_sn: u32,
    size: u64,
    /// What was sent and has not ended, by tag.
    open: BTreeMap<u32, Command>,
}

struct Pdu {
    header: [u8; 48],
    data: Vec<u8>,
}

impl Pdu {
    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(*self.header[at..].first_chunk().unwrap())
    }
}

/// How one ended: tag, status, sense key, and what it brought.
struct End {
    tag: u32,
    status: u8,
    key: Option<u8>,
    command: Command,
}

impl Iscsi {
    /// `isid` tells sessions of the same initiator apart.
    pub fn open(address: &str, lun: u8, isid: u16) -> Iscsi {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut own = Iscsi { stream, lun, cmd_sn: 1, size: 0, open: BTreeMap::new() };
        let mut header = [0; 48];
        (header[0], header[1], header[8]) = (0x43, 0x87, 0x80);
        header[12..14].copy_from_slice(&isid.to_be_bytes());
        header[24..28].copy_from_slice(&own.cmd_sn.to_be_bytes());
        let text = format!(
            "InitiatorName=iqn.2001-04.com.example:client\0TargetName={TARGET}\0SessionType=Normal\0"
        );
        own.send_pdu(header, text.as_bytes()).unwrap();
        let answer = own.receive().unwrap();
        assert_eq!((answer.header[0] & 0x3f, answer.header[36]), (0x23, 0), "the login is granted");
        let mut capacity = [0; 16];
        (capacity[0], capacity[1], capacity[13]) = (0x9e, 0x10, 32);
        let back = own.once(capacity, 32);
        let last = u64::from_be_bytes(*back.first_chunk().unwrap());
        assert_eq!(back[8..12], (BLOCK as u32).to_be_bytes(), "the blocks of a client are sectors");
        own.size = (last + 1) * BLOCK;
        own
    }

    fn send_pdu(&mut self, mut header: [u8; 48], data: &[u8]) -> Result<()> {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = header.to_vec();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.stream.write_all(&bytes)
    }

    fn receive(&mut self) -> Result<Pdu> {
        let mut header = [0; 48];
        self.stream.read_exact(&mut header)?;
        let len = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; len.next_multiple_of(4)];
        self.stream.read_exact(&mut data)?;
        data.truncate(len);
        Ok(Pdu { header, data })
    }

    fn command(&mut self, tag: u32, command: Command) -> Result<()> {
        let Command { cdb, out, room, .. } = &command;
        let mut header = [0; 48];
        header[0] = 0x01;
        header[1] = 0x81 | if *room > 0 { 0x40 } else { 0 } | if out.is_empty() { 0 } else { 0x20 };
        header[9] = self.lun;
        header[16..20].copy_from_slice(&tag.to_be_bytes());
        header[20..24].copy_from_slice(&((*room).max(out.len()) as u32).to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[32..48].copy_from_slice(cdb);
        self.cmd_sn += 1;
        let first = out[..out.len().min(SEGMENT)].to_vec();
        self.open.insert(tag, command);
        self.send_pdu(header, &first)
    }

    /// What the target asks for of a command's data.
    fn send_data(&mut self, ask: &Pdu) -> Result<()> {
        let (tag, transfer) = (ask.u32(16), ask.u32(20));
        let (start, len) = (ask.u32(40) as usize, ask.u32(44) as usize);
        let data = self.open[&tag].out[start..start + len].to_vec();
        let count = data.chunks(SEGMENT).count();
        for (number, part) in data.chunks(SEGMENT).enumerate() {
            let mut header = [0; 48];
            (header[0], header[1]) = (0x05, if number + 1 == count { 0x80 } else { 0 });
            header[9] = self.lun;
            header[16..20].copy_from_slice(&tag.to_be_bytes());
            header[20..24].copy_from_slice(&transfer.to_be_bytes());
            header[36..40].copy_from_slice(&(number as u32).to_be_bytes());
            header[40..44].copy_from_slice(&((start + number * SEGMENT) as u32).to_be_bytes());
            self.send_pdu(header, part)?;
        }
        Ok(())
    }

    /// The next that ends, whatever it was.
    fn end(&mut self) -> Result<End> {
        loop {
            let pdu = self.receive()?;
            let tag = pdu.u32(16);
            match pdu.header[0] & 0x3f {
                0x31 => self.send_data(&pdu)?,
                0x25 => {
                    let mut command = self.open.remove(&tag).expect("it is under way");
                    command.back.extend(&pdu.data);
                    if pdu.header[1] & 1 != 0 {
                        return Ok(End { tag, status: pdu.header[3], key: None, command });
                    }
                    self.open.insert(tag, command);
                }
                0x21 => {
                    let command = self.open.remove(&tag).expect("it is under way");
                    let key = pdu.data.get(4).map(|key| key & 0xf);
                    return Ok(End { tag, status: pdu.header[3], key, command });
                }
                0x20 => {
                    let mut header = [0; 48];
                    (header[0], header[1]) = (0x40, 0x80);
                    header[16..20].fill(0xff);
                    header[20..24].copy_from_slice(&pdu.header[20..24]);
                    header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
                    self.send_pdu(header, &[])?;
                }
                // The target ends the session: so it is told.
                0x32 => return Err(std::io::ErrorKind::ConnectionAborted.into()),
                other => panic!("unexpected: {other:x}"),
            }
        }
    }

    /// The next that ends well; what met an attention is sent again.
    fn good(&mut self) -> Result<(u32, Vec<u8>)> {
        const ATTENTION: u8 = 6;
        loop {
            let End { tag, status, key, command } = self.end()?;
            match (status, key) {
                (0, _) => return Ok((tag, command.back)),
                (2, Some(ATTENTION)) => self.command(tag, command)?,
                other => panic!("command {:x?} ended with {other:x?}", command.cdb),
            }
        }
    }

    /// A command that reads, alone.
    fn once(&mut self, cdb: [u8; 16], room: usize) -> Vec<u8> {
        self.command(u32::MAX - 1, Command { cdb, out: Vec::new(), room, back: Vec::new() }).unwrap();
        self.good().unwrap().1
    }
}

/// READ, WRITE or WRITE SAME of 16 bytes.
fn cdb(opcode: u8, flags: u8, offset: u64, len: u64) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (opcode, flags);
    cdb[2..10].copy_from_slice(&(offset / BLOCK).to_be_bytes());
    cdb[10..14].copy_from_slice(&((len / BLOCK) as u32).to_be_bytes());
    cdb
}

impl Connection for Iscsi {
    fn size(&self) -> u64 {
        self.size
    }

    fn promises_all(&self) -> bool {
        false
    }

    fn send(&mut self, cookie: u32, ask: &Ask) -> Result<()> {
        const FUA: u8 = 8;
        let (cdb, out) = match *ask {
            Ask::Write { offset, ref data, fua } => {
                (cdb(0x8a, if fua { FUA } else { 0 }, offset, data.len() as u64), data.clone())
            }
            Ask::Flush => (cdb(0x91, 0, 0, 0), Vec::new()),
            Ask::Zero { offset, len, .. } => (cdb(0x93, 0, offset, len), vec![0; BLOCK as usize]),
            Ask::Trim { offset, len, .. } => {
                let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
                list.extend((offset / BLOCK).to_be_bytes());
                list.extend(((len / BLOCK) as u32).to_be_bytes());
                list.extend([0; 4]);
                let mut unmap = [0; 16];
                (unmap[0], unmap[8]) = (0x42, list.len() as u8);
                (unmap, list)
            }
        };
        self.command(cookie, Command { cdb, out, room: 0, back: Vec::new() })
    }

    fn answer(&mut self) -> Result<u32> {
        self.good().map(|(tag, _)| tag)
    }

    fn read_all(&mut self) -> Vec<u8> {
        const STEP: u64 = 128 << 10;
        let mut all = Vec::with_capacity(self.size as usize);
        for offset in (0..self.size).step_by(STEP as usize) {
            let len = STEP.min(self.size - offset);
            let back = self.once(cdb(0x88, 0, offset, len), len as usize);
            assert_eq!(back.len() as u64, len, "a good read brings what it says");
            all.extend(back);
        }
        all
    }
}
