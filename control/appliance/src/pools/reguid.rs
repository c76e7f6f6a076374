//! `zpool reguid`.
//!
//! The new guid is remembered before it is on disk: a crash in between leaves a pool that is found by the one or the other.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::{Reply, Result};
use units::{Error, Guid};

impl Appliance {
    pub(crate) async fn reguid_pool(&self, name: &str, guid: Option<u64>, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Pool, &format!("reguid '{name}'"), e);
        let _turn = self.0.turns.of(name).await;
        let open = self.pool(name, Access::Change).await?;
        let guid = guid.map_or_else(|| open.pool.draw_guid(), Guid);
        {
            let mut pools = self.0.pools.lock().await;
            if pools.has_guid(guid.0) {
                return Err(failed(&Error::invalid(format!("an imported pool has the guid {guid}"))));
            }
            pools.expect_guid(name, Some(guid.0));
            self.remember(&pools)?;
        }
        let done = open.pool.reguid(guid).await;
        {
            let mut pools = self.0.pools.lock().await;
            pools.note_guid(name);
            self.remember(&pools)?;
        }
        done.map_err(|e| failed(&e))?;
        self.post_pool_event("pool_reguid", &open.pool);
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}
