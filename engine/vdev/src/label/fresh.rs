//! New labels, and no labels.
//!
//! A device that joins a pool first gets labels of txg 0: they say whose it will be, and until the first commit no import
//! takes them for a pool. Its ring is emptied, so that no uberblock of an earlier life is found.

use super::commit::write_config;
use super::config::{PoolConfig, aux_label};
use super::part;
use super::read::{Owner, read_labels};
use crate::open::open_to_label;
use crate::scan::{Labelled, find_labels};
use crate::{AuxKind, Device, Leaf, NewTops, OpenOptions, Priority, Spec, Top, Tree};
use futures_util::future::join_all;
use ondisk::label::{BOOT_HEADER_OFFSET, DATA_OFFSET, LABEL_SIZE, LABELS, RING_OFFSET, RING_SIZE};
use ondisk::{LabelLayout, NvList, PoolState};
use std::sync::Arc;
use units::{Error, Kind, Result, Txg};
use world::{Buf, Disk, OpenMode};

impl Tree {
    /// Gives fresh labels to every leaf of a new pool. `txg` is the one in which it begins. Fails when a single leaf cannot
    /// be labelled: a new pool starts whole.
    pub async fn label_new(&self, config: &PoolConfig, txg: Txg) -> Result<()> {
        label_tops(&self.spec(), &self.tops(), config, txg).await
    }

    /// Gives fresh labels to vdevs that are about to join the pool in `txg`.
    pub async fn label_added(&self, new: &NewTops, config: &PoolConfig, txg: Txg) -> Result<()> {
        let mut root = self.spec();
        root.children.extend(new.specs.iter().cloned());
        label_tops(&root, &new.tops, config, txg).await
    }

    /// Gives fresh labels to a device that is about to join a group in `txg`; `root` is the tree with it. Labels of a whole
    /// group that do not fit are found out before any is written.
    pub async fn label_joining(
        &self,
        leaf: &Arc<Leaf>,
        root: &Spec,
        config: &PoolConfig,
        txg: Txg,
    ) -> Result<()> {
        let missing = || Error::corrupt("a device that is not in the configuration");
        let top = root.top_of(leaf.guid()).ok_or_else(missing)?;
        let own = root.find(leaf.guid()).ok_or_else(missing)?;
        let config = PoolConfig { txg: Txg::NONE, ..config.clone() };
        label_fresh(leaf.clone(), config.label(root, top, own).with("create_txg", txg)).await
    }

    /// Makes these devices spares or caches.
    pub async fn label_aux(&self, kind: AuxKind, specs: &[Spec], version: u64) -> Result<()> {
        let devices = self.options().devices.clone();
        let options = OpenOptions { devices, ..OpenOptions::new(OpenMode::ReadWrite) };
        for spec in specs {
            let leaf = open_to_label(spec, &options).await?;
            label_fresh(leaf, aux_label(version, kind.state(), spec)).await?;
        }
        Ok(())
    }

    /// Releases a device that was a cache of the pool.
    pub async fn unlabel(&self, spec: &Spec) -> Result<()> {
        let (pool, devices) = (Some(spec.guid), self.options().devices.clone());
        let options = OpenOptions { pool, devices, ..OpenOptions::new(OpenMode::ReadWrite) };
        wipe(&open_to_label(spec, &options).await?).await
    }
}

async fn label_tops(root: &Spec, tops: &[Arc<Top>], config: &PoolConfig, txg: Txg) -> Result<()> {
    let config = PoolConfig { txg: Txg::NONE, ..config.clone() };
    let mut jobs = Vec::new();
    for top in tops {
        let spec = root.find(top.guid()).ok_or_else(|| Error::corrupt("a vdev not in the configuration"))?;
        for leaf in top.leaves() {
            let own = root.find(leaf.guid()).unwrap_or(spec);
            let label = config.label(root, spec, own).with("create_txg", txg);
            jobs.push(label_fresh(leaf, label));
        }
    }
    join_all(jobs).await.into_iter().collect::<Result<()>>()?;
    check_labels_arrived(tops).await
}

