//! What is on a cache device: its header, the logs, and the blocks that they tell of.

use crate::report::{Cell, Report, columns};
use l2arc::{Chain, Ring, Source, read_header};
use std::path::Path;
use std::sync::Arc;
use units::{Error, Kind, Result};
use vdev::Device;
use vdev::label::read::read_labels;
use world::{Disk, OpenMode};

/// The report, and whether all logs of the chain could be read.
pub(crate) async fn report(device: &Path) -> Result<(Report, bool)> {
    let failed = |e| Error::new(Kind::Io, "open").at(device.display()).because(e);
    let disk: Arc<dyn Disk> = Device::whole(device).open(OpenMode::ReadOnly).await.map_err(failed)?;
    let labels = read_labels(&disk).await;
    let ashift = labels.best(None).and_then(|label| label.opt_u64("ashift").ok().flatten()).unwrap_or(9);
    let source: &dyn Source = &disk;
    let header = read_header(source, ashift.clamp(9, 16) as u32).await.map_err(|e| e.at(device.display()))?;
    let ring = Ring::of(&header);
    let (mut logs, mut blocks, mut problem) = (Vec::new(), Vec::new(), None);
    let (mut data, mut metadata) = (0, 0);
    let mut chain = Chain::new(&header);
    while let Some(next) = chain.next(source).await {
        let (pointer, log) = match next {
            Ok(found) => found,
            Err(e) => {
                problem = Some(e.to_string());
                break;
            }
        };
        logs.push(vec![
            pointer.daddr.into(),
            Cell::Bytes(pointer.asize()),
            pointer.payload_start.into(),
            Cell::Bytes(pointer.payload_asize),
            (log.entries.len() as u64).into(),
        ]);
        for entry in log.entries.iter().filter(|e| ring.has_room_for(e.daddr, e.prop.psize.0)) {
            *(if entry.prop.is_metadata { &mut metadata } else { &mut data }) += entry.prop.psize.0;
            blocks.push(vec![
                entry.dva.to_string().into(),
                entry.birth.0.into(),
                (if entry.prop.is_metadata { "metadata" } else { "data" }).into(),
                Cell::Bytes(entry.prop.lsize.0),
                Cell::Bytes(entry.prop.psize.0),
                format!("{:?}", entry.prop.compression).to_lowercase().into(),
                entry.daddr.into(),
            ]);
        }
    }
    let is_sound = problem.is_none();
    let mut report = Report::default();
    report.fields(
        "header",
        vec![
            ("version", header.version.into()),
            ("pool_guid", header.pool.0.into()),
            ("vdev_guid", header.vdev.0.into()),
            ("log_entries", header.log_entries.into()),
            ("start", header.start.into()),
            ("hand", ring.hand.into()),
            ("evict", header.evict.into()),
            ("end", header.end.into()),
            ("first_sweep", (if header.is_first_sweep() { "yes" } else { "no" }).into()),
            ("logs", header.logs.into()),
            ("logs_asize", Cell::Bytes(header.logs_asize)),
            ("trim_time", Some(header.trim.time).filter(|t| *t != 0).into()),
            ("logs_read", (logs.len() as u64).into()),
            ("blocks", (blocks.len() as u64).into()),
            ("data", Cell::Bytes(data)),
            ("metadata", Cell::Bytes(metadata)),
            ("problem", problem.into()),
        ],
    );
    report.table("logs", columns(&["PLACE>", "SIZE>", "BLOCKS FROM>", "BLOCKS SIZE>", "ENTRIES>"]), logs);
    let names = &["DVA", "BIRTH>", "KIND", "LSIZE>", "PSIZE>", "COMPRESSION", "PLACE>"];
    report.table("blocks", columns(names), blocks);
    Ok((report, is_sound))
}
