//! The intent logs of datasets that are written to.
//!
//! ```text
//!   open_volume ─▶ intent_log_of(dataset)             one log per dataset, however often it is opened
//!   sync(txg)   ─▶ logs: blocks freed, headers moved ─▶ datasets written ─▶ uberblock ─▶ records dropped
//!   destroy     ─▶ the whole log is freed in the same txg
//!   export, close ─▶ closed, then freed: nothing is left for the next opener of the pool
//! ```
//!
//! What a crash leaves is the business of `logs`.

mod state;

pub(crate) use state::IntentLogs;

use crate::pool::{Pool, lock};
use dmu::Tx;
use dsl::Dataset;
use probe::{Breakdown, Family};
use std::sync::Arc;
use units::Txg;
use zil::{Log, Parts};

/// Pools older than this know another form of log blocks: there a flush forces a txg.
const VERSION_SLIM: u64 = 26;

impl Pool {
    /// The log of a head dataset in which nothing waits to be replayed; `None` where the pool is too old for it.
    pub(crate) fn intent_log_of(&self, dataset: &Dataset) -> Option<Log> {
        let inner = &self.0;
        if lock(&inner.uberblock).version < VERSION_SLIM {
            return None;
        }
        let open = || {
            Log::open(Parts {
                objset: dataset.objset().clone(),
                txgs: inner.txgs.clone(),
                store: Arc::new(inner.pipeline.clone()),
                tunables: inner.tunables.clone(),
                probe: inner.hub.probe(Family::Zil, &[(Breakdown::Pool, &self.name())]),
            })
        };
        Some(lock(&inner.intent_logs.open).entry(dataset.id()).or_insert_with(open).clone())
    }

    /// The logs that are open, by the datasets they belong to.
    pub fn intent_logs(&self) -> Vec<Log> {
        self.0.intent_logs.all()
    }

    /// In the first pass of a txg, before its datasets are written.
    pub(crate) async fn sync_logs(&self, tx: &Tx) {
        for log in self.0.intent_logs.all() {
            log.sync(tx).await;
        }
    }

    /// The txg is on disk.
    pub(crate) fn logs_synced(&self, txg: Txg) {
        self.0.intent_logs.all().iter().for_each(|log| log.synced(txg));
    }

    /// Closes all logs, so that the next txg frees them.
    pub(crate) async fn retire_logs(&self) {
        let logs = self.0.intent_logs.all();
        for log in &logs {
            log.close().await;
        }
        if !logs.is_empty() {
            let tx = self.0.txgs.begin_unthrottled();
            logs.iter().for_each(|log| log.destroy(&tx));
        }
    }
}
