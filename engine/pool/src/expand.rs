//! Devices that have grown: `zpool online -e`, and by themselves with `autoexpand`.
//!
//! ```text
//!   every device of a top-level vdev has room for more metaslabs
//!     ─▶ txg N: its size, the labels at the new ends of its devices, configuration ─▶ N is on disk ─▶ new metaslabs
//! ```
//!
//! Nothing is put into the new metaslabs before the configuration that has them is on disk. After a crash before that the
//! vdev has its old size, and the labels at the front of its devices are found wherever these end.
//!
//! Not here: devices that shrank, which are refused when they are opened.

use crate::attach::no_such;
use crate::pool::Pool;
use std::sync::Arc;
use units::{Error, Guid, Result};
use vdev::Top;
use world::Boxed;

impl Pool {
    /// Lets the top-level vdev that a device is in have all that its devices have room for, and answers by how many bytes
    /// it grew: 0 while one of its devices is as large as before, or is not there. Waits for a txg.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a device that stands beside the tree.
    pub fn expand(&self, device: Guid) -> Boxed<'_, Result<u64>> {
        Box::pin(async move {
            if self.is_cache_device(device) {
                return Err(Error::invalid(
                    "a cache device is not expanded: remove it from the pool and add it again",
                ));
            }
            let pool = self.clone();
            world::spawn(async move {
                let _one_at_a_time = pool.0.reshaping.lock().await;
                let top = pool.tree().top_of(device).ok_or_else(no_such)?;
                pool.grow(&top).await
            })
            .await
        })
    }

    /// As [`Pool::expand`], of all top-level vdevs that could.
    pub(crate) async fn expand_all(&self) -> Result<()> {
        for top in self.tree().tops() {
            if top.expandable() > 0 {
                let _one_at_a_time = self.0.reshaping.lock().await;
                self.grow(&top).await?;
            }
        }
        Ok(())
    }

    /// By how many bytes the pool could grow.
    pub fn expandable(&self) -> u64 {
        self.tree().tops().iter().map(|top| top.expandable()).sum()
    }

    async fn grow(&self, top: &Arc<Top>) -> Result<u64> {
        let inner = &self.0;
        if top.expandable() == 0 {
            return Ok(0);
        }
        let (before, growing) = (top.asize(), top.clone());
        let asize = self
            .change("expand", move |pool, tx| async move {
                let asize = pool.tree().grow(&growing);
                pool.update_config(|_| ());
                pool.0.touch(&tx).await.map(|()| asize)
            })
            .await?;
        inner.space.grow_vdev(top.id, asize).await?;
        self.remember_freed();
        inner.space.preload().await;
        inner.publish_space();
        Ok(asize - before)
    }
}
