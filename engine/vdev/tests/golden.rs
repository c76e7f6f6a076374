//! What OpenZFS wrote about its vdevs is understood, and written again to the same bytes.
//!
//! The labels and the configuration are those in `ondisk`'s tests, made by OpenZFS 2.3.9.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "golden files are read from the source tree")]

use ondisk::{NvList, PoolState};
use units::Guid;
use vdev::label::config::aux_label;
use vdev::{Layout, PoolConfig, Spec, VdevType};

fn golden(name: &str) -> NvList {
    let path = format!("{}/../ondisk/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // Trailing zeros were cut off.
    bytes.resize(bytes.len() + 64, 0);
    NvList::decode(&bytes).unwrap()
}

/// The root of which only the vdev in the label is known.
fn root_around(label: &NvList) -> Spec {
    let top = Spec::decode(label.list("vdev_tree").unwrap()).unwrap();
    let place = |id| if Some(id) == top.id { top.clone() } else { Spec::placeholder(VdevType::Missing, id) };
    let mut root = Spec::new(VdevType::Root, label.guid("pool_guid").unwrap());
    root.children = (0..label.u64("vdev_children").unwrap()).map(place).collect();
    root
}

#[test]
fn labels_are_written_again_to_the_same_bytes() {
    for name in ["basic", "rz1-0", "mir2-0", "dr-0", "rzx-0", "rmv-0", "v1"] {
        let label = golden(&format!("{name}.label"));
        let root = root_around(&label);
        let top = root.find(label.guid("top_guid").unwrap()).unwrap();
        let leaf = root.find(label.guid("guid").unwrap()).unwrap();
        let again = PoolConfig::decode(&label).unwrap().label(&root, top, leaf);
        assert_eq!(again.to_string(), label.to_string(), "{name}");
        assert_eq!(again.encode(), label.encode(), "{name}");
    }
}

#[test]
fn the_configuration_in_the_mos_is_written_again_to_the_same_bytes() {
    let config = golden("basic.config");
    let root = Spec::decode(config.list("vdev_tree").unwrap()).unwrap();
    let again = PoolConfig::decode(&config).unwrap().mos(&root);
    assert_eq!(again.to_string(), config.to_string());
    assert_eq!(again.encode(), config.encode());
    assert!(root.root_zap.is_some() && root.children[0].top_zap.is_some());
}

#[test]
fn labels_of_devices_beside_the_tree_are_written_again_to_the_same_bytes() {
    for (name, state) in [("aux-spare", PoolState::Spare), ("aux-cache", PoolState::L2Cache)] {
        let label = golden(&format!("{name}.label"));
        let mut leaf = Spec::new(VdevType::Disk, label.guid("guid").unwrap());
        leaf.path = Some(label.str("path").unwrap().to_string());
        leaf.ashift = label.opt_u64("ashift").unwrap();
        assert_eq!(aux_label(5000, state, &leaf).encode(), label.encode(), "{name}");
    }
}

#[test]
fn a_new_vdev_of_the_same_devices_gets_the_same_sizes() {
    for (name, layout) in [("rz1-0", Layout::Raidz { parity: 1 }), ("mir2-0", Layout::Mirror)] {
        let made = root_around(&golden(&format!("{name}.label"))).children.remove(0);
        let width = if made.vdev_type == VdevType::Raidz { made.children.len() as u64 } else { 1 };
        // The device is what is allocatable per child, four labels and the boot area.
        let size = made.asize.unwrap() / width + (4 << 20) + (512 << 10);
        let kind = world::DiskKind::Block { rotational: false, volatile_cache: true };
        let geometry = world::Geometry { size, logical_block: 512, physical_block: 512, kind };
        let leaf = |i: usize| vdev::NewLeaf { path: made.children[i].path.clone().unwrap(), geometry };
        let leaves = (0..made.children.len()).map(leaf).collect();
        let group = vdev::Group { layout, bias: vdev::Bias::Normal, leaves };
        let ashift = made.ashift.unwrap() as u32;
        let guids = std::cell::RefCell::new(made.walk().map(|s| s.guid).collect::<Vec<_>>().into_iter());
        let new_guid = || guids.borrow_mut().next().unwrap();
        let mut root = Spec::create(Guid(1), &[group], ashift, made.create_txg(), new_guid).unwrap();
        let mut new = root.children.remove(0);
        new.metaslab_array = made.metaslab_array;
        assert_eq!(new.encode(false).to_string(), made.encode(false).to_string(), "{name}");
    }
}
