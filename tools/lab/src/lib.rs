//! The lab: what a change would bring, on the engine itself, with modelled hardware in virtual time.
//!
//! ```text
//!   models (numbers, each with its source) ─▶ hardware ─▶ a pool of the real engine ─▶ an experiment: before, after
//!                                                                                          │
//!                    document: before, after ─────────────────────────────────────▶ row of the table
//! ```
//!
//! An experiment's ratio counts only when the state that the document measured *before* its change comes out within a
//! quarter of what it says; the table says so when it does not. Every run is the same for the same seed.
//!
//! What a user's own clients asked for, a trace, is replayed the same way: [`replay`].
//!
//! Not here: workloads on real devices (`workload`, `bench`).

pub mod command;
pub mod experiment;
pub mod experiments;
pub mod hardware;
pub mod models;
pub mod parameters;
pub mod replay;
mod rig;
pub mod sensitivity;
