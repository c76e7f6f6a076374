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
            ScrubAction::Start | ScrubAction::Errors => "scrub",
            ScrubAction::Stop => "cancel scrubbing",
            ScrubAction::Pause => "pause scrubbing",
        };
        if let Some(why) = objection(&open.pool, action) {
            return Err(ApiError::new(ErrorKind::Busy, format!("cannot {word} {name}: {why}")));
        }
        let failed = |e: &units::Error| cannot(About::Pool, &format!("{word} {name}"), e);
        if action == ScrubAction::Errors && !open.pool.dsl().features().is_enabled(Feature::HeadErrlog) {
            let why = format!(
                "operation not supported on this type of pool; it needs a feature: \
                 zpool set feature@head_errlog=enabled {name}"
            );
            return Err(failed(&units::Error::invalid(why)));
        }
        let done = match action {
            ScrubAction::Errors => open.pool.error_scrub().await,
            ScrubAction::Start => open.pool.scrub().await,
            ScrubAction::Stop => open.pool.scrub_stop().await,
            ScrubAction::Pause => open.pool.scrub_pause().await,
        };
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
    let errors = pool.error_scrub_status().filter(|scrub| scrub.state == ScanState::ErrorScrubbing);
    let under_way = match (&scan, &errors) {
        (Some(scan), _) if scan.func == ScanFunc::Resilver => UnderWay::Resilver,
        (Some(scan), _) if scan.paused.is_some() => UnderWay::PausedScrub,
        (Some(_), _) => UnderWay::Scrub,
        (None, Some(scrub)) if scrub.paused.is_some() => UnderWay::PausedErrorScrub,
        (None, Some(_)) => UnderWay::ErrorScrub,
        (None, None) => UnderWay::Nothing,
    };
    use ScrubAction::{Errors, Pause, Start, Stop};
    match (under_way, action) {
        (UnderWay::Resilver, Start | Errors) => Some("currently resilvering"),
        (UnderWay::Scrub, Start | Errors) => {
            Some("currently scrubbing; use 'zpool scrub -s' to cancel scrub")
        }
        (UnderWay::PausedScrub, Errors) => {
            Some("scrub is paused; use 'zpool scrub' to resume or 'zpool scrub -s' to cancel scrub")
        }
        (UnderWay::PausedScrub, Pause) => Some("scrub is paused; use 'zpool scrub' to resume scrub"),
        (UnderWay::ErrorScrub, Start | Errors) => {
            Some("currently error scrubbing; use 'zpool scrub -s' to cancel error scrub")
        }
        (UnderWay::PausedErrorScrub, Start | Pause) => {
            Some("error scrub is paused; use 'zpool scrub -e' to resume error scrub")
        }
        (UnderWay::Nothing | UnderWay::Resilver, Stop | Pause) => Some("there is no active scrub"),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum UnderWay {
    Nothing,
    Scrub,
    PausedScrub,
    ErrorScrub,
    PausedErrorScrub,
    Resilver,
}
