//! iSCSI: units served to initiators, by RFC 7143.
//!
//! Rooms, and a need stated downwards:
//!
//! ```text
//!   wire, text     bytes <-> headers, keys and values; no I/O                       (pure)
//!   params, chap   what is agreed on, and who proves what                           (pure)
//!   guesses        how often secrets may be guessed at                              (pure)
//!   login          a question of the client -> the answer, or the refusal           (pure)
//!   session        one connection: logs in, then commands and data until either side leaves
//!   server         listens at portals, spreads connections over the cores, watches over them
//!   directory      what we need from the owner of the targets: what each initiator may see
//! ```
//!
//! A session has one connection, and errors are recovered from by a new session (level 0). Discovery, CHAP in both
//! directions (MD5, SHA-256), digests of headers and data, immediate, unasked and asked-for data, task management,
//! asynchronous messages. What the commands mean is the `scsi` crate's.
//!
//! Where the speed comes from: a connection is one future that stays on one core. The complete PDUs of a receive are
//! taken at once, in two halves; what the unit has in memory is answered inline; all answers that are ready leave in
//! one vectored send that points at the unit's own buffers. Long data are received where the unit will keep them.
//!
//! Invariants: commands are carried out in the order of their numbers, as far as their attributes ask for it; memory is
//! taken for a command's data only when its session and the whole server have room, and given back when its answer has
//! left; a session ends, and its units are free of it, only after its last command is done; what a client was not given
//! looks to it as if it were not there; nothing a client sends can make us panic.
//!
//! Not here: multiple connections in a session, recovery within a connection, which targets there are.

mod chap;
mod directory;
mod guesses;
mod login;
pub mod memory;
mod params;
mod server;
mod session;
mod text;
mod wire;

pub use chap::Credentials;
pub use directory::{Asking, Authentication, Directory, Listed, Unit, Welcome};
pub use flow::Places;
pub use server::{Client, Config, Server};

/// The port that is registered for it.
pub const DEFAULT_PORT: u16 = 3260;
