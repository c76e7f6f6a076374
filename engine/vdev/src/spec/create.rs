//! The tree of a new pool, from what `zpool create` and `zpool add` were asked for. Pure: devices were looked at before.

use super::{Bias, Spec, VdevType};
use crate::kinds::raidz::map::Shape;
use crate::{AuxKind, geometry};
use ondisk::label::MIN_DEVICE_SIZE;
use std::collections::BTreeSet;
use std::path::Path;
use units::{Error, Guid, Result, Txg};
use world::{DiskKind, Geometry, OpenMode};

/// How the devices of a group share its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each device is a top-level vdev of its own.
    Stripe,
    Mirror,
    Raidz {
        parity: u64,
    },
}

/// Devices named together on the command line.
#[derive(Clone, Debug)]
pub struct Group {
    pub layout: Layout,
    pub bias: Bias,
    pub leaves: Vec<NewLeaf>,
}

/// A device that is to become a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLeaf {
    pub path: String,
    pub geometry: Geometry,
}

impl NewLeaf {
    /// Looks at the device that is named.
    pub fn look_at(path: &Path) -> Result<NewLeaf> {
        let name = path.to_string_lossy().into_owned();
        let disk = world::open(path, OpenMode::ReadOnly)
            .map_err(|e| Error::invalid(format!("cannot use '{name}'")).because(e))?;
        Ok(NewLeaf { path: name, geometry: disk.geometry() })
    }

    /// The smallest unit that the device takes and the one that it likes, as powers of two.
    pub fn ashifts(&self) -> (u32, u32) {
        let shift = |bytes: u32| bytes.max(512).next_power_of_two().trailing_zeros();
        (shift(self.geometry.logical_block), shift(self.geometry.physical_block))
    }

    fn asize(&self) -> u64 {
        geometry::leaf_asize(geometry::leaf_psize(self.geometry.size))
    }
}

impl Spec {
    /// The tree of a new pool. `ashift` is the one asked for, 0 for "as the devices say".
    pub fn create(
        pool: Guid,
        groups: &[Group],
        ashift: u32,
        txg: Txg,
        mut new_guid: impl FnMut() -> Guid,
    ) -> Result<Spec> {
        check_devices(groups)?;
        if !groups.iter().any(|g| g.bias == Bias::Normal) {
            return Err(Error::invalid("a pool needs at least one vdev for ordinary blocks"));
        }
        let mut root = Spec { id: Some(0), create_txg: Some(txg.0), ..Spec::new(VdevType::Root, pool) };
        root.children = Spec::create_tops(groups, 0, ashift, txg, &mut new_guid)?;
        Ok(root)
    }

    /// A device that is to join a group.
    pub fn leaf_of(leaf: &NewLeaf, guid: Guid) -> Spec {
        let mut spec = Spec::new(leaf_type(leaf), guid);
        describe_leaf(&mut spec, leaf);
        spec
    }

    /// A spare or a cache device.
    pub fn create_aux(kind: AuxKind, leaf: &NewLeaf, guid: Guid) -> Result<Spec> {
        check_size(leaf)?;
        let mut spec = Spec::new(leaf_type(leaf), guid);
        describe_leaf(&mut spec, leaf);
        match kind {
            AuxKind::Spare => spec.other.set("is_spare", 1u64),
            AuxKind::Cache => {
                let (logical, physical) = leaf.ashifts();
                spec.ashift = Some(geometry::choose_ashift(0, logical, physical)?.into());
            }
        }
        Ok(spec)
    }

    /// Top-level vdevs to be added to a tree that has `first_id` of them.
    pub fn create_tops(
        groups: &[Group],
        first_id: u64,
        ashift: u32,
        txg: Txg,
        mut new_guid: impl FnMut() -> Guid,
    ) -> Result<Vec<Spec>> {
        check_devices(groups)?;
        let mut tops = Vec::new();
        for group in groups {
            check_width(group)?;
            match group.layout {
                Layout::Stripe => {
                    for leaf in &group.leaves {
                        tops.push(top_of(group, std::slice::from_ref(leaf), ashift, txg, &mut new_guid)?);
                    }
                }
                Layout::Mirror | Layout::Raidz { .. } => {
                    tops.push(top_of(group, &group.leaves, ashift, txg, &mut new_guid)?);
                }
            }
        }
        for (id, top) in (first_id..).zip(&mut tops) {
            top.id = Some(id);
        }
        Ok(tops)
    }
}

