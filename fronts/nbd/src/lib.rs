//! NBD: volumes served as network block devices.
//!
//! Three rooms, and a need stated downwards:
//!
//! ```text
//!   wire         bytes <-> values: options, requests, replies; no I/O            (pure)
//!   negotiation  what the client asked -> what we answer, what was agreed       (pure)
//!   plan         one request -> do it, or refuse it                              (pure)
//!   session      one connection: negotiate, then transmit until either side leaves
//!   server       listens, spreads connections over the cores, watches over them
//!   volume       what we need from the owner of the disks: Volume and Exports
//! ```
//!
//! The protocol is the fixed newstyle handshake, then requests with simple or structured replies; the one metadata
//! context is `base:allocation`. A server with a certificate requires TLS of all who come over TCP, and has none elsewhere:
//! the negotiation begins anew inside it ([`Server::require_tls`]). There are no extended headers: they are refused
//! politely.
//!
//! Where the speed comes from: a connection is one future that stays on one core. The complete requests of a receive
//! are taken at once, in two halves; whatever the volume can answer without waiting is answered inline; all answers
//! that are ready leave in one vectored send that points at the volume's own buffers. Only what must wait becomes a
//! future of its own. A long payload is received straight into the aligned buffers the volume will keep, one for each block.
//!
//! Invariants: a request is admitted only when its connection and the whole server have room for its bytes, and gives
//! the room back when its reply has been sent, so a client that does not read its replies stops being read from; a
//! volume stays held until the last request in flight is done; nothing a client sends can make us panic.
//!
//! Not here: what a volume is, who may use it, and where the configuration is kept.

mod answer;
mod errno;
pub mod memory;
mod negotiation;
mod plan;
mod server;
mod session;
mod volume;
mod wire;

pub use flow::{Extent, Piece, Places, Reading};
pub use server::{Client, Config, Server};
pub use volume::{Exports, Hold, Listed, Volume};
pub use wire::DEFAULT_PORT;
