//! What the import of a pool does with blocks that no txg knows of: those of the intent log, and those of data that
//! the log points to. They were written after the last txg, and their space is still free in the space maps.
//!
//! They are read past the cache: before they are claimed, their place may have been known under another block's name.

use crate::gang::MAX_DEPTH;
use crate::inner::Inner;
use crate::pipeline::Pipeline;
use crate::read::{self, Verified};
use crate::store::Bookmark;
use ondisk::{BlockPointer, Plain};
use std::pin::Pin;
use std::sync::Arc;
use units::{Error, Kind, Result, Txg};
use vdev::{Care, Priority};

impl Pipeline {
    /// Reads a block of a log, or one that a log points to, as it is on disk. With `must_be_there` false it may never have
    /// been written: then nothing is repaired and no device is blamed.
    ///
    /// # Errors
    /// `Checksum` when what is there is not the block; another kind when a device could not be asked.
    pub async fn read_log(&self, bp: &BlockPointer, at: Bookmark, must_be_there: bool) -> Result<Verified> {
        let care = match must_be_there {
            true => Care::usual(Priority::SyncRead),
            false => Care::hopeful(Priority::SyncRead),
        };
        let missing = bp.as_plain().and_then(|plain| self.0.missing(plain));
        read::read_raw_with(&self.0, bp, at, &care).await.map_err(|e| missing.unwrap_or(e))
    }

    /// Takes the space of a block that was written after the last txg, in `txg`, the first since.
    pub async fn claim(&self, bp: &BlockPointer, txg: Txg) -> Result<()> {
        match bp.as_plain() {
            Some(plain) => self.0.claim_at(plain, txg, 0).await,
            None => Ok(()),
        }
    }
}

impl Inner {
    /// The error when every copy of a block is on a vdev that is not there.
    fn missing(&self, plain: &Plain) -> Option<Error> {
        let mut lost = None;
        for dva in plain.copies() {
            let top = self.devices.top(dva.vdev)?;
            if top.is_usable() {
                return None;
            }
            let phrase = top.health().aux.phrase();
            lost = Some(Error::new(Kind::Io, "read block").at(format!("vdev {}", dva.vdev)).because(phrase));
        }
        lost
    }

    fn claim_at<'a>(
        self: &'a Arc<Inner>,
        plain: &'a Plain,
        txg: Txg,
        depth: usize,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(async move {
            if depth >= MAX_DEPTH {
                return Err(Error::corrupt("gang headers nest too deep"));
            }
            if plain.is_gang() {
                let header = self.header_of_gang(plain).await?;
                for part in header.pointers.iter().filter_map(BlockPointer::as_plain) {
                    self.claim_at(part, txg, depth + 1).await?;
                }
            }
            for dva in plain.copies() {
                // Of a gang, the allocator takes the DVA to mean its header.
                self.space()?.claim(dva, txg).await?;
            }
            Ok(())
        })
    }
}
