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
    /// What a flush costs more when anything was written since the last one.
    pub flush_dirty: Duration,
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
        flush_dirty: Duration::ZERO,
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

    /// A small array of 2008 with a battery behind its cache that takes a flush literally and destages everything: safe
    /// without flushes, and slow with them. Twelve SAS disks of 15000 revolutions, two controllers that mirror their
    /// caches, one wide port of 3 Gb/s.
    ///
    /// The figures are those of a Sun StorageTek 2530 as a published test saw it: 10000 files, each created, written
    /// synchronously and removed, took 7.05 s without flushes and 59.04 s with them. So what a small write costs is
    /// 0.7 ms, of which the host takes a part: the way there, and to the other controller. What a flush adds is 5.2 ms:
    /// a short seek (3.2 ms) and half a turn (2 ms).
    pub const ARRAY: Model = Model {
        read: Duration::from_micros(5500),
        write: Duration::from_micros(650),
        per_mib: Duration::from_micros(900),
        flush: Duration::from_micros(100),
        flush_dirty: Duration::from_micros(5100),
        // All disks together, in a row, with parity: 200 MiB/s.
        flush_per_mib: Duration::from_millis(5),
        channels: 12,
        cache: Cache::Protected,
        kind: DiskKind::Block { rotational: true, volatile_cache: true },
        ..Model::NVME
    };
}
