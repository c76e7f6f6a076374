use super::*;
use crate::Layout;
use ondisk::NvValue;
use units::Kind;
use world::{DiskKind, Geometry};

fn leaf(path: &str, size: u64) -> create::NewLeaf {
    let geometry = Geometry { size, logical_block: 512, physical_block: 512, kind: DiskKind::File };
    create::NewLeaf { path: path.into(), geometry }
}

fn group(layout: Layout, sizes: &[u64]) -> Group {
    let leaves = sizes.iter().enumerate().map(|(i, &s)| leaf(&format!("/d/{layout:?}{i}"), s)).collect();
    Group { layout, bias: Bias::Normal, leaves }
}

fn counter() -> impl FnMut() -> Guid {
    let mut n = 100;
    move || {
        n += 1;
        Guid(n)
    }
}

fn names(list: &NvList) -> Vec<&str> {
    list.iter().map(|(name, _)| name).collect()
}

/// The pairs of a pool made by OpenZFS, in its order.
fn mirror_of_openzfs() -> NvList {
    let disk = |id: u64, guid: u64, path: &str| {
        NvList::new()
            .with("type", "disk")
            .with("id", id)
            .with("guid", guid)
            .with("path", path)
            .with("whole_disk", 0u64)
            .with("DTL", 117u64)
            .with("create_txg", 4u64)
            .with("com.delphix:vdev_zap_leaf", 68u64)
            .with("offline", 1u64)
    };
    NvList::new()
        .with("type", "mirror")
        .with("id", 0u64)
        .with("guid", 11_123_631_870_536_150_094u64)
        .with("metaslab_array", 87u64)
        .with("metaslab_shift", 24u64)
        .with("ashift", 9u64)
        .with("asize", 95_944_704u64)
        .with("min_alloc", 512u64)
        .with("is_log", 0u64)
        .with("create_txg", 4u64)
        .with("expansion_time", 7u64)
        .with("com.delphix:vdev_zap_top", 67u64)
        .with("org.example:unheard_of", "kept")
        .with("children", NvValue::ListArray(vec![disk(0, 5, "/dev/p0"), disk(1, 6, "/dev/p1")]))
}

#[test]
fn a_tree_written_by_openzfs_is_written_again_to_the_same_bytes() {
    let list = mirror_of_openzfs();
    assert_eq!(Spec::decode(&list).unwrap().encode(true).encode(), list.encode());
}

#[test]
fn a_label_leaves_out_what_only_the_mos_holds() {
    let spec = Spec::decode(&mirror_of_openzfs()).unwrap();
    let label = spec.encode(false);
    assert!(!label.has("com.delphix:vdev_zap_top"));
    assert!(!label.lists("children").unwrap()[0].has("com.delphix:vdev_zap_leaf"));
    assert_eq!(label.str("org.example:unheard_of").unwrap(), "kept");
}

#[test]
fn a_new_mirror_has_the_pairs_of_openzfs() {
    let groups = [group(Layout::Mirror, &[100_663_296, 200 << 20])];
    let root = Spec::create(Guid(1), &groups, 0, Txg::INITIAL, counter()).unwrap();
    let top = &root.children[0];
    assert_eq!(top.asize, Some(95_944_704));
    assert_eq!(top.metaslab_shift, Some(24));
    assert_eq!(
        names(&top.encode(true)),
        [
            "type",
            "id",
            "guid",
            "metaslab_array",
            "metaslab_shift",
            "ashift",
            "asize",
            "min_alloc",
            "is_log",
            "create_txg",
            "children"
        ]
    );
    assert_eq!(names(&top.children[1].encode(true)), ["type", "id", "guid", "path", "create_txg"]);
    assert_eq!(root.guid_sum(), 1 + 101 + 102 + 103);
    assert_eq!(names(&root.encode(true)), ["type", "id", "guid", "create_txg", "children"]);
}

#[test]
fn a_stripe_makes_each_device_a_vdev_of_its_own() {
    let groups =
        [group(Layout::Stripe, &[64 << 20, 1 << 30]), group(Layout::Raidz { parity: 2 }, &[80 << 20; 4])];
    let root = Spec::create(Guid(1), &groups, 12, Txg::INITIAL, counter()).unwrap();
    let ids: Vec<_> = root.children.iter().map(|t| (t.id.unwrap(), t.name())).collect();
    assert_eq!(ids, [(0, "/d/Stripe0".into()), (1, "/d/Stripe1".into()), (2, "raidz2-2".into())]);
    assert_eq!(root.children[2].asize, Some(79_167_488 * 4));
    assert!(root.children.iter().all(|t| t.ashift == Some(12)));
    assert_eq!(Spec::decode(&root.encode(true)).unwrap(), root);
}

