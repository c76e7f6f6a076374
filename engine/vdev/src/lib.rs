//! The device tree: from block addresses to bytes on devices, and back though some of them are gone.
//!
//! ```text
//!   zio ── Tree::top(VdevId) ── Top::read(offset, psize, verify) ──┐
//!                                                                  ▼
//!            Spec ── open ──▶  Tree ─ Top ─ Node ─┬─ Leaf ─ Queue ─ world::Disk
//!     (what it should be)     (what it is)        ├─ Mirror ─ Node, Node ...
//!                                                 └─ Raidz ── Node, Node ...
//!   pool ── Tree::commit ── labels and uberblocks, in an order that survives a crash
//!   import ── scan ── labels of all devices ── Candidate { tree, where its leaves are }
//! ```
//!
//! A read is given a way to recognise the block. What is bad is tried elsewhere: another copy, or reconstruction from
//! parity; what was bad is counted, and written again if the reader says that it may be ([`Care::repair`]). A write
//! succeeds when as many devices have it as are needed to read it again; a device that it did not reach notes what it
//! misses ([`Missing`]), and is not believed about it until it is made good.
//!
//! Offsets are those of DVAs: 0 is where the space behind the first labels begins. Lengths need not be whole sectors of
//! the vdev; they are rounded up here.
//!
//! Invariants: nothing is written through a tree opened read-only, not even a repair; a block is returned only after
//! `verify` agreed; no I/O goes to a leaf that is not usable; at most a bounded number of operations is at a device.
//!
//! Not here: which blocks there are, where to put them (`metaslab`), what a failure means for the pool. Vdevs of kinds
//! that this program cannot read (draid, expanded raidz, removed ones) are refused by name.

mod closing;
mod complaint;
mod device;
mod diagnosis;
mod flush;
pub mod geometry;
pub mod gpt;
mod health;
pub mod history;
mod kinds;
pub mod label;
mod leaf;
mod missing;
mod node;
mod on_devices;
mod open;
mod options;
mod pace;
mod priority;
mod queue;
mod rebuild;
mod reshape;
pub mod scan;
mod spec;
mod stats;
mod status;
mod top;
mod tree;
mod turns;
mod vdev_type;

pub use complaint::{Lacking, complaint};
pub use device::Device;
pub use diagnosis::{THRESHOLD_MAX, Threshold, Thresholds, WITHIN, WITHIN_SLOW};
pub use health::{Aux, Errors, Health, State};
pub use label::commit::Commit;
pub use label::config::PoolConfig;
pub use leaf::Leaf;
pub use missing::Missing;
pub use node::{Node, Verify};
pub use on_devices::DeviceRange;
pub use open::in_use_by;
pub use options::OpenOptions;
pub use priority::{Limits, Priority};
pub use rebuild::Copied;
pub use scan::Candidate;
pub use spec::{Bias, Detached, Group, NewLeaf, Spec, mismatch, mismatch_with};
pub use stats::{ClassSnapshot, KindSnapshot, LATENCY_BUCKETS, LeafStats, SIZE_BUCKETS, Snapshot};
pub use status::VdevStatus;
pub use top::{Care, Place, Top};
pub use tree::{AuxDevice, AuxKind, NewTops, Tree};
pub use vdev_type::{Layout, VdevType};
