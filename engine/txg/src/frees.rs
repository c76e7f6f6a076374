//! Frees of much at once: in pieces, over as many txgs as it takes.
//!
//! What is freed costs its txg's sync the walk down to it and an entry in the space maps for each block. A terabyte in one
//! txg stops all that waits for the next for as long as that takes. So a long range is freed piece by piece, each in a
//! transaction of its own:
//!
//! ```text
//!   wait_to_free ─▶ begin ─▶ free a piece, Tx::empties(its indirect blocks) ─▶ drop(tx) ─▶ wait_to_free …
//!        │ what the txgs under way empty is as much as may be: for a txg to sync
//! ```
//!
//! The measure is that of OpenZFS: bytes of indirect blocks, against a part of `zfs_dirty_data_max`
//! (`zfs_per_txg_dirty_frees_percent`). A crash leaves the pieces that were synced. So only a change that may be done in
//! part can be divided: one that its caller repeats (the list of unlinked files), or that was not acknowledged.

use crate::throttle::Limits;
use crate::txgs::{State, Tx, Txgs};
use units::Result;
use world::stages::{Stage, stage};

/// Pieces are so small a part of what may be freed at once that none overshoots it by much.
const PIECES: u64 = 4;

impl Limits {
    /// Bytes of indirect blocks that txgs which are not on disk may empty.
    fn frees_max(&self) -> u64 {
        match self.frees_percent {
            0 => u64::MAX,
            percent => self.dirty_max / 100 * percent,
        }
    }
}

impl State {
    fn may_free(&self) -> bool {
        let emptied = self.emptied.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        emptied == 0 || emptied < self.limits.frees_max()
    }
}

impl Txgs {
    /// How many bytes of indirect blocks one piece may empty.
    pub fn piece_to_free(&self) -> u64 {
        self.limits().frees_max() / PIECES
    }

    /// Waits until the txgs under way free less than they may; to be called before each piece, without a transaction.
    ///
    /// # Errors
    /// As [`Txgs::wait_synced`].
    pub async fn wait_to_free(&self) -> Result<()> {
        loop {
            let txg = {
                let state = self.lock();
                if state.may_free() {
                    return Ok(());
                }
                state.open
            };
            stage(Stage::Throttle, self.wait_for_space(txg, State::may_free)).await?;
        }
    }
}

impl Tx {
    /// Counts `bytes` of indirect blocks, all of whose pointers this change makes holes.
    pub fn empties(&self, bytes: u64) {
        if let Some(owner) = self.owner() {
            let emptied = &mut owner.lock().emptied[self.txg().slot()];
            *emptied = emptied.saturating_add(bytes);
        }
    }
}
