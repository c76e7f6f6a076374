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
//! That is for tests and for the engine's bench. What a user asks for is a [`describe::Description`], read from a file of
//! [`vdbench`] or [`fio`] or taken from the [`profiles`], and changed by what the command line says ([`adjust`]):
//!
//! ```text
//!   describe ─▶ draw, pace       which request, and when: pure
//!            ─▶ drive            lanes, intervals, summaries: in a world; places (files, devices, nbd, iscsi) by a trait
//!            ─▶ tally, knee      what was measured, and what it says
//!            ─▶ show             tables, JSON, logs of histograms
//! ```
//!
//! Everything runs inside a world, so that the same workload measures a real machine and torments a simulated one;
//! the sequence of blocks depends on the seed alone.
//!
//! Not here: how a target is set up, and any judgement of the numbers.

pub mod adjust;
mod choose;
pub mod describe;
pub mod draw;
pub mod drive;
pub mod fio;
mod histogram;
mod incoming;
mod iscsi_client;
pub mod knee;
mod ledger;
mod nbd_client;
pub mod pace;
pub mod places;
pub mod profiles;
mod report;
mod run;
pub mod show;
mod spec;
pub mod stamp;
pub mod tally;
mod target;
pub mod vdbench;
mod words;
mod written;

pub use histogram::Histogram;
pub use ledger::Ledger;
pub use report::Report;
pub use run::{run, run_verified, verify};
pub use spec::{Limit, Pattern, Spec};
pub use target::{DiskTarget, Target, VolumeTarget, open};
pub use words::{Complaint, time};
