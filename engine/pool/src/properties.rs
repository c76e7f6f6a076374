//! The pool's properties: reading all of them, and setting one.
//!
//! ```text
//!   computed     size, free, health, guid ...     from the pool as it is
//!   label        comment, compatibility           in the configuration, so that import sees them
//!   stored       failmode, autotrim, a:b ...      the ZAP `pool_props` of the MOS, made when it is first needed
//!   features     feature@NAME                     disabled, enabled, active; can only be switched on
//! ```

use crate::pool::Pool;
use crate::report::percent;
use crate::scrub;
use dmu::Tx;
use dsl::pool_props::{PoolProp, PoolSetting, When, parse_setting};
use dsl::props::{Source, Value, user};
use metaslab::Class;
use ondisk::feature::compatibility_set;
use ondisk::mos::directory;
use ondisk::{Feature, ObjectType};
use std::collections::BTreeMap;
use units::{Error, ObjectId, Result};
use world::Boxed;

/// A property's name, its value if it has one now, and where that comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolProperty {
    pub name: String,
    pub value: Option<Value>,
    pub source: Source,
}

/// The version that says "see the features": it is not shown.
const VERSION_FEATURES: u64 = 5000;

/// The release whose listings are followed.
const LISTED: &str = "openzfs-2.3-linux";

type Stored = BTreeMap<String, Value>;

