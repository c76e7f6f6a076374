//! Properties of single vdevs: names with a colon, in the vdev's own ZAP, where OpenZFS keeps them too.
//!
//! ```text
//!   group     top_zap  ─ cenote:nocacheflush = on     holds for the devices below it ...
//!   device    leaf_zap ─ cenote:nocacheflush = off    ... unless one says otherwise
//! ```
//!
//! A device that is a top-level vdev by itself has both ZAPs; properties are in the first, as in OpenZFS.
//!
//! ```text
//!   cenote:nocacheflush                      the device's cache survives a power cut
//!   io_n io_t, checksum_n checksum_t,        so many errors within so many seconds are too many: numbers, where OpenZFS has
//!   slow_io_n slow_io_t                      them, of the device itself or of the next group above it that has one
//!   comment                                  words about the vdev, kept as OpenZFS keeps them
//!   any other with a colon                   only kept
//! ```

use crate::pool::{Pool, VdevProperties, lock};
use dsl::props::user;
use dsl::zaps;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Error, Guid, Kind, ObjectId, Result};
use vdev::{Spec, THRESHOLD_MAX, Threshold, Thresholds, WITHIN, WITHIN_SLOW};
use world::Boxed;

/// `on`: the device's cache is protected, it need not be flushed.
pub const NO_CACHE_FLUSH: &str = "cenote:nocacheflush";

/// Those of OpenZFS that act here.
pub const THRESHOLDS: [&str; 6] = ["checksum_n", "checksum_t", "io_n", "io_t", "slow_io_n", "slow_io_t"];
const COMMENT: &str = "comment";
/// Those that OpenZFS has and that would not act here, and why.
const REFUSED: [(&str, &str); 2] = [
    (
        "allocating",
        "a vdev with data cannot be emptied and removed by this version of Cenote, so each is allocated from",
    ),
    ("failfast", "a device is asked through the host's files, which retry by themselves"),
];
/// Seconds: more than any device lives.
const SECONDS_MAX: u64 = 1 << 32;

impl Pool {
    pub fn vdev_properties(&self) -> VdevProperties {
        lock(&self.0.vdev_properties).clone()
    }

    /// Sets a property of a vdev, or, without a value, removes it.
    pub fn set_vdev_property<'a>(
        &'a self,
        vdev: Guid,
        name: &'a str,
        value: &'a str,
    ) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            check(name, value)?;
            let spec = self.tree().spec();
            let missing = || Error::new(Kind::NotFound, format!("find vdev {vdev}"));
            let zap = zap_of(spec.find(vdev).ok_or_else(missing)?);
            let zap = zap.ok_or_else(|| {
                Error::unsupported("the pool was made without room for properties of vdevs")
            })?;
            let (name, value) = (name.to_string(), value.to_string());
            let (stored_name, stored) = (name.clone(), value.clone());
            self.change("set vdev property", move |pool, tx| async move {
                let table = zaps::open(pool.mos(), zap).await?;
                if stored.is_empty() {
                    return zaps::remove_if_any(&table, &tx, &stored_name).await;
                }
                let value = match stored.parse::<u64>() {
                    Ok(number) if THRESHOLDS.contains(&stored_name.as_str()) => number.into(),
                    _ => zap::Value::text(&stored),
                };
                table.update(&tx, stored_name.as_str(), value).await
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
        })
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
            let value = |e: &zap::Entry| match THRESHOLDS.contains(&&*e.name()) {
                true => e.value.as_u64().map(|number| number.to_string()),
                false => e.value.as_text().map(str::to_string),
            };
            let own: BTreeMap<String, String> =
                own.filter_map(|e| Some((e.name().into_owned(), value(e)?))).collect();
            if !own.is_empty() {
                all.insert(vdev.guid, own);
            }
        }
        *lock(&self.0.vdev_properties) = all;
        self.trust_caches();
        Ok(())
    }

    /// Tells every device what was said of it: of its cache, and how much is too much.
    pub(crate) fn trust_caches(&self) {
        let all = self.vdev_properties();
        let leaves: BTreeMap<Guid, _> = self.tree().leaves().into_iter().map(|l| (l.guid(), l)).collect();
        let root = self.tree().spec();
        let mut todo: Vec<(&Spec, Said<'_>)> = root.children.iter().map(|top| (top, Said::new())).collect();
        while let Some((vdev, mut said)) = todo.pop() {
            said.extend(all.get(&vdev.guid).into_iter().flatten().map(|(name, value)| (&**name, &**value)));
            if let Some(leaf) = leaves.get(&vdev.guid) {
                leaf.set_cache_is_safe(said.get(NO_CACHE_FLUSH) == Some(&"on"));
                leaf.set_thresholds(thresholds(&said));
            }
            todo.extend(vdev.children.iter().map(|child| (child, said.clone())));
        }
    }
}

/// What was said of a vdev or of a group above it, by name.
type Said<'a> = BTreeMap<&'a str, &'a str>;

fn thresholds(said: &Said<'_>) -> Thresholds {
    let number = |name: &str| said.get(name).and_then(|text| text.parse::<u64>().ok());
    let within = |name: &str, usual| number(name).map_or(usual, Duration::from_secs);
    let usual = Thresholds::default();
    let of = |count: &str, seconds: &str, usual: Threshold| Threshold {
        count: number(count).unwrap_or(usual.count),
        within: within(seconds, WITHIN),
    };
    let slow = number("slow_io_n");
    Thresholds {
        io: of("io_n", "io_t", usual.io),
        checksum: of("checksum_n", "checksum_t", usual.checksum),
        slow: slow.map(|count| Threshold { count, within: within("slow_io_t", WITHIN_SLOW) }),
    }
}

fn zap_of(vdev: &Spec) -> Option<ObjectId> {
    [vdev.top_zap, vdev.leaf_zap].into_iter().flatten().find_map(|id| ObjectId(id).some())
}

/// What OpenZFS keeps there for itself has names of the same form.
fn is_property(name: &str) -> bool {
    let is_own = ["org.zfsonlinux:", "com.delphix:", "org.openzfs:"].iter().any(|p| name.starts_with(p));
    (user::is_user_property(name) && !is_own) || THRESHOLDS.contains(&name) || name == COMMENT
}

fn check(name: &str, value: &str) -> Result<()> {
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(Error::unsupported(format!("'{name}' cannot be set: {why}")));
    }
    if !is_property(name) {
        return Err(Error::invalid(format!("'{name}' is no property of a vdev that can be set")));
    }
    if THRESHOLDS.contains(&name) {
        return check_threshold(name, value);
    }
    if name == COMMENT {
        return user::check_value(name, value);
    }
    user::check_name(name)?;
    user::check_value(name, value)?;
    if name == NO_CACHE_FLUSH && !["on", "off", ""].contains(&value) {
        return Err(Error::invalid(format!("'{name}' must be one of 'on | off'")));
    }
    Ok(())
}

/// An empty one takes the property back.
fn check_threshold(name: &str, value: &str) -> Result<()> {
    let most = if name.ends_with("_n") { THRESHOLD_MAX } else { SECONDS_MAX };
    let is_good = value.is_empty() || value.parse::<u64>().is_ok_and(|number| number <= most);
    match is_good {
        true => Ok(()),
        false => Err(Error::invalid(format!("'{name}' must be a number up to {most}; 0 of an _n is never"))),
    }
}
