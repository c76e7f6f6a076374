//! The volumes and files of a lab, as a trace's requests meet them.

use std::collections::BTreeMap;
use std::fmt;
use trace::play::Stage;
use trace::{Op, Request};
use units::{Error, Result};
use world::{Buf, Pending};
use zpl::Node;
use zvol::Volume;

/// The longest write that is made in one piece.
const LONGEST: u64 = 64 << 20;
/// What is read of a file at once.
const PIECE: u64 = 1 << 20;
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

/// A dataset that is open.
pub enum Opened {
    Volume(Volume),
    /// Files by their numbers in the trace.
    Files(BTreeMap<u64, Node>),
}

pub struct Datasets {
    datasets: Vec<Opened>,
    places: Vec<Option<usize>>,
    payload: Payload,
}

impl Datasets {
    pub fn new(datasets: Vec<Opened>, places: Vec<Option<usize>>, payload: Payload) -> Datasets {
        Datasets { datasets, places, payload }
    }
}

impl fmt::Debug for Datasets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Datasets({})", self.datasets.len())
    }
}

impl Stage for Datasets {
    fn make(&self, request: &Request) -> Option<Pending<Result<()>>> {
        let number = self.places.get(request.place as usize).copied().flatten()?;
        if request.op == Op::Write && request.bytes > LONGEST {
            return None;
        }
        match self.datasets.get(number)? {
            Opened::Volume(volume) => of_volume(volume.clone(), request, &self.payload),
            Opened::Files(files) => of_file(files.get(&request.object)?.clone(), request, &self.payload),
        }
    }
}

fn of_volume(volume: Volume, request: &Request, payload: &Payload) -> Option<Pending<Result<()>>> {
    let Request { op, offset, bytes, durable, .. } = *request;
    if request.end() > volume.size() {
        return None;
    }
    Some(match op {
        Op::Read | Op::Prefetch => Box::pin(async move { volume.read(offset, bytes).await.map(drop) }),
        Op::Write => {
            let parts = payload.parts(bytes);
            Box::pin(async move { volume.write_parts(offset, parts, durable).await })
        }
        Op::WriteZeroes => {
            Box::pin(async move { after(volume.zero(offset, bytes).await, &volume, durable).await })
        }
        Op::Trim => Box::pin(async move { after(volume.trim(offset, bytes).await, &volume, durable).await }),
        Op::Flush => Box::pin(async move { volume.flush().await }),
        _ => return None,
    })
}

fn of_file(file: Node, request: &Request, payload: &Payload) -> Option<Pending<Result<()>>> {
    let Request { op, offset, bytes, durable, .. } = *request;
    Some(match op {
        Op::Read => Box::pin(async move { read_file(&file, offset, bytes).await }),
        Op::Write => {
            let payload = payload.clone();
            Box::pin(async move { write_file(&file, offset, bytes, &payload, durable).await })
        }
        Op::Flush | Op::Fsync => Box::pin(async move { file.sync().await }),
        _ => return None,
    })
}

async fn read_file(file: &Node, mut offset: u64, mut len: u64) -> Result<()> {
    while len > 0 {
        let piece = len.min(PIECE);
        file.read(offset, piece as usize).await?;
        (offset, len) = (offset + piece, len - piece);
    }
    Ok(())
}

/// At most a mebibyte at once, as a mounted file system gets it.
pub async fn write_file(
    file: &Node,
    mut offset: u64,
    mut len: u64,
    payload: &Payload,
    durable: bool,
) -> Result<()> {
    while len > 0 {
        let bytes = payload.bytes(len);
        let last = bytes.len() as u64 == len;
        match durable && last {
            true => file.write_durable(offset, &bytes).await?,
            false => file.write(offset, &bytes).await?,
        }
        (offset, len) = (offset + bytes.len() as u64, len - bytes.len() as u64);
    }
    Ok(())
}

async fn after(done: Result<()>, volume: &Volume, durable: bool) -> Result<(), Error> {
    done?;
    if durable { volume.flush().await } else { Ok(()) }
}
