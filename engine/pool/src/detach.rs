//! `zpool detach`, and the devices that leave by themselves when a resilver is done.
//!
//! ```text
//!   is anything lost without it? ─▶ txg N: out of its group, its map and its ZAP freed, configuration
//!     ─▶ N is on disk ─▶ its labels are wiped, or, of a spare, say again that it is one ─▶ closed
//! ```
//!
//! A device leaves only while others have everything without it: those that miss anything do not count. The question is
//! asked again in the txg that takes it out, for a device may have failed since.

use crate::attach::no_such;
use crate::pool::{Inner, Pool};
use crate::vdev_zaps;
use dmu::Tx;
use metaslab::SpaceLog;
use ondisk::Feature;
use std::sync::Arc;
use std::time::Duration;
use units::{Error, Guid, Kind, ObjectId, Result};
use vdev::{AuxKind, Detached, Health, Leaf, Spec, State, VdevType};
use world::Boxed;

/// How long a device that leaves is waited for: a suspended pool keeps it for as long as that lasts.
const LEAVING: Duration = Duration::from_secs(5);

/// What leaves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaving {
    leaf: Guid,
    /// The group that it is to be in: what was planned for another state of things is not done.
    group: Guid,
}

impl Pool {
    /// Takes a device out of its mirror, calls a replacement off, or makes a spare permanent.
    ///
    /// # Errors
    /// `Busy` when no other device has all that it has; `Invalid` when it is in no mirror; `NotFound`.
    pub fn detach(&self, guid: Guid) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let pool = self.clone();
            world::spawn(async move {
                pool.detach_now(guid, None).await?;
                // A spare that stood in for it may be permanent now, and others not needed any more.
                pool.release_devices().await
            })
            .await
        })
    }

    /// Lets all those go that a replacement or the return of an original has made superfluous.
    pub(crate) async fn release_devices(&self) -> Result<()> {
        while let Some(leaving) = self.superfluous() {
            for Leaving { leaf, group } in leaving {
                self.detach_now(leaf, Some(group)).await?;
            }
        }
        Ok(())
    }

    /// As [`Pool::release_devices`], without waiting.
    pub(crate) fn release_soon(&self) {
        if self.superfluous().is_none() {
            return;
        }
        let pool = self.clone();
        drop(self.spawn(async move {
            if let Err(e) = pool.release_devices().await {
                pool.0.note_problem(e.at("devices that are not needed any more"));
            }
        }));
    }

    fn superfluous(&self) -> Option<Vec<Leaving>> {
        let tree = self.tree();
        let is_whole =
            |guid| tree.find_leaf(guid).is_some_and(|(_, leaf)| leaf.is_usable() && !leaf.missing().is_any());
        superfluous(&tree.spec(), &is_whole, &|guid| tree.is_required(guid))
    }

    /// Waits until no device is just leaving, but not for long: one that the tree does not show any more is still to be
    /// wiped, and open until then.
    pub fn devices_have_left(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            let _ = world::timeout(LEAVING, self.0.reshaping.lock()).await;
        })
    }

    async fn detach_now(&self, guid: Guid, group: Option<Guid>) -> Result<()> {
        let inner = &self.0;
        let _one_at_a_time = inner.reshaping.lock().await;
        self.check_leaves(guid, group)?;
        let spares = inner.tree.aux(AuxKind::Spare);
        let (gone, leaf) = self
            .change("detach", move |pool, tx| async move { pool.leave_group(&tx, guid, group).await })
            .await?;
        let was_usable = leaf.is_usable();
        // One that the administrator faulted is there all the same.
        let is_there = was_usable || leaf.health().aux == vdev::Aux::External;
        let spare = spares.iter().find(|spare| spare.spec.guid == gone.spec.guid);
        if was_usable
            && spare.is_none()
            && let Err(e) = vdev::label::fresh::wipe(&leaf).await
        {
            inner.note_problem(format!(
                "the labels of '{}', which was detached, are still there: {e}",
                leaf.device()
            ));
        }
        leaf.take_out(Health::new(State::Offline, vdev::Aux::None)).await;
        if let Some(spare) = spare.filter(|_| is_there) {
            let version = self.config().version;
            if let Err(e) =
                inner.tree.label_aux(AuxKind::Spare, std::slice::from_ref(&spare.spec), version).await
            {
                inner.note_problem(format!("the spare '{}' could not be given back: {e}", leaf.device()));
            }
        }
        if gone.unspared.is_some() || spare.is_some() {
            self.load_side_devices(None).await;
        }
        self.trust_caches();
        Ok(())
    }

    fn check_leaves(&self, guid: Guid, group: Option<Guid>) -> Result<()> {
        let tree = self.tree();
        let spec = tree.spec();
        let parent = spec.parent_of(guid).ok_or_else(no_such)?;
        if group.is_some_and(|group| parent.guid != group) {
            return Err(Error::new(Kind::Busy, "detach").because("its group has changed"));
        }
        spec.clone().detach(guid)?;
        if tree.is_required(guid) {
            return Err(Error::new(Kind::Busy, "detach").because("no valid replicas"));
        }
        Ok(())
    }

    async fn leave_group(&self, tx: &Tx, guid: Guid, group: Option<Guid>) -> Result<(Detached, Arc<Leaf>)> {
        let inner = &self.0;
        self.check_leaves(guid, group)?;
        let mut spec = inner.tree.spec();
        let gone = spec.detach(guid)?;
        if let Some(spare) = gone.unspared {
            self.forget_spare(tx, spare).await?;
        }
        if let Some(map) = gone.spec.dtl.and_then(|map| ObjectId(map).some()) {
            inner.free_map(tx, map).await?;
        }
        vdev_zaps::remove(inner.dsl.core(), tx, &gone.spec).await?;
        let left = inner.tree.reshape(spec, gone.renamed.as_slice(), &[])?;
        let leaf = left.into_iter().next().ok_or_else(no_such)?;
        self.update_config(|_| ());
        let path = gone.spec.path.as_deref().unwrap_or("none");
        inner.dsl.record_event(tx, "detach", &format!("vdev={path}"), None).await?;
        Ok((gone, leaf))
    }
}

