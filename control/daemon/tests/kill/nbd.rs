//! One connection over NBD, with simple replies.

use crate::client::{Ask, Connection};
use std::io::{Read, Result, Write};
use std::net::TcpStream;

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

/// See the module.
pub struct Nbd {
    stream: TcpStream,
    size: u64,
}

impl Nbd {
    pub fn open(address: &str, export: &str) -> Nbd {
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
        Nbd { stream, size }
    }

    fn request(
        &mut self,
        flags: u16,
        command: u16,
        cookie: u64,
        (offset, len): (u64, u64),
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
}

impl Connection for Nbd {
    fn size(&self) -> u64 {
        self.size
    }

    fn promises_all(&self) -> bool {
        true
    }

    fn send(&mut self, cookie: u32, ask: &Ask) -> Result<()> {
        let flags = |fua: bool| if fua { FUA } else { 0 };
        let cookie = cookie.into();
        match *ask {
            Ask::Write { offset, ref data, fua } => {
                self.request(flags(fua), WRITE, cookie, (offset, data.len() as u64), data)
            }
            Ask::Flush => self.request(0, FLUSH, cookie, (0, 0), &[]),
            Ask::Trim { offset, len, fua } => self.request(flags(fua), TRIM, cookie, (offset, len), &[]),
            Ask::Zero { offset, len, fua } => {
                self.request(flags(fua), WRITE_ZEROES, cookie, (offset, len), &[])
            }
        }
    }

    fn answer(&mut self) -> Result<u32> {
        let reply: [u8; 16] = receive(&mut self.stream)?;
        assert_eq!(reply[..4], REPLY_MAGIC.to_be_bytes());
        assert_eq!(reply[4..8], [0; 4], "the server answers with an error");
        Ok(u32::from_be_bytes(*reply.last_chunk().unwrap()))
    }

    fn read_all(&mut self) -> Vec<u8> {
        const STEP: u64 = 1 << 20;
        let mut all = Vec::with_capacity(self.size as usize);
        for offset in (0..self.size).step_by(STEP as usize) {
            let len = STEP.min(self.size - offset);
            self.request(0, READ, 0, (offset, len), &[]).unwrap();
            assert_eq!(self.answer().unwrap(), 0);
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
