//! Finding pools on devices: what `zpool import` lists.
//!
//! ```text
//!   device ── labels, or a partition table ── partition ── labels
//!                │
//!                ├─ state spare or cache: set aside by guid
//!                └─ pool guid ── one Candidate: the newest configuration of each top-level vdev, and where leaves are
//! ```
//!
//! A label knows only its own top-level vdev, and how many there are. The tree of a pool is therefore put together; what no
//! label told of becomes a `missing` vdev, what was removed a `hole`. Reading here is best effort: a device that cannot be
//! opened or read holds no pool.

mod candidate;

pub use candidate::{Candidate, assemble};

use crate::label::read::{Labels, read_labels};
use crate::{Device, gpt};
use futures_util::future::join_all;
use ondisk::label::MIN_DEVICE_SIZE;
use std::path::Path;
use std::sync::Arc;
use units::{Error, Kind, Result};
use world::{Disk, OpenMode};

/// How many devices are looked at at once.
const AT_ONCE: usize = 32;

/// A device with labels on it.
#[derive(Clone, Debug)]
pub struct Labelled {
    pub device: Device,
    pub labels: Labels,
}

/// The pools on the files and devices directly in `dirs`.
pub async fn scan_dirs(dirs: &[impl AsRef<Path>]) -> Result<Vec<Candidate>> {
    let mut devices = Vec::new();
    for dir in dirs {
        let dir = dir.as_ref();
        let found = world::list_dir(dir)
            .await
            .map_err(|e| Error::new(Kind::Io, "look for pools in").at(dir.display()).because(e))?;
        devices.extend(found.into_iter().map(Device::whole));
    }
    Ok(scan(devices).await)
}

/// The pools on these devices.
pub async fn scan(devices: Vec<Device>) -> Vec<Candidate> {
    assemble(&find_labels(devices).await)
}

/// Reads the labels of all devices; in those without, looks for partitions that have some.
pub async fn find_labels(devices: Vec<Device>) -> Vec<Labelled> {
    let mut found = Vec::new();
    for some in devices.chunks(AT_ONCE) {
        found.extend(join_all(some.iter().map(look_at)).await.into_iter().flatten());
    }
    found
}

async fn look_at(device: &Device) -> Vec<Labelled> {
    let Ok(disk) = device.open(OpenMode::ReadOnly).await else { return Vec::new() };
    if disk.geometry().size < MIN_DEVICE_SIZE {
        return Vec::new();
    }
    let labels = read_labels(&disk).await;
    if !labels.is_empty() {
        return vec![Labelled { device: device.clone(), labels }];
    }
    look_into_partitions(device, &disk).await
}

async fn look_into_partitions(device: &Device, disk: &Arc<dyn Disk>) -> Vec<Labelled> {
    let mut found = Vec::new();
    // Partitions do not nest.
    let windows = if device.window.is_none() { gpt::partitions(disk).await } else { Vec::new() };
    for window in windows {
        let device = Device::partition(&device.path, window);
        if let Ok(disk) = device.open(OpenMode::ReadOnly).await {
            let labels = read_labels(&disk).await;
            if !labels.is_empty() {
                found.push(Labelled { device, labels });
            }
        }
    }
    found
}
