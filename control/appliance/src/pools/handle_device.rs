//! `zpool offline`, `online`, `attach`, `detach` and `replace`: what is done to one device of a pool.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::add::own_ashift;
use crate::pools::{Access, devices, vdevs};
use api::{DeviceAction, Joining, Reply, Result};
use pool::{Offline, Pool};
use std::path::Path;
use units::{Error, Guid, Kind};
use vdev::AuxKind;

impl Appliance {
    pub(crate) async fn handle_device(
        &self,
        name: &str,
        device: &str,
        action: DeviceAction,
        by: &By,
    ) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Pool, &doing(device, &action), e);
        self.pool(name, Access::Change).await?;
        if let DeviceAction::Attach(joining) | DeviceAction::Replace(joining) = &action {
            // Kept as it is, it would be another file when the daemon is started elsewhere.
            if !joining.device.starts_with('/') {
                let e = Error::invalid(format!("'{}': devices are absolute paths", joining.device));
                return Err(failed(&e));
            }
            devices::answer(std::slice::from_ref(&joining.device)).await.map_err(|e| failed(&e))?;
        }
        let _turn = self.0.turns.of(name).await;
        let open = self.pool(name, Access::Change).await?;
        let pool = &open.pool;
        let takes_caches = matches!(action, DeviceAction::Offline { .. } | DeviceAction::Online { .. });
        let guid = find(pool, device, takes_caches).map_err(|e| failed(&e))?;
        let done = match &action {
            DeviceAction::Offline { temporary, fault } => {
                let how = match (fault, temporary) {
                    (false, false) => Offline::Lasting,
                    (false, true) => Offline::Temporary,
                    (true, false) => Offline::Faulted,
                    (true, true) => Offline::FaultedTemporary,
                };
                pool.offline(guid, how).await
            }
            DeviceAction::Online { expand } => {
                let online = async {
                    pool.online(guid).await?;
                    if *expand { pool.expand(guid).await.map(drop) } else { Ok(()) }
                };
                online.await
            }
            DeviceAction::Detach => pool.detach(guid).await,
            DeviceAction::Attach(joining) | DeviceAction::Replace(joining) => {
                let replaces = matches!(action, DeviceAction::Replace(_));
                let join = async {
                    let Joining { device: new, force, ashift, sequential } = joining;
                    let leaf = devices::look_at_joining(new, *force, &self.pools_now().await, pool).await?;
                    let ashift = match ashift {
                        Some(ashift) => *ashift,
                        None => own_ashift(pool).await?,
                    };
                    match sequential {
                        true => pool.attach_sequentially(guid, leaf, replaces, ashift as u32).await,
                        false => pool.attach(guid, leaf, replaces, ashift as u32).await,
                    }
                };
                join.await
            }
        };
        self.note_devices(name).await?;
        done.map_err(|e| failed(&e))?;
        self.tell_of(pool, guid, device, &action);
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }

    /// That a device is offline is told when its state is another one.
    fn tell_of(&self, pool: &Pool, guid: Guid, device: &str, action: &DeviceAction) {
        match action {
            DeviceAction::Offline { .. } => {}
            DeviceAction::Online { .. } => self.post_vdev_event("vdev_online", pool, guid, device),
            DeviceAction::Detach => self.post_vdev_event("vdev_remove", pool, guid, device),
            DeviceAction::Attach(new) | DeviceAction::Replace(new) => {
                let leaves = pool.tree().leaves();
                let joined = leaves.iter().find(|leaf| leaf.device().path == Path::new(&new.device));
                let guid = joined.map_or(guid, |leaf| leaf.guid());
                self.post_vdev_event("vdev_attach", pool, guid, &new.device);
            }
        }
    }
}

fn doing(device: &str, action: &DeviceAction) -> String {
    match action {
        DeviceAction::Offline { fault: true, .. } => format!("fault {device}"),
        DeviceAction::Offline { .. } => format!("offline {device}"),
        DeviceAction::Online { expand: true } => format!("expand {device}"),
        DeviceAction::Online { .. } => format!("online {device}"),
        DeviceAction::Detach => format!("detach {device}"),
        DeviceAction::Attach(new) => format!("attach {} to {device}", new.device),
        DeviceAction::Replace(new) => format!("replace {device} with {}", new.device),
    }
}

/// The device of the tree that is called so. Spares that wait are not in use as devices of the pool, and caches only stand
/// beside it.
pub(crate) fn find(pool: &Pool, device: &str, takes_caches: bool) -> units::Result<Guid> {
    let tree = pool.tree();
    if let Some(spec) = vdevs::find(&tree.spec(), device) {
        return Ok(spec.guid);
    }
    let beside = |kind| vdevs::find_beside(tree, kind, device);
    match (beside(AuxKind::Spare), beside(AuxKind::Cache)) {
        (Some(_), _) => Err(Error::invalid("device is reserved as a hot spare")),
        (None, Some(cache)) if takes_caches => Ok(cache),
        (None, Some(_)) => Err(Error::invalid("device is in use as a cache")),
        (None, None) => Err(Error::new(Kind::NotFound, "find device").because("no such device in pool")),
    }
}
