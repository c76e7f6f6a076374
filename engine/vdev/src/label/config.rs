//! What a label says: the pool in short, and the tree of the top-level vdev that the device is part of. Pure.
//!
//! The same pairs, with the whole tree and a few more, are the pool's configuration in the MOS.

use crate::{Spec, VdevType};
use ondisk::{NvList, NvValue, PoolState};
use units::{Error, Guid, Result, Txg};

/// The pairs about the pool as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolConfig {
    pub version: u64,
    pub name: String,
    pub state: PoolState,
    pub txg: Txg,
    pub guid: Guid,
    pub errata: u64,
    /// The smallest and the largest unit of space among the top-level vdevs; older software has no such pairs.
    pub alloc: Option<(u64, u64)>,
    pub comment: Option<String>,
    pub compatibility: Option<String>,
    pub host: Option<(u64, String)>,
    /// The process that has the pool open, in its own words; only in labels of a pool that is in use.
    pub process: Option<String>,
    /// The features without which the MOS cannot be read; each is a bare name.
    pub features_for_read: NvList,
    /// Pairs of the MOS configuration that this program does not know.
    pub other: NvList,
}

impl PoolConfig {
    /// Reads what a label or the MOS says about the pool.
    pub fn decode(config: &NvList) -> Result<PoolConfig> {
        let code = config.u64("state")?;
        let text = |name| config.opt_str(name).map(|s| s.map(str::to_string));
        let number = |name| config.opt_u64(name);
        let known = KNOWN.iter().chain(PER_LEAF).chain(DERIVED);
        let known: Vec<&str> = known.copied().collect();
        let mut other = NvList::new();
        for (name, value) in config.iter().filter(|(name, _)| !known.contains(name)) {
            other.push(name, value.clone());
        }
        Ok(PoolConfig {
            version: config.u64("version")?,
            name: config.str("name")?.to_string(),
            state: PoolState::from_code(code).ok_or_else(|| Error::corrupt(format!("pool state {code}")))?,
            txg: config.txg("txg")?,
            guid: config.guid("pool_guid")?,
            errata: number("errata")?.unwrap_or(0),
            alloc: number("min_alloc")?.zip(number("max_alloc")?),
            comment: text("comment")?,
            compatibility: text("compatibility")?,
            host: number("hostid")?.zip(text("hostname")?),
            process: text(PROCESS)?,
            features_for_read: config.opt_list("features_for_read")?.cloned().unwrap_or_default(),
            other,
        })
    }

    /// The label of `leaf`, which is below `top`, or is it.
    pub fn label(&self, root: &Spec, top: &Spec, leaf: &Spec) -> NvList {
        let mut label = self.head();
        if let Some(process) = self.process.as_deref().filter(|_| self.state == PoolState::Active) {
            label.set(PROCESS, process);
        }
        label.set("top_guid", top.guid);
        label.set("guid", leaf.guid);
        if leaf.other.has("is_spare") {
            label.set("is_spare", 1u64);
        }
        if top.is_log() {
            label.set("is_log", 1u64);
        }
        self.tail(label, root, top.encode(false))
    }

    /// The configuration of the whole pool, as the MOS holds it.
    pub fn mos(&self, root: &Spec) -> NvList {
        let mut config = self.head();
        for (name, value) in self.other.iter() {
            config.set(name, value.clone());
        }
        config.set("com.delphix:has_per_vdev_zaps", NvValue::Boolean);
        self.tail(config, root, root.encode(true))
    }

    fn head(&self) -> NvList {
        let mut list = NvList::new()
            .with("version", self.version)
            .with("name", self.name.as_str())
            .with("state", self.state as u64)
            .with("txg", self.txg)
            .with("pool_guid", self.guid)
            .with("errata", self.errata);
        if let Some((min, max)) = self.alloc {
            list.set("min_alloc", min);
            list.set("max_alloc", max);
        }
        for (name, text) in [("comment", &self.comment), ("compatibility", &self.compatibility)] {
            if let Some(text) = text {
                list.set(name, text.as_str());
            }
        }
        if let Some((id, name)) = &self.host {
            list.set("hostid", *id);
            list.set("hostname", name.as_str());
        }
        list
    }

    fn tail(&self, mut list: NvList, root: &Spec, tree: NvList) -> NvList {
        let holes = root.children.iter().filter(|t| t.vdev_type == VdevType::Hole);
        let holes: Vec<u64> = holes.filter_map(|t| t.id).collect();
        if !holes.is_empty() {
            list.set("hole_array", NvValue::Uint64Array(holes));
        }
        list.set("vdev_children", root.children.len() as u64);
        list.set("vdev_tree", tree);
        list.set("features_for_read", self.features_for_read.clone());
        list
    }
}

