//! An initiator that speaks in bytes, so that it can also misbehave.

use std::collections::VecDeque;
use world::{Address, Buf, IoBuf, Stream};

pub const TARGET: &str = "iqn.2026-11.org.example:t";

/// A PDU as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    pub header: [u8; 48],
    pub data: Vec<u8>,
}

impl Pdu {
    pub fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    pub fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.header[at..at + 4].try_into().unwrap())
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub status: u8,
    pub data: Vec<u8>,
    pub sense: Vec<u8>,
}

impl Done {
    /// Sense key and code.
    pub fn code(&self) -> (u8, u8, u8) {
        assert_eq!(self.status, 2, "{self:?}");
        (self.sense[2], self.sense[12], self.sense[13])
    }
}

/// What a client asks for when it logs in.
#[derive(Clone, Debug)]
pub struct Login {
    pub initiator: &'static str,
    pub target: Option<&'static str>,
    pub isid: u8,
    pub keys: Vec<(&'static str, String)>,
}

impl Default for Login {
    fn default() -> Login {
        Login { initiator: "iqn.2026-11.org.example:i", target: Some(TARGET), isid: 1, keys: Vec::new() }
    }
}

impl Login {
    pub fn with(mut self, key: &'static str, value: &str) -> Login {
        self.keys.push((key, value.into()));
        self
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_str())
    }
}

pub struct Peer {
    pub stream: Box<dyn Stream>,
    waiting: VecDeque<u8>,
    pub digests: bool,
    pub cmd_sn: u32,
    tag: u32,
    login: Login,
}

impl Peer {
    pub async fn connect(address: &Address) -> Peer {
        let stream = sim::connect(address).expect("the server listens");
        let login = Login::default();
        Peer { stream, waiting: VecDeque::new(), digests: false, cmd_sn: 100, tag: 0, login }
    }

    /// Logs in in one step; the status it came to.
    pub async fn log_in(&mut self, login: Login) -> u16 {
        let mut text = format!("InitiatorName={}\0", login.initiator);
        match login.target {
            Some(target) => text += &format!("TargetName={target}\0SessionType=Normal\0"),
            None => text += "SessionType=Discovery\0",
        }
        login.keys.iter().for_each(|(k, v)| text += &format!("{k}={v}\0"));
        let mut header = [0; 48];
        (header[0], header[1], header[13]) = (0x43, 0x87, login.isid);
        header[8] = 0x80;
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(header, text.as_bytes()).await;
        let Some(answer) = self.receive().await else { return u16::MAX };
        assert_eq!(answer.opcode(), 0x23);
        self.digests = login.value("HeaderDigest") == Some("CRC32C");
        self.login = login;
        u16::from_be_bytes([answer.header[36], answer.header[37]])
    }

    /// A client that is in, and has been told that the unit is on.
    pub async fn open(address: &Address, login: Login) -> Peer {
        let mut peer = Peer::connect(address).await;
        assert_eq!(peer.log_in(login).await, 0);
        assert_eq!(peer.command(&[0; 6], &[], 0).await.code(), (6, 0x29, 0));
        peer
    }

    pub fn encode(&self, mut header: [u8; 48], data: &[u8]) -> Vec<u8> {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = header.to_vec();
        if self.digests {
            bytes.extend(crc32c::crc32c(&header).to_le_bytes());
        }
        let mut padded = data.to_vec();
        padded.resize(data.len().next_multiple_of(4), 0);
        bytes.extend(&padded);
        if self.digests && !data.is_empty() {
            bytes.extend(crc32c::crc32c(&padded).to_le_bytes());
        }
        bytes
    }

    pub async fn send(&self, header: [u8; 48], data: &[u8]) {
        self.send_bytes(&self.encode(header, data)).await;
    }

    pub async fn send_bytes(&self, bytes: &[u8]) {
        let _ = self.stream.send(vec![Buf::copy_from(bytes)]).await;
    }

    async fn bytes(&mut self, len: usize) -> Option<Vec<u8>> {
        while self.waiting.len() < len {
            let (buf, received) = self.stream.recv(IoBuf::zeroed(64 << 10), 0..64 << 10).await;
            let received = received.unwrap_or(0);
            if received == 0 {
                return None;
            }
            self.waiting.extend(&buf[..received]);
        }
        Some(self.waiting.drain(..len).collect())
    }

    /// The next PDU; `None` when the server has hung up.
    pub async fn receive(&mut self) -> Option<Pdu> {
        let header: [u8; 48] = self.bytes(48).await?.try_into().unwrap();
        if self.digests {
            assert_eq!(self.bytes(4).await?, crc32c::crc32c(&header).to_le_bytes(), "a header's digest");
        }
        let len = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = self.bytes(len.next_multiple_of(4)).await?;
        if self.digests && len > 0 {
            assert_eq!(self.bytes(4).await?, crc32c::crc32c(&data).to_le_bytes(), "the data's digest");
        }
        data.truncate(len);
        Some(Pdu { header, data })
    }

    pub async fn is_hung_up_on(&mut self) -> bool {
        while let Some(pdu) = self.receive().await {
            assert_ne!(pdu.opcode(), 0x25, "it goes on");
        }
        true
    }

