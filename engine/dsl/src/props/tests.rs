use ondisk::Feature;
use units::{Checksum, Compression, ZstdLevel};

use super::effective::{self, Chain, Change, Level, PropMap};
use super::write::{PoolCan, WritePolicy, compression, dedup, feature_of_checksum};
use super::*;

const FS: Types = Types::FILESYSTEM;
const VOL: Types = Types::VOLUME;

fn set(name: &str, text: &str, types: Types) -> Result<Value> {
    parse_setting(name, text, types, When::Later, &Limits::default()).map(|(_, value)| value)
}

fn refusal(name: &str, text: &str, types: Types) -> String {
    set(name, text, types).unwrap_err().to_string()
}

#[test]
fn the_table_has_every_native_property_once() {
    assert_eq!(Prop::ALL.len(), TABLE.len());
    for (i, row) in TABLE.iter().enumerate() {
        assert_eq!(Prop::by_name(row.name), Some(Prop::ALL[i]), "{}", row.name);
        assert!(!row.listed || !row.values.is_empty(), "{} needs words for its values", row.name);
        if let Kind::Index { names, default } = row.kind {
            let default_has_a_name = names.iter().any(|(_, code)| *code == default);
            assert!(default_has_a_name || row.name == "version", "{}", row.name);
        }
    }
    let settable = |setting| TABLE.iter().filter(|r| r.setting == setting && !r.values.is_empty()).count();
    assert_eq!(settable(Setting::Inherited), 37);
    assert_eq!(settable(Setting::Local), 21);
    assert_eq!(settable(Setting::Once) + settable(Setting::OnceInherited), 7);
    assert_eq!(settable(Setting::ReadOnly), 30);
}

/// The words of messages and manuals, and what a pool must have, follow from the rows of `units`.
#[test]
fn checksums_are_listed_and_name_their_features() {
    let listed = "on | off | fletcher2 | fletcher4 | sha256 | sha512 | skein | edonr | blake3";
    assert_eq!(TABLE[Prop::Checksum as usize].values, listed);
    for (code, feature) in [
        (1, None),
        (7, None),
        (11, Some(Feature::Sha512)),
        (12, Some(Feature::Skein)),
        (13, Some(Feature::EdonR)),
        (14, Some(Feature::Blake3)),
        (u64::MAX, None),
    ] {
        assert_eq!(feature_of_checksum(code), feature, "{code}");
    }
    for row in units::CHECKSUMS.iter().filter(|row| row.feature.is_some()) {
        assert!(feature_of_checksum(row.kind as u64).is_some(), "{}: no such feature", row.name);
    }
}

#[test]
fn columns_in_lower_case_are_aliases() {
    for (alias, prop) in [
        ("avail", Prop::Available),
        ("refer", Prop::Referenced),
        ("recsize", Prop::RecordSize),
        ("compress", Prop::Compression),
        ("volblock", Prop::VolBlockSize),
        ("refreserv", Prop::RefReservation),
        ("rdonly", Prop::ReadOnly),
    ] {
        assert_eq!(Prop::by_name(alias), Some(prop), "{alias}");
    }
    assert_eq!(Prop::by_name("AVAIL"), None);
    assert_eq!(Prop::by_name("nonsense"), None);
}

/// The codes are on disk in every pool: they are compared with numbers from the format, not with the tables.
#[test]
fn values_have_the_codes_of_the_format() {
    for (name, text, code) in [
        ("compression", "on", 1),
        ("compression", "off", 2),
        ("compression", "lzjb", 3),
        ("compression", "gzip", 10),
        ("compression", "gzip-1", 5),
        ("compression", "gzip-9", 13),
        ("compression", "zle", 14),
        ("compression", "lz4", 15),
        ("compression", "zstd", 16),
        ("compression", "zstd-3", 16 + 3 * 128),
        ("compression", "zstd-19", 16 + 19 * 128),
        ("compression", "zstd-fast", 16 + 103 * 128),
        ("compression", "zstd-fast-1", 16 + 103 * 128),
        ("compression", "zstd-fast-10", 16 + 112 * 128),
        ("compression", "zstd-fast-20", 16 + 113 * 128),
        ("compression", "zstd-fast-1000", 16 + 123 * 128),
        ("checksum", "on", 1),
        ("checksum", "fletcher4", 7),
        ("checksum", "sha256", 8),
        ("checksum", "sha512", 11),
        ("checksum", "blake3", 14),
        ("dedup", "verify", 257),
        ("dedup", "skein,verify", 268),
        ("logbias", "throughput", 1),
        ("primarycache", "metadata", 1),
        ("sync", "disabled", 2),
        ("redundant_metadata", "most", 1),
        ("copies", "3", 3),
        ("reservation", "none", 0),
        ("snapshot_limit", "none", u64::MAX),
        ("snapshot_limit", "10", 10),
        ("volsize", "1G", 1 << 30),
        ("refreservation", "auto", u64::MAX),
    ] {
        assert_eq!(set(name, text, VOL).unwrap(), Value::Number(code), "{name}={text}");
    }
    for (name, text, code) in [
        ("xattr", "sa", 2),
        ("xattr", "dir", 1),
        ("canmount", "noauto", 2),
        ("aclinherit", "secure", 4),
        ("acltype", "posixacl", 1),
        ("dnodesize", "16k", 16384),
        ("version", "current", 5),
        ("recordsize", "1M", 1 << 20),
        ("quota", "1.5G", 3 << 29),
    ] {
        assert_eq!(set(name, text, FS).unwrap(), Value::Number(code), "{name}={text}");
    }
}

