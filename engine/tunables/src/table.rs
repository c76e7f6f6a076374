//! The table: every tunable, said once. Commands, their help and the manual are made from it.

use std::fmt;
use units::{Error, Kind, Result, parse_size, pretty_size};

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 0 is off, 1 is on.
    Switch,
    Count,
    Bytes,
    Percent,
    Seconds,
    Milliseconds,
    Nanoseconds,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Switch => "switch",
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::Percent => "%",
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Nanoseconds => "ns",
        }
    }
}

/// What is known of one tunable.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub unit: Unit,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    /// One line.
    pub about: &'static str,
    /// What is at stake when it is set to anything but 0. Whoever sets it is told.
    pub warning: Option<&'static str>,
}

impl Definition {
    /// The value that a person wrote: `1`, `on`, `32K`, `0x20`.
    ///
    /// # Errors
    /// What it should have been.
    pub fn parse(&self, text: &str) -> Result<u64> {
        let text = text.trim();
        let value = match (self.unit, text) {
            (Unit::Switch, "on") => Ok(1),
            (Unit::Switch, "off") => Ok(0),
            _ => number(text, self.unit),
        };
        let checked = value.and_then(|v| self.check(v).map(|()| v));
        checked.map_err(|why| Error::invalid(format!("bad value '{text}' for {}: {why}", self.name)))
    }

    /// A value as people read it: sizes with a unit.
    pub fn show(&self, value: u64) -> String {
        match self.unit {
            Unit::Bytes => pretty_size(value),
            _ => value.to_string(),
        }
    }

    /// The warning that setting it to `value` deserves.
    pub fn warning_for(&self, value: u64) -> Option<&'static str> {
        self.warning.filter(|_| value != 0)
    }

    /// Whether the value may be; if not, what it should be.
    pub fn check(&self, value: u64) -> Result<(), String> {
        if (self.min..=self.max).contains(&value) {
            return Ok(());
        }
        let (min, max) = (self.show(self.min), self.show(self.max));
        Err(match self.unit {
            Unit::Switch => "it is 0 or 1".into(),
            _ if self.max == u64::MAX => format!("it is at least {min}"),
            _ => format!("it is between {min} and {max}"),
        })
    }
}

/// A decimal or, after `0x`, a hexadecimal number; sizes also with a unit.
fn number(text: &str, unit: Unit) -> Result<u64, String> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // A sign would pass the parser.
        let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
        let value = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
        return value.ok_or_else(|| "it is no hexadecimal number of at most 64 bits".into());
    }
    if unit == Unit::Bytes {
        return parse_size(text);
    }
    let is_decimal = text.chars().all(|c| c.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten().ok_or_else(|| "it is no whole number".into())
}

/// Declares [`Tunable`] and its definitions, in the order of the table.
macro_rules! table {
    ($($variant:ident $name:literal $unit:ident $default:literal in $range:expr, $about:literal $(, warning $warning:literal)?;)*) => {
        /// One of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Tunable {
            $(#[doc = $about] $variant,)*
        }

        impl Tunable {
            pub const ALL: &'static [Tunable] = &[$(Tunable::$variant,)*];
            pub(crate) const COUNT: usize = Tunable::ALL.len();
            const DEFINITIONS: [Definition; Tunable::COUNT] = [$({
                let (min, max): (u64, u64) = $range;
                #[allow(unused_mut, unused_assignments)]
                let mut warning: Option<&'static str> = None;
                $(warning = Some($warning);)?
                Definition { name: $name, unit: Unit::$unit, default: $default, min, max, about: $about, warning }
            },)*];
        }
    };
}

const SWITCH: (u64, u64) = (0, 1);
const ANY: (u64, u64) = (0, u64::MAX);
/// How many operations: none would stop the device.
const ACTIVE: (u64, u64) = (1, u32::MAX as u64);
const PERCENT: (u64, u64) = (0, 100);
const LARGEST_BLOCK: u64 = 16 << 20;

