//! Devices that join a group and leave it, as changes of the tree. Pure.
//!
//! ```text
//!   attach c to a     a          ─▶  mirror(a c)         mirror(a b)  ─▶  mirror(a b c)
//!   replace a by c    raidz(a b) ─▶  raidz(replacing(a c) b)
//!   detach a                         raidz(replacing(a c) b) ─▶ raidz(c b)      mirror(a c) ─▶ c
//! ```
//!
//! What belongs to a top-level vdev moves to the group that takes its place, and back to the device that is left. That
//! device takes the guid of the group along: so labels of a device that was away name the same top-level vdev, and are not
//! taken for another one.
//!
//! A device that is replaced by another one under the same path is called by that path and `/old` meanwhile.

use super::Spec;
use crate::VdevType;
use units::{Error, Guid, Kind, Result};

/// What else of a top-level vdev is not a device's own.
const OF_TOPS: [&str; 3] = ["non_allocating", "removing", "alloc_bias"];
/// A leaf that is a spare, in use or not.
const IS_SPARE: &str = "is_spare";
/// A spare or its original that is to stay when the other has been resilvered.
const UNSPARE: &str = "unspare";
/// What a device is called by whose path has gone to another one.
const OLD: &str = "/old";

/// What is left of a device that left its group.
#[derive(Clone, Debug, PartialEq)]
pub struct Detached {
    pub spec: Spec,
    /// The device that took the place and the guid of its group: what it was called, and is.
    pub renamed: Option<(Guid, Guid)>,
    /// A spare that is an ordinary device from now on: the guid that the list of spares knows it by.
    pub unspared: Option<Guid>,
}

impl Spec {
    pub fn is_spare(&self) -> bool {
        self.other.opt_u64(IS_SPARE).ok().flatten().is_some_and(|v| v != 0)
    }

    /// Whether the other device of its `spare` group is to go when this one is whole.
    pub fn is_unspare(&self) -> bool {
        self.other.opt_u64(UNSPARE).ok().flatten().is_some_and(|v| v != 0)
    }

    pub fn set_unspare(&mut self, unspare: bool) {
        self.other.remove(UNSPARE);
        if unspare {
            self.other.set(UNSPARE, 1u64);
        }
    }

    /// The group that a vdev is directly in.
    pub fn parent_of(&self, guid: Guid) -> Option<&Spec> {
        self.walk().find(|s| s.children.iter().any(|c| c.guid == guid))
    }

    /// The top-level vdev that a device is, or is in.
    pub fn top_of(&self, guid: Guid) -> Option<&Spec> {
        self.children.iter().find(|top| top.find(guid).is_some())
    }

    /// Lets `new` join the device `old`: beside it in a mirror, or, with `replaces`, to take its place. `group` is the guid
    /// of the group that is made for both, if one is.
    ///
    /// # Errors
    /// `NotFound`, or `Invalid` where nothing can join.
    pub fn attach(&mut self, old: Guid, mut new: Spec, replaces: bool, group: Guid) -> Result<()> {
        let how = match (replaces, new.is_spare()) {
            (false, _) => VdevType::Mirror,
            (true, true) => VdevType::Spare,
            (true, false) => VdevType::Replacing,
        };
        self.check_attach(old, &new, how)?;
        let found = self.find(old).ok_or_else(no_such)?;
        new.create_txg = found.create_txg;
        let path = found.path.clone();
        let parent = self.parent_of(old).ok_or_else(no_such)?.vdev_type;
        if replaces && path.is_some() && path == new.path {
            let old = self.find_mut(old).ok_or_else(no_such)?;
            old.path = path.map(|path| path + OLD);
            old.other.remove("devid");
        }
        let spec = self.find_mut(old).ok_or_else(no_such)?;
        if parent != how {
            let child = std::mem::replace(spec, Spec::new(how, group));
            *spec = over(child, how, group);
            spec.children.push(Spec { id: Some(1), ..new });
            return Ok(());
        }
        let parent = self.parent_of(old).ok_or_else(no_such)?.guid;
        let parent = self.find_mut(parent).ok_or_else(no_such)?;
        new.id = Some(parent.children.len() as u64);
        parent.children.push(new);
        Ok(())
    }

