//! How an object set is written: what a dataset's properties ask for, and what follows for each block. Pure.

use crate::direct::Direct;
use ondisk::ObjectType;
use units::{Checksum, Compression};

/// `redundant_metadata`: which metadata gets one copy more than the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedundantMetadata {
    All,
    /// Indirect blocks of user data at level 1 do without.
    Most,
    /// Only what would lose whole objects.
    Some,
    None,
}

/// `sync`: what becomes of requests for durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// They are met, and nothing else waits.
    Standard,
    /// Every write is one.
    Always,
    /// They are ignored.
    Disabled,
}

/// What a cache may take. The more, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caching {
    None,
    Metadata,
    All,
}

impl Caching {
    pub fn takes(self, is_metadata: bool) -> bool {
        self == Caching::All || self == Caching::Metadata && is_metadata
    }
}

/// How an object set is written: the dataset's properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub compression: Compression,
    pub checksum: Checksum,
    pub copies: u8,
    pub redundant_metadata: RedundantMetadata,
    /// Blocks of files up to this size go to the special devices; 0 for none.
    pub special_small_blocks: u64,
    /// The pool keeps the birth txg of holes (feature `hole_birth`).
    pub hole_birth: bool,
    /// The pool may compress with lz4 (feature `lz4_compress`); else metadata takes lzjb.
    pub lz4: bool,
    pub sync: SyncMode,
    /// `logbias=throughput`: the intent log names blocks of data rather than repeat them.
    pub logbias_throughput: bool,
    /// What of it stays in memory.
    pub primary_cache: Caching,
    /// What of it may go to cache devices.
    pub secondary_cache: Caching,
    /// What of it is read ahead.
    pub prefetch: Caching,
    /// Which requests of clients go past the cache.
    pub direct: Direct,
    /// Clients may not change it (the property `readonly`).
    pub read_only: bool,
}

impl Policy {
    /// The pool's own object set: three copies of everything.
    pub fn mos() -> Policy {
        Policy {
            compression: Compression::Lz4,
            checksum: Checksum::Fletcher4,
            copies: 3,
            redundant_metadata: RedundantMetadata::All,
            special_small_blocks: 0,
            hole_birth: true,
            lz4: true,
            sync: SyncMode::Standard,
            logbias_throughput: false,
            primary_cache: Caching::All,
            secondary_cache: Caching::All,
            prefetch: Caching::All,
            direct: Direct::Disabled,
            read_only: false,
        }
    }

    /// Compression, checksum and copies for a block of `kind` at `level` of an object that asks for nothing itself.
    pub(crate) fn choose(
        &self,
        kind: ObjectType,
        level: u8,
        own_checksum: u8,
        own_compression: u8,
    ) -> Choice {
        if level == 0 && !kind.is_metadata() {
            return Choice {
                compression: Compression::from_code(own_compression).unwrap_or(self.compression),
                checksum: Checksum::from_code(own_checksum).unwrap_or(self.checksum),
                copies: self.copies,
            };
        }
        let extra = match self.redundant_metadata {
            RedundantMetadata::All => true,
            RedundantMetadata::Most => level >= 2 || kind.is_metadata(),
            // What many files would be lost with. A block of dnodes, a directory and a spill block are of few.
            RedundantMetadata::Some => {
                let of_few = [ObjectType::DIRECTORY_CONTENTS, ObjectType::SA].contains(&kind)
                    || (kind == ObjectType::DNODE && level == 0);
                kind.is_metadata() && !of_few
            }
            RedundantMetadata::None => false,
        };
        // Only what detects more than flipped bits is good enough for a block that others hang from.
        let strong = self.checksum.is_cryptographic() || self.checksum == Checksum::Fletcher4;
        Choice {
            compression: if self.lz4 { Compression::Lz4 } else { Compression::Lzjb },
            checksum: if strong { self.checksum } else { Checksum::Fletcher4 },
            copies: (self.copies + u8::from(extra)).min(3),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub compression: Compression,
    pub checksum: Checksum,
    pub copies: u8,
}
