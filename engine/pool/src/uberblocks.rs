//! Which state of a pool its devices have: the newest uberblock, and how far each device has come.

use crate::dtl::note_laggards;
use ondisk::Uberblock;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use units::{Error, Guid, Result, Txg};
use vdev::history::{Departure, Past};
use vdev::label::ring::{best_uberblock, read_uberblocks};
use vdev::{Candidate, Tree};
use world::Boxed;
use world::OpenMode;

/// The txgs of all uberblocks on the devices of a pool that was found, the newest first, with their times in seconds since
/// 1970. Nothing is written.
///
/// # Errors
/// The tree cannot be opened at all.
pub fn txgs_of(candidate: &Candidate) -> Boxed<'_, Result<Vec<(Txg, u64)>>> {
    Box::pin(async move {
        let tree = look_at(candidate).await?;
        let mut found = Vec::new();
        for top in tree.tops() {
            for leaf in top.leaves().iter().filter(|l| l.is_usable()) {
                let Ok(disk) = leaf.device().open(OpenMode::ReadOnly).await else { continue };
                found.extend(read_uberblocks(&disk, top.ashift).await.iter().map(|u| (u.txg, u.timestamp)));
            }
        }
        tree.close().await;
        found.sort_by_key(|&(txg, time)| std::cmp::Reverse((txg, time)));
        found.dedup_by_key(|(txg, _)| *txg);
        Ok(found)
    })
}

/// The devices of a pool that was found, as its labels tell them, for reading.
pub(crate) async fn look_at(candidate: &Candidate) -> Result<Arc<Tree>> {
    let how = vdev::OpenOptions {
        pool: Some(candidate.config.guid),
        former: candidate.former,
        devices: candidate.devices.clone(),
        ..vdev::OpenOptions::new(OpenMode::ReadOnly)
    };
    Tree::open(candidate.tree.clone(), how).await
}

/// A device of a pool that went on without the one that has the newest state, which went on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    pub path: PathBuf,
    /// What it took from this txg on is not in the newest state.
    pub since: Txg,
    pub newest: Txg,
}

/// Why a pool is not opened for writing: the newest state would be copied over devices that went on without it. See
/// [`vdev::history`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estranged {
    /// The device with the newest state.
    pub newest: PathBuf,
    pub others: Vec<Stranger>,
}

impl Estranged {
    pub fn summary(&self) -> String {
        format!(
            "its devices went on without one another; '{}' has the newest state, and what others took meanwhile is not in it",
            self.newest.display()
        )
    }

    /// One for each of the others.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let line = |other: &Stranger| {
            format!("{}: from txg {} to {}", other.path.display(), other.since, other.newest)
        };
        self.others.iter().map(line)
    }
}

impl fmt::Display for Estranged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.summary())?;
        self.lines().try_for_each(|line| write!(f, "\n\t{line}"))
    }
}

impl std::error::Error for Estranged {}

/// What the devices of a tree say of the pool's state.
pub(crate) struct States {
    /// The newest uberblock on any device, and which that is.
    pub newest: Uberblock,
    pub on: PathBuf,
    /// All states that are known of what led to it.
    past: Vec<Uberblock>,
    devices: Vec<Found>,
}

/// What a device has.
struct Found {
    leaf: Guid,
    path: PathBuf,
    newest: Uberblock,
    ring: Vec<Uberblock>,
    departure: Option<Departure>,
}

/// The states up to `limit`.
pub(crate) async fn states(tree: &Tree, limit: Option<Txg>) -> Result<States> {
    let mut devices: Vec<Found> = Vec::new();
    for top in tree.tops() {
        for leaf in top.leaves().iter().filter(|l| l.is_usable()) {
            let Ok(disk) = leaf.device().open(OpenMode::ReadOnly).await else { continue };
            let mut ring = read_uberblocks(&disk, top.ashift).await;
            ring.retain(|u| limit.is_none_or(|limit| u.txg <= limit));
            if let Some(newest) = best_uberblock(ring.iter().cloned(), None) {
                let (leaf, path) = (leaf.guid(), leaf.device().path.clone());
                devices.push(Found { leaf, path, newest, ring, departure: None });
            }
        }
    }
    let none = || match limit {
        None => Error::corrupt("no device has a valid uberblock"),
        Some(limit) => Error::invalid(format!("no uberblock of txg {limit} or older is left")),
    };
    let best = devices.iter().reduce(|a, b| if b.newest.is_newer_than(&a.newest) { b } else { a });
    let best = best.ok_or_else(none)?;
    let (newest, on) = (best.newest.clone(), best.path.clone());
    // Not each device gets each uberblock: what is of one past with the newest one adds to what is known.
    let known = Past::of(&best.ring);
    let agreeing = devices.iter().filter(|found| known.agrees(&found.ring));
    let past: Vec<Uberblock> = agreeing.flat_map(|found| found.ring.iter().cloned()).collect();
    let known = Past::of(&past);
    devices.iter_mut().for_each(|found| found.departure = known.departure(&found.ring));
    Ok(States { newest, on, past, devices })
}

impl States {
    pub fn past(&self) -> Past {
        Past::of(&self.past)
    }

    /// The devices that went on without the newest one, if any did.
    pub fn estranged(&self) -> Option<Estranged> {
        let stranger = |found: &Found| {
            let Departure { first, last, .. } = found.departure.filter(|departure| departure.went_on)?;
            Some(Stranger { path: found.path.clone(), since: first, newest: last })
        };
        let mut others: Vec<Stranger> = self.devices.iter().filter_map(stranger).collect();
        others.sort_by(|a, b| a.path.cmp(&b.path));
        (!others.is_empty()).then(|| Estranged { newest: self.on.clone(), others })
    }

    /// Notes what devices miss that are behind, or have states of their own: before the first block is read from one.
    pub fn note_missing(&self, tree: &Tree) {
        let of_each = |found: &Found| {
            let common = found.departure.map(|departure| Txg(departure.missing_from().0 - 1));
            (found.leaf, common.unwrap_or(found.newest.txg))
        };
        note_laggards(tree, &self.devices.iter().map(of_each).collect());
        for found in &self.devices {
            if let (Some(departure), Some((_, leaf))) = (found.departure, tree.find_leaf(found.leaf)) {
                leaf.missing().add(departure.missing_from()..=self.newest.txg);
            }
        }
    }

    /// Has devices with states of their own be nothing but behind, once it is known what the pool says that each misses: no
    /// uberblock on them leads to what is not the pool's.
    pub async fn forget_others(&self, tree: &Tree) {
        let past = self.past();
        for found in &self.devices {
            let Some((top, leaf)) = tree.find_leaf(found.leaf).filter(|(_, leaf)| leaf.is_usable()) else {
                continue;
            };
            let unknown = || past.unknown(&found.ring, &leaf.missing().ranges());
            if let Some(departure) = found.departure.or_else(unknown) {
                leaf.missing().add(departure.missing_from()..=self.newest.txg);
                // One that does not take that is not used; its state says why.
                let _ = leaf.forget(top.ashift, |u| departure.is_foreign(u)).await;
            }
        }
    }
}
