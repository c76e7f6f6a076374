//! Cache devices (L2ARC) as OpenZFS writes them: a header, a ring of cached blocks, and logs among these that say what
//! each is.
//!
//! ```text
//!   header ──▶ newest log ──▶ the one before ──▶ …     Chain: read and checked, newest first
//!   start ─────── hand ─── evict ────────── end        Ring: what is written next, and what is forgotten for it
//! ```
//!
//! Not here yet: blocks are neither cached nor served; devices are carried along, and `inspect` shows what they hold.

mod chain;
mod ring;

pub use chain::{Chain, Source, decode_header, decode_log, header_size, read_header};
pub use ring::Ring;
