//! The intent log: what was promised to clients before its txg is on disk.
//!
//! A synchronous write must survive a crash when it is acknowledged, and a txg takes seconds. So each dataset that is
//! written to has a log: a chain of blocks, allocated and written at once, outside of any txg. A crash loses the open
//! txgs; the next import finds the chain from its header in the object set and repeats what its records say.
//!
//! ```text
//!   object set in the last synced txg
//!   ┌──────────┐    ┌─────────────┐    ┌─────────────┐    ┌ ─ ─ ─ ─ ─ ─ ┐
//!   │ header ──┼───▶│ chain 1 ────┼───▶│ chain 2 ────┼───▶  allocated,        the chain ends where a block does
//!   └──────────┘    │ records ... │    │ records ... │    │ never written │   not carry it on
//!                   └─────────────┘    └──────┬──────┘    └ ─ ─ ─ ─ ─ ─ ┘
//!                                             └──▶ block of data, when a large write is logged by pointer
//!
//!   open    records gather in memory ─▶ commit: written to the chain, flushed ─▶ waiters released ─▶ txg synced: freed
//!   import  chain found ─▶ claim: its blocks are marked allocated ─▶ replay, record by record ─▶ destroyed
//! ```
//!
//! Invariants: a record is replayed exactly once, because the header says up to which and changes in the same txg as
//! the data; a block of the chain is found valid only if the pointer to it said what it would be, so remains of older
//! logs are never taken for the log; and what was claimed must be readable, or it is damage and is said to be.
//!
//! Not here: what a record means for a dataset (`zvol`, `zpl`); which datasets have logs and when they sync (`pool`).

pub mod chain;
pub mod claim;
mod log;
pub mod replay;
mod settings;
#[cfg(test)]
mod testing;

pub use chain::{Chain, Source};
pub use claim::{Claim, Claimer, claim};
pub use log::{Hint, Log, Parts, Stats, divides_at};
pub use replay::{Outcome, Replayer, destroy, replay};
