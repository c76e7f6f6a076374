//! `zpool import`.

use crate::home::Known;
use crate::phrase::{About, cannot};
use crate::pools::{Open, Opening, busy, devices_of};
use crate::service::{Appliance, By};
use api::{ApiError, ErrorKind, PoolChoice, PoolImport, Reply, Result};
use dsl::pool_props::{self, PoolProp, PoolSetting, When};
use units::Error;
use vdev::Candidate;

/// The properties that make a difference when a pool is imported.
#[derive(Default)]
struct How {
    read_only: bool,
    altroot: Option<String>,
    is_passing: bool,
    /// To be set as soon as it is open.
    later: Vec<(String, String)>,
}

impl Appliance {
    pub(crate) async fn import_pool(&self, import: PoolImport, by: &By) -> Result<Reply> {
        let asked = match &import.pool {
            PoolChoice::Name(name) => name.clone(),
            PoolChoice::Guid(guid) => guid.to_string(),
        };
        let failed = |e: &Error| cannot(About::Pool, &format!("import '{asked}'"), e);
        if import.temporary {
            return Err(failed(&Error::unsupported(
                "a temporary name (-t) is not part of this version of Cenote yet",
            )));
        }
        let how = sort(&import.properties).map_err(|e| failed(&e))?;
        let candidate = self.choose(&import, &asked).await?;
        let name = import.new_name.clone().unwrap_or_else(|| candidate.name().to_string());
        dsl::name::check_pool(&name).map_err(|e| failed(&e))?;
        self.check_host(&candidate, import.force || how.read_only, &asked)?;

        let mut pools = self.0.pools.lock().await;
        if pools.contains(&name) {
            let message = format!(
                "cannot import '{asked}': a pool with that name already exists; use the form 'zpool import <pool | id> \
                 <newpool>' to give it a new name"
            );
            return Err(ApiError::new(ErrorKind::Exists, message));
        }
        let devices: Vec<String> =
            candidate.devices.values().map(|d| d.path.to_string_lossy().into_owned()).collect();
        let opening = Opening {
            read_only: how.read_only,
            name: import.new_name.clone(),
            force: import.force || import.destroyed,
            missing_log: import.missing_log,
        };
        let pool = self.open_candidate(&candidate, opening).await;
        let pool = pool.map_err(|e| failed(&busy(e, &devices)))?;
        let known = Known {
            name: name.clone(),
            guid: pool.guid().0,
            devices: devices_of(&pool),
            read_only: how.read_only,
            altroot: how.altroot,
            passing: how.is_passing,
        };
        pools.add(Open::new(pool.clone(), known, false));
        self.remember(&pools)?;
        drop(pools);
        self.record(&pool, by).await.map_err(|e| failed(&e))?;
        let _ = self.remove_half_copies(&pool).await;
        for (property, value) in how.later {
            self.set_pool(&name, &property, &value, &By { command: String::new(), uid: by.uid }).await?;
        }
        let warning = if import.no_mount { None } else { self.mount_new(&name).await };
        Ok(Reply::Imported { name, warning })
    }

    async fn choose(&self, import: &PoolImport, asked: &str) -> Result<Candidate> {
        let is_it = |c: &Candidate| match &import.pool {
            PoolChoice::Name(name) => c.name() == name,
            PoolChoice::Guid(guid) => c.guid().0 == *guid,
        };
        let found = self.find_candidates(&import.search).await?;
        let mut matching: Vec<Candidate> =
            found.into_iter().filter(|c| is_it(c) && c.is_destroyed() == import.destroyed).collect();
        match matching.len() {
            0 => Err(self.not_found(import, asked).await),
            1 => Ok(matching.remove(0)),
            _ => {
                let message = format!(
                    "cannot import '{asked}': more than one matching pool; import by numeric ID instead"
                );
                Err(ApiError::new(ErrorKind::Exists, message))
            }
        }
    }

    async fn not_found(&self, import: &PoolImport, asked: &str) -> ApiError {
        let pools = self.0.pools.lock().await;
        let is_here = match &import.pool {
            PoolChoice::Name(name) => pools.contains(name),
            PoolChoice::Guid(guid) => pools.has_guid(*guid),
        };
        match is_here {
            true => {
                ApiError::new(ErrorKind::Exists, format!("cannot import '{asked}': it is imported already"))
            }
            false => {
                ApiError::new(ErrorKind::NotFound, format!("cannot import '{asked}': no such pool available"))
            }
        }
    }

    fn check_host(&self, candidate: &Candidate, allowed: bool, asked: &str) -> Result<()> {
        let config = &candidate.config;
        let Some((id, host)) = config.host.as_ref().filter(|(id, _)| *id != 0 && *id != self.0.host.id)
        else {
            return Ok(());
        };
        if config.state != ondisk::PoolState::Active || allowed {
            return Ok(());
        }
        let message = format!(
            "cannot import '{asked}': pool was previously in use from another system, {host} (hostid={id:x}), and not \
             exported there; use 'zpool import -f' to import it all the same"
        );
        Err(ApiError::new(ErrorKind::Busy, message))
    }
}

fn sort(settings: &[(String, String)]) -> units::Result<How> {
    let mut how = How::default();
    for (name, text) in settings {
        match pool_props::parse_setting(name, text, When::Import)? {
            PoolSetting::Native(PoolProp::ReadOnly, value) => how.read_only = value.number() == Some(1),
            PoolSetting::Native(PoolProp::AltRoot, _) => how.altroot = Some(text.clone()),
            PoolSetting::Native(PoolProp::CacheFile, _) => how.is_passing = text == "none",
            _ => how.later.push((name.clone(), text.clone())),
        }
    }
    Ok(how)
}
