//! What can be made to go wrong with a disk.

use std::time::Duration;

/// Holds until another is set ([`crate::DiskHandle::set_fault`], [`crate::DiskHandle::fault_at_write`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// It is not there: opening and every operation fail.
    pub gone: bool,
    /// Operations that fail, per million.
    pub read_errors_ppm: u32,
    pub write_errors_ppm: u32,
    pub flush_errors_ppm: u32,
    /// A flush that fails drops what it was to make durable, as operating systems and devices do.
    pub forgets: bool,
    /// Reads that return one flipped bit, per million.
    pub rot_ppm: u32,
    /// Writes that report success and are forgotten, per million.
    pub lost_writes_ppm: u32,
    /// Writes that report success and went to another place, per million.
    pub misdirected_writes_ppm: u32,
    /// Flushes report success and make nothing durable.
    pub ignores_flushes: bool,
    /// Writes fail for want of space on the host.
    pub full: bool,
    /// Every operation takes so much longer.
    pub delay: Duration,
}

/// Whether what happens `ppm` times in a million happens now, by the run's randomness.
pub(crate) fn chance(ppm: u32) -> bool {
    ppm > 0 && world::random_u64() % 1_000_000 < u64::from(ppm)
}