table! {
    NoCacheFlush "zfs_nocacheflush" Switch 0 in SWITCH,
        "Never ask a device to make its cache durable.",
        warning "no device's write cache is flushed any more. A power failure loses writes that were acknowledged and can \
                 destroy every pool, unless each device's cache is protected by a battery or capacitors.";
    ZilNoCacheFlush "zil_nocacheflush" Switch 0 in SWITCH,
        "Do not flush devices after the intent log was written; transaction groups still are.",
        warning "synchronous writes are acknowledged while they are in volatile caches. A power failure loses the last of \
                 them, unless each device's cache is protected by a battery or capacitors.";
    ZilReplayDisable "zil_replay_disable" Switch 0 in SWITCH,
        "Throw intent logs away at import instead of replaying them.",
        warning "a pool that was not exported loses, when it is next imported, the synchronous writes that are only in its \
                 intent log, though they were acknowledged.";
    ZilSlogBulk "zil_slog_bulk" Bytes 67108864 in ANY,
        "What one commit writes to a log device beyond this yields to others.";
    ZilMaxBlockSize "zil_maxblocksize" Bytes 131072 in (4 << 10, 128 << 10),
        "The largest block of an intent log.";
    ZilMaxCopied "zil_maxcopied" Bytes 7680 in (0, 128 << 10),
        "Writes up to this size are copied into the log's memory at once; larger ones are read again at commit.";
    ImmediateWriteSize "zfs_immediate_write_sz" Bytes 32768 in (0, LARGEST_BLOCK),
        "Larger writes go to their place in the pool, and the log only points to them.";
    ZilWholeBlocksOnly "zil_whole_blocks_only" Switch 0 in SWITCH,
        "The log points only to blocks that a write covers as a whole, as in 2013; parts are copied into it, however large.";
    CommitTimeoutPercent "zfs_commit_timeout_pct" Percent 10 in (0, 1000),
        "How long a log block stays open for company, of the time that the last one took to write.";
    DefaultIndirectShift "zfs_default_ibs" Count 17 in (12, 17),
        "Indirect blocks of new volumes, and of new files of file systems opened from now on, are 2 to the power of this.";
    TxgTimeout "zfs_txg_timeout" Seconds 5 in (1, 86400),
        "A transaction group is synced when it is this old.";
    SlowIo "zio_slow_io_ms" Milliseconds 30000 in (1, 86_400_000),
        "An operation of a device that takes longer counts as slow: see the property slow_io_n of vdevs.";
    DirtyDataMax "zfs_dirty_data_max" Bytes 1073741824 in (1 << 20, 1 << 50),
        "At most so much written data waits in memory, in each pool. In an appliance a tenth of the memory, at most 4G.";
    DirtyDataSyncPercent "zfs_dirty_data_sync_percent" Percent 20 in PERCENT,
        "A transaction group with so much of zfs_dirty_data_max is synced at once.";
    DelayMinDirtyPercent "zfs_delay_min_dirty_percent" Percent 60 in PERCENT,
        "From so much dirty data on, writers are delayed.";
    DelayScale "zfs_delay_scale" Nanoseconds 500000 in (0, 1_000_000_000),
        "How fast the delay of writers grows: the delay halfway between its start and zfs_dirty_data_max.";
    PerTxgDirtyFreesPercent "zfs_per_txg_dirty_frees_percent" Percent 30 in PERCENT,
        "At most so much of zfs_dirty_data_max in indirect blocks is emptied by frees that are not on disk yet; 0 is no limit.";
    AsyncBlockMaxBlocks "zfs_async_block_max_blocks" Count 100000 in (1, u64::MAX),
        "At most so many blocks of destroyed datasets are freed in one transaction group.";
    ScanCheckpointInterval "zfs_scan_checkpoint_intval" Seconds 30 in (0, 86_400),
        "How often a scrub or resilver keeps how far it is: so much of it is done again after a crash.";
    RebuildMaxSegment "zfs_rebuild_max_segment" Bytes 1048576 in (1 << 16, 16 << 20),
        "A sequential rebuild copies at most so much in one piece.";
    RebuildVdevLimit "zfs_rebuild_vdev_limit" Bytes 67108864 in (1 << 20, 1 << 30),
        "A sequential rebuild of a vdev has at most so much in memory.";
    RebuildScrubEnabled "zfs_rebuild_scrub_enabled" Switch 1 in SWITCH,
        "A scrub verifies all checksums when a sequential rebuild is done.";
    ArcMax "zfs_arc_max" Bytes 0 in (0, 1 << 50),
        "The cache holds at most so much; 0: half of the memory beyond 192M. It is less while the machine has little left.";
    CompressedArc "zfs_compressed_arc_enabled" Switch 1 in SWITCH,
        "The colder blocks of the cache are kept compressed, where that gains.";
    ArcColdPercent "zfs_arc_cold_percent" Percent 50 in (1, 90),
        "Blocks that are kept compressed have at most so much of the cache.";
    DioEnabled "zfs_dio_enabled" Switch 1 in SWITCH,
        "Requests go past the cache where files are open with O_DIRECT, as the property direct says; 0: none does.";
    WriteBehindMin "write_behind_min" Bytes 2097152 in (0, 1 << 50),
        "Once so much of a file was written in order, what follows goes to its devices before it is synced; 1P: never.";
    PrefetchDisable "zfs_prefetch_disable" Switch 0 in SWITCH,
        "Read nothing ahead: no blocks of readers in order, and no dnodes of names that are listed.";
    FetchMaxStreams "zfetch_max_streams" Count 8 in (0, 64),
        "So many readers of one file or volume are told apart; 0: none.";
    FetchMinDistance "zfetch_min_distance" Bytes 4194304 in (0, 1 << 40),
        "A reader is read ahead of up to this as fast as it reads on; further only while what it wants comes too late.";
    FetchMaxDistance "zfetch_max_distance" Bytes 67108864 in (0, 1 << 40),
        "A reader is read ahead of by at most this, and by at most an eighth of zfs_arc_max; 0: by nothing.";
    FetchMaxIndirectDistance "zfetch_max_idistance" Bytes 67108864 in (0, 1 << 40),
        "Of a reader's next bytes up to this, the indirect blocks are fetched.";
    TraverseIndirectPrefetchLimit "zfs_traverse_indirect_prefetch_limit" Count 32 in (0, 1 << 16),
        "Of what one block leads to, so many that lead on are read ahead of a walk: of a destroy, a scrub or a resilver; 0: none.";
    TraverseBytesMax "zfs_pd_bytes_max" Bytes 52428800 in (0, 1 << 40),
        "Ahead of one walk at most so much is in memory, or being read.";
    NoScrubPrefetch "zfs_no_scrub_prefetch" Switch 0 in SWITCH,
        "A scrub or resilver reads nothing ahead of its walk.";
    L2WriteMax "l2arc_write_max" Bytes 33554432 in (1 << 16, 1 << 40),
        "So much is written to each cache device in one go, every l2arc_feed_secs.";
    L2WriteBoost "l2arc_write_boost" Bytes 33554432 in (0, 1 << 40),
        "So much more, until the cache in memory was full for the first time.";
    L2Headroom "l2arc_headroom" Count 8 in (0, 1 << 20),
        "How far from its end each list of the cache is looked through for blocks to write, in l2arc_write_max; 0: to its end.";
    L2HeadroomBoost "l2arc_headroom_boost" Percent 200 in (100, 10_000),
        "l2arc_headroom is multiplied by this: blocks are smaller on a cache device than in memory.";
    L2FeedSecs "l2arc_feed_secs" Seconds 1 in (1, 86_400),
        "How often cache devices are written to.";
    L2FeedMinMs "l2arc_feed_min_ms" Milliseconds 200 in (1, 86_400_000),
        "How soon again, with l2arc_feed_again, after much was found to write.";
    L2FeedAgain "l2arc_feed_again" Switch 1 in SWITCH,
        "Write to cache devices sooner when much was found to write.";
    L2NoPrefetch "l2arc_noprefetch" Switch 1 in SWITCH,
        "Do not write blocks to cache devices that were read ahead and not asked for yet.";
    L2NoRw "l2arc_norw" Switch 0 in SWITCH,
        "Do not read from a cache device while it is written to.";
    L2ReadLimit "l2arc_read_limit_ms" Milliseconds 500 in (1, 3_600_000),
        "A hit on a cache device that takes longer is read from the pool, and the device is left alone for a while.";
    L2MfuOnly "l2arc_mfuonly" Count 0 in (0, 2),
        "1: only blocks that were used more than once go to cache devices; 2: of data, and all metadata; 0: all.";
    L2ExcludeSpecial "l2arc_exclude_special" Switch 0 in SWITCH,
        "Blocks that are on special and dedup devices do not go to cache devices.";
    L2MetaPercent "l2arc_meta_percent" Percent 33 in PERCENT,
        "What is remembered in memory of the blocks on cache devices takes at most so much of zfs_arc_max.";
    L2TrimAhead "l2arc_trim_ahead" Percent 0 in (0, 10_000),
        "So much of l2arc_write_max is trimmed on a cache device ahead of what is written; 0: nothing is trimmed.";
    L2RebuildEnabled "l2arc_rebuild_enabled" Switch 1 in SWITCH,
        "What cache devices hold is found again when a pool is imported.";
    L2RebuildMinSize "l2arc_rebuild_blocks_min_l2size" Bytes 1073741824 in ANY,
        "On smaller cache devices nothing is noted by which their blocks would be found again.";
    VdevMaxActive "zfs_vdev_max_active" Count 1000 in ACTIVE,
        "At most so many operations are at one device.";
    VdevSyncReadMinActive "zfs_vdev_sync_read_min_active" Count 10 in ACTIVE,
        "Reads that somebody waits for, of which so many go before other classes get more than their minimum.";
    VdevSyncReadMaxActive "zfs_vdev_sync_read_max_active" Count 10 in ACTIVE,
        "Reads that somebody waits for, at most at one device.";
    VdevSyncWriteMinActive "zfs_vdev_sync_write_min_active" Count 10 in ACTIVE,
        "Writes that somebody waits for, of which so many go before other classes get more than their minimum.";
    VdevSyncWriteMaxActive "zfs_vdev_sync_write_max_active" Count 10 in ACTIVE,
        "Writes that somebody waits for, at most at one device.";
    VdevAsyncReadMinActive "zfs_vdev_async_read_min_active" Count 1 in ACTIVE,
        "Prefetches, of which so many go before other classes get more than their minimum.";
    VdevAsyncReadMaxActive "zfs_vdev_async_read_max_active" Count 3 in ACTIVE,
        "Prefetches, at most at one device.";
    VdevAsyncWriteMinActive "zfs_vdev_async_write_min_active" Count 2 in ACTIVE,
        "Writes of transaction groups at one device, while little is dirty.";
    VdevAsyncWriteMaxActive "zfs_vdev_async_write_max_active" Count 10 in ACTIVE,
        "Writes of transaction groups at one device, while much is dirty, or a large file comes faster than it is written.";
    VdevAsyncWriteActiveMinDirtyPercent "zfs_vdev_async_write_active_min_dirty_percent" Percent 30 in PERCENT,
        "Up to so much dirty data, zfs_vdev_async_write_min_active holds.";
    VdevAsyncWriteActiveMaxDirtyPercent "zfs_vdev_async_write_active_max_dirty_percent" Percent 60 in PERCENT,
        "From so much dirty data on, zfs_vdev_async_write_max_active holds.";
    VdevScrubMinActive "zfs_vdev_scrub_min_active" Count 1 in ACTIVE,
        "Reads of a scrub at one device, while it has other work.";
    VdevScrubMaxActive "zfs_vdev_scrub_max_active" Count 3 in ACTIVE,
        "Reads of a scrub at one device that is idle otherwise.";
    VdevTrimMinActive "zfs_vdev_trim_min_active" Count 1 in ACTIVE,
        "Trims, of which so many go before other classes get more than their minimum.";
    VdevTrimMaxActive "zfs_vdev_trim_max_active" Count 2 in ACTIVE,
        "Trims, at most at one device.";
    VdevNiaDelay "zfs_vdev_nia_delay" Count 5 in (0, u32::MAX as u64),
        "A device is idle after so many operations of a scrub without others in between.";
    VdevNiaCredit "zfs_vdev_nia_credit" Count 5 in (0, u32::MAX as u64),
        "So many operations of a scrub go between others that somebody waits for.";
    VdevAggregationLimit "zfs_vdev_aggregation_limit" Bytes 1048576 in (0, LARGEST_BLOCK),
        "Neighbours are merged into one operation up to this size, on disks that turn.";
    VdevAggregationLimitNonRotating "zfs_vdev_aggregation_limit_non_rotating" Bytes 131072 in (0, LARGEST_BLOCK),
        "Neighbours are merged into one operation up to this size, on devices that do not seek.";
    VdevReadGapLimit "zfs_vdev_read_gap_limit" Bytes 32768 in (0, LARGEST_BLOCK),
        "Reads with no more than this between them are merged.";
    VdevMirrorRotatingInc "zfs_vdev_mirror_rotating_inc" Count 0 in (0, 1000),
        "What a read that follows the last one costs on a disk that turns, when a mirror chooses.";
    VdevMirrorRotatingSeekInc "zfs_vdev_mirror_rotating_seek_inc" Count 5 in (0, 1000),
        "What a read elsewhere costs on a disk that turns, when a mirror chooses; nearby it is half of this.";
    VdevMirrorRotatingSeekOffset "zfs_vdev_mirror_rotating_seek_offset" Bytes 1048576 in (0, 1 << 50),
        "How near is nearby.";
    VdevMirrorNonRotatingInc "zfs_vdev_mirror_non_rotating_inc" Count 0 in (0, 1000),
        "What a read that follows the last one costs on a device that does not seek, when a mirror chooses.";
    VdevMirrorNonRotatingSeekInc "zfs_vdev_mirror_non_rotating_seek_inc" Count 1 in (0, 1000),
        "What a read elsewhere costs on a device that does not seek, when a mirror chooses.";
    VdevReadSitOut "vdev_read_sit_out_secs" Seconds 600 in (0, 86_400),
        "So long reads avoid a device that was much slower than those beside it; then it is tried again. 0: they never do.";
    MultihostInterval "zfs_multihost_interval" Milliseconds 1000 in (100, 3_600_000),
        "How often a pool with multihost=on tells other hosts that it is in use, on each device.";
    MultihostFailIntervals "zfs_multihost_fail_intervals" Count 10 in (0, 65535),
        "A pool that could not tell so for so many intervals is suspended; 0: it goes on.";
    MultihostImportIntervals "zfs_multihost_import_intervals" Count 20 in (1, 1000),
        "For how many intervals a pool with multihost=on that another host had is watched before it is opened.";
    TrimExtentBytesMin "zfs_trim_extent_bytes_min" Bytes 32768 in (0, 1 << 40),
        "Free space in smaller pieces is not trimmed.";
    TrimTxgBatch "zfs_trim_txg_batch" Count 32 in (1, 1_000_000),
        "What autotrim trims together was freed in so many transaction groups.";
}

impl Tunable {
    /// The one of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<Tunable> {
        let found = Tunable::ALL.iter().copied().find(|t| t.name() == name);
        found.ok_or_else(|| Error::new(Kind::NotFound, format!("find tunable '{name}'")))
    }

    pub fn definition(self) -> &'static Definition {
        &Tunable::DEFINITIONS[self.index()]
    }

    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Its place in the table.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
