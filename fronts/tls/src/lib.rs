//! TLS under a front: a [`world::Stream`] whose bytes are protected on another one.
//!
//! ```text
//!   session ── recv, send ──▶ Secure ── records ──▶ world::Stream (the socket)
//!                               │ plaintext <-> records: rustls, which does no I/O
//!   Identity ── accept ─────────┘ certificate and key, and the authority that clients are checked against
//! ```
//!
//! The handshake runs on a core that is free, since signatures take milliseconds; the records of a session are made and
//! opened where the session runs. Versions are TLS 1.2 and 1.3. Certificates only: rustls has no pre-shared keys. No session
//! is resumed, so that each connection shows its certificate, and nothing is kept between connections.
//!
//! Invariants: what is buffered in each direction is bounded ([`RECEIVED_MAX`](secure), [`ENCRYPTED_MAX`](secure), and a
//! record of rustls's own); no lock is held while waiting; records leave in the order in which they were made, which is why
//! nothing is sent after a send that did not end.
//!
//! Not here: when TLS is wanted, and how long a handshake may take; reading files.

mod identity;
pub mod remarks;
mod secure;

pub use identity::{Identity, why};
pub use secure::Secure;
