//! A small initiator on a real socket: one command at a time, and an error when its path is gone.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub const BLOCK: usize = 512;

pub struct Session {
    stream: TcpStream,
    cmd_sn: u32,
    tag: u32,
}

struct Pdu {
    header: [u8; 48],
    data: Vec<u8>,
}

impl Session {
    /// Logs in; a target that does not answer for `patience` is gone.
    pub fn log_in(
        port: u16,
        target: &str,
        initiator: &str,
        isid: u16,
        patience: Duration,
    ) -> io::Result<Session> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        let mut session = Session { stream, cmd_sn: 1, tag: 0 };
        let text = format!("InitiatorName={initiator}\0TargetName={target}\0SessionType=Normal\0");
        let mut header = [0; 48];
        (header[0], header[1], header[8]) = (0x43, 0x87, 0x80);
        header[12..14].copy_from_slice(&isid.to_be_bytes());
        header[24..28].copy_from_slice(&session.cmd_sn.to_be_bytes());
        session.send(header, text.as_bytes())?;
        let answer = session.receive()?;
        match (answer.header[0] & 0x3f, answer.header[36]) {
            (0x23, 0) => Ok(session),
            _ => Err(io::Error::other("the login was refused")),
        }
    }

    fn send(&mut self, mut header: [u8; 48], data: &[u8]) -> io::Result<()> {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = header.to_vec();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.stream.write_all(&bytes)
    }

    fn receive(&mut self) -> io::Result<Pdu> {
        let mut header = [0; 48];
        self.stream.read_exact(&mut header)?;
        let len = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; len.next_multiple_of(4)];
        self.stream.read_exact(&mut data)?;
        data.truncate(len);
        Ok(Pdu { header, data })
    }

    /// Carries out a command to unit 0; attentions are heard and the command repeated.
    fn command(&mut self, cdb: [u8; 10], out: &[u8], room: usize) -> io::Result<Vec<u8>> {
        loop {
            self.tag += 1;
            let mut header = [0; 48];
            header[0] = 0x01;
            header[1] = 0x81 | if room > 0 { 0x40 } else { 0 } | if out.is_empty() { 0 } else { 0x20 };
            header[16..20].copy_from_slice(&self.tag.to_be_bytes());
            header[20..24].copy_from_slice(&(room.max(out.len()) as u32).to_be_bytes());
            header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
            header[32..42].copy_from_slice(&cdb);
            self.cmd_sn += 1;
            self.send(header, out)?;
            let mut back = Vec::new();
            let (status, sense) = loop {
                let pdu = self.receive()?;
                match pdu.header[0] & 0x3f {
                    0x25 => {
                        back.extend(pdu.data);
                        if pdu.header[1] & 1 != 0 {
                            break (pdu.header[3], Vec::new());
                        }
                    }
                    0x21 => break (pdu.header[3], pdu.data),
                    0x20 => self.pong(&pdu)?,
                    other => return Err(io::Error::other(format!("PDU {other:x}"))),
                }
            };
            match (status, sense.get(4).map(|key| key & 0xf)) {
                (0, _) => return Ok(back),
                (2, Some(6)) => {}
                _ => return Err(io::Error::other(format!("status {status}: {sense:x?}"))),
            }
        }
    }

    fn pong(&mut self, ping: &Pdu) -> io::Result<()> {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x40, 0x80);
        header[16..20].fill(0xff);
        header[20..24].copy_from_slice(&ping.header[20..24]);
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(header, &[])
    }

    pub fn read(&mut self, lba: u32, blocks: u16) -> io::Result<Vec<u8>> {
        let back = self.command(cdb(0x28, lba, blocks), &[], usize::from(blocks) * BLOCK)?;
        assert_eq!(back.len(), usize::from(blocks) * BLOCK, "a good read brings what it says");
        Ok(back)
    }

    /// At most 8 KiB, which go with the command.
    pub fn write(&mut self, lba: u32, data: &[u8]) -> io::Result<()> {
        assert!(data.len() <= 8 << 10);
        self.command(cdb(0x2a, lba, (data.len() / BLOCK) as u16), data, 0).map(drop)
    }
}

fn cdb(opcode: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let (l, b) = (lba.to_be_bytes(), blocks.to_be_bytes());
    [opcode, 0, l[0], l[1], l[2], l[3], 0, b[0], b[1], 0]
}
