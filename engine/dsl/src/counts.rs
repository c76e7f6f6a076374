//! How many file systems and snapshots are below each directory: kept where limits on them were ever set.
//!
//! The counts are fields of the directories, so that a limit is checked without a walk. A directory without the field
//! has never been under a limit; neither have those above it, so the way up ends there.

use dmu::Tx;
use ondisk::Feature;
use units::{ObjectId, Result};

use crate::dsl::Dsl;
use crate::zaps;

pub const FILESYSTEMS: &str = "com.joyent:filesystem_count";
pub const SNAPSHOTS: &str = "com.joyent:snapshot_count";

impl Dsl {
    /// Adds to a count of a directory and of all above it.
    pub(crate) async fn adjust_count(&self, tx: &Tx, dir: ObjectId, field: &str, delta: i64) -> Result<()> {
        if delta == 0 || !self.features().is_active(Feature::FilesystemLimits) {
            return Ok(());
        }
        for (id, _) in self.chain(dir).await? {
            let object = self.core.mos().object(id).await?;
            let Some(count) = zaps::field(&object, field).await? else { return Ok(()) };
            let count = count.saturating_add_signed(delta);
            zap::Zap::open(object).update(tx, field, count).await?;
        }
        Ok(())
    }

    /// A new directory has nothing below it.
    pub(crate) async fn start_counts(&self, tx: &Tx, dir: ObjectId) -> Result<()> {
        if !self.features().is_active(Feature::FilesystemLimits) {
            return Ok(());
        }
        let object = self.core.mos().object(dir).await?;
        let table = self.core.zapify(tx, &object).await?;
        table.insert(tx, FILESYSTEMS, 0u64).await?;
        table.insert(tx, SNAPSHOTS, 0u64).await
    }

    /// A count of a directory, if it is kept.
    pub(crate) async fn count(&self, dir: ObjectId, field: &str) -> Result<Option<u64>> {
        zaps::field(&self.core.mos().object(dir).await?, field).await
    }
}
