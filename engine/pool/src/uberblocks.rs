//! Which state of a pool its devices have: the newest uberblock, and how far each device has come.

use ondisk::Uberblock;
use std::path::PathBuf;
use units::{Error, Guid, HashMap, Result, Txg};
use vdev::label::read::{best_uberblock, read_uberblocks};
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
        let mut found = Vec::new();
        for (_, uberblocks) in all_of(candidate).await? {
            found.extend(uberblocks.iter().map(|u| (u.txg, u.timestamp)));
        }
        found.sort_by_key(|&(txg, time)| std::cmp::Reverse((txg, time)));
        found.dedup_by_key(|(txg, _)| *txg);
        Ok(found)
    })
}

/// A device of a pool that went on without the one that has the newest state, which went on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    pub path: PathBuf,
    /// What it took from this txg on is not in the newest state.
    pub since: Txg,
    pub newest: Txg,
}

/// The devices of a pool that was found which have another history than its newest state, as far back as there are
/// uberblocks; and the device with that state. Nothing is written.
///
/// # Errors
/// As [`txgs_of`].
pub fn strangers_of(candidate: &Candidate) -> Boxed<'_, Result<(PathBuf, Vec<Stranger>)>> {
    Box::pin(async move { Ok(strangers(&all_of(candidate).await?)) })
}

/// The uberblocks on each device of a pool that was found, by its path.
async fn all_of(candidate: &Candidate) -> Result<Vec<(PathBuf, Vec<Uberblock>)>> {
    let how = vdev::OpenOptions {
        pool: Some(candidate.config.guid),
        former: candidate.former,
        devices: candidate.devices.clone(),
        ..vdev::OpenOptions::new(OpenMode::ReadOnly)
    };
    let tree = Tree::open(candidate.tree.clone(), how).await?;
    let mut found = Vec::new();
    for top in tree.tops() {
        for leaf in top.leaves().iter().filter(|l| l.is_usable()) {
            let Ok(disk) = leaf.device().open(OpenMode::ReadOnly).await else { continue };
            found.push((leaf.device().path.clone(), read_uberblocks(&disk, top.ashift).await));
        }
    }
    tree.close().await;
    Ok(found)
}

/// Those with other states than the newest device has in the same txgs. One such txg alone is one that was cut short by a
/// crash before all devices had it, and nothing that was promised.
fn strangers(devices: &[(PathBuf, Vec<Uberblock>)]) -> (PathBuf, Vec<Stranger>) {
    let newest = |all: &[Uberblock]| all.iter().map(|u| (u.txg, u.timestamp)).max();
    let Some((path, best)) = devices.iter().max_by_key(|(_, all)| newest(all)) else {
        return (PathBuf::new(), Vec::new());
    };
    let differs = |u: &&Uberblock| {
        let mut same_txg = best.iter().filter(|other| other.txg == u.txg).peekable();
        same_txg.peek().is_some() && same_txg.all(|other| other.root != u.root)
    };
    let of_device = |(path, all): &(PathBuf, Vec<Uberblock>)| {
        let mut other: Vec<Txg> = all.iter().filter(differs).map(|u| u.txg).collect();
        other.sort();
        other.dedup();
        let newest = all.iter().map(|u| u.txg).max()?;
        (other.len() > 1).then(|| Stranger { path: path.clone(), since: other[0], newest })
    };
    (path.clone(), devices.iter().filter_map(of_device).collect())
}

/// The newest uberblock on any device up to `limit`, and the txg of the newest on each.
pub(crate) async fn newest(tree: &Tree, limit: Option<Txg>) -> Result<(Uberblock, HashMap<Guid, Txg>)> {
    let (mut best, mut of_each) = (Vec::new(), HashMap::default());
    for top in tree.tops() {
        for leaf in top.leaves().iter().filter(|l| l.is_usable()) {
            let Ok(disk) = leaf.device().open(OpenMode::ReadOnly).await else { continue };
            if let Some(found) = best_uberblock(read_uberblocks(&disk, top.ashift).await, limit) {
                of_each.insert(leaf.guid(), found.txg);
                best.push(found);
            }
        }
    }
    let none = || match limit {
        None => Error::corrupt("no device has a valid uberblock"),
        Some(limit) => Error::invalid(format!("no uberblock of txg {limit} or older is left")),
    };
    let best = best_uberblock(best, None).ok_or_else(none)?;
    Ok((best, of_each))
}
