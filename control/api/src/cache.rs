//! The cache of blocks: what is in it, what it was asked for since the daemon started, and what cache devices add.

use serde::{Deserialize, Serialize};

/// All sizes are in bytes, all else are counts since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheState {
    /// Seconds since then.
    pub uptime: u64,
    /// What it has, may have now, and may have at most (`zfs_arc_max`).
    pub size: u64,
    pub limit: u64,
    pub max: u64,
    /// Of the limit, what is remembered of cache devices.
    pub headers: u64,
    pub data: CachedKind,
    pub metadata: CachedKind,
    /// Blocks that left, and are remembered to know which of them come again.
    pub ghosts: u64,
    /// Blocks too large to be taken in.
    pub refused: u64,
    /// Of each pool that has cache devices.
    pub devices: Vec<CacheDevices>,
    /// Each cache and log device of all pools.
    #[serde(default)]
    pub wear: Vec<DeviceWear>,
}

/// Blocks of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedKind {
    pub blocks: u64,
    /// Of blocks that were asked for once, and again.
    pub recent: u64,
    pub frequent: u64,
    /// How much the former may have before they leave first.
    pub recent_target: u64,
    /// What clients asked for.
    pub hits: u64,
    pub misses: u64,
    /// Misses that waited for the read of another request.
    pub joined: u64,
    /// What was to be read ahead: it was there, or it was read.
    pub ahead_hits: u64,
    pub ahead_misses: u64,
    /// Blocks that were read ahead, and there when they were asked for.
    pub ahead_used: u64,
    /// Blocks that were asked for while they were read ahead, and blocks that were read ahead, never asked for, and left.
    #[serde(default)]
    pub ahead_late: u64,
    #[serde(default)]
    pub ahead_unused: u64,
    /// Hits on blocks that were kept compressed; `hits` has them as well.
    #[serde(default)]
    pub cold_hits: u64,
    /// Blocks that are kept compressed, the bytes that they take, and those that they would take.
    #[serde(default)]
    pub cold_blocks: u64,
    #[serde(default)]
    pub cold: u64,
    #[serde(default)]
    pub cold_full: u64,
    /// Misses of what had left not long before, from either list.
    pub recent_ghost_hits: u64,
    pub frequent_ghost_hits: u64,
    pub evicted: u64,
    pub evicted_bytes: u64,
}

/// The cache devices of a pool, since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheDevices {
    pub pool: String,
    pub blocks: u64,
    /// Of blocks as they are on disk.
    pub data: u64,
    pub metadata: u64,
    /// The memory that it takes to know what is where.
    pub headers: u64,
    /// What missed memory: it was there, it was not, or the device is not asked at present.
    pub hits: u64,
    pub misses: u64,
    pub passed_by: u64,
    pub read_bytes: u64,
    /// Blocks that were written, and the bytes with logs and headers.
    pub fed: u64,
    pub written_bytes: u64,
    /// Blocks that were written over before they were freed.
    pub evicted: u64,
    /// Blocks that were found again at import.
    pub rebuilt: u64,
    pub bad_checksums: u64,
    pub read_errors: u64,
    pub write_errors: u64,
    /// Times that nothing was written for want of memory to remember it.
    pub no_memory: u64,
    /// Passes that found something to write, and those of them that ended because that was as much as `l2arc_write_max`.
    #[serde(default)]
    pub passes: u64,
    #[serde(default)]
    pub cut_short: u64,
}

/// What a cache or log device has lived through since its pool was opened, or since it joined the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceWear {
    pub pool: String,
    pub device: String,
    pub is_log: bool,
    /// Bytes that it has.
    pub size: u64,
    /// Seconds since then.
    pub seconds: u64,
    /// Bytes that it was given to write: what it writes besides, to move its own pages, is not seen here.
    pub written_bytes: u64,
    /// Of a cache device, bytes of blocks that were read from it rather than from the pool.
    pub again_bytes: Option<u64>,
}

const DAY: u64 = 86_400;

impl DeviceWear {
    /// Bytes written in a day at the rate so far.
    pub fn bytes_per_day(&self) -> u64 {
        let bytes = u128::from(self.written_bytes) * u128::from(DAY) / u128::from(self.seconds.max(1));
        bytes.min(u64::MAX.into()) as u64
    }

    /// Percent of a budget of so many drive writes per day that the rate so far uses.
    pub fn used_percent(&self, dwpd: f64) -> f64 {
        self.bytes_per_day() as f64 * 100.0 / (self.size as f64 * dwpd)
    }

    /// Bytes read from it for each written, in percent; `None` of a log, and where nothing was written.
    pub fn again_percent(&self) -> Option<f64> {
        let written = Some(self.written_bytes).filter(|bytes| *bytes > 0)?;
        Some(self.again_bytes? as f64 * 100.0 / written as f64)
    }
}

/// Bytes per second that a device of `size` bytes may be given for as long as it is made to last.
pub fn endurance(size: u64, dwpd: f64) -> f64 {
    size as f64 * dwpd / DAY as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 700 GB of flash for ten drive writes per day: 7000 GB a day, 81 MB/s. The well-known 83 has GB of 1024 MB.
    #[test]
    fn seven_hundred_gigabytes_ten_times_a_day_are_81_megabytes_a_second() {
        assert_eq!((endurance(700_000_000_000, 10.0) / 1e6).round(), 81.0);
        let mixed = endurance(700 << 30, 10.0) / f64::from(1 << 20);
        assert_eq!(mixed.round(), 83.0);
        let wear = DeviceWear {
            size: 700_000_000_000,
            seconds: 3600,
            written_bytes: 3600 * 81_018_519,
            again_bytes: Some(3600 * 162_037_038),
            ..DeviceWear::default()
        };
        assert_eq!(wear.bytes_per_day(), 81_018_519 * 86_400);
        assert!((wear.used_percent(10.0) - 100.0).abs() < 0.001, "{}", wear.used_percent(10.0));
        assert!((wear.used_percent(1.0) - 1000.0).abs() < 0.01);
        assert_eq!(wear.again_percent(), Some(200.0));
    }

    #[test]
    fn a_device_that_has_just_come_has_no_rate_of_infinity() {
        let new = DeviceWear { size: 1 << 30, ..DeviceWear::default() };
        assert_eq!((new.bytes_per_day(), new.used_percent(1.0), new.again_percent()), (0, 0.0, None));
    }
}
