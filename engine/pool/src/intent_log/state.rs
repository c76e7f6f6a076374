//! The logs that are open, and what becomes of one whose dataset is destroyed.

use crate::lock::lock;
use dmu::Tx;
use dsl::LogKeeper;
use ondisk::ZilHeader;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{ObjectId, ObjsetId, Result, Txg};
use world::Pending;
use zil::Log;
use zio::{BlockStore, Pipeline};

/// See the module above.
pub(crate) struct IntentLogs {
    pub(super) pipeline: Pipeline,
    /// By dataset.
    pub(super) open: Mutex<BTreeMap<ObjectId, Log>>,
}

impl IntentLogs {
    pub fn new(pipeline: Pipeline) -> Arc<IntentLogs> {
        Arc::new(IntentLogs { pipeline, open: Mutex::default() })
    }

    pub(super) fn all(&self) -> Vec<Log> {
        lock(&self.open).values().cloned().collect()
    }
}

impl LogKeeper for IntentLogs {
    fn destroy_log(&self, dataset: ObjectId, header: ZilHeader, txg: Txg) -> Pending<Result<()>> {
        let (pipeline, log) = (self.pipeline.clone(), lock(&self.open).remove(&dataset));
        Box::pin(async move {
            match log {
                Some(log) => log.destroy_with_dataset(&Tx::syncing(txg)).await,
                // It was not written to: it is empty, or was claimed and waits to be replayed.
                None => {
                    let blocks = zil::replay::blocks(&pipeline, ObjsetId(dataset.0), &header).await;
                    blocks.iter().for_each(|bp| pipeline.free(bp, txg));
                }
            }
            Ok(())
        })
    }
}
