//! Knowing when a device has been closed.
//!
//! ```text
//!   leaf ──────────┐
//!   read, write ───┼──▶ Closable ──▶ the disk        the last holder that lets go closes the disk, and then tells
//!   flush, probe ──┘        └──▶ closed: Event
//! ```
//!
//! An operation holds the disk until its answer has come, also in a task that is not waited for. A pool that leaves its
//! devices gives its own hold up and waits for theirs: only then can the devices be opened again, by this process or
//! another.
//!
//! A device that is opened again has an event of its own.
//!
//! Invariant: when the event happens, the disk is closed.

use std::io;
use std::path::Path;
use std::sync::Arc;
use world::sync::Event;
use world::{Buf, Disk, Geometry, IoBuf, Pending};

/// A disk that tells when it is closed.
#[derive(Debug)]
pub(crate) struct Closable {
    /// Taken only when it is dropped.
    disk: Option<Arc<dyn Disk>>,
    closed: Arc<Event>,
}

impl Closable {
    /// `disk` has no other holder.
    pub fn around(disk: Arc<dyn Disk>, closed: Arc<Event>) -> Arc<dyn Disk> {
        Arc::new(Closable { disk: Some(disk), closed })
    }

    fn disk(&self) -> &Arc<dyn Disk> {
        self.disk.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Closable {
    fn drop(&mut self) {
        drop(self.disk.take());
        self.closed.set();
    }
}

impl Disk for Closable {
    fn path(&self) -> &Path {
        self.disk().path()
    }

    fn geometry(&self) -> Geometry {
        self.disk().geometry()
    }

    fn current_size(&self) -> io::Result<u64> {
        self.disk().current_size()
    }

    fn read(&self, offset: u64, buf: IoBuf) -> Pending<(IoBuf, io::Result<()>)> {
        self.disk().read(offset, buf)
    }

    fn read_parts(&self, offset: u64, parts: Vec<IoBuf>) -> Pending<(Vec<IoBuf>, io::Result<()>)> {
        self.disk().read_parts(offset, parts)
    }

    fn write(&self, offset: u64, parts: Vec<Buf>) -> Pending<io::Result<()>> {
        self.disk().write(offset, parts)
    }

    fn flush(&self) -> Pending<io::Result<()>> {
        self.disk().flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Pending<io::Result<()>> {
        self.disk().discard(offset, len)
    }
}
