//! What a connection has brought: a server's answers, taken apart as they are asked for.

use std::io;
use std::sync::Arc;
use world::{Buf, IoBuf, Stream};

/// As much as one receive may bring.
const ROOM: usize = 256 << 10;

/// What has been received and not yet taken.
#[derive(Debug)]
pub struct Incoming {
    stream: Arc<dyn Stream>,
    buf: Option<IoBuf>,
    from: usize,
    to: usize,
}

impl Incoming {
    pub fn new(stream: Arc<dyn Stream>) -> Incoming {
        Incoming { stream, buf: Some(IoBuf::zeroed(ROOM)), from: 0, to: 0 }
    }

    fn bytes(&self) -> &[u8] {
        self.buf.as_ref().map_or(&[], |buf| &buf[self.from..self.to])
    }

    async fn more(&mut self) -> io::Result<()> {
        let buf = self.buf.take().unwrap_or_else(|| IoBuf::zeroed(ROOM));
        let len = buf.len();
        let (buf, received) = self.stream.recv(buf, 0..len).await;
        self.buf = Some(buf);
        (self.from, self.to) = (0, received?);
        if self.to == 0 { Err(wrong("the server has closed the connection")) } else { Ok(()) }
    }

    /// Takes as many bytes as `target` has.
    pub async fn fill(&mut self, target: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < target.len() {
            if self.bytes().is_empty() {
                self.more().await?;
            }
            let n = self.bytes().len().min(target.len() - done);
            target[done..done + n].copy_from_slice(&self.bytes()[..n]);
            self.from += n;
            done += n;
        }
        Ok(())
    }

    /// A payload: what has arrived is copied, the rest is received where it will stay.
    pub async fn take(&mut self, len: usize) -> io::Result<Buf> {
        let mut payload = IoBuf::scratch(len);
        let mut done = self.bytes().len().min(len);
        payload[..done].copy_from_slice(&self.bytes()[..done]);
        self.from += done;
        while done < len {
            if len - done < ROOM {
                self.fill(&mut payload[done..]).await?;
                break;
            }
            let (buf, received) = self.stream.recv(payload, done..len).await;
            payload = buf;
            match received? {
                0 => return Err(wrong("the server has closed the connection")),
                n => done += n,
            }
        }
        Ok(payload.freeze())
    }
}

pub fn wrong(what: &str) -> io::Error {
    io::Error::other(what.to_string())
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |n, &b| n << 8 | u32::from(b))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}
