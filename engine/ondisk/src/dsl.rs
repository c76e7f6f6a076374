//! The structures of datasets: what the DSL keeps in bonuses and MOS entries.
//!
//! ```text
//!   DslDirPhys  a name in the tree: quota, reservation, properties, space of all below
//!    ├── head ──> DslDatasetPhys  the live state ──bp──> its object set
//!    │              └── previous ──> DslDatasetPhys  newest snapshot ──> ... ──> $ORIGIN
//!    │                    each with a DeadlistPhys: blocks it still holds that its successor freed
//!    │                                └── BpobjPhys, one for each range of birth txgs
//!    └── children, properties, delegations: ZAPs
//! ```
//!
//! A bonus is in native order already, since [`DnodePhys`](crate::DnodePhys) turns it; hence `from_bonus`.

mod bookmark;
mod bpobj;
mod bptree;
mod dataset;
mod deadlist;
mod dir;
mod error_scrub;
mod scan;
#[cfg(test)]
mod tests;

pub use bookmark::{BookmarkExtension, BookmarkFlags, BookmarkPhys};
pub use bpobj::{BpobjPhys, BpobjSize};
pub use bptree::{BptreeEntry, BptreePhys};
pub use dataset::{DatasetFlags, DslDatasetPhys};
pub use deadlist::DeadlistPhys;
pub use dir::{DslDirPhys, UsedBreakdown};
pub use error_scrub::ErrorScrubPhys;
pub use scan::{ScanFunc, ScanPhys, ScanState};

/// Three measures of the same blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// On the devices, parity left out (deflated).
    pub used: u64,
    /// Sum of psizes.
    pub compressed: u64,
    /// Sum of lsizes.
    pub uncompressed: u64,
}
