//! Modelled hardware, in the time of a simulated run.
//!
//! ```text
//!   drive  = spindle (mechanics: arm, platter) + cache + port        array = spindles + cache with a battery + RAID
//!   flash  = channels + port                                        elevator, link: between a host and what it uses
//!   modelled: each of these as a disk; contents: the bytes; dirty: what a cache holds that its disks do not
//! ```
//!
//! Each is a [`world::Disk`] or stands in front of one. All times follow from [`crate::parameters`]; chance comes from the
//! run's seed alone.

pub mod array;
pub mod contents;
pub mod dirty;
pub mod drive;
pub mod elevator;
pub mod flash;
pub mod link;
pub mod mechanics;
pub mod modelled;
pub mod spindle;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

const SECTOR: u64 = 512;

/// Of all devices of this process, for the speed of the lab.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);

/// How many reads, writes and flushes devices have been given in this process.
pub fn operations() -> u64 {
    OPERATIONS.load(Ordering::Relaxed)
}

fn count() {
    OPERATIONS.fetch_add(1, Ordering::Relaxed);
}

/// Whether a device of `size` bytes takes such a request.
fn check(size: u64, offset: u64, len: u64) -> io::Result<()> {
    if !offset.is_multiple_of(SECTOR) || !len.is_multiple_of(SECTOR) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not aligned to the device's blocks"));
    }
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the device")),
    }
}
