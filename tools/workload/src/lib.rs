//! Workloads: known I/O against something that stores blocks, measured and, if wanted, verified.
//!
//! ```text
//!   Spec ──> run ── lane 0 ─┐ each: choose a block, read or write it, note the time     ──> Report
//!                   lane 1 ─┤ (as many lanes as the queue is deep, spread over the cores)
//!                   lane n ─┘        │
//!                                    v
//!                                  Target: a volume in this process, a disk of the world, a file
//! ```
//!
//! With verification every block says what it is ([`stamp`]): seed, offset and generation in each sector, and bytes
//! that follow from them. A [`Ledger`] knows which generation each block must have, also after a crash: at least the
//! one that was last flushed, at most the one that was last begun.
//!
//! Everything runs inside a world, so that the same workload measures a real machine and torments a simulated one;
//! the sequence of blocks depends on the seed alone.
//!
//! Not here: how a target is set up, and any judgement of the numbers.

mod choose;
mod histogram;
mod ledger;
mod report;
mod run;
mod spec;
pub mod stamp;
mod target;

pub use histogram::Histogram;
pub use ledger::Ledger;
pub use report::Report;
pub use run::{run, run_verified, verify};
pub use spec::{Limit, Pattern, Spec};
pub use target::{DiskTarget, Target, VolumeTarget, open};
