//! A client that speaks in bytes, so that it can also misbehave.

use crate::pipe::pair;
use nbd::Server;
use std::sync::Arc;
use std::time::Duration;
use world::{Address, Buf, IoBuf, Stream};

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

pub struct Peer {
    end: Arc<dyn Stream>,
    waiting: Vec<u8>,
}

/// A reply to a request, put together from all of its chunks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub cookie: u64,
    pub error: u32,
    pub data: Vec<u8>,
    /// Length and flags of each extent.
    pub extents: Vec<(u32, u32)>,
}

impl Peer {
    /// A client and the stream it will be served through.
    pub fn bare() -> (Peer, Box<dyn Stream>) {
        let (ours, theirs) = pair();
        (Peer { end: Arc::new(ours), waiting: Vec::new() }, Box::new(theirs))
    }

    /// Connects and says hello.
    pub async fn connect(server: &Server) -> Peer {
        let (peer, theirs) = Peer::bare();
        server.serve(theirs, Address::Unix("peer".into()));
        peer.greeted().await
    }

    /// Says hello.
    pub async fn greeted(mut self) -> Peer {
        assert_eq!(self.receive(18).await.unwrap(), *b"NBDMAGICIHAVEOPT\0\x03");
        self.send(&3u32.to_be_bytes()).await;
        self
    }

    /// Begins TLS, trusting what `config` does.
    pub async fn secured(mut self, config: Arc<rustls::ClientConfig>) -> Peer {
        assert_eq!(self.option(5, &[]).await, [1]);
        assert!(self.waiting.is_empty(), "the server waits for the client to begin");
        let name = "nas".try_into().unwrap();
        let secure = tls::Secure::connect(self.end, config, name).await.expect("the handshake");
        Peer { end: Arc::new(secure), ..self }
    }

    /// Connects and takes an export, with structured replies and block status.
    pub async fn open(server: &Server, name: &str) -> Peer {
        Peer::connect(server).await.take(name).await
    }

    /// Takes an export, with structured replies and block status.
    pub async fn take(self, name: &str) -> Peer {
        let mut peer = self;
        assert_eq!(peer.option(8, &[]).await, [1]);
        let name = [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
        let query = [&name[..], b"\0\0\0\x01\0\0\0\x0fbase:allocation"].concat();
        assert_eq!(peer.option(10, &query).await, [4, 1]);
        assert_eq!(peer.option(7, &[&name[..], &[0, 0]].concat()).await, [3, 1]);
        peer
    }

    /// Connects and takes an export in the old way, with simple replies.
    pub async fn open_plain(server: &Server, name: &str) -> Peer {
        let mut peer = Peer::connect(server).await;
        peer.send_option(1, name.as_bytes()).await;
        peer.receive(10).await.expect("the export is there");
        peer
    }

    pub async fn send(&self, bytes: &[u8]) {
        // A server that has hung up is noticed when its answer is missing.
        let _ = self.end.send(vec![Buf::copy_from(bytes)]).await;
    }

    pub async fn send_option(&self, option: u32, data: &[u8]) {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend_from_slice(&option.to_be_bytes());
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
        self.send(&bytes).await;
    }

    /// The types of all the answers to an option.
    pub async fn option(&mut self, option: u32, data: &[u8]) -> Vec<u32> {
        self.send_option(option, data).await;
        let mut kinds = Vec::new();
        loop {
            let head = self.receive(20).await.expect("an answer");
            let kind = word(&head, 12);
            self.receive(word(&head, 16) as usize).await.expect("its data");
            kinds.push(kind);
            if kind == 1 || kind >> 31 == 1 {
                return kinds;
            }
        }
    }

    /// The next `len` bytes, or `None` when the server closes first.
    pub async fn receive(&mut self, len: usize) -> Option<Vec<u8>> {
        while self.waiting.len() < len {
            let buf = IoBuf::zeroed(64 << 10);
            let whole = 0..buf.len();
            let (buf, received) = self.end.recv(buf, whole).await;
            match received {
                Ok(n) if n > 0 => self.waiting.extend_from_slice(&buf[..n]),
                _ => return None,
            }
        }
        Some(self.waiting.drain(..len).collect())
    }

    pub async fn receive_reply(&mut self) -> Option<Reply> {
        let mut reply = Reply::default();
        loop {
            let magic = self.receive(4).await?;
            if magic == 0x6744_6698u32.to_be_bytes() {
                let rest = self.receive(12).await?;
                (reply.error, reply.cookie) = (word(&rest, 0), long(&rest, 4));
                return Some(reply);
            }
            assert_eq!(magic, 0x668e_33efu32.to_be_bytes(), "a reply begins with a magic number");
            let head = self.receive(16).await?;
            reply.cookie = long(&head, 4);
            let payload = self.receive(word(&head, 12) as usize).await?;
            reply.add(u16::from_be_bytes([head[2], head[3]]), &payload);
            if head[1] & 1 == 1 {
                return Some(reply);
            }
        }
    }

    /// Sends a request and waits for its reply.
    pub async fn ask(&mut self, request: &[u8]) -> Reply {
        self.send(request).await;
        self.receive_reply().await.expect("a reply")
    }

    /// Whether the server hangs up, soon and without another word.
    pub async fn is_hung_up_on(&mut self) -> bool {
        let silence = world::timeout(Duration::from_secs(20), self.receive(1)).await;
        silence == Some(None)
    }
}

impl Reply {
    fn add(&mut self, kind: u16, payload: &[u8]) {
        match kind {
            0 => {}
            1 => self.data.extend_from_slice(&payload[8..]),
            2 => self.data.resize(self.data.len() + word(payload, 8) as usize, 0),
            5 => {
                assert_eq!(word(payload, 0), 1, "the context that was negotiated");
                self.extents = payload[4..].chunks(8).map(|e| (word(e, 0), word(e, 4))).collect();
            }
            0x8001 => self.error = word(payload, 0),
            other => panic!("a chunk of type {other}"),
        }
    }
}

pub fn request(command: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&command.to_be_bytes());
    bytes.extend_from_slice(&cookie.to_be_bytes());
    bytes.extend_from_slice(&offset.to_be_bytes());
    bytes.extend_from_slice(&len.to_be_bytes());
    bytes
}

pub fn write(cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [&request(WRITE, 0, cookie, offset, data.len() as u32)[..], data].concat()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}
