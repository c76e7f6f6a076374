//! What a mount asks of its dataset besides its files.

use fuse::{Dataset, Space};
use pool::{Hub, Pool};
use probe::{Family, Probe};
use std::sync::Arc;
use units::{Kind, Result};
use world::{Domain, Pending};
use zpl::{FileSystem, Time};

pub(super) struct Facts {
    pub pool: Pool,
    pub dataset: String,
    pub record_size: u32,
    pub hub: Hub,
}

impl Dataset for Facts {
    fn probe(&self, family: Family) -> Probe {
        self.hub.probe(family, &probe::labels_of(&self.dataset, false))
    }

    fn space(&self) -> Pending<Result<Space>> {
        let (pool, dataset, record_size) = (self.pool.clone(), self.dataset.clone(), self.record_size);
        Box::pin(async move {
            let _reading = pool.reading().await;
            let found = pool.dsl().find(&dataset).await?;
            let available = pool.dsl().available(found.dir_id, &found.phys).await?;
            let files = pool.look_at_file_system(&dataset).await?.object_set().objects();
            Ok(Space { used: found.phys.referenced, available, files, record_size })
        })
    }

    fn snapshots(&self) -> Pending<Result<Vec<(String, u64)>>> {
        let (pool, dataset) = (self.pool.clone(), self.dataset.clone());
        Box::pin(async move {
            let _reading = pool.reading().await;
            let all = pool.dsl().snapshots(&dataset).await?;
            let own = |name: String| name.split_once('@').map(|(_, own)| own.to_string()).unwrap_or(name);
            Ok(all.into_iter().map(|(name, id)| (own(name), id.0)).collect())
        })
    }

    fn snapshots_changed(&self) -> Pending<Result<Option<Time>>> {
        let (pool, dataset) = (self.pool.clone(), self.dataset.clone());
        Box::pin(async move {
            let _reading = pool.reading().await;
            let found = pool.dsl().find(&dataset).await?;
            let changed = pool.dsl().snapshots_changed(found.dir_id).await?;
            Ok(changed.map(|(seconds, nanos)| Time { seconds: seconds as i64, nanos }))
        })
    }

    fn snapshot(&self, name: &str) -> Pending<Result<Option<u64>>> {
        let (pool, name) = (self.pool.clone(), format!("{}@{name}", self.dataset));
        Box::pin(async move {
            let _reading = pool.reading().await;
            match pool.dsl().find(&name).await {
                Ok(found) => Ok(Some(found.id.0)),
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Invalid) => Ok(None),
                Err(e) => Err(e),
            }
        })
    }

    fn open_snapshot(&self, name: &str) -> Pending<Result<FileSystem>> {
        let (pool, name) = (self.pool.clone(), format!("{}@{name}", self.dataset));
        Box::pin(async move { pool.open_file_system(&name).await })
    }

    fn domain(&self) -> Option<Arc<dyn Domain>> {
        Some(self.pool.domain())
    }
}
