//! The volumes of a lab, as a trace's requests meet them.

use trace::play::Stage;
use trace::{Op, Request};
use units::{Error, Result};
use world::{Buf, Pending};
use zvol::Volume;

/// The longest write that is made in one piece.
const LONGEST: u64 = 64 << 20;
const PAGE: usize = 4096;

/// What is written: bytes that compress as those of the trace's volumes, or all of them the same word, which are kept in
/// little memory and are not compressed.
#[derive(Clone, Debug)]
pub struct Payload(Buf);

impl Payload {
    pub fn new(ratio: Option<f64>) -> Payload {
        let Some(ratio) = ratio else { return Payload(Buf::copy_from(&vec![0x5a; 1 << 20])) };
        let mut bytes = vec![0u8; 1 << 20];
        let kept = ((PAGE as f64 / ratio) as usize).min(PAGE);
        let mut random = sim::Rng::new(0x7261_6e64);
        for page in bytes.chunks_mut(PAGE) {
            page[..kept].iter_mut().for_each(|byte| *byte = random.next_u64() as u8);
        }
        Payload(Buf::copy_from(&bytes))
    }

    /// At most a mebibyte.
    pub fn bytes(&self, len: u64) -> Buf {
        self.0.slice(0..(len as usize).min(self.0.len()))
    }

    fn parts(&self, mut len: u64) -> Vec<Buf> {
        let mut parts = Vec::new();
        while len > 0 {
            let part = self.bytes(len);
            len -= part.len() as u64;
            parts.push(part);
        }
        parts
    }
}

#[derive(Debug)]
pub struct Volumes {
    volumes: Vec<Volume>,
    places: Vec<Option<usize>>,
    payload: Payload,
}

impl Volumes {
    pub fn new(volumes: Vec<Volume>, places: Vec<Option<usize>>, payload: Payload) -> Volumes {
        Volumes { volumes, places, payload }
    }
}

impl Stage for Volumes {
    fn make(&self, request: &Request) -> Option<Pending<Result<()>>> {
        let number = self.places.get(request.place as usize).copied().flatten()?;
        let volume = self.volumes.get(number)?.clone();
        let Request { op, offset, bytes, durable, .. } = *request;
        if request.end() > volume.size() || bytes > LONGEST && op == Op::Write {
            return None;
        }
        let work: Pending<Result<()>> = match op {
            Op::Read | Op::Prefetch => Box::pin(async move { volume.read(offset, bytes).await.map(drop) }),
            Op::Write => {
                let parts = self.payload.parts(bytes);
                Box::pin(async move { volume.write_parts(offset, parts, durable).await })
            }
            Op::WriteZeroes => {
                Box::pin(async move { after(volume.zero(offset, bytes).await, &volume, durable).await })
            }
            Op::Trim => {
                Box::pin(async move { after(volume.trim(offset, bytes).await, &volume, durable).await })
            }
            Op::Flush => Box::pin(async move { volume.flush().await }),
            _ => return None,
        };
        Some(work)
    }
}

async fn after(done: Result<()>, volume: &Volume, durable: bool) -> Result<(), Error> {
    done?;
    if durable { volume.flush().await } else { Ok(()) }
}
