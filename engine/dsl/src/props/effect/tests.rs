use super::*;
use crate::pool_props::{self, PoolSetting};
use crate::props::{Limits, PropName, TABLE, Types, When, parse_setting};
use std::path::Path;

/// Where each settable property of datasets acts: a file of this repository, and what in it follows the property.
/// "refused" stands for those that may not be set at all but to their default, wherever that is checked.
#[rustfmt::skip]
const PLACES: &[(&str, &str, &str)] = &[
    ("quota", "engine/dsl/src/set.rs", "Prop::Quota"),
    ("reservation", "engine/dsl/src/set.rs", "Prop::Reservation"),
    ("volsize", "control/appliance/src/datasets/set.rs", "Prop::VolSize"),
    ("volblocksize", "control/appliance/src/datasets/set.rs", "change_block_size"),
    ("recordsize", "engine/pool/src/file_systems.rs", "record_size"),
    ("mountpoint", "control/appliance/src/mounts/plan.rs", "Prop::MountPoint"),
    ("checksum", "engine/dmu/src/policy.rs", "self.checksum"),
    ("compression", "engine/dmu/src/policy.rs", "self.compression"),
    ("atime", "engine/pool/src/file_systems.rs", "Prop::Atime"),
    ("devices", "control/appliance/src/mounts/plan.rs", "Prop::Devices"),
    ("exec", "control/appliance/src/mounts/plan.rs", "Prop::Exec"),
    ("setuid", "control/appliance/src/mounts/plan.rs", "Prop::Setuid"),
    ("readonly", "engine/zvol/src/volume.rs", "policy().read_only"),
    ("snapdir", "control/appliance/src/mounts/plan.rs", "Prop::SnapDir"),
    ("aclmode", "engine/pool/src/file_systems.rs", "Prop::AclMode"),
    ("aclinherit", "engine/pool/src/file_systems.rs", "Prop::AclInherit"),
    ("canmount", "control/appliance/src/mounts/plan.rs", "Prop::CanMount"),
    ("xattr", "engine/pool/src/file_systems.rs", "Prop::Xattr"),
    ("copies", "engine/dmu/src/policy.rs", "self.copies"),
    ("version", "engine/dsl/src/set.rs", "Prop::Version"),
    ("utf8only", "control/appliance/src/datasets.rs", "Prop::Utf8Only"),
    ("normalization", "control/appliance/src/datasets.rs", "Prop::Normalization"),
    ("casesensitivity", "control/appliance/src/datasets.rs", "Prop::CaseSensitivity"),
    ("refquota", "engine/dsl/src/dsl/dataset.rs", "Prop::RefQuota"),
    ("refreservation", "engine/dsl/src/set.rs", "Prop::RefReservation"),
    ("primarycache", "engine/dmu/src/blocks.rs", "primary_cache.takes"),
    ("secondarycache", "engine/dmu/src/blocks.rs", "policy.secondary_cache"),
    ("prefetch", "engine/dmu/src/blocks.rs", "policy.prefetch"),
    ("direct", "engine/dmu/src/blocks.rs", "policy.direct"),
    ("logbias", "engine/zil/src/log.rs", "logbias_throughput"),
    ("dedup", "engine/dsl/src/create.rs", "'dedup' cannot be switched on"),
    ("sync", "engine/dsl/src/dsl/dataset.rs", "policy.sync"),
    ("dnodesize", "engine/pool/src/file_systems.rs", "dnode_size"),
    ("filesystem_limit", "engine/dsl/src/create.rs", "Prop::FilesystemLimit"),
    ("snapshot_limit", "engine/dsl/src/create.rs", "Prop::SnapshotLimit"),
    ("acltype", "engine/pool/src/file_systems.rs", "Prop::AclType"),
    ("relatime", "engine/pool/src/file_systems.rs", "Prop::Relatime"),
    ("redundant_metadata", "engine/dmu/src/policy.rs", "self.redundant_metadata"),
    ("special_small_blocks", "engine/zio/src/write.rs", "spec.special_up_to"),
    ("overlay", "control/appliance/src/mounts/plan.rs", "Prop::Overlay"),
    ("encryption", "engine/dsl/src/create.rs", "'encryption' cannot be switched on"),
    ("keylocation", "engine/dsl/src/props/validate.rs", "check_keylocation"),
    ("keyformat", "engine/dsl/src/props/validate.rs", "fn complete_at_create"),
    ("pbkdf2iters", "engine/dsl/src/props/validate.rs", "Prop::Pbkdf2Iters"),
    ("pbkdf2salt", "engine/dsl/src/props/validate.rs", "fn complete_at_create"),
    ("longname", "engine/pool/src/file_systems.rs", "Prop::LongName"),
    ("defaultuserquota", "engine/pool/src/file_systems.rs", "Prop::DefaultUserQuota"),
    ("defaultgroupquota", "engine/pool/src/file_systems.rs", "Prop::DefaultGroupQuota"),
    ("defaultprojectquota", "engine/pool/src/file_systems.rs", "Prop::DefaultProjectQuota"),
    ("defaultuserobjquota", "engine/pool/src/file_systems.rs", "Prop::DefaultUserObjQuota"),
    ("defaultgroupobjquota", "engine/pool/src/file_systems.rs", "Prop::DefaultGroupObjQuota"),
    ("defaultprojectobjquota", "engine/pool/src/file_systems.rs", "Prop::DefaultProjectObjQuota"),
];