#[test]
fn what_is_read_is_shown_again() {
    for row in TABLE {
        let Kind::Index { names, .. } = row.kind else { continue };
        for (name, code) in names {
            let shown = show_value(row, &Value::Number(*code), false);
            assert_eq!(names.iter().find(|(n, _)| *n == shown).map(|(_, c)| *c), Some(*code), "{name}");
        }
    }
    let show = |prop: Prop, n, exact| show_value(prop.row(), &Value::Number(n), exact);
    assert_eq!(show(Prop::Compression, 10, false), "gzip");
    assert_eq!(show(Prop::Compression, 16 + 3 * 128, false), "zstd-3");
    assert_eq!(show(Prop::Xattr, 2, false), "on");
    assert_eq!(show(Prop::Quota, 0, false), "none");
    assert_eq!(show(Prop::Quota, 0, true), "0");
    assert_eq!(show(Prop::Used, 0, false), "0B");
    assert_eq!(show(Prop::Written, 0, false), "0");
    assert_eq!(show(Prop::RecordSize, 512, false), "512");
    assert_eq!(show(Prop::Used, 98304, false), "96K");
    assert_eq!(show(Prop::Used, 98304, true), "98304");
    assert_eq!(show(Prop::CompressRatio, 123, false), "1.23x");
    assert_eq!(show(Prop::CompressRatio, 100, true), "1.00");
    assert_eq!(show(Prop::SnapshotLimit, u64::MAX, true), "none");
    assert_eq!(show(Prop::Guid, 9_999_999, false), "9999999");
    assert_eq!(show(Prop::Mounted, 0, false), "no");
    assert_eq!(show(Prop::Creation, 0, false), "Thu Jan  1  0:00 1970");
    assert_eq!(show(Prop::Creation, 1_795_214_243, false), "Fri Nov 20 22:37 2026");
    assert_eq!(show(Prop::SnapshotsChanged, 951_782_400, false), "Tue Feb 29  0:00:00 2000");
}

#[test]
fn a_refusal_says_what_is_allowed() {
    for (name, text, types, said) in [
        ("sync", "maybe", VOL, "'sync' must be one of 'standard | always | disabled'"),
        ("recordsize", "3K", FS, "'recordsize' must be power of 2 from 512B to 16M"),
        ("recordsize", "256", FS, "'recordsize' must be power of 2 from 512B to 16M"),
        ("recordsize", "32M", FS, "'recordsize' must be power of 2 from 512B to 16M"),
        ("recordsize", "x", FS, "bad value 'x' for 'recordsize': a size starts with a number, as in 16K"),
        ("used", "1", FS, "'used' is readonly"),
        ("volblocksize", "8K", VOL, "'volblocksize' is readonly"),
        ("volsize", "1G", FS, "'volsize' does not apply to datasets of this type"),
        ("volsize", "0", VOL, "'volsize' cannot be zero"),
        ("quota", "0", FS, "use 'none' to disable 'quota'"),
        ("refreservation", "auto", FS, "'refreservation=auto' is only allowed on volumes"),
        ("reservation", "auto", FS, "'auto' is an invalid value for 'reservation'"),
        ("mountpoint", "x", FS, "'mountpoint' must be an absolute path, 'none', or 'legacy'"),
        ("nonsense", "x", FS, "invalid property 'nonsense'"),
        ("written@s", "x", FS, "'written@s' is readonly"),
        ("userused@0", "x", FS, "'userused@0' is readonly"),
        ("keylocation", "prompt", FS, "keylocation must be 'none' for unencrypted datasets"),
        ("compression", "lz4", Types::SNAPSHOT, "this property can not be modified for snapshots"),
    ] {
        assert_eq!(refusal(name, text, types), said);
    }
    assert!(refusal("keylocation", "ftp://x", FS).starts_with("invalid keylocation"));
}

