//! `zpool clear`, and what is said of a pool that is suspended or fails.

use crate::phrase::{About, cannot};
use crate::pools::Access;
use crate::service::{Appliance, By};
use crate::vdevs;
use api::{Reply, Result};
use pool::Pool;
use units::{Error, Kind};

impl Appliance {
    /// A pool that could not be opened is tried again by this.
    pub(crate) async fn clear_pool(&self, name: &str, device: Option<&str>, by: &By) -> Result<Reply> {
        let failed =
            |e: &Error| cannot(About::Pool, &format!("clear errors for '{}'", device.unwrap_or(name)), e);
        let open = self.pool(name, Access::Change).await?;
        let missing = || Error::new(Kind::NotFound, "find vdev").because("no such device in pool");
        let guid = match device {
            Some(device) => {
                let found = vdevs::find(&open.pool.tree().spec(), device).map(|spec| spec.guid);
                Some(found.ok_or_else(missing).map_err(|e| failed(&e))?)
            }
            None => None,
        };
        open.pool.guard(open.pool.clear(guid)).await.map_err(|e| failed(&e))?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }

    /// Requests do not wait for suspended pools any more, for the appliance is about to end: they fail, so that clients
    /// can be answered before they are left.
    pub async fn hurry(&self) {
        self.0.pools.lock().await.opened().for_each(Pool::hurry);
    }
}

/// Writes into the log when a pool is suspended, fails or goes on, until it is closed.
pub(crate) fn watch(pool: &Pool) {
    let pool = pool.clone();
    world::spawn(async move {
        let mut seen = None;
        while let Some(now) = pool.suspended_otherwise(&seen).await {
            let name = pool.name();
            // One that is cleared goes on when its devices have taken what waited for them, and not before.
            if now.is_none() && pool.settled().await.is_err() {
                continue;
            }
            match &now {
                Some(why) => tracing::error!(pool = name, "nothing is written any more: {why}"),
                None => tracing::warn!(pool = name, "the pool goes on"),
            }
            seen = now;
        }
    });
}
