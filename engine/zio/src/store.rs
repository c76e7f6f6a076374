//! What the layers above know of blocks: they are read, written and freed by block pointer.
//!
//! The DMU and everything above it see only [`BlockStore`]. [`crate::Pipeline`] implements it over a pool's devices;
//! [`crate::MemStore`] keeps blocks in memory, so that the layers above are tested without a pool.

use crate::read_ahead::ReadAhead;
use arc::{Name, PrimaryCache};
use ondisk::{BlockPointer, ObjectType};
use std::fmt;
use std::sync::Arc;
use units::{Checksum, Compression, ObjectId, ObjsetId, Result, Txg};
use vdev::Priority;
use world::{Buf, Pending};

/// The name of a block: where in the pool's trees it hangs. Shown as `objset:object:level:blkid` in hexadecimal, as
/// `zdb` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bookmark {
    pub objset: ObjsetId,
    pub object: ObjectId,
    /// -1 is the root of an object set, -2 a log block.
    pub level: i8,
    pub blkid: u64,
}

impl Bookmark {
    /// The root block of an object set.
    pub fn root(objset: ObjsetId) -> Bookmark {
        Bookmark { objset, object: ObjectId::META_DNODE, level: -1, blkid: 0 }
    }
}

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}:{}:{:x}", self.objset.0, self.object.0, self.level, self.blkid)
    }
}

/// How a block is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSpec {
    pub kind: ObjectType,
    pub level: u8,
    pub compression: Compression,
    pub checksum: Checksum,
    /// How many copies on different places: 1 to 3.
    pub copies: u8,
    pub txg: Txg,
    /// Which round of this txg's sync: from the second on, a block born in this txg is written again in place, so that
    /// the sync comes to rest.
    pub pass: u32,
    /// Allocated blocks below: the `fill` of the pointer. Data blocks have 1, blocks of dnodes their count.
    pub fill: u64,
    /// A block of a file that takes no more bytes than these goes to special devices (the property
    /// `special_small_blocks`); 0: only metadata does.
    pub special_up_to: u64,
    /// The cache may keep it (the property `primarycache`).
    pub keep: bool,
    /// A client waits for this very block: it goes before those that only a txg waits for.
    pub urgent: bool,
    pub at: Bookmark,
}

impl WriteSpec {
    pub(crate) fn priority(&self) -> Priority {
        if self.urgent { Priority::SyncWrite } else { Priority::AsyncWrite }
    }
}

/// Why a block is read; decides the queue it waits in and whether it may stay in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReadClass {
    /// A client waits for it.
    #[default]
    Demand,
    /// A request waits for it, and the cache may not keep it (the property `primarycache`).
    Passing,
    /// It will probably be wanted soon: when it cannot be had at once and without fault, that leaves no trace.
    Prefetch,
    /// A walk comes to it soon, and holds it until then: the cache takes nothing in, and a fault leaves no trace.
    Ahead,
    /// As [`ReadClass::Ahead`], for a walk that gives way to all else.
    ScanAhead,
    /// A walk over the whole pool: must not push anything out of the cache.
    Scan,
    /// As [`ReadClass::Scan`], along a tree that may be older than the pool. In a pool that is written to the place may be
    /// another block's by now: no device is blamed for what is there.
    Walk,
}

pub trait BlockStore: Send + Sync + 'static {
    /// The block's logical bytes if they are in memory.
    fn cached(&self, bp: &BlockPointer) -> Option<Buf>;

    /// As [`BlockStore::cached`], for a caller that is about to put other bytes in the block's place: the cache keeps none,
    /// so that the caller may be the only holder, and change them where they are.
    fn take_cached(&self, bp: &BlockPointer) -> Option<Buf> {
        self.cached(bp)
    }

    /// As [`BlockStore::cached`], after which [`BlockStore::cached_named`] may find the block.
    fn cached_and_named(&self, bp: &BlockPointer, _: Name) -> Option<Buf> {
        self.cached(bp)
    }

    /// The block of this name if the core that asks has it at hand: nothing is changed that other cores change. `None` says
    /// nothing of what is in memory.
    fn cached_named(&self, _: Name) -> Option<Buf> {
        None
    }

    /// A number for a tree of blocks to which nothing is written, for the names of its blocks, and not 0. No other tree has
    /// it, but where nothing is found by its name.
    fn number_tree(&self) -> u64 {
        1
    }

    /// The block's logical bytes: from memory, or read, verified and decompressed. A hole reads as zeros.
    fn read(&self, bp: &BlockPointer, at: Bookmark, class: ReadClass) -> Pending<Result<Buf>>;

    /// Begins to bring blocks into memory that will probably be wanted soon, in tasks of their own. What cannot be read is
    /// met again by a request that needs it.
    fn read_ahead(&self, blocks: Vec<(BlockPointer, Bookmark)>) {
        for (bp, at) in blocks {
            drop(world::spawn(self.read(&bp, at, ReadClass::Prefetch)));
        }
    }

    /// Whether and how far is read ahead.
    fn ahead(&self) -> Arc<ReadAhead> {
        Arc::default()
    }

    /// Writes a block and returns the pointer to it: a hole for zeros that compress, an embedded one for very few bytes.
    /// `old` is what the block replaces; freeing that is the caller's business unless the new pointer has the same place.
    fn write(&self, data: Buf, old: &BlockPointer, spec: WriteSpec) -> Pending<Result<BlockPointer>>;

    /// What no client waits for is written more slowly than it comes: until the next txg is synced devices take as much of
    /// it at once as they may.
    fn hasten(&self) {}

    /// Gives back a block's space, in `txg`. The caller has made sure that nothing else refers to it.
    fn free(&self, bp: &BlockPointer, txg: Txg);

    /// What of an object set may go to cache devices (the property `secondarycache`), from now on.
    fn set_second_level(&self, _objset: ObjsetId, _takes: PrimaryCache) {}

    /// What a block is charged for: its allocated bytes with the redundancy of the vdev divided out.
    fn charged(&self, bp: &BlockPointer) -> u64;

    /// The most that a block of `lsize` bytes in `copies` copies may be charged for, however free space lies.
    fn charge_max(&self, lsize: u64, copies: u8) -> u64;
}

/// Both pointers name the same block: the second was written in place of the first, or not written at all because
/// nothing had changed.
pub fn same_block(a: &BlockPointer, b: &BlockPointer) -> bool {
    match (a, b) {
        (BlockPointer::Plain(a), BlockPointer::Plain(b)) => a.dvas == b.dvas && a.birth == b.birth,
        (a, b) => a.is_hole() && b.is_hole(),
    }
}
