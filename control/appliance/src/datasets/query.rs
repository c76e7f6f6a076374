//! Datasets and their properties: `zfs list` and `zfs get`.

use crate::appliance::Appliance;
use crate::datasets::quotas::Quota;
use crate::error_text::{About, cannot};
use crate::pools::{Access, Open};
use crate::values;
use api::{Dataset, DatasetKind, DatasetQuery, Property, Reply, Result};
use dsl::Dsl;
use dsl::props::{PropName, Source, Types, Value};
use units::Error;

impl Appliance {
    pub(crate) async fn query_datasets(&self, query: DatasetQuery) -> Result<Reply> {
        let mut names = query.names.clone();
        if names.is_empty() {
            names = self.0.pools.lock().await.names();
        }
        let wanted = wanted(&query.properties)?;
        let mut found = Vec::new();
        for name in &names {
            let open = match self.pool_of(name, Access::Look).await {
                // Among all pools, one that cannot be opened hides only itself.
                Err(e) if query.names.is_empty() && e.kind != api::ErrorKind::Damaged => continue,
                open => open?,
            };
            let below = below(&open, name, &query, wanted.as_deref()).await;
            found.extend(below.map_err(|e| cannot(About::Dataset, &format!("open '{name}'"), &e))?);
        }
        for dataset in &mut found {
            let is_mounted = self.0.mounts.get(&dataset.name).is_some();
            if let Some(mounted) = dataset.properties.iter_mut().find(|p| p.name == "mounted" && is_mounted) {
                mounted.value = Some("yes".into());
            }
        }
        Ok(Reply::Datasets(found))
    }
}

/// `None` for all.
fn wanted(names: &[String]) -> Result<Option<Vec<PropName>>> {
    if names.is_empty() {
        return Ok(None);
    }
    // Families such as `userused@` are not among them: see `quotas`.
    let parsed = names.iter().filter_map(|name| PropName::parse(name).ok());
    Ok(Some(parsed.collect()))
}

/// What the query finds at and below one name: parents before children, snapshots after what they are of.
async fn below(
    open: &Open,
    name: &str,
    query: &DatasetQuery,
    wanted: Option<&[PropName]>,
) -> units::Result<Vec<Dataset>> {
    let pool = &open.pool;
    let _reading = pool.reading().await;
    let dsl = pool.dsl();
    let mut found = Vec::new();
    for name in names(dsl, name, query).await? {
        let mut dataset = describe(dsl, &name, wanted).await?;
        if dataset.kind == DatasetKind::Filesystem {
            for property in &query.properties {
                // An owner that is not known here has nothing.
                if let Ok(Some(quota)) = Quota::parse(property) {
                    dataset.properties.push(quota.property(pool, &name, property).await?);
                }
            }
        }
        let is_wanted = query.kinds.is_empty() || query.kinds.contains(&dataset.kind);
        found.extend(is_wanted.then_some(dataset));
    }
    Ok(found)
}

async fn names(dsl: &Dsl, start: &str, query: &DatasetQuery) -> units::Result<Vec<String>> {
    if start.contains('@') {
        dsl.find(start).await?;
        return Ok(vec![start.into()]);
    }
    if start.contains('#') {
        return Err(Error::unsupported("bookmarks are not part of this version of Cenote yet"));
    }
    let depth = |name: &str| (name.matches('/').count() - start.matches('/').count()) as u64;
    let limit = query.depth.map_or(u64::MAX, u64::from);
    let with_snapshots = query.kinds.is_empty() || query.kinds.contains(&DatasetKind::Snapshot);
    let mut names = Vec::new();
    for name in dsl.descendants(start).await? {
        let level = depth(&name);
        if level > limit {
            continue;
        }
        let snapshots =
            if with_snapshots && level < limit { dsl.snapshots(&name).await? } else { Vec::new() };
        names.push(name);
        names.extend(snapshots.into_iter().map(|(name, _)| name));
    }
    Ok(names)
}

async fn describe(dsl: &Dsl, name: &str, wanted: Option<&[PropName]>) -> units::Result<Dataset> {
    let stats = dsl.stats(name).await?;
    let kind = match stats.types() {
        Types::SNAPSHOT => DatasetKind::Snapshot,
        Types::VOLUME => DatasetKind::Volume,
        _ => DatasetKind::Filesystem,
    };
    let mut properties = Vec::new();
    match wanted {
        None => {
            for (name, shown) in stats.all().await? {
                let received = stats.received(&name);
                properties.push(property(&name, shown, received));
            }
        }
        Some(names) => {
            for name in names {
                if let Some(shown) = stats.get(name).await? {
                    properties.push(property(name, shown, stats.received(name)));
                }
            }
        }
    }
    Ok(Dataset { name: name.into(), kind, properties })
}

fn property(name: &PropName, (value, source): (Value, Source), received: Option<Value>) -> Property {
    let travelling = |value: &Value| match name {
        PropName::Native(prop) => values::travelling(prop.row(), value),
        PropName::User(_) => values::plain(value),
    };
    Property {
        name: name.as_str().into(),
        value: Some(travelling(&value)),
        source: values::source(&source),
        received: received.as_ref().map(travelling),
    }
}
