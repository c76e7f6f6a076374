//! Opening the devices of a tree.
//!
//! A device that is missing, too small or foreign does not make opening fail: it becomes a leaf that says why it is not
//! usable, and its group does without it as far as its redundancy goes. What this program cannot read at all is an
//! error that names it, and so is a device that another process has open for writing: the pool is in use.

use crate::kinds::{ops_of, unsupported};
use crate::label::read::{Labels, read_labels};
use crate::leaf::Leaf;
use crate::node::{Body, Group, Node};
use crate::vdev_type::Role;
use crate::{Aux, AuxKind, Device, Health, OpenOptions, Spec, State, geometry};
use futures_util::future::{BoxFuture, FutureExt, join_all};
use ondisk::label::MIN_DEVICE_SIZE;
use ondisk::{NvList, PoolState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Error, Guid, HashMap, Kind, Result};
use world::{Disk, OpenMode};

/// What the leaves of one top-level vdev have in common.
struct Context<'a> {
    options: &'a OpenOptions,
    top: &'a Spec,
    alarm: Arc<AtomicBool>,
}

/// Opens a top-level vdev and all below it.
pub(crate) async fn open_top(
    spec: &Spec,
    options: &OpenOptions,
    alarm: Arc<AtomicBool>,
) -> Result<Arc<Node>> {
    let context = Context { options, top: spec, alarm };
    let min_asize = match (spec.asize, spec.metaslab_shift) {
        // Whole metaslabs only: a device that is a little smaller than it was can still hold them all.
        (Some(asize), Some(shift)) if shift < 64 => asize >> shift << shift,
        _ => 0,
    };
    open(spec, &context, min_asize).await
}

/// Opens a device that stands beside the tree. A spare may be known to several pools, so it is not taken for ourselves, and
/// nothing is written to it; a cache device is the pool's own.
pub(crate) async fn open_aux(kind: AuxKind, spec: &Spec, options: &OpenOptions) -> Result<Arc<Leaf>> {
    let mode = if kind == AuxKind::Cache { options.mode } else { OpenMode::ReadOnly };
    let options = &OpenOptions { mode, devices: window_of(spec, options), ..options.clone() };
    let context = Context { options, top: spec, alarm: Arc::default() };
    open_leaf(spec, &context, 0).await
}

/// A device beside the tree is at its path, which may be another since the pool was opened; a partition is where it was
/// found.
fn window_of(spec: &Spec, options: &OpenOptions) -> HashMap<Guid, Device> {
    let found = options.devices.get(&spec.guid).filter(|device| device.window.is_some());
    found.map(|device| (spec.guid, device.clone())).into_iter().collect()
}

/// Opens a device that is to be labelled as a spare or a cache, or is to have no labels any more.
pub(crate) async fn open_to_label(spec: &Spec, options: &OpenOptions) -> Result<Arc<Leaf>> {
    let options = &OpenOptions { devices: window_of(spec, options), ..options.clone() };
    let context = Context { options, top: spec, alarm: Arc::default() };
    let leaf = open_leaf(spec, &context, 0).await?;
    match leaf.is_usable() {
        true => Ok(leaf),
        false => {
            let why = leaf.detail().unwrap_or_else(|| leaf.health().aux.phrase().into());
            Err(Error::invalid(format!("device '{}' cannot be used: {why}", leaf.device())))
        }
    }
}

/// Opens a device that is to join the vdev `top`, of which each device must have `min_asize` allocatable bytes.
pub(crate) async fn open_joining(
    spec: &Spec,
    top: &Spec,
    min_asize: u64,
    options: &OpenOptions,
    alarm: Arc<AtomicBool>,
) -> Result<Arc<Leaf>> {
    let context = Context { options, top, alarm };
    let leaf = open_leaf(spec, &context, min_asize).await?;
    if leaf.is_usable() {
        return Ok(leaf);
    }
    let why = match leaf.health().aux {
        Aux::BadLabel | Aux::TooSmall => "device is too small".into(),
        Aux::BadAshift => {
            "The new device cannot have a higher alignment requirement than the top-level vdev.".into()
        }
        aux => leaf.detail().unwrap_or_else(|| aux.phrase().into()),
    };
    Err(Error::invalid(why))
}

fn open<'a>(spec: &'a Spec, context: &'a Context<'a>, min_asize: u64) -> BoxFuture<'a, Result<Arc<Node>>> {
    async move {
        if let Some(what) = spec.vdev_type.row().unsupported {
            return Err(unsupported(what, spec));
        }
        let body = match spec.vdev_type.row().role {
            Role::Leaf => Body::Leaf(open_leaf(spec, context, min_asize).await?),
            Role::Group(redundancy) => {
                let ops = ops_of(spec, context.top.ashift.unwrap_or(0))?;
                let width = spec.children.len();
                let least = ops.child_asize(width, min_asize);
                let children = open_children(spec, context, least).await?;
                Body::Group(Group { ops, redundancy: redundancy.of(width, spec.nparity), children })
            }
            Role::Place => Body::Absent(Health::new(State::CannotOpen, Aux::BadGuidSum)),
            Role::Root => return Err(Error::corrupt("a root below the root")),
        };
        Ok(Node::new(spec.guid, spec.vdev_type, body))
    }
    .boxed()
}

async fn open_children(spec: &Spec, context: &Context<'_>, min_asize: u64) -> Result<Vec<Arc<Node>>> {
    let children = spec.children.iter().map(|child| open(child, context, min_asize));
    join_all(children).await.into_iter().collect()
}

