//! `zpool split`.

use crate::appliance::{Appliance, By};
use crate::error_text::{About, cannot};
use crate::home::Known;
use crate::pools::{Access, Open, Opening, devices_of, vdevs};
use crate::shares::{IDENTIFIER, own};
use api::{PoolSplit, Reply, Result};
use dsl::pool_props::{self, PoolProp, PoolSetting, When};
use dsl::props::PropName;
use pool::Pool;
use units::{Error, Guid, Kind};

/// What is set on the new pool.
#[derive(Default)]
struct How {
    altroot: Option<String>,
    later: Vec<(String, String)>,
}

impl Appliance {
    pub(crate) async fn split_pool(&self, split: PoolSplit, by: &By) -> Result<Reply> {
        let PoolSplit { pool: name, new_name, devices, dry_run, properties } = split;
        let failed = |e: &Error| cannot(About::Pool, &format!("split '{name}'"), e);
        dsl::name::check_pool(&new_name).map_err(|e| failed(&e))?;
        let how = sort(&properties).map_err(|e| failed(&e))?;
        let exists =
            || failed(&Error::new(Kind::Exists, "split").because(format!("'{new_name}' is imported")));
        if name == new_name {
            return Err(exists());
        }
        let _turns = self.0.turns.of_both(&name, &new_name).await;
        let open = self.pool(&name, Access::Change).await?;
        if self.0.pools.lock().await.contains(&new_name) {
            return Err(exists());
        }
        let named = find_all(&open.pool, &devices).map_err(|e| failed(&e))?;
        let chosen = open.pool.plan_split(&named).map_err(|e| failed(&e))?;
        let paths = paths_of(&open.pool, &chosen);
        if dry_run {
            return Ok(Reply::SplitOff { devices: paths });
        }
        let opening = Opening { name: Some(new_name.clone()), force: true, ..Opening::default() };
        let new = open.pool.split(new_name.clone(), named, self.open_options(&opening)).await;
        self.settle_events(&open.pool);
        self.note_devices(&name).await?;
        let new = new.map_err(|e| failed(&e))?;
        let is_kept = how.altroot.is_some();
        let known = Known {
            name: new_name.clone(),
            guid: new.guid().0,
            devices: devices_of(&new),
            altroot: how.altroot,
            passing: is_kept,
            ..Known::default()
        };
        without_identifiers(&new).await.map_err(|e| failed(&e))?;
        for (property, value) in how.later {
            new.set_property(&property, &value).await.map_err(|e| failed(&e))?;
        }
        self.record(&new, by).await.map_err(|e| failed(&e))?;
        if is_kept {
            let mut pools = self.0.pools.lock().await;
            pools.add(Open::new(new, known, false));
            self.remember(&pools)?;
        } else {
            new.export().await.map_err(|e| failed(&e))?;
        }
        self.record(&open.pool, by).await.map_err(|e| failed(&e))?;
        if is_kept {
            self.mount_new(&new_name).await;
        }
        Ok(Reply::SplitOff { devices: paths })
    }
}

/// The volumes of the new pool are copies, which have not the identifiers of their originals, as clones and received ones
/// have not. Each is a LUN when it is made one, with an identifier of its own.
async fn without_identifiers(new: &Pool) -> units::Result<()> {
    let mut luns = Vec::new();
    {
        let _reading = new.reading().await;
        for dataset in new.dsl().descendants(&new.name()).await? {
            let stats = new.dsl().stats(&dataset).await?;
            if own(&stats, IDENTIFIER).await?.is_some_and(|(_, own)| own) {
                luns.push(dataset);
            }
        }
    }
    if luns.is_empty() {
        return Ok(());
    }
    new.change("forget identifiers", move |pool, tx| async move {
        for dataset in luns {
            pool.dsl().inherit(&tx, &dataset, &PropName::User(IDENTIFIER.into()), false).await?;
        }
        Ok(())
    })
    .await
}

fn find_all(pool: &Pool, devices: &[String]) -> units::Result<Vec<Guid>> {
    let spec = pool.tree().spec();
    let missing = |device: &String| {
        Error::new(Kind::NotFound, "find device").because(format!("{device} is not in the pool"))
    };
    let find =
        |device: &String| vdevs::find(&spec, device).map(|found| found.guid).ok_or_else(|| missing(device));
    devices.iter().map(find).collect()
}

fn paths_of(pool: &Pool, guids: &[Guid]) -> Vec<String> {
    let spec = pool.tree().spec();
    guids.iter().filter_map(|guid| Some(spec.find(*guid)?.name())).collect()
}

fn sort(settings: &[(String, String)]) -> units::Result<How> {
    let mut how = How::default();
    for (name, text) in settings {
        match pool_props::parse_setting(name, text, When::Import)? {
            PoolSetting::Native(PoolProp::ReadOnly, _) => {
                return Err(Error::invalid("property 'readonly' can only be set at import time"));
            }
            PoolSetting::Native(PoolProp::AltRoot, _) => how.altroot = Some(text.clone()),
            PoolSetting::Native(PoolProp::CacheFile, _) => {}
            _ => how.later.push((name.clone(), text.clone())),
        }
    }
    Ok(how)
}