    fn check_attach(&self, old: Guid, new: &Spec, how: VdevType) -> Result<()> {
        let target = self.find(old).ok_or_else(no_such)?;
        let parent = self.parent_of(old).ok_or_else(no_such)?;
        let top = self.top_of(old).ok_or_else(no_such)?;
        let refused = |why: &str| Err(Error::invalid(why.to_string()));
        let only_mirrors = "can only attach to mirrors and top-level disks";
        let under_way = "already in replacing/spare config; wait for completion or use 'zpool detach'";
        if target.vdev_type.has_parity() {
            return Err(Error::unsupported("raidz expansion is not part of this version of Cenote yet"));
        }
        if !target.is_leaf() {
            return refused(only_mirrors);
        }
        match how {
            VdevType::Mirror if ![VdevType::Mirror, VdevType::Root].contains(&parent.vdev_type) => {
                refused(only_mirrors)
            }
            VdevType::Mirror => Ok(()),
            _ if new.is_spare() && top.is_log() => refused("cannot replace a log with a spare"),
            _ if ![VdevType::Spare, VdevType::Replacing].contains(&parent.vdev_type) => Ok(()),
            _ if parent.vdev_type == VdevType::Replacing && target.is_spare() != new.is_spare() => {
                refused(under_way)
            }
            _ if target.is_spare() && !new.is_spare() => refused("can only be replaced by another hot spare"),
            // The original itself may be replaced while a spare stands in for it.
            _ if target.is_spare() == new.is_spare() => Ok(()),
            _ => refused(under_way),
        }
    }

    /// Takes a device out of its mirror, or ends a replacement.
    ///
    /// # Errors
    /// `NotFound`, or `Invalid` where nothing can leave.
    pub fn detach(&mut self, guid: Guid) -> Result<Detached> {
        let parent = self.parent_of(guid).ok_or_else(no_such)?;
        if !parent.vdev_type.is_mirror() || !self.find(guid).is_some_and(Spec::is_leaf) {
            return Err(Error::invalid("only applicable to mirror and replacing vdevs"));
        }
        let (parent, kind) = (parent.guid, parent.vdev_type);
        let group = self.find_mut(parent).ok_or_else(no_such)?;
        let at = group.children.iter().position(|c| c.guid == guid).ok_or_else(no_such)?;
        let gone = group.children.remove(at);
        (0..).zip(&mut group.children).for_each(|(id, child)| child.id = Some(id));
        if let (VdevType::Replacing, true, Some(path)) = (kind, at > 0, &gone.path) {
            let renamed = format!("{path}{OLD}");
            let original = group.children.iter_mut().find(|c| c.path.as_deref() == Some(&renamed));
            original.into_iter().for_each(|c| c.path = Some(path.clone()));
        }
        let mut unspared = None;
        if kind == VdevType::Spare
            && at == 0
            && let Some(last) = group.children.last_mut().filter(|c| c.is_spare())
        {
            unspared = Some(last.guid);
            [IS_SPARE, UNSPARE].into_iter().for_each(|name| last.other.remove(name));
        }
        let mut renamed = None;
        if group.children.len() == 1 {
            let mut left = group.children.remove(0);
            left.set_unspare(false);
            let is_top = self.children.iter().any(|top| top.guid == parent);
            let group = self.find_mut(parent).ok_or_else(no_such)?;
            left.id = group.id;
            if is_top {
                renamed = Some((left.guid, parent));
                left.guid = parent;
                move_top(group, &mut left);
            }
            *group = left;
        }
        Ok(Detached { spec: gone, renamed, unspared })
    }
}

impl Spec {
    /// The tree of the pool `pool` that the devices `chosen` become, one of each mirror. A log device stays where it is:
    /// there is a hole in its place.
    ///
    /// # Errors
    /// `Invalid` when a top-level vdev is no mirror, or has none of the devices.
    pub fn split(&self, chosen: &[Guid], pool: Guid) -> Result<Spec> {
        let mut root = Spec { guid: pool, children: Vec::new(), ..self.clone() };
        for top in &self.children {
            if top.is_log() || top.vdev_type == VdevType::Hole {
                root.children.push(Spec::hole(top.id.unwrap_or(0)));
                continue;
            }
            let mut top = top.clone();
            let at = top.children.iter().position(|c| c.is_leaf() && chosen.contains(&c.guid));
            let at = at.filter(|_| top.vdev_type == VdevType::Mirror);
            let at = at.ok_or_else(|| Error::invalid(format!("{} cannot be split", top.name())))?;
            let mut side = top.children.remove(at);
            side.id = top.id;
            move_top(&mut top, &mut side);
            root.children.push(side);
        }
        Ok(root)
    }
}

