//! One block read or written: the path between bytes that make sense and bytes on devices.
//!
//! ```text
//!   write   zeros? ─▶ compress ─▶ few bytes? ─▶ allocate ─▶ checksum ─▶ one write for each copy ─▶ pointer
//!             │ hole                │ embedded      │ no run that long: gang
//!   read    cache? ─▶ cache device? ─▶ read a copy ─▶ verify ─▶ decompress ─▶ cache
//!                                          ▲             │ wrong: the vdev tries its redundancy,
//!                                          └─────────────┘ then the next copy is tried; what was bad is noted (`sick`)
//! ```
//!
//! [`BlockStore`] is the face for the layers above; [`Pipeline`] is the real one, [`MemStore`] the one for tests. What to
//! do with a block is decided by plain functions ([`prepare()`]: compress, embed or leave; [`gang`]: how to split); the
//! pipeline carries it out.
//!
//! A block for which no run of space is long enough is written as a **gang**: a header block of up to three pointers to
//! parts, which may be gangs themselves. The pointer above names the header and says so by a bit.
//!
//! From the second pass of a txg's sync on, a block of the pool's own object set that was born in this txg and keeps its
//! size is written again in the same place: only so does the sync come to rest. A reader meanwhile finds its content
//! in memory ([`young`]).
//!
//! Blocks of the intent log go their own way: [`LogStore`].
//!
//! What the sync of a txg needs does not fail for a device: it waits, and the pool is suspended ([`suspend`]).
//!
//! Invariants: a block is never overwritten but in that case; a pointer is returned only after every copy that the
//! devices could take is written; bytes that fail their checksum are never returned; a read writes nothing.
//!
//! Not here: what a block is for, and what frees it (`dmu`, `dsl`); which device holds what (`vdev`); which space is free
//! (`metaslab`).

mod ahead;
mod claim;
mod gang;
mod inner;
mod log;
mod mem;
mod pipeline;
mod prepare;
mod read;
mod read_ahead;
mod second;
mod sick;
mod store;
pub mod suspend;
mod write;
mod young;

pub use arc::{Name, PrimaryCache};
pub use log::LogStore;
pub use mem::MemStore;
pub use pipeline::{Options, Pipeline};
pub use prepare::{Prepared, Rules, Worst, prepare};
pub use read::{Checked, Verified, unpack};
pub use read_ahead::{AheadLimits, ReadAhead, WalkLimits};
pub use sick::{Batch, Loss, Lost, Sick};
pub use store::{BlockStore, Bookmark, ReadClass, WriteSpec, same_block};
pub use suspend::Suspension;
pub(crate) use young::Young;
