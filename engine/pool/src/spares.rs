//! Spares that take the place of devices by themselves.
//!
//! ```text
//!   a device is faulted, removed or cannot be opened ──▶ the first spare that is there, large enough and not in use
//!     ──▶ spare(device spare) ──▶ resilver ──▶ the device is back, or replaced ──▶ the spare goes back ([`crate::detach`])
//! ```
//!
//! It is looked when the pool is opened and after every txg. A device that an administrator took offline is not missed, and
//! neither is one that stands in a replacement already. Where the spare fails as well, and nothing of its group is left, the
//! next one joins them. One that does not fit is not tried again until an administrator has devices looked at.
//!
//! A spare that several pools know may be in use by another. Its label says so when it is opened, and the lock on it when it
//! is to be taken; it is looked at again every [`TAKEN`], by an idle pool too.
//!
//! ```text
//!            AVAIL ── another pool takes it: seen when it is opened or tried ──▶ INUSE  in use by pool 'lake'
//!              ▲                                                                   │
//!              └──────── look_at_taken: its label is that of a spare again ────────┘
//! ```

mod state;

pub(crate) use state::Spares;

use crate::pool::{Pool, lock};
use ondisk::PoolState;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::{Guid, Kind};
use vdev::{Aux, AuxDevice, AuxKind, Device, Spec, State, VdevType};

/// How soon a spare that another pool has is tried again.
const TAKEN: Duration = Duration::from_secs(5);

impl Pool {
    /// Begins to put a spare in place if one is wanted and there.
    pub(crate) fn consider_spares(&self) {
        let is_idle = self.wanted_spare().is_none() && self.taken_elsewhere().is_empty();
        if self.0.read_only || self.0.txgs.is_closing() || is_idle {
            return;
        }
        if self.0.spares.is_busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let pool = self.clone();
        drop(self.spawn(async move {
            pool.look_at_taken().await;
            while let Some((old, spare)) = pool.wanted_spare() {
                let guid = spare.guid;
                if let Err(e) = pool.spare_in(old, spare).await {
                    if e.kind() == Kind::Busy {
                        // Another pool has it now, and may give it back.
                        pool.note_taken(guid);
                        continue;
                    }
                    lock(&pool.0.spares.refused).insert((old, guid));
                    pool.0.note_problem(e.at("a spare that was to take the place of a device"));
                }
            }
            pool.0.spares.is_busy.store(false, Ordering::Release);
        }));
    }

    /// Spares that another pool has, by their labels when they were opened.
    fn taken_elsewhere(&self) -> Vec<Guid> {
        let spares = self.tree().aux(AuxKind::Spare);
        let taken = spares.iter().filter(|spare| spare.leaf.health().aux == Aux::Spared);
        taken.map(|spare| spare.spec.guid).collect()
    }

    /// Opens those again that were not looked at for a while.
    async fn look_at_taken(&self) {
        let due: Vec<Guid> =
            self.taken_elsewhere().into_iter().filter(|spare| !self.0.spares.is_taken(*spare)).collect();
        if due.is_empty() || self.suspended().is_some() {
            return;
        }
        due.iter().for_each(|spare| self.note_taken(*spare));
        let _one_at_a_time = self.0.reshaping.lock().await;
        self.load_side_devices(None).await;
        // One that is back need not be waited for.
        let still = self.taken_elsewhere();
        let mut taken = lock(&self.0.spares.taken);
        for spare in due.iter().filter(|spare| !still.contains(spare)) {
            taken.remove(spare);
        }
    }

    /// A pool that is idle has no txg after which it would be looked.
    fn note_taken(&self, spare: Guid) {
        lock(&self.0.spares.taken).insert(spare, world::now());
        if self.0.spares.is_waiting.swap(true, Ordering::AcqRel) {
            return;
        }
        let pool = Arc::downgrade(&self.0);
        world::spawn(async move {
            world::sleep(TAKEN).await;
            if let Some(inner) = pool.upgrade() {
                inner.spares.is_waiting.store(false, Ordering::Release);
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
        for leaf in tree.leaves() {
            let lost = [State::Faulted, State::Removed, State::CannotOpen].contains(&leaf.health().state);
            let guid = leaf.guid();
            if !lost || !self.wants_spare(&spec, guid) {
                continue;
            }
            let fits = spares.iter().find(|spare| {
                let is_free = spare.leaf.is_usable() && tree.find_leaf(spare.spec.guid).is_none();
                is_free
                    && !self.0.spares.is_taken(spare.spec.guid)
                    && !refused.contains(&(guid, spare.spec.guid))
            });
            if let Some(spare) = fits {
                return Some((guid, spare.spec.clone()));
            }
        }
        None
    }

    /// Whether a device, if it is lost, is to have a spare.
    pub(crate) fn wants_spare(&self, spec: &Spec, guid: Guid) -> bool {
        stands_alone(spec, guid) || self.stands_in_vain(spec, guid)
    }

    /// Whether it is a spare that stands in for another device, the newest one, and its group has nothing that works.
    fn stands_in_vain(&self, spec: &Spec, guid: Guid) -> bool {
        let Some(group) = spec.parent_of(guid).filter(|group| group.vdev_type == VdevType::Spare) else {
            return false;
        };
        let is_newest = group.children.last().is_some_and(|last| last.guid == guid && last.is_spare());
        let works = |leaf: &Spec| self.tree().find_leaf(leaf.guid).is_some_and(|(_, leaf)| leaf.is_usable());
        is_newest && !group.leaves().any(works)
    }
}

/// Whether nothing stands in for the device yet; that of a log cannot be replaced by a spare.
fn stands_alone(spec: &Spec, guid: Guid) -> bool {
    let in_group = spec.parent_of(guid).map(|group| group.vdev_type);
    let of_log = spec.top_of(guid).is_none_or(Spec::is_log);
    // In a stripe there is nothing that could be copied.
    let redundant = spec.children.iter().all(|top| top.guid != guid);
    let is_spare = spec.find(guid).is_some_and(Spec::is_spare);
    redundant && !of_log && !is_spare && !matches!(in_group, Some(VdevType::Spare | VdevType::Replacing))
}
