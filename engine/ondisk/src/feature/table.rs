//! The table itself, in the order in which OpenZFS numbers features.

use super::{FeatureInfo, Support};

/// `flags` are letters: r read-only compatible, m needed for the MOS, a activated when enabled, d per dataset,
/// u left out of upgrades.
macro_rules! features {
    ($($feature:ident $guid:literal $name:literal $flags:literal [$($dependency:ident)*] $support:ident
       $description:literal;)*) => {
        /// A feature we know by name, whether or not we can do anything with it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $(#[doc = $description] $feature,)*
        }

        /// Every feature, one row each, in the order of [`Feature`].
        pub static FEATURES: &[FeatureInfo] = &[
            $(FeatureInfo {
                feature: Feature::$feature,
                guid: $guid,
                name: $name,
                read_only_compatible: has($flags, b'r'),
                mos: has($flags, b'm'),
                activate_on_enable: has($flags, b'a'),
                per_dataset: has($flags, b'd'),
                no_upgrade: has($flags, b'u'),
                dependencies: &[$(Feature::$dependency),*],
                description: $description,
                support: Support::$support,
            },)*
        ];
    };
}

const fn has(flags: &str, flag: u8) -> bool {
    let mut rest = flags.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == flag {
            return true;
        }
        rest = tail;
    }
    false
}

