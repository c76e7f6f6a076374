//! What is on a device: labels and uberblocks.

use crate::report::{Cell, Report, Section, columns};
use ondisk::{NvList, PoolState, Uberblock};
use std::collections::BTreeMap;
use std::path::Path;
use units::{Error, Kind, Result};
use vdev::Device;
use vdev::label::ring::read_uberblocks;
use vdev::scan::{Labelled, find_labels};
use world::OpenMode;

/// The device, or the partitions of it that have labels.
async fn labelled(device: &Path) -> Result<Vec<Labelled>> {
    let whole = Device::whole(device);
    whole
        .open(OpenMode::ReadOnly)
        .await
        .map_err(|e| Error::new(Kind::Io, "open").at(device.display()).because(e))?;
    let found = find_labels(vec![whole]).await;
    if found.is_empty() {
        let text = format!("'{}' has no valid label: it is not part of a pool", device.display());
        return Err(Error::invalid(text));
    }
    Ok(found)
}

pub(crate) async fn labels(device: &Path) -> Result<Report> {
    let (mut report, mut rows, mut trees) = (Report::default(), Vec::new(), Vec::new());
    for one in labelled(device).await? {
        let row = |(index, config): &(u64, NvList)| -> Vec<Cell> {
            let number = |name: &str| Cell::from(config.opt_u64(name).ok().flatten());
            let state = config.opt_u64("state").ok().flatten().map(state_name);
            vec![
                one.device.to_string().into(),
                (*index).into(),
                number("txg"),
                state.into(),
                config.str("name").ok().map(str::to_string).into(),
                number("pool_guid"),
                number("top_guid"),
                number("guid"),
            ]
        };
        rows.extend(one.labels.valid.iter().map(row));
        trees.extend(one.labels.best(None).cloned());
    }
    let names = &["DEVICE", "LABEL>", "TXG>", "STATE", "NAME", "POOL GUID>", "TOP GUID>", "GUID>"];
    report.table("labels", columns(names), rows);
    let several = trees.len() > 1;
    for (i, list) in trees.into_iter().enumerate() {
        let title = if several { format!("configuration {i}") } else { "configuration".into() };
        report.sections.push(Section::Tree { title, list });
    }
    Ok(report)
}

fn state_name(code: u64) -> String {
    PoolState::from_code(code).map_or_else(|| code.to_string(), |state| format!("{state:?}").to_lowercase())
}

pub(crate) async fn uberblocks(device: &Path) -> Result<Report> {
    let (mut report, mut rows) = (Report::default(), Vec::new());
    for one in labelled(device).await? {
        let ashift = one.labels.best(None).and_then(|c| c.list("vdev_tree").ok()?.u64("ashift").ok());
        let disk = one
            .device
            .open(OpenMode::ReadOnly)
            .await
            .map_err(|e| Error::new(Kind::Io, "open").at(&one.device).because(e))?;
        let ashift = ashift.unwrap_or(9).clamp(9, 16) as u32;
        rows.extend(rows_of(&one.device, read_uberblocks(&disk, ashift).await));
    }
    let names = &["DEVICE", "TXG>", "COPIES>", "TIME>", "VERSION>", "GUID SUM>", "CHECKPOINT>", "ROOT"];
    report.table("uberblocks", columns(names), rows);
    Ok(report)
}

/// Newest first; equal ones of several labels are one row.
fn rows_of(device: &Device, uberblocks: Vec<Uberblock>) -> Vec<Vec<Cell>> {
    let mut seen: BTreeMap<(u64, u64, u64), (u64, Uberblock)> = BTreeMap::new();
    for uberblock in uberblocks {
        let sequence = uberblock.mmp.and_then(|m| m.sequence).unwrap_or(0);
        let key = (uberblock.txg.0, uberblock.timestamp, u64::from(sequence));
        seen.entry(key).or_insert((0, uberblock)).0 += 1;
    }
    let row = |(copies, u): (u64, Uberblock)| -> Vec<Cell> {
        vec![
            device.to_string().into(),
            u.txg.0.into(),
            copies.into(),
            u.timestamp.into(),
            u.version.into(),
            u.guid_sum.into(),
            Some(u.checkpoint_txg.0).filter(|txg| *txg != 0).into(),
            u.root.to_string().into(),
        ]
    };
    seen.into_values().rev().map(row).collect()
}
