//! The LUNs of all pools.

use super::LunFacts;
use crate::appliance::Appliance;
use crate::pools::Access;
use std::sync::Arc;

impl Appliance {
    /// Every LUN of every pool that is open or can be, in the order of names. Where two claim one identifier, the first
    /// has it.
    pub(crate) async fn luns(&self) -> api::Result<Vec<Arc<LunFacts>>> {
        let names = self.0.pools.lock().await.names();
        let mut luns: Vec<Arc<LunFacts>> = Vec::new();
        for name in names {
            let Ok(open) = self.pool(&name, Access::Look).await else { continue };
            let found = open.luns.luns(&open.pool).await;
            luns.extend(found.map_err(|e| api::ApiError::cannot(format!("list the LUNs of '{name}'"), &e))?);
        }
        let mut known = std::collections::BTreeSet::new();
        luns.retain(|lun| known.insert(lun.guid));
        Ok(luns)
    }
}