    /// The header of a command to unit 0, with the next number and a new tag.
    pub fn header(&mut self, cdb: &[u8], reads: usize, writes: usize) -> [u8; 48] {
        self.tag += 1;
        let mut header = [0; 48];
        header[0] = 0x01;
        header[1] = 0x80 | if reads > 0 { 0x40 } else { 0 } | if writes > 0 { 0x20 } else { 0 } | 0x01;
        header[16..20].copy_from_slice(&self.tag.to_be_bytes());
        header[20..24].copy_from_slice(&(reads.max(writes) as u32).to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[32..32 + cdb.len()].copy_from_slice(cdb);
        self.cmd_sn += 1;
        header
    }

    /// Sends a command with what of its data may go unasked; returns its tag.
    pub async fn begin(&mut self, cdb: &[u8], out: &[u8], room: usize) -> u32 {
        let mut header = self.header(cdb, room, out.len());
        let first = self.login.value("FirstBurstLength").map_or(65536, |v| v.parse().unwrap());
        let immediate = self.login.value("ImmediateData") != Some("No");
        let unasked = self.login.value("InitialR2T") == Some("No");
        let now = if immediate { out.len().min(first).min(2000) } else { 0 };
        if unasked && now < out.len().min(first) {
            header[1] &= 0x7f;
            self.send(header, &out[..now]).await;
            self.send_data(self.tag, u32::MAX, now, &out[now..out.len().min(first)]).await;
        } else {
            self.send(header, &out[..now]).await;
        }
        self.tag
    }

    /// One sequence of data, in PDUs of odd lengths.
    pub async fn send_data(&self, tag: u32, transfer: u32, mut at: usize, data: &[u8]) {
        let count = data.chunks(70_001).count();
        for (number, part) in data.chunks(70_001).enumerate() {
            let mut header = [0; 48];
            header[0] = 0x05;
            header[1] = if number + 1 == count { 0x80 } else { 0 };
            header[16..20].copy_from_slice(&tag.to_be_bytes());
            header[20..24].copy_from_slice(&transfer.to_be_bytes());
            header[36..40].copy_from_slice(&(number as u32).to_be_bytes());
            header[40..44].copy_from_slice(&(at as u32).to_be_bytes());
            self.send(header, part).await;
            at += part.len();
        }
    }

    /// Serves the commands of these tags, whose data are given, until all have ended.
    pub async fn finish(&mut self, mut open: Vec<(u32, &[u8], Done)>) -> Vec<(u32, Done)> {
        let mut done = Vec::new();
        while !open.is_empty() {
            let pdu = self.receive().await.expect("the server goes on");
            let at = open.iter().position(|(tag, ..)| *tag == pdu.u32(16));
            match (pdu.opcode(), at) {
                (0x31, Some(at)) => {
                    let (offset, len) = (pdu.u32(40) as usize, pdu.u32(44) as usize);
                    self.send_data(open[at].0, pdu.u32(20), offset, &open[at].1[offset..offset + len]).await;
                }
                (0x25, Some(at)) => {
                    assert_eq!(pdu.u32(40) as usize, open[at].2.data.len(), "data come in order");
                    open[at].2.data.extend(&pdu.data);
                    if pdu.header[1] & 1 != 0 {
                        let (tag, _, mut end) = open.remove(at);
                        end.status = pdu.header[3];
                        done.push((tag, end));
                    }
                }
                (0x21, Some(at)) => {
                    let (tag, _, mut end) = open.remove(at);
                    end.status = pdu.header[3];
                    end.sense = pdu.data.get(2..).unwrap_or_default().to_vec();
                    done.push((tag, end));
                }
                // Whether we are there.
                (0x20, None) => self.pong(&pdu).await,
                other => panic!("unexpected: {other:x?}"),
            }
        }
        done
    }

    pub async fn pong(&self, ping: &Pdu) {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x40, 0x80);
        header[16..20].fill(0xff);
        header[20..24].copy_from_slice(&ping.header[20..24]);
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(header, &[]).await;
    }

    pub async fn command(&mut self, cdb: &[u8], out: &[u8], room: usize) -> Done {
        let tag = self.begin(cdb, out, room).await;
        self.finish(vec![(tag, out, Done::default())]).await.remove(0).1
    }

    /// A request that is neither command nor data; its answer.
    pub async fn request(
        &mut self,
        opcode: u8,
        flags: u8,
        fields: &[(usize, u32)],
        data: &[u8],
    ) -> Option<Pdu> {
        self.tag += 1;
        let mut header = [0; 48];
        (header[0], header[1]) = (opcode, 0x80 | flags);
        header[16..20].copy_from_slice(&self.tag.to_be_bytes());
        header[20..24].fill(0xff);
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        for (at, value) in fields {
            header[*at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        self.cmd_sn += 1;
        self.send(header, data).await;
        self.receive().await
    }
}

pub fn read(lba: u32, count: u16) -> [u8; 10] {
    let (l, c) = (lba.to_be_bytes(), count.to_be_bytes());
    [0x28, 0, l[0], l[1], l[2], l[3], 0, c[0], c[1], 0]
}

pub fn write(lba: u32, count: u16) -> [u8; 10] {
    let mut cdb = read(lba, count);
    cdb[0] = 0x2a;
    cdb
}