#[test]
fn the_pool_and_the_dataset_set_further_limits() {
    let limits =
        Limits { max_block_size: 128 << 10, volblocksize: Some(16384), zpl_version: 5, encrypted: true };
    let refused =
        |name, text, types| parse_setting(name, text, types, When::Later, &limits).unwrap_err().to_string();
    let larger =
        "; for up to 16M the pool needs a deferred update: zpool set feature@large_blocks=enabled POOL";
    assert_eq!(
        refused("recordsize", "1M", FS),
        format!("'recordsize' must be power of 2 from 512B to 128K{larger}")
    );
    assert_eq!(refused("volsize", "40K", VOL), "'volsize' must be a multiple of volume block size (16K)");
    assert_eq!(refused("version", "4", FS), "Can not downgrade; already at version 5");
    assert_eq!(refused("copies", "3", FS), "encrypted datasets cannot have 3 copies");
    let once = parse_setting("volblocksize", "64K", VOL, When::Create, &limits).unwrap();
    assert_eq!(once, (PropName::Native(Prop::VolBlockSize), Value::Number(65536)));
}

#[test]
fn user_properties_are_any_name_with_a_colon() {
    let at_limit = "v".repeat(user::MAX_VALUE);
    assert_eq!(set("org.example:note", &at_limit, FS).unwrap(), Value::Text(at_limit.clone()));
    assert!(set("org.example:note", "ok", Types::SNAPSHOT).is_ok());
    assert!(set("org.example:note", &(at_limit + "v"), FS).is_err());
    assert!(set(&format!("a:{}", "b".repeat(253)), "x", FS).is_ok());
    assert!(set(&format!("a:{}", "b".repeat(254)), "x", FS).is_err());
    for bad in ["org.example", "A:b", "a b:c", "a:b$recvd", "ü:x"] {
        assert!(set(bad, "x", FS).is_err(), "{bad}");
    }
}

#[test]
fn normalized_names_must_be_unicode() {
    let complete = |given: &[(Prop, u64)]| {
        let mut given: Vec<_> =
            given.iter().map(|(p, n)| (PropName::Native(*p), Value::Number(*n))).collect();
        complete_at_create(&mut given).map(|()| given.len())
    };
    assert_eq!(complete(&[(Prop::Normalization, 0x10)]).unwrap(), 2);
    assert_eq!(complete(&[(Prop::Utf8Only, 0)]).unwrap(), 2);
    assert_eq!(complete(&[(Prop::Utf8Only, 1)]).unwrap(), 1);
    assert!(complete(&[(Prop::Normalization, 0x10), (Prop::Utf8Only, 0)]).is_err());
}

fn map(entries: &[(&str, u64)]) -> PropMap {
    entries.iter().map(|(k, v)| ((*k).to_string(), Value::Number(*v))).collect()
}

fn chain<'a>(dirs: &[(&'a str, &'a PropMap)]) -> Chain<'a> {
    Chain { snapshot: None, dirs: dirs.iter().map(|(name, entries)| Level { name, entries }).collect() }
}

#[test]
fn the_nearest_value_is_in_force() {
    let (pool, a, b) = (map(&[("compression", 15), ("quota", 7)]), map(&[("sync", 1)]), map(&[]));
    let chain = chain(&[("t/a/b", &b), ("t/a", &a), ("t", &pool)]);
    let get = |prop| chain.resolve(&PropName::Native(prop)).unwrap();
    assert_eq!(get(Prop::Compression), (Value::Number(15), Source::Inherited("t".into())));
    assert_eq!(get(Prop::Sync), (Value::Number(1), Source::Inherited("t/a".into())));
    assert_eq!(get(Prop::Quota), (Value::Number(0), Source::Default), "quotas are not inherited");
    assert_eq!(get(Prop::Atime), (Value::Number(1), Source::Default));
    assert_eq!(chain.resolve(&PropName::User("a:b".into())), None);
}

