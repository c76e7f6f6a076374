//! `zpool scrub`, `resilver`, `prefetch` and `reopen`.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::{ApiError, ErrorKind, Reply, Result, ScrubAction};
use ondisk::Feature;
use ondisk::dsl::{ScanFunc, ScanState};
use pool::Pool;

impl Appliance {
    pub(crate) async fn scrub_pool(&self, name: &str, action: ScrubAction, by: &By) -> Result<Reply> {
        let open = self.pool(name, Access::Change).await?;
        let word = match action {
            ScrubAction::Start => "scrub",
            ScrubAction::Stop => "cancel scrubbing",
            ScrubAction::Pause => "pause scrubbing",
        };
        if let Some(why) = objection(&open.pool, action) {
            return Err(ApiError::new(ErrorKind::Busy, format!("cannot {word} {name}: {why}")));
        }
        let done = match action {
            ScrubAction::Start => open.pool.scrub().await,
            ScrubAction::Stop => open.pool.scrub_stop().await,
            ScrubAction::Pause => open.pool.scrub_pause().await,
        };
        let failed = |e: &units::Error| cannot(About::Pool, &format!("{word} {name}"), e);
        done.map_err(|e| failed(&e))?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }

    pub(crate) async fn resilver_pool(&self, name: &str, by: &By) -> Result<Reply> {
        let open = self.pool(name, Access::Change).await?;
        let failed = |e: &units::Error| cannot(About::Pool, &format!("resilver {name}"), e);
        if !open.pool.dsl().features().is_enabled(Feature::ResilverDefer) {
            let hint = format!("it needs a feature: zpool set feature@resilver_defer=enabled {name}");
            return Err(failed(&units::Error::invalid(hint)));
        }
        open.pool.resilver().await.map_err(|e| failed(&e))?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }

    pub(crate) async fn prefetch_pool(&self, name: &str) -> Result<Reply> {
        let open = self.pool(name, Access::Look).await?;
        let read = open.pool.prefetch_dedup_tables().await;
        read.map(Reply::Count).map_err(|e| cannot(About::Pool, &format!("prefetch '{name}'"), &e))
    }

    pub(crate) async fn reopen_pool(&self, name: &str, by: &By) -> Result<Reply> {
        let open = self.pool(name, Access::Change).await?;
        let failed = |e: &units::Error| cannot(About::Pool, &format!("reopen '{name}'"), e);
        open.pool.reopen().await.map_err(|e| failed(&e))?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}

/// What stands in the way, as OpenZFS words it.
fn objection(pool: &Pool, action: ScrubAction) -> Option<&'static str> {
    let scan = pool.scan_status().filter(|scan| scan.state == ScanState::Scanning);
    match (scan.as_ref().map(|s| s.func), action) {
        (Some(ScanFunc::Resilver), ScrubAction::Start) => Some("currently resilvering"),
        (Some(ScanFunc::Scrub), ScrubAction::Start) if scan.is_some_and(|s| s.paused.is_none()) => {
            Some("currently scrubbing; use 'zpool scrub -s' to cancel scrub")
        }
        (Some(ScanFunc::Scrub), _) | (_, ScrubAction::Start) => None,
        _ => Some("there is no active scrub"),
    }
}
