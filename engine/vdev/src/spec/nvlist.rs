//! The tree as an nvlist, both ways.

use super::{Bias, Spec};
use crate::VdevType;
use ondisk::{NvList, NvValue};
use units::{Error, Guid, Result};

/// The pairs with a number that [`Spec`] has a field for.
const NUMBERS: [(&str, fn(&mut Spec) -> &mut Option<u64>); 19] = [
    ("id", |s| &mut s.id),
    ("nparity", |s| &mut s.nparity),
    ("whole_disk", |s| &mut s.whole_disk),
    ("not_present", |s| &mut s.not_present),
    ("metaslab_array", |s| &mut s.metaslab_array),
    ("metaslab_shift", |s| &mut s.metaslab_shift),
    ("ashift", |s| &mut s.ashift),
    ("asize", |s| &mut s.asize),
    ("min_alloc", |s| &mut s.min_alloc),
    ("is_log", |s| &mut s.is_log),
    ("DTL", |s| &mut s.dtl),
    ("create_txg", |s| &mut s.create_txg),
    ("com.delphix:vdev_zap_leaf", |s| &mut s.leaf_zap),
    ("com.delphix:vdev_zap_top", |s| &mut s.top_zap),
    ("com.klarasystems:vdev_zap_root", |s| &mut s.root_zap),
    ("offline", |s| &mut s.offline),
    ("faulted", |s| &mut s.faulted),
    ("degraded", |s| &mut s.degraded),
    ("removed", |s| &mut s.removed),
];

/// The order in which OpenZFS writes the pairs of a vdev; a pair not named here comes right before the children.
const ORDER: &[&str] = &[
    "type",
    "id",
    "guid",
    "top_guid",
    "path",
    "devid",
    "phys_path",
    "vdev_enc_sysfs_path",
    "fru",
    "nparity",
    "raidz_expanding",
    "raidz_expand_txgs",
    "draid_ndata",
    "draid_nspares",
    "draid_ngroups",
    "draid_nchildren",
    "whole_disk",
    "rotational",
    "not_present",
    "is_spare",
    "metaslab_array",
    "metaslab_shift",
    "ashift",
    "asize",
    "min_alloc",
    "is_log",
    "non_allocating",
    "removing",
    "alloc_bias",
    "DTL",
    "com.delphix:indirect_object",
    "com.delphix:indirect_births",
    "com.delphix:prev_indirect_vdev",
    "create_txg",
    "expansion_time",
    "com.delphix:vdev_zap_leaf",
    "com.delphix:vdev_zap_top",
    "com.klarasystems:vdev_zap_root",
    "com.datto:resilver_defer",
    UNKNOWN,
    "children",
    "offline",
    "resilver_txg",
    "rebuild_txg",
    "faulted",
    "degraded",
    "removed",
    "unspare",
    "is_hole",
    "aux_state",
    "orig_guid",
];
const UNKNOWN: &str = "";

/// How deep a vdev tree can be: root, raidz, replacing, spare, leaf, and one to spare.
const DEPTH_MAX: usize = 6;

impl Spec {
    /// Reads the `vdev_tree` of a configuration.
    pub fn decode(list: &NvList) -> Result<Spec> {
        decode(list, DEPTH_MAX).map_err(|e| e.at("vdev tree"))
    }

    /// Reads the tree of a label, or a device from a list of them: a vdev below the root.
    pub fn decode_below_root(list: &NvList) -> Result<Spec> {
        let spec = Spec::decode(list)?;
        match spec.vdev_type {
            VdevType::Root => Err(Error::corrupt("vdev tree: a root where a vdev below it must be")),
            _ => Ok(spec),
        }
    }

    /// Writes it back. With `for_mos` unset, what only the MOS holds (the ZAPs of the vdevs) is left out, as in labels.
    pub fn encode(&self, for_mos: bool) -> NvList {
        let mut spec = self.clone();
        let mut pairs: Vec<(String, NvValue)> =
            self.other.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let mut put = |name: &str, value: NvValue| pairs.push((name.to_string(), value));
        put("type", self.vdev_type.word().into());
        put("guid", self.guid.into());
        for (name, field) in NUMBERS {
            if let Some(number) = *field(&mut spec)
                && (for_mos || !is_of_mos(name))
            {
                put(name, number.into());
            }
        }
        if let Some(path) = &self.path {
            put("path", path.as_str().into());
        }
        if let Some(aux) = &self.aux_state {
            put("aux_state", aux.as_str().into());
        }
        if !self.children.is_empty() {
            put("children", NvValue::ListArray(self.children.iter().map(|c| c.encode(for_mos)).collect()));
        }
        pairs.retain(|(name, _)| for_mos || !is_of_mos(name));
        pairs.sort_by_key(|(name, _)| rank(name));
        pairs.into_iter().fold(NvList::new(), |list, (name, value)| list.with(name, value))
    }
}

fn rank(name: &str) -> usize {
    let place = |name| ORDER.iter().position(|&n| n == name);
    place(name).or_else(|| place(UNKNOWN)).unwrap_or(ORDER.len())
}

fn is_of_mos(name: &str) -> bool {
    name.starts_with("com.delphix:vdev_zap_")
        || name == "com.klarasystems:vdev_zap_root"
        || name == "com.datto:resilver_defer"
}

fn decode(list: &NvList, depth: usize) -> Result<Spec> {
    let word = list.str("type")?;
    let Some(vdev_type) = VdevType::from_word(word) else {
        return Err(Error::unsupported(format!("vdev of type '{word}'")));
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::corrupt("it is nested too deeply"));
    };
    let mut spec = Spec::new(vdev_type, list.guid("guid")?);
    for (name, field) in NUMBERS {
        *field(&mut spec) = list.opt_u64(name)?;
    }
    spec.path = list.opt_str("path")?.map(str::to_string);
    spec.aux_state = list.opt_str("aux_state")?.map(str::to_string);
    spec.bias = bias_of(list)?;
    for child in list.opt_lists("children")?.unwrap_or_default() {
        spec.children.push(decode(child, depth)?);
    }
    let known = |name: &str| {
        ["type", "guid", "path", "aux_state", "children"].contains(&name)
            || NUMBERS.iter().any(|(n, _)| *n == name)
    };
    for (name, value) in list.iter().filter(|(name, _)| !known(name)) {
        spec.other.push(name, value.clone());
    }
    check(&spec)?;
    Ok(spec)
}

fn bias_of(list: &NvList) -> Result<Bias> {
    if list.opt_u64("is_log")?.is_some_and(|v| v != 0) {
        return Ok(Bias::Log);
    }
    Ok(list.opt_str("alloc_bias")?.and_then(Bias::from_word).unwrap_or_default())
}

fn check(spec: &Spec) -> Result<()> {
    let Spec { vdev_type, children, .. } = spec;
    if vdev_type.is_leaf() && !children.is_empty() {
        return Err(Error::corrupt(format!("a {vdev_type} with children")));
    }
    if vdev_type.is_group() && children.is_empty() {
        return Err(Error::corrupt(format!("a {vdev_type} without children")));
    }
    if children.iter().any(|c| c.vdev_type == VdevType::Root) {
        return Err(Error::corrupt("a root below another vdev"));
    }
    if spec.guid == Guid(0) && vdev_type.is_concrete() {
        return Err(Error::corrupt(format!("a {vdev_type} without a guid")));
    }
    Ok(())
}
