//! Names under which the MOS and its parts keep things: keys of ZAPs and of configuration nvlists.
//!
//! The MOS has one object at a known place, the object directory; everything else is found from there by name.

use units::ObjectId;

/// The object directory: a ZAP, always this object.
pub const OBJECT_DIRECTORY: ObjectId = ObjectId(1);

/// Of the object directory.
pub mod directory {
    pub const ROOT_DATASET: &str = "root_dataset";
    pub const CONFIG: &str = "config";
    pub const FEATURES_FOR_READ: &str = "features_for_read";
    pub const FEATURES_FOR_WRITE: &str = "features_for_write";
    pub const FEATURE_DESCRIPTIONS: &str = "feature_descriptions";
    pub const FEATURE_ENABLED_TXG: &str = "feature_enabled_txg";
    /// Blocks freed in a txg whose sync could not yet record it.
    pub const SYNC_BPOBJ: &str = "sync_bplist";
    pub const FREE_BPOBJ: &str = "free_bpobj";
    pub const BPTREE: &str = "bptree_obj";
    pub const EMPTY_BPOBJ: &str = "empty_bpobj";
    /// Present: sizes are counted without parity.
    pub const DEFLATE: &str = "deflate";
    pub const CREATION_VERSION: &str = "creation_version";
    pub const HISTORY: &str = "history";
    pub const POOL_PROPERTIES: &str = "pool_props";
    pub const SPARES: &str = "spares";
    pub const L2CACHE: &str = "l2cache";
    pub const ERROR_LOG_SCRUB: &str = "errlog_scrub";
    pub const ERROR_LOG_LAST: &str = "errlog_last";
    pub const SCAN: &str = "scan";
    pub const ERROR_SCRUB: &str = "error_scrub";
    pub const LAST_SCRUBBED_TXG: &str = "last_scrubbed_txg";
    pub const TEMPORARY_HOLDS: &str = "tmp_userrefs";
    pub const DEDUP_STATISTICS: &str = "DDT-statistics";
    /// 32 bytes that salt checksums.
    pub const CHECKSUM_SALT: &str = "org.illumos:checksum_salt";
    pub const VDEV_ZAP_MAP: &str = "com.delphix:vdev_zap_map";
    pub const REMOVING: &str = "com.delphix:removing";
    pub const OBSOLETE_BPOBJ: &str = "com.delphix:obsolete_bpobj";
    pub const CONDENSING_INDIRECT: &str = "com.delphix:condensing_indirect";
    /// An uberblock, as words.
    pub const CHECKPOINT: &str = "com.delphix:zpool_checkpoint";
    /// A ZAP from txg to log space map.
    pub const LOG_SPACE_MAPS: &str = "com.delphix:log_spacemap_zap";
    pub const DELETED_CLONES: &str = "com.delphix:deleted_clones";
    /// Followed by the number of a vdev: its table of cloned blocks.
    pub const BLOCK_REFERENCES_PREFIX: &str = "com.fudosecurity:brt:vdev:";
    /// Followed by checksum, type and class: a dedup table.
    pub const DEDUP_PREFIX: &str = "DDT-";
}

/// Directories below the root that hold no dataset of the user's.
pub mod special_dir {
    pub const MOS: &str = "$MOS";
    pub const ORIGIN: &str = "$ORIGIN";
    pub const FREE: &str = "$FREE";
    pub const LEAK: &str = "$LEAK";
}

/// Of the ZAP a DSL directory object may itself be (feature `extensible_dataset`).
pub mod dir_field {
    pub const FILESYSTEM_COUNT: &str = "com.joyent:filesystem_count";
    pub const SNAPSHOT_COUNT: &str = "com.joyent:snapshot_count";
    pub const CRYPTO_KEY: &str = "com.datto:crypto_key_obj";
    pub const LIVELIST: &str = "com.delphix:livelist";
    pub const SNAPSHOTS_CHANGED: &str = "com.ixsystems:snapshots_changed";
}