/// As [`PLACES`], of pools.
#[rustfmt::skip]
const PLACES_OF_POOLS: &[(&str, &str, &str)] = &[
    ("altroot", "control/appliance/src/mounts/plan.rs", "altroot"),
    ("cachefile", "control/appliance/src/pools/set.rs", "PoolProp::CacheFile"),
    ("version", "engine/pool/src/properties.rs", "PoolProp::Version"),
    // For boot loaders, which read it from the pool.
    ("bootfs", "engine/pool/src/properties.rs", "set_bootfs"),
    ("failmode", "engine/pool/src/properties.rs", "PoolProp"),
    ("readonly", "control/appliance/src/pools/import.rs", "PoolProp::ReadOnly"),
    ("ashift", "control/appliance/src/pools/add.rs", "PoolProp::Ashift"),
    ("comment", "engine/pool/src/properties.rs", "PoolProp::Comment"),
    ("multihost", "engine/pool/src/multihost.rs", "PoolProp::MultiHost"),
    ("autoreplace", "engine/pool/src/device_watch.rs", "PoolProp::AutoReplace"),
    ("autoexpand", "engine/pool/src/device_watch.rs", "PoolProp::AutoExpand"),
    ("autotrim", "engine/pool/src/autotrim.rs", "PoolProp::AutoTrim"),
    ("compatibility", "engine/pool/src/properties.rs", "PoolProp::Compatibility"),
];

#[allow(clippy::disallowed_methods)] // it reads the sources, not a pool
fn check_place((name, file, token): (&str, &str, &str)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {}: {e}", path.display()));
    assert!(text.contains(token), "{name}: nothing in {file} follows it ({token})");
}

/// `autotrim`, `primarycache`, `readonly` of volumes and others were accepted, shown, and nothing followed them.
#[test]
fn each_settable_property_acts_in_a_place_that_is_there_or_is_said_to_have_no_effect() {
    for (i, row) in TABLE.iter().enumerate() {
        let is_settable = !row.setting.is_readonly() || row.setting.is_once();
        let place = PLACES.iter().find(|place| place.0 == row.name);
        let acts = is_settable && Prop::ALL[i].effect() == Effect::Acts;
        assert_eq!(place.is_some(), acts, "{}: {:?}", row.name, Prop::ALL[i].effect());
        place.into_iter().for_each(|place| check_place(*place));
    }
    for (i, row) in pool_props::TABLE.iter().enumerate() {
        let place = PLACES_OF_POOLS.iter().find(|place| place.0 == row.name);
        let acts = !row.setting.is_readonly() && PoolProp::ALL[i].effect() == Effect::Acts;
        assert_eq!(place.is_some(), acts, "{}", row.name);
        place.into_iter().for_each(|place| check_place(*place));
    }
}

#[test]
fn what_would_never_act_is_refused_and_its_default_is_not() {
    let set = |name, text, types| parse_setting(name, text, types, When::Later, &Limits::default());
    for (name, text, default) in [
        ("nbmand", "on", "off"),
        ("vscan", "on", "off"),
        ("zoned", "on", "off"),
        ("context", "system_u:object_r:x", "none"),
    ] {
        let error = set(name, text, Types::FILESYSTEM).unwrap_err().to_string();
        assert!(error.contains(&format!("'{name}' has no effect here")), "{error}");
        assert!(error.contains(&format!("it stays '{default}'")), "{error}");
        set(name, default, Types::FILESYSTEM).unwrap();
    }
    assert!(
        set("volmode", "none", Types::VOLUME).is_err() && set("volmode", "default", Types::VOLUME).is_ok()
    );
    for later in ["sharenfs", "sharesmb"] {
        let (name, _) = set(later, "off", Types::FILESYSTEM).unwrap();
        assert!(has_no_effect(name.as_str()), "{later} is kept, and shown so");
    }
    let of_pool = |name, text| pool_props::parse_setting(name, text, pool_props::When::Later);
    for (name, text, default) in [("delegation", "off", "on"), ("listsnapshots", "on", "off")] {
        let error = of_pool(name, text).unwrap_err().to_string();
        assert!(error.contains("has no effect here"), "{error}");
        assert!(matches!(of_pool(name, default).unwrap(), PoolSetting::Native(..)));
    }
    assert!(!has_no_effect("prefetch") && !has_no_effect("direct"));
    assert!(
        set("direct", "always", Types::FILESYSTEM).is_ok() && set("direct", "always", Types::VOLUME).is_err()
    );
    assert!(!has_no_effect("compression") && !has_no_effect("autotrim") && !has_no_effect("a:b"));
    assert_eq!(
        set("primarycache", "metadata", Types::VOLUME).unwrap().0,
        PropName::Native(Prop::PrimaryCache)
    );
}
