//! Files and devices as what a load is put on, for measurement: opened as asked, and not kept from others as a disk of a
//! pool is.
//!
//! Where a direct descriptor is asked for there is no other: a request that does not fit the device fails, instead of
//! going through the page cache unseen.

use super::{Claim, File, Handle};
use crate::executor::with_local;
use crate::geometry::{self, Nature};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::io;
use std::path::Path;
use std::sync::Arc;
use world::Disk;

/// How a load reaches a file or device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub writes: bool,
    /// Past the page cache; the file system or device must have that.
    pub direct: bool,
    /// Each write is durable when it is complete, as O_DSYNC has it.
    pub durable: bool,
    /// A block device that a file system or another program has is refused. One open of a device at a time can have this.
    pub alone: bool,
}

/// Opens an existing file or block device. A file that a pool has for writing is refused to a load that writes.
///
/// # Errors
/// What the system says; `InvalidInput` for what is neither file nor block device.
///
/// # Panics
/// Outside of a loop.
pub fn open_for_load(path: &Path, access: Access) -> io::Result<Arc<dyn Disk>> {
    let mut flags = if access.writes { OFlags::RDWR } else { OFlags::RDONLY } | OFlags::CLOEXEC;
    if access.direct {
        flags |= OFlags::DIRECT;
    }
    if access.durable {
        flags |= OFlags::DSYNC;
    }
    // A fifo must not make the loop wait in open().
    let (fd, flags) = match rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::empty()) {
        // A file in memory has no device behind its pages: older kernels refuse to go past them.
        Err(rustix::io::Errno::INVAL) if access.direct => {
            let flags = flags - OFlags::DIRECT;
            let fd = rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::empty())?;
            if geometry::nature(&fd)? != Nature::MemoryFile {
                return Err(rustix::io::Errno::INVAL.into());
            }
            (fd, flags)
        }
        opened => (opened?, flags),
    };
    let nature = geometry::nature(&fd)?;
    let fd = match nature {
        Nature::BlockDevice if access.writes && access.alone => {
            rustix::fs::open(path, flags | OFlags::NONBLOCK | OFlags::EXCL, Mode::empty())?
        }
        _ => fd,
    };
    if access.writes && nature != Nature::BlockDevice {
        // A file system without locks has no pool of this kind either.
        let locked = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockShared);
        if locked == Err(rustix::io::Errno::WOULDBLOCK) {
            let why = "another program, or a pool, has it locked";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
    }
    rustix::fs::fcntl_setfl(&fd, flags - OFlags::CLOEXEC)?;
    let geometry = geometry::geometry(&fd, nature)?;
    let is_served = geometry::is_served(&fd, nature)?;
    let handle = Handle { plain: fd, direct: None, nature, _claim: Claim::default() };
    let shared =
        with_local(|local| local.shared.clone()).expect("a task of a loop opens what a load is put on");
    Ok(Arc::new(File { path: path.into(), geometry, is_served, handle: Arc::new(handle), shared }))
}
