//! A simulated world: one thread, virtual time, everything from one seed.
//!
//! ```text
//!   run(seed, …) ──▶ ready tasks, one after another ──▶ none ready: time jumps to the next timer or completed I/O
//!                          │                                                   │
//!                          └── world::open / sleep / spawn / compute ◀─────────┘
//!
//!   Disks: outlive runs, so that a pool can be opened again after a power cut
//!      view ── what reads see        unflushed ── written, not yet durable        durable ── survives a cut
//! ```
//!
//! The same seed and the same code give the same run, step by step: tasks are polled in the order in which they were
//! woken (or, if asked, in an order drawn from the seed), time never depends on the machine, and the only randomness is
//! [`Rng`].
//!
//! A power cut ([`Disks::power_cut`], or in the midst of a run [`Disks::cut_at_flush`], [`Disks::cut_at_write`] and
//! [`run_until_cut`]) keeps all that was flushed, and of the rest any subset, sector by sector: what the cache of a real
//! disk may do. To try every boundary: count [`Disks::flushes`] of a whole run, then [`Disks::fork`] the disks as they
//! were before it and cut the run at the first flush, the second, … Or run once and [`Disks::watch`]: a fork taken when a
//! flush is about to complete is what a cut there would find.
//!
//! Invariants: a flush makes durable exactly the writes that had completed when it was issued; a run that can make no
//! progress panics; a run that panics names its seed.

mod disk;
mod executor;
mod fault;
mod image;
mod model;
mod net;
mod rng;
mod world_sim;

pub use disk::{DiskHandle, Disks, Host, Moment};
pub use executor::{Config, run, run_until_cut, run_with};
pub use fault::Fault;
pub use model::{Cache, Model};
pub use net::{connect, stream_pair};
pub use rng::Rng;

#[cfg(test)]
mod tests;
