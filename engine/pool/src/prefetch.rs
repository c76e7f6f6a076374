//! `zpool prefetch`: the tables of deduplicated blocks are read into the cache, so that looking something up in them waits
//! for no device.
//!
//! What does not fit into the cache leaves it again, as everything else does.

use crate::pool::Pool;
use ondisk::mos::directory;
use units::{ObjectId, Result};
use world::Boxed;

/// Read at once.
const PIECE: u64 = 1 << 20;

impl Pool {
    /// Reads every table of deduplicated blocks, and answers how many bytes that were: 0 in a pool that has none.
    ///
    /// # Errors
    /// A block of a table cannot be read.
    pub fn prefetch_dedup_tables(&self) -> Boxed<'_, Result<u64>> {
        Box::pin(async move {
            let entries = {
                let _reading = self.reading().await;
                self.dsl().core().directory().entries().await?
            };
            let mut bytes = 0;
            for entry in entries.iter().filter(|e| e.name().starts_with(directory::DEDUP_PREFIX)) {
                let Some(object) = entry.value.as_u64().and_then(|id| ObjectId(id).some()) else { continue };
                let object = self.mos().object(object).await.map_err(|e| e.at(entry.name().into_owned()))?;
                let size = object.attrs().size_bound();
                let mut at = 0;
                while at < size {
                    let len = (size - at).min(PIECE);
                    object.read(at, len as usize).await.map_err(|e| e.at(entry.name().into_owned()))?;
                    at += len;
                }
                bytes += size;
            }
            Ok(bytes)
        })
    }
}
