//! Log space maps: what OpenZFS keeps for a while in one log for all metaslabs, and not yet in their own space maps.
//!
//! ```text
//!   MOS directory ─ log_spacemap_zap   txg → space map object        the logs, oldest first
//!   vdev's ZAP    ─ ms_unflushed_phys  array, a txg for each metaslab: the log speaks for it from that txg on
//! ```
//!
//! They are read when a pool is opened. We do not write any: the first txg of a pool opened for writing brings every
//! metaslab's own map up to date (`metaslab` does that with its first sync) and removes the logs in the same txg, so that
//! the feature is enabled but no longer active. Any implementation takes it up again when it wants to.

use crate::pool::{Inner, Pool};
use dmu::{Object, Tx};
use metaslab::SpaceLog;
use ondisk::Feature;
use ondisk::mos::directory;
use std::sync::Arc;
use units::{Error, ObjectId, Result, Txg, VdevId};
use zap::Zap;

/// In a top-level vdev's ZAP.
const UNFLUSHED: &str = "com.delphix:ms_unflushed_phys_txgs";
/// An entry of that array: the txg, in 8 bytes.
const UNFLUSHED_ENTRY: usize = 8;
/// A log larger than this is not one: 64 Mi entries.
const LOG_MAX: u64 = 1 << 30;

/// Applies the logs of a pool that was just opened to its metaslabs.
pub(crate) async fn apply(inner: &Inner, log: &Arc<dyn SpaceLog>) -> Result<()> {
    let logs = logs(inner).await?;
    if logs.is_empty() {
        return Ok(());
    }
    for (vdev, array) in unflushed_arrays(inner).await? {
        let len = array.attrs().size_bound().min(8 << 20) as usize;
        let bytes = array.read(0, len).await?;
        let txgs: Vec<Txg> =
            bytes.as_chunks::<UNFLUSHED_ENTRY>().0.iter().map(|w| Txg(u64::from_ne_bytes(*w))).collect();
        inner.space.set_unflushed_txgs(vdev, &txgs);
    }
    for (txg, map) in logs {
        let info = log.info(map).await?;
        if info.header.length > LOG_MAX {
            return Err(Error::corrupt(format!("length {}", info.header.length))
                .at(format!("log space map of txg {txg}")));
        }
        let bytes = log.read(map, info.header.length).await?;
        inner.space.apply_log(txg, &bytes)?;
    }
    Ok(())
}

/// The logs, oldest first.
async fn logs(inner: &Inner) -> Result<Vec<(Txg, ObjectId)>> {
    let Some(zap) = inner.dsl.core().directory().lookup_u64(directory::LOG_SPACE_MAPS).await? else {
        return Ok(Vec::new());
    };
    let mut logs = Vec::new();
    for entry in inner.dsl.core().table(ObjectId(zap)).await?.entries().await? {
        let name = entry.name().into_owned();
        let bad = || Error::corrupt(format!("entry '{name}' of the list of log space maps"));
        let txg = u64::from_str_radix(&name, 16).map_err(|_| bad())?;
        logs.push((Txg(txg), ObjectId(entry.value.as_u64().ok_or_else(bad)?)));
    }
    logs.sort();
    Ok(logs)
}

/// For each top-level vdev that has one, its array of unflushed txgs.
async fn unflushed_arrays(inner: &Inner) -> Result<Vec<(VdevId, Object)>> {
    let mut arrays = Vec::new();
    for (vdev, zap) in top_zaps(inner).await? {
        if let Some(id) = zap.lookup_u64(UNFLUSHED).await? {
            arrays.push((vdev, inner.mos.object(ObjectId(id)).await?));
        }
    }
    Ok(arrays)
}

async fn top_zaps(inner: &Inner) -> Result<Vec<(VdevId, Zap<Object>)>> {
    let mut zaps = Vec::new();
    for top in inner.tree.spec().children {
        if let (Some(id), Some(zap)) = (top.id, top.top_zap.and_then(|z| ObjectId(z).some())) {
            zaps.push((VdevId(id as u32), inner.dsl.core().table(zap).await?));
        }
    }
    Ok(zaps)
}

impl Pool {
    /// Removes the logs, in the txg that has brought the metaslabs' own maps up to date.
    pub(crate) async fn drop_log_space_maps(&self, tx: &Tx) -> Result<()> {
        let inner = &self.0;
        let core = inner.dsl.core();
        let Some(list) = core.directory().lookup_u64(directory::LOG_SPACE_MAPS).await? else { return Ok(()) };
        for (_, map) in logs(inner).await? {
            // Every space map with a histogram counts as a user of that feature, those of logs too.
            if inner.space_log.info(map).await?.header.histogram.is_some() {
                core.features().add(tx, Feature::SpacemapHistogram, -1).await?;
            }
            inner.mos.free(tx, map).await?;
        }
        inner.mos.free(tx, ObjectId(list)).await?;
        core.directory().remove(tx, directory::LOG_SPACE_MAPS).await?;
        for (_, zap) in top_zaps(inner).await? {
            if let Some(id) = zap.lookup_u64(UNFLUSHED).await? {
                inner.mos.free(tx, ObjectId(id)).await?;
                zap.remove(tx, UNFLUSHED).await?;
            }
        }
        core.features().add(tx, Feature::LogSpacemap, -1).await
    }
}
