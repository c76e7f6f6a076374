//! `zpool labelclear`.
//!
//! What a pool may want again is cleared by force alone, and what a pool that is imported has is not: a pool that was
//! exported is one on its way to another machine, and a spare or a cache device names no pool that could be asked.
//! Without force goes the label of a destroyed pool, and one that never became part of a pool.

use crate::appliance::Appliance;
use crate::error_text::plain;
use crate::pools::Access;
use crate::pools::devices::user_of;
use crate::pools::open_elsewhere;
use api::{ApiError, Class, ErrorKind, Reply, Result};
use ondisk::PoolState;
use std::path::Path;
use vdev::Device;
use vdev::label::fresh::wipe_labels;
use vdev::label::read::{Owner, read_labels};
use world::OpenMode;

impl Appliance {
    pub(crate) async fn clear_labels(&self, device: &str, force: bool) -> Result<Reply> {
        let failed =
            |kind, why: String| ApiError::new(kind, format!("failed to clear label for {device}: {why}"));
        let broken = |e: std::io::Error| failed(ErrorKind::Io, plain(&e.to_string()));
        // Before its path is asked for anything: one in a file system that this process serves is refused.
        drop(Device::whole(device).open(OpenMode::ReadOnly).await.map_err(broken)?);
        if open_elsewhere::is_open_here(Path::new(device)) {
            self.pools_now().await.devices_have_left().await;
        }
        if let Some(pid) = open_elsewhere::of(Path::new(device)) {
            return Err(failed(ErrorKind::Busy, format!("it is in use by process {pid}")));
        }
        // Not for writing yet: the pool that it may belong to has to open it.
        let disk = Device::whole(device).open(OpenMode::ReadOnly).await.map_err(broken)?;
        let Some(owner) = read_labels(&disk).await.owner() else {
            return Err(failed(ErrorKind::NotFound, "there is no label on it".into()));
        };
        drop(disk);
        if let Some(pool) = self.pool_with_device(&owner).await {
            return Err(failed(ErrorKind::Busy, format!("it is part of the imported pool '{pool}'")));
        }
        if let Some(objection) = owner.objection().filter(|_| !force) {
            let why = format!("use '-f' to override the following error: {device} {objection}");
            return Err(failed(ErrorKind::Invalid, why));
        }
        let disk = Device::whole(device).open(OpenMode::ReadWrite).await.map_err(broken)?;
        wipe_labels(&disk, &owner).await.map_err(|e| failed(e.kind().into(), plain(&e.to_string())))?;
        Ok(Reply::Done)
    }

    async fn pool_with_device(&self, owner: &Owner) -> Option<String> {
        let names = match owner.state {
            // Any pool may have it beside its vdevs.
            PoolState::Spare | PoolState::L2Cache => self.pools_now().await.names(),
            _ => self.0.pools.lock().await.name_of(owner.pool).into_iter().collect(),
        };
        for name in names {
            // Its configuration is to say; a pool that cannot be opened keeps all that name it.
            let _ = self.pool(&name, Access::Look).await;
        }
        let pools = self.pools_now().await;
        if pools.has_device(owner) {
            return Some(owner.name.clone().unwrap_or_default());
        }
        user_of(owner, Class::Normal, &pools)
    }
}

#[cfg(test)]
mod tests;
