//! Figures that are sent to a collector by OTLP, every interval, while that is switched on.
//!
//! ```text
//!   task: each interval ──▶ pools, daemon, NBD, fronts, the API's own ──▶ metrics::document ──▶ metrics::Exporter
//!     ▲ the settings changed                                                  └ Series: since when it is counted
//! ```
//!
//! They are those of `GET /metrics`. What does not answer in time, as a suspended pool may not, is told the next time.

use super::records::{EXPORT, EXPORT_KEY, ExportRecord, check_export};
use crate::appliance::Appliance;
use ::analytics::Recorder;
use api::analytics::{Export, ExportChange, Told};
use api::{ApiError, ErrorKind, Nbd, Pool, Reply, Result};
use futures_util::future::select;
use metrics::{Facts, Moment, State};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use store::Look;

/// A pool that does not answer is no reason for all figures to wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// While it is off, nothing is waited for but a change.
const OFF: Duration = Duration::from_secs(3_600);

impl Appliance {
    /// Whom to ask what the API counts of itself.
    pub fn count_api(&self, counted: impl Fn() -> metrics::Api + Send + Sync + 'static) {
        self.0.exporting.count_api(Arc::new(counted));
    }

    /// Sends figures, as the settings say, until the recorder ends.
    pub(super) async fn export_figures(self, recorder: Recorder) {
        self.0.exporting.begin(now());
        loop {
            let exporting = &self.0.exporting;
            let seen = exporting.changes.with(|changes| *changes);
            let record = self.export_record().unwrap_or_else(|e| {
                tracing::error!("figures are not sent: {}", e.message);
                ExportRecord::default()
            });
            exporting.exporter.set(record.target());
            if record.enabled
                && let Some(document) = self.figures(&record).await
            {
                exporting.exporter.offer(document);
            }
            let wait = if record.enabled { Duration::from_secs(record.interval) } else { OFF };
            let changed = exporting.changes.until(|changes| (*changes != seen).then_some(()));
            select(pin!(world::timeout(wait, changed)), pin!(recorder.ended())).await;
            if recorder.has_ended() {
                exporting.exporter.set(None);
                return;
            }
        }
    }

    fn export_record(&self) -> Result<ExportRecord> {
        let kept = self.configuration().and_then(|c| c.look(|reader| reader.get(&EXPORT, EXPORT_KEY)));
        kept.map(Option::unwrap_or_default).map_err(|e| ApiError::cannot("read where figures are sent", &e))
    }

    pub(super) fn export(&self) -> Result<Reply> {
        let ExportRecord { enabled, endpoint, headers, interval, attributes } = self.export_record()?;
        let State { sent, failed, dropped, waiting, problem } = self.0.exporting.exporter.state();
        let has_headers = headers.is_some();
        Ok(Reply::Analytics(Told::Export(Export {
            enabled,
            endpoint,
            has_headers,
            interval,
            attributes,
            sent,
            failed,
            dropped,
            waiting,
            problem,
        })))
    }

    pub(super) fn set_export(&self, set: ExportChange) -> Result<Reply> {
        let changed = self.configuration().and_then(|configuration| {
            configuration.change(|writer| {
                let mut record = writer.get(&EXPORT, EXPORT_KEY)?.unwrap_or_default();
                record.change(set)?;
                check_export(&record)?;
                writer.put(&EXPORT, EXPORT_KEY, &record)
            })
        });
        changed.map_err(|e| ApiError::cannot("change where figures are sent", &e))?;
        self.follow_export();
        Ok(Reply::Done)
    }

    /// What is configured holds from now on.
    pub(crate) fn follow_export(&self) {
        self.0.exporting.changes.update(|changes| *changes += 1);
    }

    pub(super) async fn test_export(&self) -> Result<Reply> {
        let record = self.export_record()?;
        let failed = |why: &str| ApiError::new(ErrorKind::Io, format!("cannot send figures: {why}"));
        let Some(target) = record.target() else {
            let why = "cannot send figures: they are sent nowhere; set an endpoint, and enabled=true";
            return Err(ApiError::new(ErrorKind::Invalid, why));
        };
        // Set here too: the task may not have looked yet.
        self.0.exporting.exporter.set(Some(target));
        let document =
            self.figures(&record).await.ok_or_else(|| failed("the pools do not answer in time"))?;
        let outcome = self.0.exporting.exporter.try_now(document).await;
        outcome.map(|()| Reply::Done).map_err(|why| failed(&why))
    }

    /// A document of now. `None`: what is asked does not answer.
    async fn figures(&self, record: &ExportRecord) -> Option<String> {
        let (pools, nbd) = world::timeout(PATIENCE, self.facts()).await?;
        let fronts = self.0.histograms.told(self.hub());
        let daemon = self.describe();
        let own = self.0.exporting.of_api();
        let facts = Facts { pools: &pools, daemon: &daemon, nbd: &nbd, fronts: &fronts, own };
        let mut resource = vec![
            ("service.name".to_string(), "cenote".to_string()),
            ("service.version".into(), daemon.version.clone()),
            ("host.name".into(), self.0.host.name.clone()),
        ];
        for (name, value) in record.resource().unwrap_or_default() {
            resource.retain(|(own, _)| *own != name);
            resource.push((name, value));
        }
        Some(self.0.exporting.document(&metrics::families(&facts), &resource, now()))
    }

    async fn facts(&self) -> (Vec<Pool>, Nbd) {
        let pools = match self.describe_pools(&[]).await {
            Ok(Reply::Pools(pools)) => pools,
            _ => Vec::new(),
        };
        let nbd = match self.nbd_exports().await {
            Ok(Reply::Nbd(nbd)) => nbd,
            _ => Nbd::default(),
        };
        (pools, nbd)
    }
}

fn now() -> Moment {
    let wall = world::wall_clock();
    Moment { seconds: wall.seconds, nanos: wall.nanos }
}
