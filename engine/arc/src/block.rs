//! What is asked of the cache: which block, what it holds, why, and whether it may stay.

use units::{Checksum, Compression, Endian, Lsize, Psize, Sectors, Txg, VdevId};

/// One opening of one pool ([`crate::Cache::opening`]).
///
/// Pools that began alike have different blocks of the same place and txg, and so has one that was opened again as of an
/// older txg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Opening(pub(crate) u32);

/// A block's identity: its pool, its first copy's place, and the txg in which it was put there.
///
/// A place is used again for other blocks, but never within one txg for two of them; so a stale entry can waste memory,
/// but cannot be mistaken for another block. What is rewritten in place within a txg is inserted again by its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId {
    pub opening: Opening,
    pub vdev: VdevId,
    pub offset: Sectors,
    pub birth: Txg,
}

impl BlockId {
    /// Of no block.
    pub(crate) const NONE: BlockId = BlockId {
        opening: Opening(u32::MAX),
        vdev: VdevId(u32::MAX),
        offset: Sectors(u64::MAX),
        birth: Txg(u64::MAX),
    };

    /// A number whose high bits tell blocks apart, to choose a shard by.
    pub(crate) fn spread(&self) -> u64 {
        let mixed = self.offset.0 ^ self.birth.0.rotate_left(40) ^ u64::from(self.vdev.0).rotate_left(24);
        let mixed = mixed ^ u64::from(self.opening.0).rotate_left(52);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// What a block is in its pool: enough to make its bytes on disk again, and to prove that they are these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Of the first copy, as its pointer has it.
    pub asize: Sectors,
    pub gang: bool,
    pub lsize: Lsize,
    pub psize: Psize,
    pub compression: Compression,
    pub checksum_kind: Checksum,
    pub checksum: [u64; 4],
    /// The order of the words that the checksum is computed over.
    pub endian: Endian,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// What users store.
    Data,
    /// What leads to it: indirect blocks, dnodes, ZAPs, space maps.
    Metadata,
}

impl Kind {
    pub(crate) const ALL: [Kind; 2] = [Kind::Data, Kind::Metadata];

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Metadata => "metadata",
        }
    }
}

/// Why a block is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Access {
    /// A client waits for it.
    #[default]
    Demand,
    /// It will probably be wanted soon: not yet a use.
    Prefetch,
    /// A walk over everything, as a scrub does: neither a use nor a reason to keep the block.
    Scan,
}

/// The dataset properties `primarycache` and `secondarycache`: what may stay in memory, and what on cache devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum PrimaryCache {
    #[default]
    All,
    Metadata,
    None,
}

impl PrimaryCache {
    pub fn keeps(self, kind: Kind) -> bool {
        match self {
            PrimaryCache::All => true,
            PrimaryCache::Metadata => kind == Kind::Metadata,
            PrimaryCache::None => false,
        }
    }
}

/// A request for one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub block: BlockId,
    pub kind: Kind,
    pub access: Access,
    pub primary: PrimaryCache,
    /// Of a block that a second level may take; `None` keeps it out of there.
    pub origin: Option<Origin>,
}

impl Request {
    /// What is wanted now and may stay.
    pub fn demand(block: BlockId, kind: Kind) -> Request {
        Request { block, kind, access: Access::Demand, primary: PrimaryCache::All, origin: None }
    }

    pub(crate) fn may_stay(&self) -> bool {
        self.access != Access::Scan && self.primary.keeps(self.kind)
    }
}
