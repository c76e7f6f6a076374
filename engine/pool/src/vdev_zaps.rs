//! The ZAPs of the vdevs: where a vdev's own properties live.
//!
//! ```text
//!   MOS directory ─ vdev_zap_map   every such ZAP, so that none is forgotten
//!   configuration ─ top_zap, leaf_zap of each vdev
//! ```

use crate::pool::Inner;
use dmu::{ObjSet, Tx};
use dsl::core::Core;
use dsl::zaps;
use ondisk::mos::directory;
use ondisk::{Feature, ObjectType};
use units::{ObjectId, Result, VdevId};
use vdev::{Bias, Spec, VdevType};

/// In a top-level vdev's ZAP: what the vdev is for.
const BIAS: &str = "org.zfsonlinux:allocation_bias";

/// Gives every vdev of a new pool its ZAPs.
pub(crate) async fn create(core: &Core, tx: &Tx, root: &mut Spec) -> Result<()> {
    let list = zaps::create(core.mos(), tx, ObjectType::ZAP_METADATA).await?;
    core.directory().insert(tx, directory::VDEV_ZAP_MAP, list.blocks().id().0).await?;
    for top in &mut root.children {
        add_top(core, &list, tx, top).await?;
    }
    Ok(())
}

/// Gives vdevs that join a pool their ZAPs; a pool that is too old for such has none.
pub(crate) async fn add_all(core: &Core, tx: &Tx, tops: &mut [Spec]) -> Result<()> {
    let Some(list) = core.directory().lookup_u64(directory::VDEV_ZAP_MAP).await? else { return Ok(()) };
    let list = core.table(ObjectId(list)).await?;
    for top in tops {
        add_top(core, &list, tx, top).await?;
    }
    Ok(())
}

/// Makes the ZAP of a device that joins a group; `None` in a pool that is too old for such.
pub(crate) async fn add_leaf(core: &Core, tx: &Tx) -> Result<Option<u64>> {
    let Some(list) = core.directory().lookup_u64(directory::VDEV_ZAP_MAP).await? else { return Ok(None) };
    let list = core.table(ObjectId(list)).await?;
    add(core.mos(), &list, tx).await.map(Some)
}

async fn add_top(core: &Core, list: &zaps::Table, tx: &Tx, top: &mut Spec) -> Result<()> {
    let mos = core.mos();
    top.top_zap = Some(add(mos, list, tx).await?);
    let mut todo = vec![&mut *top];
    while let Some(vdev) = todo.pop() {
        if vdev.vdev_type.is_leaf() {
            vdev.leaf_zap = Some(add(mos, list, tx).await?);
        }
        todo.extend(vdev.children.iter_mut());
    }
    if let Some(word) = top.bias.word().filter(|_| top.vdev_type != VdevType::Hole) {
        let zap = zaps::open(mos, ObjectId(top.top_zap.unwrap_or(0))).await?;
        zap.insert(tx, BIAS, zap::Value::text(word)).await?;
    }
    // Logs were there before classes were a feature.
    if matches!(top.bias, Bias::Special | Bias::Dedup) {
        core.features().add(tx, Feature::AllocationClasses, 1).await?;
    }
    Ok(())
}

/// Removes the ZAPs of a vdev that leaves the pool, and of all below it.
pub(crate) async fn remove(core: &Core, tx: &Tx, top: &Spec) -> Result<()> {
    let zaps: Vec<u64> =
        top.walk().flat_map(|v| [v.top_zap, v.leaf_zap]).flatten().filter(|z| *z != 0).collect();
    if zaps.is_empty() {
        return Ok(());
    }
    let list = core.directory().require_u64(directory::VDEV_ZAP_MAP).await?;
    let list = core.table(ObjectId(list)).await?;
    for zap in zaps {
        zaps::remove_if_any(&list, tx, &zap::int_name(zap)).await?;
        core.mos().free(tx, ObjectId(zap)).await?;
    }
    Ok(())
}

async fn add(mos: &ObjSet, list: &zaps::Table, tx: &Tx) -> Result<u64> {
    let id = zaps::create(mos, tx, ObjectType::ZAP_METADATA).await?.blocks().id().0;
    list.insert(tx, &zap::int_name(id), id).await?;
    Ok(id)
}

/// What a top-level vdev is for, as its ZAP says; only the log is marked in the configuration.
pub(crate) async fn bias(inner: &Inner, vdev: VdevId) -> Result<Bias> {
    let spec = inner.tree.spec();
    let Some(top) = spec.children.iter().find(|t| t.id == Some(u64::from(vdev.0))) else {
        return Ok(Bias::Normal);
    };
    let Some(zap) = top.top_zap.and_then(|z| ObjectId(z).some()) else { return Ok(top.bias) };
    let value = zaps::open(&inner.mos, zap).await?.lookup(BIAS).await?;
    Ok(value.and_then(|v| v.as_text().and_then(Bias::from_word)).unwrap_or(top.bias))
}