/// A group around one vdev, in its place.
fn over(mut child: Spec, how: VdevType, guid: Guid) -> Spec {
    let mut group = Spec { id: child.id, create_txg: child.create_txg, ..Spec::new(how, guid) };
    move_top(&mut child, &mut group);
    child.id = Some(0);
    group.children.push(child);
    group
}

/// What is a top-level vdev's goes from one to the other; a vdev further down has none of it.
fn move_top(from: &mut Spec, to: &mut Spec) {
    to.metaslab_array = from.metaslab_array.take();
    to.metaslab_shift = from.metaslab_shift.take();
    to.ashift = from.ashift.take();
    to.asize = from.asize.take();
    to.min_alloc = from.min_alloc.take();
    to.is_log = from.is_log.take();
    to.top_zap = from.top_zap.take();
    to.bias = std::mem::take(&mut from.bias);
    for name in OF_TOPS {
        if let Some(value) = from.other.get(name) {
            to.other.set(name, value.clone());
        }
    }
    OF_TOPS.into_iter().for_each(|name| from.other.remove(name));
}

fn no_such() -> Error {
    Error::new(Kind::NotFound, "find device").because("no such device in pool")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(guid: u64) -> Spec {
        Spec { path: Some(format!("/d/{guid}")), ..Spec::new(VdevType::File, Guid(guid)) }
    }

    fn spare(guid: u64) -> Spec {
        let mut spec = leaf(guid);
        spec.other.set(IS_SPARE, 1u64);
        spec
    }

    fn group(vdev_type: VdevType, guid: u64, leaves: &[u64]) -> Spec {
        let children = (0..).zip(leaves).map(|(id, &guid)| Spec { id: Some(id), ..leaf(guid) }).collect();
        Spec { children, ..Spec::new(vdev_type, Guid(guid)) }
    }

    fn root(top: Spec) -> Spec {
        let top = Spec {
            id: Some(0),
            ashift: Some(12),
            asize: Some(1 << 30),
            metaslab_array: Some(7),
            metaslab_shift: Some(24),
            top_zap: Some(9),
            is_log: Some(0),
            create_txg: Some(4),
            ..top
        };
        Spec { id: Some(0), children: vec![top], ..Spec::new(VdevType::Root, Guid(1)) }
    }

    /// `mirror(10 11)`, ids checked on the way.
    fn shape(spec: &Spec) -> String {
        for (id, child) in (0..).zip(&spec.children) {
            assert_eq!(child.id, Some(id));
        }
        if spec.is_leaf() {
            return spec.guid.to_string();
        }
        let children: Vec<String> = spec.children.iter().map(shape).collect();
        format!("{}({})", spec.vdev_type, children.join(" "))
    }

    fn check_top(root: &Spec) {
        let top = &root.children[0];
        assert_eq!((top.metaslab_array, top.asize, top.top_zap), (Some(7), Some(1 << 30), Some(9)));
        for below in top.children.iter().flat_map(Spec::walk) {
            assert_eq!((below.metaslab_array, below.asize, below.top_zap), (None, None, None));
            assert_eq!(below.create_txg.or(Some(4)), Some(4));
        }
    }

    #[test]
    fn a_disk_becomes_a_mirror_and_a_disk_again() {
        let mut tree = root(leaf(10));
        tree.attach(Guid(10), leaf(11), false, Guid(20)).unwrap();
        assert_eq!(shape(&tree), "root(mirror(10 11))");
        check_top(&tree);
        tree.attach(Guid(11), leaf(12), false, Guid(21)).unwrap();
        assert_eq!(shape(&tree), "root(mirror(10 11 12))");
        assert_eq!(tree.detach(Guid(10)).unwrap().renamed, None);
        let gone = tree.detach(Guid(12)).unwrap();
        assert_eq!((gone.spec.guid, gone.renamed), (Guid(12), Some((Guid(11), Guid(20)))));
        assert_eq!(shape(&tree), "root(20)", "the last device keeps the guid of the group");
        assert_eq!(tree.children[0].path.as_deref(), Some("/d/11"));
        check_top(&tree);
        assert!(tree.detach(Guid(20)).is_err());
    }

    #[test]
    fn a_device_of_a_raidz_is_replaced_and_the_replacement_can_be_called_off() {
        let mut tree = root(group(VdevType::Raidz, 5, &[10, 11, 12]));
        let same_path = Spec { path: Some("/d/11".into()), ..leaf(13) };
        tree.attach(Guid(11), same_path, true, Guid(20)).unwrap();
        assert_eq!(shape(&tree), "root(raidz(10 replacing(11 13) 12))");
        assert_eq!(tree.find(Guid(11)).unwrap().path.as_deref(), Some("/d/11/old"));
        check_top(&tree);
        let mut called_off = tree.clone();
        called_off.detach(Guid(13)).unwrap();
        assert_eq!(shape(&called_off), "root(raidz(10 11 12))");
        assert_eq!(called_off.find(Guid(11)).unwrap().path.as_deref(), Some("/d/11"));
        tree.detach(Guid(11)).unwrap();
        assert_eq!(shape(&tree), "root(raidz(10 13 12))");
        assert!(tree.attach(Guid(10), leaf(14), false, Guid(21)).is_err(), "no mirror within a raidz");
        tree.attach(Guid(12), leaf(15), true, Guid(22)).unwrap();
        for part in [12, 15] {
            assert!(
                tree.attach(Guid(part), spare(30), true, Guid(23)).is_err(),
                "no spare within a replacement"
            );
        }
        tree.detach(Guid(15)).unwrap();
        assert!(tree.detach(Guid(10)).is_err());
    }

    #[test]
    fn a_spare_stands_in_goes_back_or_stays() {
        let mut tree = root(group(VdevType::Mirror, 5, &[10, 11]));
        tree.attach(Guid(10), spare(30), true, Guid(20)).unwrap();
        assert_eq!(shape(&tree), "root(mirror(spare(10 30) 11))");
        let refused = tree.clone().attach(Guid(30), leaf(40), true, Guid(21)).unwrap_err();
        assert_eq!(refused.to_string(), "can only be replaced by another hot spare");
        let mut back = tree.clone();
        assert_eq!(back.detach(Guid(30)).unwrap().unspared, None);
        assert_eq!(shape(&back), "root(mirror(10 11))");
        let mut replaced = tree.clone();
        replaced.attach(Guid(10), leaf(40), true, Guid(22)).unwrap();
        assert_eq!(shape(&replaced), "root(mirror(spare(replacing(10 40) 30) 11))");
        assert_eq!(tree.detach(Guid(10)).unwrap().unspared, Some(Guid(30)));
        assert_eq!(shape(&tree), "root(mirror(30 11))");
        assert!(!tree.find(Guid(30)).unwrap().is_spare());
    }

    #[test]
    fn a_side_of_each_mirror_becomes_a_tree_of_its_own() {
        let mut tree = root(group(VdevType::Mirror, 5, &[10, 11]));
        let log = Spec { id: Some(1), is_log: Some(1), ..leaf(40) };
        tree.children.push(log);
        tree.children.push(Spec { id: Some(2), ..group(VdevType::Mirror, 6, &[12, 13]) });
        let split = tree.split(&[Guid(11), Guid(12)], Guid(99)).unwrap();
        assert_eq!(split.guid, Guid(99));
        let tops: Vec<_> = split.children.iter().map(|t| (t.guid.0, t.vdev_type, t.id)).collect();
        let expected =
            [(11, VdevType::File, Some(0)), (0, VdevType::Hole, Some(1)), (12, VdevType::File, Some(2))];
        assert_eq!(tops, expected);
        check_top(&split);
        assert!(tree.split(&[Guid(11)], Guid(99)).is_err(), "one of each mirror");
        assert!(root(leaf(10)).split(&[Guid(10)], Guid(99)).is_err(), "a disk alone is no mirror");
    }

    #[test]
    fn a_group_that_stood_in_a_mirror_of_two_keeps_its_place() {
        let mut tree = root(leaf(10));
        tree.attach(Guid(10), leaf(11), true, Guid(20)).unwrap();
        assert_eq!(shape(&tree), "root(replacing(10 11))");
        check_top(&tree);
        let gone = tree.detach(Guid(10)).unwrap();
        assert_eq!(gone.renamed, Some((Guid(11), Guid(20))));
        check_top(&tree);
    }
}
