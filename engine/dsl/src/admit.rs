//! Whether there is room for a change of the pool's own structures.
//!
//! A dataset, a snapshot or a property takes some blocks of the MOS, each in three copies. They come out of the same space
//! as data, so a pool that is full refuses them in the same way; but what helps to get out of a full pool may reach into
//! the slop ([`Reach`]), and a destroy is never refused.

use crate::dsl::Dsl;
use crate::space::Reach;
use std::sync::atomic::Ordering;
use units::{Error, Kind, Result};

/// The usual size of a block of the MOS, in all its copies.
const BLOCK: u64 = 3 * (16 << 10);

impl Dsl {
    /// Counts about `blocks` blocks of the MOS that a change in syncing context will write, until its txg has synced.
    ///
    /// # Errors
    /// `NoSpace` when they would reach further than `reach` into the slop.
    pub(crate) async fn admit(&self, reach: Reach, blocks: u64, doing: impl Fn() -> String) -> Result<()> {
        let space = self.pool_space();
        if space.size == 0 {
            // A pool that is only being made, or opened.
            return Ok(());
        }
        let (_, root) = self.core.dir(self.root).await?;
        let bytes = blocks.saturating_mul(BLOCK);
        let before = self.admitted.load(Ordering::Relaxed);
        let used = root.space.used.saturating_add(before).saturating_add(bytes);
        if used > space.usable(reach) {
            return Err(Error::new(Kind::NoSpace, doing())
                .because("the pool is full: destroy snapshots or datasets, or add a device"));
        }
        // Changes are made one after another.
        self.admitted.store(before + bytes, Ordering::Relaxed);
        Ok(())
    }
}
