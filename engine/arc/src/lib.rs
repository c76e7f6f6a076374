//! The cache of blocks: adaptive replacement (ARC), in its clock form.
//!
//! A block is known by its pool, and where and when it was born there ([`BlockId`]), and kept as the bytes its reader wants:
//! verified, decrypted, decompressed. All pools of a process share one cache.
//!
//! ```text
//!            first use                     used again, noticed when the hand passes
//!   miss ──────────────▶ recent ────────────────────────────────▶ frequent ◀─┐ still in use
//!                          │ not used again                          │ └──────┘
//!                          ▼                                         ▼
//!                   ghost of recent                           ghost of frequent      names only, no bytes
//!                          │ missed again: recent was too small      │ missed again: frequent was too small
//!                          └────────────────▶ frequent ◀─────────────┘
//! ```
//!
//! *Hits are cheap.* A hit sets one bit; nothing moves. Moving is done by a hand that walks each list when room is
//! needed (CAR, the clock form of ARC), so a hit costs a lock without contention, a lookup and a reference count.
//!
//! *It learns.* A miss on a ghost says which list should have been larger, and the target of the recent list moves.
//! Metadata and data are two such caches over one memory: a metadata ghost hit moves the border between them, and
//! counts five times, because a missing indirect block delays every read below it. At both borders a miss on one of few
//! ghosts weighs more than a miss on one of many: it says that few bytes more would have been enough.
//!
//! *A scan passes by.* What is used once leaves through the recent list. Reading one large block in many small pieces
//! is one use: a shard remembers the last few blocks it served, and hits on those set no bit. The first demand hit on
//! a prefetched block is its first use.
//!
//! *Shards.* The memory is divided among shards by the hash of the block's name. Each has its lock, its lists and its
//! part of the limit; no lock is held while waiting, and bytes are freed outside of it. Few, large shards: a block of
//! 16 MiB must fit in one.
//!
//! *One miss, one read.* Concurrent misses of a block wait for the first one ([`Cache::get_or_load`]). When that request
//! is dropped half-way, the next one takes over. A reader of many blocks at once takes the lead of each ([`Cache::begin`]).
//!
//! Why decompressed bytes: a warm read is then a reference count, not 0.3 s of lz4 for each GiB; volumes, our first
//! front, hold mostly small blocks whose padding to a page would eat much of what compression saves; and what the
//! layers above hold is the same memory, counted once. The price is that a well-compressed pool caches less. Holding
//! the colder part compressed is possible behind the same face.
//!
//! *Ahead of need.* A block that was read ahead and not asked for is marked. A request that comes while it is read waits
//! for it; when that read fails, the request reads the block itself: what was only a guess fails nothing, and hides no
//! error. What became of such blocks is counted ([`AheadCounts`]).
//!
//! Invariants: the bytes charged never exceed the limit; a block is in exactly one list; a ghost holds no bytes; a load
//! that was overtaken by a write or a free of its block is never admitted.
//!
//! Not here: which blocks exist, reading them (`zio`), and a second level on flash (`l2arc`): that asks for
//! [`candidates`](Cache::candidates) ahead of their eviction.

mod ahead;
mod block;
mod cache;
mod candidates;
mod flight;
mod lists;
mod served;
mod shard;
mod sources;
mod stats;

pub use ahead::AheadCounts;
pub use block::{Access, BlockId, Kind, Opening, Origin, PrimaryCache, Request};
pub use cache::{Cache, EvictionListener, Lead, Loading};
pub use candidates::{Candidate, List, Wanted};
pub use stats::{Counts, Stats};
