//! The adviser: facts in, advice out.
//!
//! ```text
//!   host.sh on a client ──┐                                      ┌─ rules::transfer  how a host cuts and queues requests
//!                         ├──▶ Facts ──▶ examine ──▶ RULES ──────┼─ rules::waits     what its own counters say
//!   the appliance's own ──┘                │                     ├─ rules::config    files of the host
//!                                          ▼                     └─ rules::pool      pools, datasets and LUNs of ours
//!                                Advice: seen, cost, fix for each system, way back
//! ```
//!
//! A rule is a pure function over [`Facts`]: no file is read, no clock asked, nothing changed. A fact that is
//! missing or makes no sense
//! is no reason for advice: rules say something only about what was seen. [`generate`] writes the files that the
//! advice speaks of, for
//! one deployment.
//!
//! Invariants: whatever the facts are, [`examine`] ends without a panic; what comes from facts is printed without
//! control characters;
//! each advice has a fix and a way back.

mod advice;
mod disks;
mod facts;
pub mod generate;
pub mod lab;
pub mod raidz;
mod rules;
mod settings;

pub use advice::{Advice, Fix, Setting, System, commands, line, paragraph, render};
pub use disks::{Disk, disks};
pub use facts::Facts;
pub use rules::{RULES, examine, is_judged};

/// For `/bin/sh` alone: prints the facts of a host.
pub const HOST_SCRIPT: &str = include_str!("host.sh");
