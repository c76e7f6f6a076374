//! The LUNs of all pools, and which of them are served.

use super::LunFacts;
use super::claims::{Luns, Standing, pool_of};
use crate::appliance::Appliance;
use crate::home::LeftOut;
use crate::pools::Access;
use crate::san::Network;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Appliance {
    /// Every LUN of every pool that is open or can be, in the order of names, also those that are not served because another
    /// has their identifier or number.
    pub(crate) async fn luns(&self) -> api::Result<Vec<Arc<LunFacts>>> {
        Ok(self.luns_of_readable().await?.0)
    }

    /// With the pools that they are of.
    async fn luns_of_readable(&self) -> api::Result<(Vec<Arc<LunFacts>>, BTreeSet<String>)> {
        let names = self.0.pools.lock().await.names();
        let (mut luns, mut read): (Vec<Arc<LunFacts>>, _) = (Vec::new(), BTreeSet::new());
        for name in names {
            let Ok(open) = self.pool(&name, Access::Look).await else { continue };
            let found = open.luns.luns(&open.pool).await;
            luns.extend(found.map_err(|e| api::ApiError::cannot(format!("list the LUNs of '{name}'"), &e))?);
            read.insert(name);
        }
        Ok((luns, read))
    }

    /// The LUNs, and which of them are served: see [`super::claims`]. A daemon writes down with its pools which are not, and
    /// says so once.
    pub(crate) async fn luns_by_claims(&self, network: &Network) -> api::Result<Luns> {
        // What was read first is decided about first.
        let mut claims = self.0.claims.lock().await;
        let (luns, read) = self.luns_of_readable().await?;
        let mut pools = self.0.pools.lock().await;
        let standing: BTreeMap<String, Standing> = pools
            .known()
            .into_iter()
            .map(|known| {
                let is_read = read.contains(&known.name);
                let (order, was_away, left_out) = (known.order, known.away, known.left_out);
                (known.name, Standing { order, is_read, was_away, left_out })
            })
            .collect();
        let decided = claims.decide(network, &luns, &standing);
        claims.keep(network, &decided);
        if !self.0.config.is_daemon {
            return Ok(decided);
        }
        let mut by_pool: BTreeMap<&str, BTreeMap<String, LeftOut>> = BTreeMap::new();
        for (lun, why) in &decided.left_out {
            by_pool.entry(pool_of(&lun.dataset)).or_default().insert(lun.dataset.clone(), why.clone());
        }
        let mut is_news = false;
        for (name, standing) in &standing {
            is_news |= match standing.is_read {
                true => {
                    let left_out = by_pool.remove(name.as_str()).unwrap_or_default();
                    pools.note_luns(name, false, left_out)
                }
                // One that is leaving is not asked any more, and what it has is still its own.
                false if pools.is_leaving(name) => false,
                false => pools.note_luns(name, true, standing.left_out.clone()),
            };
        }
        if is_news && let Err(e) = self.remember(&pools) {
            tracing::warn!("{e}");
        }
        drop(pools);
        claims.told.retain(|dataset, _| decided.why_not(dataset).is_some());
        for (lun, why) in &decided.left_out {
            if claims.told.get(&lun.dataset) != Some(why) {
                claims.told.insert(lun.dataset.clone(), why.clone());
                self.tell_left_out(&lun.dataset, why);
            }
        }
        Ok(decided)
    }

    fn tell_left_out(&self, dataset: &str, why: &LeftOut) {
        tracing::warn!("the LUN '{dataset}' is not served: {why}");
        let fields = [
            ("pool", pool_of(dataset).to_string()),
            ("lun", dataset.to_string()),
            ("holder", why.holder.clone()),
            ("why", why.to_string()),
        ];
        let fields = fields.map(|(name, value)| (name.to_string(), value)).into();
        self.0.events.post("sysevent.cenote.lun_left_out", fields);
    }

    /// Why the LUNs of a pool that are not served are not, by their names. What was decided last: it waits for no pool.
    pub(crate) async fn left_out_of(&self, pool: &str) -> BTreeMap<String, LeftOut> {
        self.known(pool).await.map(|(known, _)| known.left_out).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
