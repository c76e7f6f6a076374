//! `zpool set`.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::pools::Access;
use crate::pools::features;
use crate::pools::vdevs;
use api::{ApiError, Reply, Result};
use dsl::pool_props::PoolProp;
use ondisk::Feature;
use ondisk::feature::Support;
use units::{Error, Kind};

impl Appliance {
    pub(crate) async fn set_pool(&self, name: &str, property: &str, value: &str, by: &By) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Pool, &format!("set property for '{name}'"), e);
        check(property, value).map_err(|e| failed(&e))?;
        let open = self.pool(name, Access::Change).await?;
        open.pool.set_property(property, value).await.map_err(|e| failed(&e))?;
        // Whether the next start opens it is the home's matter, not the pool's.
        if PoolProp::by_name(property) == Some(PoolProp::CacheFile) {
            let mut pools = self.0.pools.lock().await;
            pools.set_passing(name, value == "none");
            self.remember(&pools)?;
        }
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}

impl Appliance {
    pub(crate) async fn set_vdev(
        &self,
        name: &str,
        vdev: &str,
        property: &str,
        value: &str,
        by: &By,
    ) -> Result<Reply> {
        let failed = |e: &Error| cannot(About::Pool, &format!("set property for '{vdev}' in '{name}'"), e);
        let open = self.pool(name, Access::Change).await?;
        let missing = || Error::new(Kind::NotFound, "find vdev").because("no such device in pool");
        let guid = vdevs::find(&open.pool.tree().spec(), vdev).map(|spec| spec.guid);
        let guid = guid.ok_or_else(missing).map_err(|e| failed(&e))?;
        open.pool.set_vdev_property(guid, property, value).await.map_err(|e| failed(&e))?;
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        Ok(Reply::Done)
    }
}

/// What the pool takes on trust.
fn check(property: &str, value: &str) -> units::Result<()> {
    let missing =
        |what: &str| Err(Error::unsupported(format!("{what} is not part of this version of Cenote yet")));
    if let Some(feature) = property.strip_prefix("feature@").and_then(Feature::by_name)
        && feature.info().support != Support::ReadWrite
    {
        return missing(&format!("the feature '{}'", feature.name()));
    }
    match PoolProp::by_name(property) {
        Some(PoolProp::Compatibility) => {
            let known = features::choose(Some(value), false, &[], |path| std::fs::read_to_string(path));
            known.map(drop).map_err(|ApiError { message, .. }| Error::invalid(message))
        }
        _ => Ok(()),
    }
}
