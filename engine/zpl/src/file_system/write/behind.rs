//! Writing behind: whole blocks of what is written from front to back go to their devices while the next are being written.
//!
//! ```text
//!   file's lock     block dirty, record in the log, which names it (`EarlyBlock`) ─▶ answer
//!                                     │
//!   a task, transaction              its device ─▶ dirty record and log have its pointer; it stays in memory
//! ```
//!
//! An `fsync` at the end of a large file had all of it to write then, while the device had nothing to do before. The sync of
//! the txg has less to do, too.
//!
//! Not for small files, which may be gone again soon, nor for what a commit would put into a log device. No client waits:
//! where the devices do not keep up, blocks are left to the next commit or sync, and so is what cannot be written.

use super::log::Change;
use crate::file_system::node::Node;
use dmu::EarlyBlock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use world::sync::join_all_bounded;

/// Bytes of a file system that are under way at once.
const UNDER_WAY: u64 = 32 << 20;
/// From so many on the devices are hastened: with as few writes at once as suit a txg that has time, they do not keep up.
const MANY: u64 = UNDER_WAY / 2;
/// Blocks of one write that are under way at once.
const AT_ONCE: usize = 32;

/// Bytes of a file system that are being written behind.
pub(super) type UnderWay = Arc<AtomicU64>;

/// Bytes that are under way until this goes.
struct Place(UnderWay, u64);

impl Place {
    fn take(under_way: &UnderWay, bytes: u64) -> Option<Place> {
        let place = Place(under_way.clone(), bytes);
        (under_way.fetch_add(bytes, Ordering::Relaxed) + bytes <= UNDER_WAY).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Node {
    /// The blocks of a write, just done, that are to be written behind it; mostly none.
    pub(super) fn blocks_behind(&self, tx: &Change, offset: u64, end: u64) -> Vec<(u64, EarlyBlock)> {
        let before = self.stream().go_on(offset, end);
        // Most writes are not the next ones of any order: this is all that they pay.
        if before == 0 || before < self.file_system().object_set().behind_from() {
            return Vec::new();
        }
        match tx.points(self.object(), offset, end - offset) {
            true => self.whole_dirty_blocks(tx, offset, end),
            false => Vec::new(),
        }
    }

    /// Begins to write these blocks, which `tx` has dirtied, if not too many are under way.
    pub(super) fn write_behind(&self, tx: Change, blocks: Vec<(u64, EarlyBlock)>, under_way: &UnderWay) {
        let object = self.object().clone();
        let Some(place) = Place::take(under_way, blocks.len() as u64 * object.block_size()) else { return };
        if under_way.load(Ordering::Relaxed) >= MANY {
            object.hasten();
        }
        drop(world::spawn(async move {
            let write =
                async |(blkid, block): (u64, EarlyBlock)| object.write_behind(&tx, blkid, &block).await;
            join_all_bounded(AT_ONCE, blocks.into_iter().map(write)).await;
            drop(place);
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_under_way_than_there_are_places() {
        let under_way = UnderWay::default();
        let first = Place::take(&under_way, UNDER_WAY - 1).unwrap();
        assert!(Place::take(&under_way, 2).is_none());
        drop(first);
        assert!(Place::take(&under_way, 2).is_some());
        assert_eq!(under_way.load(Ordering::Relaxed), 0);
    }
}
