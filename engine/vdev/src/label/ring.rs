//! The rings of a device: one in each label, of the uberblocks of the last txgs.

use super::part;
use super::read::read_part;
use futures_util::future::join_all;
use ondisk::label::{RING_OFFSET, RING_SIZE};
use ondisk::{LabelLayout, Uberblock, UberblockRing};
use std::sync::Arc;
use units::{Error, Kind, Result, Txg};
use world::{Buf, Disk};

/// All valid uberblocks of a device, from all four rings. The slots are as large as `ashift` says.
pub async fn read_uberblocks(disk: &Arc<dyn Disk>, ashift: u32) -> Vec<Uberblock> {
    let Some(layout) = LabelLayout::new(disk.geometry().size) else { return Vec::new() };
    let ring = UberblockRing::new(ashift);
    let rings = layout.labels().into_iter().map(|label| slots(disk, label, ring));
    join_all(rings).await.into_iter().flatten().map(|(_, uberblock)| uberblock).collect()
}

/// The slots of one ring that hold an uberblock.
async fn slots(disk: &Arc<dyn Disk>, label: u64, ring: UberblockRing) -> Vec<(u64, Uberblock)> {
    let Some(bytes) = read_part(disk, label + RING_OFFSET, RING_SIZE).await else { return Vec::new() };
    let slot = |i: u64| {
        let at = ring.slot_offset(i);
        let from = (at - RING_OFFSET) as usize;
        let found = part::decode_uberblock(&bytes[from..from + ring.slot_size() as usize], label + at);
        found.map(|uberblock| (i, uberblock))
    };
    (0..ring.slots()).filter_map(slot).collect()
}

/// The newest of `uberblocks` that is not newer than `limit`.
pub fn best_uberblock(
    uberblocks: impl IntoIterator<Item = Uberblock>,
    limit: Option<Txg>,
) -> Option<Uberblock> {
    let allowed = uberblocks.into_iter().filter(|u| limit.is_none_or(|limit| u.txg <= limit));
    allowed.reduce(|best, u| if u.is_newer_than(&best) { u } else { best })
}

/// Empties the slots of a device's rings whose uberblocks `is_foreign` names, so that no import finds them again.
///
/// # Errors
/// `Io` when one is still there.
pub(crate) async fn forget_uberblocks(
    disk: &Arc<dyn Disk>,
    ashift: u32,
    is_foreign: impl Fn(&Uberblock) -> bool,
) -> Result<()> {
    let name = disk.path().display().to_string();
    let io = |e: std::io::Error| Error::new(Kind::Io, "clean the uberblocks of").at(&name).because(e);
    let Some(layout) = LabelLayout::new(disk.geometry().size) else { return Ok(()) };
    let ring = UberblockRing::new(ashift);
    for label in layout.labels() {
        for (slot, uberblock) in slots(disk, label, ring).await {
            if is_foreign(&uberblock) {
                let zeros = Buf::zeroed(ring.slot_size() as usize);
                disk.write(label + ring.slot_offset(slot), vec![zeros]).await.map_err(io)?;
            }
        }
    }
    disk.flush().await.map_err(io)
}
