//! The devices that `zpool create` and `zpool add` name: what they are, and whose.
//!
//! ```text
//!   a lock on it            a process has it open            refused
//!                           this one, no pool here has it    it is just leaving one, and waited for
//!   label: a pool           imported here, and has it        refused
//!                           imported here, and it was        refused, unless forced
//!                           removed from it
//!                           elsewhere, or not imported       refused, unless forced
//!   label: spare, cache     of a pool that is open here      refused; a spare may serve several pools
//!                           of none of them, all are open    free to take
//!                           some pool here is not open       refused, unless forced: it may be that one's
//! ```

use crate::pools::Pools;
use crate::pools::open_elsewhere;
use api::{Class, Layout, VdevGroup};
use ondisk::PoolState;
use pool::Pool;
use std::path::Path;
use std::time::Duration;
use units::{Error, Kind, Result};
use vdev::label::read::{Owner, read_labels};
use vdev::{AuxKind, Bias, Device, Group, NewLeaf};
use world::{Geometry, OpenMode};

/// Reading the labels of a device takes no longer, if it answers at all; opening it has a limit of its own.
const PATIENCE: Duration = Duration::from_secs(30);

/// Devices that may be taken, by what they are for.
pub(crate) struct Found {
    pub groups: Vec<Group>,
    pub spares: Vec<NewLeaf>,
    pub caches: Vec<NewLeaf>,
}

impl Found {
    /// Adds those that stand beside the tree.
    pub async fn add_beside(&self, pool: &Pool) -> Result<()> {
        for (kind, leaves) in [(AuxKind::Spare, &self.spares), (AuxKind::Cache, &self.caches)] {
            if !leaves.is_empty() {
                pool.add_side_devices(kind, leaves).await?;
            }
        }
        Ok(())
    }
}

/// What the engine calls it.
fn engine_layout(asked: Layout) -> Result<vdev::Layout> {
    vdev::Layout::from_word(asked.word(), asked.parity())
        .ok_or_else(|| Error::unsupported(format!("vdevs of kind '{}'", asked.word())))
}

/// Looks at each device before anything is locked for it: one in a file system that does not answer is told of here, and
/// holds nothing else up. What else is wrong with it is told by [`look_at`].
///
/// # Errors
/// `Io` when a device has not answered for [`PATIENCE`].
pub(crate) async fn answer(paths: &[String]) -> Result<()> {
    for path in paths {
        match world::timeout(PATIENCE, look(path)).await {
            Some(Err(e)) if e.kind() == Kind::Io => return Err(e),
            Some(_) => (),
            None => return Err(silent(path, "its labels cannot be read: it does not answer")),
        }
    }
    Ok(())
}

/// All devices that are named.
pub(crate) fn named(groups: &[VdevGroup]) -> Vec<String> {
    groups.iter().flat_map(|group| group.devices.iter().cloned()).collect()
}

fn silent(path: &str, why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Io, "use device").because(format!("{path}: {why}"))
}

/// Opens each device to see how large it is and whose.
pub(crate) async fn look_at(groups: &[VdevGroup], force: bool, pools: &Pools) -> Result<Found> {
    let mut found = Found { groups: Vec::new(), spares: Vec::new(), caches: Vec::new() };
    for group in groups {
        let mut leaves = Vec::new();
        for path in &group.devices {
            leaves.push(look_at_one(path, group.class, force, pools).await?);
        }
        let layout = engine_layout(group.layout)?;
        let bias = match group.class {
            Class::Cache => {
                found.caches.extend(leaves);
                continue;
            }
            Class::Spare => {
                found.spares.extend(leaves);
                continue;
            }
            Class::Log => Bias::Log,
            Class::Special => Bias::Special,
            Class::Dedup => Bias::Dedup,
            Class::Normal => Bias::Normal,
        };
        found.groups.push(Group { layout, bias, leaves });
    }
    check_named_once(groups)?;
    Ok(found)
}

fn check_named_once(groups: &[VdevGroup]) -> Result<()> {
    let mut all: Vec<&String> = groups.iter().flat_map(|g| &g.devices).collect();
    all.sort();
    match all.windows(2).find(|w| w[0] == w[1]) {
        Some(twice) => Err(Error::invalid(format!("'{}' is named more than once", twice[0]))),
        None => Ok(()),
    }
}

