//! Tests against the real thing: pools that OpenZFS made, and programs that others wrote.
//!
//! ```text
//!   golden     the pools in testing/golden ── archive unpacks them once ──▶ target/golden/…
//!   conformance   libiscsi's suite, held against a list of what does not pass, and why
//!   damage     the same bytes overwritten as when the real kernel was asked to cope
//!   zdb        OpenZFS's own debugger, as the judge of what we wrote
//!   slow       disks that take their time, by a limit of the kernel's
//!   harness    a runner like the standard one, that can also say "skipped: this machine has no zdb"
//! ```
//!
//! A test that needs what a machine lacks is counted as ignored and says what it needs. The standard runner cannot
//! do that, it knows only at compile time; so tests here have `harness = false` and begin at [`harness::main`].
//!
//! Invariants: the unpacked images are never written to ([`golden::Pool::copy`] first); what a test makes goes into a
//! [`Scratch`] and is gone with it.

pub mod conformance;
pub mod damage;
pub mod golden;
pub mod harness;
pub mod programs;
pub mod slow;
pub mod trees;
pub mod zdb;

mod archive;
mod scratch;
mod twister;

pub use archive::streams;
pub use scratch::{Scratch, copy_sparse};

/// The directory of the workspace.
pub fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate lies two directories below the workspace").to_owned()
}
