//! A model of a device as a disk of a world: the model says when it answers, and what it holds.
//!
//! ```text
//!   request ─▶ counted, checked ─▶ model: its time passes ─▶ answered, a read with the bytes of then
//! ```

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use world::{Buf, Disk, DiskKind, Geometry, IoBuf, Pending};

/// Times that begin with the call may be computed in it; the rest passes in the future. Ranges lie within the device.
pub trait Model: Debug + Send + Sync + 'static {
    fn path(&self) -> &Path;

    /// Bytes.
    fn size(&self) -> u64;

    /// What it says of itself: bytes of a physical block, and its kind.
    fn kind(&self) -> (u32, DiskKind);

    /// Ends when a read is answered.
    fn read(self: Arc<Self>, offset: u64, len: u64) -> Pending<()>;

    /// Ends when the write is answered, and has been put in the contents.
    fn write(self: Arc<Self>, offset: u64, len: u64, parts: Vec<Buf>) -> Pending<()>;

    fn flush(self: Arc<Self>) -> Pending<()>;

    /// The bytes it holds there now.
    fn copy(&self, offset: u64, into: &mut [u8]);
}

/// Clones are the same device.
#[derive(Debug)]
pub struct Modelled<M>(pub(super) Arc<M>);

impl<M> Clone for Modelled<M> {
    fn clone(&self) -> Self {
        Modelled(self.0.clone())
    }
}

impl<M: Model> Disk for Modelled<M> {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn geometry(&self) -> Geometry {
        let (physical_block, kind) = self.0.kind();
        Geometry { size: self.0.size(), logical_block: 512, physical_block, kind }
    }

    fn current_size(&self) -> io::Result<u64> {
        Ok(self.0.size())
    }

    fn read(&self, offset: u64, mut buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)> {
        super::count();
        let (model, len) = (self.0.clone(), buf.len() as u64);
        if let Err(e) = super::check(model.size(), offset, len) {
            return Box::pin(async move { (buf, Err(e)) });
        }
        let answered = model.clone().read(offset, len);
        Box::pin(async move {
            answered.await;
            model.copy(offset, &mut buf);
            (buf, Ok(()))
        })
    }

    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        super::count();
        let len = parts.iter().map(|part| part.len() as u64).sum();
        if let Err(e) = super::check(self.0.size(), offset, len) {
            return Box::pin(async move { Err(e) });
        }
        // The device goes on with a write whose waiter is gone.
        let answered = world::spawn(self.0.clone().write(offset, len, parts));
        Box::pin(async move {
            answered.await;
            Ok(())
        })
    }

    fn flush(&self) -> Pending<io::Result<()>> {
        super::count();
        let answered = self.0.clone().flush();
        Box::pin(async move {
            answered.await;
            Ok(())
        })
    }

    fn discard(&self, _: u64, _: u64) -> Pending<io::Result<()>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
}