#[test]
fn what_cannot_be_a_pool_is_refused_with_a_reason() {
    let create = |groups: &[Group]| Spec::create(Guid(1), groups, 0, Txg::INITIAL, counter());
    let mut twice = group(Layout::Mirror, &[64 << 20; 2]);
    twice.leaves[1].path = twice.leaves[0].path.clone();
    let mut only_log = group(Layout::Stripe, &[64 << 20]);
    only_log.bias = Bias::Log;
    for (groups, part) in [
        (group(Layout::Stripe, &[(64 << 20) - 1]), "too small"),
        (group(Layout::Mirror, &[64 << 20]), "at least 2"),
        (group(Layout::Raidz { parity: 3 }, &[64 << 20; 3]), "at least 4"),
        (twice, "more than once"),
        (only_log, "ordinary"),
    ] {
        let error = create(&[groups]).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn groups_of_different_redundancy_are_noticed() {
    let mirror = || group(Layout::Mirror, &[64 << 20; 2]);
    assert_eq!(create::mismatch(&[mirror(), mirror()]), None);
    assert!(
        create::mismatch(&[mirror(), group(Layout::Stripe, &[64 << 20])]).unwrap().contains("replication")
    );
    let raidz = |parity: u64| group(Layout::Raidz { parity }, &[64 << 20; 6]);
    assert_eq!(create::mismatch(&[raidz(1), mirror()]), None);
    assert_eq!(create::mismatch(&[raidz(2), group(Layout::Mirror, &[64 << 20; 3])]), None);
    assert!(create::mismatch(&[raidz(2), mirror()]).unwrap().contains("replication"));
    assert!(create::mismatch(&[group(Layout::Mirror, &[64 << 20, 65 << 20])]).unwrap().contains("sizes"));
}

#[test]
fn trees_that_cannot_be_are_refused() {
    let base = || NvList::new().with("guid", 5u64);
    let mut deep = base().with("type", "disk");
    for _ in 0..8 {
        deep = base().with("type", "mirror").with("children", NvValue::ListArray(vec![deep]));
    }
    let disk_with_children =
        base().with("type", "disk").with("children", NvValue::ListArray(vec![base().with("type", "disk")]));
    for list in [
        deep,
        disk_with_children,
        base().with("type", "mirror"),
        base(),
        NvList::new().with("type", "disk"),
        NvList::new().with("type", "disk").with("guid", 0u64),
        base().with("type", "disk").with("ashift", "nine"),
    ] {
        assert_eq!(Spec::decode(&list).unwrap_err().kind(), Kind::Corrupt);
    }
    let strange = base().with("type", "tape");
    assert_eq!(Spec::decode(&strange).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn a_hole_is_written_as_openzfs_writes_it() {
    let hole = Spec::hole(3);
    let list = hole.encode(true);
    let expected =
        "type id guid whole_disk metaslab_array metaslab_shift ashift asize min_alloc is_log is_hole";
    assert_eq!(names(&list), expected.split(' ').collect::<Vec<_>>());
    assert_eq!(Spec::decode(&list).unwrap(), hole);
}

#[test]
fn what_is_added_should_be_as_redundant_as_the_pool() {
    const SIZE: u64 = 128 << 20;
    let pool_of =
        |groups: &[Group]| Spec::create(Guid(1), groups, 0, Txg(4), counter()).expect("a good layout");
    let check = |own: &[Group], new: &[Group], expected: Option<&str>| {
        let why = mismatch_with(&pool_of(own), new);
        assert_eq!(why.as_deref(), expected.map(|e| format!("mismatched replication level: {e}")).as_deref());
    };
    let stripe = || group(Layout::Stripe, &[SIZE]);
    let mirror = |n: usize| group(Layout::Mirror, &vec![SIZE; n]);
    let raidz = |parity: u64, n: usize| group(Layout::Raidz { parity }, &vec![SIZE; n]);
    check(&[mirror(2)], &[mirror(2)], None);
    check(&[raidz(1, 3)], &[raidz(1, 5)], None);
    check(&[mirror(2)], &[raidz(1, 3)], None);
    check(&[mirror(2)], &[stripe()], Some("pool uses mirror and new vdev is file"));
    check(&[mirror(2)], &[mirror(3)], Some("pool uses 2-way mirror and new vdev uses 3-way mirror"));
    check(&[raidz(1, 3)], &[raidz(2, 4)], Some("pool uses 1 device parity and new vdev uses 2"));
    check(
        &[mirror(2)],
        &[raidz(2, 4)],
        Some("pool and new vdev with different redundancy, mirror and raidz vdevs, 1 vs. 2"),
    );
    let log = Group { bias: Bias::Log, ..stripe() };
    check(&[mirror(2)], &[log], None);
    check(&[mirror(2), raidz(2, 4)], &[stripe()], None);
}

/// Replacements in a world that repeated its random numbers gave a new device the guid of an old one.
#[test]
fn two_vdevs_of_one_guid_are_refused() {
    let root =
        Spec::create(Guid(1), &[group(Layout::Mirror, &[1 << 30, 1 << 30])], 12, Txg::INITIAL, counter());
    let mut root = root.unwrap();
    assert!(root.check_guids().is_ok());
    let first = root.children[0].children[0].guid;
    root.children[0].children[1].guid = first;
    assert_eq!(root.check_guids().unwrap_err().kind(), Kind::Corrupt);
}