/// Of the ZAP a DSL dataset object may itself be. Features that are per dataset are there too, by their guid.
pub mod dataset_field {
    pub const BOOKMARKS: &str = "com.delphix:bookmarks";
    pub const LARGE_DNODE: &str = "org.zfsonlinux:large_dnode";
    pub const REMAP_DEADLIST: &str = "com.delphix:remap_deadlist";
    pub const IVSET_GUID: &str = "com.datto:ivset_guid";
    pub const RESUME_FROM_GUID: &str = "com.delphix:resume_fromguid";
    pub const RESUME_TO_NAME: &str = "com.delphix:resume_toname";
    pub const RESUME_TO_GUID: &str = "com.delphix:resume_toguid";
    pub const RESUME_OBJECT: &str = "com.delphix:resume_object";
    pub const RESUME_OFFSET: &str = "com.delphix:resume_offset";
    pub const RESUME_BYTES: &str = "com.delphix:resume_bytes";
    pub const RESUME_LARGE_BLOCK: &str = "com.delphix:resume_largeblockok";
    pub const RESUME_EMBED: &str = "com.delphix:resume_embedok";
    pub const RESUME_COMPRESS: &str = "com.delphix:resume_compressok";
    pub const RESUME_RAW: &str = "com.datto:resume_rawok";
}

/// Of the ZAP of a wrapped key. We recognise keys; we do not unwrap them.
pub mod crypto_key {
    pub const SUITE: &str = "DSL_CRYPTO_SUITE";
    pub const GUID: &str = "DSL_CRYPTO_GUID";
    pub const IV: &str = "DSL_CRYPTO_IV";
    pub const MAC: &str = "DSL_CRYPTO_MAC";
    pub const MASTER_KEY: &str = "DSL_CRYPTO_MASTER_KEY_1";
    pub const HMAC_KEY: &str = "DSL_CRYPTO_HMAC_KEY_1";
    pub const ROOT_DIR: &str = "DSL_CRYPTO_ROOT_DDOBJ";
    pub const REFERENCES: &str = "DSL_CRYPTO_REFCOUNT";
    pub const VERSION: &str = "DSL_CRYPTO_VERSION";
}

/// Of the ZAP of a top-level vdev.
pub mod top_vdev {
    /// One word for each metaslab: the txg up to which its space map is complete.
    pub const METASLAB_UNFLUSHED_TXGS: &str = "com.delphix:ms_unflushed_phys_txgs";
    pub const CHECKPOINT_SPACE_MAP: &str = "com.delphix:pool_checkpoint_sm";
    pub const OBSOLETE_SPACE_MAP: &str = "com.delphix:indirect_obsolete_sm";
    pub const OBSOLETE_COUNTS_ARE_PRECISE: &str = "com.delphix:obsolete_counts_are_precise";
    pub const REBUILD: &str = "org.openzfs:vdev_rebuild";
    /// "log", "special" or "dedup".
    pub const ALLOCATION_BIAS: &str = "org.zfsonlinux:allocation_bias";
    pub const RAIDZ_EXPAND_STATE: &str = "org.openzfs:raidz_expand_state";
    pub const RAIDZ_EXPAND_START_TIME: &str = "org.openzfs:raidz_expand_start_time";
    pub const RAIDZ_EXPAND_END_TIME: &str = "org.openzfs:raidz_expand_end_time";
    pub const RAIDZ_EXPAND_BYTES_COPIED: &str = "org.openzfs:raidz_expand_bytes_copied";
}

/// Of the ZAP of a leaf vdev.
pub mod leaf_vdev {
    pub const INITIALIZE_OFFSET: &str = "com.delphix:next_offset_to_initialize";
    pub const INITIALIZE_STATE: &str = "com.delphix:vdev_initialize_state";
    pub const INITIALIZE_TIME: &str = "com.delphix:vdev_initialize_action_time";
    pub const TRIM_OFFSET: &str = "org.zfsonlinux:next_offset_to_trim";
    pub const TRIM_STATE: &str = "org.zfsonlinux:vdev_trim_state";
    pub const TRIM_TIME: &str = "org.zfsonlinux:vdev_trim_action_time";
    pub const TRIM_RATE: &str = "org.zfsonlinux:vdev_trim_rate";
    pub const TRIM_PARTIAL: &str = "org.zfsonlinux:vdev_trim_partial";
    pub const TRIM_SECURE: &str = "org.zfsonlinux:vdev_trim_secure";
}

