use super::*;
use crate::label::read::Labels;
use ondisk::NvValue;

/// The label of leaf `leaf` of the mirror `top`, whose leaves have the guids `10 * top + 1` and `+ 2`.
fn label(pool: u64, txg: u64, top: u64, leaf: u64, tops: u64) -> Labelled {
    let mut mirror = Spec { id: Some(top), ..Spec::new(VdevType::Mirror, Guid(100 + top)) };
    for i in 1..=2 {
        let mut file = Spec { id: Some(i - 1), ..Spec::new(VdevType::File, Guid(10 * top + i)) };
        file.path = Some(format!("/old/{top}-{i}"));
        mirror.children.push(file);
    }
    let config = NvList::new()
        .with("version", 5000u64)
        .with("name", "tank")
        .with("state", 1u64)
        .with("txg", txg)
        .with("pool_guid", pool)
        .with("top_guid", mirror.guid)
        .with("guid", 10 * top + leaf)
        .with("vdev_children", tops)
        .with("vdev_tree", mirror.encode(false));
    on(format!("/new/{pool}-{top}-{leaf}"), config)
}

fn on(path: String, config: NvList) -> Labelled {
    Labelled { device: Device::whole(path), labels: Labels { valid: vec![(0, config)] } }
}

#[test]
fn a_pool_is_put_together_from_all_its_devices() {
    let found = [label(7, 5, 0, 1, 2), label(8, 9, 0, 1, 1), label(7, 5, 1, 2, 2), label(7, 5, 0, 2, 2)];
    let pools = assemble(&found);
    assert_eq!(pools.iter().map(|p| p.guid().0).collect::<Vec<_>>(), [7, 8]);
    let pool = &pools[0];
    assert_eq!(pool.health(), Health::new(State::Degraded, Aux::None));
    assert_eq!(pool.missing(), ["/old/1-1"]);
    assert_eq!(pool.tree.find(Guid(2)).unwrap().path.as_deref(), Some("/new/7-0-2"));
    assert_eq!(pool.health_of(&pool.tree.children[0]), Health::ONLINE);
}

#[test]
fn a_vdev_of_which_nothing_is_left_is_named_missing() {
    let pools = assemble(&[label(7, 5, 1, 1, 3)]);
    let types: Vec<_> = pools[0].tree.children.iter().map(|t| t.vdev_type).collect();
    assert_eq!(types, [VdevType::Missing, VdevType::Mirror, VdevType::Missing]);
    assert_eq!(pools[0].health(), Health::new(State::CannotOpen, Aux::BadGuidSum));
    assert_eq!(pools[0].missing()[1..], ["all devices of vdev 0", "all devices of vdev 2"]);
}

#[test]
fn the_newest_label_says_how_many_vdevs_there_are() {
    let mut newest = label(7, 6, 0, 1, 2);
    let config = &mut newest.labels.valid[0].1;
    config.set("hole_array", NvValue::Uint64Array(vec![1]));
    // Vdev 2 was part of it once, vdev 1 was removed.
    let pools = assemble(&[label(7, 5, 2, 1, 3), newest, label(7, 5, 0, 2, 3)]);
    let types: Vec<_> = pools[0].tree.children.iter().map(|t| t.vdev_type).collect();
    assert_eq!(types, [VdevType::Mirror, VdevType::Hole]);
    assert_eq!(pools[0].config.txg, Txg(6));
}

#[test]
fn spares_and_devices_never_used_are_no_pools() {
    let spare = NvList::new().with("version", 5000u64).with("state", 3u64).with("guid", 77u64);
    let pools = assemble(&[label(7, 0, 0, 1, 1), on("/s".into(), spare), label(8, 1, 0, 1, 1)]);
    assert_eq!(pools.len(), 1);
    assert_eq!(pools[0].aux, [(PoolState::Spare, Guid(77), Device::whole("/s"))]);
}

#[test]
fn a_label_that_claims_too_many_vdevs_does_not_take_memory() {
    let pools = assemble(&[label(7, 5, 0, 1, u64::MAX)]);
    assert_eq!(pools[0].tree.children.len() as u64, TOPS_MAX);
}

/// A power cut between the labels of a txg that gave the pool another guid left two pools of half of the devices each.
#[test]
fn a_pool_whose_guid_was_being_changed_is_one_pool() {
    let mut half = label(8, 6, 0, 1, 1);
    half.labels.valid.extend(label(7, 5, 0, 1, 1).labels.valid.into_iter().map(|(_, config)| (1, config)));
    let pools = assemble(&[half, label(7, 5, 0, 2, 1), label(9, 5, 0, 1, 1)]);
    assert_eq!(
        pools.iter().map(|p| (p.guid().0, p.former.map(|f| f.0))).collect::<Vec<_>>(),
        [(8, Some(7)), (9, None)]
    );
    assert_eq!(pools[0].health(), Health::ONLINE, "both halves are its own");
}

/// A label may say of its vdevs what it likes: each type in each place, also one that cannot be there.
#[test]
fn a_label_with_any_type_in_any_place_is_judged_or_passed_over() {
    let words = [
        "root",
        "mirror",
        "raidz",
        "draid",
        "replacing",
        "spare",
        "dspare",
        "disk",
        "file",
        "missing",
        "hole",
        "indirect",
    ];
    let leaf = |word: &str, guid: u64| NvList::new().with("type", word).with("id", 0u64).with("guid", guid);
    for upper in words {
        for lower in words {
            for has_children in [false, true] {
                let mut top = leaf(upper, 100);
                if has_children {
                    let children = vec![leaf(lower, 1), leaf(lower, 2)];
                    top = top.with("nparity", 1u64).with("children", NvValue::ListArray(children));
                }
                let mut odd = label(7, 9, 0, 1, 1);
                odd.labels.valid[0].1.set("vdev_tree", NvValue::List(top));
                for found in [vec![odd.clone()], vec![label(7, 5, 0, 1, 1), odd]] {
                    for pool in assemble(&found) {
                        let shown = (pool.health(), pool.missing());
                        let is_root_alone = pool.tree.children.iter().all(|t| t.vdev_type != VdevType::Root);
                        assert!(is_root_alone, "{upper} of {lower}: {shown:?}");
                    }
                }
            }
        }
    }
}
