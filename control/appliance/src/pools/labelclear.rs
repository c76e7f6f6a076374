//! `zpool labelclear`.

use crate::appliance::Appliance;
use crate::error_text::plain;
use crate::pools::Access;
use crate::pools::open_elsewhere;
use api::{ApiError, ErrorKind, Reply, Result};
use ondisk::label::LABELS;
use ondisk::{LabelLayout, PoolState};
use std::path::Path;
use vdev::Device;
use vdev::label::read::{Owner, read_labels};
use world::{Buf, OpenMode};

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
        let name = owner.name.clone().unwrap_or_default();
        if self.is_part_of_a_pool(&owner).await {
            return Err(failed(ErrorKind::Busy, format!("it is part of the imported pool '{name}'")));
        }
        if owner.state == PoolState::Active && !force {
            let why = format!(
                "it is part of pool '{name}', which was not exported; use '-f' to clear it all the same"
            );
            return Err(failed(ErrorKind::Busy, why));
        }
        let disk = Device::whole(device).open(OpenMode::ReadWrite).await.map_err(broken)?;
        let layout = LabelLayout::new(disk.geometry().size)
            .ok_or_else(|| failed(ErrorKind::Invalid, "it is too small for a label".into()))?;
        for index in 0..LABELS {
            let zeros = Buf::zeroed(ondisk::label::LABEL_SIZE as usize);
            disk.write(layout.label(index), vec![zeros]).await.map_err(broken)?;
        }
        disk.flush().await.map_err(broken)?;
        Ok(Reply::Done)
    }

    async fn is_part_of_a_pool(&self, owner: &Owner) -> bool {
        let name = self.0.pools.lock().await.name_of(owner.pool);
        if let Some(name) = name {
            // Its configuration is to say; a pool that cannot be opened keeps all that name it.
            let _ = self.pool(&name, Access::Look).await;
        }
        self.0.pools.lock().await.has_device(owner)
    }
}
