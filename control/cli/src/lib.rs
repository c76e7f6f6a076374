//! The command line: arguments in, requests to a service, replies laid out as text.
//!
//! ```text
//!   words ── args ──▶ a command ── zpool, zfs ──▶ api::Request ──▶ Caller
//!                                                                   │
//!                        screen ◀── text: pure layouts ◀── Reply ◀──┘
//! ```
//!
//! Everything here is the same whether a daemon answers or the pool is opened in this very process: [`Session`] has a
//! [`api::Caller`] and does not know which. Exit codes: 0, 1 when something failed, 2 when the words make no sense.
//!
//! Not here: what any of it means for a pool (`appliance`); how the daemon is reached (`client`).

pub mod arc;
pub mod args;
pub mod calc;
pub mod changes;
pub mod doctor;
mod live;
mod session;
pub mod status;
pub mod text;
pub mod top;
mod tunable;
pub mod waterfall;
mod zfs;
mod zpool;

pub use session::{Failure, Outcome, Session};

/// Carries out `cenote zpool ...`.
pub fn zpool(session: &mut Session<'_>, command: &args::zpool::Command) -> Outcome {
    zpool::run(session, command)
}

/// Carries out `cenote tunable ...`.
pub fn tunable(session: &mut Session<'_>, command: &args::tunable::Command) -> Outcome {
    tunable::run(session, command)
}

/// Carries out `cenote status`, which only a daemon can answer.
pub fn status(session: &mut Session<'_>, args: &args::Status) -> Outcome {
    status::run(session, args)
}

/// Carries out `cenote zfs ...`.
pub fn zfs(session: &mut Session<'_>, command: &args::zfs::Command) -> Outcome {
    zfs::run(session, command)
}
