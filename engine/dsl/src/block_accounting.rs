//! What becomes of a dataset's blocks as a txg writes it: charged when born, free or dead when killed.
//!
//! ```text
//!   killed, born after the newest snapshot   no snapshot has it: free now
//!   killed, born before                      the snapshot has it: on the deadlist
//! ```
//!
//! Blocks come and go by thousands while a dataset syncs, from many tasks; here they are only counted, and dead ones
//! kept aside. When the dataset is written out [`Tally`] says what to change in the MOS, once.

use std::sync::{Arc, Mutex, PoisonError};

use dmu::BlockAccounting;
use ondisk::{BlockPointer, Feature};
use units::{Compression, Txg};
use zio::BlockStore;

use crate::core::weigh;
use crate::space::Delta;

/// The txgs that decide about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of the newest snapshot, or of the origin.
    pub prev_snap: Txg,
    /// Of the snapshot before that; blocks born after it were that snapshot's alone.
    pub prev_prev_snap: Txg,
    /// The newest snapshot is this dataset's own, not the origin of a clone.
    pub prev_is_own: bool,
    /// Blocks born up to here are charged to the dataset that this one was cloned from.
    pub origin: Txg,
}

/// What a txg did to a dataset.
#[derive(Debug, Default)]
pub struct Tally {
    pub born: Delta,
    /// Killed and free.
    pub freed: Delta,
    /// Killed, but a snapshot has it.
    pub dead: Delta,
    pub dead_list: Vec<BlockPointer>,
    /// Dead bytes that the newest snapshot now holds alone.
    pub newly_unique: i64,
    /// Dead bytes that were charged to this dataset, and are now charged to its snapshots.
    pub to_snapshots: i64,
    pub features: Vec<Feature>,
    /// For each bookmark, killed blocks that were born before it.
    pub marks: Vec<Delta>,
}

impl Tally {
    fn uses(&mut self, feature: Feature) {
        if !self.features.contains(&feature) {
            self.features.push(feature);
        }
    }
}

/// See the module.
pub struct DatasetBlockAccounting {
    store: Arc<dyn BlockStore>,
    txg: Txg,
    bounds: Bounds,
    /// Bookmarks at or after the newest snapshot that keep count of what is freed since.
    marks: Vec<Txg>,
    tally: Mutex<Tally>,
}

impl std::fmt::Debug for DatasetBlockAccounting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DatasetBlockAccounting({:?})", self.bounds)
    }
}

impl DatasetBlockAccounting {
    pub fn new(
        store: Arc<dyn BlockStore>,
        txg: Txg,
        bounds: Bounds,
        marks: Vec<Txg>,
    ) -> DatasetBlockAccounting {
        let tally = Tally { marks: vec![Delta::default(); marks.len()], ..Tally::default() };
        DatasetBlockAccounting { store, txg, bounds, marks, tally: Mutex::new(tally) }
    }

    /// What has happened; the block accounting is used up.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, change: impl FnOnce(&mut Tally)) {
        // Sums and a push: nothing can be left half done.
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl BlockAccounting for DatasetBlockAccounting {
    fn born(&self, bp: &BlockPointer) {
        if bp.is_hole() || bp.is_redacted() {
            return;
        }
        let weight = weigh(self.store.as_ref(), bp);
        let features = needed_by(bp);
        self.count(|tally| {
            tally.born += weight;
            features.into_iter().flatten().for_each(|feature| tally.uses(feature));
        });
    }

    fn uses(&self, feature: Feature) {
        self.count(|tally| tally.uses(feature));
    }

    fn killed(&self, bp: &BlockPointer) {
        if bp.is_hole() || bp.is_redacted() {
            return;
        }
        let weight = weigh(self.store.as_ref(), bp);
        let marked = self.marks.iter().any(|txg| bp.birth() <= *txg);
        if marked {
            self.count(|tally| {
                let marks = self.marks.iter().zip(&mut tally.marks);
                marks.filter(|(txg, _)| bp.birth() <= **txg).for_each(|(_, sum)| *sum += weight);
            });
        }
        if bp.birth() > self.bounds.prev_snap {
            self.store.free(bp, self.txg);
            self.count(|tally| tally.freed += weight);
            return;
        }
        let unique = self.bounds.prev_is_own && bp.birth() > self.bounds.prev_prev_snap;
        let own = bp.birth() > self.bounds.origin;
        self.count(|tally| {
            tally.dead += weight;
            tally.dead_list.push(bp.clone());
            tally.newly_unique += if unique { weight.used } else { 0 };
            tally.to_snapshots += if own { weight.used } else { 0 };
        });
    }
}

/// The features that a reader of this block must have.
fn needed_by(bp: &BlockPointer) -> [Option<Feature>; 3] {
    let large = bp.lsize().0 > ondisk::OLD_MAX_BLOCK_SIZE;
    let checksum = bp.as_plain().and_then(|p| p.checksum_kind.row().feature).and_then(Feature::by_guid);
    let zstd = matches!(bp.compression(), Compression::Zstd(_));
    [large.then_some(Feature::LargeBlocks), checksum, zstd.then_some(Feature::ZstdCompress)]
}
