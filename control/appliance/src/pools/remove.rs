//! `zpool remove`: log, cache and spare devices.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::{Reply, Result};
use pool::Pool;
use units::{Error, Guid, Kind};
use vdev::AuxKind;

impl Appliance {
    pub(crate) async fn remove_vdev(&self, name: &str, guid: Guid, device: &str, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Pool, &format!("remove {device}"), e);
        let _turn = self.0.turns.of(name).await;
        let open = self.pool(name, Access::Change).await?;
        let what = remove(&open.pool, guid).await.map_err(|e| failed(&e))?;
        self.post_vdev_event(what, &open.pool, guid, device);
        self.note_devices(name).await?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}

/// Answers what that is called as an event.
async fn remove(pool: &Pool, guid: Guid) -> units::Result<&'static str> {
    let tree = pool.tree();
    for kind in [AuxKind::Spare, AuxKind::Cache] {
        if tree.aux(kind).iter().any(|d| d.spec.guid == guid) {
            return pool.remove_side_device(kind, guid).await.map(|()| "vdev_remove_aux");
        }
    }
    let tops = tree.tops();
    if let Some(top) = tops.iter().find(|t| t.guid() == guid) {
        if !top.is_log {
            return Err(Error::unsupported(
                "moving data off a vdev is not part of this version of Cenote yet; log, cache and spare devices can be \
                 removed",
            ));
        }
        return pool.remove_log(top.id).await.map(|()| "vdev_remove_dev");
    }
    let spec = tree.spec();
    match spec.children.iter().find(|t| t.find(guid).is_some()) {
        Some(group) => Err(Error::unsupported(format!(
            "it is one device of {}; only whole vdevs can be removed",
            group.name()
        ))),
        None => Err(Error::new(Kind::NotFound, "remove device").because("no such device in pool")),
    }
}