impl Inner {
    /// Frees a space map that belongs to no metaslab.
    pub(crate) async fn free_map(&self, tx: &Tx, map: ObjectId) -> Result<()> {
        let has_histogram = self.space_log.info(map).await?.header.histogram.is_some();
        self.mos.free(tx, map).await?;
        if has_histogram {
            self.dsl.core().features().add(tx, Feature::SpacemapHistogram, -1).await?;
        }
        Ok(())
    }
}

/// The devices that are to leave next. Of a group the first is the oldest, the last the newest.
fn superfluous(
    spec: &Spec,
    is_whole: &dyn Fn(Guid) -> bool,
    is_required: &dyn Fn(Guid) -> bool,
) -> Option<Vec<Leaving>> {
    let whole = |vdev: &Spec| vdev.leaves().any(|leaf| is_whole(leaf.guid));
    for group in spec.walk() {
        let [first, .., last] = &group.children[..] else { continue };
        let leaves = |vdev: &Spec| vdev.is_leaf() && !is_required(vdev.guid);
        let of = |vdev: &Spec| Leaving { leaf: vdev.guid, group: group.guid };
        match group.vdev_type {
            // A spare has come to stand in for a device that is being replaced: it goes back first.
            VdevType::Replacing if whole(last) && first.vdev_type == VdevType::Spare => {
                let spare = first.children.last().filter(|spare| spare.is_spare() && leaves(spare));
                if let Some(spare) = spare {
                    return Some(vec![Leaving { leaf: spare.guid, group: first.guid }]);
                }
            }
            VdevType::Replacing if whole(last) && leaves(first) => {
                let mut leaving = vec![of(first)];
                // The original that a spare stands in for has been replaced: the spare goes back.
                let outer = spec.parent_of(group.guid);
                if let Some(outer) = outer.filter(|outer| outer.vdev_type == VdevType::Spare)
                    && let [original, spare] = &outer.children[..]
                    && original.guid == group.guid
                    && group.children.len() == 2
                {
                    leaving.push(Leaving { leaf: spare.guid, group: outer.guid });
                }
                return Some(leaving);
            }
            VdevType::Spare if first.is_unspare() && whole(first) && leaves(last) => {
                return Some(vec![of(last)]);
            }
            VdevType::Spare if group.children.len() > 2 => {
                let second = &group.children[1];
                if second.is_spare() && last.is_spare() && whole(last) && leaves(second) {
                    return Some(vec![of(second)]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(guid: u64) -> Spec {
        Spec::new(VdevType::File, Guid(guid))
    }

    fn group(kind: VdevType, guid: u64, children: Vec<Spec>) -> Spec {
        Spec { children, ..Spec::new(kind, Guid(guid)) }
    }

    /// A spare came to stand in for a disk in the moment in which its replacement began: neither ever left.
    #[test]
    fn a_spare_within_a_replacement_goes_back_before_the_original_leaves() {
        let mut spare = leaf(30);
        spare.other.set("is_spare", 1u64);
        let both = group(VdevType::Spare, 20, vec![leaf(10), spare]);
        let replacing = group(VdevType::Replacing, 21, vec![both, leaf(11)]);
        let mut tree = group(VdevType::Root, 1, vec![group(VdevType::Raidz, 2, vec![leaf(12), replacing])]);
        let is_whole = |guid| guid != Guid(10);
        let next = |tree: &Spec| superfluous(tree, &is_whole, &|_| false);
        let leaving = |leaf, group| Some(vec![Leaving { leaf: Guid(leaf), group: Guid(group) }]);
        assert_eq!(next(&tree), leaving(30, 20));
        tree.detach(Guid(30)).unwrap();
        assert_eq!(next(&tree), leaving(10, 21));
        tree.detach(Guid(10)).unwrap();
        assert_eq!(next(&tree), None);
        assert_eq!(tree.leaves().map(|leaf| leaf.guid.0).collect::<Vec<_>>(), [12, 11]);
        let required = |guid| guid == Guid(30);
        let whole = |guid| guid == Guid(30);
        let both = group(VdevType::Spare, 20, vec![leaf(10), leaf(30)]);
        let unfinished = group(VdevType::Root, 1, vec![group(VdevType::Replacing, 21, vec![both, leaf(11)])]);
        assert_eq!(superfluous(&unfinished, &whole, &required), None, "the new one is not whole yet");
    }
}
