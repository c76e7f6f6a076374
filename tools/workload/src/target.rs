//! What a workload can be run against.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use units::{Error, Kind, Result};
use world::{Buf, Disk, IoBuf, OpenMode, Pending};

/// Something that stores blocks.
pub trait Target: Send + Sync + Debug {
    fn size(&self) -> u64;

    /// The pieces of a range, in order.
    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>>;

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>>;

    /// Makes what was written durable.
    fn flush(&self) -> Pending<Result<()>>;

    /// Drops what this machine keeps of it in memory. What other machines keep is theirs.
    fn chill(&self) -> Result<()> {
        Ok(())
    }
}

/// Opens a file or a block device of the world.
pub fn open(path: &Path, mode: OpenMode) -> Result<Arc<dyn Target>> {
    let disk = world::open(path, mode);
    let disk = disk.map_err(|e| Error::new(Kind::Io, "open").at(path.display()).because(e))?;
    Ok(Arc::new(DiskTarget(disk)))
}

/// A disk without anything on it: the floor that everything else is compared with.
#[derive(Clone, Debug)]
pub struct DiskTarget(pub Arc<dyn Disk>);

impl DiskTarget {
    fn failed(path: &Path, doing: &str, e: std::io::Error) -> Error {
        Error::new(Kind::Io, doing).at(path.display()).because(e)
    }
}

impl Target for DiskTarget {
    fn size(&self) -> u64 {
        self.0.geometry().size
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        let disk = self.0.clone();
        Box::pin(async move {
            let (buf, read) = disk.read(offset, IoBuf::scratch(len as usize)).await;
            read.map_err(|e| DiskTarget::failed(disk.path(), "read", e))?;
            Ok(vec![buf.freeze()])
        })
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        let disk = self.0.clone();
        Box::pin(async move {
            let written = disk.write(offset, vec![data]).await;
            written.map_err(|e| DiskTarget::failed(disk.path(), "write", e))
        })
    }

    fn flush(&self) -> Pending<Result<()>> {
        let disk = self.0.clone();
        Box::pin(async move { disk.flush().await.map_err(|e| DiskTarget::failed(disk.path(), "flush", e)) })
    }
}

/// Whatever can be served over NBD, used without a client: a volume of the engine, in this process.
#[derive(Clone, Debug)]
pub struct VolumeTarget(pub Arc<dyn nbd::Volume>);

impl Target for VolumeTarget {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, len: u32) -> Pending<Result<Vec<Buf>>> {
        let mut pieces = Vec::new();
        match self.0.begin_read(offset, len, &mut pieces) {
            nbd::Reading::Done(read) => Box::pin(std::future::ready(read.map(|()| bytes(pieces)))),
            nbd::Reading::Waits(reading) => Box::pin(async move { reading.await.map(bytes) }),
        }
    }

    fn write(&self, offset: u64, data: Buf) -> Pending<Result<()>> {
        self.0.write(offset, vec![data], false)
    }

    fn flush(&self) -> Pending<Result<()>> {
        self.0.flush()
    }
}

fn bytes(pieces: Vec<nbd::Piece>) -> Vec<Buf> {
    let buf = |piece| match piece {
        nbd::Piece::Data(buf) => buf,
        nbd::Piece::Hole(len) => Buf::zeroed(len as usize),
    };
    pieces.into_iter().map(buf).collect()
}
