//! What is set wrong here: facts of all rooms, judged by the rules of [`::doctor`].
//!
//! ```text
//!   pools, cache, datasets, shares, volumes ──▶ facts ──▶ doctor::examine ──▶ advice: all of it, or of one dataset
//!                                                 └─────▶ as text: beside it the facts of a client are judged elsewhere
//! ```
//!
//! Nothing is measured for it: what is told was counted anyway, since the pool was opened or while clients came.

mod facts;
#[cfg(test)]
mod tests;

use crate::appliance::{Appliance, By};
use ::doctor::{Facts, examine};
use api::shares::Shares;
use api::{ApiError, DatasetKind, DatasetQuery, Doctor, ErrorKind, Reply, Result};

const KINDS: [DatasetKind; 2] = [DatasetKind::Filesystem, DatasetKind::Volume];

impl Appliance {
    pub(crate) async fn ask_doctor(&self, asked: Doctor, by: &By) -> Result<Reply> {
        Ok(match asked {
            Doctor::Advice => Reply::Advice(examine(&self.facts_of(None, by).await?)),
            Doctor::Dataset { name } => {
                let mut advice = examine(&self.facts_of(Some(&name), by).await?);
                advice.retain(|advice| advice.about == name);
                Reply::Advice(advice)
            }
            Doctor::Facts => Reply::Facts { text: self.facts_of(None, by).await?.render() },
        })
    }

    /// Of everything, or of one dataset and its pool.
    async fn facts_of(&self, dataset: Option<&str>, by: &By) -> Result<Facts> {
        let unexpected =
            || ApiError::new(ErrorKind::Unsupported, "a room of the appliance answered something else");
        let named = |name: &str| vec![name.to_string()];
        let pool = dataset.and_then(|name| name.split('/').next());
        let mut facts = Facts::default();
        let Reply::Pools(pools) = self.describe_pools(&pool.map(named).unwrap_or_default()).await? else {
            return Err(unexpected());
        };
        let cache = self.cache_state();
        let feed = facts::Feed::of(&self.0.tunables);
        pools.iter().for_each(|pool| facts::of_pool(&mut facts, pool, &cache, feed));
        if dataset.is_none() {
            let shares = Shares::Shares { pool: None, project: None, kind: None };
            let Reply::Items(items) = self.shares(shares, by).await? else { return Err(unexpected()) };
            facts::of_luns(&mut facts, &items);
        }
        let query = DatasetQuery {
            names: dataset.map(named).unwrap_or_default(),
            depth: dataset.map(|_| 0),
            kinds: KINDS.into(),
            properties: facts::PROPERTIES.map(String::from).into(),
        };
        let Reply::Datasets(datasets) = self.query_datasets(query).await? else { return Err(unexpected()) };
        for dataset in &datasets {
            facts::of_dataset(&mut facts, dataset);
            if let Some(counted) = self.0.volumes.counted(&dataset.name) {
                facts::of_requests(&mut facts, &dataset.name, &counted);
            }
            if let Some(mount) = self.0.mounts.get(&dataset.name) {
                facts::of_files(&mut facts, &dataset.name, &mount.counted());
            }
        }
        Ok(facts)
    }
}
