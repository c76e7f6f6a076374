//! Sets of features by the software that can open a pool with them (property `compatibility`).
//!
//! A set is another one and some features more. Lists of the same form in a file are read by [`features_of_list`].

use super::Feature;
use std::collections::BTreeSet;
use units::{Error, Result};

/// What a pool is created with unless asked otherwise: OpenZFS 2.1 and all later ones import it.
pub const DEFAULT_COMPATIBILITY: &str = "openzfs-2.1-linux";

struct Set {
    name: &'static str,
    /// A set listed earlier, or none.
    base: &'static str,
    adds: &'static str,
}

const fn set(name: &'static str, base: &'static str, adds: &'static str) -> Set {
    Set { name, base, adds }
}

#[rustfmt::skip]
static SETS: &[Set] = &[
    set("zol-0.6.1", "", "async_destroy empty_bpobj lz4_compress"),
    set("zol-0.6.4", "zol-0.6.1",
        "bookmarks embedded_data enabled_txg extensible_dataset hole_birth spacemap_histogram"),
    set("zol-0.6.5", "zol-0.6.4", "filesystem_limits large_blocks"),
    set("zol-0.7", "zol-0.6.5", "edonr large_dnode multi_vdev_crash_dump sha512 skein userobj_accounting"),
    set("zol-0.8", "zol-0.7",
        "allocation_classes bookmark_v2 device_removal encryption obsolete_counts project_quota resilver_defer \
         spacemap_v2 zpool_checkpoint"),
    set("openzfs-2.0-linux", "zol-0.8",
        "bookmark_written device_rebuild livelist log_spacemap redacted_datasets redaction_bookmarks zstd_compress"),
    set("openzfs-2.1-linux", "openzfs-2.0-linux", "draid"),
    set("openzfs-2.2", "openzfs-2.1-linux", "blake3 block_cloning head_errlog vdev_zaps_v2 zilsaxattr"),
    set("openzfs-2.3", "openzfs-2.2", "fast_dedup large_microzap longname raidz_expansion redaction_list_spill"),
    set("openzfs-2.4", "openzfs-2.3", "block_cloning_endian dynamic_gang_header physical_rewrite"),
    set("openzfs-2.0-freebsd", "zol-0.6.5",
        "allocation_classes bookmark_v2 bookmark_written device_rebuild device_removal encryption large_dnode livelist \
         log_spacemap multi_vdev_crash_dump obsolete_counts project_quota redacted_datasets redaction_bookmarks \
         resilver_defer sha512 skein spacemap_v2 userobj_accounting zpool_checkpoint zstd_compress"),
    set("openzfs-2.1-freebsd", "openzfs-2.0-freebsd", "draid"),
    set("compat-2018", "zol-0.6.5", ""),
    set("compat-2019", "compat-2018", "multi_vdev_crash_dump sha512 skein"),
    set("compat-2020", "compat-2019", ""),
    set("compat-2021", "compat-2020", "device_removal obsolete_counts spacemap_v2 zpool_checkpoint"),
    set("freebsd-11.0", "compat-2019", ""),
    set("freebsd-11.2", "compat-2019", "device_removal obsolete_counts zpool_checkpoint"),
    set("freebsd-11.3", "compat-2021", ""),
    set("freenas-9.10.2", "zol-0.6.5", "multi_vdev_crash_dump"),
    set("openzfsonosx-1.7.0", "compat-2019", "edonr"),
    set("openzfsonosx-1.8.1", "compat-2021", "edonr"),
    set("openzfsonosx-1.9.3", "zol-0.8", ""),
    set("grub2-2.06", "zol-0.6.1",
        "allocation_classes block_cloning device_rebuild embedded_data enabled_txg hole_birth log_spacemap \
         resilver_defer spacemap_histogram spacemap_v2 zpool_checkpoint"),
    set("grub2-2.12", "grub2-2.06",
        "bookmarks extensible_dataset filesystem_limits large_blocks livelist project_quota userobj_accounting \
         zilsaxattr"),
    // Other names of the same.
    set("2018", "compat-2018", ""),
    set("2019", "compat-2019", ""),
    set("2020", "compat-2020", ""),
    set("2021", "compat-2021", ""),
    set("freebsd-11.1", "freebsd-11.0", ""),
    set("freebsd-11.4", "freebsd-11.3", ""),
    set("freebsd-12.0", "freebsd-11.3", ""),
    set("freebsd-12.1", "freebsd-11.3", ""),
    set("freebsd-12.2", "freebsd-11.3", ""),
    set("freebsd-12.3", "freebsd-11.3", ""),
    set("freebsd-12.4", "freebsd-11.3", ""),
    set("freebsd-13.0", "openzfs-2.1-freebsd", ""),
    set("freebsd-13.1", "openzfs-2.1-freebsd", ""),
    set("freebsd-13.2", "openzfs-2.1-freebsd", ""),
    set("freenas-11.0", "freebsd-11.0", ""),
    set("freenas-11.1", "freebsd-11.0", ""),
    set("freenas-11.2", "freebsd-11.2", ""),
    set("freenas-11.3", "freebsd-11.3", ""),
    set("grub2", "grub2-2.12", ""),
    set("openzfs-2.2-freebsd", "openzfs-2.2", ""),
    set("openzfs-2.2-linux", "openzfs-2.2", ""),
    set("openzfs-2.3-freebsd", "openzfs-2.3", ""),
    set("openzfs-2.3-linux", "openzfs-2.3", ""),
    set("openzfs-2.4-freebsd", "openzfs-2.4", ""),
    set("openzfs-2.4-linux", "openzfs-2.4", ""),
    set("openzfsonosx-1.9.4", "openzfsonosx-1.9.3", ""),
    set("truenas-12.0", "openzfs-2.0-freebsd", ""),
    set("ubuntu-18.04", "zol-0.7", ""),
    set("ubuntu-20.04", "zol-0.8", ""),
    set("ubuntu-22.04", "openzfs-2.1-linux", ""),
];

/// The names that [`compatibility_set`] knows, in order of the table.
pub fn compatibility_names() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|set| set.name)
}

/// The features of one named set. `off` allows all, `legacy` none.
pub fn compatibility_set(name: &str) -> Option<BTreeSet<Feature>> {
    match name {
        "off" => return Some(Feature::all().collect()),
        "legacy" => return Some(BTreeSet::new()),
        _ => {}
    }
    let set = SETS.iter().find(|set| set.name == name)?;
    let mut features = if set.base.is_empty() { BTreeSet::new() } else { compatibility_set(set.base)? };
    features.extend(set.adds.split_whitespace().filter_map(Feature::by_name));
    Some(features)
}

/// The features named in the text of a compatibility file: separated by white space or commas, `#` starts a comment.
pub fn features_of_list(text: &str) -> Result<BTreeSet<Feature>> {
    text.lines()
        .map(|line| line.split_once('#').map_or(line, |(before, _)| before))
        .flat_map(|line| line.split([' ', '\t', ',']))
        .filter(|name| !name.is_empty())
        .map(|name| {
            Feature::by_name(name).ok_or_else(|| Error::invalid(format!("no feature is named '{name}'")))
        })
        .collect()
}