#[test]
fn a_received_value_counts_until_something_is_set_or_inherited_over_it() {
    let pool = map(&[("compression", 2)]);
    let mut entries = map(&[("compression$recvd", 15), ("$hasrecvd", 0)]);
    let name = PropName::Native(Prop::Compression);
    let now = |entries: &PropMap| chain(&[("t/a", entries), ("t", &pool)]).resolve(&name).unwrap();
    assert_eq!(now(&entries), (Value::Number(15), Source::Received));
    effective::apply(&mut entries, &effective::plan_set(&name, &Value::Number(14)));
    assert_eq!(now(&entries), (Value::Number(14), Source::Local));
    effective::apply(&mut entries, &effective::plan_inherit(&name, false, true));
    assert_eq!(now(&entries), (Value::Number(2), Source::Inherited("t".into())));
    effective::apply(&mut entries, &effective::plan_inherit(&name, true, true));
    assert_eq!(now(&entries), (Value::Number(15), Source::Received));
}

#[test]
fn values_that_old_programs_do_not_know_are_hidden_from_them() {
    let name = PropName::Native(Prop::RedundantMetadata);
    let changes = effective::plan_set(&name, &Value::Number(3));
    assert!(changes.contains(&Change::Put("redundant_metadata".into(), Value::Number(0))));
    let mut entries = PropMap::new();
    effective::apply(&mut entries, &changes);
    assert_eq!(chain(&[("t", &entries)]).resolve(&name), Some((Value::Number(3), Source::Local)));
    effective::apply(&mut entries, &effective::plan_set(&name, &Value::Number(1)));
    assert_eq!(entries, map(&[("redundant_metadata", 1)]));
}

#[test]
fn a_snapshot_has_its_own_user_properties_and_the_rest_from_its_dataset() {
    let snap: PropMap = [("u:x".to_string(), Value::Text("s".into()))].into();
    let mut dir = map(&[("devices", 0), ("quota", 9)]);
    dir.insert("u:y".into(), Value::Text("d".into()));
    let mut chain = chain(&[("t/a", &dir)]);
    chain.snapshot = Some(Level { name: "t/a@s", entries: &snap });
    let get = |name: PropName| chain.resolve(&name);
    assert_eq!(get(PropName::User("u:x".into())), Some((Value::Text("s".into()), Source::Local)));
    let from_dir = Source::Inherited("t/a".into());
    assert_eq!(get(PropName::User("u:y".into())), Some((Value::Text("d".into()), from_dir.clone())));
    assert_eq!(get(PropName::Native(Prop::Devices)), Some((Value::Number(0), from_dir)));
    assert_eq!(get(PropName::Native(Prop::Quota)), Some((Value::Number(0), Source::Default)));
    assert_eq!(chain.user_properties().len(), 2);
}

#[test]
fn a_value_of_the_wrong_type_on_disk_counts_for_nothing() {
    let dir: PropMap = [("compression".to_string(), Value::Text("lz4".into()))].into();
    let found = chain(&[("t", &dir)]).resolve(&PropName::Native(Prop::Compression));
    assert_eq!(found, Some((Value::Number(1), Source::Default)));
}

#[test]
fn on_stands_for_what_the_pool_can_do() {
    let (new, old) = (PoolCan { lz4: true }, PoolCan { lz4: false });
    assert_eq!(compression(1, new), Compression::Lz4);
    assert_eq!(compression(1, old), Compression::Lzjb);
    assert_eq!(compression(16, new), Compression::Zstd(None));
    assert_eq!(compression(16 + 7 * 128, new), Compression::Zstd(Some(ZstdLevel::Normal(7))));
    assert_eq!(compression(16 + 104 * 128, new), Compression::Zstd(Some(ZstdLevel::Fast(2))));
    assert_eq!(compression(16 + 123 * 128, new), Compression::Zstd(Some(ZstdLevel::Fast(1000))));
    assert_eq!(compression(u64::MAX, new), Compression::Off);
    assert_eq!(dedup(2), None);
    assert_eq!(dedup(1).unwrap().checksum, Checksum::Sha256);
    assert!(dedup(257).unwrap().verify);
    let empty = PropMap::new();
    let policy = WritePolicy::of(&chain(&[("t", &empty)]), new);
    assert_eq!((policy.checksum, policy.copies, policy.record_size), (Checksum::Fletcher4, 1, 131_072));
}

/// From a pool of strangers: what is written is divided by it.
#[test]
fn a_record_size_that_no_block_can_have_is_the_default() {
    for bytes in [0, 256, 3 << 10, 1 << 60] {
        assert_eq!(super::write::record_size(bytes), 128 << 10, "{bytes}");
    }
    for bytes in [512, 16 << 20] {
        assert_eq!(super::write::record_size(bytes), bytes);
    }
}
