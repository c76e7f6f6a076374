//! Files and devices as what a load is put on, for measurement: opened as asked, and not kept from others as a disk of a
//! pool is.
//!
//! Where a direct descriptor is asked for there is no other: a request that does not fit the device fails, instead of
//! going through the page cache unseen.
//!
//! A request goes through the ring, or is a system call of the loop's own thread, as it is of a program that reads and
//! writes one request after the other. The two differ where the kernel cannot begin a request without waiting: it gives
//! such a request of a ring to a thread of its own, and a write to a file of a FUSE file system takes twice the time.

use super::{Claim, File, Handle};
use crate::executor::with_local;
use crate::geometry::{self, Nature};
use rustix::fs::{Advice, FlockOperation, Mode, OFlags};
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
    /// Each request is a system call on the thread of the loop, which waits for it.
    pub in_place: bool,
    /// What the kernel is told of the order of the requests, for what it reads ahead.
    pub order: Option<Order>,
}

/// The order of the requests of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    Random,
    Sequential,
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
    if let Some(order) = access.order {
        let advice = match order {
            Order::Random => Advice::Random,
            Order::Sequential => Advice::Sequential,
        };
        rustix::fs::fadvise(&fd, 0, None, advice)?;
    }
    let geometry = geometry::geometry(&fd, nature)?;
    let is_served = geometry::is_served(&fd, nature)?;
    let handle = Handle { plain: fd, direct: None, nature, is_served: false, _claim: Claim::default() };
    let shared =
        with_local(|local| local.shared.clone()).expect("a task of a loop opens what a load is put on");
    let in_place = access.in_place || nature == Nature::MemoryFile;
    Ok(Arc::new(File { path: path.into(), geometry, is_served, in_place, handle: Arc::new(handle), shared }))
}

/// Drops the pages of a file or block device that this machine keeps in memory; those of a file that are not written yet
/// stay, those of a device are written first. Waits for the device.
///
/// # Errors
/// What the system says.
pub fn drop_pages(path: &Path) -> io::Result<()> {
    let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    if geometry::nature(&fd)? == Nature::BlockDevice {
        rustix::fs::fdatasync(&fd)?;
    }
    Ok(rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?)
}
