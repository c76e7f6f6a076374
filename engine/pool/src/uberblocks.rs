//! Which state of a pool its devices have: the newest uberblock, and how far each device has come.

use ondisk::Uberblock;
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
                let Ok(disk) = leaf.device().open(OpenMode::ReadOnly) else { continue };
                let uberblocks = read_uberblocks(&disk, top.ashift).await;
                found.extend(uberblocks.iter().map(|u| (u.txg, u.timestamp)));
            }
        }
        tree.close().await;
        found.sort_by_key(|&(txg, time)| std::cmp::Reverse((txg, time)));
        found.dedup_by_key(|(txg, _)| *txg);
        Ok(found)
    })
}

/// The newest uberblock on any device up to `limit`, and the txg of the newest on each.
pub(crate) async fn newest(tree: &Tree, limit: Option<Txg>) -> Result<(Uberblock, HashMap<Guid, Txg>)> {
    let (mut best, mut of_each) = (Vec::new(), HashMap::default());
    for top in tree.tops() {
        for leaf in top.leaves().iter().filter(|l| l.is_usable()) {
            let Ok(disk) = leaf.device().open(OpenMode::ReadOnly) else { continue };
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
