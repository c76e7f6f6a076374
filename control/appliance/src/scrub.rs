//! `zpool scrub`.

use crate::phrase::{About, cannot};
use crate::pools::Access;
use crate::service::{Appliance, By};
use api::{Reply, Result, ScrubAction};

impl Appliance {
    pub(crate) async fn scrub_pool(&self, name: &str, action: ScrubAction, by: &By) -> Result<Reply> {
        let open = self.pool(name, Access::Change).await?;
        let (done, word) = match action {
            ScrubAction::Start => (open.pool.scrub().await, "scrub"),
            ScrubAction::Stop => (open.pool.scrub_stop().await, "cancel scrubbing"),
            ScrubAction::Pause => (open.pool.scrub_pause().await, "pause scrubbing"),
        };
        let failed = |e: &units::Error| cannot(About::Pool, &format!("{word} {name}"), e);
        done.map_err(|e| failed(&e))?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}