const KNOWN: &[&str] = &[
    "version",
    "name",
    "state",
    "txg",
    "pool_guid",
    "errata",
    "min_alloc",
    "max_alloc",
    "comment",
    "compatibility",
    "hostid",
    "hostname",
    "features_for_read",
    "com.delphix:has_per_vdev_zaps",
];
const PER_LEAF: &[&str] = &["top_guid", "guid", "is_spare", "is_log", PROCESS];
/// A pair of this program; others pass over it, and leave it out of the labels that they write.
const PROCESS: &str = "cenote:process";
/// Made from the tree each time. `create_txg` is in labels only until the vdev is in use.
const DERIVED: &[&str] = &["hole_array", "vdev_children", "vdev_tree", "create_txg"];

/// The label of a spare or a cache device, which several pools may share.
pub fn aux_label(version: u64, state: PoolState, leaf: &Spec) -> NvList {
    let mut label =
        NvList::new().with("version", version).with("state", state as u64).with("guid", leaf.guid);
    if let (PoolState::L2Cache, Some(ashift)) = (state, leaf.ashift) {
        label.set("ashift", ashift);
    }
    if let Some(path) = &leaf.path {
        label.set("path", path.as_str());
    }
    for name in ["devid", "phys_path"] {
        if let Some(value) = leaf.other.get(name) {
            label.set(name, value.clone());
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> PoolConfig {
        PoolConfig {
            version: 5000,
            name: "tank".into(),
            state: PoolState::Exported,
            txg: Txg(73),
            guid: Guid(9),
            errata: 0,
            alloc: Some((512, 512)),
            comment: None,
            compatibility: None,
            host: Some((12_235_020, "golden".into())),
            process: None,
            features_for_read: NvList::new().with("com.delphix:hole_birth", NvValue::Boolean),
            other: NvList::new(),
        }
    }

    fn tree() -> Spec {
        let mut top = Spec { id: Some(0), ashift: Some(9), ..Spec::new(VdevType::File, Guid(5)) };
        top.is_log = Some(1);
        let mut root = Spec { id: Some(0), ..Spec::new(VdevType::Root, Guid(9)) };
        root.children = vec![top, Spec::placeholder(VdevType::Hole, 1)];
        root
    }

    #[test]
    fn a_label_has_the_pairs_of_openzfs_in_its_order() {
        let root = tree();
        let label = config().label(&root, &root.children[0], &root.children[0]);
        let names: Vec<_> = label.iter().map(|(name, _)| name).collect();
        let expected = "version name state txg pool_guid errata min_alloc max_alloc hostid hostname top_guid guid \
                        is_log hole_array vdev_children vdev_tree features_for_read";
        assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
        assert_eq!(label.u64s("hole_array").unwrap(), [1]);
        assert_eq!(PoolConfig::decode(&label).unwrap(), config());
    }

    #[test]
    fn the_process_is_in_the_labels_of_a_pool_in_use_and_nowhere_else() {
        let root = tree();
        let mut config = PoolConfig { process: Some("b 1 2".into()), ..config() };
        let label = |config: &PoolConfig| config.label(&root, &root.children[0], &root.children[0]);
        assert!(!label(&config).has(PROCESS), "an exported pool is nobody's");
        config.state = PoolState::Active;
        assert_eq!(PoolConfig::decode(&label(&config)).unwrap().process.as_deref(), Some("b 1 2"));
        assert!(!config.mos(&root).has(PROCESS));
    }

    #[test]
    fn the_configuration_in_the_mos_keeps_what_is_not_known() {
        let mut config = config();
        config.other = NvList::new().with("org.example:new", 1u64);
        let mos = config.mos(&tree());
        assert!(mos.is_flagged("com.delphix:has_per_vdev_zaps"));
        assert_eq!(PoolConfig::decode(&mos).unwrap(), config);
    }

    #[test]
    fn a_spare_says_little() {
        let mut leaf = Spec::new(VdevType::Disk, Guid(7));
        leaf.path = Some("/dev/p5".into());
        leaf.ashift = Some(9);
        let names =
            |state| aux_label(5000, state, &leaf).iter().map(|(n, _)| n.to_string()).collect::<Vec<_>>();
        assert_eq!(names(PoolState::Spare), ["version", "state", "guid", "path"]);
        assert_eq!(names(PoolState::L2Cache), ["version", "state", "guid", "ashift", "path"]);
    }
}
