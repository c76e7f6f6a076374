//! `zpool labelclear`.

use crate::owner;
use crate::phrase::plain;
use crate::service::Appliance;
use api::{ApiError, ErrorKind, Reply, Result};
use ondisk::label::LABELS;
use ondisk::{LabelLayout, PoolState};
use std::path::Path;
use vdev::Device;
use vdev::label::read::read_labels;
use world::{Buf, OpenMode};

impl Appliance {
    pub(crate) async fn clear_labels(&self, device: &str, force: bool) -> Result<Reply> {
        let failed =
            |kind, why: String| ApiError::new(kind, format!("failed to clear label for {device}: {why}"));
        let broken = |e: std::io::Error| failed(ErrorKind::Io, plain(&e.to_string()));
        if let Some(pid) = owner::of(Path::new(device)) {
            return Err(failed(ErrorKind::Busy, format!("it is in use by process {pid}")));
        }
        let disk = Device::whole(device).open(OpenMode::ReadWrite).map_err(broken)?;
        let labels = read_labels(&disk).await;
        let Some(owner) = labels.owner() else {
            return Err(failed(ErrorKind::NotFound, "there is no label on it".into()));
        };
        let name = owner.name.clone().unwrap_or_default();
        let is_here = owner.pool.is_some_and(|guid| self.is_imported(guid.0));
        if is_here {
            return Err(failed(ErrorKind::Busy, format!("it is part of the imported pool '{name}'")));
        }
        if owner.state == PoolState::Active && !force {
            let why = format!(
                "it is part of pool '{name}', which was not exported; use '-f' to clear it all the same"
            );
            return Err(failed(ErrorKind::Busy, why));
        }
        let layout = LabelLayout::new(disk.geometry().size)
            .ok_or_else(|| failed(ErrorKind::Invalid, "it is too small for a label".into()))?;
        for index in 0..LABELS {
            let zeros = Buf::zeroed(ondisk::label::LABEL_SIZE as usize);
            disk.write(layout.label(index), vec![zeros]).await.map_err(broken)?;
        }
        disk.flush().await.map_err(broken)?;
        Ok(Reply::Done)
    }

    fn is_imported(&self, guid: u64) -> bool {
        // Nobody imports while labels are cleared, or the device would have an owner.
        self.0.pools.try_lock().is_none_or(|pools| pools.has_guid(guid))
    }
}
