//! Putting a pool together from the labels of its devices. Pure.

use super::Labelled;
use crate::label::config::PoolConfig;
use crate::label::read::Labels;
use crate::vdev_type::Role;
use crate::{Aux, Device, Health, Spec, State, VdevType};
use ondisk::{NvList, PoolState};
use std::collections::BTreeMap;
use units::{Guid, HashMap, Result, Txg};

/// A pool that could be imported, or named as one that cannot.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// From the newest label.
    pub config: PoolConfig,
    /// The whole tree, as far as labels tell.
    pub tree: Spec,
    /// Where its leaves are.
    pub devices: HashMap<Guid, Device>,
    /// What the pool was called before, when a change of its guid was cut short: some labels say so still.
    pub former: Option<Guid>,
    /// Spares and caches that were found; which pool they serve only the MOS knows.
    pub aux: Vec<(PoolState, Guid, Device)>,
}

/// More top-level vdevs than any pool has: a label that claims more is not believed.
const TOPS_MAX: u64 = 1 << 16;

/// Groups labels by pool, in the order of name and guid.
pub fn assemble(found: &[Labelled]) -> Vec<Candidate> {
    let mut pools: BTreeMap<Guid, Vec<(&Device, &NvList)>> = BTreeMap::new();
    let mut earlier: BTreeMap<Guid, Vec<(Guid, &Device)>> = BTreeMap::new();
    let mut aux = Vec::new();
    let renamed: BTreeMap<Guid, Guid> = found.iter().filter_map(|l| renamed_pool(&l.labels)).collect();
    for Labelled { device, labels } in found {
        let (Some(owner), Some(config)) = (labels.owner(), labels.best(None)) else { continue };
        match (owner.state, owner.pool) {
            (PoolState::Spare | PoolState::L2Cache, _) => aux.push((owner.state, owner.leaf, device.clone())),
            // Labelled, but never part of a pool.
            (_, Some(_)) if owner.txg == Txg::NONE => {}
            (_, Some(pool)) => {
                let pool = renamed.get(&pool).copied().unwrap_or(pool);
                pools.entry(pool).or_default().push((device, config));
                let guids = labels.valid.iter().filter_map(|(_, label)| label.guid("guid").ok());
                earlier.entry(pool).or_default().extend(guids.map(|guid| (guid, device)));
            }
            (_, None) => {}
        }
    }
    let candidates = pools.into_iter().filter_map(|(pool, labels)| {
        let earlier: Vec<_> = earlier.get(&pool).cloned().unwrap_or_default();
        let former = renamed.iter().find(|(_, now)| **now == pool).map(|(former, _)| *former);
        candidate(labels, &earlier, &aux).ok().map(|found| Candidate { former, ..found })
    });
    let mut candidates: Vec<Candidate> = candidates.collect();
    candidates.sort_by(|a, b| (&a.config.name, a.config.guid).cmp(&(&b.config.name, b.config.guid)));
    candidates
}

/// The pool that a device was part of by its older labels, and the same pool by its newest: its guid was being changed when
/// a crash came between the labels. In another pool the device would have another guid.
fn renamed_pool(labels: &Labels) -> Option<(Guid, Guid)> {
    let newest = labels.best(None)?;
    let of = |label: &NvList| Some((label.guid("pool_guid").ok()?, label.guid("guid").ok()?));
    let (now, leaf) = of(newest)?;
    let mut others = labels.valid.iter().filter_map(|(_, label)| of(label));
    let (former, _) = others.find(|(pool, own)| *pool != now && *own == leaf)?;
    Some((former, now))
}

/// `earlier` is what devices are called in their other labels: one that was written for a txg which was never reached may
/// name them otherwise.
fn candidate(
    labels: Vec<(&Device, &NvList)>,
    earlier: &[(Guid, &Device)],
    aux: &[(PoolState, Guid, Device)],
) -> Result<Candidate> {
    let txg = |label: &NvList| label.opt_u64("txg").ok().flatten().unwrap_or(0);
    // What only the newest label can know: how many vdevs there are, and which were removed.
    let newest = labels.iter().map(|l| l.1).reduce(|a, b| if txg(b) > txg(a) { b } else { a });
    let newest = newest.expect("a pool was found by a label");
    let mut config = PoolConfig::decode(newest)?;
    config.other = NvList::new();

    let mut tops: BTreeMap<u64, (u64, Spec)> = BTreeMap::new();
    let mut devices: HashMap<Guid, Device> = HashMap::default();
    for (device, label) in &labels {
        let Ok(spec) = label.list("vdev_tree").and_then(Spec::decode_below_root) else { continue };
        let (Some(id), Ok(leaf)) = (spec.id, label.guid("guid")) else { continue };
        keep_better(&mut devices, leaf, device, &spec);
        match tops.get(&id) {
            Some((other, _)) if *other >= txg(label) => {}
            _ => drop(tops.insert(id, (txg(label), spec))),
        }
    }
    for (guid, device) in earlier {
        devices.entry(*guid).or_insert_with(|| (*device).clone());
    }
    let tops = tops.into_iter().map(|(id, (_, spec))| (id, spec)).collect();
    let mut tree = complete(newest, config.guid, tops);
    tree.set_paths(&devices);
    Ok(Candidate { config, tree, devices, former: None, aux: aux.to_vec() })
}

