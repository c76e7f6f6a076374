use super::*;

#[test]
fn every_feature_finds_its_own_row() {
    assert_eq!(FEATURES.len(), 48);
    for (index, info) in FEATURES.iter().enumerate() {
        assert_eq!(info.feature as usize, index);
        assert_eq!(Feature::by_guid(info.guid), Some(info.feature));
        assert_eq!(Feature::by_name(info.name), Some(info.feature));
        assert!(info.guid.split_once(':').is_some_and(|(_, name)| name == info.name));
    }
    assert_eq!(FEATURES.iter().filter(|info| info.read_only_compatible).count(), 22);
}

#[test]
fn what_a_feature_needs_can_be_reached_without_a_cycle() {
    fn depth(feature: Feature, limit: usize) -> usize {
        assert!(limit > 0, "{feature} depends on itself");
        feature.info().dependencies.iter().map(|d| 1 + depth(*d, limit - 1)).max().unwrap_or(0)
    }
    assert_eq!(Feature::all().map(|f| depth(f, 10)).max(), Some(4));
}

#[test]
fn compatibility_sets_have_the_sizes_of_the_published_ones() {
    for (name, count) in [
        ("compat-2018", 11),
        ("compat-2019", 14),
        ("compat-2020", 14),
        ("compat-2021", 18),
        ("freebsd-11.0", 14),
        ("freebsd-11.2", 17),
        ("freebsd-11.3", 18),
        ("freenas-9.10.2", 12),
        ("grub2-2.06", 14),
        ("grub2", 22),
        ("openzfs-2.0-freebsd", 32),
        ("openzfs-2.0-linux", 33),
        ("openzfs-2.1-freebsd", 33),
        ("openzfs-2.1-linux", 34),
        ("openzfs-2.2", 39),
        ("openzfs-2.3-linux", 44),
        ("openzfs-2.4", 47),
        ("openzfsonosx-1.7.0", 15),
        ("openzfsonosx-1.8.1", 19),
        ("openzfsonosx-1.9.4", 26),
        ("zol-0.6.1", 3),
        ("zol-0.6.4", 9),
        ("zol-0.6.5", 11),
        ("ubuntu-18.04", 17),
        ("ubuntu-20.04", 26),
        ("off", 48),
        ("legacy", 0),
    ] {
        assert_eq!(compatibility_set(name).unwrap().len(), count, "{name}");
    }
    assert!(compatibility_names().all(|name| compatibility_set(name).is_some()));
    assert_eq!(compatibility_set("openzfs-9"), None);
}

#[test]
fn a_set_contains_what_its_features_need() {
    for name in compatibility_names() {
        let set = compatibility_set(name).unwrap();
        let needs = set.iter().flat_map(|f| f.info().dependencies);
        assert!(needs.into_iter().all(|need| set.contains(need)), "{name}");
    }
}

#[test]
fn a_pool_created_by_default_can_be_written_by_us() {
    // Enabling a feature does not activate it, except where the table says so.
    let set = compatibility_set(DEFAULT_COMPATIBILITY).unwrap();
    let active = set.into_iter().filter(|f| f.info().activate_on_enable);
    assert!(active.into_iter().all(|f| f.info().support == Support::ReadWrite));
}

#[test]
fn lists_in_files_are_read_as_published_ones_are_written() {
    let text = "# a comment\nlz4_compress, hole_birth # more\n\tbookmarks\n";
    let names: Vec<_> = features_of_list(text).unwrap().into_iter().map(Feature::name).collect();
    assert_eq!(names, ["lz4_compress", "hole_birth", "bookmarks"]);
    assert!(features_of_list("no_such").unwrap_err().to_string().contains("'no_such'"));
}

#[test]
fn the_weakest_active_feature_decides_how_a_pool_opens() {
    let lz4 = Feature::Lz4Compress.guid();
    assert_eq!(judge([lz4], []), Verdict { support: Support::ReadWrite, because: vec![] });
    assert_eq!(judge([lz4], ["com.new:thing"]).support, Support::ReadOnly);
    let no = judge([lz4, "com.new:thing"], []);
    assert_eq!(no, Verdict { support: Support::No, because: vec!["com.new:thing".into()] });
    // Active for writers only: read-only stays possible even if we can do nothing with it.
    assert_eq!(judge([], [Feature::ObsoleteCounts.guid()]).support, Support::ReadOnly);
}
