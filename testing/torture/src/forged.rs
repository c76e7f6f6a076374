//! Forged pools: one structure of a pool is changed and every checksum up to the uberblock is made right again.
//!
//! A checksum proves that bytes are those that were written, not that they make sense. An attacker who
//! writes a pool's devices can make every checksum right, and so can a program with a bug, or memory with a flipped
//! bit. So whatever is in a sealed structure, no function of the engine may panic, spin or take memory without bounds.
//!
//! ```text
//!   Base ── a golden pool, or one that this engine made in the simulator ── Index: every block of metadata, its place
//!     │                                                                           in the block that points to it
//!     └ fork ─▶ fields: one structure chosen by the seed, some of its fields changed
//!                 └▶ seal: written to a new place, and so each block above it, up to the uberblock in all labels
//!                      └▶ trial: open read-only, verify, list, read │ open, write, snapshot, scrub, destroy, export
//!                           └▶ watch: no panic, at most so much CPU time and memory
//! ```
//!
//! A case is the name of a pool and a seed, and replays exactly. Errors are what is expected, and ignored.
//!
//! The blocks of users' data are never changed, as nothing in them is understood. Labels, uberblocks, gang headers and log
//! blocks carry their checksums themselves and are sealed in place.
//!
//! Not here: bytes whose checksum is wrong (`power`, and the tests of `pool`).

mod base;
mod campaign;
mod case;
mod fields;
mod index;
mod own;
mod seal;
mod trial;
mod watch;

pub use base::names;
pub use campaign::{Progress, campaign, worker};
pub use case::{ForgedCase, ForgedRunner};
pub use watch::Watch;