async fn open_leaf(spec: &Spec, context: &Context<'_>, min_asize: u64) -> Result<Arc<Leaf>> {
    let options = context.options;
    let path = || Device::whole(spec.path.clone().unwrap_or_default());
    let device = options.devices.get(&spec.guid).cloned().unwrap_or_else(path);
    let (disk, health, detail) = match recorded(spec) {
        Some(health) => (None, health, None),
        None => match device.open(options.mode).await {
            Ok(disk) => match examine(&disk, spec, context, min_asize).await {
                Health::ONLINE => (Some(disk), left_degraded(spec), None),
                taken if taken.aux == Aux::Spared => (None, taken, user_of(&disk).await),
                bad => (None, bad, shrank(&disk, min_asize)),
            },
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
                return Err(Error::new(Kind::Busy, "open").at(device).because(e));
            }
            Err(e) => (None, not_opened(spec, &e), Some(e.to_string())),
        },
    };
    let alarm = context.alarm.clone();
    Ok(Leaf::new(spec.guid, device, disk, health, detail, options, alarm))
}

/// What the configuration says about a leaf that is not to be touched.
fn recorded(spec: &Spec) -> Option<Health> {
    let is = |flag: Option<u64>| flag.is_some_and(|v| v != 0);
    if is(spec.faulted) && !is(spec.removed) {
        let external = spec.aux_state.as_deref() == Some("external");
        return Some(Health::new(State::Faulted, if external { Aux::External } else { Aux::ErrorsExceeded }));
    }
    is(spec.offline).then_some(Health::new(State::Offline, Aux::None))
}

fn left_degraded(spec: &Spec) -> Health {
    match spec.degraded {
        Some(v) if v != 0 => Health::new(State::Degraded, Aux::ErrorsExceeded),
        _ => Health::ONLINE,
    }
}

fn not_opened(spec: &Spec, error: &io::Error) -> Health {
    let was_removed = spec.removed.is_some_and(|v| v != 0);
    if was_removed && error.kind() == io::ErrorKind::NotFound {
        return Health::new(State::Removed, Aux::None);
    }
    Health::new(State::CannotOpen, Aux::OpenFailed)
}

/// Whether an open device is what the tree says.
async fn examine(disk: &Arc<dyn Disk>, spec: &Spec, context: &Context<'_>, min_asize: u64) -> Health {
    let bad = |aux| Health::new(State::CannotOpen, aux);
    let geometry = disk.geometry();
    let psize = geometry::leaf_psize(geometry.size);
    if psize < MIN_DEVICE_SIZE {
        return bad(Aux::TooSmall);
    }
    if geometry::leaf_asize(psize) < min_asize {
        return bad(Aux::BadLabel);
    }
    let ashift = context.top.ashift.unwrap_or(9).min(63);
    if u64::from(geometry.logical_block) > 1 << ashift {
        return bad(Aux::BadAshift);
    }
    match context.options.pool {
        Some(pool) => check_labels(&read_labels(disk).await, spec, context, pool),
        None => Health::ONLINE,
    }
}

/// As OpenZFS says it of a spare.
pub fn in_use_by(pool: &str) -> String {
    format!("in use by pool '{pool}'")
}

/// What to say of a spare that another pool uses: its label names that pool.
async fn user_of(disk: &Arc<dyn Disk>) -> Option<String> {
    let owner = read_labels(disk).await.owner()?;
    owner.name.map(|name| in_use_by(&name))
}

/// What to say of a device that is smaller than it was.
fn shrank(disk: &Arc<dyn Disk>, min_asize: u64) -> Option<String> {
    let asize = geometry::leaf_asize(geometry::leaf_psize(disk.geometry().size));
    (asize < min_asize).then(|| {
        format!(
            "it shrank: it has {asize} bytes of the {min_asize} that the pool uses; give it back its size"
        )
    })
}

fn check_labels(labels: &Labels, spec: &Spec, context: &Context<'_>, pool: Guid) -> Health {
    // The newest label of a state that was reached; only others are left where a crash came between the labels.
    let Some(label) = labels.best(context.options.limit).or_else(|| labels.best(None)) else {
        return Health::new(State::CannotOpen, Aux::BadLabel);
    };
    check_label(label, spec, context, pool)
}

fn check_label(label: &NvList, spec: &Spec, context: &Context<'_>, pool: Guid) -> Health {
    let guid = label.guid("guid").ok();
    let of_pool = label.guid("pool_guid").ok();
    let is_aux = of_pool.is_none() && label.u64("state").is_ok_and(|s| s >= 3);
    let ours = is_aux || of_pool.is_some_and(|of| of == pool || Some(of) == context.options.former);
    // A leaf that became top-level when its sibling was detached has the guid of the former group: its label names
    // it as the top.
    let is_it = guid == Some(spec.guid)
        || (std::ptr::eq(spec, context.top) && label.guid("top_guid").ok() == Some(spec.guid));
    match (ours && is_it, is_elsewhere(label, spec, context)) {
        (true, _) => Health::ONLINE,
        (false, true) => Health::new(State::CannotOpen, Aux::Spared),
        (false, false) => Health::new(State::CannotOpen, Aux::CorruptData),
    }
}

/// Whether it is a spare beside the tree that stands in the tree of another pool, which knows it as well: its label is
/// that of a member there, and that of a spare again when it goes back.
fn is_elsewhere(label: &NvList, spec: &Spec, context: &Context<'_>) -> bool {
    let is_beside = std::ptr::eq(spec, context.top) && spec.is_spare();
    let state = label.u64("state").ok().and_then(PoolState::from_code);
    is_beside
        && label.guid("guid").ok() == Some(spec.guid)
        && matches!(state, Some(PoolState::Active | PoolState::Exported))
}