/// Of the configuration nvlist, in labels and in the MOS.
pub mod config {
    pub const VERSION: &str = "version";
    pub const NAME: &str = "name";
    pub const STATE: &str = "state";
    pub const TXG: &str = "txg";
    pub const POOL_GUID: &str = "pool_guid";
    pub const ERRATA: &str = "errata";
    pub const HOST_ID: &str = "hostid";
    pub const HOST_NAME: &str = "hostname";
    pub const COMMENT: &str = "comment";
    pub const COMPATIBILITY: &str = "compatibility";
    pub const TOP_GUID: &str = "top_guid";
    pub const GUID: &str = "guid";
    pub const VDEV_CHILDREN: &str = "vdev_children";
    pub const VDEV_TREE: &str = "vdev_tree";
    pub const FEATURES_FOR_READ: &str = "features_for_read";
    pub const HAS_PER_VDEV_ZAPS: &str = "com.delphix:has_per_vdev_zaps";
    pub const SPLIT: &str = "splitcfg";
    pub const SPARES: &str = "spares";
    pub const L2CACHE: &str = "l2cache";
}

/// Of a node of the vdev tree in a configuration.
pub mod vdev {
    pub const TYPE: &str = "type";
    pub const ID: &str = "id";
    pub const GUID: &str = "guid";
    pub const PATH: &str = "path";
    pub const DEVICE_ID: &str = "devid";
    pub const PHYSICAL_PATH: &str = "phys_path";
    pub const ENCLOSURE_PATH: &str = "vdev_enc_sysfs_path";
    pub const WHOLE_DISK: &str = "whole_disk";
    pub const CHILDREN: &str = "children";
    pub const PARITY: &str = "nparity";
    pub const METASLAB_ARRAY: &str = "metaslab_array";
    pub const METASLAB_SHIFT: &str = "metaslab_shift";
    pub const ASHIFT: &str = "ashift";
    pub const ASIZE: &str = "asize";
    pub const MIN_ALLOC: &str = "min_alloc";
    pub const MAX_ALLOC: &str = "max_alloc";
    pub const IS_LOG: &str = "is_log";
    pub const IS_SPARE: &str = "is_spare";
    pub const IS_HOLE: &str = "is_hole";
    pub const ALLOCATION_BIAS: &str = "alloc_bias";
    pub const CREATE_TXG: &str = "create_txg";
    pub const DTL: &str = "DTL";
    pub const OFFLINE: &str = "offline";
    pub const FAULTED: &str = "faulted";
    pub const DEGRADED: &str = "degraded";
    pub const REMOVED: &str = "removed";
    pub const NOT_PRESENT: &str = "not_present";
    pub const REMOVING: &str = "removing";
    pub const NON_ALLOCATING: &str = "non_allocating";
    pub const RESILVER_TXG: &str = "resilver_txg";
    pub const REBUILD_TXG: &str = "rebuild_txg";
    pub const RESILVER_DEFER: &str = "com.datto:resilver_defer";
    pub const SPLIT_ORIGINAL_GUID: &str = "orig_guid";
    pub const ROOT_ZAP: &str = "com.klarasystems:vdev_zap_root";
    pub const TOP_ZAP: &str = "com.delphix:vdev_zap_top";
    pub const LEAF_ZAP: &str = "com.delphix:vdev_zap_leaf";
    pub const INDIRECT_OBJECT: &str = "com.delphix:indirect_object";
    pub const INDIRECT_BIRTHS: &str = "com.delphix:indirect_births";
    pub const PREVIOUS_INDIRECT: &str = "com.delphix:prev_indirect_vdev";
    pub const RAIDZ_EXPANDING: &str = "raidz_expanding";
    pub const RAIDZ_EXPAND_TXGS: &str = "raidz_expand_txgs";
    pub const DRAID_DATA: &str = "draid_ndata";
    pub const DRAID_SPARES: &str = "draid_nspares";
    pub const DRAID_GROUPS: &str = "draid_ngroups";
}

/// Values of [`vdev::TYPE`].
pub mod vdev_type {
    pub const ROOT: &str = "root";
    pub const MIRROR: &str = "mirror";
    pub const REPLACING: &str = "replacing";
    pub const RAIDZ: &str = "raidz";
    pub const DRAID: &str = "draid";
    pub const DRAID_SPARE: &str = "dspare";
    pub const DISK: &str = "disk";
    pub const FILE: &str = "file";
    pub const MISSING: &str = "missing";
    pub const HOLE: &str = "hole";
    pub const SPARE: &str = "spare";
    pub const LOG: &str = "log";
    pub const L2CACHE: &str = "l2cache";
    pub const INDIRECT: &str = "indirect";
}

/// The objects of a volume.
pub mod zvol {
    use units::ObjectId;

    /// The data.
    pub const DATA: ObjectId = ObjectId(1);
    /// A ZAP with the key [`SIZE`].
    pub const PROPERTIES: ObjectId = ObjectId(2);
    pub const SIZE: &str = "size";
}
