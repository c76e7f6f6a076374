//! Which state of a pool its devices have: the newest uberblock, and how far each device has come.

use ondisk::Uberblock;
use units::{Error, Guid, HashMap, Result, Txg};
use vdev::Tree;
use vdev::label::read::{best_uberblock, read_uberblocks};
use world::OpenMode;

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