/// Looks at the device that is to join a group of `pool`: one of its own spares is free for that.
pub(crate) async fn look_at_joining(path: &str, force: bool, pools: &Pools, pool: &Pool) -> Result<NewLeaf> {
    let tree = pool.tree();
    let spares = tree.aux(AuxKind::Spare);
    let is_own = |d: &vdev::AuxDevice| d.spec.path.as_deref() == Some(path);
    match spares.iter().find(|d| is_own(d)) {
        Some(spare) if tree.find_leaf(spare.spec.guid).is_some() => {
            Err(Error::new(Kind::Busy, "use device").because(format!("{path} is in use already")))
        }
        Some(_) => Ok(NewLeaf { path: path.into(), geometry: look(path).await?.0 }),
        None => look_at_one(path, Class::Normal, force, pools).await,
    }
}

async fn look_at_one(path: &str, class: Class, force: bool, pools: &Pools) -> Result<NewLeaf> {
    let (mut geometry, mut owner) = look(path).await?;
    let user = owner.as_ref().and_then(|owner| user_of(owner, class, pools));
    // One that a pool here has is refused at once: another pool, a suspended one, may take its time to let a device go.
    if user.is_none() && is_leaving(path, owner.as_ref(), pools) {
        pools.devices_have_left().await;
        (geometry, owner) = look(path).await?;
    }
    if let Some(pool) = owner.as_ref().and_then(|owner| user_of(owner, class, pools)) {
        return Err(
            Error::new(Kind::Busy, "use device").because(format!("{path} is part of active pool '{pool}'"))
        );
    }
    if let Some(pid) = open_elsewhere::of(Path::new(path)) {
        return Err(
            Error::new(Kind::Busy, "use device").because(format!("{path} is in use by process {pid}"))
        );
    }
    let leaf = NewLeaf { path: path.into(), geometry };
    let Some(owner) = owner else { return Ok(leaf) };
    let is_beside = matches!(owner.state, PoolState::Spare | PoolState::L2Cache);
    let is_free = is_beside && pools.are_all_open();
    match owner.objection().filter(|_| !force && !is_free) {
        Some(objection) => Err(Error::invalid(format!("{path} {objection}; use '-f' to override this"))),
        None => Ok(leaf),
    }
}

/// What the device is, and what its labels say of its pool.
async fn look(path: &str) -> Result<(Geometry, Option<Owner>)> {
    let disk = Device::whole(path).open(OpenMode::ReadOnly).await.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::invalid(format!(
            "'{path}' is no file or device; a file for a pool is made with 'truncate -s 1G {path}'"
        )),
        std::io::ErrorKind::TimedOut => silent(path, e),
        _ => Error::invalid(format!("cannot open '{path}': {e}")),
    })?;
    let owner = read_labels(&disk).await.owner();
    Ok((disk.geometry(), owner))
}

/// Whether it may be leaving a pool here right now: that shows it no more, and has not wiped and closed it yet.
fn is_leaving(path: &str, owner: Option<&Owner>, pools: &Pools) -> bool {
    let was_here = |owner: &Owner| pools.name_of(owner.pool).is_some() && !pools.has_device(owner);
    open_elsewhere::is_open_here(Path::new(path)) || owner.is_some_and(was_here)
}

/// The pool here that uses the device and will not share it.
pub(crate) fn user_of(owner: &Owner, class: Class, pools: &Pools) -> Option<String> {
    if owner.state == PoolState::Active && pools.has_device(owner) {
        return Some(owner.name.clone().unwrap_or_default());
    }
    let is_shared = owner.state == PoolState::Spare && class == Class::Spare;
    let uses = |pool: &&Pool| {
        let all = [AuxKind::Spare, AuxKind::Cache].map(|kind| pool.tree().aux(kind));
        all.iter().flatten().any(|d| d.leaf.guid() == owner.leaf)
    };
    pools.opened().filter(|_| !is_shared).find(uses).map(Pool::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::LAYOUTS;

    #[test]
    fn each_layout_that_can_be_asked_for_is_one_of_the_engines() {
        assert_eq!(engine_layout(Layout::Stripe).unwrap(), vdev::Layout::Stripe);
        for kind in &LAYOUTS {
            for layout in kind.parity.clone().map(|parity| kind.layout(parity)) {
                let engine = engine_layout(layout).unwrap();
                assert_eq!(engine.devices(), layout.devices(), "{layout:?}");
            }
        }
    }
}
