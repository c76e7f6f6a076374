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

    /// Asks the operating system again: a file may have been truncated or grown since it was opened.
    fn current_size(&self) -> io::Result<u64>;

    /// Fills `buf` from `offset`. Reading past the end is an error, as is a short read.
    fn read(&self, offset: u64, buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)>;

    /// Writes `parts` one after the other from `offset`. Durable only after the next [`Disk::flush`] that was issued
    /// after this completed.
    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>>;

    /// Makes every write that completed before this call durable.
    fn flush(&self) -> Pending<io::Result<()>>;

    /// Tells the device that a range is not needed: TRIM, or a hole in a file. Its content is undefined afterwards.
    fn discard(&self, offset: u64, len: u64) -> Pending<io::Result<()>>;
}
