//! The cache of blocks: a window for what came lately, whose size follows what clients do, and a main part for what is used
//! often.
//!
//! A block is known by its pool, and where and when it was born there ([`BlockId`]), and kept as the bytes its reader wants:
//! verified, decrypted, decompressed. All pools of a process share one cache.
//!
//! ```text
//!   miss ──▶ window ── used more often than what would leave? ──▶ main ◀─┐ in use
//!            ▲ ▲ │ no                                              │ └────┘
//!            │ │ │                                                 ▼ the one used least of a few
//!            │ │ └────────▶ used before, and shrinks well? ◀───────┘
//!            │ │              │ no                │ yes
//!            │ │              ▼                   ▼
//!            │ │            ghost ◀─────────── cold: compressed      names and counts only, no bytes: ghosts
//!            │ └── missed again ┘                 │
//!            └── used again soon, or more often ──┘
//! ```
//!
//! *Hits are cheap.* A hit sets a bit and a count; nothing moves, but for the first use of what was read ahead. Moving is
//! done by a hand that walks each list when room is needed, so a hit costs a lock without contention, a lookup and a
//! reference count.
//!
//! *Cores share little.* What a core has asked for before it has at hand, in a table that no other core changes (`near`);
//! the shards know which cores have what, and are told of uses once in a while.
//!
//! *It learns.* Misses on ghosts that a list by last use would still have had make the window larger, hits that such a list
//! would not have had make it smaller (`policy`, `horizon`). Metadata and data are two such caches over one memory: a ghost
//! hit moves the border between them, of metadata by more, because a missing indirect block delays every read below it.
//!
//! *A scan passes by.* What is used once leaves through the window. Reading one large block in many small pieces
//! is one use: a shard remembers the last few blocks it served, and hits on those are not counted. The first demand hit on
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
//! layers above hold is the same memory, counted once. The price would be that a well-compressed pool caches less: so what
//! would leave, was used more than once and shrinks is kept compressed, in the cold part (`cold`, `packed`), if that is
//! switched on ([`Cache::set_cold`]). Both ways are gone without a lock.
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
mod charge;
mod cold;
mod flight;
mod horizon;
mod lists;
mod near;
mod packed;
mod policy;
mod served;
mod shard;
mod sources;
mod stats;
mod unseen;

pub use ahead::AheadCounts;
pub use block::{Access, BlockId, Kind, Opening, Origin, PrimaryCache, Request};
pub use cache::{Cache, EvictionListener, Lead, Loading};
pub use candidates::{Candidate, List, Wanted};
pub use near::Name;
pub use stats::{Counts, Stats};
