//! Finding again what a cache device holds, when its pool was imported: from its header, along the chain of its logs.
//!
//! Nothing here is needed for the pool to be whole, so whatever does not fit together is left: the device is then used as
//! one that holds less, or nothing. An entry is only a hint of where a block may be: what is read there is verified by the
//! block's own pointer.

use crate::L2arc;
use crate::chain::{Chain, Source, read_header};
use crate::device::{Device, WORK_LIMIT};
use crate::index::Place;
use crate::journal::{Frame, Journal};
use crate::l2arc::Setup;
use arc::{BlockId, Kind};
use ondisk::l2arc::{L2Header, LogEntry, LogPointer};
use std::sync::Arc;
use tunables::Tunable;
use units::Result;

/// Takes a device into use, with what it holds.
///
/// # Errors
/// `Io`: it is tried again later.
pub(crate) async fn prepare(l2: &L2arc, device: &Arc<Device>, setup: &Setup) -> Result<()> {
    let tunables = &setup.tunables;
    let logs_from = tunables.get(Tunable::L2RebuildMinSize);
    let psize = device.leaf.psize();
    let Some(frame) = Frame::new(setup.pool, device.guid, device.ashift, psize, logs_from) else {
        return Err(units::Error::invalid("the cache device is too small"));
    };
    let header = match tunables.is_on(Tunable::L2RebuildEnabled) {
        true => header_of(device, &frame).await?,
        false => None,
    };
    let journal = match &header {
        Some(header) => {
            let found = walk(l2, device, &frame, header).await;
            Journal::resume(frame, header, &found)
        }
        None => Journal::fresh(frame),
    };
    *device.journal() = Some(journal);
    // What an earlier life has left there must not be found again.
    if header.is_none() && device.can_write() {
        device.write_header().await?;
    }
    Ok(())
}

/// Follows `l2arc_rebuild_blocks_min_l2size` while the device is in use: blocks are named in logs from now on, or no longer.
pub(crate) async fn follow(device: &Device, setup: &Setup) -> Result<()> {
    let logs_from = setup.tunables.get(Tunable::L2RebuildMinSize);
    let has_changed = device.journal().as_mut().is_some_and(|journal| journal.follow(logs_from));
    match has_changed {
        true => device.write_header().await,
        false => Ok(()),
    }
}

/// The header, if it is of this device as it is.
async fn header_of(device: &Device, frame: &Frame) -> Result<Option<L2Header>> {
    let read = device.ask(WORK_LIMIT, async {
        match read_header(&device.leaf, device.ashift).await {
            Err(e) if e.kind() == units::Kind::Io => Err(e),
            other => Ok(other.ok()),
        }
    });
    Ok(read.await?.filter(|header| frame.log_entries > 0 && frame.is_of(header)))
}

/// Takes in what the logs tell of, and answers where those are, the newest first.
async fn walk(l2: &L2arc, device: &Arc<Device>, frame: &Frame, header: &L2Header) -> Vec<LogPointer> {
    let (mut chain, mut found) = (Chain::new(header), Vec::new());
    let source: &dyn Source = &device.leaf;
    loop {
        if !l2.has_room(header.log_entries as usize) {
            l2.counters.count(&l2.counters.no_memory);
            return found;
        }
        let next = device.ask(WORK_LIMIT, async { chain.next(source).await.transpose() });
        // A log that is not as it should be ends the chain, as its end does.
        let Ok(Some((pointer, log))) = next.await else { return found };
        take_in(l2, device, frame, &pointer, &log.entries);
        found.push(pointer);
        l2.recharge();
        world::yield_now().await;
    }
}

fn take_in(l2: &L2arc, device: &Device, frame: &Frame, log: &LogPointer, entries: &[LogEntry]) {
    let mut index = l2.index();
    for entry in entries.iter().rev() {
        let psize = entry.prop.psize.0;
        let end = entry.daddr.checked_add(frame.asize(psize));
        if entry.daddr < log.payload_start || end.is_none_or(|end| end > log.daddr) {
            continue;
        }
        let block = BlockId {
            opening: l2.opening,
            vdev: entry.dva.vdev,
            offset: entry.dva.offset,
            birth: entry.birth,
        };
        let kind = if entry.prop.is_metadata { Kind::Metadata } else { Kind::Data };
        if index.insert_older(block, Place::new(device.id, entry.daddr, psize, kind)) {
            l2.counters.count(&l2.counters.rebuilt);
        }
    }
}