/// What is unusual about the groups and needs `-f`: redundancy or sizes that do not match.
pub fn mismatch(groups: &[Group]) -> Option<String> {
    let ordinary: Vec<&Group> = groups.iter().filter(|g| g.bias != Bias::Log).collect();
    let first = ordinary.first()?;
    let redundancy = |g: &Group| match g.layout {
        Layout::Stripe => ("disk", 0),
        Layout::Mirror => ("mirror", g.leaves.len() as u64 - 1),
        Layout::Raidz { parity } => ("raidz", parity),
    };
    for group in &ordinary {
        let (a, b) = (redundancy(first), redundancy(group));
        if a != b {
            return Some(format!(
                "mismatched replication level: both {}-way {} and {}-way {} vdevs are present",
                first.leaves.len(),
                a.0,
                group.leaves.len(),
                b.0
            ));
        }
    }
    let uneven =
        |g: &&&Group| g.layout != Layout::Stripe && g.leaves.windows(2).any(|w| w[0].asize() != w[1].asize());
    ordinary.iter().find(uneven).map(|g| {
        let word = redundancy(g).0;
        format!("{word} contains devices of different sizes")
    })
}

/// How redundant a top-level vdev is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    vdev_type: VdevType,
    parity: u64,
    children: u64,
}

impl Level {
    fn of(top: &Spec) -> Level {
        let parity = if top.vdev_type == VdevType::Raidz { top.nparity.unwrap_or(1) } else { 0 };
        // How wide a raidz is says nothing of how much it bears.
        let children = if top.vdev_type == VdevType::Raidz { 0 } else { top.children.len() as u64 };
        Level { vdev_type: top.vdev_type, parity, children }
    }

    fn of_group(group: &Group) -> Level {
        let (vdev_type, parity, children) = match group.layout {
            Layout::Stripe => (group.leaves.first().map_or(VdevType::File, leaf_type), 0, 0),
            Layout::Mirror => (VdevType::Mirror, 0, group.leaves.len() as u64),
            Layout::Raidz { parity } => (VdevType::Raidz, parity, 0),
        };
        Level { vdev_type, parity, children }
    }

    /// How many devices may fail.
    fn redundancy(self) -> u64 {
        if self.vdev_type == VdevType::Mirror { self.children - 1 } else { self.parity }
    }
}

/// What is unusual about adding these groups to a pool of this tree and needs `-f`. A pool that is mixed already may be
/// mixed further, and logs may be as redundant as one likes.
pub fn mismatch_with(tree: &Spec, groups: &[Group]) -> Option<String> {
    let mut levels = tree.children.iter().filter(|t| t.vdev_type.is_concrete() && !t.is_log()).map(Level::of);
    let own = levels.next()?;
    let ordinary = groups.iter().find(|g| g.bias != Bias::Log)?;
    if levels.any(|other| other != own) {
        return None;
    }
    if let Some(why) = mismatch(groups) {
        return Some(why);
    }
    let new = Level::of_group(ordinary);
    let across = |a, b| own.vdev_type == a && new.vdev_type == b;
    let why = if across(VdevType::Mirror, VdevType::Raidz) || across(VdevType::Raidz, VdevType::Mirror) {
        let (of_own, of_new) = (own.redundancy(), new.redundancy());
        (of_own != of_new).then(|| {
            let (a, b) = (own.vdev_type, new.vdev_type);
            format!("pool and new vdev with different redundancy, {a} and {b} vdevs, {of_own} vs. {of_new}")
        })?
    } else if own.vdev_type != new.vdev_type {
        format!("pool uses {} and new vdev is {}", own.vdev_type, new.vdev_type)
    } else if own.parity != new.parity {
        format!("pool uses {} device parity and new vdev uses {}", own.parity, new.parity)
    } else if own.children != new.children {
        let (kind, n, m) = (own.vdev_type, own.children, new.children);
        format!("pool uses {n}-way {kind} and new vdev uses {m}-way {kind}")
    } else {
        return None;
    };
    Some(format!("mismatched replication level: {why}"))
}

