//! How long a disk takes, and what it forgets when the power goes.

use std::time::Duration;
use world::DiskKind;

/// What becomes of a completed write that was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Any part of it may be lost with the power.
    Volatile,
    /// None is lost: there is a battery, or no cache.
    Protected,
}

/// A disk's figures. Start from one of the profiles: `Model { seek: …, ..Model::HDD }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub read: Duration,
    pub write: Duration,
    /// Time per MiB, on top of the above.
    pub per_mib: Duration,
    /// What a flush costs at least.
    pub flush: Duration,
    /// What a flush costs more for each MiB written since the last one.
    pub flush_per_mib: Duration,
    /// How many operations it works on at once.
    pub channels: usize,
    /// Moving between places that are not neighbours costs this much more.
    pub seek: Duration,
    pub logical_block: u32,
    pub physical_block: u32,
    pub cache: Cache,
    pub kind: DiskKind,
}

impl Model {
    pub const NVME: Model = Model {
        read: Duration::from_micros(80),
        write: Duration::from_micros(20),
        per_mib: Duration::from_micros(400),
        flush: Duration::from_micros(200),
        flush_per_mib: Duration::ZERO,
        channels: 32,
        seek: Duration::ZERO,
        logical_block: 512,
        physical_block: 512,
        cache: Cache::Volatile,
        kind: DiskKind::File,
    };

    /// A SATA solid-state disk.
    pub const SSD: Model = Model {
        read: Duration::from_micros(120),
        write: Duration::from_micros(60),
        per_mib: Duration::from_micros(1900),
        flush: Duration::from_millis(1),
        flush_per_mib: Duration::from_micros(300),
        channels: 8,
        physical_block: 4096,
        kind: DiskKind::Block { rotational: false, volatile_cache: true },
        ..Model::NVME
    };

    /// 7200 revolutions per minute.
    pub const HDD: Model = Model {
        read: Duration::from_micros(500),
        write: Duration::from_micros(500),
        per_mib: Duration::from_millis(6),
        flush: Duration::from_millis(8),
        flush_per_mib: Duration::ZERO,
        channels: 1,
        seek: Duration::from_millis(8),
        kind: DiskKind::Block { rotational: true, volatile_cache: true },
        ..Model::NVME
    };

    /// An array with a battery behind its cache that takes a flush literally and destages everything: safe without
    /// flushes, and slow with them.
    pub const ARRAY: Model = Model {
        read: Duration::from_millis(2),
        write: Duration::from_micros(150),
        per_mib: Duration::from_micros(900),
        flush: Duration::from_millis(2),
        flush_per_mib: Duration::from_millis(5),
        channels: 16,
        cache: Cache::Protected,
        kind: DiskKind::Block { rotational: true, volatile_cache: true },
        ..Model::NVME
    };
}
