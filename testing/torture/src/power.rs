//! The power-cut proof: whatever was answered as durable is there after the power has gone at any moment.
//!
//! ```text
//!   base ─▶ round: import, workload ───────────────────────────────────▶ end
//!            │ flush  │ write  │ flush  │ flush …           pictures of the disks, and what the clients knew
//!            ▼        ▼        ▼        ▼
//!          fates: unflushed writes kept, lost, torn (by a seed)
//!            ▼
//!          import, read all, verify every block ─▶ agrees with the history?
//!            ├ sometimes: cut again in the midst of that recovery, import again
//!            ├ sometimes: the log devices are gone as well
//!            └ sometimes: the disks as files, before and after the recovery, to OpenZFS's zdb
//! ```
//!
//! Cuts that leave the same bytes are recovered once, and judged each: see `known`.
//!
//! A [`Case`] is a pool, a workload and, to replay one failure, a spot: the picture and its fate. Everything follows
//! from these names; a case that fails is told by its name and replays exactly.
//!
//! [`files`] is the same over files.
//!
//! Not here: time that passes on a real machine, and real devices.

mod case;
mod check;
mod client;
mod figures;
pub mod files;
mod history;
mod judge;
mod known;
mod name;
mod round;
mod setup;
mod workload;

pub use case::{Effort, Runner, Ways, Zdb};
pub use check::{Found, Limits, Undecided, check};
pub use figures::{Failure, Figures};
pub use history::{Deed, EventId, History, Span, Track};
pub use judge::dump;
pub use name::Case;
pub use setup::{Logbias, Place, Setup};
pub use workload::Workload;
