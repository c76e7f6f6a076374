//! A volume of a pool, served as a disk.
//!
//! ```text
//!   nbd::Server ──▶ NbdVolume ─┐
//!                              ├─▶ SharedVolume ──▶ zvol::Volume
//!   scsi::Device ────▶ Lun ────┘       └─ Mirror ─▶ the copy that is about to take its place
//!
//!   Volumes: which volumes clients use, each shared by all of its clients; Held: one client's use of one
//! ```
//!
//! The fronts state what they need of a disk as traits, the engine has volumes, and neither knows the other: here they
//! meet. All that clients read and write passes through this crate, and nothing that administrators ask.
//!
//! Invariants: all clients of a volume share one [`SharedVolume`], since its locks keep their writes to parts of one block
//! apart; a volume counts as used until the last [`Held`] of it is dropped.
//!
//! Not here: which client is given which volume, and why a volume would be exchanged (`appliance`).

mod counted;
mod lun;
mod nbd_volume;
mod shared;
mod volumes;

pub use counted::Counted;
pub use lun::Lun;
pub use nbd_volume::NbdVolume;
pub use shared::{Closed, InService, Mirror, SharedVolume};
pub use volumes::{Held, NamesClosed, Volumes, is_below};