features! {
    AsyncDestroy "com.delphix:async_destroy" "async_destroy" "r" [] ReadWrite
        "Destroys datasets in the background.";
    EmptyBpobj "com.delphix:empty_bpobj" "empty_bpobj" "r" [] ReadWrite
        "Lets all empty block lists be one object, so that snapshots take less space.";
    Lz4Compress "org.illumos:lz4_compress" "lz4_compress" "a" [] ReadWrite
        "Compresses with LZ4.";
    MultiVdevCrashDump "com.joyent:multi_vdev_crash_dump" "multi_vdev_crash_dump" "" [] ReadWrite
        "Takes crash dumps into a volume on several vdevs.";
    SpacemapHistogram "com.delphix:spacemap_histogram" "spacemap_histogram" "r" [] ReadWrite
        "Keeps with each space map how its free space is fragmented.";
    EnabledTxg "com.delphix:enabled_txg" "enabled_txg" "r" [] ReadWrite
        "Remembers when each feature was enabled.";
    HoleBirth "com.delphix:hole_birth" "hole_birth" "ma" [EnabledTxg] ReadWrite
        "Remembers when holes were punched, so that incremental sends skip the others.";
    ExtensibleDataset "com.delphix:extensible_dataset" "extensible_dataset" "" [] ReadWrite
        "Lets datasets carry further fields by name; many features need it.";
    EmbeddedData "com.delphix:embedded_data" "embedded_data" "ma" [] ReadWrite
        "Stores what compresses to 112 bytes or less in the block pointer.";
    Bookmarks "com.delphix:bookmarks" "bookmarks" "r" [ExtensibleDataset] ReadWrite
        "Marks a snapshot's point in time, to send from after it is gone.";
    FilesystemLimits "com.joyent:filesystem_limits" "filesystem_limits" "r" [ExtensibleDataset] ReadWrite
        "Limits how many datasets and snapshots a subtree may have.";
    LargeBlocks "org.open-zfs:large_blocks" "large_blocks" "d" [ExtensibleDataset] ReadWrite
        "Blocks of more than 128K, up to 16M.";
    LargeDnode "org.zfsonlinux:large_dnode" "large_dnode" "d" [ExtensibleDataset] ReadWrite
        "Dnodes of more than 512 bytes, up to 16K.";
    Sha512 "org.illumos:sha512" "sha512" "d" [ExtensibleDataset] ReadWrite
        "Checksums with SHA-512/256.";
    Skein "org.illumos:skein" "skein" "d" [ExtensibleDataset] ReadWrite
        "Checksums with Skein-512-256, salted.";
    EdonR "org.illumos:edonr" "edonr" "d" [ExtensibleDataset] ReadWrite
        "Checksums with Edon-R, salted.";
    UserobjAccounting "org.zfsonlinux:userobj_accounting" "userobj_accounting" "rd" [ExtensibleDataset] ReadWrite
        "Counts the objects of each user and group.";
    Encryption "com.datto:encryption" "encryption" "d" [ExtensibleDataset BookmarkV2] ReadOnly
        "Encrypts datasets.";
    ProjectQuota "org.zfsonlinux:project_quota" "project_quota" "rd" [ExtensibleDataset] ReadWrite
        "Counts and limits the space and objects of projects.";
    DeviceRemoval "com.delphix:device_removal" "device_removal" "m" [] No
        "Removes a top-level vdev by moving what is on it.";
    ObsoleteCounts "com.delphix:obsolete_counts" "obsolete_counts" "r" [ExtensibleDataset DeviceRemoval] ReadOnly
        "Shrinks the map of a removed vdev as its blocks are freed.";
    PoolCheckpoint "com.delphix:zpool_checkpoint" "zpool_checkpoint" "r" [] ReadOnly
        "Keeps one earlier state of the whole pool to go back to.";
    SpacemapV2 "com.delphix:spacemap_v2" "spacemap_v2" "ra" [] ReadWrite
        "Writes long runs and vdev numbers into space maps.";
    AllocationClasses "org.zfsonlinux:allocation_classes" "allocation_classes" "r" [] ReadWrite
        "Vdevs set apart for metadata, small blocks or dedup tables.";
    ResilverDefer "com.datto:resilver_defer" "resilver_defer" "r" [] ReadWrite
        "Lets a new resilver wait for the running one.";
    BookmarkV2 "com.datto:bookmark_v2" "bookmark_v2" "" [ExtensibleDataset Bookmarks] ReadWrite
        "Bookmarks with more fields.";
    RedactionBookmarks "com.delphix:redaction_bookmarks" "redaction_bookmarks" ""
        [BookmarkV2 ExtensibleDataset Bookmarks] ReadOnly
        "Bookmarks that list what a redacted send leaves out.";
    RedactedDatasets "com.delphix:redacted_datasets" "redacted_datasets" "d" [ExtensibleDataset] ReadOnly
        "Datasets received from a redacted send, with blocks missing on purpose.";
    BookmarkWritten "com.delphix:bookmark_written" "bookmark_written" ""
        [BookmarkV2 ExtensibleDataset Bookmarks] ReadWrite
        "Tells how much was written since a bookmark.";
    LogSpacemap "com.delphix:log_spacemap" "log_spacemap" "r" [SpacemapV2] ReadWrite
        "Logs allocations of all metaslabs in one place and flushes them now and then.";
    Livelist "com.delphix:livelist" "livelist" "r" [ExtensibleDataset] ReadWrite
        "Lists what a clone allocated, so that destroying it is quick.";
    DeviceRebuild "org.openzfs:device_rebuild" "device_rebuild" "r" [] ReadWrite
        "Rebuilds mirrors and dRAID in the order of the disk.";
    ZstdCompress "org.freebsd:zstd_compress" "zstd_compress" "d" [ExtensibleDataset] ReadWrite
        "Compresses with Zstandard.";
    Draid "org.openzfs:draid" "draid" "m" [] No
        "Parity with spare space spread over all disks.";
    ZilSaXattr "org.openzfs:zilsaxattr" "zilsaxattr" "rd" [ExtensibleDataset] ReadWrite
        "Logs changes of extended attributes kept as system attributes.";
    HeadErrlog "com.delphix:head_errlog" "head_errlog" "a" [] ReadWrite
        "Keeps the error log by dataset, so that it can name files in snapshots.";
    Blake3 "org.openzfs:blake3" "blake3" "d" [ExtensibleDataset] ReadWrite
        "Checksums with BLAKE3, salted.";
    BlockCloning "com.fudosecurity:block_cloning" "block_cloning" "r" [] ReadOnly
        "Copies files by sharing their blocks.";
    VdevZapsV2 "com.klarasystems:vdev_zaps_v2" "vdev_zaps_v2" "m" [] ReadWrite
        "Gives the root of the vdev tree properties of its own.";
    RedactionListSpill "com.delphix:redaction_list_spill" "redaction_list_spill" "" [RedactionBookmarks] ReadOnly
        "Redaction against more snapshots than a bonus has room for.";
    RaidzExpansion "org.openzfs:raidz_expansion" "raidz_expansion" "m" [] No
        "Adds a disk to a raidz.";
    FastDedup "com.klarasystems:fast_dedup" "fast_dedup" "r" [] ReadOnly
        "Dedup tables with a log, smaller entries and a size limit.";
    Longname "org.zfsonlinux:longname" "longname" "d" [ExtensibleDataset] ReadWrite
        "File names of up to 1023 bytes.";
    LargeMicrozap "com.klarasystems:large_microzap" "large_microzap" "rd" [ExtensibleDataset LargeBlocks] ReadWrite
        "Micro ZAPs of more than 128K.";
    DynamicGangHeader "com.klarasystems:dynamic_gang_header" "dynamic_gang_header" "mu" [] No
        "Gang headers as large as the vdev's sector.";
    BlockCloningEndian "com.truenas:block_cloning_endian" "block_cloning_endian" "r" [] ReadOnly
        "Keeps the table of shared blocks in one byte order.";
    PhysicalRewrite "com.truenas:physical_rewrite" "physical_rewrite" "rd" [ExtensibleDataset] ReadOnly
        "Rewrites blocks without making them look changed to sends and snapshots.";
    DraidFailDomains "com.seagate:draid_failure_domains" "draid_failure_domains" "m" [Draid] No
        "Lays dRAID out so that it survives the loss of an enclosure.";
}
