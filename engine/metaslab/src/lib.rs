//! Free space, and where a block goes.
//!
//! ```text
//!   pool
//!    └─ class      normal, log, special, dedup, embedded log         `class`: which vdev's turn it is
//!        └─ vdev   top-level: a disk, a mirror, a raidz              `vdev`, `group`: which metaslab
//!            └─ metaslab   a region of 2^metaslab_shift bytes        `metaslab`: the way of a byte through its states
//!                └─ segment   free bytes in a row                    `free_space`: first fit, best fit
//! ```
//!
//! Each metaslab has a *space map*: an object in the meta object set that logs what was allocated and freed (`entry`).
//! Each txg appends its changes (`sync`); loading replays the log (`load`); a log much longer than what it says is
//! rewritten. Maps are objects of the DMU, which is above us: [`SpaceLog`] is all we need of it, and the pool ties that
//! knot. Since writing a map allocates space for it, a sync goes in passes that change ever less.
//!
//! Deciding is plain code under short locks: [`Space::try_allocate`] takes some hundred nanoseconds and never waits.
//! Only loading and writing maps wait.
//!
//! ```text
//!   allocate(block) ─▶ DVAs           free(DVA)            claim(DVA), at import: log blocks
//!          │                             │
//!   sync(txg, 1), sync(txg, 2) ...    maps written
//!   sync_done(txg)                    freed space ripens: allocatable again two txgs later; may be discarded (`trim`)
//! ```
//!
//! Invariants: a byte is in exactly one state; what is handed out was free in the last txg on disk and in the two
//! before; the sum of a map's entries is what its header says is allocated. What a disk says is checked (a map that
//! allocates twice or frees twice closes its metaslab, a block pointer that frees free space is refused); what we promise
//! ourselves is asserted.
//!
//! Not here: writing log space maps (they are read, `log`), how raidz turns sizes into allocated sizes ([`Geometry`]),
//! gang blocks (zio makes them when a size does not fit), checkpoints and device removal.

mod allocated;
mod class;
mod entry;
mod free_space;
mod group;
mod histogram;
mod load;
mod log;
mod maintain;
mod metaslab;
mod place;
mod ranges;
mod space;
mod space_log;
mod trim;
mod usage;
mod vdev;

pub use class::Class;
pub use place::{Dvas, Placement, Request, Unloaded};
pub use ranges::Segment;
pub use space::{MetaslabInfo, Space};
pub use space_log::{MapInfo, MapWrite, SpaceLog};
pub use trim::TrimBatch;
pub use usage::{Usage, slop};
pub use vdev::{Geometry, VdevSpec};

#[cfg(test)]
mod tests;
