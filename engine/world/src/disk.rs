//! A disk: bytes at offsets, with a cache that must be flushed.

use crate::{Buf, IoBuf, Pending};
use std::fmt::Debug;
use std::io;
use std::path::Path;

/// What the operating system knows of a disk when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub size: u64,
    /// The smallest unit the device accepts, in bytes: offsets, lengths and buffers are multiples of it.
    pub logical_block: u32,
    /// The smallest unit it writes without reading first, in bytes: the natural ashift.
    pub physical_block: u32,
    /// What a flush costs and whether it is needed at all.
    pub kind: DiskKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// A file in a file system: flush is fdatasync.
    File,
    /// A block device; one whose cache is not volatile needs no flush.
    Block { rotational: bool, volatile_cache: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For evidence: the file is opened without write permission.
    ReadOnly,
    ReadWrite,
}

/// A disk, shared by every loop of the process. Offsets and lengths are multiples of `logical_block`.
pub trait Disk: Send + Sync + Debug {
    fn path(&self) -> &Path;

    fn geometry(&self) -> Geometry;

    /// Asks the operating system again: a file may have been truncated or grown since it was opened. Of a file on a server,
    /// which may not answer, the size when it was opened.
    fn current_size(&self) -> io::Result<u64>;

    /// Fills `buf` from `offset`. Reading past the end is an error, as is a short read.
    fn read(&self, offset: u64, buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)>;

    /// As [`Disk::read`], of what lies side by side, into a buffer for each piece: one operation of the device. A disk that
    /// knows no better reads it into one buffer and copies the pieces out.
    fn read_parts(&self, offset: u64, parts: Vec<IoBuf>) -> Pending<(Vec<IoBuf>, io::Result<()>)> {
        scatter(self.read(offset, IoBuf::scratch(parts.iter().map(|part| part.len()).sum())), parts)
    }

    /// Writes `parts` one after the other from `offset`. Durable only after the next [`Disk::flush`] that was issued
    /// after this completed.
    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>>;

    /// Makes every write that completed before this call durable.
    fn flush(&self) -> Pending<io::Result<()>>;

    /// Tells the device that a range is not needed: TRIM, or a hole in a file. Its content is undefined afterwards.
    fn discard(&self, offset: u64, len: u64) -> Pending<io::Result<()>>;
}

/// What `whole` reads, copied into `parts`, which are as long together.
pub fn scatter(
    whole: Pending<(IoBuf, io::Result<()>)>,
    mut parts: Vec<IoBuf>,
) -> Pending<(Vec<IoBuf>, io::Result<()>)> {
    Box::pin(async move {
        let (whole, result) = whole.await;
        if result.is_ok() {
            let mut at = 0;
            for part in &mut parts {
                let end = at + part.len();
                part.copy_from_slice(&whole[at..end]);
                at = end;
            }
        }
        (parts, result)
    })
}
