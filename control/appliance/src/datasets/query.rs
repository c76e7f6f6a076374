//! Datasets and their properties: `zfs list` and `zfs get`.
//!
//! A change of the pool waits for its readers, and a txg for its changes: so a long listing is made in parts, between which
//! changes have their turn. Each part is of one moment. What goes meanwhile is left out, and what comes is not in it.

use crate::appliance::Appliance;
use crate::datasets::quotas::Quota;
use crate::error_text::{About, cannot};
use crate::pools::{Access, Open};
use crate::values;
use api::{Dataset, DatasetKind, DatasetQuery, Property, Reply, Result};
use dsl::Dsl;
use dsl::props::{PropName, Source, Types, Value};
use pool::Pool;
use units::{Error, Kind};

/// So many datasets are read at once: some milliseconds of work.
const PART: usize = 16;

impl Appliance {
    /// As they are shown: mount points are where they are on this machine.
    pub(crate) async fn query_datasets(&self, query: DatasetQuery) -> Result<Reply> {
        self.datasets(query, Open::show_mountpoint).await.map(Reply::Datasets)
    }

    /// As they are kept in the pool: what may be set again.
    pub(crate) async fn kept_datasets(&self, query: DatasetQuery) -> Result<Vec<Dataset>> {
        self.datasets(query, |_, _| {}).await
    }

    async fn datasets(
        &self,
        query: DatasetQuery,
        show: impl Fn(&Open, &mut [Property]),
    ) -> Result<Vec<Dataset>> {
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
            let mut below = below.map_err(|e| cannot(About::Dataset, &format!("open '{name}'"), &e))?;
            for dataset in &mut below {
                show(&open, &mut dataset.properties);
            }
            found.extend(below);
        }
        for dataset in &mut found {
            let is_mounted = self.0.mounts.get(&dataset.name).is_some();
            if let Some(mounted) = dataset.properties.iter_mut().find(|p| p.name == "mounted" && is_mounted) {
                mounted.value = Some("yes".into());
            }
        }
        Ok(found)
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
    let mut found = Vec::new();
    for names in names(pool, name, query).await?.chunks(PART) {
        let _reading = pool.reading().await;
        for listed in names {
            match dataset(pool, listed, query, wanted).await {
                Err(e) if e.kind() == Kind::NotFound && listed != name => {}
                Err(e) => return Err(e),
                Ok(dataset) => {
                    let is_wanted = query.kinds.is_empty() || query.kinds.contains(&dataset.kind);
                    found.extend(is_wanted.then_some(dataset));
                }
            }
        }
    }
    Ok(found)
}

async fn dataset(
    pool: &Pool,
    name: &str,
    query: &DatasetQuery,
    wanted: Option<&[PropName]>,
) -> units::Result<Dataset> {
    let mut dataset = describe(pool.dsl(), name, wanted).await?;
    if dataset.kind == DatasetKind::Filesystem {
        for property in &query.properties {
            // An owner that is not known here has nothing.
            if let Ok(Some(quota)) = Quota::parse(property) {
                dataset.properties.push(quota.property(pool, name, property).await?);
            }
        }
    }
    Ok(dataset)
}

async fn names(pool: &Pool, start: &str, query: &DatasetQuery) -> units::Result<Vec<String>> {
    let dsl = pool.dsl();
    let reading = pool.reading().await;
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
    let descendants = dsl.descendants(start).await?;
    drop(reading);
    for name in descendants {
        let level = depth(&name);
        if level > limit {
            continue;
        }
        let snapshots = match with_snapshots && level < limit {
            true => {
                let _reading = pool.reading().await;
                match dsl.snapshots(&name).await {
                    Err(e) if e.kind() == Kind::NotFound && name != start => continue,
                    snapshots => snapshots?,
                }
            }
            false => Vec::new(),
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedules::tests::{Lab, START, ask, make};
    use api::Request;

    const SNAPSHOTS: usize = 120;

    /// A listing of eighteen thousand snapshots kept each change, and the txg that was to have it, waiting for five seconds.
    #[test]
    fn a_change_does_not_wait_for_the_end_of_a_listing_and_what_goes_is_left_out() {
        let lab = Lab::new("listing");
        lab.run(START, |appliance| async move {
            make(&appliance).await;
            let pool = appliance.pool("tank", Access::Look).await.unwrap().pool;
            for n in 0..SNAPSHOTS {
                pool.snapshot(vec![format!("tank/p/v@s{n:03}")], Vec::new()).await.unwrap();
            }
        });
        // Nothing is in memory, so that the listing waits for the disk.
        lab.run(START + 60, |appliance| async move {
            let query = |name: &str| DatasetQuery {
                names: vec![name.into()],
                depth: None,
                kinds: vec![DatasetKind::Snapshot],
                properties: vec!["used".into()],
            };
            let own = appliance.clone();
            let listing = world::spawn(async move { ask(&own, Request::Datasets(query("tank"))).await });
            let pool = appliance.pool("tank", Access::Look).await.unwrap().pool;
            let last = format!("tank/p/v@s{:03}", SNAPSHOTS - 1);
            let spec = dsl::DestroySpec { names: vec![last], ..Default::default() };
            pool.destroy_datasets(spec).await.unwrap();
            let Reply::Datasets(listed) = listing.await else { panic!("it is no list") };
            assert_eq!(
                listed.len(),
                SNAPSHOTS - 1,
                "the change had its turn before the listing was at its end"
            );
        });
    }
}
