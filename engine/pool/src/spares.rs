//! Spares that take the place of devices by themselves.
//!
//! ```text
//!   a device is faulted, removed or cannot be opened ──▶ the first spare that is there, large enough and not in use
//!     ──▶ spare(device spare) ──▶ resilver ──▶ the device is back, or replaced ──▶ the spare goes back ([`crate::detach`])
//! ```
//!
//! It is looked when the pool is opened and after every txg. A device that an administrator took offline is not missed, and
//! neither is one that stands in a replacement already. A spare that several pools have may be in use by another: it is
//! tried again every [`TAKEN`], and one that does not fit is not, until an administrator has devices looked at.

mod state;

pub(crate) use state::Spares;

use crate::pool::{Pool, lock};
use ondisk::PoolState;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::{Guid, Kind};
use vdev::{AuxDevice, AuxKind, Device, Spec, State, VdevType};

/// How soon a spare that another pool has is tried again.
const TAKEN: Duration = Duration::from_secs(5);

impl Pool {
    /// Begins to put a spare in place if one is wanted and there.
    pub(crate) fn consider_spares(&self) {
        if self.0.read_only || self.0.txgs.is_closing() || self.wanted_spare().is_none() {
            return;
        }
        if self.0.spares.is_busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let pool = self.clone();
        drop(self.spawn(async move {
            while let Some((old, spare)) = pool.wanted_spare() {
                let guid = spare.guid;
                if let Err(e) = pool.spare_in(old, spare).await {
                    if e.kind() == Kind::Busy {
                        // Another pool has it now, and may give it back.
                        lock(&pool.0.spares.taken).insert(guid, world::now());
                        pool.consider_spares_later();
                        continue;
                    }
                    lock(&pool.0.spares.refused).insert((old, guid));
                    pool.0.note_problem(e.at("a spare that was to take the place of a device"));
                }
            }
            pool.0.spares.is_busy.store(false, Ordering::Release);
        }));
    }

    /// A pool that is idle has no txg after which it would be looked.
    fn consider_spares_later(&self) {
        let pool = Arc::downgrade(&self.0);
        world::spawn(async move {
            world::sleep(TAKEN).await;
            if let Some(inner) = pool.upgrade() {
                Pool(inner).consider_spares();
            }
        });
    }

    /// What an administrator does may have mended what a spare was refused for.
    pub(crate) fn try_spares_again(&self) {
        lock(&self.0.spares.refused).clear();
        lock(&self.0.spares.taken).clear();
    }

    /// A spare that left a group is labelled as a spare again after the txg in which it left. Where the power went between
    /// these, or the device took no label, it is labelled now; else it would count as a member that is gone. The caller
    /// has the right to reshape the pool, or is the only one that knows it.
    ///
    /// Answers those that may still be labelled as members: they are not there, or take no label. While the pool keeps its
    /// guid, the label tells that it is this pool's; with another it would be another pool's for good.
    pub(crate) async fn give_spares_back(&self) -> Vec<Device> {
        let (tree, version) = (self.tree(), self.config().version);
        let mut owing = Vec::new();
        for spare in tree.aux(AuxKind::Spare) {
            if tree.find_leaf(spare.spec.guid).is_some() {
                continue;
            }
            let device = spare.leaf.device();
            if self.is_given_back(&spare).await == Some(false)
                && let Err(e) =
                    tree.label_aux(AuxKind::Spare, std::slice::from_ref(&spare.spec), version).await
            {
                self.0.note_problem(format!("the spare '{device}' could not be given back: {e}"));
            }
            // One label of four that was written is a success, one of four that is old is not.
            if self.is_given_back(&spare).await != Some(true) {
                owing.push(device);
            }
        }
        owing
    }

    /// Whether the labels say nothing of a member of this pool. `None` when there is none that can be read. A spare that
    /// other pools have too may be a member of one of those.
    async fn is_given_back(&self, spare: &AuxDevice) -> Option<bool> {
        if !spare.leaf.is_usable() {
            return None;
        }
        let owner = spare.leaf.read_labels().await.ok()?.owner()?;
        Some(owner.state == PoolState::Spare || owner.pool != Some(self.guid()))
    }

    /// A device that needs a spare, and the spare.
    fn wanted_spare(&self) -> Option<(Guid, Spec)> {
        let tree = self.tree();
        let spares = tree.aux(AuxKind::Spare);
        if spares.is_empty() {
            return None;
        }
        let spec = tree.spec();
        let refused = lock(&self.0.spares.refused).clone();
        let taken = lock(&self.0.spares.taken).clone();
        let is_taken = |spare| taken.get(&spare).is_some_and(|at| world::now().since(*at) < TAKEN);
        for leaf in tree.leaves() {
            let lost = [State::Faulted, State::Removed, State::CannotOpen].contains(&leaf.health().state);
            let guid = leaf.guid();
            if !lost || !stands_alone(&spec, guid) {
                continue;
            }
            let fits = spares.iter().find(|spare| {
                let is_free = spare.leaf.is_usable() && tree.find_leaf(spare.spec.guid).is_none();
                is_free && !is_taken(spare.spec.guid) && !refused.contains(&(guid, spare.spec.guid))
            });
            if let Some(spare) = fits {
                return Some((guid, spare.spec.clone()));
            }
        }
        None
    }
}

/// Whether nothing stands in for the device yet; that of a log cannot be replaced by a spare.
pub(crate) fn stands_alone(spec: &Spec, guid: Guid) -> bool {
    let in_group = spec.parent_of(guid).map(|group| group.vdev_type);
    let of_log = spec.top_of(guid).is_none_or(Spec::is_log);
    // In a stripe there is nothing that could be copied.
    let redundant = spec.children.iter().all(|top| top.guid != guid);
    let is_spare = spec.find(guid).is_some_and(Spec::is_spare);
    redundant && !of_log && !is_spare && !matches!(in_group, Some(VdevType::Spare | VdevType::Replacing))
}