/// The same leaf may be seen under several names: the one its pool last used is best, else the first.
fn keep_better(devices: &mut HashMap<Guid, Device>, leaf: Guid, device: &Device, spec: &Spec) {
    let used = spec.find(leaf).and_then(|s| s.path.as_deref());
    let is_used = used.is_some_and(|path| device.window.is_none() && device.path.as_os_str() == path);
    if is_used || !devices.contains_key(&leaf) {
        devices.insert(leaf, device.clone());
    }
}

/// The root with every place filled.
fn complete(newest: &NvList, pool: Guid, mut tops: BTreeMap<u64, Spec>) -> Spec {
    let known = tops.keys().next_back().map_or(0, |last| last + 1);
    let count = newest.opt_u64("vdev_children").ok().flatten().unwrap_or(known).min(TOPS_MAX);
    let holes = newest.opt_u64s("hole_array").ok().flatten().unwrap_or_default();
    let place = |id| match tops.remove(&id) {
        Some(spec) => spec,
        None if holes.contains(&id) => Spec::placeholder(VdevType::Hole, id),
        None => Spec::placeholder(VdevType::Missing, id),
    };
    Spec { id: Some(0), children: (0..count).map(place).collect(), ..Spec::new(VdevType::Root, pool) }
}

impl Candidate {
    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub fn guid(&self) -> Guid {
        self.config.guid
    }

    pub fn is_destroyed(&self) -> bool {
        self.config.state == PoolState::Destroyed
    }

    /// Where a spare or a cache device was found that the pool lists. It may be seen under several names: the one that it
    /// had is best, else the first.
    pub fn find_beside(&self, spec: &Spec) -> Option<&Device> {
        let beside = self.aux.iter().filter(|(_, guid, _)| *guid == spec.guid).map(|(.., device)| device);
        // A spare in use has labels of its pool.
        let mut names = self.devices.get(&spec.guid).into_iter().chain(beside);
        let is_former = |device: &&Device| {
            device.window.is_none()
                && spec.path.as_deref().is_some_and(|path| device.path.as_os_str() == path)
        };
        names.clone().find(is_former).or_else(|| names.next())
    }

    /// How a vdev of the tree would be, from what was found; devices are not opened for it.
    pub fn health_of(&self, spec: &Spec) -> Health {
        let children = &spec.children;
        match spec.vdev_type.row().role {
            Role::Root => self.health_of_all(children),
            Role::Group(redundancy) => {
                let may_fail = redundancy.of(children.len(), spec.nparity);
                let (state, aux) =
                    State::of_group(may_fail, children.iter().map(|c| self.health_of(c).state));
                Health { state, aux }
            }
            Role::Place if spec.vdev_type == VdevType::Missing => {
                Health::new(State::CannotOpen, Aux::BadGuidSum)
            }
            // What cannot be read is refused by name when the pool is opened.
            Role::Leaf if spec.vdev_type.row().unsupported.is_none() => self.health_of_leaf(spec),
            Role::Leaf | Role::Place => Health::ONLINE,
        }
    }

    fn health_of_leaf(&self, spec: &Spec) -> Health {
        let is = |flag: Option<u64>| flag.is_some_and(|v| v != 0);
        if !self.devices.contains_key(&spec.guid) {
            Health::new(State::CannotOpen, Aux::OpenFailed)
        } else if is(spec.faulted) {
            Health::new(State::Faulted, Aux::ErrorsExceeded)
        } else if is(spec.offline) {
            Health::new(State::Offline, Aux::None)
        } else {
            Health::ONLINE
        }
    }

    /// How the pool would be.
    pub fn health(&self) -> Health {
        self.health_of_all(&self.tree.children)
    }

    fn health_of_all(&self, tops: &[Spec]) -> Health {
        let tops: Vec<(bool, Health)> = tops.iter().map(|t| (t.is_log(), self.health_of(t))).collect();
        if let Some((_, lost)) = tops.iter().find(|(log, health)| !log && !health.state.is_usable()) {
            let aux = if lost.aux == Aux::BadGuidSum { Aux::BadGuidSum } else { Aux::NoReplicas };
            return Health::new(State::CannotOpen, aux);
        }
        let sound = tops.iter().all(|(_, health)| *health == Health::ONLINE);
        if sound { Health::ONLINE } else { Health::new(State::Degraded, Aux::None) }
    }

    /// The leaves that were not found: type and last known path.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.tree.leaves().filter(|l| !self.devices.contains_key(&l.guid));
        let mut names: Vec<String> = missing.map(Spec::name).collect();
        let tops = self.tree.children.iter().filter(|t| t.vdev_type == VdevType::Missing);
        names.extend(tops.map(|t| format!("all devices of vdev {}", t.id.unwrap_or(0))));
        names
    }
}

#[cfg(test)]
mod tests;
