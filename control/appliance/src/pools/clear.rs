//! `zpool clear`, and what is said of a pool that is suspended or fails.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use crate::pools::vdevs;
use api::{Reply, Result};
use pool::Pool;
use units::{Error, Kind};
use vdev::AuxKind;

impl Appliance {
    /// A pool that could not be opened is tried again by this.
    pub(crate) async fn clear_pool(&self, name: &str, device: Option<&str>, by: &By) -> Result<Reply> {
        let failed =
            |e: &Error| cannot(About::Pool, &format!("clear errors for {}", device.unwrap_or(name)), e);
        let was_open = self.0.pools.lock().await.opened().any(|pool| pool.name() == name);
        let open = self.pool(name, Access::Change).await?;
        let missing = || Error::new(Kind::NotFound, "find vdev").because("no such device in pool");
        let guid = match device {
            Some(device) => {
                let tree = open.pool.tree();
                let found = vdevs::find(&tree.spec(), device).map(|spec| spec.guid);
                let found = found.or_else(|| vdevs::find_beside(tree, AuxKind::Cache, device));
                Some(found.ok_or_else(missing).map_err(|e| failed(&e))?)
            }
            None => None,
        };
        if let Err(e) = open.pool.guard(open.pool.clear(guid)).await {
            // It has been opened with what is there, and was not before.
            let is_open = !was_open && guid.is_none() && open.pool.suspended().is_none();
            if !is_open || e.kind() != Kind::Io {
                return Err(failed(&e));
            }
        }
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }

    /// Requests do not wait for suspended pools any more, for the appliance is about to end: they fail, so that clients
    /// can be answered before they are left.
    pub async fn hurry(&self) {
        self.0.pools.lock().await.opened().for_each(Pool::hurry);
    }
}
