//! Cache devices (L2ARC), as OpenZFS writes them: a header, a ring of cached blocks, and logs among these that say what
//! each is.
//!
//! ```text
//!   header ──▶ newest log ──▶ the one before ──▶ …     Chain: read and checked, newest first
//!   start ─────── hand ─── evict ────────── end        Ring: what is written next, and what is forgotten for it
//!
//!   arc  ── what leaves next ──▶ feed ──▶ pack ──▶ journal ──▶ device          a task of its own, ahead of eviction
//!   zio  ── a miss in memory ──▶ L2arc::read ──▶ index ──▶ device ──▶ verified, or the pool is read
//!   pool ── import ──▶ rebuild ──▶ index
//! ```
//!
//! A cache device holds copies of what the pool has, as it is on the pool's devices: compressed, with the checksum in the
//! block's pointer. So whatever a device loses, garbles, holds back or brings along from another pool costs a read of the
//! pool, and never an error.
//!
//! Invariants: nothing of a txg that is not on disk is written; a hit is verified by its pointer, and a block without a
//! checksum is never written; what is remembered of blocks takes no more than `l2arc_meta_percent` of the cache's memory and
//! is charged to it; no lock is held while waiting. Locks are taken in the order shard of the cache, index.

mod chain;
mod device;
mod feed;
mod index;
mod journal;
mod l2arc;
mod larder;
mod pack;
mod rebuild;
mod ring;
mod stats;

pub use chain::{Chain, Source, decode_header, decode_log, header_size, read_header};
pub use feed::Feeder;
pub use index::Held;
pub use l2arc::{CacheDevice, L2arc};
pub use ring::Ring;
pub use stats::{Counted, Stats};
