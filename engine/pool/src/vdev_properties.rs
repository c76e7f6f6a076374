//! Properties of single vdevs: names with a colon, in the vdev's own ZAP, where OpenZFS keeps them too.
//!
//! ```text
//!   group     top_zap  ─ cenote:nocacheflush = on     holds for the devices below it ...
//!   device    leaf_zap ─ cenote:nocacheflush = off    ... unless one says otherwise
//! ```
//!
//! A device that is a top-level vdev by itself has both ZAPs; properties are in the first, as in OpenZFS.
//!
//! One of the properties means something here: whether the device's cache survives a power cut. The others are only kept.

use crate::pool::{Pool, VdevProperties, lock};
use dsl::props::user;
use dsl::zaps;
use std::collections::BTreeMap;
use units::{Error, Guid, Kind, ObjectId, Result};
use vdev::Spec;

/// `on`: the device's cache is protected, it need not be flushed.
pub const NO_CACHE_FLUSH: &str = "cenote:nocacheflush";

impl Pool {
    pub fn vdev_properties(&self) -> VdevProperties {
        lock(&self.0.vdev_properties).clone()
    }

    /// Sets a property of a vdev, or, without a value, removes it.
    pub async fn set_vdev_property(&self, vdev: Guid, name: &str, value: &str) -> Result<()> {
        check(name, value)?;
        let spec = self.tree().spec();
        let missing = || Error::new(Kind::NotFound, format!("find vdev {vdev}"));
        let zap = zap_of(spec.find(vdev).ok_or_else(missing)?);
        let zap =
            zap.ok_or_else(|| Error::unsupported("the pool was made without room for properties of vdevs"))?;
        let (name, value) = (name.to_string(), value.to_string());
        let (stored_name, stored) = (name.clone(), value.clone());
        self.change("set vdev property", move |pool, tx| async move {
            let table = zaps::open(pool.mos(), zap).await?;
            if stored.is_empty() {
                return zaps::remove_if_any(&table, &tx, &stored_name).await;
            }
            table.update(&tx, stored_name.as_str(), zap::Value::text(&stored)).await
        })
        .await?;
        {
            let mut all = lock(&self.0.vdev_properties);
            let own = all.entry(vdev).or_default();
            if value.is_empty() {
                drop(own.remove(&name))
            } else {
                drop(own.insert(name, value))
            }
            all.retain(|_, own| !own.is_empty());
        }
        // Only now: the txg that says so was still flushed.
        self.trust_caches();
        Ok(())
    }

    pub(crate) async fn load_vdev_properties(&self) -> Result<()> {
        let mut all = VdevProperties::new();
        let root = self.tree().spec();
        let mut todo: Vec<&Spec> = root.children.iter().collect();
        while let Some(vdev) = todo.pop() {
            todo.extend(&vdev.children);
            let Some(zap) = zap_of(vdev) else { continue };
            let entries = zaps::open(self.mos(), zap).await?.entries().await?;
            let own = entries.iter().filter(|e| is_property(&e.name()));
            let own: BTreeMap<String, String> =
                own.filter_map(|e| Some((e.name().into_owned(), e.value.as_text()?.to_string()))).collect();
            if !own.is_empty() {
                all.insert(vdev.guid, own);
            }
        }
        *lock(&self.0.vdev_properties) = all;
        self.trust_caches();
        Ok(())
    }

    /// Tells every device what was said of its cache.
    pub(crate) fn trust_caches(&self) {
        let all = self.vdev_properties();
        let leaves: BTreeMap<Guid, _> = self.tree().leaves().into_iter().map(|l| (l.guid(), l)).collect();
        let root = self.tree().spec();
        let mut todo: Vec<(&Spec, bool)> = root.children.iter().map(|top| (top, false)).collect();
        while let Some((vdev, inherited)) = todo.pop() {
            let said = all.get(&vdev.guid).and_then(|own| own.get(NO_CACHE_FLUSH));
            let is_safe = said.map_or(inherited, |word| word == "on");
            if let Some(leaf) = leaves.get(&vdev.guid) {
                leaf.set_cache_is_safe(is_safe);
            }
            todo.extend(vdev.children.iter().map(|child| (child, is_safe)));
        }
    }
}

fn zap_of(vdev: &Spec) -> Option<ObjectId> {
    [vdev.top_zap, vdev.leaf_zap].into_iter().flatten().find_map(|id| ObjectId(id).some())
}

/// What OpenZFS keeps there for itself has names of the same form.
fn is_property(name: &str) -> bool {
    let is_own = ["org.zfsonlinux:", "com.delphix:", "org.openzfs:"].iter().any(|p| name.starts_with(p));
    user::is_user_property(name) && !is_own
}

fn check(name: &str, value: &str) -> Result<()> {
    if !is_property(name) {
        return Err(Error::invalid(format!("'{name}' is no property of a vdev that can be set")));
    }
    user::check_name(name)?;
    user::check_value(name, value)?;
    if name == NO_CACHE_FLUSH && !["on", "off", ""].contains(&value) {
        return Err(Error::invalid(format!("'{name}' must be one of 'on | off'")));
    }
    Ok(())
}
