//! From property values to what the write path does with a block.
//!
//! A property may say `on`, which is no algorithm. What it stands for depends on the pool and on this program: it is
//! decided here, once per dataset and change, never per block.

pub use dmu::{Caching, SyncMode};

use dmu::{Direct, RedundantMetadata};
use ondisk::Feature;
use units::{Checksum, Compression, Strength, ZstdLevel};

use super::Prop;
use super::effective::Chain;
use super::index::*;

/// How blocks of a dataset are written and cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WritePolicy {
    pub compression: Compression,
    pub checksum: Checksum,
    /// Find equal blocks by this checksum; `verify` also compares their bytes.
    pub dedup: Option<Dedup>,
    /// 1 to 3, for data; metadata has one more.
    pub copies: u8,
    pub redundant_metadata: RedundantMetadata,
    /// A power of two from 512 bytes to 16 MiB.
    pub record_size: u64,
    /// Blocks up to this size go to the special devices; 0 for none.
    pub special_small_blocks: u64,
    pub sync: SyncMode,
    pub logbias_throughput: bool,
    pub primary_cache: Caching,
    pub secondary_cache: Caching,
    pub prefetch: Caching,
    pub direct: Direct,
    pub dnode_size: DnodeSize,
    pub read_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedup {
    pub checksum: Checksum,
    pub verify: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnodeSize {
    /// 512 bytes.
    Legacy,
    Auto,
    Bytes(u16),
}

/// What the pool can do, as far as `on` depends on it.
#[derive(Clone, Copy, Debug)]
pub struct PoolCan {
    /// `lz4_compress` is enabled.
    pub lz4: bool,
}

impl WritePolicy {
    pub fn of(chain: &Chain<'_>, pool: PoolCan) -> WritePolicy {
        let n = |prop| chain.number(prop);
        let checksum = checksum(n(Prop::Checksum));
        WritePolicy {
            compression: compression(n(Prop::Compression), pool),
            checksum,
            dedup: dedup(n(Prop::Dedup)),
            copies: n(Prop::Copies).clamp(1, 3) as u8,
            redundant_metadata: redundant_metadata(n(Prop::RedundantMetadata)),
            record_size: record_size(n(Prop::RecordSize)),
            special_small_blocks: n(Prop::SpecialSmallBlocks),
            sync: sync_mode(n(Prop::Sync)),
            logbias_throughput: n(Prop::LogBias) == 1,
            primary_cache: caching(n(Prop::PrimaryCache)),
            secondary_cache: caching(n(Prop::SecondaryCache)),
            prefetch: caching(n(Prop::Prefetch)),
            direct: Direct::of(n(Prop::Direct)),
            dnode_size: dnode_size(n(Prop::DnodeSize)),
            read_only: n(Prop::ReadOnly) == 1,
        }
    }
}

/// A size that no block can have is what the property is when nobody has set it.
pub(super) fn record_size(bytes: u64) -> u64 {
    let can_be = bytes.is_power_of_two() && (512..=16 << 20).contains(&bytes);
    if can_be { bytes } else { 128 << 10 }
}

/// `on` is lz4, or lzjb in a pool that does not have lz4. Codes that no table knows compress nothing.
pub fn compression(code: u64, pool: PoolCan) -> Compression {
    let level = code >> COMPRESSION_LEVEL_SHIFT;
    match code & ((1 << COMPRESSION_LEVEL_SHIFT) - 1) {
        COMPRESSION_ON if pool.lz4 => Compression::Lz4,
        COMPRESSION_ON => Compression::Lzjb,
        16 => Compression::Zstd(zstd_level(level)),
        function => u8::try_from(function).ok().and_then(Compression::from_code).unwrap_or(Compression::Off),
    }
}

/// Level 0 is plain `zstd`, the algorithm's own default.
fn zstd_level(level: u64) -> Option<ZstdLevel> {
    match level {
        1..=19 => Some(ZstdLevel::Normal(level as u8)),
        ZSTD_FAST_FIRST..=112 => Some(ZstdLevel::Fast((level - ZSTD_FAST_FIRST) as u16 + 1)),
        113.. => ZSTD_FAST_SPARSE.get(level as usize - 113).map(|n| ZstdLevel::Fast(*n)),
        _ => None,
    }
}

/// `on` is fletcher4.
pub fn checksum(code: u64) -> Checksum {
    u8::try_from(code).ok().and_then(Checksum::from_code).unwrap_or(Checksum::Fletcher4)
}

/// What a pool needs before it has a block with this checksum.
pub fn feature_of_checksum(code: u64) -> Option<Feature> {
    checksum(code).row().feature.and_then(Feature::by_guid)
}

/// `on` is sha256. A checksum that cannot name a block by itself never dedups without comparing.
pub fn dedup(code: u64) -> Option<Dedup> {
    let verify = code & DEDUP_VERIFY != 0;
    match code & (DEDUP_VERIFY - 1) {
        0 | 2 => None,
        CHECKSUM_ON => Some(Dedup { checksum: Checksum::Sha256, verify }),
        function => {
            let checksum = Checksum::from_code(function as u8).filter(|c| c.is_cryptographic())?;
            Some(Dedup { checksum, verify: verify || checksum.row().strength != Strength::Names })
        }
    }
}

fn redundant_metadata(code: u64) -> RedundantMetadata {
    match code {
        1 => RedundantMetadata::Most,
        2 => RedundantMetadata::Some,
        3 => RedundantMetadata::None,
        _ => RedundantMetadata::All,
    }
}

fn sync_mode(code: u64) -> SyncMode {
    match code {
        1 => SyncMode::Always,
        2 => SyncMode::Disabled,
        _ => SyncMode::Standard,
    }
}

fn caching(code: u64) -> Caching {
    match code {
        0 => Caching::None,
        1 => Caching::Metadata,
        _ => Caching::All,
    }
}

fn dnode_size(code: u64) -> DnodeSize {
    match code {
        0 => DnodeSize::Legacy,
        1024 | 2048 | 4096 | 8192 | 16384 => DnodeSize::Bytes(code as u16),
        _ => DnodeSize::Auto,
    }
}
