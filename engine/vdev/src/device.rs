//! Where a leaf's bytes are: a whole file or block device, or a partition of one.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use world::{Buf, Disk, Geometry, IoBuf, OpenMode, Pending};

/// A place that may hold a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    pub path: PathBuf,
    /// The bytes of the partition; `None` is all of it.
    pub window: Option<Range<u64>>,
}

impl Device {
    pub fn whole(path: impl Into<PathBuf>) -> Device {
        Device { path: path.into(), window: None }
    }

    pub fn partition(path: impl Into<PathBuf>, window: Range<u64>) -> Device {
        Device { path: path.into(), window: Some(window) }
    }

    /// # Errors
    /// `TimedOut` when its file system does not answer; no loop waits for that.
    pub async fn open(&self, mode: OpenMode) -> io::Result<Arc<dyn Disk>> {
        let disk = world::open_aside(&self.path, mode).await?;
        match &self.window {
            None => Ok(disk),
            Some(window) => Partition::new(disk, window.clone()).map(|p| Arc::new(p) as Arc<dyn Disk>),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.window {
            None => self.path.display().fmt(f),
            Some(w) => write!(f, "{} (partition at {})", self.path.display(), units::pretty_size(w.start)),
        }
    }
}

/// A part of a disk that looks like a disk.
#[derive(Debug)]
struct Partition {
    disk: Arc<dyn Disk>,
    window: Range<u64>,
}

impl Partition {
    fn new(disk: Arc<dyn Disk>, window: Range<u64>) -> io::Result<Partition> {
        let Geometry { size, logical_block, .. } = disk.geometry();
        let unit = u64::from(logical_block);
        let aligned = window.start.is_multiple_of(unit) && window.end.is_multiple_of(unit);
        if window.start >= window.end || window.end > size || !aligned {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the partition does not lie on the device",
            ));
        }
        Ok(Partition { disk, window })
    }

    /// The offset on the disk, when `len` bytes from `offset` lie inside.
    fn place(&self, offset: u64, len: u64) -> io::Result<u64> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.window.end - self.window.start);
        let outside = || io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the partition");
        if inside { Ok(self.window.start + offset) } else { Err(outside()) }
    }
}

impl Disk for Partition {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn geometry(&self) -> Geometry {
        Geometry { size: self.window.end - self.window.start, ..self.disk.geometry() }
    }

    fn current_size(&self) -> io::Result<u64> {
        let end = self.disk.current_size()?.min(self.window.end);
        Ok(end.saturating_sub(self.window.start))
    }

    fn read(&self, offset: u64, buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)> {
        match self.place(offset, buf.len() as u64) {
            Ok(at) => self.disk.read(at, buf),
            Err(e) => Box::pin(async move { (buf, Err(e)) }),
        }
    }

    fn read_parts(&self, offset: u64, parts: Vec<IoBuf>) -> Pending<(Vec<IoBuf>, io::Result<()>)> {
        match self.place(offset, parts.iter().map(|part| part.len() as u64).sum()) {
            Ok(at) => self.disk.read_parts(at, parts),
            Err(e) => Box::pin(async move { (parts, Err(e)) }),
        }
    }

    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        match self.place(offset, parts.iter().map(|p| p.len() as u64).sum()) {
            Ok(at) => self.disk.write(at, parts),
            Err(e) => Box::pin(async move { Err(e) }),
        }
    }

    fn flush(&self) -> Pending<io::Result<()>> {
        self.disk.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Pending<io::Result<()>> {
        match self.place(offset, len) {
            Ok(at) => self.disk.discard(at, len),
            Err(e) => Box::pin(async move { Err(e) }),
        }
    }
}
