//! New pools, in files that are made for them.

use std::path::Path;
use std::sync::Arc;

use ondisk::Feature;
use ondisk::feature::{Support, compatibility_set};
use pool::{CreateOptions, Host};
use vdev::{Bias, Group, Layout, NewLeaf};

/// A device in a new sparse file of `size` bytes.
pub fn leaf(path: &Path, size: u64) -> NewLeaf {
    std::fs::File::create(path).unwrap().set_len(size).unwrap();
    NewLeaf::look_at(path).unwrap()
}

/// A vdev for data.
pub fn group(layout: Layout, leaves: Vec<NewLeaf>) -> Group {
    Group { layout, bias: Bias::Normal, leaves }
}

/// The features of a compatibility set, without those that would be active at once and are not kept up by Cenote.
pub fn features(set: &str) -> Vec<Feature> {
    let kept_up = |f: &Feature| f.info().support == Support::ReadWrite || !f.info().activate_on_enable;
    compatibility_set(set).unwrap().into_iter().filter(kept_up).collect()
}

/// Sectors of 4 KiB, the default features, no property set.
pub fn options(name: &str, group: Group) -> CreateOptions {
    CreateOptions {
        name: name.into(),
        groups: vec![group],
        ashift: 12,
        features: features(ondisk::feature::DEFAULT_COMPATIBILITY),
        root_props: Vec::new(),
        root: Default::default(),
        pool_props: Vec::new(),
        compatibility: None,
        comment: None,
        host: Host::new(1, "interop"),
        cache: Arc::new(arc::Cache::new(64 << 20)),
        hub: Default::default(),
        tunables: Default::default(),
    }
}
