//! The open tree follows its description when devices join groups and leave them.
//!
//! ```text
//!   Spec::attach, Spec::detach ─▶ Tree::reshape ─▶ each top-level vdev whose groups changed: the same leaves, grouped anew
//! ```
//!
//! Operations under way keep to the groups that they began with: what they do not write to a device that has just joined is
//! born in a txg which that device is known to miss.
//!
//! A device that has grown makes its top-level vdev larger only when asked ([`Tree::grow`]), and only as far as all devices
//! of the vdev have grown: its space map arrays, and every label, then speak of the new size.
//!
//! Not here: what is allowed (the pool), labels, what the configuration says on disk.

use crate::kinds::ops_of;
use crate::leaf::Leaf;
use crate::node::{Body, Group, Node};
use crate::open::open_joining;
use crate::{Health, OpenOptions, Spec, Top, Tree};
use std::sync::Arc;
use units::{Error, Guid, HashMap, Kind, Result, VdevId};

impl Tree {
    /// Opens a device that is to join the top-level vdev `top`. It is not part of the tree yet.
    ///
    /// # Errors
    /// `Invalid` when it cannot be used: absent, too small, of larger sectors than the vdev has.
    pub async fn open_joining(&self, top: &Top, spec: &Spec) -> Result<Arc<Leaf>> {
        let tops = self.spec();
        let of = tops.children.iter().find(|t| t.guid == top.guid());
        let of = of.ok_or_else(|| Error::new(Kind::NotFound, "find vdev"))?;
        let options = OpenOptions { pool: None, devices: HashMap::default(), ..self.options().clone() };
        open_joining(spec, of, top.least_asize(), &options, top.alarm()).await
    }

    /// Lets a top-level vdev have all that its devices have now, and answers its allocatable bytes. In syncing context,
    /// before the configuration and the labels of the txg are written.
    pub fn grow(&self, top: &Top) -> u64 {
        let asize = top.node().asize_now();
        if asize > top.asize() {
            top.leaves().iter().for_each(|leaf| leaf.grow());
            top.set_asize(asize);
            let guid = top.guid();
            self.update_spec(|root| {
                root.find_mut(guid).into_iter().for_each(|spec| spec.asize = Some(asize))
            });
        }
        top.asize()
    }

    /// Makes `spec` the tree's description and groups the devices as it says. `renamed` are guids that leaves had and have;
    /// `joined` are devices that were not part of the tree. Answers the devices that are not any more.
    ///
    /// # Errors
    /// The description is not of these devices: a mistake of the caller's, and nothing is changed.
    pub fn reshape(
        &self,
        spec: Spec,
        renamed: &[(Guid, Guid)],
        joined: &[Arc<Leaf>],
    ) -> Result<Vec<Arc<Leaf>>> {
        let called = |leaf: &Leaf| {
            let own = leaf.guid();
            renamed.iter().find(|(was, _)| *was == own).map_or(own, |(_, is)| *is)
        };
        let before = self.leaves();
        let all = before.iter().chain(joined);
        let by_guid: HashMap<Guid, Arc<Leaf>> = all.map(|leaf| (called(leaf), leaf.clone())).collect();
        let mut changed = Vec::new();
        for top in self.tops() {
            let of = spec.children.iter().find(|s| s.id == Some(u64::from(top.id.0)));
            let of = of.ok_or_else(|| Error::corrupt(format!("vdev {} is not described", top.id)))?;
            if of.vdev_type.is_concrete() && !is_grouped_so(&top.node(), of) {
                changed.push((top.clone(), regrouped(of, of, &top.node(), &by_guid)?));
            }
        }
        for leaf in &before {
            leaf.set_guid(called(leaf));
        }
        for (top, node) in changed {
            top.regroup(node);
        }
        self.update_spec(|own| *own = spec);
        let now: Vec<Guid> = self.leaves().iter().map(|leaf| leaf.guid()).collect();
        Ok(before.into_iter().filter(|leaf| !now.contains(&leaf.guid())).collect())
    }

    /// The top-level vdev that a leaf is or is in, and the leaf.
    pub fn find_leaf(&self, guid: Guid) -> Option<(Arc<Top>, Arc<Leaf>)> {
        self.tops().into_iter().find_map(|top| {
            let leaf = top.leaves().into_iter().find(|leaf| leaf.guid() == guid)?;
            Some((top, leaf))
        })
    }

    /// Whether something would be lost without this leaf: no other device has it whole. Devices that miss anything count as
    /// gone then.
    pub fn is_required(&self, guid: Guid) -> bool {
        self.find_leaf(guid).is_some_and(|(top, _)| !top.health_without(guid).state.is_usable())
    }

    /// The top-level vdev by its number, or by the guid of anything in it.
    pub fn top_of(&self, guid: Guid) -> Option<Arc<Top>> {
        let id = self.spec().top_of(guid)?.id?;
        self.top(VdevId(u32::try_from(id).ok()?))
    }
}

impl Top {
    pub(crate) fn health_without(&self, leaf: Guid) -> Health {
        self.node().health_without(Some(leaf))
    }
}

/// The vdev that `spec` describes, of the devices there are: groups that were there before keep their errors.
fn regrouped(spec: &Spec, top: &Spec, old: &Node, leaves: &HashMap<Guid, Arc<Leaf>>) -> Result<Arc<Node>> {
    let kind = spec.vdev_type;
    if let Some(leaf) = leaves.get(&spec.guid).filter(|_| spec.is_leaf()) {
        return Ok(Node::new(spec.guid, kind, Body::Leaf(leaf.clone())));
    }
    let same = old.find(spec.guid);
    let width = spec.children.len();
    let has_its_width = same.is_some_and(|same| same.vdev_type == kind && same.children().len() == width);
    if !kind.is_group() || width == 0 || !(kind.is_mirror() || has_its_width) {
        return Err(Error::corrupt(format!("vdev {} cannot be regrouped", spec.name())));
    }
    let children = spec.children.iter().map(|child| regrouped(child, top, old, leaves));
    let children = children.collect::<Result<Vec<_>>>()?;
    let ops = ops_of(spec, top.ashift.unwrap_or(0))?;
    let redundancy = kind.redundancy(width, spec.nparity);
    let node = Node::new(spec.guid, kind, Body::Group(Group { ops, redundancy, children }));
    if let Some(same) = same {
        node.keep_errors_of(same);
    }
    Ok(node)
}

fn is_grouped_so(node: &Node, spec: &Spec) -> bool {
    node.guid == spec.guid
        && node.vdev_type == spec.vdev_type
        && node.children().len() == spec.children.len()
        && node.children().iter().zip(&spec.children).all(|(node, spec)| is_grouped_so(node, spec))
}