impl Pool {
    /// Every native property in the order of the table, then every feature, then the user's own. The caller keeps sync
    /// tasks away ([`Pool::reading`]).
    pub fn properties(&self) -> Boxed<'_, Result<Vec<PoolProperty>>> {
        Box::pin(async move {
            let stored = self.stored_properties().await?;
            let mut all = Vec::new();
            for prop in PoolProp::ALL {
                let (value, source) = self.native(*prop, &stored).await?;
                all.push(PoolProperty { name: prop.name().into(), value, source });
            }
            all.extend(self.feature_properties());
            let own = stored.into_iter().filter(|(name, _)| user::is_user_property(name));
            all.extend(own.map(|(name, value)| PoolProperty {
                name,
                value: Some(value),
                source: Source::Local,
            }));
            Ok(all)
        })
    }

    /// Sets a property, from text as people write it.
    pub fn set_property<'a>(&'a self, name: &'a str, text: &'a str) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let setting = parse_setting(name, text, When::Later)?;
            self.change("set property", move |pool, tx| async move { pool.apply_setting(&tx, setting).await })
                .await
        })
    }

    pub(crate) async fn stored_properties(&self) -> Result<Stored> {
        let core = self.dsl().core();
        let Some(id) = core.directory().lookup_u64(directory::POOL_PROPERTIES).await? else {
            return Ok(Stored::new());
        };
        let entries = core.table(ObjectId(id)).await?.entries().await?;
        let value = |entry: &zap::Entry| match entry.value.as_u64().filter(|_| entry.value.int_size() == 8) {
            Some(number) => Some(Value::Number(number)),
            None => entry.value.as_text().map(|text| Value::Text(text.into())),
        };
        Ok(entries.iter().filter_map(|e| Some((e.name().into_owned(), value(e)?))).collect())
    }

    async fn native(&self, prop: PoolProp, stored: &Stored) -> Result<(Option<Value>, Source)> {
        let config = self.config();
        let text = |text: Option<String>| match text {
            Some(text) => (Some(Value::Text(text)), Source::Local),
            None => (prop.row().default_value(), Source::Default),
        };
        Ok(match prop {
            PoolProp::Comment => text(config.comment),
            PoolProp::Compatibility => text(config.compatibility),
            PoolProp::Version if config.version == VERSION_FEATURES => (None, Source::Default),
            PoolProp::Version => (Some(Value::Number(config.version)), Source::Local),
            PoolProp::TName if self.name_on_disk().is_some() => {
                (Some(Value::Text(self.name())), Source::None)
            }
            PoolProp::TName => (None, Source::None),
            PoolProp::BootFs => self.bootfs(stored).await,
            PoolProp::ReadOnly if self.is_read_only() => (Some(Value::Number(1)), Source::None),
            PoolProp::ReadOnly => (Some(Value::Number(0)), Source::None),
            _ if prop.row().setting.is_readonly() => (self.computed(prop).await?, Source::None),
            _ => match stored.get(prop.name()) {
                Some(value) => (Some(value.clone()), Source::Local),
                None => (prop.row().default_value(), Source::Default),
            },
        })
    }

    /// The dataset to start a machine from; stored as its object.
    async fn bootfs(&self, stored: &Stored) -> (Option<Value>, Source) {
        let id = stored.get(PoolProp::BootFs.name()).and_then(Value::number).filter(|id| *id != 0);
        match id {
            Some(id) => match self.dsl().dataset_name(ObjectId(id)).await {
                Ok(name) => (Some(Value::Text(name)), Source::Local),
                Err(_) => (None, Source::Default),
            },
            None => (None, Source::Default),
        }
    }

    async fn computed(&self, prop: PoolProp) -> Result<Option<Value>> {
        let usage = self.space().usage_total();
        let normal = self.space().usage(Class::Normal);
        let number = match prop {
            PoolProp::Name => return Ok(Some(Value::Text(self.name()))),
            PoolProp::Health => return Ok(Some(Value::Text(self.tree().health().word().into()))),
            PoolProp::Size => usage.space,
            PoolProp::Capacity => percent(&usage),
            PoolProp::Guid => self.guid().0,
            PoolProp::DedupRatio | PoolProp::BcloneRatio => 100,
            PoolProp::Free => usage.free(),
            PoolProp::Allocated => usage.allocated,
            PoolProp::ExpandSize => return Ok(Some(self.expandable()).filter(|n| *n > 0).map(Value::Number)),
            PoolProp::Checkpoint => return Ok(None),
            PoolProp::Fragmentation => {
                return Ok(self.space().fragmentation(Class::Normal).map(Value::Number));
            }
            PoolProp::Freeing => self.dsl().freeing().await?,
            PoolProp::LoadGuid => self.0.load_guid,
            PoolProp::MaxBlockSize => self.max_block_size(),
            PoolProp::MaxDnodeSize if self.dsl().features().is_enabled(Feature::LargeDnode) => 16 << 10,
            PoolProp::MaxDnodeSize => 512,
            PoolProp::LastScrubbedTxg => scrub::last_scrubbed(self).await?.0,
            PoolProp::Usable => normal.space_deflated,
            PoolProp::Used => normal.allocated_deflated,
            PoolProp::Available => normal.space_deflated.saturating_sub(normal.allocated_deflated),
            _ => 0,
        };
        Ok(Some(Value::Number(number)))
    }

    fn max_block_size(&self) -> u64 {
        let large = self.dsl().features().is_enabled(Feature::LargeBlocks);
        if large { ondisk::MAX_BLOCK_SIZE } else { ondisk::OLD_MAX_BLOCK_SIZE }
    }

    /// Each feature that this program knows, and those of the pool that it does not.
    fn feature_properties(&self) -> Vec<PoolProperty> {
        let features = self.dsl().features();
        let word = |count: Option<u64>| match count {
            None => "disabled",
            Some(0) => "enabled",
            Some(_) => "active",
        };
        let property = |name: String, state: &str, source| PoolProperty {
            name,
            value: Some(Value::Text(state.into())),
            source,
        };
        // Younger ones than the release whose listings are followed are shown where a pool has them.
        let listed = compatibility_set(LISTED).unwrap_or_default();
        let shown = Feature::all().filter(|f| listed.contains(f) || features.is_enabled(*f));
        let known = shown.map(|f| {
            property(format!("feature@{}", f.name()), word(features.count(f.guid())), Source::Local)
        });
        let unknown = features.all().into_iter().filter(|(guid, _)| Feature::by_guid(guid).is_none()).map(
            |(guid, count)| {
                let state = if count == 0 { "inactive" } else { "readonly" };
                property(format!("unsupported@{guid}"), state, Source::Local)
            },
        );
        known.chain(unknown).collect()
    }

    async fn apply_setting(&self, tx: &Tx, setting: PoolSetting) -> Result<()> {
        match setting {
            PoolSetting::Feature { name, .. } => self.enable_feature(tx, &name).await?,
            PoolSetting::User(name, text) if text.is_empty() => self.unstore(tx, &name).await?,
            PoolSetting::User(name, text) => self.store(tx, &name, zap::Value::text(&text)).await?,
            PoolSetting::Native(prop, value) => self.set_native(tx, prop, value).await?,
        }
        Ok(())
    }

    async fn enable_feature(&self, tx: &Tx, name: &str) -> Result<()> {
        let missing = || Error::invalid(format!("feature '{name}' is not known to this program"));
        let feature = Feature::by_name(name).ok_or_else(missing)?;
        let core = self.dsl().core();
        if feature == Feature::HeadErrlog && !core.features().is_enabled(feature) {
            self.upgrade_error_logs(tx).await?;
        }
        core.features().enable(core.mos(), core.directory(), tx, feature).await?;
        // What properties come to may depend on it.
        self.dsl().touch(&self.name(), None);
        // Labels name the features without which the MOS cannot be read.
        self.update_config(|_| ());
        Ok(())
    }

    async fn set_native(&self, tx: &Tx, prop: PoolProp, value: Value) -> Result<()> {
        let text = |value: &Value| value.text().filter(|t| !t.is_empty()).map(String::from);
        match (prop, &value) {
            (PoolProp::Comment, value) => {
                let comment = text(value);
                self.update_config(|config| config.comment = comment);
                self.0.touch(tx).await
            }
            (PoolProp::Compatibility, value) => {
                let list = text(value).filter(|t| t != "off");
                self.update_config(|config| config.compatibility = list);
                self.0.touch(tx).await
            }
            (PoolProp::Version, _) => Err(Error::unsupported("upgrading a pool's version")),
            // Where the list of imported pools is kept is this machine's matter, not the pool's.
            (PoolProp::CacheFile, _) => Ok(()),
            (PoolProp::BootFs, Value::Text(name)) => self.set_bootfs(tx, name).await,
            (PoolProp::MultiHost, Value::Number(n)) => {
                if *n == 1 {
                    self.check_multihost()?;
                }
                self.store(tx, prop.name(), (*n).into()).await?;
                self.set_multihost(*n == 1).await
            }
            (PoolProp::AutoTrim, Value::Number(n)) => {
                self.store(tx, prop.name(), (*n).into()).await?;
                self.set_autotrim(*n == 1).await;
                Ok(())
            }
            (PoolProp::AutoExpand | PoolProp::AutoReplace, Value::Number(n)) => {
                self.store(tx, prop.name(), (*n).into()).await?;
                self.watch_devices(prop, *n == 1);
                Ok(())
            }
            (PoolProp::FailMode, Value::Number(n)) => {
                self.store(tx, prop.name(), (*n).into()).await?;
                self.follow_failmode(*n);
                Ok(())
            }
            (_, Value::Number(n)) => self.store(tx, prop.name(), (*n).into()).await,
            (_, Value::Text(text)) => self.store(tx, prop.name(), zap::Value::text(text)).await,
        }
    }

    async fn set_bootfs(&self, tx: &Tx, name: &str) -> Result<()> {
        if name.is_empty() {
            return self.store(tx, PoolProp::BootFs.name(), 0.into()).await;
        }
        let found = self.dsl().find(name).await?;
        self.store(tx, PoolProp::BootFs.name(), found.id.0.into()).await
    }

    async fn store(&self, tx: &Tx, name: &str, value: zap::Value) -> Result<()> {
        let core = self.dsl().core();
        let table = match core.directory().lookup_u64(directory::POOL_PROPERTIES).await? {
            Some(id) => core.table(ObjectId(id)).await?,
            None => {
                let table = dsl::zaps::create(self.mos(), tx, ObjectType::POOL_PROPS).await?;
                core.directory().insert(tx, directory::POOL_PROPERTIES, table.blocks().id().0).await?;
                table
            }
        };
        table.update(tx, name, value).await
    }

    async fn unstore(&self, tx: &Tx, name: &str) -> Result<()> {
        let core = self.dsl().core();
        let Some(id) = core.directory().lookup_u64(directory::POOL_PROPERTIES).await? else { return Ok(()) };
        dsl::zaps::remove_if_any(&core.table(ObjectId(id)).await?, tx, name).await
    }
}