fn check_devices(groups: &[Group]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for leaf in groups.iter().flat_map(|g| &g.leaves) {
        if !seen.insert(&leaf.path) {
            return Err(Error::invalid(format!("'{}' is named more than once", leaf.path)));
        }
        check_size(leaf)?;
    }
    Ok(())
}

fn check_size(leaf: &NewLeaf) -> Result<()> {
    if leaf.geometry.size < MIN_DEVICE_SIZE {
        let (is, min) = (units::pretty_size(leaf.geometry.size), units::pretty_size(MIN_DEVICE_SIZE));
        return Err(Error::invalid(format!(
            "'{}' is too small: it has {is}, a vdev needs at least {min}",
            leaf.path
        )));
    }
    Ok(())
}

fn check_width(group: &Group) -> Result<()> {
    let (word, min, max) = match group.layout {
        Layout::Stripe => ("stripe".to_string(), 1, usize::MAX),
        Layout::Mirror => ("mirror".to_string(), 2, usize::MAX),
        Layout::Raidz { parity } => (format!("raidz{parity}"), parity as usize + 1, 255),
    };
    let n = group.leaves.len();
    if n < min {
        return Err(Error::invalid(format!("{word} needs at least {min} devices; {n} given")));
    }
    if n > max {
        return Err(Error::invalid(format!("{word} takes at most {max} devices; {n} given")));
    }
    if matches!(group.layout, Layout::Raidz { .. }) && group.bias == Bias::Log {
        return Err(Error::invalid("a log can be a mirror, but not raidz"));
    }
    Ok(())
}

fn top_of(
    group: &Group,
    leaves: &[NewLeaf],
    ashift: u32,
    txg: Txg,
    new_guid: &mut impl FnMut() -> Guid,
) -> Result<Spec> {
    let logical = leaves.iter().map(|l| l.ashifts().0).max().unwrap_or(geometry::ASHIFT_MIN);
    let physical = leaves.iter().fold(0, |best, l| geometry::best_physical(logical, best, l.ashifts().1));
    let ashift = geometry::choose_ashift(ashift, logical, physical)?;
    let child_asize = leaves.iter().map(NewLeaf::asize).min().unwrap_or(0);

    let vdev_type = match group.layout {
        Layout::Stripe => leaf_type(&leaves[0]),
        Layout::Mirror => VdevType::Mirror,
        Layout::Raidz { .. } => VdevType::Raidz,
    };
    let mut top = Spec::new(vdev_type, new_guid());
    let mut asize = child_asize;
    match group.layout {
        Layout::Stripe => describe_leaf(&mut top, &leaves[0]),
        Layout::Mirror => {}
        Layout::Raidz { parity } => {
            top.nparity = Some(parity);
            asize = Shape::new(leaves.len(), parity, ashift)?.capacity(child_asize);
        }
    }
    if group.layout != Layout::Stripe {
        top.children = (0..).zip(leaves).map(|(id, leaf)| child_of(leaf, id, txg, new_guid())).collect();
    }
    top.metaslab_array = Some(0);
    top.metaslab_shift = Some(geometry::metaslab_shift(asize).into());
    top.ashift = Some(ashift.into());
    top.asize = Some(asize);
    top.min_alloc = Some(1 << ashift);
    top.is_log = Some(u64::from(group.bias == Bias::Log));
    top.create_txg = Some(txg.0);
    top.bias = group.bias;
    Ok(top)
}

fn child_of(leaf: &NewLeaf, id: u64, txg: Txg, guid: Guid) -> Spec {
    let mut spec = Spec { id: Some(id), create_txg: Some(txg.0), ..Spec::new(leaf_type(leaf), guid) };
    describe_leaf(&mut spec, leaf);
    spec
}

fn describe_leaf(spec: &mut Spec, leaf: &NewLeaf) {
    spec.path = Some(leaf.path.clone());
    // Partitioning a disk is left to the administrator: what was named is used as it is.
    spec.whole_disk = (spec.vdev_type == VdevType::Disk).then_some(0);
}

fn leaf_type(leaf: &NewLeaf) -> VdevType {
    match leaf.geometry.kind {
        DiskKind::File => VdevType::File,
        DiskKind::Block { .. } => VdevType::Disk,
    }
}
