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
//! A power cut ([`Disks::power_cut`], or in the midst of a run [`Disks::cut_at_flush`] and [`run_until_cut`]) keeps all
//! that was flushed, and of the rest any subset, sector by sector: what the cache of a real disk may do.
//!
//! Invariants: a flush makes durable exactly the writes that had completed when it was issued; a run that can make no
//! progress panics and names its seed.

mod disk;
mod image;
mod rng;
mod world_sim;

pub use disk::{DiskHandle, Disks, Fault, Model};
pub use rng::Rng;
pub use world_sim::{Config, run, run_until_cut, run_with};

#[cfg(test)]
mod tests;
