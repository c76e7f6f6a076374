//! Deferred updates: features that pools could have, listed, and enabled when that is asked for.
//!
//! A feature that is enabled cannot be taken back, and a program that does not know it may not open the pool any more: so
//! nothing here happens by itself. Offered is what this program reads and writes, and what the pool's `compatibility`
//! property allows.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use crate::pools::features;
use api::{DeferredUpdate, Reply, Result};
use dsl::props::Value;
use ondisk::Feature;
use ondisk::feature::Support;
use pool::Pool;
use std::collections::BTreeSet;
use units::{Error, Kind};

impl Appliance {
    pub(crate) async fn deferred_updates(&self, pools: &[String]) -> Result<Reply> {
        let mut updates = Vec::new();
        for name in self.names_or_all(pools).await {
            let open = match self.pool(&name, Access::Look).await {
                Err(_) if pools.is_empty() => continue,
                open => open?,
            };
            let deferred = deferred(&open.pool).await?;
            updates.extend(deferred.into_iter().map(|feature| describe(&name, feature)));
        }
        Ok(Reply::DeferredUpdates(updates))
    }

    pub(crate) async fn apply_updates(&self, pool: &str, features: &[String], by: &By) -> Result<Reply> {
        let failed = |e: Error| cannot(About::Pool, &format!("apply updates to '{pool}'"), &e);
        let open = self.pool(pool, Access::Change).await?;
        let deferred = deferred(&open.pool).await?;
        let missing = |name: &String| {
            let why = format!("'{name}' is not among its deferred updates");
            failed(Error::new(Kind::NotFound, "find update").because(why))
        };
        let chosen: Vec<Feature> = match features.is_empty() {
            true => deferred,
            false => features
                .iter()
                .map(|name| deferred.iter().copied().find(|f| f.name() == name).ok_or_else(|| missing(name)))
                .collect::<Result<_>>()?,
        };
        for feature in &chosen {
            let property = format!("feature@{}", feature.name());
            open.pool.set_property(&property, "enabled").await.map_err(failed)?;
        }
        self.record(&open.pool, by).await.map_err(failed)?;
        Ok(Reply::DeferredUpdates(chosen.into_iter().map(|feature| describe(pool, feature)).collect()))
    }
}

fn describe(pool: &str, feature: Feature) -> DeferredUpdate {
    let info = feature.info();
    DeferredUpdate {
        pool: pool.into(),
        feature: info.name.into(),
        description: info.description.into(),
        needs: info.dependencies.iter().map(|f| f.name().into()).collect(),
        read_only_compatible: info.read_only_compatible,
    }
}

async fn deferred(pool: &Pool) -> Result<Vec<Feature>> {
    let _reading = pool.reading().await;
    let failed = |e: &Error| cannot(About::Pool, &format!("list updates of '{}'", pool.name()), e);
    let properties = pool.properties().await.map_err(|e| failed(&e))?;
    let compatibility = properties.iter().find(|p| p.name == "compatibility").and_then(|p| match &p.value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    });
    let allowed: BTreeSet<Feature> =
        features::choose(Some(compatibility.as_deref().unwrap_or("off")), false, &[], |path| {
            std::fs::read_to_string(path)
        })?
        .into_iter()
        .collect();
    let has = pool.dsl().features();
    let offered = |f: &Feature| {
        let info = f.info();
        info.support == Support::ReadWrite && !info.no_upgrade && allowed.contains(f) && !has.is_enabled(*f)
    };
    Ok(Feature::all().filter(offered).collect())
}
