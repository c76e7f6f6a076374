//! The tree of a new pool, from what `zpool create` and `zpool add` were asked for. Pure: devices were looked at before.

use super::{Bias, Spec};
use crate::{AuxKind, Layout, VdevType, geometry, kinds};
use ondisk::label::MIN_DEVICE_SIZE;
use std::collections::BTreeSet;
use std::path::Path;
use units::{Error, Guid, Result, Txg};
use world::{DiskKind, Geometry, OpenMode};

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
            let of_each = if group.layout == Layout::Stripe { 1 } else { group.leaves.len() };
            for leaves in group.leaves.chunks(of_each) {
                tops.push(top_of(group, leaves, ashift, txg, &mut new_guid)?);
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
        layout => (layout.word(), layout.redundancy(g.leaves.len())),
    };
    for group in &ordinary {
        let (a, b) = (redundancy(first), redundancy(group));
        // Mirrors and raidz that bear as much go together, as a special mirror with a raidz.
        if a.1 != b.1 {
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
        Level::new(top.vdev_type, top.nparity, top.children.len() as u64)
    }

    fn of_group(group: &Group) -> Level {
        match group.layout.group() {
            Some((vdev_type, parity)) => Level::new(vdev_type, parity, group.leaves.len() as u64),
            None => Level::new(group.leaves.first().map_or(VdevType::File, leaf_type), None, 0),
        }
    }

    /// How wide a group with parity is says nothing of how much it bears.
    fn new(vdev_type: VdevType, nparity: Option<u64>, children: u64) -> Level {
        match vdev_type.has_parity() {
            true => Level { vdev_type, parity: nparity.unwrap_or(1), children: 0 },
            false => Level { vdev_type, parity: 0, children },
        }
    }

    /// How many devices may fail.
    fn redundancy(self) -> usize {
        self.vdev_type.redundancy(self.children as usize, Some(self.parity))
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
    // A group that a device is being replaced in is none that could be made.
    let is_made =
        |level: &Level| level.vdev_type.is_group() && Layout::from_word(level.vdev_type.word(), 1).is_some();
    let across = own.vdev_type != new.vdev_type && is_made(&own) && is_made(&new);
    let why = if across {
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
    let layout = group.layout;
    let parity = Some(layout.parity()).filter(|parity| *parity > 0);
    let word = format!("{}{}", layout.word(), parity.map_or(String::new(), |parity| parity.to_string()));
    let (n, devices) = (group.leaves.len(), layout.devices());
    if n < *devices.start() {
        return Err(Error::invalid(format!("{word} needs at least {} devices; {n} given", devices.start())));
    }
    if n > *devices.end() {
        return Err(Error::invalid(format!("{word} takes at most {} devices; {n} given", devices.end())));
    }
    if group.bias == Bias::Log && !layout.can_be_log() {
        return Err(Error::invalid(format!("a log can be a mirror, but not {}", layout.word())));
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

    let mut asize = child_asize;
    let mut top = match group.layout.group() {
        None => {
            let mut top = Spec::new(leaf_type(&leaves[0]), new_guid());
            describe_leaf(&mut top, &leaves[0]);
            top
        }
        Some((vdev_type, nparity)) => {
            let mut top = Spec { nparity, ..Spec::new(vdev_type, new_guid()) };
            top.children = (0..).zip(leaves).map(|(id, leaf)| child_of(leaf, id, txg, new_guid())).collect();
            asize = kinds::ops_of(&top, ashift.into())?.capacity(leaves.len(), child_asize);
            top
        }
    };
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
