//! What devices miss, kept in the pool: which txgs of which device.
//!
//! ```text
//!   vdev tree, in the MOS's configuration:  leaf { …, DTL: object } ──▶ a space map: its "bytes" are txgs,
//!                                                                       allocated means missing
//! ```
//!
//! That is OpenZFS's dirty time log, object for object, so that either program resilvers what the other has seen missed.
//! Each pass of a sync writes the maps that changed; a new map is made in the first pass only, while the configuration
//! that names it can still be written. What a device missed later in the sync than that is not kept by this txg, and so
//! the device does not get its uberblock: opened after a crash, it is behind the others, and by how much, its labels say.
//!
//! Not here: how a device is brought up to date ([`crate::scrub`]).

use crate::pool::{Inner, Pool};
use dmu::Tx;
use metaslab::{MapInfo, MapWrite, SpaceLog};
use ondisk::{Feature, SpaceAction, SpaceMapEntries, SpaceMapEntry, SpaceMapLog, SpaceMapPhys, SpaceRun};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{Endian, Error, Guid, HashMap, ObjectId, Result, Txg};
use vdev::{Leaf, Spec, Tree};

/// The blocks of such a map (`zfs_vdev_dtl_sm_blksz`).
pub(crate) const BLOCK_SIZE: u32 = 4 << 10;
/// A map longer than this is damaged.
const LENGTH_MAX: u64 = 1 << 20;

/// Notes for every leaf what the pool knows that it misses, up to the txg the pool is at.
pub(crate) async fn load(tree: &Tree, log: &dyn SpaceLog, synced: Txg) -> Result<()> {
    let spec = tree.spec();
    for leaf in tree.leaves() {
        let Some(object) = map_of(&spec, leaf.guid()) else { continue };
        let ranges = read(log, object).await.map_err(|e| e.at(format!("what {} misses", leaf.device())))?;
        for range in ranges.into_iter().filter(|r| *r.start() <= synced) {
            leaf.missing().add(*range.start()..=synced.min(*range.end()));
        }
    }
    Ok(())
}

/// Notes what the leaves of each top-level vdev miss that are behind the newest of them. `newest` is the txg of the
/// newest state of the pool on each.
pub(crate) fn note_laggards(tree: &Tree, newest: &HashMap<Guid, Txg>) {
    let of = |leaf: &Leaf| newest.get(&leaf.guid()).copied().unwrap_or(Txg::NONE);
    for top in tree.tops() {
        let leaves = top.leaves();
        let Some(last) = leaves.iter().map(|l| of(l)).max() else { continue };
        for leaf in leaves.iter().filter(|l| l.is_usable() && of(l) < last) {
            leaf.missing().add(of(leaf).next()..=last);
        }
    }
}

fn map_of(spec: &Spec, leaf: Guid) -> Option<ObjectId> {
    ObjectId(spec.find(leaf)?.dtl.unwrap_or(0)).some()
}

async fn read(log: &dyn SpaceLog, object: ObjectId) -> Result<Vec<RangeInclusive<Txg>>> {
    let info = log.info(object).await?;
    if info.header.length > LENGTH_MAX {
        return Err(Error::corrupt(format!("{} bytes", info.header.length)));
    }
    let bytes = log.read(object, info.header.length).await?;
    let mut missing = Vec::new();
    for entry in SpaceMapEntries::new(&bytes, Endian::NATIVE) {
        // The map is always written whole, so nothing is ever taken back in it.
        if let SpaceMapEntry::Run(SpaceRun { action: SpaceAction::Alloc, offset, len, .. }) = entry? {
            missing.push(Txg(offset)..=Txg(offset.saturating_add(len - 1)));
        }
    }
    Ok(missing)
}

fn encode(map: &MapInfo, ranges: &[RangeInclusive<Txg>], txg: Txg, long_entries: bool) -> MapWrite {
    let mut log = SpaceMapLog::new(0, u64::from(BLOCK_SIZE), long_entries);
    let mut missing = 0;
    if !ranges.is_empty() {
        log.debug(SpaceAction::Alloc, 1, txg);
    }
    for range in ranges {
        let len = range.end().0 - range.start().0 + 1;
        log.run(SpaceRun { action: SpaceAction::Alloc, offset: range.start().0, len, vdev: None });
        missing += len as i64;
    }
    let header = SpaceMapPhys { length: log.length(), allocated: missing, ..map.header };
    MapWrite { truncate: true, at: 0, bytes: log.to_bytes(Endian::NATIVE), header }
}

impl Pool {
    /// Writes what devices miss, where it changed. New maps only if `may_create`.
    pub(crate) async fn sync_missing(&self, tx: &Tx, may_create: bool) -> Result<()> {
        let inner = &self.0;
        for leaf in inner.tree.leaves() {
            let Some((ranges, version)) = leaf.missing().unkept() else { continue };
            let map = match map_of(&inner.tree.spec(), leaf.guid()) {
                Some(map) => map,
                None if ranges.is_empty() => {
                    leaf.missing().set_kept(version);
                    continue;
                }
                None if may_create => inner.create_map_of(&leaf, tx).await?,
                None => continue,
            };
            let info = inner.space_log.info(map).await?;
            let write =
                encode(&info, &ranges, tx.txg(), inner.dsl.features().is_enabled(Feature::SpacemapV2));
            inner.space_log.write(map, write, tx.txg()).await?;
            leaf.missing().set_kept(version);
        }
        Ok(())
    }
}

impl Inner {
    async fn create_map_of(&self, leaf: &Arc<Leaf>, tx: &Tx) -> Result<ObjectId> {
        let map = self.space_log.create_map(tx, BLOCK_SIZE).await?;
        self.tree.update_spec(|spec| {
            if let Some(spec) = spec.find_mut(leaf.guid()) {
                spec.dtl = Some(map.0);
            }
        });
        self.config_dirty.store(true, Ordering::Release);
        Ok(map)
    }
}
