//! Bytes on disk and the values they mean: one file for each structure of the format, drawn at its top.
//!
//! ```text
//!   device   label ── nvlist (pool and vdev configuration)
//!              └───── uberblock ring ── rootbp
//!                                         │ BlockPointer
//!   MOS      ObjsetPhys ── meta dnode ── DnodePhys, DnodePhys, ...        objects of the pool
//!                                         │ bonus: DslDirPhys, DslDatasetPhys, SpaceMapPhys, BpobjPhys ...
//!                                         │ blocks: ZAP, space map entries, packed nvlists, history
//!   dataset  ObjsetPhys ── meta dnode ── DnodePhys, DnodePhys, ...        objects of a volume
//! ```
//!
//! Every structure is in the byte order of the machine that wrote it; the pointer to a block says which. A decoder
//! therefore reads through a [`Reader`], which knows the order, never looks past its slice, and turns what cannot
//! be into an error that names structure and field. An encoder writes through a [`Writer`], in the native order
//! unless asked otherwise; padding is written as zero.
//!
//! Decoding proves the shape only: codes known, counts and lengths inside their block. Whether a DVA lies inside
//! its vdev or a txg in the past is known to the layers that hold the pool, and is checked there.
//!
//! Not here: I/O, checksums and compression (`codec`), and every algorithm over these structures.

#![deny(clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

mod blkptr;
mod bookmark;
mod bytes;
mod dnode;
pub mod dsl;
mod dva;
pub mod error_log;
pub mod feature;
mod gang;
pub mod history;
pub mod l2arc;
pub mod label;
pub mod mos;
mod nvlist;
mod object_type;
mod objset;
mod rebuild;
pub mod space_map;
mod swap;
mod trailer;
mod uberblock;
pub mod version;
pub mod zap;
pub mod zil;

pub use blkptr::{BLKPTR_SHIFT, BLKPTR_SIZE, BlockPointer, Crypt, Embedded, EmbeddedKind, Hole, Plain};
pub use bookmark::BlockBookmark;
pub use bytes::{Reader, Writer};
pub use dnode::{
    DNODE_BLOCK_SHIFT, DNODE_BLOCK_SIZE, DNODE_CORE_SIZE, DNODE_SHIFT, DNODE_SIZE, DNODES_PER_BLOCK,
    DnodeFlags, DnodePhys, INDIRECT_SHIFT_MAX, INDIRECT_SHIFT_MIN, MAX_BLKPTRS, MAX_LEVELS,
};
pub use dsl::{
    BookmarkExtension, BookmarkFlags, BookmarkPhys, BpobjPhys, BpobjSize, BptreeEntry, BptreePhys,
    DatasetFlags, DeadlistPhys, DslDatasetPhys, DslDirPhys, ScanPhys, Space, UsedBreakdown,
};
pub use dva::Dva;
pub use feature::Feature;
pub use gang::GangHeader;
pub use history::HistoryPhys;
pub use label::{LabelLayout, PoolState, UberblockRing};
pub use nvlist::{NvList, NvValue};
pub use object_type::{ByteswapClass, ObjectType};
pub use objset::{ObjsetFlags, ObjsetPhys, ObjsetSize, ObjsetType};
pub use rebuild::{RebuildPhys, RebuildState};
pub use space_map::{SpaceAction, SpaceMapEntries, SpaceMapEntry, SpaceMapLog, SpaceMapPhys, SpaceRun};
pub use swap::swap_words;
pub use trailer::Trailer;
pub use uberblock::{Mmp, RaidzReflow, Uberblock};
pub use zil::{LogRecord, LogRecordHeader, LogRecordKind, Record, ZilChain, ZilHeader};

/// The largest block the format can hold: 16 MiB, as OpenZFS allows (the 16-bit field could say 32 MiB).
pub const MAX_BLOCK_SIZE: u64 = 16 << 20;
/// The largest block without the feature `large_blocks`.
pub const OLD_MAX_BLOCK_SIZE: u64 = 128 << 10;
/// The smallest block: one sector.
pub const MIN_BLOCK_SIZE: u64 = units::SECTOR;

#[cfg(test)]
mod testing;
