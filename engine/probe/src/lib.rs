//! What the engine knows of itself: one record per I/O at every layer's boundary, counted where it happens.
//!
//! ```text
//!   layer ── io.record(event) ──┬─▶ counters and histograms of (layer, place, operation), a shard per thread
//!                               └─▶ observers, if there are any (one load and a branch when not)
//!   readers ── registry.snapshot() ──▶ the shards added up ── minus an earlier snapshot ──▶ rates, percentiles
//! ```
//!
//! `zpool iostat`, analytics and Prometheus are all readers of the same [`Registry`]. A [`Registry`] belongs to a pool
//! or a daemon, not to the process, so that simulated pools do not count into each other.
//!
//! Recording costs a few plain additions to memory that only this thread writes. Nothing is sampled, nothing is lost,
//! and a reader never stops a writer; a snapshot taken during a record may see a part of it.
//!
//! All names and units are in [`names`]. Not here: what is kept over time, and what is made of it (analytics).

mod histogram;
mod io;
pub mod names;
mod registry;
mod sharded;

pub use histogram::{Histogram, Scale};
pub use io::{Event, Io, IoSnapshot, OpSnapshot};
pub use names::{Layer, Metric, Op, Unit};
pub use registry::{Entry, Observer, Registry, Snapshot};