/// A device named twice, under different names, keeps only the later of its two labels.
async fn check_labels_arrived(tops: &[Arc<Top>]) -> Result<()> {
    for leaf in tops.iter().flat_map(|t| t.leaves()) {
        let labels = leaf.read_labels().await?;
        if labels.owner().is_none_or(|owner| owner.leaf != leaf.guid()) {
            let name = leaf.device();
            return Err(Error::invalid(format!(
                "'{name}' is named more than once, or loses what is written"
            )));
        }
    }
    Ok(())
}

/// Why a new pool may not take these devices without force, each with its name.
pub async fn objections(devices: &[Device]) -> Vec<String> {
    let found = find_labels(devices.to_vec()).await;
    let objection = |l: &Labelled| {
        let objection = l.labels.owner()?.objection()?;
        Some(format!("'{}' {objection}", l.device))
    };
    found.iter().filter_map(objection).collect()
}

async fn label_fresh(leaf: Arc<Leaf>, label: NvList) -> Result<()> {
    let failed = || Error::new(Kind::Io, "label").at(leaf.device());
    let layout = LabelLayout::new(leaf.psize()).ok_or_else(failed)?;
    for at in layout.labels() {
        let boot = at + BOOT_HEADER_OFFSET;
        leaf.write_raw(boot, part::encode_boot_header(boot), Priority::SyncWrite).await?;
        leaf.write_raw(at + RING_OFFSET, Buf::zeroed(RING_SIZE as usize), Priority::SyncWrite).await?;
    }
    // All labels or none: a configuration that does not fit is found out before.
    part::encode_config(&label, &[])?;
    if write_config(leaf.clone(), label, (0..LABELS).collect()).await { Ok(()) } else { Err(failed()) }
}

/// Gives a device that left its pool the labels of another, of txg 0: until that pool's first commit no import takes the
/// device for one. Its ring of uberblocks stays: by the newest of them it is read.
///
/// # Errors
/// `Io` when no label could be written.
pub async fn relabel(leaf: &Arc<Leaf>, root: &Spec, config: &PoolConfig) -> Result<()> {
    let missing = || Error::corrupt("a device that is not in the configuration");
    let top = root.top_of(leaf.guid()).ok_or_else(missing)?;
    let own = root.find(leaf.guid()).ok_or_else(missing)?;
    let label = PoolConfig { txg: Txg::NONE, ..config.clone() }.label(root, top, own);
    match write_config(leaf.clone(), label, (0..LABELS).collect()).await {
        true => Ok(()),
        false => Err(Error::new(Kind::Io, "label").at(leaf.device())),
    }
}

/// Releases the device of a vdev that left its pool.
pub async fn wipe(leaf: &Arc<Leaf>) -> Result<()> {
    let Some(layout) = LabelLayout::new(leaf.psize()) else { return Ok(()) };
    let zeros = Buf::zeroed(LABEL_SIZE as usize);
    for at in layout.labels() {
        leaf.write_raw(at, zeros.clone(), Priority::SyncWrite).await?;
    }
    leaf.flush().await
}

/// Releases a device whose labels say `owner`, whatever they say. Where a label should be and is none, the device may be
/// used for something else by now: that stays.
pub async fn wipe_labels(disk: &Arc<dyn Disk>, owner: &Owner) -> Result<()> {
    let name = disk.path().display().to_string();
    let layout = LabelLayout::new(disk.geometry().size)
        .ok_or_else(|| Error::invalid(format!("'{name}' is too small to be a vdev")))?;
    let io = |e: std::io::Error| Error::new(Kind::Io, "clear label").at(&name).because(e);
    let zeros = Buf::zeroed(LABEL_SIZE as usize);
    for (index, _) in read_labels(disk).await.valid {
        disk.write(layout.label(index), vec![zeros.clone()]).await.map_err(io)?;
    }
    if owner.state == PoolState::L2Cache {
        // The header of what a persistent cache holds; without it nothing in it is found again.
        disk.write(DATA_OFFSET, vec![Buf::zeroed(64 << 10)]).await.map_err(io)?;
    }
    disk.flush().await.map_err(io)
}
